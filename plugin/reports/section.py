"""What a workload shows of one trial, in every report, and the parts that reports are made of."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plugin.claims import Claim

if TYPE_CHECKING:
    from plugin.reports.charts import Chart


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One line of what was done or judged; times in milliseconds since 1970."""

    name: str
    status: str
    start: int
    stop: int
    parameters: Mapping[str, str] = field(default_factory=dict)
    steps: tuple["Step", ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Attached:
    """A file of a result: its name, media type, file extension and text, which holds no secret."""

    name: str
    type: str
    extension: str
    text: str


def picture_file(name: str, svg: str) -> Attached:
    """A picture."""
    return Attached(name=name, type="image/svg+xml", extension="svg", text=svg)


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Rows as comma-separated values."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def csv_file(name: str, text: str) -> Attached:
    """A table."""
    return Attached(name=name, type="text/csv", extension="csv", text=text)


Setups = tuple[tuple[str, str], ...]
"""Set-ups of a source and here: (whose, what)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """One table of a source: its row for a trial, what was measured, and the ratio; ``-`` where nothing answers.

    ``work`` is the source's name, ``note`` how its method differs, ``setups`` on what each of the two was measured.
    ``reading``: what the judge makes of the source's table. ``long``: a whole table, too long for a
    terminal, which shows its columns ``short``. ``charts`` are drawn from what was printed.
    """

    title: str
    work: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str
    setups: Setups = ()
    reading: tuple[str, ...] = ()
    long: bool = False
    short: tuple[str, ...] = ()
    charts: "tuple[Chart, ...]" = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """What a workload shows of one trial. All of it may be left out; nothing in it may hold a secret.

    ``sentences``: what was found, each without its full stop; ``notices`` are those that everything else is to be read
    with. ``told``: by metric, what it came to in words, for the sentence of a verdict. ``lines``: more for a terminal
    of a given width. ``timeline``: the trial's charts, instead of those of load and probe; ``charts``: others, by
    the places that ``html`` has for them. ``html``: a part of the page, given the trial's number there; a place for
    charts is an element of the class ``charts`` with ``data-trial`` (that number) and ``data-group``. ``description``:
    HTML for Allure; ``attached``: files for it, given a title; ``steps``: what was done, given when the trial began in
    milliseconds since 1970, instead of its phases. ``beside``: whole tables of the claim's source beside what was
    measured, given how tables are called and what was set up.
    """

    sentences: Sequence[str] = ()
    notices: Sequence[str] = ()
    told: Mapping[str, str] = field(default_factory=dict)
    lines: Callable[[int], Iterable[str]] = lambda columns: ()
    timeline: "Sequence[Chart]" = ()
    charts: "Mapping[str, Sequence[Chart]]" = field(default_factory=dict)
    html: Callable[[int], str] = lambda trial: ""
    description: str = ""
    attached: Callable[[str], Iterable[Attached]] = lambda title: ()
    steps: Callable[[int], Sequence[Step]] | None = None
    beside: Callable[[Claim, Mapping[str, str], Setups], Iterable[Beside]] = lambda claim, titles, setups: ()
