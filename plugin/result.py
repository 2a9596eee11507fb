"""What a trial can come to, in words; ``plugin.trial_result`` works it out."""

from dataclasses import dataclass

HARNESS, BAD_INPUT = "harness", "bad input"
"""Of a test that failed by itself: the machine or the harness failed, or what it was given cannot be used."""
ENDED_EARLY = "ended early"
"""Of a trial without a verdict on all of it: everything up to there is evidence, and nothing was decided."""
UNREADABLE = "unreadable"
"""Of evidence that this release cannot read."""
NOT_AS_EXPECTED = "not as expected"
"""Of a sabotage that did not come to what it names."""
NO_VERDICT = (HARNESS, ENDED_EARLY, UNREADABLE)
DECIDED = ("pass", "refuted", "inconclusive")
"""Of a claim: a verdict that says something."""
SKIPPED = "skipped"
"""Of a test that skipped itself after its trial had begun."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """``outcome`` is a verdict's (pass, refuted …) or one of the words above; ``why`` a sentence.

    A sabotage that came to what it names is a pass; ``expected`` says what that was: ``refuted`` or ``inconclusive``.
    """

    outcome: str
    why: str
    expected: str = ""
