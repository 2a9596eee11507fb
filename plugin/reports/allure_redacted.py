"""Stands before allure-pytest's own writer of a live session and takes secrets out of everything that goes to it."""

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
    "uuid", "historyId", "testCaseId", "source", "type", "status", "stage", "start", "stop", "timestamp", "children", "mode",
))  # fmt: skip
"""Fields of Allure's records that hold no text of anybody's."""


class Withholding:
    """Passes on to a writer what it takes, without secrets. Raises ``OSError`` as the writer does."""

    def __init__(self, writer: Any) -> None:
        self.writer = writer

    @allure_commons.hookimpl
    def report_result(self, result: Any) -> None:
        """Write a test's result."""
        withhold(result)
        self.writer.report_result(result)

    @allure_commons.hookimpl
    def report_container(self, container: Any) -> None:
        """Write what fixtures did."""
        withhold(container)
        self.writer.report_container(container)

    @allure_commons.hookimpl
    def report_globals(self, globals_item: Any) -> None:
        """Write what is attached to the session."""
        withhold(globals_item)
        self.writer.report_globals(globals_item)

    @allure_commons.hookimpl
    def report_attached_data(self, body: str | bytes, file_name: str) -> None:
        """Write an attachment."""
        self.writer.report_attached_data(without_secrets(body, file_name), file_name)

    @allure_commons.hookimpl
    def report_attached_file(self, source: str, file_name: str) -> None:
        """Write an attachment that is a file; one without secrets is copied as it is."""
        content = Path(source).read_bytes()
        shown = without_secrets(content, str(source))
        if shown == content:
            self.writer.report_attached_file(source, file_name)
        else:
            self.writer.report_attached_data(shown, file_name)


def withhold(record: Any) -> None:
    """Take secrets out of a record of Allure's and of all that it holds, in place."""
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
def withheld() -> Iterator[None]:
    """While this lasts no secret reaches Allure's files."""
    manager = allure_commons.plugin_manager
    writers = [each for each in manager.get_plugins() if isinstance(each, AllureFileLogger)]
    stand_ins = [Withholding(writer) for writer in writers]
    for writer, stand_in in zip(writers, stand_ins, strict=True):
        manager.unregister(writer)
        manager.register(stand_in)
    try:
        yield
    finally:
        for writer, stand_in in zip(writers, stand_ins, strict=True):
            manager.unregister(stand_in)
            manager.register(writer)
