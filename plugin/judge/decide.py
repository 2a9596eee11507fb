"""The verdict: evidence and checks in, pass, refuted, inconclusive or not evaluated out.

Conditions come first: a measurement whose conditions are not met is neither passed nor failed. One exception: a
row that was lost, duplicated or otherwise wronged (``MetricInfo.safety``) refutes the claim as soon as the records
themselves can be relied on, however poor the rest of the evidence is; for a pass it needs everything like any other
check. And one excuse: a limit of time (``MetricInfo.timed``) that was exceeded while other work had the machine is
inconclusive, not refuted; or that is kept but for the seconds in which the machine had nothing left to give.

Where a metric or a condition raises what nobody foresaw, the others are judged all the same: they refute the claim, or
else it is not decided, and the verdict says where the judge failed (``Verdict.failures``).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from math import isfinite, isinf
from traceback import format_exception
from typing import TypeVar

from msgspec import UNSET

from plugin.counts import noun
from plugin.evidence.events import TrialEnd, seen
from plugin.judge.analysis import analysis
from plugin.judge.clocks import uncertainty_s
from plugin.judge.conditions import advice, condition, errors_by_the_end
from plugin.judge.excuses import EARLIER, EXCUSES, HOLDS, TIMES, machine_asked, machine_spent
from plugin.judge.metrics import KNOWN_METRICS, measure
from plugin.judge.model import (
    Check,
    CheckResult,
    Condition,
    Failure,
    Kind,
    Measurement,
    Outcome,
    Verdict,
)
from plugin.judge.trial import TrialEvidence

T = TypeVar("T")

ALWAYS = ("integrity", "no_errors")
"""Conditions that every pass needs, declared or not."""

PASSES = ("no_errors",)
"""Conditions that a refutation does not need where they are broken by what came after the trial's end: all its evidence
had been gathered by then."""

CLOCKS = ("clocks_read",)
"""What a check of a time rests on, where a clock was not read."""

REFUTES = ("integrity",)
"""All that a violation of safety needs to refute the claim: records that can be relied on."""

UNJUDGED = (Outcome.REPORTED, Outcome.NOT_EVALUATED)
"""Outcomes of checks that decide nothing."""


def needed(metric: str, own: Sequence[str], claim: Sequence[str] = ()) -> tuple[str, ...]:
    """All conditions a pass of a check needs: always, by its metric's nature, its own, and the claim's."""
    info = KNOWN_METRICS.get(metric)
    return tuple(dict.fromkeys([*ALWAYS, *(info.needs if info else ()), *own, *claim]))


def decide(
    evidence: TrialEvidence, checks: Sequence[Check], *, needs: Sequence[str] = (), tuned: Sequence[str] = ()
) -> Verdict:
    """The verdict on one trial.

    ``needs`` are the conditions of the claim as a whole, ``tuned`` what was set for the test's sake.

    Any refuted check refutes the claim. Otherwise any judged check that is inconclusive, or any unmet condition of the
    claim, makes it inconclusive. A claim of which nothing was judged is not evaluated, never passed; inconclusive where
    its records cannot be relied on, which do not even say which claim it is, or where its test was broken off by an
    error, which lets nothing pass.
    """
    limits = {check.metric: check.limit for check in checks if check.limit is not None}
    evidence = replace(evidence, limits=limits)  # a comparison must know its margin
    excuses = EXCUSES if _tells_of_other_work(evidence) else ()
    conditions: dict[str, Condition] = {}
    failures: list[Failure] = []

    def attempt(what: str, ask: Callable[[], T], instead: Callable[[str], T]) -> T:
        try:
            return ask()
        except Exception as error:  # a defect of one hides nothing that others find
            told = f"{type(error).__name__}: {error}"
            failures.append(Failure(what=what, error=told, traceback="".join(format_exception(error))))
            return instead(f"the judge failed ({told})")

    def unmet(names: Sequence[str]) -> list[Condition]:
        for name in names:
            if name not in conditions:
                known, unknown = partial(condition, evidence, name), partial(_unmet, name)
                conditions[name] = attempt(f"condition {name}", known, unknown)
        return [conditions[name] for name in names if not conditions[name].met]

    def judged_by(check: Check) -> CheckResult:
        what = f"metric {check.metric}"
        found = attempt(what, lambda: measure(evidence, check.metric), partial(_unmeasured, check.metric))
        if elsewhere := attempt(what, lambda: _elsewhere(evidence, check), lambda _: ""):
            return CheckResult(check=check, measurement=found, outcome=Outcome.NOT_EVALUATED, why=elsewhere)
        spent = partial(attempt, what, lambda: machine_spent(evidence, check), lambda _: "")
        must = partial(attempt, what, lambda: machine_asked(evidence, check, excuses), lambda _: excuses)
        return _judge(check, found, needs, must, forgiven, unmet, spent, apart)

    apart = uncertainty_s(evidence.events)
    forgiven = () if errors_by_the_end(evidence.events) else PASSES
    results = tuple(judged_by(check) for check in checks)
    judged = (result.check for result in results if result.outcome not in UNJUDGED)
    asked = [needed(check.metric, check.needs, needs) for check in judged]
    asked.append(
        tuple(name for name in (*EXCUSES, *EARLIER, *CLOCKS) if name in conditions)
    )  # those that were evaluated
    outcome, why = _conclude(results, unmet(tuple(dict.fromkeys([*ALWAYS, *needs, *chain.from_iterable(asked)]))))
    if failures and outcome is not Outcome.REFUTED:
        outcome, why = Outcome.INCONCLUSIVE, "; ".join(dict.fromkeys(map(str, failures)))
    return Verdict(
        claim=evidence.claim,
        outcome=outcome,
        results=results,
        conditions=tuple(conditions.values()),
        why=why,
        tuned=tuple(tuned),
        context={**evidence.context, "profile": evidence.profile, **evidence.parameters},
        failures=tuple(failures),
    )


def _tells_of_other_work(evidence: TrialEvidence) -> bool:
    """Whether what other work took was, or must have been, recorded: all trials whose end has the trailers of files."""
    ends = (end for _, end in seen(evidence.events, TrialEnd))
    recorded = any(second.others is not None for second in evidence.host)
    return recorded or bool(evidence.host_problems) or any(end.files is not UNSET for end in ends)


def _unmet(name: str, why: str) -> Condition:
    return Condition(name=name, met=False, why=why)


def _unmeasured(metric: str, why: str) -> Measurement:
    return Measurement(metric=metric, value=None, note=why)


def _elsewhere(evidence: TrialEvidence, check: Check) -> str:
    """Why there is nothing to evaluate in this evidence, as the check's metric says; empty where there is something."""
    info = KNOWN_METRICS.get(check.metric)
    return "" if check.kind is Kind.REPORT or info is None else info.elsewhere(analysis(evidence))


