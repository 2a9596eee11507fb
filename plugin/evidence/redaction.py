"""Nothing that a run leaves behind may hold a secret: what looks like one is replaced, in whatever text it stands."""

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "…"
"""Stands where a secret stood."""

_NAME = (
    r"(?:[\w-]*(?:passw(?:or)?d|passphrase|passwd|pwd|secret|token|credential|api[_-]?key|access[_-]?key"
    r"|private[_-]?key|secret[_-]?key|signing[_-]?key|encryption[_-]?key|client[_-]?key|sslkey|store[_-]?key"
    r"|authorization|cookie|session[_-]?id)[\w-]*)"
)
_SECRET = re.compile(_NAME, re.I)
_OPTION = re.compile(rf"--?{_NAME}", re.I)
_QUOTED = r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.|\'\')*\''
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    # A private key, also one that was cut off, or written as one line with \n in it.
    (
        re.compile(
            r"-----BEGIN (?P<kind>[A-Z0-9 ]*PRIVATE KEY[A-Z ]*)-----"
            r"(?:[\s\S]*?-----END (?P=kind)-----|(?:[\sA-Za-z0-9+/=,:-]|\\[nr])*)"
        ),
        f"-----{HIDDEN} PRIVATE KEY {HIDDEN}-----",
    ),
    # User and password of a URL; all of its query, where secrets and the paths of keys stand.
    (re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]{1,30}://)[^\s/@\"'<>]{0,500}@"), rf"\g<scheme>{HIDDEN}@"),
    (
        re.compile(r"(?P<url>\b(?:postgres(?:ql)?|cockroach(?:db)?|mysql|https?)://[^\s?\"'<>]{0,500}\?)[^\s\"'<>]+"),
        rf"\g<url>{HIDDEN}",
    ),
    # PASSWORD 'x' and IDENTIFIED BY 'x' of SQL.
    (re.compile(rf"(?P<sql>\b(?:password|identified\s+by)\s+)(?:{_QUOTED})", re.I), rf"\g<sql>'{HIDDEN}'"),
    # Authorization: Bearer x
    (re.compile(r"(?P<scheme>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}", re.I), rf"\g<scheme>{HIDDEN}"),
    # "password": "x", PGPASSWORD=x, token: x, --secret x; also escaped once more inside a JSON string.
    (
        re.compile(
            rf"(?P<name>\b{_NAME}(?:\\?[\"'])?\s*(?:=>|:=|=|:)\s*)"
            rf"(?:\\\"(?:[^\"\\\n])*\\\"|{_QUOTED}|(?!{HIDDEN})[^\s,;&}}\]\"']+)",
            re.I,
        ),
        rf"\g<name>{HIDDEN}",
    ),
    # ["--token", "x"] of a command's list.
    (re.compile(rf"(?P<option>[\"']--?{_NAME}[\"']\s*,\s*)(?:{_QUOTED})", re.I), rf'\g<option>"{HIDDEN}"'),
    (re.compile(rf"(?P<option>(?<!\S)--?{_NAME}\s+)(?!-)\S+", re.I), rf"\g<option>{HIDDEN}"),
    # Secrets that are known by their form.
    (re.compile(r"\bSCRAM-SHA-(?:1|256)\$[A-Za-z0-9+/=:$]+"), HIDDEN),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"), HIDDEN),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), HIDDEN),
    (re.compile(r"\b(?:gh[pousr]|github_pat|glpat|xox[abprs]|sk|pk)[_-][A-Za-z0-9_-]{16,}"), HIDDEN),
)  # fmt: skip


def redacted(text: str) -> str:
    """The text without what looks like a password, a key, a token or the secret part of a DSN."""
    for pattern, shown in _PATTERNS:
        text = pattern.sub(shown, text)
    return text


def redacted_value(name: str, value: str) -> str:
    """What stands under this name, unless the name says that it is a secret."""
    return HIDDEN if _SECRET.fullmatch(name) else redacted(value)


def redacted_json(value: Any) -> Any:
    """A value as JSON has it, with every text in it redacted, and what a secret's name or option stands before."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {
            name: HIDDEN if isinstance(item, str) and _SECRET.fullmatch(str(name)) else redacted_json(item)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        options = [isinstance(item, str) and _OPTION.fullmatch(item) for item in ("", *value)]
        return [
            HIDDEN if told and isinstance(item, str) else redacted_json(item)
            for told, item in zip(options, value, strict=False)
        ]
    return value
