"""What was done in a trial and how it was judged, as Allure's steps."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from clusters.events import FaultBegin, NodeDeath
from plugin.counts import number_of
from plugin.evidence.events import Errored, Event, seen
from plugin.judge.moments import seconds, zero_of
from plugin.reports.bands import Band
from plugin.reports.reasons import meaning
from plugin.reports.section import Step
from plugin.reports.stored_run import StoredTrial
from plugin.reports.text import limit_text, measured_text, word
from plugin.result import ENDED_EARLY, HARNESS, NOT_AS_EXPECTED
from plugin.trial_result import ended_early
from plugin.workloads import WORKLOADS

STATUS: Mapping[str, str] = {
    "pass": "passed", "refuted": "failed", NOT_AS_EXPECTED: "failed", "not evaluated": "skipped", "skipped": "skipped",
    "reported": "passed",
}  # fmt: skip
"""Allure's word for an outcome; for every other one (inconclusive, harness, ended early …) it is ``broken``: nothing
was learnt."""
MOST_EVENTS = 40  # events shown below one phase; the attached evidence has all
MARKS = {"S": "S: printed in the source", "D": "D: derived from the source", "R": "R: our own choice"}
PHASES: Mapping[str, str] = {
    "provision": "Provision: start the nodes",
    "disturb": "Disturb",
    "heal": "Heal: undo it and wait until the cluster is whole",
    "load, healed": "Load: write on, healed",
}


def steps_of(trial: StoredTrial, began_ms: int) -> list[Step]:
    """The phases of the test with what was done in each, then each condition of the evidence and each check."""
    phases = trial.series.phases if trial.series else ()
    steps = [_phase(band, trial.events, began_ms) for band in phases]
    shown = [section.steps(began_ms) for section in trial.sections.values() if section.steps]
    if shown:
        # A plan is followed in those phases; what a workload shows stands in their place.
        kept = steps if trial.series and trial.series.swapping else []
        steps = [*kept, *(step for each in shown for step in each)]
    if steps and trial.result.outcome in (HARNESS, ENDED_EARLY) and ended_early(trial.events):
        steps[-1] = replace(steps[-1], name=f"{steps[-1].name} – the evidence ends here", status="broken")
    if trial.verdict:
        stop = began_ms + trial.end // 1000
        steps += [_evidence(trial.verdict, stop), _checks(trial, trial.verdict, stop)]
    return steps


def _phase(band: Band, events: Sequence[Event], began_ms: int) -> Step:
    at, until = band.begin, band.end
    inside = [event for event in events if at <= event.t / 1e6 < until or event.t / 1e6 == at == until]
    kinds = {f"{begin.fault.replace('_', ' ')} {', '.join(begin.nodes)}": None for _, begin in seen(inside, FaultBegin)}
    own = next((each.phases[band.name] for each in WORKLOADS.values() if band.name in each.phases), None)
    name = f"{band.name.capitalize()}: {own[-1]}" if own else PHASES.get(band.name, band.name)
    name += f": {'; '.join(kinds)}" if kinds else ""
    zero = zero_of(events)
    shown = tuple(event_step(event, began_ms, zero) for event in inside[:MOST_EVENTS])
    if len(inside) > MOST_EVENTS:
        more = f"… {number_of(len(inside) - MOST_EVENTS, 'more events')}, all in the evidence"
        shown += (replace(shown[-1], name=more, parameters={}),)
    begin, end = (began_ms + int(t * 1000) for t in (band.begin, band.end))
    return Step(name=name, status="passed", start=begin, stop=end, steps=shown)


def event_step(event: Event, began_ms: int, zero: int) -> Step:
    """An event with its facts; its time counts from the second ``zero``."""
    at = began_ms + event.t // 1000
    facts = {str(name): _short(value) for name, value in event.data.items()}
    status = "broken" if isinstance(event.what, Errored | NodeDeath) else "passed"
    return Step(name=f"{seconds(event.t, zero)}  {event.name}", status=status, start=at, stop=at, parameters=facts)


def _short(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= 300 else f"{text[:300]}…"


def _evidence(verdict: Mapping[str, Any], at: int) -> Step:
    """Whether the evidence is good enough to say anything."""
    conditions = verdict["conditions"]
    steps = tuple(
        Step(
            name=f"{condition['name'].replace('_', ' ')}: {condition['why']}",
            status="passed" if condition["met"] else "broken",
            start=at,
            stop=at,
        )
        for condition in conditions
    )
    met = sum(bool(condition["met"]) for condition in conditions)
    name = f"Is the evidence good enough? {met} of {number_of(len(conditions), 'conditions')} met"
    return Step(name=name, status="passed" if met == len(conditions) else "broken", start=at, stop=at, steps=steps)


def _checks(trial: StoredTrial, verdict: Mapping[str, Any], at: int) -> Step:
    outcomes = [str(result["outcome"]) for result in verdict["results"]]
    counts = {word(o).lower(): outcomes.count(o) for o in dict.fromkeys(outcomes)}
    steps = tuple(_check(result, at) for result in verdict["results"])
    status = next((s for s in ("failed", "broken") if any(step.status == s for step in steps)), "passed")
    told = ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
    as_it_must = trial.sabotage and status == "failed" and trial.must_be == "refuted"
    expected = " (a sabotage: refuted is what it must be)" if as_it_must else ""
    return Step(name=f"Checks: {told}{expected}", status=status, start=at, stop=at, steps=steps)


def _check(result: Mapping[str, Any], at: int) -> Step:
    check, measured, outcome = result["check"], result["measurement"], str(result["outcome"])
    value, limit = measured_text(result), limit_text(check) or "none"
    told = "reported" if outcome == "reported" else f"must be {limit} – {word(outcome)}"
    facts = {
        "measured": value,
        "limit": limit,
        "kind": check["kind"],
        "mark": MARKS.get(check["mark"], check["mark"]),
        "source": check["source"],
        "meaning": meaning(check["metric"]),
        "why": result["why"],
        "note": measured["note"],
        **{f"example {index}": text for index, text in enumerate(measured["examples"], 1)},
    }
    return Step(
        name=f"{check['metric']}: {value}, {told}",
        status=STATUS.get(outcome, "broken"),
        start=at,
        stop=at,
        parameters={name: str(text) for name, text in facts.items() if text},
    )
