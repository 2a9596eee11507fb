"""A source's whole tables of TPC-C beside what was measured, with what the judge reads from each of the two."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fixtures.workloads.tpcc.evidence import TYPES
from fixtures.workloads.tpcc.judge.audit import BUILTIN
from fixtures.workloads.tpcc.judge.capacity import Knee, Step
from fixtures.workloads.tpcc.judge.paper import PaperParity, paper_knee, paper_parity
from fixtures.workloads.tpcc.judge.table import Line
from plugin.claims import Claim
from plugin.judge.paper import rows
from plugin.reports.paper import Beside
from plugin.reports.text import figure
from plugin.reports.tpcc import Tpcc
from plugin.reports.tpcc_words import plain

ARMS = ("nodes", "size")
"""Columns that say which arm a row is of; a ramp's table has none."""
OURS: Mapping[str, str] = {"p96_ms": "p95_ms"}
"""What is measured here in place of a column."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Printed:
    """A source's table and what the judge makes of it: the knee of a ramp, or the comparison of arms. ``arm``: its column, if any."""

    title: str
    table: Mapping[str, Any]
    arm: str
    knees: Mapping[str, Knee]
    parity: PaperParity | None


def printed(claim: Claim) -> Iterator[Printed]:
    """The tables of TPC-C that a claim's source printed."""
    for name, table in claim.paper.items():
        if not isinstance(table, Mapping) or not {"columns", "rows"} <= table.keys():
            continue
        arm = next((column for column in ARMS if column in table["columns"]), "")
        parity = paper_parity(table, arm) if arm else None
        yield Printed(
            title=name,
            table=table,
            arm=arm,
            knees=parity.knees if parity else {"": paper_knee(table)},
            parity=parity,
        )


def arm_of(row: Mapping[str, Any], arm: str) -> str:
    """The name that the arm of a row has here."""
    value = row.get(arm, "")
    return f"{value} nodes" if isinstance(value, int) else str(value)


def tables_beside(
    claim: Claim, found: Tpcc, titles: Mapping[str, str], setups: tuple[tuple[str, str], ...]
) -> list[Beside]:
    """Each table of the source, row by row, what was measured under the same load below it, and our other loads where they belong."""
    work = claim.source.work if claim.source else "the source"
    return [
        Beside(
            title=titles.get(table.title, table.title),
            work=work,
            head=("", *(column.replace("_", " ") for column in table.table["columns"]), "judged"),
            rows=tuple(_rows(table, found, work)),
            note=claim.note,
            setups=(*setups, ("runs here", runs_here(found))),
            reading=tuple(reading(table, f"{titles.get(table.title, table.title)} of the {work}")),
            long=True,
        )
        for table in printed(claim)
    ]


def runs_here(found: Tpcc) -> str:
    """How the runs were measured."""
    seconds = [run.until - run.measured for run in found.runs if run.until and run.measured is not None]
    ramps = [
        run.measured - run.ramp for run in found.runs if run.measured is not None and run.ramp is not None
    ]
    drivers = ", ".join(dict.fromkeys(run.driver for run in found.runs if run.driver))
    if not seconds:
        return f"{len(found.runs)} runs, none of them measured"
    return (
        f"{len(found.runs)} runs ({drivers} driver), {_range(seconds)} measured after "
        f"a ramp of {_range(ramps)}" + (f"; {found.looks}" if found.looks else "")
    )


def _range(values: Sequence[float]) -> str:
    low, high = round(min(values)), round(max(values))
    return f"{low} s" if low == high else f"{low} to {high} s"


def _rows(table: Printed, found: Tpcc, work: str) -> Iterator[tuple[str, ...]]:
    theirs = {(int(row["warehouses"]), arm_of(row, table.arm)): row for row in rows(table.table)}
    ours = {
        (line.warehouses, line.arm if table.arm else ""): line
        for line in _deciding(found)
        if not line.repeats
    }
    order = {arm: at for at, arm in enumerate(dict.fromkeys(arm for _, arm in (*theirs, *ours)))}
    columns = table.table["columns"]
    for place in sorted({*theirs, *ours}, key=lambda p: (p[0], order[p[1]])):
        row, line = theirs.get(place), ours.get(place)
        if row is not None:
            yield (f"{work} printed", *(_told(row[column]) for column in columns), _judged(table, *place))
        if line is not None:
            yield ("measured here", *(_measured(column, line, table.arm) for column in columns), _ours(table, line, found))  # fmt: skip
        if row is not None and line is not None:
            yield ("ratio", *(_ratio(column, row, line) for column in columns), "-")


