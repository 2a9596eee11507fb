"""A change of version to one that is slower, and a client that takes every restart for the end."""

from collections.abc import Sequence
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

SLOW = 0.08
"""Cores that a node of the slower version has: too few for the ledger's schedule."""

NO_TPCC = ("tpcc_complete", "tpcc_audited", "generator_not_starved", "consistency_checked")
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
    """Nodes of the new version have hardly any CPU while they serve, and all they want while they start and stop."""
    swaps = iter([step for step in swapping.plan.steps if isinstance(step, Swap)])
    slow_ones, wait, inject = set[str](), ledger.recovery, fault.inject

    def held() -> None:
        for node in cluster.nodes:
            Throttle(cluster, [node]).limit(SLOW if node in slow_ones else None)

    async def recovery() -> None:
        step = next(swaps)
        (slow_ones.add if step.to == swapping.plan.versions[-1] else slow_ones.discard)(step.node)
        await wait()
        held()

    def freed(what: Fault, nodes: Sequence[str], **facts: bool) -> object:
        Throttle(cluster).limit(None)
        return inject(what, list(nodes), **facts)

    monkeypatch.setattr(ledger, "recovery", recovery)
    monkeypatch.setattr(fault, "inject", freed)
    await swapped(swapping, ledger, probe)
    assert judge.refuted("throughput_buckets_kept")


@slow
@pytest.mark.sabotage("hot-swap", engine="cockroach")
async def test_a_client_that_tries_nothing_again(
    swapping: Swapping, ledger: Ledger, probe: Probe, judge: Judge, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Whoever loses its connection connects no more; once each node was away nobody is left to write.

    The probe is served all the time: the database is not to blame for what its clients no longer ask.
    """
    monkeypatch.setattr(ledger_fixture, "LedgerSpec", OnceSpec)
    await swapped(swapping, ledger, probe)
    assert judge.inconclusive("fault_hit", may=["baseline_steady", *NO_TPCC])
