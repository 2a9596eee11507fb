"""Stands before Allure's own writer: no secret reaches its files, and in a live session no failure ends the run."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import allure_commons
from allure_commons.logger import AllureFileLogger
from allure_commons.model2 import Parameter

from plugin.evidence.redaction import redacted, redacted_json, redacted_value

AS_THEY_ARE = frozenset((
    "uuid", "historyId", "testCaseId", "source", "type", "status", "stage", "start", "stop", "timestamp", "children",
    "mode",
))  # fmt: skip
"""Fields of Allure's records that hold no text of anybody's."""


class Guard:
    """Writes Allure's files without secrets; notes failures to write as ``problems``, or raises ``OSError``."""

    def __init__(self, writer: Any, problems: list[str] | None = None) -> None:
        self.writer = writer
        self.problems = problems

    @contextmanager
    def _noting(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if self.problems is None:
                raise
            self.problems.append(f"{what}: {error.strerror or error}")

    @allure_commons.hookimpl
    def report_result(self, result: Any) -> None:
        """Write a test's result."""
        with self._noting(result.name):
            self.writer.report_result(withhold(result))

    @allure_commons.hookimpl
    def report_container(self, container: Any) -> None:
        """Write what fixtures did."""
        tidy(container)
        with self._noting("fixtures"):
            self.writer.report_container(withhold(container))

    @allure_commons.hookimpl
    def report_globals(self, globals_item: Any) -> None:
        """Write what is attached to the session."""
        with self._noting("attachments of the session"):
            self.writer.report_globals(withhold(globals_item))

    @allure_commons.hookimpl
    def report_attached_data(self, body: str | bytes, file_name: str) -> None:
        """Write an attachment."""
        with self._noting(file_name):
            self.writer.report_attached_data(without_secrets(body, file_name), file_name)

    @allure_commons.hookimpl
    def report_attached_file(self, source: str, file_name: str) -> None:
        """Write an attachment that is a file."""
        with self._noting(file_name):
            self.writer.report_attached_data(without_secrets(Path(source).read_bytes(), str(source)), file_name)


def tidy(container: Any) -> None:
    """Leave of pytest's own set-up and tear-down what says something to a reader."""
    container.befores = [each for each in container.befores if not str(each.name).startswith("_")]
    kept = []
    for each in container.afters:
        name, _, finalizer = str(each.name).rpartition("::")
        if name and not name.startswith("_") and finalizer != "<lambda>":
            each.name = f"put away: {name}"
            kept.append(each)
    container.afters = kept


def withhold(record: Any) -> Any:
    """Take secrets out of a record of Allure's and of all that it holds, in place; returns the record."""
    for field in record.__attrs_attrs__:
        value = getattr(record, field.name)
        if field.name in AS_THEY_ARE or not value:
            continue
        if isinstance(record, Parameter) and field.name == "value":
            record.value = redacted_value(str(record.name), str(value))
        elif isinstance(value, str):
            setattr(record, field.name, redacted(value))
        elif isinstance(value, list):
            value[:] = [redacted(each) if isinstance(each, str) else each for each in value]
            for each in value:
                if hasattr(each, "__attrs_attrs__"):
                    withhold(each)
        elif hasattr(value, "__attrs_attrs__"):
            withhold(value)
    return record


def without_secrets(body: str | bytes, name: str) -> str | bytes:
    """An attachment's content. JSON stays JSON; what is no text (a picture, an archive) stays as it is."""
    if not isinstance(body, str):
        if b"\0" in body:
            return body
        text = body.decode("utf-8", "surrogateescape")
        shown = without_secrets(text, name)
        return body if shown == text else str(shown).encode("utf-8", "surrogateescape")
    try:
        value: object = json.loads(body) if body.lstrip()[:1] in ("{", "[") or name.endswith(".json") else None
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, Mapping | list):
        shown_value = redacted_json(value)
        return body if shown_value == value else json.dumps(shown_value, indent=1, ensure_ascii=False)
    return redacted(body)


@contextmanager
def guarded(problems: list[str]) -> Iterator[None]:
    """While this lasts Allure's files are written through a ``Guard``."""
    manager = allure_commons.plugin_manager
    guards = [Guard(each, problems) for each in manager.get_plugins() if isinstance(each, AllureFileLogger)]
    for guard in guards:
        manager.unregister(guard.writer)
        manager.register(guard)
    try:
        yield
    finally:
        for guard in guards:
            manager.unregister(guard)
            manager.register(guard.writer)
