"""Throughput on clusters that were given too little on purpose: every test here must find its claim refuted."""

from dataclasses import replace

import pytest

from clusters.model import NodeResources
from fixtures.cells import Cells, Work
from fixtures.judge import Judge

pytestmark = pytest.mark.topology(nodes=3)

SHARE = 0.7
"""Of the CPU that the nodes used when nothing held them back."""


@pytest.mark.sabotage("parity")
async def test_nodes_with_too_little_cpu(cells: Cells, judge: Judge) -> None:
    """Three nodes get 70 % of the CPU that three nodes without a limit used; the load does not think, so that CPU is what limits it."""
    (free,) = cells.of_nodes(3)

    def resources() -> NodeResources:
        cores = SHARE * cells.cpus[free.name] / len(free.topology.nodes)
        return replace(cells.resources, cpus=cores)

    capped = replace(free, name="3 nodes with 70 % of the CPU", resources=resources)
    await cells.compare(free, capped, work=Work(warehouses=1, ramp_s=5, measured_s=15, workers=4))
    assert judge.refuted("tpmc_ratio_interval")
