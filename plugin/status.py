"""Exit status of a gate, decided from what was seen: a pure function."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType

from plugin.counts import number_of


class Status(IntEnum):
    """The exit statuses; 2 to 5 are pytest's own."""

    PASSED = 0
    REFUTED = 1
    BAD_INPUT = 4
    NOTHING_COLLECTED = 5
    INCONCLUSIVE = 6
    HARNESS = 7


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a run came to, in one line, and whether it is passed."""

    text: str
    passed: bool


MEANING: Mapping[int, str] = {
    Status.PASSED: "every required claim passed",
    Status.REFUTED: "a claim is refuted, or another test failed",
    2: "interrupted",
    3: "pytest or a plugin failed",
    Status.BAD_INPUT: "bad input, or no database to be had",
    Status.NOTHING_COLLECTED: "no test was found",
    Status.INCONCLUSIVE: "a claim is inconclusive or was not decided: nothing is let through",
    Status.HARNESS: "the harness or the machine failed: nothing was learnt about the database",
}
"""In words, where nothing more is known of the session."""

TESTED_PASSED = "every claim that was tested passed"
"""The same of a pass, where not all of a suite was required."""

_BECAUSE: Mapping[int, Mapping[str, str]] = {
    Status.REFUTED: {
        "refuted": "claims are refuted",
        "unexpected": "sabotages did not end as named",
        "failed": "tests without a claim failed",
    },
    Status.INCONCLUSIVE: {
        "inconclusive": "claims are inconclusive",
        "undecided": "claims were required and not decided",
    },
    Status.HARNESS: {
        "harness": "tests were ended by the harness or the machine, nothing was learnt from that",
        "unwritten": "files could not be written",
    },
}
"""By status and what was counted."""


def status_told(status: int, counts: Mapping[str, int] = MappingProxyType({}), *, whole: bool = True) -> str:
    """An exit status in words. ``counts``: of what led to it how many there were, by the names above.

    ``whole``: whether a suite was required, and all of it.
    """
    told = [number_of(counts[what], words) for what, words in _BECAUSE.get(status, {}).items() if counts.get(what)]
    meaning = TESTED_PASSED if status == Status.PASSED and not whole else MEANING.get(status, "pytest ended early")
    return f"exit status {status}: {' and '.join(told) or meaning}"


def exit_status(
    pytest_status: int,
    *,
    bad_input: bool,
    refuted: bool,
    harness: bool,
    inconclusive: bool,
    undecided: Collection[str],
    claims_collected: bool,
    gate: bool,
) -> int:
    """The exit status, where several hold: 1 before 7 before 6.

    ``refuted`` also stands for any other test that failed. ``undecided`` are required claims without a verdict.
    ``gate``: a suite was asked for, so a session that collected no claim decided nothing.
    """
    if bad_input:
        return Status.BAD_INPUT
    if pytest_status in (2, 3, 4):
        return pytest_status
    if refuted:
        return Status.REFUTED
    if harness:
        return Status.HARNESS
    if inconclusive or undecided:
        return Status.INCONCLUSIVE
    if gate and not claims_collected and pytest_status in (Status.PASSED, Status.NOTHING_COLLECTED):
        return Status.INCONCLUSIVE
    return pytest_status
