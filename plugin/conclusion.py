"""How a test ends: its report gets the outcome, and the evidence of its trial the result."""

from collections.abc import Generator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from clusters.errors import BadInput, CommandTimedOut, NodeDied, TimedOut
from clusters.events import Happened
from clusters.generators import GeneratorLost
from clusters.sql import SqlError
from plugin import run as runs
from plugin import selection
from plugin.errors import Inconclusive, Refuted
from plugin.evidence.events import Errored, SabotageUnexpected, Skipped, TrialEnd
from plugin.evidence.load import describe_trial, events_of, load_trial
from plugin.evidence.redaction import redacted
from plugin.evidence.store import RESULT as RESULT_FILE
from plugin.evidence.store import TRIAL_FILE, not_written, record, stored_object, stored_verdict, trials_in, write_json
from plugin.judge.model import Outcome
from plugin.outcomes import tell, trial_of
from plugin.reports.properties import properties
from plugin.result import BAD_INPUT, HARNESS, NOT_AS_EXPECTED, Result
from plugin.trial_result import result_of

RESULT: pytest.StashKey[Result] = pytest.StashKey()
"""What an item came to by its exceptions, the worst of its phases so far; in the end what its trial came to."""

UNWRITTEN: pytest.StashKey[str] = pytest.StashKey()
"""What of an item's end could not be recorded, and why."""

WORST = ("bad input", "refuted", NOT_AS_EXPECTED, "harness", "inconclusive", "skipped", "not evaluated")


