"""Survivability on a control that was set up to lose data: every test here must find its claim refuted."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

import pytest

from clusters.cluster import Cluster
from clusters.engines.postgres.configuration import Replication
from clusters.engines.postgres.engine import Postgres, find
from fixtures.fault import Faults
from fixtures.judge import Judge
from fixtures.probe import Probe
from fixtures.workloads.ledger.fixture import Ledger
from fixtures.workloads.tenants.fixture import Tenants
from tests.claims.test_survivability import write_through
from tests.sabotage.senders import frozen
from tests.slow import slow

pytestmark = pytest.mark.topology(nodes=3)

HELD_BACK_ROWS = 50
"""So many rows the primary acknowledges and does not send to its replicas before it dies: merely asynchronous, it loses
nothing 9 times of 10. (Held back for half a second it lost about 100 rows of 200/s in 10 of 10 trials, and none where
the disk stood still meanwhile.)"""


@pytest.fixture
def engine() -> Postgres:
    """The control with asynchronous replication: a write is acknowledged by the primary alone."""
    return replace(find(), replication=Replication.ASYNCHRONOUS)


@asynccontextmanager
async def unsent(
    cluster: Cluster, ledger: Ledger, node: str, disturbance: AbstractAsyncContextManager[None]
) -> AsyncIterator[None]:
    """The disturbance of a node whose processes that send its log to the replicas were frozen just before.

    Raises ``HarnessError`` when it has none.
    """
    async with frozen(cluster, node):
        await ledger.more(HELD_BACK_ROWS)
        async with disturbance:
            yield


@slow
@pytest.mark.sabotage("survivability", engine="postgres")
async def test_a_killed_primary_that_acknowledged_alone(
    cluster: Cluster, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """A primary that acknowledges alone and is killed loses what it had not sent, its store notwithstanding."""
    await write_through(
        lambda node: unsent(cluster, ledger, node, fault.kill(node)),
        ledger=ledger,
        probe=probe,
        inserts=inserts,
    )
    assert judge.refuted("lost")


@slow
@pytest.mark.sabotage("tenancy-survivability", engine="postgres")
async def test_a_killed_primary_of_tenants_that_acknowledged_alone(
    cluster: Cluster, few_tenants: Tenants, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """The same among tenants: all of them are there afterwards, and rows of the ledger are not."""
    async with few_tenants.provisioning():
        await few_tenants.provision()
        await write_through(
            lambda node: unsent(cluster, ledger, node, fault.kill(node)),
            ledger=ledger,
            probe=probe,
            inserts=inserts,
        )
        await few_tenants.count()
    assert judge.refuted("lost")


@slow
@pytest.mark.sabotage("survivability-pause", engine="postgres")
async def test_a_frozen_primary_that_acknowledged_alone(
    cluster: Cluster, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """A primary that acknowledges alone and freezes is followed by one that knows less."""
    await write_through(
        lambda node: unsent(cluster, ledger, node, fault.pause(node)),
        ledger=ledger,
        probe=probe,
        inserts=inserts,
    )
    assert judge.refuted("lost")


@slow
@pytest.mark.sabotage("survivability-pod-deleted", engine="postgres")
async def test_a_deleted_pod_of_a_primary_that_acknowledged_alone(
    cluster: Cluster, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """A primary that acknowledges alone and is deleted with its pod is followed by one that knows less."""
    await write_through(
        lambda node: unsent(cluster, ledger, node, fault.delete_pod(node)),
        ledger=ledger,
        probe=probe,
        inserts=inserts,
    )
    assert judge.refuted("lost")


@slow
@pytest.mark.sabotage("survivability-disk-lost", engine="postgres")
async def test_a_lost_disk_of_a_primary_that_acknowledged_alone(
    cluster: Cluster, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """A primary that acknowledges alone and is lost with its disk takes acknowledged rows with it."""
    await write_through(
        lambda node: unsent(cluster, ledger, node, fault.lose_disk(node)),
        ledger=ledger,
        probe=probe,
        inserts=inserts,
    )
    assert judge.refuted("lost")


@slow
@pytest.mark.sabotage("survivability-quorum", engine="postgres")
async def test_the_last_of_three_that_acknowledges_alone(
    ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """With asynchronous replication the one node that lives becomes primary and acknowledges without a majority."""
    await write_through(fault.kill_majority, ledger=ledger, probe=probe, inserts=inserts)
    assert judge.refuted("acknowledged_without_quorum")


@slow
@pytest.mark.sabotage("survivability", engine="postgres")
async def test_an_outage_after_recovery(
    cluster: Cluster, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """Once recovery was declared every node stands still for a quarter of a minute, and nobody says so."""
    async with probe.watching(ledger), ledger.writing(at_least=inserts):
        await ledger.baseline()
        await ledger.some_moment()
        async with fault.kill(await ledger.serving_node()):
            await ledger.outage()
        await ledger.recovery()
        await ledger.more(HELD_BACK_ROWS)
        for node in cluster.nodes:
            await cluster.substrate.pause(node)
        await asyncio.sleep(15)
        for node in cluster.nodes:
            await cluster.substrate.resume(node)
        await ledger.written_past_recovery()
    await ledger.audit()
    assert judge.refuted("gap_undisturbed_s")


@asynccontextmanager
async def whose_rows(
    cluster: Cluster, ledger: Ledger, what: str, *, when: str = "BEFORE UPDATE", one_in: int = 20
) -> AsyncIterator[None]:
    """The ledger is written while a trigger made by hand does this, at this moment, to one row in so many."""
    async with await cluster.deployment.connect() as connection:
        await connection.execute(
            f"CREATE FUNCTION by_hand() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {what}; END $$"
        )
        await connection.execute(
            f"CREATE TRIGGER by_hand {when} ON {ledger.table} FOR EACH ROW "
            f"WHEN (new.key >= 0 AND new.key % {one_in} = 0) EXECUTE FUNCTION by_hand()"
        )
    async with ledger.writing(at_least=0):
        yield


@pytest.mark.sabotage("survivability", engine="postgres")
async def test_updates_that_find_no_row_though_it_was_acknowledged(
    cluster: Cluster, ledger: Ledger, judge: Judge
) -> None:
    """The server says UPDATE 0 for rows that it has; nothing else is wrong, and nothing is disturbed."""
    async with whose_rows(cluster, ledger, "RETURN NULL"):
        await ledger.baseline()
    await ledger.audit()
    assert judge.refuted("stale")


@slow
@pytest.mark.sabotage("survivability", engine="postgres")
async def test_updates_that_fail_while_nothing_is_disturbed(
    cluster: Cluster, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """Half of the updates end with 40001, which clients must expect only where something is disturbed.

    Of all that is done about a twelfth are updates.
    """
    refused = "RAISE EXCEPTION 'by hand' USING ERRCODE = '40001'"
    async with probe.watching(ledger), whose_rows(cluster, ledger, refused, one_in=2):
        await ledger.baseline()
        async with fault.kill(await ledger.serving_node()):
            await ledger.outage()
        await ledger.recovery()
        await ledger.written_past_recovery()
    await ledger.audit()
    assert judge.refuted("failed_undisturbed")
