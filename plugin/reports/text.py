"""How values and outcomes are written in every report."""

import math
import textwrap
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plugin.counts import noun, number_of
from plugin.result import HARNESS, NOT_AS_EXPECTED, Result

if TYPE_CHECKING:
    import jinja2

WIDTH = 100
"""Columns of what is printed."""

ASSETS = Path(__file__).with_name("assets")
WORDS = {HARNESS: "HARNESS FAILED"}
SIGNS = {"pass": "✔", "refuted": "✘", "inconclusive": "?", "not evaluated": "○", "reported": "·", NOT_AS_EXPECTED: "✘"}
"""An outcome is never told by colour alone."""


def word(outcome: str) -> str:
    """An outcome as people read it."""
    return WORDS.get(outcome, outcome.upper())


def shown(result: Result) -> str:
    """A result as people read it."""
    return f"{result.expected.upper()} AS EXPECTED" if result.expected else word(result.outcome)


def capital(line: str) -> str:
    """A sentence's first letter, unless it begins with a name such as v21.1."""
    first = line.partition(" ")[0]
    return line[:1].upper() + line[1:] if first.isalpha() else line


def number(value: float | str | None) -> str:
    """A measured value: whole numbers whole, others with three significant places at least; infinity is text."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return f"{int(value)}"
    return f"{value:.1f}" if 100 <= abs(value) < 1e15 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """How long something may take: seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def measured_text(result: Mapping[str, Any]) -> str:
    """What a check measured, with its unit."""
    unit, value = result["check"]["unit"], result["measurement"]["value"]
    return number(value) + (f" {noun(value, unit)}" if unit and value is not None else "")


def limit_text(check: Mapping[str, Any]) -> str:
    """What a check's measured value must be; nothing of one without a limit."""
    unit = f" {noun(check['limit'], check['unit'])}" if check["unit"] else ""
    return f"{check['comparison']} {number(check['limit'])}{unit}" if check["limit"] is not None else ""


def machine(host: Mapping[str, Any]) -> str:
    """What a run's ``host`` says of the machine; nothing of one that is not known."""
    if not host:
        return ""
    cores, memory = number(host.get("cores")), number(host.get("memory_total_gib"))
    return ", ".join(filter(None, [number_of(cores, "cores"), f"{memory} GiB memory", str(host.get("kernel") or "")]))


def wrapped(text: str, indent: str = "  ", *, most: int | None = None, width: int = WIDTH) -> list[str]:
    """Text in lines of at most 100 columns; what does not fit in ``most`` lines is cut off with an ellipsis."""
    lines = textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent,
        break_on_hyphens=False, max_lines=most, placeholder=" …",
    )  # fmt: skip
    return lines or [indent]


def typed(path: Path, home: Path) -> str:
    """A path as it can be typed in the directory ``home``."""
    return str(path.relative_to(home) if path.is_relative_to(home) else path)


def figure(value: object) -> str:
    """A value of a source's table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, int | float) else str(value)


def rendered(name: str, *, home: Path = ASSETS, **values: object) -> str:
    """A template (Jinja) of the directory ``home``, or of ``assets``, with these values, which it escapes."""
    return str(_environment(home).get_template(name).render(**values))


@cache
def _environment(home: Path) -> "jinja2.Environment":
    """Keeps what it has compiled."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader([home, ASSETS]), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
