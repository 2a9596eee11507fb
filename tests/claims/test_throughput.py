"""Throughput: the same whatever the size of the cluster, as long as none is saturated (thesis RQ2, tables 5.3 to 5.5)."""

import pytest

from fixtures.cells import Cells
from fixtures.judge import Judge


@pytest.mark.claim("parity")
@pytest.mark.topology(nodes=9)
async def test_clusters_of_several_sizes(cells: Cells, judge: Judge, sizes: str, warehouses: int) -> None:
    """Three, six and nine nodes reach the same throughput as long as none of them is saturated."""
    await cells.compare(*cells.of_nodes(*map(int, sizes.split())), work=cells.work(warehouses))
    assert judge.decide()
