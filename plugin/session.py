"""What the hooks do: one session, from its settings to its exit status.

What only claims need is imported with the first of them: a session without one takes little longer than pytest.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from clusters import hidden
from clusters.errors import BadInput, HarnessError
from clusters.substrates import LOCAL, SUBSTRATES
from plugin import evaluable, options, selection
from plugin import run as runs
from plugin.evidence.redaction import hide_given, redacted
from plugin.ours import register
from plugin.outcomes import KEY, PROPERTY, Session
from plugin.result import BAD_INPUT, DECIDED, NO_VERDICT, NOT_AS_EXPECTED, SKIPPED
from plugin.status import Status, exit_status, status_told
from plugin.workloads import WORKLOADS


def configure(config: pytest.Config) -> None:
    """Read and check everything that can be checked before a test is collected."""
    config.stash[KEY] = heard = Session()
    config.pluginmanager.register(heard, "roachproof-reports")
    options.choose(config)
    hide_given(os.environ)
    hidden.heard_by(hide_given)
    try:
        run = runs.open_run(config)
        if run.controller:
            run.check()
        if run.settings.claims and not run.settings.strict_suite:
            run.take_suite()
        # What is the suite's own is read with the first claim.
        if run.settings.catalogues or run.settings.claims:
            _ = run.chosen
        if run.settings.profile != options.PROFILE:
            _ = run.profile
        _ = run.topology, run.plan, run.settings.at_hand_only or run.wanted_generators
        _ = run.settings.objects and run.objects
        runs_tests = not config.option.collectonly
        selection.check_marker_expression(config.option.markexpr, run.settings.profile, runs=runs_tests)
    except BadInput as error:
        raise runs.refusal(error) from error
    config.stash[runs.KEY] = run
    for workload in WORKLOADS.values():  # a user's own; those of the suite are there
        register(config, *workload.fixtures.values())
    wanted = getattr(config.option, "allure_report_dir", None) or run.settings.strict_suite
    if wanted and config.pluginmanager.hasplugin("allure_pytest"):
        from plugin.reports import allure_live

        allure_live.prepare(config, run)
    if run.controller and not config.option.collectonly:
        from plugin.reports.progress import Ticker

        # Standard output as it is now: once a test runs, pytest has put its capture in between.
        ticker = Ticker(run.settings.run_dir / "progress", os.dup(sys.__stdout__.fileno() if sys.__stdout__ else 2))
        config.stash[KEY].ticker = ticker
        run.tell = ticker.hear


def announce(config: pytest.Config) -> None:
    """Look for the databases that were asked for by name, and say first of all that a run is of the control."""
    run = runs.of(config)
    if ticker := config.stash[KEY].ticker:
        ticker.at_once = lambda: int(run.host.cores) // run.capacity
        ticker.go_live(config)
    if not run.controller or not run.looks_early or config.option.collectonly:
        return
    try:
        for target in run.targets:
            run.engine(target)
    except BadInput as error:
        raise runs.refusal(error) from error
    run.say("")
    if run.control_notice:
        _write(config, run.control_notice)


def header(config: pytest.Config) -> list[str]:
    """See ``header.header``."""
    from plugin.reports import header

    config.stash[KEY].headed = True
    return header.header(config)


def status_of(report: pytest.TestReport) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """See ``header.status_of``."""
    from plugin.reports import header

    return header.status_of(report)


def unconfigure(config: pytest.Config) -> None:
    """Stop showing progress, say what the session came to, and last of all that the run was one of the control."""
    session, run = config.stash.get(KEY, None), config.stash.get(runs.KEY, None)
    if session and session.ticker:
        session.ticker.close()
        session.ticker = None
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if session and session.tells and run and run.controller and reporter:
        from plugin.reports import terminal

        terminal.last_screen(reporter, config)
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
        raise runs.refusal(error) from error
    config.workeroutput[PROPERTY] = redacted(str(error))  # type: ignore[attr-defined]


def parametrize(metafunc: pytest.Metafunc) -> None:
    """See ``selection.parametrize``."""
    with suppress(BadInput):  # said with file and line by ``select``, which sees the same test
        selection.parametrize(metafunc, runs.of(metafunc.config))


def named_without_secrets(metafunc: pytest.Metafunc) -> None:
    """A parameter's value is part of its test's name, which every report and file of the run shows."""
    with suppress(BadInput):  # said with file and line by ``select``, which sees the same test
        if selection.claim_id(metafunc.definition)[0] is not None:
            from plugin.reports.redacted_reports import nameless

            metafunc._calls[:] = nameless(metafunc._calls)


def mark(item: pytest.Item) -> None:
    """See ``selection.mark_hardware``."""
    with suppress(BadInput):  # said with file and line by ``select``, which sees the same test
        selection.mark_hardware(item, runs.of(item.config))


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """See ``selection.select``."""
    try:
        selection.select(items, runs.of(config), config)
    except BadInput as error:
        refuse(config, items, error)


def prepare(session: pytest.Session) -> None:
    """Look for every database that the collected claims will need, before any cluster starts."""
    run, claims = runs.of(session.config), [item for item in session.items if selection.claim_id(item)[0]]
    look_for_databases(session, claims, needs_engine=selection.needs_engine)
    if session.items:  # else they were refused
        run.takes(selection.seconds(claims, run))


def look_for_databases(
    session: pytest.Session, items: Sequence[pytest.Item], *, needs_engine: Callable[[pytest.Item], bool]
) -> None:
    """Begin the run for these tests, if they will run, and look for every database if one of them ``needs_engine``.

    A change of version that is known to be impossible ends the session here, also one that would not run; so does a
    test with an argument that nobody gives.
    """
    run = runs.of(session.config)
    option = session.config.option
    if not items or option.collectonly or option.showfixtures:
        return
    from plugin import changes
    from plugin.evidence.store import not_written, write_json

    try:
        for item in items:
            selection.check_arguments(item, run)
        if run.settings.dry_run:
            changes.refuse_unavailable(run)
            changes.refuse_forbidden(items, run)
            return
        run.required = evaluable.required(run) if run.settings.requires else []
        try:
            run.begin()
            if not run.controller:
                write_json(run.claims_file, {item.nodeid: selection.claim_id(item) for item in items})
        except OSError as error:
            raise BadInput(f"{not_written(error)}; give another place with --run-dir DIR") from error
        for target in run.targets if any(map(needs_engine, items)) else ():
            run.engine(target)
        changes.refuse_forbidden(items, run)
    except BadInput as error:
        refuse(session.config, session.items, error)


def expected(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """See ``listing.expected``. Before it stands the header, where the first test of a claim came after its place."""
    told = [] if config.stash[KEY].headed or config.get_verbosity() < 0 else header(config)
    required = runs.of(config).settings.requires
    if config.option.collectonly or not (required or any(map(selection.needs_engine, items))):
        return told
    from plugin.reports import listing

    return [*told, *listing.expected(config, items)]


def judging_early_end(item: pytest.Item) -> Generator[None, Any, Any]:
    """See ``conclusion.judging_early_end``."""
    if selection.claim_id(item)[0] is None:
        return (yield)
    from plugin import conclusion

    return (yield from conclusion.judging_early_end(item))


def classify(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """See ``conclusion.classify``."""
    if selection.claim_id(item)[0] is not None:
        from plugin import conclusion

        conclusion.classify(item, call, report)


def loop(session: pytest.Session) -> bool | None:
    """Say what was found to test; ``--dry-run`` prints the plan instead of running it."""
    from plugin import commands

    introduce(session.config)
    return commands.dry_run(session)


def introduce(config: pytest.Config) -> None:
    """Say which databases were found, unless the header did; of several workers the first says it.

    Of a cluster that is there already: which one that is, and what would be done to it.
    """
    run = runs.of(config)
    describe = None if run.settings.substrate == LOCAL else SUBSTRATES[run.settings.substrate].describe
    if describe and run.controller and not config.option.collectonly:
        try:
            for line in asyncio.run(_described(describe)):
                _write(config, line)
        except (BadInput, HarnessError) as error:
            if not run.settings.dry_run:
                raise runs.refusal(error) from error
            _write(config, redacted(str(error)))
    if not run.found or run.looks_early:
        return
    if run.controller:
        _write(config, redacted(f"testing {run.found}"))
    elif run.worker == "gw0":
        run.say(f"testing {run.found}")


async def _described(describe: Callable[[], Awaitable[Sequence[str]]]) -> Sequence[str]:
    return await describe()


def hear_worker(node: Any, error: object) -> None:
    """Hear from a worker that ended what input it refused."""
    if ticker := node.config.stash[KEY].ticker:
        ticker.hear({"stage": ""}, worker=node.gateway.id)
    message = getattr(node, "workeroutput", {}).get(PROPERTY)
    if message and message not in (refusals := node.config.stash[KEY].refusals):
        refusals.append(message)


def closing(session: pytest.Session) -> Generator[None, Any, Any]:
    """See what the session came to before reports are written, and leave its results once they are.

    A report that a disk has no room for is said: pytest ends with a traceback then, and as if a claim were refuted.
    """
    run, heard = _of_controller(session), session.config.stash[KEY]
    if run is None:
        return (yield)
    pytest_status = _as_without_workers(session)
    _look_for_undecided(session, run, heard)
    _conclude(session, run, heard, pytest_status)
    _tell_junit(session.config, run, heard)
    try:
        yield
    except OSError as error:
        _note(heard, error)
    _finish(session, run, heard, pytest_status)


def _look_for_undecided(session: pytest.Session, run: runs.Run, heard: Session) -> None:
    """See what was required and nobody decided, and what of the suite was not tested."""
    if heard.refusals or not (heard.outcomes or run.settings.requires):
        return
    from plugin.evidence.load import describe_trial
    from plugin.required import undecided

    claims = [o for o in heard.outcomes if not o.sabotage]
    decided = [o for o in claims if o.result.outcome in DECIDED]
    skipped = {o.claim for o in claims if o.result.outcome == SKIPPED}
    left = {o.claim for o in claims if o.result.outcome != "not evaluated"} - {o.claim for o in decided}
    trials = [describe_trial(o.trial) for o in decided if o.trial]
    if run.settings.requires:
        heard.undecided = heard.missing = undecided(evaluable.required(run), trials, skipped=skipped)
    else:
        heard.undecided, heard.missing = sorted(left | skipped), sorted(skipped)
    required = run.chosen if run.settings.requires else frozenset[str]()
    heard.not_tested = evaluable.left_out({o.claim for o in claims} | required, run) if heard.outcomes else []


def _tell_junit(config: pytest.Config, run: runs.Run, heard: Session) -> None:
    """Say in JUnit XML what the run is about, what it came to, and what no test there stands for."""
    if heard.refusals or not config.getoption("xmlpath", None):
        return
    from plugin.evidence.run_seal import RUN_FILE
    from plugin.evidence.store import TRIAL_FILE, stored_object
    from plugin.reports.junit import tell_run, tell_unsaid
    from plugin.reports.properties import properties_of_run

    trials = [o.trial for o in heard.outcomes if o.trial and not o.sabotage]
    described = [stored_object(trial / TRIAL_FILE) or {} for trial in trials]
    about = {"settings": asdict(run.settings), **(stored_object(run.settings.run_dir / RUN_FILE) or {})}
    told = properties_of_run(about, described, run.settings.run_dir, heard.not_tested, heard.conclusion)
    tell_run(config, told)
    tell_unsaid(config, heard.unsaid)


def _finish(session: pytest.Session, run: runs.Run, heard: Session, pytest_status: int) -> None:
    """Set the session's exit status, the same with and without workers, and leave what it came to."""
    if heard.ticker:
        heard.ticker.end()
    if not run.begun:
        _conclude(session, run, heard, pytest_status)
        return
    from plugin.evidence.run_seal import seal_run
    from plugin.evidence.store import RESULT
    from plugin.reports.page_file import page_of_run
    from plugin.reports.result_files import leave_results
    from plugin.reports.stored_run import stored_run

    # A test that left no trial, or whose result could not be stored with it, is known by the seal alone.
    claims = [o for o in heard.outcomes if not o.sabotage and not (o.trial and (o.trial / RESULT).exists())]
    left_none = [o.claim for o in claims if o.result.outcome not in (*DECIDED, "not evaluated")]
    try:
        seal_run(run.settings.run_dir, [*dict.fromkeys([*heard.missing, *left_none])], heard.not_tested)
        if run.settings.sign:
            _sign(session.config, run.settings.sign, run.settings.run_dir)
    except OSError as error:
        _note(heard, error)
    _conclude(session, run, heard, pytest_status)
    heard.stored = stored_run(run.settings.run_dir, run.catalogue)
    try:
        leave_results(heard, heard.stored, run)
    except OSError as error:
        _note(heard, error)
        _conclude(session, run, heard, pytest_status)
    heard.page = page_of_run(heard.stored, run, heard.conclusion)


