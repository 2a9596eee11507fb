"""Writes what Allure shows of a trial as Allure's own files, for a live test and for a stored run alike."""

import json
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from allure_commons import plugin_manager
from allure_commons.logger import AllureFileLogger
from allure_commons.model2 import (
    ATTACHMENT_PATTERN,
    Attachment,
    Label,
    Parameter,
    Status,
    StatusDetails,
    TestResult,
    TestStepResult,
)

from plugin.evidence.redaction import redacted, redacted_value
from plugin.evidence.store import TRIAL_FILE
from plugin.reports.allure import Content, content, full_name
from plugin.reports.allure_attachments import attachments
from plugin.reports.section import Attached, Step
from plugin.reports.stored_run import StoredRun, StoredTrial, names_of
from plugin.result import Result
from plugin.run import RUN_FILE, Run

CATEGORIES = Path(__file__).with_name("assets") / "categories.json"
KEPT = ("host", "thread", "language", "package")
"""Labels of allure-pytest that stay; all others are the catalogue's."""


class Sink(Protocol):
    """Takes results and attachments: allure's file logger, or the hooks of a live session."""

    def report_result(self, *, result: TestResult) -> Any:
        """Write a result."""

    def report_attached_data(self, *, body: str, file_name: str) -> Any:
        """Write an attachment."""


class Files:
    """Writes into a directory. Raises ``OSError`` where it cannot."""

    def __init__(self, directory: Path) -> None:
        logger: Any = AllureFileLogger
        self._logger = logger(str(directory))

    def report_result(self, *, result: TestResult) -> None:
        """Write a result."""
        self._logger.report_result(result)

    def report_attached_data(self, *, body: str, file_name: str) -> None:
        """Write an attachment."""
        self._logger.report_attached_data(body, file_name)


class Hooks:
    """Writes as allure-pytest does in this session."""

    def report_result(self, *, result: TestResult) -> None:
        """Write a result."""
        plugin_manager.hook.report_result(result=result)

    def report_attached_data(self, *, body: str, file_name: str) -> None:
        """Write an attachment."""
        plugin_manager.hook.report_attached_data(body=body, file_name=file_name)


def began_ms(trial: StoredTrial) -> int:
    """When a trial's timeline began, in milliseconds since 1970; of evidence that does not say it, by the time of its file."""
    began = trial.described.get("began_ms")
    if isinstance(began, int):
        return began
    files = [trial.directory / name for name in ("events.jsonl", "trial.json")]
    written = next((file.stat().st_mtime for file in files if file.exists()), 0.0)
    return int(written * 1000) - max((event.t for event in trial.events), default=0) // 1000


def run_of(directory: Path) -> Mapping[str, Any]:
    """The ``run.json`` that a trial belongs to; nothing where it has none."""
    home = next((d for d in directory.parents if (d / RUN_FILE).exists()), directory)
    return _object(home / RUN_FILE)


def described_below(directory: Path) -> list[Mapping[str, Any]]:
    """The ``trial.json`` of each trial of a run; nothing of one that was cut off."""
    return [_object(path) for path in sorted(directory.glob(f"claims/*/*/{TRIAL_FILE}"))]


