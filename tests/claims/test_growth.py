"""Growing and shrinking: replicas spread over added nodes by themselves, and leave nodes taken out (thesis RQ1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fixtures.growth import Growth
    from fixtures.judge import Judge
    from fixtures.probe import Probe
    from fixtures.workloads.ledger.fixture import Ledger


@pytest.mark.claim("rebalance")
@pytest.mark.topology(nodes=3)
async def test_replicas_spread_over_added_nodes(
    ledger: Ledger, probe: Probe, growth: Growth, judge: Judge, sizes: str
) -> None:
    """After nodes are added the replicas spread evenly over all of them without a manual step, while the cluster
    serves.
    """
    start, *larger = map(int, sizes.split())
    growth.begins_with(start)
    async with growth.watched():
        async with probe.watching(ledger), ledger.writing(at_least=0):
            await ledger.baseline()
            for size in larger:
                await growth.out(size)
        await growth.settled()
    await ledger.audit()
    assert judge.decide()


@pytest.mark.claim("rebalance-scale-in")
@pytest.mark.topology(nodes=3)
async def test_nodes_can_be_taken_out(ledger: Ledger, probe: Probe, growth: Growth, judge: Judge, sizes: str) -> None:
    """Nodes can be taken out one after another; no range is lost and the rest is balanced again."""
    most, *smaller = map(int, sizes.split())
    async with growth.watched():
        await growth.out(most)
        async with probe.watching(ledger), ledger.writing(at_least=0):
            await ledger.baseline()
            for size in smaller:
                await growth.back(size)
            await growth.refused()
        await growth.settled()
    await ledger.audit()
    assert judge.decide()
