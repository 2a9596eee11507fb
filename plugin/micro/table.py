"""The table of micro benchmarks: a row a statement, a column a version. Pure: recorded benchmarks in, lines out.

It is advice. A ratio's interval says how far the turns of these runs scattered, not what another day would have shown.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, variance
from typing import Any

from clusters.engines import ENGINES, is_control
from clusters.errors import BadInput
from plugin.counts import number_of
from plugin.judge.student import student_quantile
from plugin.reports.text import WIDTH, wrapped

OWN = "roachproof"
"""Under this name the records of pytest-benchmark say what was measured, and where."""
CONFIDENCE = 0.95
ADVICE = (
    "This is advice, not a verdict, and no exit status depends on it: what may go into production is decided by the "
    "gate, which compares two versions under load, in interleaved runs."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One turn of a statement on one target, in seconds; ``middle``: first and third quartile of its rounds."""

    statement: str
    engine: str
    version: str
    target: str
    turn: int
    median: float
    middle: tuple[float, float]
    retries: int
    file: str = ""
    """The stored baseline it comes from; empty for this run."""
    when: str = ""
    """When the baseline was stored (UTC)."""
    load: float = 0.0
    """The load average of the machine before it was measured."""

    @property
    def column(self) -> str:
        """What the column is called: the version; in an A/A run numbered."""
        number = self.target.partition("#")[2]
        return f"{self.version}#{number}" if number and not self.file else self.version


@dataclass(frozen=True, kw_only=True, slots=True)
class Ratio:
    """How much longer a statement takes than in the first column; ``interval`` is ``None`` where too few turns tell."""

    value: float
    interval: tuple[float, float] | None


def turns(record: Mapping[str, Any], *, file: str = "") -> Iterator[Turn]:
    """The turns in a record of pytest-benchmark (its JSON). What other benchmarks stored there is passed over."""
    when = str(record.get("datetime", ""))[:16].replace("T", " ")
    load = next(iter(record.get("machine_info", {}).get(f"{OWN}_load", ())), 0.0)
    for each in record.get("benchmarks", ()):
        about = each.get("extra_info", {}).get(OWN)
        if about:
            stats = each["stats"]
            yield Turn(
                statement=str(each["group"]),
                engine=str(about["engine"]),
                version=str(about["version"]),
                target=str(about["target"]),
                turn=int(about["turn"]),
                median=float(stats["median"]),
                middle=(float(stats["q1"]), float(stats["q3"])),
                retries=int(about["retries"]),
                file=file,
                when=when if file else "",
                load=float(load),
            )


def newest(stored: Iterable[Turn]) -> list[Turn]:
    """Of what is stored, the newest file of each statement and version."""
    kept: dict[tuple[str, str, str], list[Turn]] = {}
    for each in stored:
        have = kept.setdefault((each.engine, each.version, each.statement), [])
        if have and (have[0].when, have[0].file) < (each.when, each.file):
            have.clear()
        if not have or have[0].file == each.file:
            have.append(each)
    return [each for have in kept.values() for each in have]


def ratio(measured: Sequence[Turn], first: Sequence[Turn], *, paired: bool) -> Ratio:
    """How much longer ``measured`` took than ``first``, by the geometric mean over turns, with Student's interval.

    ``paired``: turns with the same number were measured back to back, so that what the machine did meanwhile cancels
    out; else Welch's interval. One turn has none.
    """
    if paired:
        logs = {each.turn: math.log(each.median) for each in first}
        pairs = [math.log(each.median) - logs[each.turn] for each in measured if each.turn in logs]
        if pairs:
            return _interval(fmean(pairs), _squared_error(pairs), df=len(pairs) - 1)
    sides = [[math.log(each.median) for each in side] for side in (measured, first)]
    shift = fmean(sides[0]) - fmean(sides[1])
    errors = [error for side in sides if (error := _squared_error(side)) is not None]
    if len(errors) < len(sides):
        return _interval(shift, None, df=0)
    below = sum(error**2 / (len(side) - 1) for error, side in zip(errors, sides, strict=True))
    return _interval(shift, sum(errors), df=max(1, int(sum(errors) ** 2 / below)) if below else 1)


def _squared_error(values: Sequence[float]) -> float | None:
    return variance(values) / len(values) if len(values) > 1 else None


def _interval(shift: float, squared: float | None, *, df: int) -> Ratio:
    if squared is None:
        return Ratio(value=math.exp(shift), interval=None)
    half = student_quantile((1 + CONFIDENCE) / 2, df) * math.sqrt(squared)
    return Ratio(value=math.exp(shift), interval=(math.exp(shift - half), math.exp(shift + half)))


