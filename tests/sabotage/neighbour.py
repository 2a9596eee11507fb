"""A fault that hits one node more than it was told to."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from clusters.faults.disturbance import Fault
from clusters.model import Health
from clusters.waiting import wait_until
from fixtures.fault import Faults
from fixtures.trial import Trial
from plugin.evidence.events import ProcessesSeen, seen


def goes_too(fault: Faults, monkeypatch: pytest.MonkeyPatch, *, seen_by: Trial | None = None) -> None:
    """With each node that a fault is injected into its neighbour goes as well: n2, or n3 with n2.

    ``seen_by``: they stay away until whoever watches the processes of this trial's nodes has seen it.
    """
    one = fault.inject

    @asynccontextmanager
    async def two(what: Fault, nodes: Sequence[str], **facts: bool) -> AsyncIterator[None]:
        async with one(what, [*nodes, "n2" if nodes[0] != "n2" else "n3"], **facts):
            if seen_by is not None:
                await wait_until("both to be seen down", lambda: _both_down(seen_by), timeout=60)
            yield

    monkeypatch.setattr(fault, "inject", two)


async def _both_down(trial: Trial) -> Health:
    looks = seen(trial.evidence.events, ProcessesSeen)
    return Health(ok=bool(looks) and len(looks[-1][1].others) > 1, why="one of them runs")
