"""Growth that is hindered on purpose: every test here must find its claim refuted, for the reason that it made.

One that is merely slow is not: how long the profile waits is our own choice.
"""

import signal
from collections import Counter
from dataclasses import replace

import pytest

from clusters.cluster import Cluster
from clusters.errors import NodeDied
from clusters.model import Health, NodeSpec, Placement, ProcessSpec
from clusters.waiting import wait_until
from fixtures.background import beside
from fixtures.growth import Growth
from fixtures.judge import Judge
from fixtures.probe import Probe
from fixtures.trial import Trial
from fixtures.workloads.ledger.fixture import Ledger
from plugin.judge.convergence import State
from plugin.judge.growth import phases
from tests.slow import slow

pytestmark = pytest.mark.topology(nodes=3)

FILLER_KIB = 64
"""The size of a row that makes a range larger."""

STORE_MIB = 640
"""The least that CockroachDB takes for the size of a store."""


async def execute(cluster: Cluster, *statements: str) -> None:
    """Configure the cluster wrongly, before anything is added."""
    async with await cluster.deployment.connect() as connection:
        for statement in statements:
            await connection.execute(statement, timeout=30)


async def grow(trial: Trial, growth: Growth, ledger: Ledger, to: int, nodes: tuple[NodeSpec, ...] = ()) -> State:
    """As the claim's test does, to one size; returns where the replicas stood at the end."""
    async with growth.watched():
        async with ledger.writing(at_least=0):
            await ledger.baseline()
            await growth.out(to, nodes=nodes)
        await growth.settled()
    await ledger.audit()
    return phases(trial.evidence)[-1].found.state


def started_with(monkeypatch: pytest.MonkeyPatch, cluster: Cluster, node: str, **changed: str) -> None:
    """Start this node with other flags than it should have."""
    process = cluster.deployment.process

    def other(name: str) -> ProcessSpec:
        spec = process(name)
        if name != node:
            return spec
        flags = {flag.partition("=")[0]: flag for flag in spec.argv}
        flags |= {
            f"--{flag}": f"--{flag}={value.format(store=flags['--store'].partition('=')[2])}"
            for flag, value in changed.items()
        }
        return replace(spec, argv=tuple(flags.values()))

    monkeypatch.setattr(cluster.deployment, "process", other)


@slow
@pytest.mark.sabotage("rebalance", engine="cockroach")
async def test_no_replica_may_move(
    trial: Trial, ledger: Ledger, growth: Growth, cluster: Cluster, judge: Judge
) -> None:
    """Nodes count as even whatever they hold, so that nothing is moved to the new ones."""
    # Nothing is to be seen but that nothing happens: shorter than the claim waits.
    growth.sizes = replace(growth.sizes, stall_s=16.0, quiet_s=8.0)
    await execute(cluster, "SET CLUSTER SETTING kv.allocator.range_rebalance_threshold = 100")
    assert await grow(trial, growth, ledger, 4) in (State.NOT_BEGUN, State.STALLED)
    assert judge.refuted("balanced")


