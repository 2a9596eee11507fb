"""Scaling up and down: nodes get other CPU and memory one after another, while the cluster serves (thesis 5.1.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plugin.profiles import node_of_size

if TYPE_CHECKING:
    from clusters.model import NodeResources
    from fixtures.judge import Judge
    from fixtures.probe import Probe
    from fixtures.resizing import Resizing
    from fixtures.trial import Trial
    from fixtures.workloads.ledger.fixture import Ledger

pytestmark = pytest.mark.topology(nodes=3)


@pytest.fixture
def node_resources(trial: Trial, sizes: str) -> NodeResources:
    """The cluster begins with the first size."""
    return node_of_size(sizes.split()[0], trial.run.profile.node)


@pytest.mark.claim("scale-up")
async def test_cpu_and_memory_change_node_by_node(
    ledger: Ledger, probe: Probe, resizing: Resizing, judge: Judge, sizes: str
) -> None:
    """CPU and memory of all nodes can be changed node by node while the cluster serves throughout."""
    async with probe.watching(ledger), ledger.writing(at_least=0):
        await ledger.baseline()
        for size in sizes.split()[1:]:
            await resizing.every_node(size, ledger)
        await ledger.written_past_recovery()
    await ledger.audit()
    assert judge.decide()
