"""What a trial came to, by its verdict and by how its test ended: worked out once, told the same by every report."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from msgspec import ValidationError, convert

from plugin.evidence.events import Errored, Event, SabotageExpected, SabotageUnexpected, Skipped, TrialEnd, seen
from plugin.evidence.redaction import redacted_json
from plugin.evidence.store import RESULT, stored_object
from plugin.judge.model import Failure
from plugin.result import BAD_INPUT, ENDED_EARLY, HARNESS, NOT_AS_EXPECTED, SKIPPED, UNREADABLE, Result


def stored_result(directory: Path) -> Result | None:
    """The result stored with a trial, without what looks like a secret; ``None`` where there is none, or no such."""
    try:
        return convert(redacted_json(stored_object(directory / RESULT)), Result)
    except ValidationError:
        return None


def result_of(
    *, sabotage: bool, verdict: Mapping[str, Any] | None, events: Sequence[Event], problem: str = ""
) -> Result:
    """The result of a trial with this verdict, as it is stored, and these events.

    ``problem``: why its evidence cannot be read.

    A test that failed by itself has no verdict that counts, unless it is refuted; nor has one at which the judge
    failed. A verdict on half a test is none, unless what was lost by then refutes the claim. What did not come in time
    while the machine had nothing left, or other work had it, is no failure, nor is a lost load generator: of that the
    verdict tells.
    """
    decided = str(verdict["outcome"]) if verdict else ""
    errors = [error for _, error in seen(events, Errored) if True not in (error.taken, error.generator)]
    if errors and (sabotage or decided != "refuted"):
        bad = any(error.bad_input for error in errors)
        return Result(outcome=BAD_INPUT if bad else HARNESS, why=_told(errors))
    if (failures := _failures(verdict)) and (sabotage or decided != "refuted"):
        return Result(outcome=HARNESS, why=f"{'; '.join(failures)}; please report it with the trial")
    if (skips := [skip for _, skip in seen(events, Skipped)]) and decided != "refuted":
        return Result(outcome=SKIPPED, why=_told(skips))
    if unexpected := [said for _, said in seen(events, SabotageUnexpected)]:
        return Result(outcome=NOT_AS_EXPECTED, why=_told(unexpected))
    if verdict is None:
        last = events[-1].name if events else "nothing"
        ended = "was not judged" if seen(events[-1:], TrialEnd) else f"ended early, after {last}"
        return Result(
            outcome=UNREADABLE if problem else ENDED_EARLY, why=problem or f"the run {ended}: there is no verdict"
        )
    why = str(verdict["why"])
    if (early := ended_early(events)) and (sabotage or decided == "inconclusive"):
        return Result(outcome=ENDED_EARLY, why=f"{early}. {why}")
    if not sabotage:
        return Result(outcome=decided, why=why)
    expected = _expected(verdict, events)
    return Result(
        outcome="pass" if expected else NOT_AS_EXPECTED,
        why=f"{expected}, as it must be: {why}" if expected else why,
        expected=expected,
    )


def _failures(verdict: Mapping[str, Any] | None) -> list[str]:
    """Where the judge itself failed, in words."""
    try:
        return [str(failure) for failure in convert((verdict or {}).get("failures", ()), tuple[Failure, ...])]
    except ValidationError:
        return ["the stored verdict does not say where the judge failed"]


def must_be(events: Sequence[Event]) -> str:
    """What a sabotage is expected to be by what it recorded; both endings where it ended before it said which."""
    asked = [expected for _, expected in seen(events, SabotageExpected)]
    return ("inconclusive" if asked[-1].conditions else "refuted") if asked else "refuted, or inconclusive"


def refuted_as_named(refuted: AbstractSet[str], metrics: Sequence[str], either: Sequence[str]) -> bool:
    """Whether a sabotage refuted each of these metrics, and one of ``either`` where it names some; it names any."""
    if not (metrics or either):
        return False
    return refuted >= set(metrics) and (not either or not refuted.isdisjoint(either))


def ended_early(events: Sequence[Event]) -> str:
    """That a test ended before its end, and after which event; empty where it did not."""
    if seen(events, TrialEnd):
        return ""
    last = f" after {events[-1].name}" if events else ""
    return f"the test ended early{last}; everything up to there is shown"


def _told(events: Sequence[Errored | Skipped | SabotageUnexpected]) -> str:
    return "; ".join(event.what for event in events)


def _expected(verdict: Mapping[str, Any], events: Sequence[Event]) -> str:
    """What a sabotage names and its verdict is; empty where it differs.

    One that names nothing came to nothing: it is a claim's trial that somebody calls a sabotage.
    """
    asked = [expected for _, expected in seen(events, SabotageExpected)]
    named = asked[-1] if asked else SabotageExpected()
    conditions, may = (set(names or ()) for names in (named.conditions, named.may))
    if verdict["outcome"] == "refuted":
        failed = {r["check"]["metric"] for r in verdict["results"] if r["outcome"] == "refuted"}
        return "refuted" if refuted_as_named(failed, named.metrics or (), named.either or ()) else ""
    unmet = {condition["name"] for condition in verdict["conditions"] if not condition["met"]}
    met = verdict["outcome"] == "inconclusive" and conditions and conditions <= unmet <= conditions | may
    return "inconclusive" if met else ""