def _judge(
    check: Check,
    measurement: Measurement,
    needs: Sequence[str],
    must: Callable[[], Sequence[str]],
    forgiven: Sequence[str],
    unmet: Callable[[Sequence[str]], list[Condition]],
    spent: Callable[[], str],
    apart: float,
) -> CheckResult:
    """``forgiven``: what a refutation does not need; ``apart``: how exactly times can be told apart, in seconds.

    ``must``: the conditions that must be met for a limit of time to refute; ``spent``: what the machine lacked, where
    that alone explains that a limit is missed.
    """

    def result(outcome: Outcome, why: str) -> CheckResult:
        return CheckResult(check=check, measurement=measurement, outcome=outcome, why=why)

    if check.kind is Kind.REPORT:
        # Shown whatever the evidence is worth; a reader must see what it is worth.
        doubts = unmet(needed(check.metric, check.needs, needs))
        return result(Outcome.REPORTED, f"to be read with care: {_not_met(doubts)}" if doubts else "")
    if check.limit is None:
        reason = "the limit holds on other hardware only" if check.kind is Kind.PROFILE else "no limit is declared here"
        return result(Outcome.NOT_EVALUATED, reason)
    if check.comparison is None or not isfinite(check.limit):
        return result(
            Outcome.INCONCLUSIVE, f"the check cannot be judged: comparison {check.comparison}, limit {check.limit}"
        )
    value = measurement.value
    if value is None:
        return result(Outcome.INCONCLUSIVE, f"not measured: {measurement.note or 'no reason is given'}")
    if not isfinite(value):
        return result(Outcome.INCONCLUSIVE, f"measured as {value}, which is no number to judge")
    holds = HOLDS[check.comparison](value, check.limit)
    unit = f" {noun(value, check.unit)}" if check.unit else ""
    compared = f"{value:g}{unit}, must be {check.comparison} {check.limit:g}"
    if check.unit in TIMES and abs(value - check.limit) * TIMES[check.unit] < apart:
        doubt = (
            _not_met(unmet(CLOCKS)) if isinf(apart) else f"the clocks of the evidence are known to {apart:.2g} s only"
        )
        return result(Outcome.INCONCLUSIVE, f"{compared}, but {doubt}")
    info = KNOWN_METRICS.get(check.metric)
    excused = unmet(must()) if not holds and info is not None and info.timed else []
    exhausted = "" if holds or excused else spent()
    if not holds and info is not None and info.safety and not excused and not exhausted and not unmet(REFUTES):
        return result(Outcome.REFUTED, compared)
    missing = [*unmet(needed(check.metric, check.needs, needs)), *excused]
    if missing := [one for one in missing if holds or one.name not in forgiven]:
        return result(Outcome.INCONCLUSIVE, f"{compared}, but {_not_met(missing)}")
    if exhausted:
        return result(Outcome.INCONCLUSIVE, f"{compared}, but {exhausted}")
    return result(Outcome.PASS if holds else Outcome.REFUTED, compared)


