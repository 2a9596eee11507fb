"""Declared files: TOML read, held against a declared form, and turned into frozen values.

A *rule* is called with a value and the place it stands at; it returns the typed value or raises ``BadInput``. Rules are
built from smaller ones: ``record(Ledger, rate_per_s=number(above=0), writers=integer(minimum=1))``. Every message names
the file and the key, the value, the constraint and the way out: no library's messages have all of them, so the rules
are our own. Each rule also has the JSON schema of what it takes, for editors.
"""

import difflib
import json
import math
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any, Generic, TypeVar

from clusters.errors import BadInput

T = TypeVar("T")
E = TypeVar("E", bound=Enum)

ROOT = Path(__file__).resolve().parent.parent
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands: a file as people know it and the path of keys in it."""

    file: str
    key: str = ""

    def __truediv__(self, part: str | int) -> "Place":
        """The place one key or index further in."""
        if isinstance(part, int):
            return Place(self.file, f"{self.key}[{part}]")
        part = part if _BARE_KEY.fullmatch(part) else json.dumps(part)
        return Place(self.file, f"{self.key}.{part}" if self.key else part)

    def wrong(self, problem: str) -> BadInput:
        """The error to raise: ``file: key: problem``."""
        return BadInput(f"{self.file}: {self.key}: {problem}" if self.key else f"{self.file}: {problem}")

    def must(self, value: object, constraint: str, way_out: str) -> BadInput:
        """The error to raise for a value that breaks a constraint."""
        return self.wrong(f"{shown(value)} must be {constraint}; {way_out}")


Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Rule(Generic[T]):
    """Checks a value that stands at a place; returns it typed or raises ``BadInput``."""

    check: Callable[[Any, Place], T]
    schema: Schema
    """What it takes, as JSON schema."""

    def __call__(self, value: Any, place: Place) -> T:
        """The typed value. Raises ``BadInput``."""
        return self.check(value, place)


def ruled(schema: Schema) -> Callable[[Callable[[Any, Place], T]], Rule[T]]:
    """Make a rule of a function."""
    return lambda check: Rule(check, schema)


def shown(value: object) -> str:
    """A value as a message shows it: short, on one line, never failing."""
    if isinstance(value, dict | list):  # never their contents: they may be nested deeper than repr goes
        return "a table" if isinstance(value, dict) else "an array"
    try:
        text = repr(value)
    except ValueError:  # an integer with more digits than Python prints
        return "this number"
    return text if len(text) <= 80 else f"{text[:77]}..."


def suggestion(word: str, known: Collection[str], *, then: str = "") -> str:
    """What else could have been meant: the nearest known word, or all of them where there are few.

    ``then``: a sentence that follows.
    """
    known = sorted(map(str, known))
    # First what has the same characters: '==' for '=', '<=' for '=<', where others are as near.
    same = [one for one in known if {*one} == {*word} and abs(len(one) - len(word)) < 2]
    if near := same or difflib.get_close_matches(word, known, n=1):
        return f"did you mean {near[0]!r}?" + (then and f" {then}")
    there = f"there are {', '.join(known[:30])}{' …' if len(known) > 30 else ''}" if known else "there is none"
    return there + (then and f". {then}")


def shown_path(path: Path) -> str:
    """A path as messages name it: relative to the suite's checkout where it is inside, else as it was given."""
    try:
        return path.resolve().relative_to(ROOT).as_posix()
    except (ValueError, OSError, RuntimeError):
        return str(path)


def read(path: Path) -> tuple[dict[str, Any], Place]:
    """The tables of a TOML file and the place of its top. Raises ``BadInput``: unreadable, not UTF-8, or malformed."""
    top = Place(shown_path(path))
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise top.wrong(f"byte {error.start} is not UTF-8; save the file as UTF-8") from None
        why = getattr(error, "strerror", None) or error
        raise top.wrong(f"cannot be read ({why}); check the path and its permissions") from None
    try:
        return tomllib.loads(content), top
    except RecursionError:
        raise top.wrong("is not usable TOML: nested too deeply; flatten it") from None
    except ValueError as error:
        end = f"at line {content.count(chr(10)) + 1}, the end"
        why = str(error).replace("at end of document", end)
        raise top.wrong(f"is not valid TOML: {why}; correct it there") from None


def text(*, pattern: str = "", what: str = "a text that is not empty") -> Rule[str]:
    """A text on one line that is not blank and, where given, matches ``pattern`` as a whole."""

    @ruled({"type": "string", "minLength": 1} | ({"pattern": f"^{pattern}$"} if pattern else {}))
    def rule(value: Any, place: Place) -> str:
        if not isinstance(value, str) or not value.strip() or _CONTROL.search(value):
            raise place.must(value, f"{what}, on one line", "put it in quotes, without control characters")
        if pattern and not re.fullmatch(pattern, value):
            raise place.must(value, what, "rename it")
        return value

    return rule


