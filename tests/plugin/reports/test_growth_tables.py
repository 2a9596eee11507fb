"""The source's tables of replicas over time beside what was measured."""

from typing import Any

from plugin.catalogue import load
from plugin.judge.source_tables import paper_growth
from plugin.reports.source_tables import beside
from plugin.reports.terminal import paper_lines

CLAIM = load().claim("rebalance")


def verdict(**measured: tuple[float | None, str]) -> dict[str, Any]:
    results = [
        {"check": {"metric": name}, "outcome": "pass", "measurement": {"value": value, "note": note}}
        for name, (value, note) in measured.items()
    ]
    return {"results": results, "conditions": (), "context": {"engine": "cockroach", "nodes": "3"}}


MEASURED = {
    "balanced_3_to_6_min": (0.5, ""),
    "balanced_6_to_9_min": (None, ""),
    "replicas_moved_per_s": (5.0, "3 → 6: 150 replicas, 5.00/s"),
    "balanced_s": (30.0, ""),
    "settled": (0, "3 → 6: not shown: replicas were added or removed all the time"),
}


def test_the_judge_reads_the_printed_tables() -> None:
    first, second = (paper_growth(CLAIM.paper[name]) for name in ("table_5_1", "table_5_2"))
    assert (first.before, first.after, first.found.balanced) == (3, 6, 300 * 60)
    assert (second.before, second.after, second.found.balanced) == (6, 9, 180 * 60)
    assert first.per_s is not None
    assert round(first.per_s, 3) == round((396 + 395 + 396) / 18000, 3)
    assert first.found.settled is None


def test_both_stand_side_by_side() -> None:
    first, second = beside(CLAIM, verdict(**MEASURED))
    assert (first.title, first.work) == ("table 5.1", "thesis")
    assert first.rows == (
        ("thesis printed", "3 → 6", "300", "0.0659", "not shown"),
        ("measured here", "3 → 6", "0.5", "5.00", "not shown"),
        ("ratio", "-", "0.00167", "-", "-"),
    )
    assert second.rows[1] == ("measured here", "-", "-", "-", "not judged"), "nobody came so far"
    assert len(second.rows) == 2
    assert "every 20 minutes" in first.reading[0]
    assert dict(first.setups)["set-up of the thesis"].startswith("three, six and nine nodes")
    told = " ".join(paper_lines(CLAIM, verdict(**MEASURED)))
    assert "table 5.1, thesis printed: nodes 3 → 6, minutes until even 300" in " ".join(told.split())


def test_an_older_verdict_without_these_checks_has_the_printed_ones() -> None:
    first, _ = beside(CLAIM, verdict())
    assert first.rows[1] == ("measured here", "-", "-", "-", "-")
