"""TPC-C runs in words: the papers' table, a sentence for each thing that was found, and a short form for the terminal."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fixtures.workloads.tpcc.judge.capacity import COMPARABLE_EFC, LEAST_SHARE, MOST_P90_S, Knee, Step
from fixtures.workloads.tpcc.judge.table import Line
from plugin.reports.tpcc import Compare, Comparison, Drivers, Run, Tpcc

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")  # fmt: skip
OVER = "!"
"""Before a value that breaks its limit: never told by colour alone."""
P90 = tuple(f"{kind.replace('_', '-')} p90 s (≤ {most:g})" for kind, most in MOST_P90_S.items())
HEAD = (
    "cell", "arm", "driver", "remarks", "runs", "WH", "tpmC", "efc %", "of 12.605 %", "avg ms", "p50 ms", "p90 ms", "p95 ms",
    "p99 ms", "max ms", *P90, "CPU % (headroom)", "retries", "errors", "ambiguous",
)  # fmt: skip
WORDS = ("cell", "arm", "driver", "remarks")
"""The columns that hold words; all others hold numbers."""
MOST_SKIPPED = 1.0
"""Percent of the visited districts without an order, above which it is to be told (specification, 2.7.2.2)."""
WHOLE = "efficiency and p90 by type"
"""What the whole criterion of capacity is held against."""
EXPLAINED = (
    "efc: tpmC in percent of 12.86 a warehouse; of our own driver the share of what came due that was served, times the 98.0 % that the deck reaches on average, "
    "so that the chance of a short run is not in it; "
    f"a cell in which an arm stays below {COMPARABLE_EFC:g} % by more than chance is saturated, and is not compared. "
    f"Of 12.605: what the built-in driver's deck can reach; a load passes with at least {LEAST_SHARE:g} % and every p90 within its limit. "
    f"Latencies from when each transaction was due; of several runs those of the slowest. Headroom: CPU that was not used. {OVER} marks what breaks a limit."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A line of the table as text. ``over``: the columns that break a limit."""

    cells: tuple[str, ...]
    over: frozenset[str]
    saturated: bool
    repeats: bool


def rows(found: Tpcc) -> list[Row]:
    """The papers' table, a row for each of its lines, by the columns of ``HEAD``."""
    return [_row(line, found) for line in found.lines]


def _row(line: Line, found: Tpcc) -> Row:
    latency = line.latency
    over = {"of 12.605 %"} if line.waits and line.capacity_share < LEAST_SHARE else set()
    if saturated(line):
        over.add("efc %")
    p90 = []
    for (kind, most), column in zip(MOST_P90_S.items(), P90, strict=True):
        value = line.p90_s.get(kind)
        if line.waits and value is not None and value > most:
            over.add(column)
        p90.append("-" if value is None else _seconds(value))
    cells = (
        line.cell, line.arm or "-", line.driver, remarks(line, found), str(line.runs), str(line.warehouses), plain(line.tpmc),
        *((f"{line.efc:.1f}", f"{line.capacity_share:.1f}") if line.waits else ("-", "-")),
        *(plain(getattr(latency, f"{name}_ms")) if latency else "-" for name in ("avg", "p50", "p90", "p95", "p99", "max")),
        *p90, "-" if line.cpu is None else f"{line.cpu:.1f} ({max(0.0, 100 - line.cpu):.1f})",
        str(line.retries), _counted(line.errors), str(line.ambiguous),
    )  # fmt: skip
    marked = tuple(f"{OVER} {cell}" if head in over else cell for head, cell in zip(HEAD, cells, strict=True))
    return Row(cells=marked, over=frozenset(over), saturated=saturated(line), repeats=line.repeats)


def plain(value: float) -> str:
    """A figure as a column of them has it: one decimal, none from 1000 on."""
    return f"{value:.1f}" if abs(value) < 1000 else f"{value:.0f}"


def _seconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.1f}"


def _counted(errors: Mapping[str, int]) -> str:
    whole = sum(errors.values())
    kinds = ", ".join(f"{kind} {count}" for kind, count in errors.items())
    return f"{whole} ({kinds})" if kinds else "0"


def remarks(line: Line, found: Tpcc) -> str:
    """What a reader must know of a line."""
    told = []
    if line.repeats:
        told.append("A/A: the same arm again")
    if line.skipped > MOST_SKIPPED:
        told.append(f"{line.skipped:.1f} % of the districts had no order to deliver")
    if not line.waits:
        return "; ".join([*told, "without think times"])
    if saturated(line):
        told.append("saturated" + (": not compared" if found.compares else ""))
    elif not line.comparable and found.compares:
        told.append("not compared: another arm is saturated")
    if found.ramps:
        known = "" if line.judged_by == WHOLE else f" by {line.judged_by}"
        capacity = ": capacity" if _is_capacity(line, found) else ""
        told.append(f"{'passes' if line.passes else 'does not pass'}{known}{capacity}")
    return "; ".join(told)


def saturated(line: Line) -> bool:
    """Whether this arm is one for which its cell is left out."""
    return line.waits and not line.comparable and line.efc < COMPARABLE_EFC


def _is_capacity(line: Line, found: Tpcc) -> bool:
    knee = found.ramps.get(line.arm)
    return knee is not None and knee.capacity is not None and knee.capacity.warehouses == line.warehouses


# ---- sentences


def arm_in_words(name: str) -> str:
    """``6 nodes`` as people write it: six nodes."""
    match = re.fullmatch(r"(\d+) (nodes?)(.*)", name)
    if not match or int(match[1]) >= len(NUMBERS):
        return name
    return f"{NUMBERS[int(match[1])]} {match[2]}{match[3]}"


