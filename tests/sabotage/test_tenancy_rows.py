"""Rows of the ledger, or of a tenant, that somebody changes by hand: each must find the claim refuted."""

import pytest

from clusters.cluster import Cluster
from fixtures.fault import Faults
from fixtures.judge import Judge
from fixtures.probe import Probe
from fixtures.trial import Trial
from fixtures.workloads.ledger.fixture import Ledger
from fixtures.workloads.tenants.fixture import Tenants
from fixtures.workloads.tenants.key_value import TABLE
from fixtures.workloads.tenants.templates import Templates
from tests.claims.test_survivability import write_through
from tests.sabotage.engines import on_both
from tests.sabotage.test_survivability_postgres import whose_rows
from tests.slow import slow

pytestmark = pytest.mark.topology(nodes=3)

ONE = "(SELECT min(key) FROM {table} WHERE key >= 0)"

AT_THE_END = {
    "duplicated": "INSERT INTO {table} (bucket, key, version, payload) "
    f"SELECT bucket, key, version, payload FROM {{table}} WHERE key = {ONE}",
    "phantom": "INSERT INTO {table} (bucket, key, version, payload) "
    f"SELECT bucket, key + 1000000 * {{buckets}}, version, payload FROM {{table}} WHERE key = {ONE}",
    "altered": f"UPDATE {{table}} SET payload = 'by hand' WHERE key = {ONE}",
}
"""What is done to one row before all of them are read, by the check that refutes."""

MEANWHILE = {
    "revived": ("BEFORE UPDATE", "RETURN old"),
    "errors_not_retryable": ("BEFORE UPDATE", "RAISE EXCEPTION 'by hand'"),
    "torn": (
        "AFTER INSERT",
        "DELETE FROM {table} WHERE (bucket, key, copy) = (new.bucket, new.key, new.copy); RETURN NULL",
    ),
}
"""What a trigger does to one row in twenty while clients write: when, and what."""


@slow
@pytest.mark.parametrize("check", AT_THE_END)
@pytest.mark.sabotage("tenancy-survivability", engine="postgres")
async def test_a_row_is_changed_by_hand(
    cluster: Cluster, few_tenants: Tenants, ledger: Ledger, judge: Judge, check: str
) -> None:
    """Nobody who writes the ledger did it, and no fault: all tenants are whole."""
    async with few_tenants.provisioning():
        await few_tenants.provision()
        async with ledger.writing(at_least=0):
            await ledger.baseline()
        async with await cluster.deployment.connect() as connection:
            await connection.execute(AT_THE_END[check].format(table=ledger.table, buckets=ledger.buckets))
        await ledger.audit()
    assert judge.refuted(check)


@slow
@pytest.mark.parametrize("check", MEANWHILE)
@pytest.mark.sabotage("tenancy-survivability", engine="postgres")
async def test_a_trigger_of_somebodys_is_at_work(
    cluster: Cluster, few_tenants: Tenants, ledger: Ledger, judge: Judge, check: str
) -> None:
    """Updates that the server says it did and did not do, or refuses; a row of a pair that is gone at once."""
    when, what = MEANWHILE[check]
    async with few_tenants.provisioning():
        await few_tenants.provision()
        async with whose_rows(cluster, ledger, what.format(table=ledger.table), when=when):
            await ledger.baseline()
        await ledger.audit()
    assert judge.refuted(check)


ONE_ROW = f"DELETE FROM {TABLE} WHERE k = 7"


async def lost(tenants: Tenants, *statements: str) -> None:
    """Delete rows of one tenant, all whose tables stay, and count."""
    await tenants.administer(next(iter(tenants.plan)).database, *statements)
    await tenants.count()


@on_both("tenancy")
async def test_a_row_of_a_tenant_is_lost(few_tenants: Tenants, judge: Judge, on: str) -> None:
    """Whoever counts tables alone finds it whole."""
    async with few_tenants.provisioning():
        await few_tenants.provision()
        await lost(few_tenants, ONE_ROW)
    assert judge.refuted("tenants_missing")


@slow
@pytest.mark.sabotage("tenancy", engine="postgres")
async def test_a_warehouse_is_half_full(trial: Trial, cluster: Cluster, judge: Judge) -> None:
    """As if a restore had ended in its middle: of a tenant of TPC-C half of the stock is there."""
    tenants = Tenants(trial, cluster, Templates(), {"tpcc": 2})
    async with tenants.provisioning():
        await tenants.provision()
        await lost(tenants, "DELETE FROM order_line", "DELETE FROM stock WHERE s_i_id > 50000")
    assert judge.refuted("tenants_missing")


@on_both("tenancy-survivability")
async def test_a_row_of_a_tenant_is_lost_by_a_kill(
    few_tenants: Tenants, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int, on: str
) -> None:
    """As if the node that was killed had been the only one that had it; the ledger has all of its rows."""
    async with few_tenants.provisioning():
        await few_tenants.provision()
        await ledger.spread()
        await write_through(fault.kill, ledger=ledger, probe=probe, inserts=inserts)
        await lost(few_tenants, ONE_ROW)
    assert judge.refuted("tenants_missing")
