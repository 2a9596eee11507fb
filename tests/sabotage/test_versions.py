"""Changes of version that are done wrongly on purpose: each test finds its claim refuted, for the reason it made."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from clusters.cluster import Cluster
from clusters.events import FaultBegin
from fixtures.fault import Faults
from fixtures.judge import Judge
from fixtures.objects.fixture import Objects
from fixtures.probe import Probe
from fixtures.swapping.fixture import LookAt, State, Swapping
from fixtures.swapping.plan import Fail, Look, Swap
from fixtures.trial import Trial
from fixtures.workloads.ledger.fixture import Ledger
from plugin.judge.metrics import measure
from tests.fixtures.objects.test_real import by_hand
from tests.sabotage.neighbour import goes_too
from tests.sabotage.test_survivability_cockroach import keep_one_replica
from tests.slow import slow

pytestmark = pytest.mark.topology(nodes=3)


async def swapped(swapping: Swapping, ledger: Ledger, probe: Probe, look: Sequence[LookAt] = ()) -> None:
    """As the claim's test does."""
    async with probe.watching(ledger), ledger.writing(at_least=0):
        await ledger.baseline()
        await swapping.follow(ledger, look=look)
        await ledger.written_past_recovery()
    await ledger.audit()


def only_the_first(swapping: Swapping) -> None:
    """Leave out all steps after the first swap: it is enough, or the cluster carries no more."""
    plan = swapping.plan
    first = next(number for number, step in enumerate(plan.steps, 1) if isinstance(step, Swap))
    swapping.plan = msgspec.structs.replace(plan, steps=plan.steps[:first])


def goes_on(swapping: Swapping) -> None:
    """Once an update has failed one more node is given the new version all the same; the rest is left out."""
    plan = swapping.plan
    fails = next(number for number, step in enumerate(plan.steps, 1) if isinstance(step, Fail))
    first = next(step for step in plan.steps if isinstance(step, Swap))
    other = next(node for node in plan.nodes if node != first.node)
    swapping.plan = replace(plan, steps=(*plan.steps[:fails], Swap(node=other, to=first.to)))


@slow
@pytest.mark.sabotage("hot-swap-failed-node", engine="cockroach")
async def test_the_roll_goes_on_after_an_update_failed(
    swapping: Swapping, ledger: Ledger, probe: Probe, judge: Judge, failure: str
) -> None:
    """Another node is changed, though the update of one has just failed."""
    goes_on(swapping)
    await swapped(swapping, ledger, probe)
    assert judge.refuted("changed_after_failure")