def _told(value: object) -> str:
    """As it was printed."""
    return f"{value:.1f}" if isinstance(value, float) else figure(value)


def _deciding(found: Tpcc) -> Sequence[Line]:
    """Those of our own driver where it ran."""
    return [line for line in found.lines if line.driver != BUILTIN] or found.lines


def _value(column: str, line: Line) -> float | None:
    name = OURS.get(column, column)
    if name in ("tpmc", "efc"):
        return float(getattr(line, name))
    return float(getattr(line.latency, name)) if line.latency and hasattr(line.latency, name) else None


def _measured(column: str, line: Line, arm: str) -> str:
    if column == "warehouses":
        return str(line.warehouses)
    if column == arm:
        return line.arm.removesuffix(" nodes")
    value = _value(column, line)
    if value is None:
        return "-"
    return plain(value) + (f" ({OURS[column].removesuffix('_ms')})" if column in OURS else "")


def _ours(table: Printed, line: Line, found: Tpcc) -> str:
    """What the judge says of a line of ours, in the words it has for the source's."""
    knee = found.ramps.get(line.arm)
    if not table.arm and knee is not None:
        capacity = knee.capacity is not None and knee.capacity.warehouses == line.warehouses
        return ("passes" if line.passes else "does not pass") + (": capacity" if capacity else "")
    return "comparable" if line.comparable else "saturated"


def _ratio(column: str, row: Mapping[str, Any], line: Line) -> str:
    value = _value(column, line)
    return f"{value / row[column]:.2f}" if value is not None and row[column] else "-"


def _judged(table: Printed, warehouses: int, arm: str) -> str:
    """What the judge says of a row of the source."""
    if table.parity is None:
        step = _step(table.knees[""], warehouses)
        told = "passes" if step.passes else "does not pass"
        capacity = table.knees[""].capacity
        return told + (": capacity" if capacity and capacity.warehouses == warehouses else "")
    if f"{warehouses} warehouses" in table.parity.parity.comparable:
        return "comparable"
    cell = next(each for each in table.parity.parity.cells if each.name == f"{warehouses} warehouses")
    return "saturated" if cell.short(arm) else "not comparable: another arm is saturated"


def _step(knee: Knee, warehouses: int) -> Step:
    return next(step for step in knee.steps if step.warehouses == warehouses)


def reading(table: Printed, called: str) -> Iterator[str]:
    """What the judge reads from the source's table, in sentences without their full stop. ``called``: how readers know it."""
    if table.parity is None:
        yield f"From {called} alone the judge finds a capacity of {table.knees['']}"
        return
    found = table.parity
    doubts = f": {', '.join(found.doubts)}" if found.doubts else ""
    verdict = "inconclusive" if found.decision == "undecided" else str(found.decision)
    yield f"From {called} alone the judge says: {verdict}{doubts}"
    ratios = found.ratios()
    if ratios:
        low, high = (
            f"{value:+.1f} %".replace("-", "−") for value in (min(ratios.values()), max(ratios.values()))
        )
        cells = found.parity.comparable
        sizes = f"{cells[0].split()[0]} to {cells[-1]}" if len(cells) > 1 else cells[0]
        yield f"Comparable there: {sizes}; the {len(ratios)} ratios lie between {low} and {high}"
    if found.parity.saturated:
        yield f"Not comparable there: {'; '.join(found.parity.saturated)}"
    knees = [
        f"{arm} {knee.capacity.warehouses if knee.capacity else 0}" + ("" if knee.failed else " or more")
        for arm, knee in table.knees.items()
    ]
    yield f"Warehouses carried there, by efficiency alone (no p90 by type): {', '.join(knees)}"


def step_p90(step: Step) -> float | None:
    """The worst 90th percentile of any type that a step knows, or that of all types, in ms."""
    by_type = [value for kind, value in step.p90_s.items() if kind in TYPES] or list(step.p90_s.values())
    return 1e3 * max(by_type) if by_type else None
