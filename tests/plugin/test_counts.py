"""Counts, added up and in words."""

import pytest

from plugin.counts import added, noun, number_of


def test_counts_of_a_kind_are_added_up_and_none_is_left_out() -> None:
    conflicts, others = {"40001": 2, "timeout": 0}, {"XX000": 1, "40001": 3}
    assert added([conflicts, others, {}]) == {"40001": 5, "XX000": 1}
    assert added([]) == {}
    assert conflicts == {"40001": 2, "timeout": 0}, "those that were given stay as they are"


@pytest.mark.parametrize(
    ("number", "things", "told"),
    [
        (1, "rows", "1 row"),
        (1.0, "errors", "1.0 error"),
        (0, "rows", "0 rows"),
        (2, "queries", "2 queries"),
        (1, "queries", "1 query"),
        (1, "tries", "1 try"),
        (1, "batches", "1 batch"),
        (1, "processes", "1 process"),
        (1, "databases", "1 database"),
        (1, "leases", "1 lease"),
        (1, "checks are", "1 check is"),
        (1, "tenants of the roll", "1 tenant of the roll"),
        (1, "more claims", "1 more claim"),
        ("1", "cores", "1 core"),
        (1, "ms", "1 ms"),
        (1, "s", "1 s"),
        (1, "1/s", "1 1/s"),
    ],
)
def test_one_is_told_in_the_singular(number: float, things: str, told: str) -> None:
    assert number_of(number, things) == told


def test_what_was_not_measured_is_several() -> None:
    assert (noun(None, "rows"), noun("inf", "rows")) == ("rows", "rows")
