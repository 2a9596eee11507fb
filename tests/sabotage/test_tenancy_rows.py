"""Rows of the ledger that somebody changes by hand beside tenants: each must find the claim refuted."""

import pytest

from clusters.cluster import Cluster
from fixtures.judge import Judge
from fixtures.workloads.ledger.fixture import Ledger
from fixtures.workloads.tenants.fixture import Tenants
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
