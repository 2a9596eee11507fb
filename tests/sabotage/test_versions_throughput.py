"""A change of version to one that is slower, and a client that takes every restart for the end."""

import asyncio
import time
from dataclasses import replace

import pytest

from clusters.cluster import Cluster
from clusters.faults.disturbance import Fault
from clusters.model import NodeResources
from fixtures.fault import Faults
from fixtures.judge import Judge
from fixtures.probe import Probe
from fixtures.swapping.fixture import Swapping
from fixtures.swapping.plan import Swap
from fixtures.trial import Trial
from fixtures.workloads.ledger import fixture as ledger_fixture
from fixtures.workloads.ledger.fixture import Ledger
from tests.sabotage.no_retries import OnceSpec
from tests.sabotage.test_versions import swapped
from tests.sabotage.throttle import Throttle
from tests.slow import slow

pytestmark = pytest.mark.topology(nodes=3)

SHARE = 0.25
"""Of the CPU that a node of the old version uses for the ledger, a node of the slower one may use so much."""
SERVES_S = 20.0
"""For so long the load goes on by itself when all nodes are slow: well above a twentieth of the time that all takes."""

NOT_RUN = (
    "tpcc_complete", "tpcc_audited", "tpcc_ran", "generator_not_starved", "consistency_checked", "objects_asked",
    "schema_change_crossed", "rows_read_back",
)  # fmt: skip
"""Conditions of what does not run here."""


@pytest.fixture
def node_resources(trial: Trial) -> NodeResources:
    """A limit of CPU that can be changed while nodes run."""
    return replace(trial.run.profile.node, cpus=float(trial.run.host.cores))


@slow
@pytest.mark.sabotage("hot-swap", engine="cockroach")
async def test_a_new_version_is_slower(
    swapping: Swapping,
    ledger: Ledger,
    probe: Probe,
    cluster: Cluster,
    fault: Faults,
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
) -> None:
    """Nodes of the new version have too little CPU while they serve, and all they want while any node is changed."""
    swaps = iter([step for step in swapping.plan.steps if isinstance(step, Swap)])
    slow_ones, wait, inject, every = list[str](), ledger.recovery, fault.inject, Throttle(cluster)
    cores, most = 0.0, 0

    async def recovery() -> None:
        nonlocal most
        await wait()
        step = next(swaps)
        if step.to == swapping.plan.versions[-1]:
            slow_ones.append(step.node)
        else:
            slow_ones.remove(step.node)
        Throttle(cluster, slow_ones).limit(cores)
        most = max(most, len(slow_ones))
        if len(slow_ones) == len(cluster.nodes):
            await asyncio.sleep(SERVES_S)

    def freed(what: Fault, nodes: list[str]) -> object:
        Throttle(cluster).limit(None)
        return inject(what, nodes)

    monkeypatch.setattr(ledger, "recovery", recovery)
    monkeypatch.setattr(fault, "inject", freed)
    async with probe.watching(ledger), ledger.writing(at_least=0):
        begun, used = time.monotonic(), every.used_s
        await ledger.baseline()
        cores = SHARE * (every.used_s - used) / (time.monotonic() - begun) / len(cluster.nodes)
        await swapping.follow(ledger)
        await ledger.written_past_recovery()
        Throttle(cluster).limit(None)
    await ledger.audit()
    assert most == len(cluster.nodes), "not all were slow at any time"
    assert judge.refuted("throughput_buckets_kept")


@slow
@pytest.mark.sabotage("hot-swap", engine="cockroach")
async def test_a_client_that_tries_nothing_again(
    swapping: Swapping, ledger: Ledger, probe: Probe, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever loses its connection connects no more. The database is not to blame for what its clients do not ask."""
    monkeypatch.setattr(ledger_fixture, "LedgerSpec", OnceSpec)
    await swapped(swapping, ledger, probe)
    assert judge.inconclusive("clients_tried_again", may=["fault_hit", "baseline_steady", *NOT_RUN])
