"""Writes what Allure shows of a trial as Allure's own files, for a live test and for a stored run alike."""

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from allure_commons.logger import AllureFileLogger
from allure_commons.model2 import ATTACHMENT_PATTERN, Attachment, GlobalError, Globals, StatusDetails, TestResult

from clusters.engines import is_control
from plugin.evidence.redaction import redacted
from plugin.evidence.store import TRIAL_FILE, write
from plugin.release import release
from plugin.reports import allure
from plugin.reports.allure_attachments import attachments
from plugin.reports.allure_redacted import Guard
from plugin.reports.builds import tested_of
from plugin.reports.ending import concluded
from plugin.reports.stored_run import (
    NOT_AS_LEFT,
    StoredRun,
    StoredTrial,
    engine_of,
    names_of,
    nothing_decided,
    run_of,
    told_of,
)
from plugin.required import NO_CLAIM, NOT_DECIDED, NOTHING_DECIDED
from plugin.result import Result
from plugin.run import Run
from plugin.status import Conclusion

CATEGORIES = Path(__file__).with_name("assets") / "categories.json"


def began_ms(trial: StoredTrial) -> int:
    """When a trial began, in milliseconds since 1970; where that was not recorded, by the time of its file."""
    began = trial.described.get("began_ms")
    if isinstance(began, int):
        return began
    files = [trial.directory / name for name in ("events.jsonl", "trial.json")]
    written = next((file.stat().st_mtime for file in files if file.exists()), 0.0)
    return int(written * 1000) - trial.end // 1000


def fill(result: TestResult, trial: StoredTrial, sink: Any, *, among: str = "") -> None:
    """Say in a result everything that a trial's evidence tells, and write its attachments.

    ``sink`` takes results and attachments as Allure's writers do: one of them, or the hooks of a live session.
    ``among``: the run's name, where there are several. Raises ``OSError``.
    """
    run, began = run_of(trial.directory), began_ms(trial)
    allure.fill(result, trial, run=run, began_ms=began, among=among)
    passed = result.status in ("passed", "skipped") and not trial.sabotage
    for found in attachments(trial, title=redacted(result.name), run=run, began_ms=began, passed=passed):
        name = ATTACHMENT_PATTERN.format(prefix=uuid.uuid4(), ext=found.extension)
        sink.report_attached_data(body=found.text, file_name=name)
        result.attachments.append(Attachment(name=found.name, source=name, type=found.type))


def fill_unstarted(result: TestResult, described: Mapping[str, Any], run: Run, came: Result) -> None:
    """Say in the result of a live test that never came to record evidence what its claim is, and why it did not."""
    settings = run.settings
    engine = next(iter(run.tested), settings.engine)
    asked = {name: getattr(settings, name) for name in ("versions", "profile", "substrate")} | {"engine": engine}
    claim = run.catalogue.claims.get(str(described["claim"]))
    trial = StoredTrial(
        directory=settings.run_dir / "claims",
        described={"sentence": claim.sentence if claim else "", "profile": settings.profile, **described},
        claim=claim,
        verdict=None,
        series=None,
        events=(),
        result=came,
    )
    began, ended = result.start, result.stop
    allure.fill(result, trial, run={"settings": asked}, began_ms=began)
    result.start, result.stop = began, ended


def write_trial(trial: StoredTrial, sink: Any, *, among: str = "") -> None:
    """Write the result of a stored trial. Raises ``OSError``."""
    result = TestResult(uuid=str(uuid.uuid4()), stage="finished")
    fill(result, trial, sink, among=among)
    sink.report_result(result=result)


def write_broken(nodeid: str, why: str, sink: Any, *, at_ms: int) -> None:
    """Write the result of what has no trial: a test that left none, what is required, what is wrong with a run."""
    full_name = allure.full_name(nodeid) if "::" in nodeid else nodeid
    result = TestResult(
        uuid=str(uuid.uuid4()),
        name=nodeid,
        fullName=full_name,
        testCaseId=allure.digest(full_name),
        historyId=allure.digest(nodeid),
        status="broken",
        statusDetails=StatusDetails(message=why),
        start=at_ms,
        stop=at_ms,
    )
    sink.report_result(result=result)


