"""Survivability on a CockroachDB that was set up to lose data: every test here must find its claim refuted."""

import pytest

from clusters.cluster import Cluster
from clusters.model import Health
from clusters.waiting import wait_until
from fixtures.fault import Faults
from fixtures.judge import Judge
from fixtures.ledger import Ledger
from fixtures.probe import Probe


async def keep_one_replica(cluster: Cluster, table: str) -> None:
    """Ask for a single replica of the ledger's ranges alone, and wait until each has one and every node has some."""
    connection = await cluster.deployment.connect()
    try:
        await connection.execute(f"ALTER TABLE {table} CONFIGURE ZONE USING num_replicas = 1")
    finally:
        connection.terminate()

    async def single() -> Health:
        ranges = await cluster.deployment.ranges(table)
        several = [r.range_id for r in ranges if len(r.replicas) != 1]
        bare = set(cluster.nodes) - {r.replicas[0] for r in ranges}
        return Health(
            ok=not several and not bare,
            why=f"ranges {several} have several replicas; nodes {sorted(bare)} have none",
        )

    await wait_until(
        "the ledger's ranges to have one replica each", single, timeout=180.0, watch=cluster.watch
    )


@pytest.mark.sabotage("survivability-disk-lost", engine="cockroach")
@pytest.mark.topology(nodes=3)
async def test_a_single_replica_does_not_survive_its_disk(
    cluster: Cluster, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """With num_replicas = 1 the ranges of a node that is lost with its disk can be read no more."""
    await keep_one_replica(cluster, ledger.table)
    await ledger.record_spread()
    async with ledger.writing(at_least=inserts), probe.watching(ledger):
        await ledger.baseline()
        await ledger.some_moment()
        async with fault.lose_disk(await ledger.serving_node()):
            await ledger.outage()
        await ledger.recovery(within=15.0)
        await ledger.written_past_recovery()
    await ledger.audit(within=15.0)
    assert judge.refuted("unreadable", "lost")