def _note(heard: Session, error: OSError) -> None:
    from plugin.evidence.store import not_written

    heard.unwritten.append(not_written(error))


def _conclude(session: pytest.Session, run: runs.Run, heard: Session, pytest_status: int) -> None:
    """Work out from what was heard, and could be written so far, what the session came to."""
    claims = [o for o in heard.outcomes if not o.sabotage]
    outcomes = {o.result.outcome for o in heard.outcomes}
    session.exitstatus = exit_status(
        pytest_status,
        bad_input=bool(heard.refusals) or BAD_INPUT in outcomes,
        refuted=heard.plain["fail"] > 0 or bool(outcomes & {"refuted", NOT_AS_EXPECTED}),
        harness=bool(heard.unwritten) or heard.plain["harness"] > 0 or bool(outcomes & {*NO_VERDICT}),
        inconclusive="inconclusive" in outcomes
        or (bool(claims) and not any(o.result.outcome in DECIDED for o in claims))
        or (heard.nothing_decided and not claims),
        undecided=heard.undecided,
        claims_collected=bool(claims),
        gate=run.settings.requires,
    )
    heard.nothing = session.exitstatus == Status.INCONCLUSIVE and not heard.missing and "inconclusive" not in outcomes
    heard.status, gate = int(session.exitstatus), run.settings.strict_suite and not run.settings.claims
    heard.told = status_told(heard.status, _counted(heard), whole=run.settings.requires and not heard.not_tested)
    if not (claims or heard.undecided):
        return  # nobody asks what it came to
    from plugin.reports import ending

    heard.conclusion = ending.conclusion(
        [(one.claim, one.result.outcome) for one in claims],
        heard.undecided,
        gate=gate,
        passed=heard.status == 0,
        control=bool(run.control_notice),
    )


