"""Draws the growth curves of ``docs/tenancy.md`` from what was measured, for ``tox -e pictures``."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path

from fixtures.workloads.tenants.judge.extrapolation import ARTICLE, TARGET, Extrapolation, extrapolated
from plugin.reports.charts import DASHED, DOTTED, STYLES, Chart, Line, Mark
from plugin.reports.svg import as_svg
from plugin.reports.svg_elements import in_the_dark

DOCUMENT = Path(__file__).parents[2] / "docs" / "tenancy.md"
MEASURED = DOCUMENT.with_name("growth-curve.csv")
PICTURE = DOCUMENT.with_name("growth-curve.svg")
STEP = TARGET // 120
"""Places of the hours, in tables."""
ENDS = 5
"""Places at the article's size: the ends of two intervals, and nothing between these."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """A build's rows: ``tables`` before the first batch and after each row, and what one more cost there, in ms."""

    build: str
    tables: Sequence[int]
    costs: Sequence[float]

    @property
    def points(self) -> Sequence[tuple[float, float]]:
        """Tables in the middle of each row's batches, seconds a table: as the judge has them of each batch."""
        middles = [(begin + end) / 2 for begin, end in pairwise(self.tables)]
        return [(middle, cost / 1e3) for middle, cost in zip(middles, self.costs, strict=True)]

    @property
    def model(self) -> Extrapolation:
        """The line through them, and what the article's size would take."""
        found = extrapolated(self.points)
        assert found is not None, f"{self.build}: too few rows"
        return found

    def hours(self, size: float) -> float | None:
        """That making so many took; nothing beyond those that were made."""
        if size > self.tables[-1]:
            return None
        stretches = zip(pairwise(self.tables), self.costs, strict=True)
        return sum(cost * max(0.0, min(size, end) - begin) for (begin, end), cost in stretches) / 3.6e6


def measured() -> list[Measured]:
    """What the file has, by build. The first row of each has how many tables there were before the first batch."""
    with MEASURED.open(newline="") as file:
        _, *rows = csv.reader(file)
    return [_of(build, [*found]) for build, found in groupby(rows, key=lambda row: row[0])]


def _of(build: str, rows: Sequence[Sequence[str]]) -> Measured:
    tables, costs = [int(row[1]) for row in rows], [float(row[2]) for row in rows[1:]]
    return Measured(build=build, tables=tables, costs=costs)


def drawn(found: Sequence[Measured]) -> str:
    """The picture: what a table cost in each build, and what all took and the article's size would take."""
    builds = [(one, colour) for one, (colour, _) in zip(found, STYLES, strict=False)]
    sizes = sorted({one.tables[-1] for one in found} | {*range(0, TARGET + 1, STEP)})
    sizes += [TARGET] * (ENDS - 1)
    marks = [
        Mark(begin=size - TARGET / 300, end=size, name=f"{size // 1000} 000", colour="back") for size, _ in ARTICLE
    ]
    hours = Chart(
        title=f"Hours for all tables, to the article's {TARGET // 1000} 000, whose sizes are marked (logarithmic)",
        x=sizes, across="tables", behind=marks, height=330, logarithmic=True,
        lines=[line for one, colour in builds for line in _hours(one, colour, sizes)],
    )  # fmt: skip
    charts = [*(_costs(one, colour) for one, colour in builds), hours]
    return in_the_dark(as_svg(charts, "Growth curves on two cores, three nodes"))


def _costs(one: Measured, colour: str) -> Chart:
    line, places = one.model.line, [0, *(round(middle) for middle, _ in one.points)]
    return Chart(
        title=f"{one.build}: cost of one more table, by how many there are", x=places, across="tables", height=220,
        lines=[
            Line(label="measured", values=[None, *one.costs], colour=colour, unit="ms", shape="dots", width=0),
            Line(label="the straight line", values=[1e3 * line.cost(size).value for size in places], colour="ink"),
        ],
    )  # fmt: skip


def _hours(one: Measured, colour: str, sizes: Sequence[float]) -> Iterator[Line]:
    model, last = one.model, one.tables[-1]
    yield Line(label=f"{one.build}, measured", values=[one.hours(size) for size in sizes], colour=colour, width=3)
    told = [("if the cost stays", model.linear, DASHED, [size / TARGET * model.linear.value for size in sizes])]
    if not model.line.falls:
        told.append(("by the line", model.quadratic, DOTTED, [model.line.total(size).value for size in sizes]))
    ends: list[float | None] = [None] * (len(sizes) - ENDS)
    for name, interval, dash, seconds in told:
        values = [second / 3600 if size >= last else None for size, second in zip(sizes, seconds, strict=True)]
        yield Line(label=f"{one.build}, {name}", values=values, colour=colour, dash=dash, width=2)
        ends += [interval.low / 3600, interval.high / 3600, None]
    if not model.line.bends:
        yield Line(label=f"{one.build}, intervals (95 %)", values=ends[: len(sizes)], colour=colour, shape="dots")


def draw() -> Path:
    """Write the picture."""
    PICTURE.write_text(drawn(measured()) + "\n")
    return PICTURE
