"""What the hooks do: one session, from its settings to its exit status."""

import json
import os
import sys
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from clusters.errors import BadInput, NodeDied
from plugin import options, selection
from plugin import run as runs
from plugin.errors import Inconclusive, Refuted
from plugin.evidence.load import events_of
from plugin.evidence.records import SKIPPED
from plugin.evidence.redaction import redacted
from plugin.evidence.store import ARM_FILE, record, stored_object, stored_verdict, write_json
from plugin.evidence.store import RESULT as RESULT_FILE
from plugin.judge.model import Outcome
from plugin.reports.progress import Ticker
from plugin.result import (
    BAD_INPUT,
    NO_VERDICT,
    NOT_AS_EXPECTED,
    UNEXPECTED,
    Result,
    as_stored,
    result_of,
)
from plugin.status import exit_status

PROPERTY = "roachproof"
"""Name of the user property of a report that carries our outcome, for tools that read JUnit XML or reports."""

RESULT: pytest.StashKey[Result] = pytest.StashKey()
"""What an item came to by its exceptions, the worst of its phases so far; in the end what its trial came to."""

DECIDED = ("pass", "fail", "inconclusive")
WORST = ("bad input", "fail", "harness", "inconclusive", "skipped", "not evaluated")


@dataclass(frozen=True, kw_only=True, slots=True)
class TestOutcome:
    """How one test of a claim (or a sabotage of it) came out."""

    __test__ = False

    nodeid: str
    claim: str
    sabotage: bool
    result: Result
    arm: Path | None


@dataclass(kw_only=True)
class Session:
    """What was heard of the session's tests."""

    outcomes: list[TestOutcome] = field(default_factory=list)
    plain: Counter[str] = field(default_factory=Counter)
    """How tests without a claim came out: ``pass``, ``fail``, or what they said of themselves (``say``)."""
    refusals: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    ticker: Ticker | None = None
    page: str = ""
    """Where the page of this session is, or why there is none."""


KEY: pytest.StashKey[Session] = pytest.StashKey()


def configure(config: pytest.Config) -> None:
    """Read and check everything that can be checked before a test is collected."""
    for marker in selection.MARKERS:
        config.addinivalue_line("markers", marker)
    config.stash[KEY] = Session()
    options.choose(config)
    try:
        run = runs.open_run(config)
        if run.controller:
            run.check()
        _ = run.catalogue, run.profile, run.topology
    except BadInput as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[runs.KEY] = run
    wanted = getattr(config.option, "allure_report_dir", None) or run.settings.strict_suite
    if wanted and config.pluginmanager.hasplugin("allure_pytest"):
        from plugin.reports import allure_live

        allure_live.prepare(config, run)
    if run.controller and not config.option.collectonly:
        # Standard output as it is now: once a test runs, pytest has put its capture in between.
        ticker = Ticker(
            run.settings.run_dir / "progress", os.dup(sys.__stdout__.fileno() if sys.__stdout__ else 2)
        )
        config.stash[KEY].ticker = ticker
        run.tell = ticker.hear


def announce(config: pytest.Config) -> None:
    """Look for what was asked for by name, and say first of all that a run is one of the control.

    ``auto`` decides here which it is, for workers and all.
    """
    run = runs.of(config)
    if ticker := config.stash[KEY].ticker:
        ticker.go_live(config)
    if not run.controller or not run.looks_early or config.option.collectonly:
        return
    try:
        for target in run.targets:
            run.engine(target)
    except BadInput as error:
        raise pytest.UsageError(str(error)) from error
    run.say("")
    if run.control_notice:
        _write(config, run.control_notice)


def unconfigure(config: pytest.Config) -> None:
    """Stop showing progress, and say last of all that the run was one of the control."""
    session, run = config.stash.get(KEY, None), config.stash.get(runs.KEY, None)
    if session and session.ticker:
        session.ticker.close()
        session.ticker = None
    if run and run.controller and run.control_notice:
        _write(config, run.control_notice)


def instruct_worker(node: Any) -> None:
    """Tell a pytest-xdist worker what the controller decided."""
    run = runs.of(node.config)
    node.workerinput[PROPERTY] = {"run_dir": str(run.settings.run_dir), "seed": run.settings.seed}


