"""What decided an arm, as people read it who know none of our names: a sentence, and below it each thing that decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plugin.judge.conditions import KNOWN_CONDITIONS, advice
from plugin.judge.metrics import KNOWN_METRICS
from plugin.reports.stored import ENDED_EARLY, NOT_RED, StoredArm


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """A check or a condition of the evidence that decided: its name, what it means, what was found, and examples."""

    name: str
    meaning: str = ""
    text: str = ""
    examples: tuple[str, ...] = ()


def decided(arm: StoredArm) -> tuple[str, Sequence[Point]]:
    """The sentence, and the points; none of a pass."""
    outcome, why = arm.concluded
    if arm.verdict is None:
        return why, ()
    missing = _missing(arm.verdict, advise=outcome != ENDED_EARLY)
    if outcome == ENDED_EARLY:
        return f"{_capital(arm.ended)}. Nothing was decided.", missing
    if outcome == "inconclusive" and missing:
        count, all_ = len(missing), len(arm.verdict["conditions"])
        told = f"{count} of {all_} conditions {'is' if count == 1 else 'are'} not met"
        return f"The evidence is not good enough to decide: {told}.", missing
    if outcome in ("fail", "inconclusive", NOT_RED) or arm.red:
        wanted = "inconclusive" if outcome == "inconclusive" else "fail"
        return why, [_point(r) for r in arm.verdict["results"] if r["outcome"] == wanted]
    return why, ()


def meaning(metric: str) -> str:
    """What a metric of the judge's own is; nothing of one that a test records."""
    known = KNOWN_METRICS.get(metric)
    return known.description if known else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _missing(verdict: Mapping[str, Any], *, advise: bool) -> list[Point]:
    """The conditions for want of which nothing was decided. (Those that only a reported check asks for are told with it.)"""
    unmet = [condition for condition in verdict["conditions"] if not condition["met"]]
    named = [condition for condition in unmet if f"{condition['name']} is not met" in verdict["why"]]
    found = []
    for condition in named or unmet:
        name = condition["name"]
        known = KNOWN_CONDITIONS.get(name)
        text = f"{condition['why']}." + (f" To change: {advice(name)}." if advise else "")
        found.append(Point(name=name, meaning=known.description if known else "", text=text))
    return found


def _point(result: Mapping[str, Any]) -> Point:
    measured = result["measurement"]
    metric = result["check"]["metric"]
    return Point(
        name=metric, meaning=meaning(metric), text=measured["note"], examples=tuple(measured["examples"])
    )
