"""Times take four bytes each, and are what was put in."""

from hypothesis import given
from hypothesis import strategies as st

from plugin.judge.activity import Times
from plugin.judge.throughput import counted, within
from tests.plugin.judge.histories import SECOND

TIMES = st.lists(st.one_of(st.integers(0, 2**36), st.integers(2**32 - 5, 2**32 + 5)), max_size=30)


def times_of(values: list[int]) -> Times:
    found = Times()
    for value in values:
        found.append(value)
    return found


@given(TIMES, st.slices(30))
def test_times_are_what_was_put_in(values: list[int], part: slice) -> None:
    found = times_of(values)
    assert [*found] == values
    assert [found[place] for place in range(len(values))] == values
    assert [*found[part]] == values[part]
    assert found[-1:].tolist() == values[-1:]


@given(TIMES.map(sorted), st.integers(0, 2**36), st.integers(0, 2**36))
def test_a_window_has_those_of_its_begin_and_not_of_its_end(values: list[int], begin: int, end: int) -> None:
    for window in ((begin, end), (2**32 - 3, 2**32 + 3)):
        assert [*within(times_of(values), window)] == [t for t in values if window[0] <= t < window[1]]


@given(st.lists(st.integers(0, 30 * SECOND), max_size=30), st.integers(0, 10 * SECOND))
def test_times_that_are_not_in_order_are_counted_without_a_failure(values: list[int], begin: int) -> None:
    """Damaged evidence has them: no verdict rests on the count, but the judge must come to one."""
    assert sum(counted(times_of(values), (begin, begin + 5 * SECOND), 1)) <= len(values)