def refuse(config: pytest.Config, items: list[pytest.Item], error: BadInput) -> None:
    """End the session with status 4; a worker runs nothing and lets its controller say why."""
    items.clear()  # nothing is looked for on behalf of tests that will not run
    if runs.of(config).controller:
        raise pytest.UsageError(str(error)) from error
    config.workeroutput[PROPERTY] = str(error)  # type: ignore[attr-defined]


def parametrize(metafunc: pytest.Metafunc) -> None:
    """See ``selection.parametrize``."""
    try:
        selection.parametrize(metafunc, runs.of(metafunc.config))
    except BadInput:
        return  # said with file and line by ``select``, which sees the same test


def named_without_secrets(metafunc: pytest.Metafunc) -> None:
    """A parameter's value is part of its test's name, which every report and file of the run shows."""
    from plugin.reports.withheld import nameless

    with suppress(BadInput):  # said with file and line by ``select``, which sees the same test
        if selection.claim_id(metafunc.definition)[0] is not None:
            metafunc._calls[:] = nameless(metafunc._calls)


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """See ``selection.select``."""
    try:
        selection.select(items, runs.of(config), config)
    except BadInput as error:
        refuse(config, items, error)


def prepare(session: pytest.Session) -> None:
    """Look for every database that will be needed, before any cluster starts."""
    run = runs.of(session.config)
    option = session.config.option
    if (
        option.collectonly
        or run.settings.dry_run
        or not any(selection.claim_id(item)[0] for item in session.items)
    ):
        return
    try:
        run.begin()
        if not any(map(selection.needs_engine, session.items)):
            return
        for target in run.targets:
            run.engine(target)
    except BadInput as error:
        refuse(session.config, session.items, error)


def introduce(config: pytest.Config) -> None:
    """Say which databases were found, unless the header did; of several workers the first says it."""
    run = runs.of(config)
    if not run.found or run.looks_early:
        return
    if run.controller:
        _write(config, f"testing {run.found}")
    elif run.worker == "gw0":
        run.say(f"testing {run.found}")


def judging_death(item: pytest.Item) -> Generator[None, Any, Any]:
    """A phase of a test. A claim's that ends because a node did is judged: what is there refutes it (``Refuted``, with the table)."""
    try:
        return (yield)
    except BaseException as error:
        id_, sabotage = selection.claim_id(item)
        arm = dict(item.user_properties).get("arm")
        if id_ is None or sabotage or arm is None or not _holds(error, NodeDied):
            raise
        from plugin.replay import conclude
        from plugin.reports.terminal import as_table

        record(Path(str(arm)), "arm.end")
        verdict = conclude(Path(str(arm)), runs.of(item.config).catalogue)
        if verdict.outcome is Outcome.FAIL:
            raise Refuted("\n" + as_table(verdict)) from error
        raise


def _holds(error: BaseException, kind: type[BaseException]) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(_holds(e, kind) for e in error.exceptions)
    return isinstance(error, kind)


