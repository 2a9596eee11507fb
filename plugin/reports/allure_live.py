"""Allure in a session: fills the results of allure-pytest from the evidence, also of a test whose worker died.

Imported only where allure-pytest is loaded and results are asked for, by ``--alluredir`` or by ``--suite``, which has
them in its run directory. A report that cannot be written is said and changes no exit status.
"""

import contextlib
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from allure_commons import plugin_manager

from clusters.errors import BadInput
from plugin import selection
from plugin.called import called
from plugin.conclusion import RESULT
from plugin.evidence.redaction import redacted_json
from plugin.evidence.store import TRIAL_FILE, stored_object, trials_in, unwritable
from plugin.outcomes import KEY, trial_of
from plugin.reports import allure_results
from plugin.reports.allure_redacted import guarded
from plugin.reports.stored_run import run_of, stored_trial
from plugin.reports.text import wrapped
from plugin.result import HARNESS, Result
from plugin.run import Run
from plugin.workloads import WORKLOADS

HOOKS = plugin_manager.hook  # write as allure-pytest does in this session

RESULTS = "allure-results"  # where a run of a suite has them, in its directory
PROBLEMS = "roachproof-allure"  # where a worker tells its controller what could not be written
NAMES = {
    "target": "which database is tested",
    "trial": "place of the evidence",
    "engine": "find the database",
    "cluster": "provision the cluster",
    "probe": "prepare the probe",
    "fault": "prepare the faults (disturb, heal)",
    "judge": "prepare the judge (audit, verdict)",
}
"""Our fixtures in plain words; a workload's are named by its title."""


def prepare(config: pytest.Config, run: Run) -> None:
    """Choose where results go and take part in writing them. Must come before allure-pytest is configured."""
    option: Any = config.option
    chosen = option.allure_report_dir
    quiet = option.collectonly or run.settings.dry_run
    if chosen is None and run.settings.strict_suite and not quiet:
        option.allure_report_dir = str(run.settings.run_dir / RESULTS)
        if run.controller:
            config.add_cleanup(lambda: _remove_empty(run.settings.run_dir / RESULTS))
    if not run.controller:
        option.clean_alluredir = False  # each worker would remove what the others wrote
    if option.allure_report_dir is None or quiet:
        return
    problems = []
    if why := unwritable(Path(option.allure_report_dir)):
        problems.append(f"{option.allure_report_dir}: {why}; give another with --alluredir DIR")
        option.allure_report_dir = None
    config.pluginmanager.register(AllureReports(config, run, problems), "roachproof-allure")


def _remove_empty(results: Path) -> None:
    """A run that was refused leaves no directories: this one and the two above it go, as far as nothing is in them."""
    with contextlib.suppress(OSError):
        for directory in (results, results.parent, results.parent.parent):
            directory.rmdir()


class AllureReports:
    """Hooks of one session, on the controller and on each worker."""

    def __init__(self, config: pytest.Config, run: Run, problems: list[str]) -> None:
        self._config = config
        self._run = run
        self._problems = problems
        self._guard = contextlib.ExitStack()

    @property
    def _listener(self) -> Any:
        return self._config.pluginmanager.get_plugin("allure_listener")

    def pytest_sessionstart(self) -> None:
        """From here on no secret is written, and a result that cannot be written is noted and ends nothing."""
        if self._listener is not None:
            self._guard.enter_context(guarded(self._problems))

    def pytest_unconfigure(self) -> None:
        """Leave Allure as it was."""
        self._guard.close()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        """Name our fixtures in plain words."""
        loads = {name: kind.title for kind in WORKLOADS.values() for name in kind.fixtures}
        load = loads.get(fixturedef.argname)
        plain = f"prepare {load} (load)" if load else NAMES.get(fixturedef.argname)
        if plain and str(getattr(fixturedef.func, "__module__", "")).startswith("fixtures."):
            with contextlib.suppress(AttributeError):
                fixturedef.func.__allure_display_name__ = plain
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """A test that is interrupted has a result too: of its evidence up to there."""
        try:
            return (yield)
        except BaseException:
            self._fill(item, interrupted=True)
            raise

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        """After teardown the trial is sealed and the nodes' logs are in it."""
        report: pytest.TestReport = yield
        if call.when == "teardown":
            self._fill(item)
        return report

    def _fill(self, item: pytest.Item, *, interrupted: bool = False) -> None:
        listener = self._listener
        try:
            id_, sabotage = selection.claim_id(item)
            result = listener and listener.allure_logger.get_test(listener._cache.get(item.nodeid))
            if id_ is None or result is None:
                return
            directory = trial_of(item)
            if directory is None:
                came = Result(outcome=HARNESS, why="the run was interrupted" if interrupted else "it never began")
                came = item.stash.get(RESULT, came)
                described = {
                    "claim": id_,
                    "test": item.nodeid,
                    "sabotage": sabotage,
                    "parameters": redacted_json(selection.parameters_of(item)),
                    "target": selection.target_of(item),
                    "suite": self._run.settings.suite,
                }
                allure_results.fill_unstarted(result, described, self._run, came)
                return
            allure_results.fill(result, stored_trial(directory, self._run.catalogue), HOOKS)
        except BadInput:
            return  # a malformed marker was refused long ago
        except Exception as error:
            self._problems.append(f"{item.nodeid}: {type(error).__name__}: {error}")

    @pytest.hookimpl(optionalhook=True, trylast=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """The worker of a test died before it could write its result: the controller does."""
        if self._listener is None:
            return
        why = "HARNESS FAILED: the worker that ran it died; the evidence ends there"
        try:
            if directory := trial_of(report):
                allure_results.write_trial(stored_trial(directory, self._run.catalogue), HOOKS)
            else:
                allure_results.write_broken(crashitem, why, HOOKS, at_ms=int(time.time() * 1e3))
        except Exception as error:
            self._problems.append(f"{crashitem}: {type(error).__name__}: {error}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Write categories and environment, once; a worker tells its controller what it could not write."""
        if not self._run.controller:
            self._config.workeroutput[PROBLEMS] = list(self._problems)  # type: ignore[attr-defined]
            return
        if self._listener is None:
            return
        try:
            for name, why in self._config.stash[KEY].unsaid.items():
                allure_results.write_broken(name, why, HOOKS, at_ms=int(time.time() * 1e3))
            home = self._run.settings.run_dir
            allure_results.write_surroundings(
                Path(self._config.option.allure_report_dir),
                [run_of(home)],
                [stored_object(trial / TRIAL_FILE) or {} for trial in trials_in(home / "claims")],
                self._config.stash[KEY].not_tested,
            )
        except OSError as error:
            self._problems.append(f"categories and environment: {error.strerror or error}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear what a worker could not write."""
        self._problems += getattr(node, "workeroutput", {}).get(PROBLEMS, [])

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write what the session came to, which is known now, and say where the results are, or what is missing."""
        ended = self._config.stash[KEY].conclusion
        if ended and self._listener is not None and self._run.controller:
            allure_results.write_conclusion(ended, HOOKS)
        found = list(dict.fromkeys(self._problems))
        where = self._config.option.allure_report_dir
        lines = [f"Allure results are missing or incomplete: {problem}" for problem in found[:5]]
        if len(found) > 5:
            lines.append(f"… and {len(found) - 5} more of them")
        if not found and self._run.settings.strict_suite:
            lines = [f"Allure results: {where}  ({called('report')} makes HTML of them)"]
        for line in lines:
            terminalreporter.write_line("\n".join(wrapped(line, "")), yellow=bool(found))
