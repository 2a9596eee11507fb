"""A plan that forbids what servers allow, a node that is frozen in its change, and answers that are late in between."""

import dataclasses

import msgspec
import pytest

from clusters.cluster import Cluster
from clusters.events import SwapFailed
from clusters.watched import NotUp
from fixtures.judge import Judge
from fixtures.probe import Probe
from fixtures.swapping.fixture import Swapping
from fixtures.swapping.plan import Finalise, Join
from fixtures.trial import Trial
from fixtures.workloads.ledger.fixture import Ledger
from plugin.evidence.events import NodeJoined, seen
from plugin.judge.metrics import measure
from tests.sabotage.pair import pair
from tests.sabotage.test_versions import only_the_first, swapped
from tests.sabotage.throttle import detour, late
from tests.slow import slow

pytestmark = pytest.mark.topology(nodes=3)

versions, engine = pair("v26.1.0-alpha.1", "v26.1.0-alpha.2")
"""Of one series, so that a node of either may join a cluster of the other."""

LATE_S = 4.0
"""By so much each answer of a node comes later while versions are mixed: far beyond thirty times of any node's own."""
WRITERS = 120
"""More clients than the profile has: of six that wait so long for each answer too few writes would be seen."""
TIMEOUT_S = 30.0
"""For which they wait: a transaction has four answers or five."""
BASELINE_S = 60.0
"""Of the profile's ten seconds the ninetieth percentile is too uncertain to be compared with one of a few writes."""
STAY_S = 60.0
"""Three times as long as the profile's stay, for as many more of those few."""


@slow
@pytest.mark.sabotage("hot-swap", engine="cockroach")
@pytest.mark.parametrize("path", ["final"])
async def test_a_node_joins_that_must_not(
    trial: Trial, swapping: Swapping, ledger: Ledger, probe: Probe, judge: Judge, path: str
) -> None:
    """The new version is final, and the plan says that a node of the old one is kept out; the servers know better."""
    plan = swapping.plan
    final = next(at for at, step in enumerate(plan.steps) if isinstance(step, Finalise))
    joins = Join(node="n4", version=plan.versions[0], refused=True)
    swapping.plan = msgspec.structs.replace(plan, steps=(*plan.steps[: final + 1], joins))
    await swapped(swapping, ledger, probe)
    assert [event.node for _, event in seen(trial.evidence.events, NodeJoined)] == ["n4"]
    assert judge.refuted("joined_wrongly")


@slow
@pytest.mark.sabotage("hot-swap", engine="cockroach")
async def test_a_node_is_late_with_its_new_version(
    trial: Trial,
    swapping: Swapping,
    ledger: Ledger,
    probe: Probe,
    cluster: Cluster,
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its process is frozen as soon as it runs, until the profile's limit is over; then it has its former version."""
    only_the_first(swapping)
    comes_up, frozen = cluster.comes_up, list[str]()

    async def stopped(node: str, *, timeout: float) -> NotUp | None:
        if not frozen:
            frozen.append(node)
            await cluster.substrate.pause(node)
        return await comes_up(node, timeout=timeout)

    monkeypatch.setattr(cluster, "comes_up", stopped)
    await swapped(swapping, ledger, probe)
    ((_, failed),) = seen(trial.evidence.events, SwapFailed)
    assert ([failed.node], failed.late) == (frozen, True)
    assert set(swapping.running.values()) == {swapping.plan.versions[0]}, "it is back on its former version"
    assert judge.refuted("nodes_late")


@slow
@pytest.mark.sabotage("hot-swap", engine="cockroach")
@pytest.mark.parametrize("path", ["stay-mixed"])
async def test_answers_are_late_while_versions_are_mixed(
    trial: Trial,
    swapping: Swapping,
    ledger: Ledger,
    probe: Probe,
    cluster: Cluster,
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
) -> None:
    """The ledger's clients reach the nodes through relays while they write."""
    waits = dataclasses.replace(trial.run.profile.swapping, mixed_s=STAY_S)
    monkeypatch.setattr(trial.run, "profile", dataclasses.replace(trial.run.profile, swapping=waits))
    sizes = dataclasses.replace(ledger._sizes, writers=WRITERS, operation_timeout_s=TIMEOUT_S, baseline_s=BASELINE_S)
    monkeypatch.setattr(ledger, "_sizes", sizes)

    def delay_s() -> float:
        return LATE_S if len({*swapping.running.values()}) > 1 else 0.0

    async with late(cluster.endpoints, delay_s) as endpoints:
        monkeypatch.setattr(ledger, "_cluster", detour(cluster, endpoints))
        async with probe.watching(ledger), ledger.writing(at_least=0):
            await ledger.baseline()
            await swapping.follow(ledger)
            await ledger.written_past_recovery()
    monkeypatch.setattr(ledger, "_cluster", cluster)
    await ledger.audit()
    assert measure(trial.evidence, "latency_p90_mixed_ratio").value is not None
    assert judge.refuted("latency_p90_mixed_ratio")