@slow
@pytest.mark.sabotage("rebalance", engine="cockroach")
async def test_replicas_move_at_a_crawl(
    trial: Trial, ledger: Ledger, probe: Probe, growth: Growth, cluster: Cluster, judge: Judge
) -> None:
    """Replicas are copied at 1 MiB/s, the least that v26.1 takes; each of the ballast's ranges has 4 MiB."""
    growth.sizes = replace(growth.sizes, limit_s=24.0)
    filler = f"repeat('x', {FILLER_KIB << 10}) FROM generate_series(0, {growth.sizes.ranges - 1}) AS g (part)"
    for number in range(4096 // FILLER_KIB):
        await execute(cluster, f"INSERT INTO ballast SELECT part, 1000 + {number}, {filler}")
    await execute(cluster, "SET CLUSTER SETTING kv.snapshot_rebalance.max_rate = '1 MiB'")
    async with probe.watching(ledger):
        assert await grow(trial, growth, ledger, 4) is State.MOVING
    assert judge.inconclusive("time_enough")


@slow
@pytest.mark.sabotage("rebalance", engine="cockroach")
async def test_replicas_are_pinned_to_the_old_nodes(
    trial: Trial, ledger: Ledger, growth: Growth, cluster: Cluster, judge: Judge
) -> None:
    """All ranges must stay in the zone of the old nodes, and the new one is in another."""
    places = (
        "RANGE default",
        "RANGE meta",
        "RANGE liveness",
        "RANGE system",
        "RANGE timeseries",
        "DATABASE system",
    )
    await execute(cluster, *(f"ALTER {place} CONFIGURE ZONE USING constraints = '[+zone=zone-1]'" for place in places))
    state = await grow(trial, growth, ledger, 4, (NodeSpec(name="n4", zone="zone-2"),))
    assert state in (State.NOT_BEGUN, State.STALLED)
    assert judge.refuted("balanced")


@slow
@pytest.mark.sabotage("rebalance", engine="cockroach")
async def test_the_new_node_has_no_room(
    trial: Trial, ledger: Ledger, growth: Growth, cluster: Cluster, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new node's store is as small as can be, and nearly full."""
    started_with(monkeypatch, cluster, "n4", store=f"path={{store}},size={STORE_MIB}MiB")
    filled(monkeypatch, cluster)
    assert await grow(trial, growth, ledger, 4) in (State.NOT_BEGUN, State.STALLED)
    assert judge.refuted("balanced")


def filled(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> None:
    """Put a file without content into the store of whatever is added, where the server counts files by their length."""
    place = cluster.deployment.place

    async def full(placement: Placement) -> None:
        await place(placement)
        auxiliary = placement.store / "auxiliary"
        done = await cluster.substrate.run(
            ["/bin/sh", "-c", f"mkdir -p {auxiliary} && truncate -s {STORE_MIB - 4}M {auxiliary}/full"],
            env={"PATH": "/usr/bin:/bin"},
            timeout=30.0,
            node=placement.node.name,
        )
        assert done.code == 0, done.err

    monkeypatch.setattr(cluster.deployment, "place", full)


@slow
@pytest.mark.sabotage("rebalance", engine="cockroach")
async def test_a_node_dies_while_replicas_move(
    trial: Trial, ledger: Ledger, growth: Growth, cluster: Cluster, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new node aborts as soon as it has joined."""
    add = cluster.add

    async def added(node: NodeSpec) -> None:
        await add(node)
        await cluster.substrate.signal(node.name, signal.SIGABRT)

    monkeypatch.setattr(cluster, "add", added)
    with pytest.raises(NodeDied, match="n4 ended with exit code 2, by itself"):
        await grow(trial, growth, ledger, 4)
    assert judge.refuted("nodes_died")


@slow
@pytest.mark.sabotage("rebalance-scale-in", engine="cockroach")
async def test_a_node_too_many_is_let_go(ledger: Ledger, growth: Growth, cluster: Cluster, judge: Judge) -> None:
    """With a single replica of each range two nodes seem enough to hold them."""
    await execute(cluster, "ALTER TABLE ballast CONFIGURE ZONE USING num_replicas = 1")

    async def single() -> Health:
        held = Counter(len(range_.replicas) for range_ in await cluster.deployment.ranges("ballast"))
        return Health(ok={*held} == {1}, why=f"{dict(held)} ranges by number of replicas")

    await wait_until("a single replica of each range", single, timeout=120.0)
    async with ledger.writing(at_least=0):
        await ledger.baseline()
        await growth.refused()
    await ledger.audit()
    assert judge.refuted("removal_refused")


@slow
@pytest.mark.sabotage("rebalance-scale-in", engine="cockroach")
async def test_a_node_that_cannot_be_emptied(
    ledger: Ledger, growth: Growth, cluster: Cluster, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All replicas of a table must be in the zone of which the leaving node is the only one."""
    monkeypatch.setattr(growth, "sizes", replace(growth.sizes, limit_s=30.0))
    async with growth.watched():
        await growth.out(4, nodes=[NodeSpec(name="n4", zone="zone-2")])
        await execute(cluster, "ALTER TABLE ballast CONFIGURE ZONE USING constraints = '[+zone=zone-2]'")
        async with ledger.writing(at_least=0):
            await ledger.baseline()
            await growth.back(3)
            await growth.refused()
        await growth.settled()
    await ledger.audit()
    assert judge.refuted("decommissioned")


@slow
@pytest.mark.sabotage("rebalance", engine="cockroach")
async def test_a_node_that_never_joins(
    trial: Trial, ledger: Ledger, growth: Growth, cluster: Cluster, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new node looks for the cluster where nobody is."""
    started_with(monkeypatch, cluster, "n4", join="127.0.0.1:1")
    await grow(trial, growth, ledger, 4)
    assert any(event.name == "join.failed" for event in trial.evidence.events)
    assert judge.refuted("balanced")


@slow
@pytest.mark.sabotage("rebalance", engine="cockroach")
async def test_replicas_are_traded_for_ever(ledger: Ledger, growth: Growth, cluster: Cluster, judge: Judge) -> None:
    """Replicas of the even nodes are scattered again and again by somebody, which keeps them even and never at rest."""
    growth.sizes = replace(growth.sizes, quiet_s=8.0, limit_s=24.0)

    async def scatter() -> None:
        while True:
            await execute(cluster, "ALTER TABLE ballast SCATTER")

    async with growth.watched():
        async with ledger.writing(at_least=0):
            await ledger.baseline()
            await growth.out(4)
        async with beside(scatter()):
            await growth.settled()
    await ledger.audit()
    assert judge.refuted("replicas_traded")


@slow
@pytest.mark.sabotage("rebalance", engine="cockroach")
async def test_somebody_helps(ledger: Ledger, growth: Growth, cluster: Cluster, judge: Judge) -> None:
    """A setting is changed and a zone configured after a node was added."""
    async with growth.watched():
        async with ledger.writing(at_least=0):
            await ledger.baseline()
            await growth.out(4)
            await execute(
                cluster,
                "SET CLUSTER SETTING kv.snapshot_rebalance.max_rate = '64 MiB'",
                "ALTER TABLE ballast CONFIGURE ZONE USING gc.ttlseconds = 600",
            )
        await growth.settled()
    await ledger.audit()
    assert judge.refuted("manual_steps")
