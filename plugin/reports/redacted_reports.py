"""What pytest says of a claim's test, without secrets: its report, and its name with parameters."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from plugin.evidence.redaction import HIDDEN, redacted, redacted_json

OWN = ("trial", "verdict")
"""Properties that hold no text of a test's: where its evidence is, and how it came out."""
SHORT = 4  # a parameter's value of fewer characters is not looked for inside of a name


def withhold(report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
    """Take secrets out of a report's captured output, its reason to skip, its properties and its traceback.

    A traceback is only touched where it has any: it is then plain text, without the colours and frames of pytest's own.
    """
    report.sections = [(redacted(title), redacted(text)) for title, text in report.sections]
    report.user_properties = [
        (redacted(name), value if name in OWN else _shown(name, value)) for name, value in report.user_properties
    ]
    if hasattr(report, "wasxfail"):
        report.wasxfail = redacted(report.wasxfail)
    told: Any = report.longrepr
    if isinstance(told, tuple):
        path, line, reason = told
        report.longrepr = (path, line, redacted(reason))
    elif told is not None and (text := redacted(report.longreprtext)) != report.longreprtext:
        report.longrepr = _plain(call, text)


def _plain(call: pytest.CallInfo[None], text: str) -> Any:
    """A traceback of this text. It keeps where the test failed and the message, which summaries and JUnit XML show."""
    if call.excinfo is None:
        return text
    plain: Any = call.excinfo.getrepr(style="native")
    crash = getattr(plain, "reprcrash", None)
    if crash is None:
        return text
    plain.reprcrash = replace(crash, message=redacted(crash.message))
    plain.reprtraceback.reprentries[:] = plain.reprtraceback.reprentries[:1]
    plain.reprtraceback.reprentries[0].lines = [f"{text}\n"]
    return plain


def nameless(calls: Sequence[Any]) -> list[Any]:
    """Planned calls of one test (pytest's ``CallSpec``) whose names hold no secret; distinct names stay distinct."""
    shown = [[_part(part, call.params) for part in call._idlist] for call in calls]
    if all(parts == [*call._idlist] for call, parts in zip(calls, shown, strict=True)):
        return [*calls]
    times: Counter[str] = Counter("-".join(parts) for parts in shown)
    seen: Counter[str] = Counter()
    found = []
    for call, parts in zip(calls, shown, strict=True):
        name = "-".join(parts)
        seen[name] += 1
        found.append(replace(call, _idlist=[*parts, str(seen[name])] if times[name] > 1 else parts))
    return found


def _part(part: Any, parameters: Mapping[str, object]) -> Any:
    """A part of a name: one may also be the value of a parameter whose own name tells that it is a secret."""
    if not isinstance(part, str):
        return part
    for name, value in parameters.items():
        plain = str(value)
        for text in {plain, plain.encode("unicode_escape").decode()}:
            looked_for = text == part or (len(text) >= SHORT and text in part)
            if looked_for and _shown(name, value) == HIDDEN:
                part = part.replace(text, HIDDEN)
    return redacted(part)


def _shown(name: str, value: object) -> Any:
    return next(iter(redacted_json({name: value}).values()))
