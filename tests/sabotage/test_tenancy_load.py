"""Many tenants that are loaded, and treated badly on purpose: throttled, kept waiting, changed in part."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from clusters.cluster import Cluster
from clusters.sql import Connection, quoted
from fixtures.background import beside
from fixtures.fault import Faults
from fixtures.judge import Judge
from fixtures.probe import Probe
from fixtures.trial import Trial
from fixtures.workloads.ledger.fixture import Ledger
from fixtures.workloads.tenants.fixture import Tenants
from fixtures.workloads.tenants.key_value import INSERTED, TABLE
from fixtures.workloads.tenants.load import Span, TenantLoad
from fixtures.workloads.tenants.load_fixture import TenantLoads
from fixtures.workloads.tenants.load_records import NOISY, SECOND, WARM_UP
from fixtures.workloads.tenants.load_workload import KIND as LOAD
from fixtures.workloads.tenants.mix import MIXES
from fixtures.workloads.tenants.player import GRACE_US
from fixtures.workloads.tenants.schema_change import KEY
from fixtures.workloads.tenants.spec import TenantsSpec
from fixtures.workloads.tenants.templates import Templates
from fixtures.workloads.tenants.tenant import Tenant
from tests.claims.test_survivability import write_through
from tests.sabotage.throttle import detour, late
from tests.slow import slow

pytestmark = pytest.mark.topology(nodes=3)

MIX = "key_value"

HALF = 0.5
"""The part of the tenants that is made: what is wrong shows among few, and other work comes between less often."""

REPORT_S = 15
"""Longer than a client waits for an answer: what it sends after that waits for as long as is left."""

UNIQUE = f"{TABLE}_{KEY}_key"
"""What makes the column unique that a change of schema adds."""

ONE_ASKS_MUCH = (
    "EXISTS (SELECT FROM pg_stat_activity WHERE state = 'active' AND backend_type = 'client backend' "
    "GROUP BY usename HAVING count(*) > 1)"
)
"""While a role has several statements under way: each tenant but the noisy one has a single connection."""


@pytest.fixture(autouse=True)
def few_at_once(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """Load eight tenants at once, and not for long, for the same reason.

    Those do not wait as long in each pair of windows: of three pairs the interval reaches below the limit (seen).
    """
    few = replace(trial.run.size(LOAD), levels={MIX: (8,)}, window_s=8, blocks=6)
    monkeypatch.setattr(TenantLoads, "sizes", property(lambda _: few))


@pytest.fixture
def most_at_once(trial: Trial, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Tenants:
    """As many tenants as the highest level loads, and all of them loaded: what one is not served is little of it."""
    sizes = trial.run.size(LOAD)
    most = replace(sizes, levels={MIX: (sizes.highest(MIX),)})
    monkeypatch.setattr(TenantLoads, "sizes", property(lambda _: most))
    return Tenants(trial, cluster, Templates(), {MIXES[MIX].template: sizes.highest(MIX)})


ByHand = Callable[[Sequence[Connection], Span], Awaitable[None]]
"""What somebody does in databases to which he is connected, given the window that is measured."""


async def loaded_while(
    do: ByHand, tenants: Tenants, load: TenantLoads, monkeypatch: pytest.MonkeyPatch, *, of: int | None = None
) -> None:
    """Load all of them, while somebody does this in the databases of so many of them, or of all."""
    measured: asyncio.Future[Span] = asyncio.get_running_loop().create_future()
    ordered = load._ordered

    def heard(loaded: TenantLoad, span: Span) -> None:
        if span.side != WARM_UP:
            measured.set_result(span)
        ordered(loaded, span)

    async def doing(some: Sequence[Tenant]) -> None:
        async with AsyncExitStack() as opened:
            sessions = [await opened.enter_async_context(await tenants._admin(one.database)) for one in some]
            await do(sessions, await measured)

    monkeypatch.setattr(load, "_ordered", heard)
    async with tenants.provisioning():
        await tenants.provision()
        loaded = tenants.made_for(MIX)
        async with beside(doing(loaded[:of])):
            await load.levels(loaded, mix=MIX)


def left_open(trial: Trial, part: float) -> ByHand:
    """A transaction that changed all rows is not ended in the last ``part`` of the window, nor as long as more is sent.

    What changes a row waits for it, and what the same tenant asks after that.
    """

    async def do(sessions: Sequence[Connection], span: Span) -> None:
        await at(trial, span.until - int(part * (span.until - span.begin)))
        for session in sessions:
            await session.execute("BEGIN")
            await session.execute(f"UPDATE {TABLE} SET version = version")
        await at(trial, span.until + GRACE_US + SECOND // 2)

    return do


async def at(trial: Trial, moment: int) -> None:
    """Wait until a moment on the trial's timeline."""
    await asyncio.sleep(max(0, moment - trial.store.now()) / SECOND)