def classify(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Attach our outcome to the report of a claim's test, and take secrets out of it."""
    from plugin.reports.withheld import withhold

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
        wanted, ending = ("red", "judge.refuted('…')") if sabotage else ("verdict", "judge.decide()")
        if (wanted, "expected" if sabotage else "pass") not in item.user_properties:
            # Nothing passes because nothing was judged.
            report.outcome, outcome = "failed", "harness"
            why = f"the test of claim {id_} ended without a verdict; end it with: assert {ending}"
            report.longrepr = why
    withhold(report, call)
    arm = dict(item.user_properties).get("arm")
    if arm and why:
        _record(Path(str(arm)), outcome, why, sabotage=sabotage)
    if outcome and item.stash.get(RESULT, Result(outcome="", why="")).outcome != "fail":
        item.stash[RESULT] = Result(outcome=outcome, why=why)
    if report.when == "teardown":
        conclude(item, report, id_, sabotage=sabotage)
    elif outcome:
        told = {"claim": id_, "sabotage": sabotage, "outcome": outcome, "why": why}
        report.user_properties.append((PROPERTY, told))


def _record(arm: Path, outcome: str, why: str, *, sabotage: bool) -> None:
    """Record why a test ended otherwise than by its verdict."""
    if outcome == "skipped":
        record(arm, SKIPPED, what=why)
    elif sabotage and outcome == "fail":
        record(arm, UNEXPECTED, what=next(iter(why.splitlines()), ""))
    elif outcome == BAD_INPUT:
        record(arm, "error", what=why, bad_input=True)
    elif outcome != "not evaluated":
        record(arm, "error", what=why)


def conclude(item: pytest.Item, report: pytest.TestReport, id_: str, *, sabotage: bool) -> None:
    """Work out what the test's trial came to, store it with the evidence, and put it among the report's properties.

    JUnit XML shows those of a test's end: the claim, its verdict and its checks, too.
    """
    from plugin.reports.properties import properties

    arm = dict(item.user_properties).get("arm")
    verdict: Mapping[str, Any] | None = None
    described: Mapping[str, Any] = {}
    result = item.stash.get(RESULT, Result(outcome="", why=""))
    if arm:
        directory = Path(str(arm))
        verdict, described = stored_verdict(directory), stored_object(directory / ARM_FILE) or {}
        result = result_of(sabotage=sabotage, verdict=verdict, events=events_of(directory))
        write_json(directory / RESULT_FILE, as_stored(result))
    elif sabotage and result.outcome == "fail":
        result = Result(outcome=NOT_AS_EXPECTED, why=result.why)
    item.stash[RESULT] = result
    told = {"claim": id_, "sabotage": sabotage, **as_stored(result)}
    report.user_properties[:] = [p for p in report.user_properties if p[0] not in ("verdict", "red")]
    report.user_properties.append((PROPERTY, told))
    report.user_properties += properties(
        id_, sabotage=sabotage, result=result, verdict=verdict, described=described
    )


def _outcome_of(error: BaseException, *, sabotage: bool) -> tuple[str, str]:
    """The outcome that an exception stands for, and its text. Of a group of them the worst counts.

    Nothing but the judge refutes a claim: an assertion of the test's own is no check of the catalogue, and a replay would
    not know it. ``sabotage``: the exception ended the body of one, which fails by any assertion.
    """
    if isinstance(error, BaseExceptionGroup):
        told = (_outcome_of(e, sabotage=sabotage) for e in error.exceptions)
        return min(told, key=lambda each: WORST.index(each[0]))
    if isinstance(error, pytest.skip.Exception):
        # Only what cannot be evaluated here is excused; a test that somebody skipped leaves its claim undecided.
        reason = str(error.msg).removeprefix("not evaluated: ")
        return ("not evaluated" if reason != error.msg else "skipped"), reason
    if isinstance(error, Refuted):
        return "fail", ""
    if isinstance(error, Inconclusive):
        return "inconclusive", ""
    if isinstance(error, BadInput):
        return "bad input", str(error)
    if sabotage and isinstance(error, AssertionError | pytest.fail.Exception):
        return "fail", str(error)
    return "harness", f"{type(error).__name__}: {error}"


def remember(config: pytest.Config, report: pytest.TestReport) -> None:
    """Remember what a test came to."""
    session = config.stash[KEY]
    said, properties = said_of(report), dict(report.user_properties)
    if said is None:
        session.plain["pass"] += report.when == "call" and report.passed
        session.plain["fail"] += report.failed
        return
    if not said["claim"]:
        session.plain[said["outcome"]] += 1
        return
    if report.when in ("setup", "call"):
        return  # its end is heard of, too; of a worker that died only that
    session.outcomes.append(
        TestOutcome(
            nodeid=report.nodeid,
            claim=str(said["claim"]),
            sabotage=bool(said["sabotage"]),
            result=Result(outcome=said["outcome"], why=said["why"], expected=said["expected"]),
            arm=Path(str(properties["arm"])) if "arm" in properties else None,
        )
    )


def say(report: pytest.TestReport, outcome: str, *, why: str = "") -> None:
    """Say in the report of a test without a claim how it came out: ``harness``, which refutes nothing, or ``not evaluated``."""
    report.user_properties.append(
        (PROPERTY, {"claim": "", "sabotage": False, "outcome": outcome, "why": why})
    )


def said_of(report: pytest.TestReport) -> Any:
    """What was said of how a test came out: ``claim``, ``sabotage``, ``outcome``, ``why``; ``None`` of an ordinary one."""
    return dict(report.user_properties).get(PROPERTY)


def nothing_decided(config: pytest.Config) -> bool:
    """Whether there were tests without a claim, and all that they came to is that nothing could be evaluated."""
    plain = config.stash[KEY].plain
    return bool(plain["not evaluated"]) and not plain["pass"]


def worker_crashed(config: pytest.Config, crashitem: str, report: pytest.TestReport) -> None:
    """Mark the report of a claim's test whose worker died: the harness failed."""
    from plugin.reports.properties import properties

    for arm in sorted((runs.of(config).settings.run_dir / "claims").glob(f"*/*/{ARM_FILE}")):
        described = json.loads(arm.read_text(encoding="utf-8"))
        if described["test"] == redacted(crashitem):
            claim, sabotage, home = str(described["claim"]), bool(described["sabotage"]), arm.parent
            record(home, "error", what="the worker that ran it died; the evidence ends there")
            result = result_of(sabotage=sabotage, verdict=stored_verdict(home), events=events_of(home))
            write_json(home / RESULT_FILE, as_stored(result))
            told = {"claim": claim, "sabotage": sabotage, **as_stored(result)}
            report.user_properties += [("arm", str(home)), (PROPERTY, told)]
            # pytest writes a test's properties at its end, which this one never reaches.
            written = (p for p in config.pluginmanager.get_plugins() if type(p).__name__ == "LogXML")
            for xml in written:
                for name, value in properties(
                    claim, sabotage=sabotage, result=result, verdict=None, described=described
                ):
                    xml.node_reporter(report).add_property(name, value)


def hear_worker(node: Any, error: object) -> None:
    """Hear from a worker that ended what input it refused."""
    if ticker := node.config.stash[KEY].ticker:
        ticker.hear({"stage": ""}, worker=node.gateway.id)
    message = getattr(node, "workeroutput", {}).get(PROPERTY)
    if message and message not in (refusals := node.config.stash[KEY].refusals):
        refusals.append(message)


def finish(session: pytest.Session) -> None:
    """Set the session's exit status: the same with and without workers."""
    config = session.config
    run = config.stash.get(runs.KEY, None)
    if run is None or not run.controller or run.settings.dry_run or config.option.collectonly:
        return
    heard = config.stash[KEY]
    if heard.ticker:
        heard.ticker.end_live()
    claims = [o for o in heard.outcomes if not o.sabotage]
    decided = [o for o in claims if o.result.outcome in DECIDED]
    if (claims or run.settings.strict_suite) and not heard.refusals:
        skipped = {o.claim for o in claims if o.result.outcome == "skipped"}
        left = {o.claim for o in claims if o.result.outcome != "not evaluated"} - {o.claim for o in decided}
        arms = [(o.claim, o.arm) for o in decided if o.arm]
        heard.undecided = (
            selection.undecided(arms, run, skipped=skipped)
            if run.settings.strict_suite
            else sorted(left | skipped)
        )
    outcomes = {o.result.outcome for o in heard.outcomes}
    session.exitstatus = exit_status(
        int(session.exitstatus),
        bad_input=bool(heard.refusals) or BAD_INPUT in outcomes,
        refuted=heard.plain["fail"] > 0 or bool(outcomes & {"fail", NOT_AS_EXPECTED}),
        harness=heard.plain["harness"] > 0 or bool(outcomes & {*NO_VERDICT}),
        inconclusive="inconclusive" in outcomes
        or (bool(claims) and not decided)
        or (nothing_decided(config) and not claims),
        undecided=heard.undecided,
        claims_collected=bool(claims),
        gate=run.settings.strict_suite,
    )
    if (run.settings.run_dir / runs.RUN_FILE).exists():
        from plugin.reports.write import page_of_run

        heard.page = page_of_run(run)


def _write(config: pytest.Config, line: str) -> None:
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(line, bold=True)
        reporter.flush()  # progress goes another way and must not overtake it
