"""Hot-swap: the version changes under load, forward, back, and for good (thesis RQ3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusters.registry import later

if TYPE_CHECKING:
    from fixtures.judge import Judge
    from fixtures.objects.fixture import Objects
    from fixtures.probe import Probe
    from fixtures.swapping.fixture import Swapping
    from fixtures.workloads.ledger.fixture import Ledger
    from fixtures.workloads.tpcc.beside import Orders

# Marks: pytest asks what else stands in a module what it is, and all that changes versions would be imported for that.
PLANS = pytest.mark.plans(
    lines=later("fixtures.swapping.planned:drawn"), fits=later("fixtures.swapping.planned:fitting")
)


@pytest.mark.claim("hot-swap")
@pytest.mark.topology(nodes="nodes")
@PLANS
async def test_the_version_changes_under_load(
    swapping: Swapping,
    ledger: Ledger,
    orders: Orders,
    objects: Objects,
    probe: Probe,
    judge: Judge,
    path: str,
    nodes: int,
) -> None:
    """The version can be changed one node at a time, forward and back as the plan goes, under TPC-C, and nothing but a
    retryable error is seen."""
    await objects.make()
    async with probe.watching(ledger, beside=True), orders.running(), ledger.writing(at_least=0, beside=True):
        await ledger.baseline()
        await swapping.follow(ledger, look=[objects.look, orders.check, ledger.read_back])
        await ledger.written_past_recovery()
    await orders.check()
    await ledger.audit()
    assert judge.decide()


@pytest.mark.claim("hot-swap-failed-node")
@pytest.mark.topology(nodes=3)
@PLANS
async def test_the_update_of_one_node_fails(
    swapping: Swapping, ledger: Ledger, orders: Orders, probe: Probe, judge: Judge, failure: str
) -> None:
    """When the update of one node fails the remaining nodes stay up and serve."""
    async with probe.watching(ledger, beside=True), orders.running(), ledger.writing(at_least=0, beside=True):
        await ledger.baseline()
        await swapping.follow(ledger, look=[orders.check, ledger.read_back])
        await ledger.written_past_recovery()
    await orders.check()
    await ledger.audit()
    assert judge.decide()