def judging_early_end(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run a phase of a test. A claim's is judged by what there is where it ends because a node did: ``Refuted``.

    So it is where something did not come in time while the machine had nothing left, or other work had it, and where a
    load generator was lost; ``Inconclusive`` if it is not refuted, as by a node of an old version that is compared with
    a new one.
    """
    try:
        return (yield)
    except BaseException as error:
        id_, sabotage = selection.claim_id(item)
        trial = trial_of(item)
        if id_ is None or sabotage or trial is None:
            raise
        died, lacking, lost = _has(error, NodeDied), _machine_lacking(error, trial), _only(error, GeneratorLost)
        if not died and not lacking and not lost:
            raise
        from plugin.replay import conclude
        from plugin.reports.terminal import as_table

        told = _outcome_of(error, sabotage=False)[1]
        if lacking:
            record(trial, Errored(what=f"{told}: {lacking}", taken=True))
        if lost:
            record(trial, Errored(what=told, generator=True))
        record(trial, TrialEnd())
        verdict = conclude(trial, runs.of(item.config).catalogue)
        if verdict.outcome is Outcome.REFUTED:
            raise Refuted("\n" + as_table(verdict)) from error
        if lacking or lost or _only(error, NodeDied):
            raise Inconclusive("\n" + as_table(verdict)) from error
        raise


def _has(error: BaseException, kind: type[Exception]) -> bool:
    """Whether it is such an error, or a group with one."""
    return bool(error.subgroup(kind)) if isinstance(error, BaseExceptionGroup) else isinstance(error, kind)


def _only(error: BaseException, kind: type[Exception]) -> bool:
    """Whether it is such an error, or a group of nothing else."""
    return error.split(kind)[1] is None if isinstance(error, BaseExceptionGroup) else isinstance(error, kind)


def _late(error: BaseException) -> bool:
    """Whether something did not come in time."""
    return isinstance(error, TimedOut | CommandTimedOut) or (isinstance(error, SqlError) and error.code == "timeout")


def _machine_lacking(error: BaseException, trial: Path) -> str:
    """What the machine lacked, where that explains why a test ended as something did not come in time; else ""."""
    whole = error.split(_late)[1] is None if isinstance(error, BaseExceptionGroup) else _late(error)
    if not whole:
        return ""
    from plugin.judge.stopping import too_late_for_the_machine

    return too_late_for_the_machine(load_trial(trial, describe_trial(trial)))


def classify(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Attach our outcome to the report of a claim's test, and take secrets out of it."""
    from plugin.reports.redacted_reports import withhold

    id_, sabotage = selection.claim_id(item)
    if id_ is None:
        return
    outcome = why = ""
    if call.excinfo is not None:
        outcome, said = _outcome_of(call.excinfo.value, sabotage=sabotage and call.when == "call")
        why = redacted(said)
        if outcome == "bad input":
            report.longrepr = why
    elif report.when == "call":
        outcome = "pass"
        wanted, ending = ("as expected", "judge.refuted('…')") if sabotage else ("pass", "judge.decide()")
        if ("verdict", wanted) not in item.user_properties:
            # Nothing passes because nothing was judged.
            report.outcome, outcome = "failed", "harness"
            why = f"the test of claim {id_} ended without a verdict; end it with: assert {ending}"
            report.longrepr = why
    withhold(report, call)
    if why and (trial := trial_of(item)) and (lost := _record(trial, outcome, why)):
        item.stash[UNWRITTEN] = lost
    if outcome and item.stash.get(RESULT, Result(outcome="", why="")).outcome not in ("refuted", NOT_AS_EXPECTED):
        item.stash[RESULT] = Result(outcome=outcome, why=why)
    if report.when == "teardown":
        conclude(item, report, id_, sabotage=sabotage)
    elif outcome:
        tell(report, id_, Result(outcome=outcome, why=why), sabotage=sabotage)


def _record(trial: Path, outcome: str, why: str) -> str:
    """Record why a test ended otherwise than by its verdict. Returns it, and why it could not be, where that is so."""
    what: Happened
    if outcome == "skipped":
        what = Skipped(what=why)
    elif outcome == NOT_AS_EXPECTED:
        what = SabotageUnexpected(what=next(iter(why.splitlines()), ""))
    elif outcome == "not evaluated":
        return ""
    else:
        what = Errored(what=why, bad_input=True) if outcome == BAD_INPUT else Errored(what=why)
    try:
        record(trial, what)
    except OSError as error:
        return f"{why}; {not_written(error)}"
    return ""


def conclude(item: pytest.Item, report: pytest.TestReport, id_: str, *, sabotage: bool) -> None:
    """Store what a test came to with its evidence, and put it among the properties of the report of its end."""
    result = item.stash.get(RESULT, Result(outcome="", why=""))
    report.user_properties[:] = [p for p in report.user_properties if p[0] != "verdict"]
    told: Sequence[tuple[str, str]]
    if trial := trial_of(item):
        came, (result, told) = result, concluded(trial, id_, sabotage=sabotage, unwritten=item.stash.get(UNWRITTEN, ""))
        if report.passed and (came.outcome, result.outcome) == ("pass", HARNESS):  # no phase of the test has said it
            report.outcome, report.longrepr = "failed", result.why
    else:
        told = properties(id_, sabotage=sabotage, result=result, verdict=None, described={})
    item.stash[RESULT] = result
    tell(report, id_, result, sabotage=sabotage)
    report.user_properties += told


def concluded(
    trial: Path, claim: str, *, sabotage: bool, unwritten: str = ""
) -> tuple[Result, Sequence[tuple[str, str]]]:
    """What a trial came to, stored with its evidence; and the properties that JUnit XML shows of it.

    ``unwritten``: what of its end could not be recorded. With that, or where its result cannot be stored, nothing
    passes: the machine failed.
    """
    verdict, described = stored_verdict(trial), stored_object(trial / TRIAL_FILE) or {}
    result = result_of(sabotage=sabotage, verdict=verdict, events=events_of(trial))
    try:
        write_json(trial / RESULT_FILE, asdict(result))
    except OSError as error:
        unwritten = unwritten or not_written(error)
    if unwritten and result.outcome not in ("refuted", NOT_AS_EXPECTED):
        result = Result(outcome=HARNESS, why=redacted(unwritten))
    told = properties(claim, sabotage=sabotage, result=result, verdict=verdict, described=described)
    return result, told


def _outcome_of(error: BaseException, *, sabotage: bool) -> tuple[str, str]:
    """The outcome that an exception stands for, and its text. Of a group of them the worst counts.

    Nothing but the judge refutes a claim: an assertion of the test's own is no check of the catalogue, and a replay
    would not know it. ``sabotage``: the exception ended the body of one, which fails by any assertion.
    """
    if isinstance(error, BaseExceptionGroup):
        told = (_outcome_of(e, sabotage=sabotage) for e in error.exceptions)
        return min(told, key=lambda each: WORST.index(each[0]))
    if isinstance(error, pytest.skip.Exception):
        # Only what cannot be evaluated here is excused; a test that somebody skipped leaves its claim undecided.
        reason = str(error.msg).removeprefix("not evaluated: ")
        return ("not evaluated" if reason != error.msg else "skipped"), reason
    if isinstance(error, Refuted):
        return "refuted", ""
    if isinstance(error, Inconclusive):
        return "inconclusive", ""
    if isinstance(error, BadInput):
        return "bad input", str(error)
    if sabotage and isinstance(error, AssertionError | pytest.fail.Exception):
        return NOT_AS_EXPECTED, str(error)
    return "harness", f"{type(error).__name__}: {error}"


def worker_crashed(config: pytest.Config, crashitem: str, report: pytest.TestReport) -> None:
    """Mark the report of a claim's test whose worker died: the harness failed."""
    from plugin.reports.junit import live

    for trial in trials_in(runs.of(config).settings.run_dir / "claims"):
        described = stored_object(trial / TRIAL_FILE) or {}
        if described.get("test") != redacted(crashitem):
            continue
        claim, sabotage = str(described["claim"]), bool(described["sabotage"])
        lost = _record(trial, HARNESS, "the worker that ran it died; the evidence ends there")
        result, told = concluded(trial, claim, sabotage=sabotage, unwritten=lost)
        report.user_properties.append(("trial", str(trial)))
        tell(report, claim, result, sabotage=sabotage)
        # pytest writes a test's properties at its end, which this one never reaches.
        for xml in live(config):
            for name, value in told:
                xml.node_reporter(report).add_property(name, value)
        return
    claim, sabotage = (stored_object(runs.of(config).claims_file) or {}).get(crashitem, ("", False))
    if claim:
        died = Result(outcome=HARNESS, why="the worker that ran it died before its evidence began")
        tell(report, claim, died, sabotage=sabotage)