def write_conclusion(ended: Conclusion, sink: Any) -> None:
    """Say what did not pass as an error of the whole report, which Allure shows before all results."""
    if not ended.passed:
        error = GlobalError(message=ended.text, timestamp=int(time.time() * 1e3))
        sink.report_globals(globals_item=Globals(errors=[error]))


def write_run(directory: Path, runs: Sequence[StoredRun]) -> int:
    """Write the results of every trial of these runs, with categories and environment; how many. Raises ``OSError``.

    What was required and not decided, and what is not as a run left it, has results of its own.

    Those of several runs have histories of their own: one would else hide the others as its retries.
    """
    writer: Any = AllureFileLogger
    sink = Guard(writer(str(directory)))
    trials = [(trial, name) for run, name in zip(runs, names_of(runs), strict=True) for trial in run.trials]
    for trial, name in trials:
        write_trial(trial, sink, among=name if len(runs) > 1 else "")
    beside = [(required, NOT_DECIDED) for required in told_of(runs, "undecided")]
    beside += [(NOTHING_DECIDED, NO_CLAIM)] * nothing_decided(runs)
    beside += [(problem, NOT_AS_LEFT) for problem in told_of(runs, "problems")]
    for what, why in beside:
        write_broken(what, why, sink, at_ms=int(time.time() * 1e3))
    claims = ((trial, run) for run in runs for trial in run.trials if not trial.sabotage)
    control = any(is_control(engine_of(trial, run.described)) for trial, run in claims)
    if ended := concluded(runs, control=control):
        write_conclusion(ended, sink)
    described = [trial.described for trial, _ in trials]
    write_surroundings(directory, [run.described for run in runs], described, told_of(runs, "not_tested"))
    return len(trials) + len(beside)


def write_replay(directory: Path, runs: Sequence[StoredRun], *, clean: bool) -> str:
    """Write the results of a replay, with ``clean`` in place of those there. Returns what is to be said of them."""
    home = next((d for d in (directory, *directory.parents) if (d / TRIAL_FILE).exists()), None)
    if home is not None:
        return (
            f"Allure results: not written: {home} is sealed evidence; give a directory outside of it with --alluredir"
        )
    try:
        if clean:
            for file in directory.glob("*"):
                if file.is_file():
                    file.unlink()
        count = write_run(directory, runs)
    except Exception as error:
        why = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        return f"Allure results: not written: {directory}: {why}; give another directory with --alluredir"
    return f"Allure results: {count} written to {directory}"


def write_surroundings(
    directory: Path, runs: Sequence[Mapping[str, Any]], trials: Iterable[Mapping[str, Any]], not_tested: Sequence[str]
) -> None:
    """Write ``categories.json`` and ``environment.properties``. Raises ``OSError``.

    ``not_tested``: the claims of the suite that were neither tested nor required.
    """
    write(directory / "categories.json", CATEGORIES.read_text(encoding="utf-8"))
    facts: dict[str, dict[str, None]] = {}

    def known(name: str, value: object) -> None:
        if value not in (None, "", [], {}):
            facts.setdefault(name, {})[redacted(str(value))] = None

    for described in trials:
        context = described.get("context") or {}
        known("tested", tested_of(described))
        known("profile", described.get("profile"))
        known("substrate", context.get("substrate"))
        known("tuned", "; ".join(map(str, described.get("tuned") or ())))
    for run in runs:
        settings, host = run.get("settings") or {}, run.get("host") or {}
        for name in ("suite", "profile", "seed"):
            known(name, settings.get(name))
        known("started", run.get("started"))
        for name in ("cores", "memory_total_gib", "kernel", "python"):
            value = host.get(name)
            known(name, f"{value:.3g}" if isinstance(value, float) else value)
        known("suite_revision", run.get("suite_revision"))
    known("judged_by", release())
    known("not_tested", ", ".join(not_tested))
    lines = [f"{name}={_escaped(', '.join(values))}\n" for name, values in facts.items()]
    write(directory / "environment.properties", "".join(lines))


def _escaped(value: str) -> str:
    """A value of a properties file: one line of ASCII, with the escapes that JSON has, too."""
    return json.dumps(" ".join(value.split()))[1:-1].replace('\\"', '"')
