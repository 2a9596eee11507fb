"""Many tenants that are wrong on purpose: one is not whole, one reaches another, something of them stays."""

from dataclasses import replace
from functools import partial

import pytest

from clusters.cluster import Cluster
from clusters.model import Health
from clusters.sql import Connection, SqlError, quoted
from clusters.waiting import wait_until
from fixtures.fault import Faults
from fixtures.judge import Judge
from fixtures.probe import Probe
from fixtures.trial import Trial
from fixtures.workloads.ledger.fixture import Ledger
from fixtures.workloads.tenants import roll
from fixtures.workloads.tenants.fixture import Tenants
from fixtures.workloads.tenants.growth_fixture import TenantGrowth
from fixtures.workloads.tenants.growth_workload import KIND as GROWTH
from fixtures.workloads.tenants.isolation.attempts import Attempt
from fixtures.workloads.tenants.isolation.driver import drawn
from fixtures.workloads.tenants.key_value import TABLE
from fixtures.workloads.tenants.schema_change import INDEX
from fixtures.workloads.tenants.site import Spoken
from fixtures.workloads.tenants.tenant import Tenant
from tests.claims.test_survivability import write_through
from tests.sabotage.engines import on_both
from tests.sabotage.test_survivability_cockroach import LONGER_S, healed, keep_one_replica
from tests.slow import slow

pytestmark = pytest.mark.topology(nodes=3)

OBJECTS = "sql.schema.approx_max_object_count"
MERGING = "kv.range_merge.queue_enabled"
"""Newer servers call it kv.range_merge.queue.enabled, and know this name, too."""

FEW = {"connect", "read-table", "count-table", "view", "set-role", "insert"}
"""What suffices to tell these sabotages: all of it takes minutes."""

LISTS = {"pg_catalog.pg_class", "information_schema.tables"}
"""Where names of tables stand that nobody declares to stay visible."""


def few(attempt: Attempt) -> bool:
    return attempt.name in FEW or attempt.family == "tables that exist"


@on_both("tenancy", in_ci="postgres")
async def test_a_table_of_a_tenant_is_missing(few_tenants: Tenants, judge: Judge, on: str) -> None:
    """It was there when the tenant was made; whoever counts tenants alone finds all of them."""
    async with few_tenants.provisioning():
        await few_tenants.provision()
        await few_tenants.administer(next(iter(few_tenants.plan)).database, f"DROP TABLE {TABLE}")
        await few_tenants.count()
    assert judge.refuted("tables_missing", "tenants_missing")


@on_both("tenancy-drop")
async def test_a_tenant_is_left_though_every_drop_was_answered(
    few_tenants: Tenants, judge: Judge, monkeypatch: pytest.MonkeyPatch, on: str
) -> None:
    """The statements that should drop the third one and its role do nothing."""
    drop, drop_roles = Spoken.drop, Spoken.drop_roles
    monkeypatch.setattr(Spoken, "drop", lambda spoken, one: "SELECT 1" if one.number == 3 else drop(spoken, one))
    monkeypatch.setattr(
        Spoken, "drop_roles", lambda spoken, some: drop_roles(spoken, [one for one in some if one.number != 3])
    )
    monkeypatch.setattr(few_tenants, "_sizes", replace(few_tenants._sizes, given_back_s=1))
    async with few_tenants.provisioning():
        await few_tenants.provision()
        await few_tenants.drop()
    assert judge.refuted("tenants_left")