TOO_LATE_S = 0.06
"""For each row: of ten transactions that come due at a tenant in a second six are served, and the others pile up."""


async def throttle(tenants: Tenants, some: Iterable[Tenant], *, late_s: float = TOO_LATE_S, when: str = "true") -> None:
    """Let each row that they read or write take longer, by a policy made by hand; not those that are counted."""
    for held in some:
        await tenants.administer(
            held.database,
            "CREATE FUNCTION late() RETURNS BOOL LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS "
            f"$$ BEGIN IF current_query() NOT LIKE '%count(*)%' AND {when} THEN PERFORM pg_sleep({late_s}); END IF; "
            "RETURN true; END $$",
            f"ALTER TABLE {TABLE} ENABLE ROW LEVEL SECURITY",
            f"ALTER TABLE {TABLE} FORCE ROW LEVEL SECURITY",
            f"CREATE POLICY late ON {TABLE} USING (late())",
            f"GRANT EXECUTE ON FUNCTION late() TO {quoted(held.role)}",
        )


@slow
@pytest.mark.sabotage("tenancy", engine="postgres")
async def test_a_tenant_is_throttled(tenants: Tenants, tenant_load: TenantLoads, judge: Judge) -> None:
    """Two of eight are, by so little that all of them are served."""
    async with tenants.provisioning():
        await tenants.provision(HALF)
        loaded = tenants.made_for(MIX, part=HALF)[:8]
        await throttle(tenants, loaded[:2], late_s=0.02)
        await tenant_load.levels(loaded, mix=MIX)
    assert judge.refuted("tenant_slowest")


