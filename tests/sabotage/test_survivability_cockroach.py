"""Survivability on a CockroachDB that was set up to lose data: every test here must find its claim refuted."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from clusters.cluster import Cluster
from clusters.errors import NodeDied
from clusters.model import Health
from clusters.sql import SqlError
from clusters.waiting import wait_until
from fixtures.fault import Faults
from fixtures.judge import Judge
from fixtures.probe import Probe
from fixtures.workloads.ledger.fixture import Ledger
from tests.claims.test_survivability import write_through
from tests.slow import slow

pytestmark = pytest.mark.topology(nodes=3)


LONGER_S = 30.0
"""Added to the profile's outage, a dead node is away for longer than the 30 s that a gap may last."""


FORGOTTEN_ROWS = 500
"""So many rows more are acknowledged before a node comes back with what it had before: two to three seconds' worth."""


async def stand_still(cluster: Cluster, seconds: float) -> None:
    """Freeze every node for so long, and say so nowhere."""
    for node in cluster.nodes:
        await cluster.substrate.pause(node)
    await asyncio.sleep(seconds)
    for node in cluster.nodes:
        await cluster.substrate.resume(node)


async def configure(cluster: Cluster, table: str, *, replicas: int) -> None:
    """Ask for so many replicas of the ledger's ranges alone."""
    async with await cluster.deployment.connect() as connection:
        await connection.execute(f"ALTER TABLE {table} CONFIGURE ZONE USING num_replicas = {replicas}")


async def keep_one_replica(cluster: Cluster, ledger: Ledger) -> None:
    """Keep a single replica of each of the ledger's ranges, on all stores in turn; record, once it is so, how they lie.

    Left to the server, all ranges may choose the same stores: it looks at counts that are some seconds old.
    """
    table = ledger.table
    await configure(cluster, table, replicas=1)
    left = list(range(ledger.buckets))

    async def moved() -> Health:
        async with await cluster.deployment.connect() as connection:
            try:
                while left:
                    store = 1 + left[-1] % len(cluster.nodes)  # stores are numbered from 1
                    await connection.execute(
                        f"ALTER TABLE {table} EXPERIMENTAL_RELOCATE VALUES (ARRAY[{store}], {left[-1]})"
                    )
                    left.pop()
            except SqlError as error:  # another change of the same range is under way
                return Health(ok=False, why=f"bucket {left[-1]}: {error}")
        ranges = await cluster.deployment.ranges(table)
        several = [r.range_id for r in ranges if len(r.replicas) != 1]
        bare = set(cluster.nodes) - {r.replicas[0] for r in ranges}
        return Health(
            ok=not several and not bare,
            why=f"ranges {several} have several replicas; nodes {sorted(bare)} have none",
        )

    await wait_until("the ledger's ranges to have one replica each", moved, timeout=180.0, watch=cluster.watch)
    await ledger.record_spread()


async def in_home(cluster: Cluster, node: str, script: str) -> None:
    """Run a script in the home of a node, which knows its store as ``$store``."""
    of = cluster.deployment.process(node)
    (store,) = (word.removeprefix("--store=") for word in of.argv if word.startswith("--store="))
    env = {"PATH": "/usr/bin:/bin", "store": store}
    done = await cluster.substrate.run(["/bin/sh", "-c", script], env=env, timeout=60.0, node=node, cwd=of.cwd)
    assert done.code == 0, done.err


@asynccontextmanager
async def put_back(
    cluster: Cluster, ledger: Ledger, node: str, disturbance: AbstractAsyncContextManager[None]
) -> AsyncIterator[None]:
    """The disturbance of a node that comes back with the store that it had some rows before, as from a snapshot.

    It is copied while the node stands still, so that it is one that the node might have crashed with.
    """
    await cluster.pause(node)
    await in_home(cluster, node, 'cp -a "$store" earlier')
    await cluster.resume(node)
    await ledger.more(FORGOTTEN_ROWS)
    async with disturbance:
        await in_home(cluster, node, 'rm -rf "$store" && mv earlier "$store"')
        yield


@asynccontextmanager
async def healed(
    cluster: Cluster, ledger: Ledger, disturbance: AbstractAsyncContextManager[None], *, longer_s: float = 0.0
) -> AsyncIterator[None]:
    """The disturbance, held so much longer; then three replicas are asked for again, for the cluster to get whole."""
    async with disturbance:
        yield
        await asyncio.sleep(longer_s)
    await configure(cluster, ledger.table, replicas=3)


