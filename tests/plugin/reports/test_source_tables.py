"""What a source printed beside what was measured: questions answered, rows expected, both set-ups."""

import functools
from dataclasses import replace
from typing import Any

import pytest

from plugin.catalogue import load
from plugin.claims import Claim
from plugin.reports.source_tables import beside


@functools.cache
def claim() -> Claim:
    return load().claim("survivability")


def verdict(
    *, counted: float | None = 5543, expected: str = "5543", outcome: str = "pass", bit: bool = True
) -> dict[str, Any]:
    def result(metric: str, value: float | None, note: str) -> dict[str, Any]:
        return {
            "check": {"metric": metric},
            "measurement": {"value": value, "note": note},
            "outcome": outcome,
        }

    return {
        "context": {
            "engine": "cockroach",
            "version": "v24.1.3",
            "nodes": "3",
            "inserts": "2000",
            "substrate": "processes",
        },
        "results": [
            result("rows_counted", counted, "SELECT count(*) at the end"),
            result("rows_missing", 0, f"{counted} rows counted, {expected} expected"),
            result("sampled_row_mismatch", 0, "1 sampled"),
        ],
        "conditions": [{"name": "fault_bit", "met": bit, "why": "proven on n1"}],
    }


def test_every_column_of_the_source_has_its_answer() -> None:
    (table,) = beside(claim(), verdict())
    assert (table.work, table.title) == ("thesis", "table 5.6")
    assert table.head == ("", "inserts", "dead node", "rows", "row number is id")
    assert table.rows == (
        ("thesis printed", "2000", "yes", "2000", "yes (row 245)"),
        ("measured here", "2000", "yes (proven on n1)", "5543 of 5543 expected", "yes (1 sampled)"),
        ("ratio", "-", "-", "1.00 of the rows expected", "-"),
    )


@pytest.mark.parametrize(
    ("counted", "expected", "told", "ratio"),
    [
        (4000, "5000", "4000 of 5000 expected", "0.80 of the rows expected"),
        (5500, "5000", "5500 of 5000 expected", "1.10 of the rows expected"),
        (5003, "5000 to 5007", "5003 of 5000 to 5007 expected", "1.00 of the rows expected"),
        (0, "0", "0 of 0 expected", None),
        (None, "5000", "-", None),
    ],
)
def test_rows_are_held_against_what_the_history_expects(
    counted: float | None, expected: str, told: str, ratio: str | None
) -> None:
    (table,) = beside(claim(), verdict(counted=counted, expected=expected))
    assert table.rows[1][3] == told
    assert [row[3] for row in table.rows[2:]] == ([ratio] if ratio else [])


def test_what_was_not_so_is_not_called_so() -> None:
    (table,) = beside(claim(), verdict(outcome="refuted", bit=False))
    assert (table.rows[1][2], table.rows[1][4]) == ("not proven", "no (1 sampled)")
    (table,) = beside(claim(), verdict(outcome="inconclusive"))
    assert table.rows[1][4] == "-"


def test_both_set_ups_are_told() -> None:
    (table,) = beside(claim(), verdict(), machine="2 cores, 8 GiB memory")
    (theirs, setup), (ours, here) = table.setups
    assert (theirs, ours) == ("set-up of the thesis", "set-up here")
    assert "three nodes" in setup
    assert "(3.3, 3.4, 7)" in setup
    assert here == "cockroach v24.1.3, 3 nodes as processes, all on one machine of 2 cores, 8 GiB memory"
    bare = replace(claim(), paper={"table_5_6": claim().paper["table_5_6"]})
    assert beside(bare, verdict())[0].setups == ()


def test_a_claim_that_draws_no_table_names_none_as_its_source() -> None:
    ready = [claim for claim in load().claims.values() if claim.status == "ready"]
    assert ready
    for claim in ready:
        assert "table" not in str(claim.source) or claim.paper, claim.id
