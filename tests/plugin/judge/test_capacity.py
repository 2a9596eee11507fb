"""Pass criterion, knee and search, by hand and on clusters with any capacity."""

from dataclasses import replace
from itertools import pairwise
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.workloads.tpcc.judge.capacity import MOST_P90_S, Step, knee, mean_step, next_step, step_of
from fixtures.workloads.tpcc.judge.figures import figures
from tests.plugin.judge.loads import load

GOOD = dict.fromkeys(MOST_P90_S, 1.0)


def step(warehouses: int, share: float = 98.0, **p90_s: float) -> Step:
    """A step that reaches this share of 12.605 tpmC a warehouse."""
    return Step(warehouses=warehouses, tpmc=share / 100 * 12.605 * warehouses, p90_s={**GOOD, **p90_s})


@pytest.mark.parametrize(
    ("found", "passes"),
    [
        (step(10), True),
        (step(10, 85.001), True),
        (step(10, 84.9), False),
        (step(10, new_order=5.0), True),
        (step(10, new_order=5.1), False),
        (step(10, payment=5.1), False),
        (step(10, order_status=5.1), False),
        (step(10, delivery=5.1), False),
        (step(10, stock_level=19.9), True),
        (step(10, stock_level=20.1), False),
    ],
)
def test_the_published_criterion(found: Step, passes: bool) -> None:
    assert found.passes is passes
    assert bool(found.faults) is not passes
    assert found.judged_by == "efficiency and p90 by type"


def test_the_two_denominators() -> None:
    assert step(10).capacity_share == pytest.approx(98.0)
    assert step(10).efc == pytest.approx(98.0 * 12.605 / 12.86)


def test_a_p90_of_all_types_decides_nothing_and_is_marked() -> None:
    slow = replace(step(10), p90_s={"all": 99.0})
    assert slow.passes
    assert slow.judged_by == "efficiency alone (p90: all types)"
    assert replace(slow, p90_s={}).judged_by == "efficiency alone (no p90)"


def test_a_type_that_never_finished_is_named() -> None:
    some = {name: 1.0 for name in GOOD if name != "delivery"}
    assert replace(step(10), p90_s=some).judged_by == "efficiency and p90 by type (no delivery finished)"


def test_a_step_of_runs() -> None:
    one = load("r01", efc=95, latency_ms=20)
    other = load("r02", efc=97, latency_ms={**dict.fromkeys(GOOD, 10.0), "payment": 700.0})
    found = mean_step([step_of(figures(one)), step_of(figures(other))])
    assert found.runs == ("r01", "r02")
    assert found.efc == pytest.approx(96, abs=0.5)
    assert found.p90_s["payment"] == pytest.approx(0.7, rel=0.01)
    assert found.p90_s["new_order"] == pytest.approx(0.02, rel=0.01)
    assert found.latencies["all"].p90_ms == pytest.approx(700, rel=0.01)
    with pytest.raises(ValueError, match="of one size"):
        mean_step([step(10), step(20)])
    with pytest.raises(ValueError, match="of one size"):
        mean_step([])


def test_a_run_without_figures_is_a_step_that_fails() -> None:
    assert not step_of(figures(replace(load(), seconds=()))).passes


def test_the_knee_is_the_largest_load_that_passes() -> None:
    found = knee([step(40, 60), step(10), step(20, 90), step(80, 20)])
    assert found.capacity is not None
    assert found.failed is not None
    assert (found.capacity.warehouses, found.failed.warehouses, found.peak.warehouses) == (20, 40, 40)
    assert found.falls is True
    assert [each.warehouses for each in found.below] == [10]
    assert found.unhindered is not None
    assert found.unhindered.warehouses == 10
    assert "20 warehouses by efficiency and p90 by type; 40 do not pass: 60.0 % of 12.605" in str(found)
    assert "past saturation tpmC falls, from 303 at 40 to 202 at 80" in str(found)


def test_a_cluster_that_stays_at_its_peak_does_not_fall() -> None:
    found = knee([step(10), step(20, 49), step(40, 24.5)])
    assert found.falls is False
    assert "past saturation tpmC does not fall" in str(found)


def test_a_ramp_that_ends_too_early_or_begins_too_high() -> None:
    early = knee([step(10), step(20)])
    assert (early.failed, early.falls) == (None, None)
    assert "no larger load was tried: it may carry more" in str(early)
    high = knee([step(10, 50), step(20, 20)])
    assert (high.capacity, high.below, high.unhindered) == (None, (), None)
    assert "no step passes; 10 warehouses: 50.0 % of 12.605" in str(high)


