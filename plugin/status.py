"""Exit status of a gate, decided from what was seen: a pure function."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum


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
    Status.REFUTED: "a claim is refuted, or a test of the suite's own failed",
    2: "interrupted",
    3: "pytest has a defect",
    Status.BAD_INPUT: "bad input, or no database to be had",
    Status.NOTHING_COLLECTED: "no test was found",
    Status.INCONCLUSIVE: "a claim is inconclusive or was not decided: nothing is let through",
    Status.HARNESS: "the harness or the machine failed: nothing was learnt about the database",
}
"""In words."""


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