@slow
@pytest.mark.sabotage("tenancy-drop", engine="postgres")
async def test_space_of_dropped_tenants_is_not_given_back(
    few_tenants: Tenants, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files as large as those of one tenant stay, under a name that is no tenant's."""
    monkeypatch.setattr(few_tenants, "_sizes", replace(few_tenants._sizes, given_back_s=4))
    async with few_tenants.provisioning():
        await few_tenants.provision()
        await few_tenants.administer(few_tenants._site.home, "CREATE DATABASE kept")
        await few_tenants.drop()
    assert judge.refuted("space_kept")


@slow
@pytest.mark.sabotage("tenancy-drop", engine="cockroach")
async def test_dropped_tables_keep_their_rows(
    few_tenants: Tenants, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody gave the tenants' tables four hours in which what is dropped can be brought back."""
    monkeypatch.setattr(few_tenants, "_sizes", replace(few_tenants._sizes, given_back_s=60))
    async with few_tenants.provisioning():
        await few_tenants.provision()
        for one in few_tenants.plan:
            longer = f"ALTER TABLE {TABLE} CONFIGURE ZONE USING gc.ttlseconds = 14400"
            await few_tenants.administer(one.database, longer)
        await few_tenants.drop()
    assert judge.refuted("tables_uncleared", "space_kept")


@slow
@pytest.mark.sabotage("tenancy-drop", engine="cockroach")
async def test_ranges_of_dropped_tenants_are_not_merged(
    few_tenants: Tenants, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody split their tables by hand, and turned merging off so that they stay split; what they had is cleared."""
    monkeypatch.setattr(few_tenants, "_sizes", replace(few_tenants._sizes, given_back_s=75))
    async with few_tenants.provisioning():
        await few_tenants.provision()
        await few_tenants.administer("system", f"SET CLUSTER SETTING {MERGING} = false")
        for one in few_tenants.plan:
            split = f"ALTER TABLE {TABLE} SPLIT AT SELECT 100 * i FROM generate_series(1, 9) AS g (i)"
            await few_tenants.administer(one.database, split)
        await few_tenants.drop()
    assert judge.refuted("ranges_kept")


@on_both("tenancy")
async def test_a_tenant_is_called_whole_too_early(
    cluster: Cluster, few_tenants: Tenants, judge: Judge, on: str
) -> None:
    """The last one's line in the roll was written when nothing but its database was there; whoever goes on skips it."""
    async with few_tenants.provisioning():
        made = await few_tenants.provision(0.5)
        early = [one for one in few_tenants.plan if one.number > made][-1]
        async with await cluster.deployment.connect() as connection:
            await roll.begin(connection, [early])
            await roll.complete(connection, [early])
            await connection.execute(f"CREATE DATABASE {quoted(early.database)}")
        await few_tenants.provision()
    assert judge.refuted("tables_missing", "tenants_missing")


@pytest.fixture
def all_pairs(few_tenants: Tenants, monkeypatch: pytest.MonkeyPatch) -> Tenants:
    """Few tenants of which every one tries to reach every other: which pair is drawn else, nobody knows."""
    every = few_tenants.plan.tenants * (few_tenants.plan.tenants - 1)
    monkeypatch.setattr(few_tenants, "_sizes", replace(few_tenants._sizes, isolation_pairs=every))
    return few_tenants


@on_both("tenancy-isolation")
async def test_a_role_is_granted_one_table_too_many(all_pairs: Tenants, judge: Judge, on: str) -> None:
    """Every other tenant may read a table of the first."""
    async with all_pairs.provisioning():
        await all_pairs.provision()
        first, *others = all_pairs.plan
        for other in others:
            role = quoted(other.role)
            await all_pairs.administer(
                first.database,
                f"GRANT CONNECT ON DATABASE {quoted(first.database)} TO {role}",
                f"GRANT USAGE ON SCHEMA public TO {role}",
                f"GRANT SELECT ON {TABLE} TO {role}",
            )
        await all_pairs.attack(few)
    assert judge.refuted("isolation_breaches", "isolation_granted", "foreign_objects_read")


@on_both("tenancy-isolation")
async def test_a_database_is_open_to_everybody(all_pairs: Tenants, judge: Judge, on: str) -> None:
    """As by default: who comes in reads no row, and sees in the server's catalogues what its tables are called."""
    async with all_pairs.provisioning():
        await all_pairs.provision()
        first = next(iter(all_pairs.plan)).database
        await all_pairs.administer(first, f"GRANT CONNECT ON DATABASE {quoted(first)} TO PUBLIC")
        await all_pairs.attack(lambda attempt: attempt.name in LISTS)
    assert judge.refuted("isolation_seen", "isolation_granted", "foreign_objects_read")


@on_both("tenancy-isolation")
async def test_a_membership_leaks(all_pairs: Tenants, judge: Judge, on: str) -> None:
    """Every other tenant's role is a member of the first's."""
    async with all_pairs.provisioning():
        await all_pairs.provision()
        first, *others = all_pairs.plan
        for other in others:
            await all_pairs.administer(first.database, f"GRANT {quoted(first.role)} TO {quoted(other.role)}")
        await all_pairs.attack(few)
    assert judge.refuted("isolation_granted", "foreign_objects_read")


@on_both("tenancy-isolation")
async def test_a_tenant_is_powerful_and_tries_nothing(few_tenants: Tenants, judge: Judge, on: str) -> None:
    """It is neither of the pair that is drawn, so that only what the server says was granted tells of it."""
    async with few_tenants.provisioning():
        await few_tenants.provision()
        tenants = [*few_tenants.plan]
        pairs = drawn(tenants, most=few_tenants._sizes.isolation_pairs, seed=few_tenants._trial.seed)
        concerned = {one.role for pair in pairs for one in pair}
        bystander = next(one for one in tenants if one.role not in concerned)
        await few_tenants.administer(bystander.database, f"ALTER ROLE {quoted(bystander.role)} CREATEROLE")
        await few_tenants.attack(few)
    assert judge.refuted("isolation_granted", "foreign_objects_read")


@slow
@pytest.mark.sabotage("tenancy-isolation", engine="postgres")
async def test_a_migration_goes_to_the_wrong_database(
    few_tenants: Tenants, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes to another's database is refused; its migration, which an administrator runs, is not."""
    as_tenant, migrated = few_tenants._as_tenant, list[str]()

    async def coming(database: str, tenant: Tenant | None) -> Connection:
        if not migrated and tenant is not None and tenant.database != database:
            migrated.append(database)
            await few_tenants.administer(database, f"ALTER TABLE {TABLE} ADD COLUMN other_s INT8")
        return await as_tenant(database, tenant)

    monkeypatch.setattr(few_tenants, "_as_tenant", coming)
    async with few_tenants.provisioning():
        await few_tenants.provision()
        await few_tenants.attack(few)
    assert judge.refuted("isolation_changed")


def keep_settings(few_tenants: Tenants, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the statement that should put settings back name such as the server does not know."""
    site = few_tenants._site
    tenancy = replace(site.tenancy, reset_setting="RESET CLUSTER SETTING {name}.gone")
    monkeypatch.setattr(few_tenants, "_site", replace(site, kind=replace(site.kind, tenancy=tenancy)))


@slow
@pytest.mark.sabotage("tenancy-drop", engine="cockroach")
async def test_settings_for_dropping_are_not_put_back(
    few_tenants: Tenants, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All tenants are gone, and how soon ranges are merged stays as it was lowered."""
    keep_settings(few_tenants, monkeypatch)
    monkeypatch.setattr(few_tenants, "_sizes", replace(few_tenants._sizes, given_back_s=1))
    async with few_tenants.provisioning():
        await few_tenants.provision()
        await few_tenants.drop()
    assert judge.refuted("settings_left")


@slow
@pytest.mark.sabotage("tenancy", engine="cockroach")
async def test_settings_are_not_put_back(few_tenants: Tenants, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statement that should do so names settings that the server does not know."""
    keep_settings(few_tenants, monkeypatch)
    async with few_tenants.provisioning():
        await few_tenants.provision()
    assert judge.refuted("settings_left")


@slow
@pytest.mark.sabotage("tenancy", engine="cockroach")
async def test_a_lowered_limit_of_objects_is_reached(cluster: Cluster, tenants: Tenants, judge: Judge) -> None:
    """The limit is lowered to three hundred, and nobody raises it: its default is far beyond the profile's tables."""
    async with await cluster.deployment.connect() as connection:
        settings = await connection.query("SELECT variable FROM [SHOW ALL CLUSTER SETTINGS]")
    if OBJECTS not in {row["variable"] for row in settings}:
        pytest.skip(f"never seen refuted on {cluster.engine.version}: it has no {OBJECTS}")
    await tenants.administer("system", f"SET CLUSTER SETTING {OBJECTS} = 300")
    async with tenants.provisioning(tune=False):
        await tenants.provision(0.9)
        # Servers go by statistics, which they make in their own time.
        await tenants.administer("system", "CREATE STATISTICS counted FROM system.descriptor")
        await wait_until("no node to take another object", partial(no_more, cluster, tenants), timeout=120.0)
        await tenants.provision()
    assert judge.refuted("tables_missing", "tenants_missing")


async def no_more(cluster: Cluster, tenants: Tenants) -> Health:
    """Whether every node refuses a database more; each is asked in its turn."""
    for _ in cluster.nodes:
        try:
            await tenants.administer("system", "CREATE DATABASE one_more", "DROP DATABASE one_more")
        except SqlError as error:
            if error.code != "53400":
                raise
        else:
            return Health(ok=False, why="a node took one")
    return Health(ok=True)


@slow
@pytest.mark.sabotage("tenancy-survivability", engine="cockroach")
async def test_a_single_replica_beside_tenants(
    cluster: Cluster, few_tenants: Tenants, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """Nobody takes over what the ledger writes from a killed node; tenants are there, and none is loaded."""
    async with few_tenants.provisioning():
        await few_tenants.provision()
        await keep_one_replica(cluster, ledger)
        await write_through(
            lambda node: healed(cluster, ledger, fault.kill(node), longer_s=LONGER_S),
            ledger=ledger,
            probe=probe,
            inserts=inserts,
        )
        await few_tenants.count()
    assert judge.refuted("gap_s")


@on_both("tenancy")
async def test_a_change_of_schema_is_undone_in_one_tenant(few_tenants: Tenants, judge: Judge, on: str) -> None:
    """Its index was made, as the server answered, and somebody dropped it before all of them are looked at."""
    async with few_tenants.provisioning():
        await few_tenants.provision()
        async with few_tenants.changing() as changing:
            await changing.everywhere()
            await few_tenants.administer(next(iter(few_tenants.plan)).database, f"DROP INDEX {INDEX}")
            await changing.look()
    assert judge.refuted("schema_change_not_whole")


@on_both("tenancy-growth")
async def test_a_table_is_dropped_behind_the_growth_curve(
    trial: Trial, tenant_growth: TenantGrowth, judge: Judge, monkeypatch: pytest.MonkeyPatch, on: str
) -> None:
    """The curve, a short one, stopped with all its tables, and before they are counted somebody drops one."""
    small = replace(trial.run.size(GROWTH), largest=1350, batch_tables=150, rest_s=1)
    monkeypatch.setattr(TenantGrowth, "sizes", property(lambda _: small))
    async with tenant_growth.tenants.provisioning(), tenant_growth.tenants.asking() as ask:
        await tenant_growth.grow(ask)
        first = next(iter(tenant_growth.tenants.plan)).database
        await tenant_growth.tenants.administer(first, "DROP TABLE sales_history")
        await tenant_growth.count()
    assert judge.refuted("tables_missing", "tenants_missing")