@slow
@pytest.mark.sabotage("hot-swap", engine="cockroach")
async def test_two_nodes_are_changed_at_once(
    trial: Trial,
    swapping: Swapping,
    ledger: Ledger,
    probe: Probe,
    fault: Faults,
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With each node its neighbour goes as well."""
    goes_too(fault, monkeypatch, seen_by=trial)
    await swapped(swapping, ledger, probe)
    others = measure(trial.evidence, "processes_down_at_once")
    assert others.value == 2, "an independent look at processes finds it, too"
    assert judge.refuted("nodes_down_at_once")


@slow
@pytest.mark.sabotage("hot-swap", engine="cockroach")
async def test_nobody_waits_for_the_cluster_to_be_whole(
    swapping: Swapping, ledger: Ledger, probe: Probe, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next node is taken down as soon as the one before takes clients."""
    last = [step for step in swapping.plan.steps if isinstance(step, Swap)][-1]
    wait = ledger.recovery

    async def hurried() -> None:
        if swapping.running[last.node] == last.to or swapping.running == dict.fromkeys(swapping.running, last.to):
            await wait()

    monkeypatch.setattr(ledger, "recovery", hurried)
    await swapped(swapping, ledger, probe)
    assert judge.refuted("restarts_before_whole")


@slow
@pytest.mark.sabotage("hot-swap", engine="cockroach")
async def test_nobody_drains_nor_waits(
    trial: Trial,
    swapping: Swapping,
    ledger: Ledger,
    probe: Probe,
    cluster: Cluster,
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nodes are killed instead of drained, each as soon as the one before takes clients."""

    async def killed(node: str, **_: float) -> int:
        await cluster.kill(node)
        return cluster.substrate.exit_code(node) or 0

    async def hurried() -> None:
        pass

    monkeypatch.setattr(cluster, "drain", killed)
    monkeypatch.setattr(ledger, "recovery", hurried)
    await swapped(swapping, ledger, probe)
    await cluster.healthy()
    undrained = measure(trial.evidence, "undrained")
    assert undrained.value == len([step for step in swapping.plan.steps if isinstance(step, Swap)])
    assert judge.refuted("restarts_before_whole")


@slow
@pytest.mark.sabotage("hot-swap", engine="cockroach")
async def test_a_node_loses_its_store_with_its_version(
    trial: Trial,
    swapping: Swapping,
    ledger: Ledger,
    probe: Probe,
    cluster: Cluster,
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The ledger has one replica of each range, and the first node that is changed comes back with an empty store.

    No other is changed after that: the cluster never gets whole again, and cannot even say where its ranges are.
    Nobody waits long for what cannot come: half a minute for the cluster, and for each row that is read back.
    """
    monkeypatch.setattr(ledger, "_sizes", dataclasses.replace(ledger._sizes, recovery_limit_s=30))
    only_the_first(swapping)
    await keep_one_replica(cluster, ledger)
    drain = cluster.drain

    async def emptied(node: str, **given: Any) -> int:
        code = await drain(node, **given)
        await cluster.wipe(node)
        return code

    monkeypatch.setattr(cluster, "drain", emptied)
    await swapped(swapping, ledger, probe)
    (taken,) = [event.what for event in trial.evidence.events if isinstance(event.what, FaultBegin)]
    assert all(taken.leases[node] for node in taken.nodes), "nothing of the ledger was on it"
    assert judge.refuted(either=("lost", "unreadable"))


async def changed_by_hand(
    trial: Trial, swapping: Swapping, ledger: Ledger, probe: Probe, cluster: Cluster, judge: Judge
) -> None:
    """Before the first node is changed somebody takes back what a user may do, who knows of no check.

    The plan ends with the first state in which that is seen.
    """
    plan = swapping.plan
    mixed = next(at for at, step in enumerate(plan.steps) if isinstance(step, Look) and step.state == "mixed")
    swapping.plan = replace(plan, steps=plan.steps[: mixed + 1])
    few = [check for check in trial.run.objects if check.name in ("grant", "view", "secondary-index", "index-begun")]
    objects = Objects(trial, cluster, few)

    async def revoked(state: State) -> None:
        if state.name == "before":
            await by_hand(cluster, "REVOKE INSERT ON TABLE grant_rows FROM objects_grantee")

    await objects.make()
    try:
        await swapped(swapping, ledger, probe, look=[objects.look, revoked])
    finally:
        await objects.close()
    assert judge.refuted("objects_differing")
    (shown,) = measure(trial.evidence, "objects_differing").examples
    assert shown.startswith("grant, mixed, through ")
    asked = "`SELECT has_table_privilege('objects_grantee', 'grant_rows', 'INSERT')`"
    assert shown.endswith(f"{asked} answered False, wanted true")


@slow
@pytest.mark.sabotage("hot-swap", engine="cockroach")
async def test_an_object_is_changed_by_hand(
    trial: Trial, swapping: Swapping, ledger: Ledger, probe: Probe, cluster: Cluster, judge: Judge
) -> None:
    """Between two states; the next one shows it, with the statement that does."""
    await changed_by_hand(trial, swapping, ledger, probe, cluster, judge)


@slow
@pytest.mark.sabotage("hot-swap", engine="postgres")
async def test_an_object_of_the_control_is_changed_by_hand(
    trial: Trial, swapping: Swapping, ledger: Ledger, probe: Probe, cluster: Cluster, judge: Judge
) -> None:
    """As on CockroachDB."""
    await changed_by_hand(trial, swapping, ledger, probe, cluster, judge)