def test_what_is_no_ramp() -> None:
    for wrong in ([], [step(10), step(10)]):
        with pytest.raises(ValueError, match="one of each size"):
            knee(wrong)


def searched(capacity: int, *declared: int, resolution: float = 0.1) -> list[int]:
    """The loads tried on a cluster that carries exactly so many warehouses."""
    tried: list[Step] = []
    while (size := next_step(tried, declared, resolution=resolution)) is not None:
        assert all(each.warehouses != size for each in tried), "no load is tried twice"
        tried.append(step(size, 98 if size <= capacity else 50))
    return [each.warehouses for each in tried]


def test_the_search_by_hand() -> None:
    assert searched(13, 4, 8, 16, 32, 64) == [4, 8, 16, 32, 12, 14, 13]
    assert searched(13, 4, 8, 16, 32, 64, resolution=0.25) == [4, 8, 16, 32, 12, 14]
    assert searched(5, 40, 64) == [40, 64, 20, 10, 5, 7, 6]
    assert searched(100, 4, 8, 10) == [4, 8, 10]
    assert searched(0, 4, 8) == [4, 8, 2, 1]
    assert searched(1, 1) == [1]
    assert searched(3, 4, 2) == [2, 4, 3], "in any order, the last fails and there is nothing beyond"


def test_a_failure_below_a_load_that_passes_does_not_end_the_search() -> None:
    tried = [step(1), step(2, 50), step(4)]
    assert next_step(tried, (1, 2, 4, 8, 16)) == 8
    assert next_step([*tried, step(8, 50)], (1, 2, 4, 8, 16)) == 16
    assert next_step([*tried, step(8, 50), step(16, 20)], (1, 2, 4, 8, 16)) == 6


@given(st.integers(0, 3000), st.lists(st.integers(1, 3000), min_size=1), st.sampled_from([0.02, 0.1, 0.5]))
def test_the_search_finds_any_capacity_in_few_runs(
    capacity: int, declared: list[int], resolution: float
) -> None:
    tried = searched(capacity, *declared, resolution=resolution)
    assert max(tried) <= max(declared)
    found = max((size for size in tried if size <= capacity), default=0)
    wrong = min((size for size in tried if size > capacity), default=max(declared) + 1)
    if found and found < max(declared):
        assert wrong - found <= max(1, resolution * found)
    elif not found:
        assert 1 in tried
    steps = sum(size <= capacity for size in set(declared)) + 2
    widest = max(b - a for a, b in pairwise([0, *sorted({*declared, max(declared) + 1})]))
    assert len(tried) <= steps + ceil(log2(widest)) + 1


def test_orders_that_end_just_past_the_last_second_were_served() -> None:
    """Nine of eleven would refute a healthy cluster; two of them ended a tenth of a second late."""
    run = figures(load(warehouses=2))
    run = replace(run, finished={**run.finished, "new_order": 9}, due={"new_order": 11})
    assert not step_of(run).passes
    assert step_of(replace(run, just_after=2)).passes
    assert step_of(replace(run, just_after=2)).capacity_share == pytest.approx(100)
    assert not step_of(replace(run, just_after=0, tpmc=1000.0)).passes


def test_a_search_that_nothing_can_come_of() -> None:
    for declared, resolution in (([], 0.1), ([0, 10], 0.1), ([1], 0.0)):
        with pytest.raises(ValueError, match="at least 1 warehouse"):
            next_step([], declared, resolution=resolution)


def test_a_short_run_is_judged_by_what_was_served_of_what_came_due() -> None:
    """Of two warehouses, a minute asks for 15 to 35 new-orders: by tpmC alone, every other healthy run would fail."""
    few = replace(step(2, 60), served=15, due=15)
    assert (few.passes, step(2, 60).passes) == (True, False)
    assert few.capacity_share == pytest.approx(100)
    assert few.efc == pytest.approx(100 * 12.605 / 12.86)
    assert not replace(few, served=12).passes
    both = mean_step([few, replace(step(2, 130), served=30, due=35)])
    assert (both.served, both.due) == (45, 50)
    assert both.tpmc == pytest.approx(0.95 * 12.605 * 2)
    assert both.capacity_share == pytest.approx(90)
    assert mean_step([few, step(2)]).due == 0, "as long as one is not known, tpmC decides"
