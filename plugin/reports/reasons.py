"""What decided a trial, for readers who know none of our names: a sentence, and below it each thing that decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plugin.counts import number_of
from plugin.judge.conditions import KNOWN_CONDITIONS, advice
from plugin.judge.decide import ALWAYS, CLOCKS, UNJUDGED, needed
from plugin.judge.excuses import EARLIER, EXCUSES
from plugin.judge.metrics import KNOWN_METRICS
from plugin.reports.stored_run import StoredTrial
from plugin.reports.text import capital
from plugin.result import ENDED_EARLY, NOT_AS_EXPECTED
from plugin.trial_result import ended_early


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """A check or a condition of the evidence that decided: its name, what it means, what was found, and examples."""

    name: str
    meaning: str = ""
    text: str = ""
    examples: tuple[str, ...] = ()


def decided(trial: StoredTrial) -> tuple[str, Sequence[Point]]:
    """The sentence, and the points; none of a pass."""
    outcome, why, expected = trial.result.outcome, trial.result.why, trial.result.expected
    if trial.verdict is None:
        return why, ()
    needs = trial.claim.needs if trial.claim else trial.described.get("needs", ())
    missing = _missing(trial.verdict, needs, advise=outcome != ENDED_EARLY)
    if outcome == ENDED_EARLY:
        return f"{capital(ended_early(trial.events))}. Nothing was decided.", missing
    if outcome == "inconclusive" and missing:
        count, all_ = len(missing), len(trial.verdict["conditions"])
        told = f"{count} of {number_of(all_, 'conditions')} {'is' if count == 1 else 'are'} not met"
        return f"The evidence is not good enough to decide: {told}.", missing
    measured = _measured(trial)
    if outcome in ("refuted", "inconclusive", NOT_AS_EXPECTED) or expected == "refuted":
        wanted = "inconclusive" if outcome == "inconclusive" else "refuted"
        decisive = [r for r in trial.verdict["results"] if r["outcome"] == wanted]
        words = [measured[name] for r in decisive if (name := r["check"]["metric"]) in measured]
        points = [_point(r, measured.get(r["check"]["metric"], "")) for r in decisive]
        if words and len(words) == len(decisive):
            points = [replace(point, text="") for point in points]  # it stands in the sentence
            why = ("refuted, as it must be: " if expected else "") + "; ".join(dict.fromkeys(words))
        return why, points
    if outcome == "pass" and measured:
        return "; ".join([*dict.fromkeys(measured.values()), why]), ()
    return why, ()


def _measured(trial: StoredTrial) -> dict[str, str]:
    """What the metrics that have a limit came to, as workloads say it, each in one sentence without its full stop."""
    results = trial.verdict["results"] if trial.verdict else ()
    limited = {r["check"]["metric"] for r in results if r["check"]["limit"] is not None}
    every = [(metric, words) for section in trial.sections.values() for metric, words in section.told.items()]
    return {metric: words for metric, words in every if metric in limited}


def meaning(metric: str) -> str:
    """What a metric of the judge's own is; nothing of one that a test records."""
    known = KNOWN_METRICS.get(metric)
    return known.description if known else ""


def _missing(verdict: Mapping[str, Any], needs: Sequence[str], *, advise: bool) -> list[Point]:
    """The conditions for want of which nothing was decided; not those that only a reported check asks for.

    ``needs``: those of the claim.
    """
    judged = (result["check"] for result in verdict["results"] if result["outcome"] not in UNJUDGED)
    asked = {*ALWAYS, *EXCUSES, *EARLIER, *CLOCKS, *needs}
    asked.update(*(needed(check["metric"], check.get("needs", ())) for check in judged))
    unmet = [condition for condition in verdict["conditions"] if not condition["met"]]
    found = []
    for condition in [condition for condition in unmet if condition["name"] in asked] or unmet:
        name = condition["name"]
        known = KNOWN_CONDITIONS.get(name)
        text = f"{condition['why']}." + (f" To change: {advice(name)}." if advise else "")
        found.append(Point(name=name, meaning=known.description if known else "", text=text))
    return found


def _point(result: Mapping[str, Any], told: str = "") -> Point:
    measured = result["measurement"]
    metric = result["check"]["metric"]
    return Point(
        name=metric, meaning=meaning(metric), text=told or measured["note"], examples=tuple(measured["examples"])
    )
