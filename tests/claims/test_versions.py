"""Hot-swap: the version changes under load, forward, back, and for good (thesis RQ3)."""

import pytest

from fixtures.judge import Judge
from fixtures.probe import Probe
from fixtures.swapping.fixture import Swapping, drawn
from fixtures.workloads.ledger.fixture import Ledger


@pytest.mark.claim("hot-swap")
@pytest.mark.topology(nodes=3)
@pytest.mark.plans(lines=drawn)
async def test_the_version_changes_under_load(
    swapping: Swapping, ledger: Ledger, probe: Probe, judge: Judge, path: str
) -> None:
    """The version can be changed in both directions, one node at a time, under load, and nothing but a
    retryable error is seen."""
    async with probe.watching(ledger), ledger.writing(at_least=0):
        await ledger.baseline()
        await swapping.follow(ledger)
        await ledger.written_past_recovery()
    await ledger.audit()
    assert judge.decide()