def told(one: Compare, of: Comparison) -> str:
    """One ratio as a sentence: six nodes reached 0.998 of three nodes …"""
    interval = "one pair has no interval"
    if one.low is not None and one.high is not None:
        interval = f"{one.low:.3f} to {one.high:.3f}"
    if one.noise:
        return (
            f"The same arm run twice, {arm_in_words(one.first)} at {one.cell}: {one.mean:.3f} ({interval}, n = {one.n})"
            " – the noise of this machine"
        )
    second, first = arm_in_words(one.second), arm_in_words(one.first)
    reached = f"{second} reached {one.mean:.3f} of the {of.figure} of {first} at {one.cell} ({interval}, n = {one.n})"
    if of.percent is None:
        return reached
    if of.upper is None:
        where = {
            "holds": f"a loss of less than {of.percent:g} %",
            "refuted": f"a loss of more than {of.percent:g} %",
        }
        open_ = f"a loss of {of.percent:g} % can be neither shown nor ruled out"
    else:
        where = {"holds": f"within ±{of.percent:g} %", "refuted": f"outside ±{of.percent:g} %"}
        open_ = f"the interval crosses the margin of ±{of.percent:g} %"
    so_far = "so far " if of.needed and one.decision in where else ""
    return f"{reached}, {so_far}{where.get(one.decision, open_)}"


def compared(of: Comparison) -> list[str]:
    """A comparison in sentences."""
    found = [told(one, of) for one in of.ratios]
    if of.visible is not None:
        found.append(f"The smallest difference that could have been seen is {of.visible:.1f} %")
    if of.needed:
        found.append(f"Open: {of.needed}")
    return found


def ramped(arm: str, knee: Knee, *, alone: bool) -> str:
    """A knee as a sentence."""
    who = "The cluster" if alone or not arm else arm_in_words(arm)
    if knee.capacity is None:
        return f"{who} carried no load that was tried: {_faults(knee.steps[0])}"
    told = [f"{who} carried {knee.capacity.warehouses} warehouses by {knee.capacity.judged_by}"]
    told.append(_faults(knee.failed) if knee.failed else "no larger load was tried: it may carry more")
    if knee.falls:
        last = knee.steps[-1]
        told.append(
            f"past saturation tpmC falls, from {knee.peak.tpmc:.0f} at {knee.peak.warehouses} to {last.tpmc:.0f} at {last.warehouses}"
        )
    elif knee.falls is not None:
        told.append("past saturation tpmC does not fall")
    return "; ".join(told)


def _faults(step: Step) -> str:
    """The first reason why a load does not pass, and how many more there are; the table marks them all."""
    first, *others = step.faults
    kinds = re.sub("|".join(MOST_P90_S), lambda kind: kind[0].replace("_", "-"), first)
    more = f", and {len(others)} more reason{'s' * (len(others) > 1)}" if others else ""
    return f"{step.warehouses} do not pass: {kinds}{more}"


def agreed(one: Drivers) -> str:
    """What two drivers say of a cell."""
    means = f"{one.native_tpmc:.1f} tpmC by the native, {one.builtin_tpmc:.1f} by the built-in one"
    if one.disagreements:
        return f"The two drivers disagree at {one.cell} ({means}): {'; '.join(one.disagreements)}"
    return f"The two drivers agree at {one.cell}, within noise and their ways of counting: {means}"


def sentences(found: Tpcc) -> list[str]:
    """Everything that was found, each as a sentence without its full stop."""
    lines = [line for of in found.comparisons for line in compared(of)]
    lines += [
        f"Saturated, left out of the comparison: {words}" for words in found.saturated if found.compares
    ]
    lines += [ramped(arm, knee, alone=len(found.ramps) == 1) for arm, knee in found.ramps.items()]
    lines += [agreed(one) for one in found.drivers]
    lines += [run.problem for run in found.runs if run.problem]
    return [capital(line) for line in lines]


def capital(line: str) -> str:
    """A sentence's first letter, unless it begins with a name such as v21.1."""
    first = line.partition(" ")[0]
    return line[:1].upper() + line[1:] if first.isalpha() else line


def figures(run: Run) -> str:
    """A run's figures in a line."""
    parts = [
        f"{plain(run.tpmc)} tpmC" if run.tpmc is not None else "nothing was measured",
        f"efc {run.efc:.1f} %" if run.efc is not None else "",
        f"p90 {plain(run.p90_ms)} ms" if run.p90_ms is not None else "",
        f"CPU {run.cpu:.0f} %, headroom {max(0.0, 100 - run.cpu):.0f} %" if run.cpu is not None else "",
    ]
    return ", ".join(filter(None, parts))


# ---- the terminal's short form

SHORT = ("WH", "arm", "runs", "tpmC", "efc %", "p90 ms", "p99 ms", "CPU % (headroom)")


def short(found: Tpcc, width: int) -> Iterator[str]:
    """The table in few columns, and a remark where there is one. ``width``: columns there are at the most."""
    made = [dict(zip(HEAD, row.cells, strict=True)) for row in rows(found)]
    if not made:
        return
    drivers = len({row["driver"] for row in made}) > 1
    if drivers:
        for row in made:
            row["arm"] += f", {row['driver']}"
    table: list[Sequence[str]] = [SHORT, *([row[head] for head in SHORT] for row in made)]
    widths = [min(30, max(len(cells[i]) for cells in table)) for i in range(len(SHORT))]
    for number_, cells in enumerate(table):
        text = "  ".join(
            f"{cell:<{w}}" if head == "arm" else f"{cell:>{w}}"
            for head, cell, w in zip(SHORT, cells, widths, strict=True)
        )
        remark = "remarks" if not number_ else made[number_ - 1]["remarks"]
        line = f"{text}  {remark}".rstrip()
        if len(line) <= width:
            yield line
        else:
            yield text.rstrip()
            yield f"    {remark}"
