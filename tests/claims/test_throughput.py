"""Throughput: the same whatever the cluster's size, as long as none is saturated; what it carries (thesis RQ2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from clusters.engines import Engine
    from fixtures.judge import Judge
    from fixtures.workloads.tpcc.fixture import Tpcc


@pytest.mark.claim("parity")
@pytest.mark.topology(nodes=3)
async def test_clusters_of_several_sizes(tpcc: Tpcc, judge: Judge, sizes: str, warehouses: int) -> None:
    """Three, six and nine nodes reach the same throughput as long as none of them is saturated."""
    await tpcc.compare(*tpcc.of_nodes(*map(int, sizes.split())), warehouses=warehouses)
    assert judge.decide()


@pytest.mark.claim("parity-resources")
@pytest.mark.topology(nodes=3)
async def test_nodes_of_several_sizes(tpcc: Tpcc, judge: Judge, sizes: str, warehouses: int) -> None:
    """Small, medium and large nodes reach the same throughput as long as none of them is saturated."""
    await tpcc.compare(*tpcc.of_resources(*sizes.split(), nodes=3), warehouses=warehouses)
    assert judge.decide()


@pytest.mark.claim("stress")
@pytest.mark.topology(nodes=3)
async def test_a_load_that_rises(tpcc: Tpcc, judge: Judge, loads: str, drivers: str) -> None:
    """Throughput grows with the load up to a capacity that suits the hardware."""
    (side,) = tpcc.of_nodes(3)
    await tpcc.ramp(side, [*map(int, loads.split())], drivers=drivers)
    assert judge.decide()


@pytest.mark.claim("regression")
@pytest.mark.topology(nodes=3)
async def test_a_new_version(tpcc: Tpcc, judge: Judge, versions: Sequence[Engine], warehouses: int) -> None:
    """A new version loses no throughput against the old one."""
    await tpcc.compare(*tpcc.of_versions(*versions, nodes=3), warehouses=warehouses, old_and_new=True)
    assert judge.decide()