def age(column: Sequence[Turn]) -> tuple[object, ...]:
    """Sorts columns: the subject's first, an engine's oldest version first, last what is no version, by its text."""
    first = column[0]
    number = int(first.target.partition("#")[2] or 0) if not first.file else 0
    engine = (is_control(first.engine), first.engine)
    try:
        return *engine, 0, ENGINES[first.engine].order(first.version), number
    except BadInput:
        return *engine, 1, first.version, number


def table(measured: Sequence[Turn], stored: Sequence[Turn], *, apart: str, notes: Sequence[str]) -> list[str]:
    """The lines of the table, at most 100 columns; the last says that it is advice.

    ``stored``: baselines to compare with. ``apart``: why the versions of this run were not measured in turns; empty
    where they were. ``notes``: what else must be said.
    """
    found: dict[str, list[Turn]] = {}
    for each in (*measured, *stored):
        found.setdefault(each.column + ("*" if each.file else ""), []).append(each)
    order = sorted(found, key=lambda name: age(found[name]))
    statements = list(dict.fromkeys(each.statement for each in (*measured, *stored)))
    against = f"; below: × the oldest, {order[0]} ({CONFIDENCE:.0%} interval)" if len(order) > 1 else ""
    lines = wrapped(f"median in ms (quartiles of the rounds){against}", "")
    left = max(len(name) for name in statements) + 2
    width = max(24, *(len(name) for name in order)) + 2
    each_time = max(1, (WIDTH - left) // width)
    for at in range(0, len(order), each_time):
        shown = order[at : at + each_time]
        lines += ["", " " * left + "".join(f"{name:<{width}}" for name in shown).rstrip()]
        for statement in statements:
            of = {name: [each for each in found[name] if each.statement == statement] for name in order}
            cells = [_cell(of[name], of[order[0]] if name != order[0] else (), apart=apart) for name in shown]
            for head, row in zip((statement, ""), zip(*cells, strict=True), strict=True):
                line = f"{head:<{left}}" + "".join(f"{text:<{width}}" for text in row)
                lines += [line.rstrip()] * bool(line.strip())
    said = [*_retries(found), *_origins(measured, stored, apart=apart, several=len(order) > 1), *notes]
    if len(order) == 1:
        engine = found[order[0]][0].engine
        option = ENGINES[engine].choice.version if engine in ENGINES else ""
        said.append(
            "Nothing to compare with: no baseline of another version, measured here with the same settings, is stored."
            + (f" Give {option} twice to measure two versions in turns." if option else "")
        )
    lines.append("")
    return lines + [part for text in (*said, ADVICE) for part in wrapped(text, "")]


def _cell(mine: Sequence[Turn], first: Sequence[Turn], *, apart: str) -> tuple[str, str]:
    """A column's figure of a statement, and what stands below it: the ratio to the ``first`` column, if any."""
    if not mine:
        return "-", ""
    low, high = (median(each.middle[end] for each in mine) for end in (0, 1))
    cell = f"{_ms(median(each.median for each in mine))} ({_ms(low)}–{_ms(high)})"
    if not first:
        return cell, ""
    paired = not apart and not mine[0].file and not first[0].file
    return cell, _said(ratio(mine, first, paired=paired))


def _said(found: Ratio) -> str:
    if found.interval is None:
        return f"× {found.value:.2f} (one turn)"
    return f"× {found.value:.2f} ({found.interval[0]:.2f}–{found.interval[1]:.2f})"


def _ms(seconds: float) -> str:
    value = seconds * 1000
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _retries(found: Mapping[str, Sequence[Turn]]) -> list[str]:
    counts = {name: sum(each.retries for each in column) for name, column in found.items()}
    told = [f"{count} on {name}" for name, count in counts.items() if count]
    return [f"Repeated after a serialization failure (40001), and timed with it: {', '.join(told)}."] * bool(told)


def _origins(measured: Sequence[Turn], stored: Sequence[Turn], *, apart: str, several: bool) -> list[str]:
    """Which figures are of this run and which are not, and what was interleaved."""
    lines = []
    columns = {each.column for each in measured}
    most = max(each.turn for each in measured)
    turns_ = number_of(most, "turns")
    if len(columns) > 1:
        lines.append(
            f"The versions of this run are not interleaved, one was measured after the other: {apart}."
            if apart
            else f"Measured in this run in {turns_}: every statement on all versions back to back, in changing order, "
            "their clusters up side by side."
        )
    elif several:
        lines.append(f"Measured in this run: {', '.join(columns)}, in {turns_}.")
    origins = sorted({(each.column, each.when, each.file, each.load) for each in stored})
    lines += [
        f"* {version}: a stored baseline of {when} UTC ({file}; load average {load:.1f} before it), not interleaved "
        "with this run; the machine may have changed since."
        for version, when, file, load in origins
    ]
    return lines