def _not_met(unmet: Sequence[Condition]) -> str:
    """By name; why is said of each condition in the verdict."""
    return f"{', '.join(c.name for c in unmet)} {'is' if len(unmet) == 1 else 'are'} not met"


def _told(unmet: Sequence[Condition]) -> str:
    """Of what other work did to the machine first: the rest may follow from it, and a short line shows no more."""
    ordered = sorted(unmet, key=lambda condition: condition.name not in EXCUSES)
    return "; ".join(f"{condition.name} is not met: {condition.why}" for condition in ordered)


def _ways_out(unmet: Sequence[Condition]) -> str:
    """What to change, each once: also where one way goes on from another."""
    ways = list(dict.fromkeys(advice(condition.name) for condition in unmet))
    return "; ".join(way for way in ways if not any(other != way and other.startswith(way) for other in ways))


def _conclude(results: Sequence[CheckResult], unmet: Sequence[Condition]) -> tuple[Outcome, str]:
    judged = [r for r in results if r.outcome not in UNJUDGED]
    failed = [r for r in judged if r.outcome is Outcome.REFUTED]
    if failed:
        return Outcome.REFUTED, "; ".join(f"{r.check.metric}: {r.why}" for r in failed)
    if not judged and not any(condition.name in ALWAYS for condition in unmet):
        return (
            Outcome.NOT_EVALUATED,
            "no check of the claim can be judged here: each is only reported or has its limit elsewhere",
        )
    if unmet:
        return Outcome.INCONCLUSIVE, f"{_told(unmet)}. To change: {_ways_out(unmet)}"
    undecided = [r for r in judged if r.outcome is Outcome.INCONCLUSIVE]
    if undecided:
        return Outcome.INCONCLUSIVE, "; ".join(f"{r.check.metric}: {r.why}" for r in undecided)
    return Outcome.PASS, _passed(results, len(judged))


def _passed(results: Sequence[CheckResult], judged: int) -> str:
    """Why it is a pass, and before that of how many checks it is none: every report shows this sentence."""
    open_, shown = (sum(r.outcome is outcome for r in results) for outcome in (Outcome.NOT_EVALUATED, Outcome.REPORTED))
    told = [f"{open_} of {len(results)} checks {'was' if open_ == 1 else 'were'} {Outcome.NOT_EVALUATED}"] * bool(open_)
    told.append("the one check that was judged holds" if judged == 1 else f"all {judged} judged checks hold")
    return "; ".join([*told, *([f"{shown} more only reported"] if shown else [])])
