"""Changes of version that are done wrongly on purpose: each test finds its claim refuted, for the reason it made."""

from collections.abc import Sequence

import pytest

from clusters.cluster import Cluster
from clusters.faults.disturbance import Fault
from fixtures.fault import Faults
from fixtures.judge import Judge
from fixtures.probe import Probe
from fixtures.swapping.fixture import Swapping
from fixtures.swapping.plan import Swap
from fixtures.workloads.ledger.fixture import Ledger
from tests.sabotage.test_survivability_cockroach import keep_one_replica
from tests.slow import slow

pytestmark = pytest.mark.topology(nodes=3)


async def swapped(swapping: Swapping, ledger: Ledger, probe: Probe) -> None:
    """As the claim's test does."""
    async with probe.watching(ledger), ledger.writing(at_least=0):
        await ledger.baseline()
        await swapping.follow(ledger)
        await ledger.written_past_recovery()
    await ledger.audit()


@slow
@pytest.mark.sabotage("hot-swap", engine="cockroach")
async def test_two_nodes_are_changed_at_once(
    swapping: Swapping,
    ledger: Ledger,
    probe: Probe,
    fault: Faults,
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With each node its neighbour goes as well."""
    one = fault.inject

    def two(what: Fault, nodes: Sequence[str], **facts: bool) -> object:
        return one(what, [*nodes, "n2" if nodes[0] != "n2" else "n3"], **facts)

    monkeypatch.setattr(fault, "inject", two)
    await swapped(swapping, ledger, probe)
    assert judge.refuted("nodes_down_at_once", "processes_down_at_once")


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
async def test_a_node_loses_its_store_with_its_version(
    swapping: Swapping,
    ledger: Ledger,
    probe: Probe,
    cluster: Cluster,
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The ledger has one replica of each range, and the first node that is changed comes back with an empty store."""
    await keep_one_replica(cluster, ledger)
    drain, lost = cluster.drain, list[str]()

    async def emptied(node: str) -> int:
        code = await drain(node)
        if not lost:
            lost.append(node)
            await cluster.wipe(node)
        return code

    monkeypatch.setattr(cluster, "drain", emptied)
    await swapped(swapping, ledger, probe)
    assert judge.refuted("lost", "unreadable")
