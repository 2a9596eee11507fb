"""Survivability: what was acknowledged stays, whatever happens to a node (thesis RQ4, table 5.6)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fixtures.fault import Faults
    from fixtures.judge import Judge
    from fixtures.probe import Probe
    from fixtures.workloads.ledger.fixture import Ledger

pytestmark = pytest.mark.topology(nodes=3)


async def write_through(
    *disturbances: Callable[[str], AbstractAsyncContextManager[None]],
    ledger: Ledger,
    probe: Probe,
    inserts: int,
) -> None:
    """Write before, during and after a disturbance of the node that serves the ledger, then read everything back.

    Of several, each comes once the cluster recovered from the one before, and hits another node.
    """
    hit: list[str] = []
    async with probe.watching(ledger), ledger.writing(at_least=inserts):
        await ledger.baseline()
        for disturbance in disturbances:
            await ledger.some_moment()
            hit.append(await ledger.serving_node(other_than=hit))
            async with disturbance(hit[-1]):
                await ledger.outage()
            await ledger.recovery()
        await ledger.written_past_recovery()
    await ledger.audit()


@pytest.mark.claim("survivability")
async def test_a_killed_node(ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int) -> None:
    """Every acknowledged insert is present exactly once and readable after the node that served it is killed."""
    await write_through(fault.kill, ledger=ledger, probe=probe, inserts=inserts)
    assert judge.decide()


@pytest.mark.claim("survivability-disk-lost")
async def test_a_node_lost_with_its_disk(
    ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """Every acknowledged insert survives the death of a node together with its disk."""
    await write_through(fault.lose_disk, ledger=ledger, probe=probe, inserts=inserts)
    assert judge.decide()


@pytest.mark.claim("survivability-pod-deleted")
async def test_a_node_whose_pod_is_deleted(
    ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """Every acknowledged insert is present exactly once and readable after the serving node's pod is deleted."""
    await write_through(fault.delete_pod, ledger=ledger, probe=probe, inserts=inserts)
    assert judge.decide()


@pytest.mark.claim("survivability-pause")
async def test_a_frozen_node(ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int) -> None:
    """Every acknowledged insert is present exactly once and readable after the serving node froze and thawed again."""
    await write_through(fault.pause, ledger=ledger, probe=probe, inserts=inserts)
    assert judge.decide()


@pytest.mark.claim("survivability-drain")
async def test_a_drained_node(ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int) -> None:
    """A node that is drained and stopped in good order loses nothing and is hardly noticed."""
    await write_through(fault.drain, ledger=ledger, probe=probe, inserts=inserts)
    assert judge.decide()


@pytest.mark.claim("survivability-quorum")
async def test_a_lost_quorum(ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int) -> None:
    """With two of three nodes dead the cluster blocks; it never acknowledges a write that it then loses."""
    await write_through(fault.kill_majority, ledger=ledger, probe=probe, inserts=inserts)
    assert judge.decide()
