"""Throughput against series worked out by hand."""

import pytest

from plugin.judge.throughput import (
    Baseline,
    baseline,
    buckets,
    degraded_s,
    in_19_of_20,
    latencies,
    per_second,
    percentile,
    rate,
    share_obeying,
    untouched,
)
from tests.plugin.judge.histories import SECOND


def times(*per_second: int) -> list[int]:
    """So many operations, evenly spread, in each second."""
    return [second * SECOND + i * SECOND // count for second, count in enumerate(per_second) for i in range(count)]


@pytest.mark.parametrize(("rate", "width"), [(200, 1), (250, 1), (199, 2), (100, 2), (67, 3), (10, 20), (1, 200)])
def test_buckets_are_the_smallest_that_expect_two_hundred(rate: int, width: int) -> None:
    normal = baseline(times(*[rate] * 20), (0, 20 * SECOND))
    assert normal is not None
    assert normal.width_s == width


def test_baseline_of_nothing() -> None:
    assert baseline([], (0, 10 * SECOND)) is None
    assert baseline(times(5, 5), (20 * SECOND, 30 * SECOND)) is None


def test_a_steady_baseline_obeys_the_rule_against_itself() -> None:
    normal = baseline(times(*[300] * 10), (0, 10 * SECOND))
    assert normal == Baseline(width_s=1, counts=(300,) * 10, median=300)
    assert (normal.below, normal.obeys) == (0.0, True)


def test_an_unsteady_or_short_baseline_does_not() -> None:
    dip = baseline(times(*[300] * 9, 200), (0, 10 * SECOND))
    assert dip is not None
    assert (dip.below, dip.obeys) == (0.1, False)
    short = baseline(times(*[300] * 4), (0, 4 * SECOND))
    assert short is not None
    assert not short.obeys
    long = baseline(times(*[300] * 100, 200), (0, 101 * SECOND))
    assert long is not None
    assert long.obeys


NORMAL = Baseline(width_s=2, counts=(200,) * 5, median=200)


def test_degraded_is_the_time_below_eighty_per_cent() -> None:
    """From 4 to 10 s: 100+100, 20+0, 79+80 operations; 160 is 80 % of the median."""
    acknowledged = times(100, 100, 100, 100, 100, 100, 20, 0, 79, 80, 100, 100)
    found = buckets(acknowledged, (4 * SECOND, 10 * SECOND), NORMAL, until=12 * SECOND)
    assert [b.count for b in found] == [200, 20, 159]
    assert [b.degraded for b in found] == [False, True, True]
    assert degraded_s(found, (4 * SECOND, 10 * SECOND)) == 4.0
    assert share_obeying(found) == pytest.approx(1 / 3)
    assert share_obeying(untouched(found, [(6 * SECOND, 7 * SECOND)])) == 0.5
    assert share_obeying(untouched(found, [(0, 99 * SECOND)])) is None


def test_the_last_bucket_reaches_beyond_the_window_but_only_the_window_counts() -> None:
    acknowledged = times(100, 100, 100, 0, 100, 100)
    found = buckets(acknowledged, (0, 3 * SECOND), NORMAL, until=6 * SECOND)
    assert [(b.count, b.degraded) for b in found] == [(200, False), (100, True)]
    assert degraded_s(found, (0, 3 * SECOND)) == 1.0


def test_a_bucket_cut_off_by_the_end_of_writing_is_held_against_its_part() -> None:
    found = buckets(times(100, 100, 90), (0, 3 * SECOND), NORMAL, until=3 * SECOND)
    assert [(b.count, b.normal, b.degraded) for b in found] == [(200, 200, False), (90, 100, False)]


def test_per_second() -> None:
    assert per_second(times(3, 0, 2, 9), (0, int(3.5 * SECOND))) == [3, 0, 2]
    assert per_second(times(3, 1, 2), (SECOND, 3 * SECOND)) == [1, 2]


def test_rate_is_the_median_of_buckets() -> None:
    assert rate(times(10, 20, 90, 30, 0), (0, 5 * SECOND), 1) == 20
    assert rate(times(10, 20), (0, 2 * SECOND), 5) == 15
    assert rate([], (0, 0), 1) is None


def test_latency_belongs_to_the_phase_it_was_sent_in() -> None:
    sent, done = [1, 2, 10, 11], [4, 30, 11, 40]
    assert list(latencies(sent, done, (0, 10))) == [3, 28]
    assert list(latencies(sent, done, (10, 20))) == [1, 29]


def test_percentile_is_the_nearest_rank() -> None:
    values = list(range(1, 101))
    assert [percentile(values, p) for p in (0.5, 0.99, 1.0)] == [50, 99, 100]
    assert percentile([7], 0.99) == 7
    assert percentile([], 0.5) is None


def test_one_late_second_of_a_short_run_does_not_decide_alone() -> None:
    """Of the 18 seconds of a gate's run (lateness in ms, seen on a busy machine) one was late; a frozen one counts."""
    seen = [9, 13, 7, 13, 12, 9, 11, 9, 34, 12, 15, 9, 13, 5, 16, 50, 12, 257]
    assert in_19_of_20(seen) == pytest.approx(50 + 0.15 * 207)
    assert in_19_of_20([*seen[:-1], 5000]) == pytest.approx(50 + 0.15 * 4950)
    assert in_19_of_20([*seen[:-2], 257, 257]) == 257
    assert in_19_of_20([300] * 5) == 300
    assert in_19_of_20([7]) == 7
    assert in_19_of_20([]) is None