def _object(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def fill(
    result: TestResult,
    trial: StoredTrial,
    sink: Sink,
    *,
    run: Mapping[str, Any],
    among: str = "",
) -> None:
    """Say in a result everything that a trial's evidence tells, and write its attachments.

    ``among``: the run's name, where there are several. Raises ``OSError``.
    """
    began = began_ms(trial)
    told = content(trial, run=run, began_ms=began, among=among)
    _fill(result, told)
    passed = told.status in ("passed", "skipped") and not trial.sabotage
    found = attachments(trial, title=told.name, run=run, began_ms=began, passed=passed)
    result.attachments.extend(_attached(found, sink))


def fill_unstarted(result: TestResult, described: Mapping[str, Any], run: Run, came: Result) -> None:
    """Say in the result of a live test that never came to record evidence what its claim is, and why it did not."""
    settings = run.settings
    engine = next(iter(run.tested), settings.engine)
    asked = {
        "engine": engine,
        "versions": settings.versions,
        "profile": settings.profile,
        "substrate": settings.substrate,
    }
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
    _fill(result, content(trial, run={"settings": asked}, began_ms=began))
    result.start, result.stop = began, ended


def _fill(result: TestResult, told: Content) -> None:
    names = [Label(name=name, value=redacted(value)) for name, value in told.labels if value]
    result.name = redacted(told.name)
    result.fullName = told.full_name
    result.testCaseId = told.case_id
    result.historyId = told.history_id
    result.descriptionHtml = redacted(told.description)
    result.description = None
    result.labels = [*names, *(label for label in result.labels if label.name in KEPT)]
    result.titlePath = [value for name, value in told.labels if name in ("epic", "feature", "story") and value]
    result.parameters = [
        *(Parameter(name=name, value=redacted_value(name, value)) for name, value in told.parameters.items()),
        *(Parameter(name=name, value=redacted_value(name, v), excluded=True) for name, v in told.excluded.items()),
    ]
    result.status = told.status
    result.statusDetails = (
        StatusDetails(message=redacted(told.message), trace=redacted(told.trace) or None) if told.message else None
    )
    result.steps = [*map(_step, told.steps), *result.steps]
    result.start, result.stop = told.start, told.stop


def _step(step: Step) -> TestStepResult:
    return TestStepResult(
        name=redacted(step.name),
        status=step.status,
        stage="finished",
        start=step.start,
        stop=step.stop,
        parameters=[
            Parameter(name=redacted(name), value=redacted_value(name, value)) for name, value in step.parameters.items()
        ],
        steps=[*map(_step, step.steps)],
    )


def _attached(found: Iterable[Attached], sink: Sink) -> list[Attachment]:
    written = []
    for attached in found:
        name = ATTACHMENT_PATTERN.format(prefix=uuid.uuid4(), ext=attached.extension)
        sink.report_attached_data(body=attached.text, file_name=name)
        written.append(Attachment(name=attached.name, source=name, type=attached.type))
    return written


def write_trial(trial: StoredTrial, sink: Sink, *, among: str = "") -> None:
    """Write the result of a stored trial. Raises ``OSError``."""
    result = TestResult(uuid=str(uuid.uuid4()), stage="finished")
    fill(result, trial, sink, run=run_of(trial.directory), among=among)
    sink.report_result(result=result)


def write_lost(nodeid: str, why: str, sink: Sink, *, at_ms: int) -> None:
    """Write the result of a test of which nothing is known but that its process died."""
    name = full_name(nodeid)
    sink.report_result(
        result=TestResult(
            uuid=str(uuid.uuid4()),
            name=redacted(nodeid),
            fullName=name,
            status=Status.BROKEN,
            statusDetails=StatusDetails(message=redacted(f"HARNESS FAILED: {why}")),
            start=at_ms,
            stop=at_ms,
        )
    )


def write_run(directory: Path, runs: Sequence[StoredRun]) -> int:
    """Write the results of every trial of these runs, with categories and environment; how many. Raises ``OSError``.

    Those of several runs have histories of their own: one would else hide the others as its retries.
    """
    sink = Files(directory)
    trials = [(trial, name) for run, name in zip(runs, names_of(runs), strict=True) for trial in run.trials]
    for trial, name in trials:
        write_trial(trial, sink, among=name if len(runs) > 1 else "")
    write_surroundings(directory, [run.described for run in runs], [trial.described for trial, _ in trials])
    return len(trials)


def write_replay(directory: Path, runs: Sequence[StoredRun], *, clean: bool) -> str:
    """Write the results of what was judged again, ``clean``: in place of those that are there.

    Returns the line that says where they are, or why there are none.
    """
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


def write_surroundings(directory: Path, runs: Sequence[Mapping[str, Any]], trials: Iterable[Mapping[str, Any]]) -> None:
    """Write ``categories.json`` and ``environment.properties``. Raises ``OSError``."""
    _write(directory / "categories.json", CATEGORIES.read_text(encoding="utf-8"))
    facts: dict[str, dict[str, None]] = {}

    def known(name: str, value: object) -> None:
        if value not in (None, "", [], {}):
            facts.setdefault(name, {})[redacted(str(value))] = None

    for described in trials:
        context = described.get("context") or {}
        known("tested", " ".join(str(context[key]) for key in ("engine", "version") if context.get(key)))
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
    lines = [f"{name}={_escaped(', '.join(values))}\n" for name, values in facts.items()]
    _write(directory / "environment.properties", "".join(lines))


def _escaped(value: str) -> str:
    """A value of a properties file: one line, in characters that every reader takes the same way."""
    plain = " ".join(value.replace("\\", "\\\\").split())
    units = plain.encode("utf-16-be", "replace")
    codes = (int.from_bytes(units[i : i + 2]) for i in range(0, len(units), 2))
    return "".join(chr(code) if 0x20 <= code < 0x7F else f"\\u{code:04x}" for code in codes)


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