def _counted(heard: Session) -> dict[str, int]:
    """Of what decides the exit status how many there were, as ``status_told`` takes it."""

    def claims(outcome: str) -> int:
        return len({one.claim for one in heard.outcomes if not one.sabotage and one.result.outcome == outcome})

    return {
        "refuted": claims("refuted"),
        "unexpected": sum(one.result.outcome == NOT_AS_EXPECTED for one in heard.outcomes),
        "failed": heard.plain["fail"],
        "inconclusive": claims("inconclusive"),
        "undecided": len(heard.undecided),
        "harness": sum(one.result.outcome in NO_VERDICT for one in heard.outcomes) + heard.plain["harness"],
        "unwritten": len(heard.unwritten),
    }


def summarise(terminalreporter: Any, config: pytest.Config) -> Generator[None, Any, Any]:
    """Pytest's summary, short of the claims that are told in full below it. See ``terminal.summary``."""
    heard = config.stash.get(KEY, None)
    if heard is None or not heard.outcomes:
        return (yield)
    from plugin.reports import terminal

    if config.get_verbosity() <= 0:
        terminal.brief(terminalreporter, heard)
    result = yield
    terminal.summary(terminalreporter, config)
    return result


def _sign(config: pytest.Config, key: Path, directory: Path) -> None:
    """A key that has gone since the session began is said, and changes no verdict."""
    from plugin.evidence.signature import sign_run

    try:
        sign_run(directory, key)
    except BadInput as error:
        _write(config, f"the run is not signed: {error}")


def _of_controller(session: pytest.Session) -> runs.Run | None:
    """The run of a session that ran something; nothing on a worker."""
    config = session.config
    run = config.stash.get(runs.KEY, None)
    if run is None or not run.controller or run.settings.dry_run or config.option.collectonly:
        return None
    return run


def _as_without_workers(session: pytest.Session) -> int:
    """Pytest's exit status, but no interruption where ``--stepwise`` ended it, or ``--maxfail`` with workers."""
    status, most = int(session.exitstatus), session.config.getoption("maxfail") or 0
    stopped = 0 < most <= session.testsfailed or (session.shouldstop and session.testsfailed)
    ended_early = status == pytest.ExitCode.INTERRUPTED and stopped
    return int(pytest.ExitCode.TESTS_FAILED) if ended_early else status


def _write(config: pytest.Config, line: str) -> None:
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(line, bold=True)
        reporter.flush()  # progress goes another way and must not overtake it