@slow
@pytest.mark.sabotage("survivability", engine="cockroach")
async def test_a_single_replica_is_away_as_long_as_its_node(
    cluster: Cluster, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """With num_replicas = 1 nobody takes over from a killed node."""
    await keep_one_replica(cluster, ledger)
    await write_through(
        lambda node: healed(cluster, ledger, fault.kill(node), longer_s=LONGER_S),
        ledger=ledger,
        probe=probe,
        inserts=inserts,
    )
    assert judge.refuted("gap_s")


@slow
@pytest.mark.sabotage("survivability-pod-deleted", engine="cockroach")
async def test_a_single_replica_is_away_until_its_node_is_started_in_another_pod(
    cluster: Cluster, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """With num_replicas = 1 nobody takes over from a node whose pod is deleted."""
    await keep_one_replica(cluster, ledger)
    await write_through(
        lambda node: healed(cluster, ledger, fault.delete_pod(node), longer_s=LONGER_S),
        ledger=ledger,
        probe=probe,
        inserts=inserts,
    )
    assert judge.refuted("gap_s")


@slow
@pytest.mark.sabotage("survivability-pod-deleted", engine="cockroach")
async def test_a_node_in_another_pod_has_an_earlier_store(
    cluster: Cluster, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """A deleted pod gets its volume as it was before: the node ends over what it had acknowledged to others."""
    with pytest.raises(NodeDied, match=r"ended with exit code [0-9]+, by itself"):
        await write_through(
            lambda node: put_back(cluster, ledger, node, fault.delete_pod(node)),
            ledger=ledger,
            probe=probe,
            inserts=inserts,
        )
    assert judge.refuted("nodes_died")


@slow
@pytest.mark.sabotage("survivability-drain", engine="cockroach")
async def test_a_single_replica_cannot_be_drained_away(
    cluster: Cluster, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """With num_replicas = 1 a node that is drained has nobody to hand its leases to."""
    await keep_one_replica(cluster, ledger)
    await write_through(
        lambda node: healed(cluster, ledger, fault.drain(node)),
        ledger=ledger,
        probe=probe,
        inserts=inserts,
    )
    assert judge.refuted("gap_s")


@slow
@pytest.mark.sabotage("survivability-disk-lost", engine="cockroach")
async def test_a_single_replica_does_not_survive_its_disk(
    cluster: Cluster, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """With num_replicas = 1 the ranges of a node that is lost with its disk can be read no more."""
    await keep_one_replica(cluster, ledger)
    async with probe.watching(ledger), ledger.writing(at_least=inserts):
        await ledger.baseline()
        await ledger.some_moment()
        async with fault.lose_disk(await ledger.serving_node()):
            await ledger.outage()
    # It never gets whole again: the audit alone waits as long as the profile allows.
    await ledger.audit()
    assert judge.refuted(either=("unreadable", "lost"))


@slow
@pytest.mark.sabotage("survivability-quorum", engine="cockroach")
async def test_nobody_is_served_once_the_majority_is_back(
    cluster: Cluster, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """The dead nodes take clients again, and before recovery is declared all stand still for too long."""
    async with probe.watching(ledger), ledger.writing(at_least=inserts):
        await ledger.baseline()
        await ledger.some_moment()
        async with fault.kill_majority(await ledger.serving_node()):
            await ledger.outage()
        await stand_still(cluster, LONGER_S + 5)
        await ledger.recovery()
        await ledger.written_past_recovery()
    await ledger.audit()
    assert judge.refuted(either=("gap_resuming_s", "client_wait_resuming_s"))


@slow
@pytest.mark.sabotage("survivability-quorum", engine="cockroach")
async def test_little_is_served_once_the_majority_is_back(
    cluster: Cluster, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """Recovery is declared, and all nodes stand still for most of the time, never for long."""
    async with probe.watching(ledger), ledger.writing(at_least=inserts):
        await ledger.baseline()
        await ledger.some_moment()
        async with fault.kill_majority(await ledger.serving_node()):
            await ledger.outage()
        await ledger.recovery()
        for _ in range(8):
            await stand_still(cluster, 3.0)
            await asyncio.sleep(0.5)
    await ledger.audit()
    assert judge.refuted("served_after")