@ruled({"type": "string", "minLength": 1})
def statement(value: Any, place: Place) -> str:
    """One SQL statement, on as many lines as it takes."""
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise place.must(value, "one SQL statement that is not empty", "put it in quotes")
    return value.strip()


def number(*, above: float | None = None, maximum: float = math.inf) -> Rule[float]:
    """A finite number, at least 0 or, where given, greater than ``above``, and at most ``maximum``."""
    bound = "at least 0" if above is None else f"greater than {above:g}"
    bound += f" and at most {maximum:g}" if maximum < math.inf else ""

    @ruled(
        {"type": "number", **({"minimum": 0} if above is None else {"exclusiveMinimum": above})}
        | ({"maximum": maximum} if maximum < math.inf else {})
    )
    def rule(value: Any, place: Place) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise place.must(value, f"a number, {bound}", "write it without quotes")
        try:
            result = float(value)
        except OverflowError:
            result = math.inf
        if not math.isfinite(result):
            raise place.must(value, f"a finite number, {bound}", "nothing can be compared with it; give a figure")
        if not 0 <= result <= maximum or (above is not None and result <= above):
            raise place.must(value, bound, "give a figure that can be met")
        return result

    return rule


def integer(*, minimum: int = 0, maximum: int = 1_000_000_000) -> Rule[int]:
    """A whole number from ``minimum`` to ``maximum``."""

    @ruled({"type": "integer", "minimum": minimum, "maximum": maximum})
    def rule(value: Any, place: Place) -> int:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not minimum <= value <= maximum:
            raise place.must(value, f"a whole number from {minimum} to {maximum}", "give such a figure")
        return int(value)

    return rule


@ruled({"type": "boolean"})
def flag(value: Any, place: Place) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise place.must(value, "true or false", "write it without quotes")
    return value


def name_of(known: Collection[str], what: str) -> Rule[str]:
    """One of the known names; ``what`` says what they name ("a profile")."""

    @ruled({"type": "string", "enum": sorted(map(str, known))})
    def rule(value: Any, place: Place) -> str:
        if not isinstance(value, str) or value not in known:
            raise place.must(value, what, suggestion(value if isinstance(value, str) else "", known))
        return value

    return rule


def member(enum: type[E], what: str) -> Rule[E]:
    """A member of the enum, by its value."""
    known = {str(item.value): item for item in enum}
    by_name = name_of(known, what)
    return Rule(lambda value, place: known[by_name(value, place)], by_name.schema)


def several(rule: Rule[T], *, at_least: int = 0, distinct: bool = True) -> Rule[tuple[T, ...]]:
    """An array, each item by the same rule and, unless said otherwise, none twice."""

    @ruled({"type": "array", "items": rule.schema, "minItems": at_least, "uniqueItems": distinct})
    def outer(value: Any, place: Place) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise place.must(value, "an array", "put it in square brackets")
        if len(value) < at_least:
            raise place.must(value, f"an array of at least {at_least}", "add what is missing")
        items = tuple(rule(item, place / index) for index, item in enumerate(value))
        for index, item in enumerate(items):
            if distinct and item in items[:index]:
                raise (place / index).wrong(f"{shown(value[index])} stands there already; remove one")
        return items

    return outer


def keyed(key: Rule[str], rule: Rule[T]) -> Rule[Mapping[str, T]]:
    """A table whose keys are names by one rule and whose values all follow another."""

    @ruled({"type": "object", "propertyNames": key.schema, "additionalProperties": rule.schema})
    def outer(value: Any, place: Place) -> Mapping[str, T]:
        if not isinstance(value, dict):
            raise place.must(value, "a table", "see the suite's own catalogue for its form")
        return {key(name, place / name): rule(item, place / name) for name, item in value.items()}

    return outer


def form(cls: type[Any], **rules: Rule[Any]) -> Rule[dict[str, Any]]:
    """A table with the keys of ``rules``: arguments for the dataclass ``cls``, those with a default may be missing."""
    without = (item.name for item in fields(cls) if item.default is MISSING and item.default_factory is MISSING)
    needed = rules.keys() & without
    properties = {key: rule.schema for key, rule in rules.items()}

    @ruled({"type": "object", "properties": properties, "required": sorted(needed), "additionalProperties": False})
    def rule(value: Any, place: Place) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise place.must(value, f"a table with {', '.join(rules)}", "give it as { key = value, … }")
        for key in value:
            if key not in rules:
                raise (place / key).wrong(f"unknown key; {suggestion(key, rules)}")
        for key in rules:
            if key in needed and key not in value:
                raise (place / key).wrong("is missing; add it")
        return {key: rules[key](item, place / key) for key, item in value.items()}

    return rule


def record(cls: type[T], **rules: Rule[Any]) -> Rule[T]:
    """A table that becomes a ``cls``; see ``form``."""
    table = form(cls, **rules)
    return Rule(lambda value, place: cls(**table(value, place)), table.schema)


@ruled({})
def anything(value: Any, place: Place) -> Any:
    """Whatever TOML can hold, unchecked: reference data."""
    return value
