"""What a trial came to, from its verdict and from how its test ended."""

from typing import Any

import pytest

from plugin.evidence.events import Event
from plugin.reports.text import shown
from plugin.result import (
    BAD_INPUT,
    ENDED_EARLY,
    HARNESS,
    NOT_AS_EXPECTED,
    SKIPPED,
    UNREADABLE,
    Result,
)
from plugin.trial_result import result_of
from tests.plugin.recorded import recorded

END = recorded(9, "trial.end", {})
ERROR = recorded(10, "error", {"what": "OSError: no"})


def verdict(outcome: str, *, failed: str = "lost", unmet: str = "") -> dict[str, Any]:
    return {
        "outcome": outcome,
        "why": "so it is",
        "results": [{"check": {"metric": failed}, "outcome": outcome}],
        "conditions": [{"name": unmet, "met": not unmet}],
    }


PASS, LOST, OPEN = verdict("pass"), verdict("refuted"), verdict("inconclusive", unmet="mix")
REFUTED = recorded(8, "sabotage.expected", {"metrics": ["lost"]})
BOTH = recorded(8, "sabotage.expected", {"metrics": ["lost", "stale"]})
EITHER = recorded(8, "sabotage.expected", {"either": ["lost", "stale"]})
ONE_AND_EITHER = recorded(8, "sabotage.expected", {"metrics": ["lost"], "either": ["stale", "torn"]})
DOUBTED = recorded(8, "sabotage.expected", {"conditions": ["mix"], "may": ["knee"]})


@pytest.mark.parametrize(
    ("given", "events", "outcome"),
    [
        (PASS, [END], "pass"),
        (LOST, [END], "refuted"),
        (OPEN, [END], "inconclusive"),
        (PASS, [END, ERROR], HARNESS),
        (LOST, [END, ERROR], "refuted"),
        (OPEN, [], ENDED_EARLY),
        (LOST, [], "refuted"),
        (None, [END], ENDED_EARLY),
        (None, [recorded(1, "error", {"what": "x", "bad_input": True})], BAD_INPUT),
        (None, [recorded(1, "skipped", {"what": "x"})], SKIPPED),
    ],
)
def test_of_a_claim(given: dict[str, Any] | None, events: list[Event], outcome: str) -> None:
    assert result_of(sabotage=False, verdict=given, events=events).outcome == outcome
    unreadable = result_of(sabotage=False, verdict=None, events=[], problem="of another schema")
    assert unreadable == Result(outcome=UNREADABLE, why="of another schema")


@pytest.mark.parametrize(
    ("given", "events", "told"),
    [
        (LOST, [REFUTED, END], "REFUTED AS EXPECTED"),
        (OPEN, [DOUBTED, END], "INCONCLUSIVE AS EXPECTED"),
        (LOST, [END], "NOT AS EXPECTED"),
        (PASS, [REFUTED, END], "NOT AS EXPECTED"),
        (OPEN, [REFUTED, END], "NOT AS EXPECTED"),
        (LOST, [DOUBTED, END], "NOT AS EXPECTED"),
        (verdict("refuted", failed="stale"), [REFUTED, END], "NOT AS EXPECTED"),
        (LOST, [BOTH, END], "NOT AS EXPECTED"),
        (verdict("refuted", failed="stale"), [EITHER, END], "REFUTED AS EXPECTED"),
        (verdict("refuted", failed="torn"), [EITHER, END], "NOT AS EXPECTED"),
        (LOST, [ONE_AND_EITHER, END], "NOT AS EXPECTED"),
        (verdict("refuted", failed="torn"), [ONE_AND_EITHER, END], "NOT AS EXPECTED"),
        (verdict("inconclusive", unmet="clock"), [DOUBTED, END], "NOT AS EXPECTED"),
        (LOST, [REFUTED, END, ERROR], "HARNESS FAILED"),
        (LOST, [REFUTED, END, recorded(10, "sabotage.unexpected", {"what": "no"})], "NOT AS EXPECTED"),
        (LOST, [REFUTED], "ENDED EARLY"),
    ],
)
def test_of_a_sabotage(given: dict[str, Any], events: list[Event], told: str) -> None:
    """One whose right end is inconclusive is told as that."""
    result = result_of(sabotage=True, verdict=given, events=events)
    assert shown(result) == told
    right = told in ("REFUTED AS EXPECTED", "INCONCLUSIVE AS EXPECTED")
    assert (result.outcome == "pass") == bool(result.expected) == right
    assert (result.outcome == NOT_AS_EXPECTED) == (told == "NOT AS EXPECTED")
