"""Multi-tenancy: many databases in one cluster, each with a role of its own (22k-databases article)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.claims.test_survivability import write_through

if TYPE_CHECKING:
    from fixtures.fault import Faults
    from fixtures.judge import Judge
    from fixtures.probe import Probe
    from fixtures.workloads.ledger.fixture import Ledger
    from fixtures.workloads.tenants.fixture import Tenants
    from fixtures.workloads.tenants.growth_fixture import TenantGrowth
    from fixtures.workloads.tenants.load_fixture import TenantLoads


@pytest.mark.claim("tenancy")
@pytest.mark.topology(nodes="nodes")
async def test_many_tenants(loaded_tenants: Tenants, tenant_load: TenantLoads, judge: Judge, nodes: int) -> None:
    """One cluster carries many databases, each with a role of its own, and serves many of them at once."""
    async with loaded_tenants.provisioning(), loaded_tenants.asking() as ask:
        for part in loaded_tenants.parts:
            await loaded_tenants.provision(part)
            await ask(part)
        for mix in tenant_load.mixes:
            await tenant_load.levels(loaded_tenants.made_for(mix), mix=mix)
        async with loaded_tenants.changing() as changing:
            await changing.everywhere()
    assert judge.decide()


@pytest.mark.claim("tenancy-drop")
@pytest.mark.topology(nodes="nodes")
async def test_tenants_are_dropped(tenants: Tenants, judge: Judge, part: float, nodes: int) -> None:
    """Tenants that are dropped are gone, their roles, too, and servers give back what they had."""
    async with tenants.provisioning():
        await tenants.provision(part)
        await tenants.drop()
    assert judge.decide()


@pytest.mark.claim("tenancy-larger-not-slower")
@pytest.mark.topology(nodes="nodes")
async def test_more_tables_are_not_slower(
    tenants: Tenants, tenant_load: TenantLoads, judge: Judge, mix: str, nodes: int
) -> None:
    """A cluster with more tables is not slower than the same cluster with two thirds of them."""
    async with tenants.provisioning():
        async for side, there, blocks in tenants.in_turns(tenant_load.sizes.blocks):
            some = tenants.made_for(mix, part=min(tenants.sides.values()))
            await tenant_load.one_side(some, mix=mix, side=side, of=there, blocks=blocks)
    assert judge.decide()


@pytest.mark.claim("tenancy-noisy-tenant")
@pytest.mark.topology(nodes="nodes")
async def test_a_noisy_tenant(tenants: Tenants, noisy_load: TenantLoads, judge: Judge, mix: str, nodes: int) -> None:
    """A tenant that does as much as it can takes no more than a declared share of the others' service from them."""
    async with tenants.provisioning():
        await tenants.provision()
        await noisy_load.noisy(tenants.made_for(mix), mix=mix)
    assert judge.decide()


@pytest.mark.claim("tenancy-survivability")
@pytest.mark.topology(nodes="nodes")
async def test_a_restarted_and_a_killed_node_among_many_tenants(
    tenants: Tenants, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int, nodes: int
) -> None:
    """Among many idle tenants a restarted node and a killed one lose nothing, and the other nodes serve on."""
    async with tenants.provisioning():
        await tenants.provision()
        await ledger.spread()
        await write_through(fault.drain, fault.kill, ledger=ledger, probe=probe, inserts=inserts)
        await tenants.count()
    assert judge.decide()


@pytest.mark.claim("tenancy-schema-change")
@pytest.mark.topology(nodes="nodes")
async def test_a_change_of_every_schema(
    tenants: Tenants, tenant_load: TenantLoads, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, mix: str,
    inserts: int, nodes: int,
) -> None:  # fmt: skip
    """The schema of every tenant is changed while tenants are served, and a killed node leaves none of them half."""
    async with tenants.provisioning():
        await tenants.provision()
        async with tenants.changing() as changing:
            await tenant_load.beside(changing.everywhere(), tenants.made_for(mix), mix=mix)
            await ledger.spread()
            await write_through(partial(changing.cut, fault.kill), ledger=ledger, probe=probe, inserts=inserts)
            await changing.completed()
    assert judge.decide()


@pytest.mark.claim("tenancy-isolation")
@pytest.mark.topology(nodes=3)
async def test_tenants_reach_nothing_of_each_other(few_tenants: Tenants, judge: Judge) -> None:
    """A tenant's role reaches nothing of another tenant's, whatever SQL it tries."""
    async with few_tenants.provisioning():
        await few_tenants.provision()
        await few_tenants.attack()
    assert judge.decide()


@pytest.mark.claim("tenancy-growth")
@pytest.mark.topology(nodes="nodes")
async def test_tables_as_far_as_the_machine_carries(tenant_growth: TenantGrowth, judge: Judge, nodes: int) -> None:
    """Tables are made as far as the machine carries, and none of them is missing when it stops."""
    async with tenant_growth.tenants.provisioning(), tenant_growth.tenants.asking() as ask:
        await tenant_growth.grow(ask)
        await tenant_growth.count()
    assert judge.decide()
