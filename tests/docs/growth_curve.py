"""Draws the growth curves of ``docs/tenancy.md`` from the table there: ``tox -e pictures`` writes the picture anew."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fixtures.workloads.tenants.judge.extrapolation import ARTICLE, TARGET
from plugin.reports.charts import DASHED, DOTTED, STYLES, Chart, Line, Mark
from plugin.reports.svg import as_svg
from plugin.reports.svg_elements import in_the_dark

DOCUMENT = Path(__file__).parents[2] / "docs" / "tenancy.md"
PICTURE = DOCUMENT.with_name("growth-curve.svg")
HEAD = "| build | tables |"
STEPS = 60
HOURS = {"s": 1 / 3600, "min": 1 / 60, "h": 1.0}


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A build's curve. Costs in ms a table, by the straight line through all batches; for the article's size hours."""

    build: str
    tables: int
    first: float
    last: float
    stays: Sequence[float]
    """If the cost stayed what it was: the estimate, and the ends of its interval where they are told."""
    in_line: Sequence[float]
    """If it went on in the line; nothing where the line is level."""

    def cost(self, tables: float) -> float:
        """Of one more table, by the line."""
        return self.first + (self.last - self.first) * tables / self.tables

    def hours(self, tables: float) -> float:
        """For so many, in the line."""
        return tables * self.cost(tables / 2) / 3.6e6

    def hours_if_it_stays(self, tables: float) -> float:
        """For so many, at the mean cost of those that were measured."""
        return tables * self.cost(self.tables / 2) / 3.6e6


def rows(text: str) -> list[Row]:
    """The rows of the document's table."""
    _, table = text.split(HEAD)
    lines = table.partition("\n\n")[0].splitlines()[2:]
    return [_row([cell.strip() for cell in line.strip("|").split("|")]) for line in lines]


def _row(cells: Sequence[str]) -> Row:
    build, tables, _, first, last, _, stays, in_line, _ = cells
    return Row(
        build=build.partition(",")[0], tables=int(tables.replace(" ", "")), first=float(first.removesuffix(" ms")),
        last=float(last.removesuffix(" ms")), stays=_hours(stays), in_line=_hours(in_line),
    )  # fmt: skip


def _hours(cell: str) -> Sequence[float]:
    """``4.6 h (3.8 to 5.4)``: the estimate and its interval."""
    unit = re.search(r"[a-z]+", cell)
    return [HOURS[unit[0]] * float(figure) for figure in re.findall(r"[\d.]+", cell)] if unit else []


def drawn(found: Sequence[Row]) -> str:
    """The picture: what a table cost as far as was measured, and what the article's size would take."""
    builds = [(row, colour) for row, (colour, _) in zip(found, STYLES, strict=False)]
    largest = max(row.tables for row in found)
    measured = sorted({row.tables for row in found} | {largest * step / STEPS for step in range(STEPS + 1)})
    sizes = sorted({row.tables for row in found} | {TARGET * step / STEPS for step in range(1, STEPS + 1)})
    sizes.append(TARGET)  # a second time, for the other end of an interval
    costs = [
        Line(
            label=row.build, values=[row.cost(size) if size <= row.tables else None for size in measured],
            colour=colour, unit="ms", width=3,
        )
        for row, colour in builds
    ]  # fmt: skip
    marks = [
        Mark(begin=size - TARGET / 300, end=size, name=f"{size // 1000} 000", colour="back") for size, _ in ARTICLE
    ]
    charts = [
        Chart(
            title="Cost of one more table in ms, by the straight line through what was measured (logarithmic)",
            x=measured, across="tables", lines=costs, logarithmic=True,
        ),
        Chart(
            title=f"Hours for all tables, to the article's {TARGET // 1000} 000, whose sizes are marked (logarithmic)",
            x=sizes, across="tables", behind=marks, height=300, logarithmic=True,
            lines=[line for row, colour in builds for line in _extrapolated(row, colour, sizes)],
        ),
    ]  # fmt: skip
    return in_the_dark(as_svg(charts, "Growth curves on two cores, three nodes"))


def _extrapolated(row: Row, colour: str, sizes: Sequence[float]) -> Iterator[Line]:
    yield Line(
        label=f"{row.build}, measured", colour=colour, width=3,
        values=[row.hours(size) if size <= row.tables else None for size in sizes],
    )  # fmt: skip
    if row.in_line:
        values = [row.hours(size) if size >= row.tables else None for size in sizes]
        yield Line(label=f"{row.build}, in the line", values=values, colour=colour, dash=DOTTED, width=2)
    values = [row.hours_if_it_stays(size) if size >= row.tables else None for size in sizes]
    yield Line(label=f"{row.build}, if the cost stays", values=values, colour=colour, dash=DASHED, width=2)
    nothing: list[float | None] = [None] * (len(sizes) - 2)
    for model, (_, *ends) in (("if the cost stays", row.stays), ("in the line", row.in_line or [0])):
        if ends:
            label = f"{row.build}, interval {model}"
            yield Line(label=label, values=[*nothing, *ends], colour=colour, shape="dots")


def draw() -> Path:
    """Write the picture."""
    PICTURE.write_text(drawn(rows(DOCUMENT.read_text())) + "\n")
    return PICTURE
