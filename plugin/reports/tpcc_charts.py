"""What the page's charts of TPC-C are drawn from: places on a line for intervals and runs, and the steps of ramps."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

from fixtures.workloads.tpcc.judge.capacity import COMPARABLE_EFC, LEAST_SHARE, Knee
from fixtures.workloads.tpcc.judge.figures import ALL, CAPACITY_TPMC, EFC_TPMC
from plugin.claims import Claim
from plugin.reports.paper_tables import printed, step_p90
from plugin.reports.tpcc import Comparison, Run, Tpcc
from plugin.reports.tpcc_words import arm_in_words, figures

LIMIT_P90_MS = 5000.0
"""Of the pass criterion, for all types but stock-level."""
ROOM = 0.06
"""Of a line's length kept free at either end."""


def _scale(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = ROOM * (high - low) or 0.01 * abs(high) or 1.0
    return low - room, high + room


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between the two."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10 ** floor(log10(rough))
    step = next(power * n for n in (1, 2, 5, 10) if power * n >= rough)
    return [step * n for n in range(ceil(low / step), floor(high / step) + 1)]


def _axis(low: float, high: float, digits: int) -> list[dict[str, Any]]:
    span = high - low
    return [{"x": round(100 * (at - low) / span, 2), "text": f"{at:.{digits}f}"} for at in ticks(low, high)]


def forest(of: Comparison) -> dict[str, Any]:
    """Every ratio as an interval on one line, with the margin's band, in percent of the line's length."""
    ends = [1.0]
    for bound in (of.lower, of.upper):
        ends += [bound] if bound is not None else []
    for one in of.ratios:
        ends += [one.mean, *(end for end in (one.low, one.high) if end is not None)]
    # A single wild interval would squeeze all others into a point.
    low, high = _scale([min(max(end, 0.5), 2.0) for end in ends])

    def at(value: float) -> float:
        return round(min(max(100 * (value - low) / (high - low), 0.0), 100.0), 2)

    left, right = (
        at(of.lower) if of.lower is not None else 0.0,
        at(of.upper) if of.upper is not None else 100.0,
    )
    rows = []
    for one in of.ratios:
        interval = (
            f"{one.low:.3f} to {one.high:.3f}"
            if one.low is not None and one.high is not None
            else "no interval"
        )
        rows.append(
            {
                "name": f"{arm_in_words(one.first)}, run twice (A/A)"
                if one.noise
                else f"{arm_in_words(one.second)} / {arm_in_words(one.first)}",
                "cell": one.cell,
                "noise": one.noise,
                "decision": one.decision if not one.noise else "noise",
                "style": "none"
                if one.noise
                else {"holds": "good", "refuted": "bad"}.get(one.decision, "unsure"),
                "text": f"{one.mean:.3f} ({interval})",
                "n": one.n,
                "visible": "–" if one.visible is None else f"{one.visible:.1f} %",
                "mean": at(one.mean),
                "low": at(one.low) if one.low is not None else None,
                "high": at(one.high) if one.high is not None else None,
            }
        )
    margin = (
        "no margin is declared here"
        if of.percent is None
        else f"a loss of less than {of.percent:g} %"
        if of.upper is None
        else f"±{of.percent:g} %"
    )
    return {
        "figure": of.figure,
        "margin": margin,
        "band": of.percent is not None,
        "left": left,
        "wide": round(right - left, 2),
        "one": at(1.0),
        "rows": rows,
        "axis": _axis(low, high, 2 if high - low > 0.06 else 3),
        "look": of.look,
    }


def strips(found: Tpcc) -> list[dict[str, Any]]:
    """Of each cell, every run's efc (tpmC without think times) as a dot on its arm's line, the mean as a tick, and the bound of comparable cells."""
    cells: dict[str, dict[tuple[str, str], list[Run]]] = {}
    for run in found.runs:
        if run.tpmc is not None:
            cells.setdefault(run.cell, {}).setdefault((run.arm, run.driver), []).append(run)
    several = len({run.driver for run in found.runs if run.driver}) > 1
    return [_strip(cell, arms, several=several) for cell, arms in cells.items()]


def _strip(cell: str, arms: Mapping[tuple[str, str], Sequence[Run]], *, several: bool) -> dict[str, Any]:
    every = [value for runs in arms.values() for run in runs if (value := _placed(run)) is not None]
    bounded = all(run.efc is not None for runs in arms.values() for run in runs)
    low, high = _scale([*([COMPARABLE_EFC, 98.0] if bounded else ()), *every])

    def at(value: float) -> float:
        return round(100 * (value - low) / (high - low), 2)

    rows = []
    for (arm, driver), runs in arms.items():
        values = [value for run in runs if (value := _placed(run)) is not None]
        tpmc = [run.tpmc for run in runs if run.tpmc is not None]
        spread = f" ({min(tpmc):.1f} to {max(tpmc):.1f})" if len(tpmc) > 1 else ""
        rows.append(
            {
                "arm": arm + (f", {driver}" if several else ""),
                "dots": [
                    {"x": at(value), "title": f"{run.name}, block {run.block + 1}: {figures(run)}"}
                    for run in runs
                    if (value := _placed(run)) is not None
                ],
                "mean": at(sum(values) / len(values)),
                "n": len(runs),
                "efc": f"{sum(values) / len(values):.1f} %" if bounded else "–",
                "tpmc": f"{sum(tpmc) / len(tpmc):.1f}{spread}",
            }
        )
    return {"cell": cell, "rows": rows, "bound": at(COMPARABLE_EFC) if bounded else None, "axis": _axis(low, high, 0 if high - low > 4 else 1)}  # fmt: skip


def _placed(run: Run) -> float | None:
    """Where a run's dot lies: at its efc, or its tpmC where it had no think times."""
    return run.tpmc if run.efc is None else run.efc


def ramp(knees: Mapping[str, Knee], title: str, *, p95: str = "p95") -> dict[str, Any]:
    """Ramps over one axis of warehouses: tpmC by arm, latencies (of several arms only p90), capacities, and what lies past them."""
    sizes = sorted({step.warehouses for knee in knees.values() for step in knee.steps})
    tpmc: dict[str, list[float | None]] = {}
    latency: dict[str, list[float | None]] = {}
    marks = []
    for arm, knee in knees.items():
        steps = {step.warehouses: step for step in knee.steps}
        here = [steps.get(size) for size in sizes]
        tpmc[arm or "tpmC"] = [round(step.tpmc, 1) if step else None for step in here]
        if len(knees) > 1:
            latency[f"p90 {arm}"] = [step_p90(step) if step else None for step in here]
        else:
            known = [step.latencies.get(ALL) if step else None for step in here]
            for name, label in (("p90_ms", "p90"), ("p95_ms", p95), ("p99_ms", "p99")):
                latency[label] = [float(getattr(one, name)) if one else None for one in known]
            if not any(known):
                latency = {"p90": [step_p90(step) if step else None for step in here]}
        carried = knee.capacity.warehouses if knee.capacity else 0
        marks.append({"arm": arm, "capacity": carried, "open": knee.failed is None})
    latency = {
        name: [value and float(f"{value:.3g}") for value in values]
        for name, values in latency.items()
        if any(values)
    }
    return {
        "title": title,
        "warehouses": sizes,
        "tpmc": tpmc,
        "latency": latency,
        "ideal": EFC_TPMC,
        "least": round(LEAST_SHARE / 100 * CAPACITY_TPMC, 3),
        "limit": LIMIT_P90_MS,
        "marks": marks,
    }


def ramps(found: Tpcc) -> list[dict[str, Any]]:
    """The arm's own ramps in one chart."""
    return [ramp(found.ramps, "measured here")] if found.ramps else []


def ramps_printed(claim: Claim, work: str) -> list[dict[str, Any]]:
    """Those of the source's tables, to be drawn the same way."""
    found = []
    for table in printed(claim):
        drawn = ramp(table.knees, f"printed by the {work}")
        columns = {"p90": "p90_ms", "p96": "p96_ms", "p99": "p99_ms"}
        place = {name: i for i, name in enumerate(table.table["columns"])}
        if not table.arm and all(name in place for name in columns.values()):
            rows = sorted(table.table["rows"], key=lambda row: int(row[place["warehouses"]]))
            drawn["latency"] = {
                label: [float(row[place[name]]) for row in rows] for label, name in columns.items()
            }
        elif "avg_ms" in place:
            drawn["latency"] = _averages(table.table, table.arm, drawn["warehouses"])
        found.append(drawn)
    return found


def _averages(table: Mapping[str, Any], arm: str, sizes: Iterable[int]) -> dict[str, list[float | None]]:
    """Where nothing but averages was printed."""
    place = {name: i for i, name in enumerate(table["columns"])}
    known: dict[str, dict[int, float]] = {}
    for row in table["rows"]:
        name = row[place[arm]]
        label = f"avg {name} nodes" if isinstance(name, int) else f"avg {name}"
        known.setdefault(label, {})[int(row[place["warehouses"]])] = float(row[place["avg_ms"]])
    return {label: [values.get(size) for size in sizes] for label, values in known.items()}