@slow
@pytest.mark.sabotage("tenancy", engine="postgres")
async def test_a_transaction_is_left_open_in_one_tenant(
    trial: Trial, most_at_once: Tenants, tenant_load: TenantLoads, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two fifths of what came due at it are not served, of all tenants together next to nothing."""
    await loaded_while(left_open(trial, 0.4), most_at_once, tenant_load, monkeypatch, of=1)
    assert judge.refuted("tenant_worst")


@slow
@pytest.mark.sabotage("tenancy", engine="postgres")
async def test_transactions_are_left_open_in_all_tenants(
    trial: Trial, most_at_once: Tenants, tenant_load: TenantLoads, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them are served alike, and none of them to the end."""
    await loaded_while(left_open(trial, 0.2), most_at_once, tenant_load, monkeypatch)
    assert judge.refuted("tenant_efficiency")


@slow
@pytest.mark.sabotage("tenancy", engine="postgres")
async def test_a_constraint_forbids_what_tenants_do(
    most_at_once: Tenants, tenant_load: TenantLoads, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody's migration lets no tenant insert what it used to: of all that they do one of twenty fails."""

    async def constrained(sessions: Sequence[Connection], _: Span) -> None:
        for session in sessions:
            await session.execute(f"ALTER TABLE {TABLE} ADD CONSTRAINT few_keys CHECK (k < {INSERTED}) NOT VALID")

    await loaded_while(constrained, most_at_once, tenant_load, monkeypatch)
    assert judge.refuted("tenant_errors_not_retryable", "tenant_failed_share")


@slow
@pytest.mark.sabotage("tenancy", engine="postgres")
async def test_rows_of_a_tenant_are_deleted(
    most_at_once: Tenants, tenant_load: TenantLoads, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads what it has not deleted itself, and does not find it."""

    async def deleted(sessions: Sequence[Connection], _: Span) -> None:
        for session in sessions:
            await session.execute(f"DELETE FROM {TABLE} WHERE k % 20 = 3")

    await loaded_while(deleted, most_at_once, tenant_load, monkeypatch, of=1)
    assert judge.refuted("tenant_inconsistent_answers")


@slow
@pytest.mark.sabotage("tenancy-larger-not-slower", engine="postgres")
async def test_all_tenants_are_throttled_once_there_are_more(
    tenants: Tenants, tenant_load: TenantLoads, judge: Judge
) -> None:
    """As if the rest of the tables made them slower."""
    async with tenants.provisioning():
        some = tenants.made_for(MIX, part=HALF * min(tenants.sides.values()))
        for side, part in tenants.sides.items():
            there = await tenants.provision(HALF * part)
            if part == max(tenants.sides.values()):
                await throttle(tenants, some)
            await tenant_load.one_side(some, mix=MIX, side=side, of=there)
    assert judge.refuted("larger_efficiency_loss_interval", "larger_p99_growth_interval")


@slow
@pytest.mark.sabotage("tenancy-noisy-tenant", engine="postgres")
async def test_all_wait_for_a_tenant_that_asks_for_much(
    tenants: Tenants, noisy_load: TenantLoads, judge: Judge
) -> None:
    """As if the server served it first."""
    async with tenants.provisioning():
        await tenants.provision(HALF)
        some = tenants.made_for(MIX, part=HALF)
        await throttle(tenants, some, when=ONE_ASKS_MUCH)
        await noisy_load.noisy(some, mix=MIX)
    assert judge.refuted("noisy_efficiency_loss_interval", "noisy_p99_growth_interval")


@slow
@pytest.mark.sabotage("tenancy", engine="cockroach")
async def test_tenants_of_cockroachdb_are_throttled(
    cluster: Cluster, tenants: Tenants, tenant_load: TenantLoads, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fourth goes to a node by a way on which answers come late."""
    async with tenants.provisioning(), late(cluster.endpoints[:1], lambda: 0.09) as slow_way:
        await tenants.provision(HALF)
        monkeypatch.setattr(tenant_load, "_cluster", detour(cluster, (*cluster.endpoints, *slow_way)))
        await tenant_load.levels(tenants.made_for(MIX, part=HALF), mix=MIX)
    assert judge.refuted("tenant_slowest")


@slow
@pytest.mark.sabotage("tenancy-larger-not-slower", engine="cockroach")
async def test_all_tenants_of_cockroachdb_wait_once_there_are_more(
    cluster: Cluster, tenants: Tenants, tenant_load: TenantLoads, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the rest of the tables made them slower: from then on each answer comes late."""
    late_s = 0.0
    async with tenants.provisioning(), late(cluster.endpoints, lambda: late_s) as ways:
        monkeypatch.setattr(tenant_load, "_cluster", detour(cluster, ways))
        some = tenants.made_for(MIX, part=HALF * min(tenants.sides.values()))
        for side, part in tenants.sides.items():
            there = await tenants.provision(HALF * part)
            late_s = 0.15 if part == max(tenants.sides.values()) else 0.0
            await tenant_load.one_side(some, mix=MIX, side=side, of=there)
    assert judge.refuted("larger_efficiency_loss_interval", "larger_p99_growth_interval")


@slow
@pytest.mark.sabotage("tenancy-noisy-tenant", engine="cockroach")
async def test_tenants_of_cockroachdb_wait_while_one_is_noisy(
    trial: Trial, cluster: Cluster, tenants: Tenants, noisy_load: TenantLoads, judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """As if the ways to the servers were full of what it asks for."""
    loud, ordered, spec_of = list[Span](), noisy_load._ordered, noisy_load._spec

    def heard(load: TenantLoad, span: Span) -> None:
        if span.side == NOISY:
            loud.append(span)
        ordered(load, span)

    def full_s() -> float:
        return 0.25 if any(span.begin <= trial.store.now() < span.until for span in loud) else 0.0

    monkeypatch.setattr(noisy_load, "_ordered", heard)
    async with tenants.provisioning(), late(cluster.endpoints, full_s) as ways:
        await tenants.provision(HALF)

        def others_wait(some: Sequence[Tenant], **given: Any) -> TenantsSpec:
            spec = spec_of(some, **given)
            return spec if spec.loops else replace(spec, endpoints=ways)

        monkeypatch.setattr(noisy_load, "_spec", others_wait)
        await noisy_load.noisy(tenants.made_for(MIX, part=HALF), mix=MIX)
    assert judge.refuted("noisy_efficiency_loss_interval", "noisy_p99_growth_interval")


@slow
@pytest.mark.sabotage("tenancy-schema-change", engine="postgres")
async def test_a_change_of_schema_is_parted_in_one_tenant(
    tenants: Tenants, tenant_load: TenantLoads, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """After the kill its column stays, and what makes it unique is gone; a second pass takes it for done."""
    parted = f"ALTER TABLE {TABLE} DROP CONSTRAINT {UNIQUE}"
    await changed_and(parted, tenants, tenant_load, ledger, probe, fault, inserts)
    assert judge.refuted("schema_change_half", "schema_change_not_whole")


@slow
@pytest.mark.sabotage("tenancy-schema-change", engine="cockroach")
async def test_a_change_of_schema_is_parted_in_one_tenant_of_cockroachdb(
    tenants: Tenants, tenant_load: TenantLoads, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """The same where the constraint is dropped as an index, by a job."""
    parted = f"DROP INDEX {TABLE}@{UNIQUE} CASCADE"
    await changed_and(parted, tenants, tenant_load, ledger, probe, fault, inserts)
    assert judge.refuted("schema_change_half", "schema_change_not_whole")


async def changed_and(
    by_hand: str, tenants: Tenants, load: TenantLoads, ledger: Ledger, probe: Probe, fault: Faults, inserts: int
) -> None:
    """Change all tenants, a node is killed meanwhile; somebody does this in one of them before the second pass."""
    async with tenants.provisioning():
        await tenants.provision()
        async with tenants.changing() as changing:
            await load.beside(changing.everywhere(), tenants.made_for(MIX), mix=MIX)
            await write_through(partial(changing.cut, fault.kill), ledger=ledger, probe=probe, inserts=inserts)
            await tenants.administer(tenants.made_for(MIX)[0].database, by_hand)
            await changing.completed()


@slow
@pytest.mark.sabotage("tenancy-schema-change", engine="postgres")
async def test_a_change_of_schema_waits_for_a_report(
    tenants: Tenants, tenant_load: TenantLoads, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """Somebody's transaction has read a table, and is left open; what its tenant asks waits behind the change."""
    async with tenants.provisioning():
        await tenants.provision()
        loaded = tenants.made_for(MIX)[:8]  # as many as are loaded at once
        async with tenants.changing() as changing:

            async def beside_a_report() -> None:
                async with asyncio.TaskGroup() as group, await tenants._admin(loaded[0].database) as session:
                    await session.execute("BEGIN")
                    await session.query(f"SELECT count(*) FROM {TABLE}")
                    group.create_task(changing.everywhere())
                    await asyncio.sleep(REPORT_S)

            await tenant_load.beside(beside_a_report(), loaded, mix=MIX)
            await write_through(partial(changing.cut, fault.kill), ledger=ledger, probe=probe, inserts=inserts)
            await changing.completed()
    assert judge.refuted("tenant_wait_s")
