"""What charts of TPC-C are drawn from: runs second by second, intervals on a line, and the steps of ramps."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fixtures.workloads.tpcc.judge.capacity import COMPARABLE_EFC, LEAST_SHARE, Knee
from fixtures.workloads.tpcc.judge.figures import ALL, CAPACITY_TPMC, EFC_TPMC
from plugin.claims import Claim
from plugin.reports.charts import DASHED, DOTTED, Chart, Lane, Line, Mark, ticks
from plugin.reports.paper_tables import printed, step_p90
from plugin.reports.series import Band
from plugin.reports.tpcc import Comparison, Run, Tpcc
from plugin.reports.tpcc_series import LOADING, MEASURED, RAMP, STOPPING, LoadSeries
from plugin.reports.tpcc_words import arm_in_words, figures

LIMIT_P90_MS = 5000.0
"""Of the pass criterion, for all types but stock-level."""
ROOM = 0.06
"""Of a line's length kept free at either end."""
DOING: Mapping[str, str] = {LOADING: "wait", RAMP: "back", MEASURED: "up", STOPPING: "wait"}
"""Colours of what a run does."""
LOOKS: Sequence[tuple[str, tuple[int, ...]]] = (
    ("a", ()), ("b", DASHED), ("c", DOTTED), ("good", (10, 3, 2, 3)),
    ("unsure", (5, 5)), ("bad", (1, 3)), ("ink", (12, 4)), ("quiet", (4, 2)),
)  # fmt: skip
"""Of lines of which nobody knows how many there are."""


def run_charts(load: LoadSeries, seconds: int) -> list[Chart]:
    """What ran when, tpmC, latencies and trouble over one axis."""
    means = f", means of {load.every} s" if load.every > 1 else ""
    stretches = means.replace("means", "stretches")
    lanes = [Lane(name=name, states=[_doing(band) for band in bands]) for name, bands in load.lanes.items()]
    return [
        Chart(
            title="What ran when (r01: the first run)", height=60 + 40 * len(lanes), seconds=seconds,
            lanes=lanes, usual="no run",
        ),
        Chart(
            title=f"New-orders a minute (tpmC{means})", seconds=seconds,
            compared=("New-orders a minute (tpmC)", "tpmC"),
            lines=[Line(label="tpmC", values=load.tpmc, colour="a", shape="dot")],
        ),
        Chart(
            title=f"Latency of all transactions, from when each was due (logarithmic{stretches})",
            seconds=seconds, logarithmic=True,
            lines=[
                Line(label=name, values=load.latency[name], colour=colour, unit="ms", dash=dash, shape="dot")
                for name, colour, dash in (("p50", "a", ()), ("p90", "c", DASHED), ("p99", "b", DOTTED))
            ],
            compared=("Latency p99 of all transactions (logarithmic)", "p99"),
        ),
        Chart(
            title="Transactions a second that failed or whose outcome is unknown, and attempts made again",
            height=140, seconds=seconds, room=1.4,
            lines=[
                Line(label="failed or unknown", values=load.failed, colour="b", shape="bars"),
                Line(label="made again", values=load.retried, colour="c", dash=DOTTED),
            ],
        ),
    ]  # fmt: skip


def _doing(band: Band) -> Mark:
    """Of a run that is measured its name is enough."""
    run, _, doing = band.name.rpartition(" ")
    short = run if doing == MEASURED else ""
    return Mark(begin=band.begin, end=band.end, name=band.name, colour=DOING[doing], short=short)


def ramp_charts(drawn: Mapping[str, Any]) -> list[Chart]:
    """What ``ramp`` found: tpmC and latencies over warehouses, the pass criterion, and what each arm carried."""
    sizes, one = drawn["warehouses"], len(drawn["marks"]) == 1
    if not sizes:
        return []
    behind = []
    for mark in drawn["marks"]:
        carried = mark["capacity"]
        if one and not (carried and mark["open"]):
            name = "does not pass" if carried else "no load passes"
            behind.append(Mark(begin=carried or sizes[0], end=sizes[-1], name=name, colour="fault"))
        if carried:
            name = f"{'capacity' if one else mark['arm']}: {carried}{' or more' if mark['open'] else ''}"
            behind.append(Mark(begin=carried, end=carried, name=name, colour="bad"))
    notes = {}
    for i, size in enumerate(sizes):
        known = [values[i] for values in drawn["tpmc"].values() if values[i] is not None]
        shares = ", ".join(f"{100 * tpmc / (drawn['ideal'] * size):.1f} %" for tpmc in known)
        notes[i] = f"{shares} of ideal"
    asked = [
        _bound(f"ideal: {drawn['ideal']} a warehouse", [drawn["ideal"] * size for size in sizes], "quiet"),
        _bound(
            f"asked: {drawn['least']} a warehouse ({LEAST_SHARE:g} % of {CAPACITY_TPMC:g})",
            [drawn["least"] * size for size in sizes],
            "unsure",
        ),
    ]
    found = [
        Chart(
            title=f"tpmC over warehouses, {drawn['title']}", height=260, x=sizes, across="warehouses",
            behind=behind, lines=[*_looking(drawn["tpmc"], "tpmC"), *asked], notes=notes,
        )
    ]  # fmt: skip
    if drawn["latency"]:
        limit = _bound("p90 asked (stock-level 20 s)", [drawn["limit"]] * len(sizes), "unsure", unit="ms")
        found.append(
            Chart(
                title=f"Latency over warehouses, {drawn['title']} (logarithmic)", height=220, x=sizes,
                across="warehouses", logarithmic=True, lines=[*_looking(drawn["latency"], "ms"), limit],
                behind=[Mark(begin=mark.begin, end=mark.end, name="", colour=mark.colour) for mark in behind],
            )
        )  # fmt: skip
    return found


def _bound(label: str, values: Sequence[float], colour: str, unit: str = "") -> Line:
    return Line(label=label, values=values, colour=colour, unit=unit, dash=(2, 3), width=1, quiet=True)


def _looking(named: Mapping[str, Sequence[float | None]], unit: str) -> list[Line]:
    """A line each, told apart by colour and dashes."""
    looks = [LOOKS[index % len(LOOKS)] for index in range(len(named))]
    return [
        Line(
            label=name, values=values, colour=colour, dash=dash, unit=unit if name != unit else "",
            shape="dots",
        )
        for (name, values), (colour, dash) in zip(named.items(), looks, strict=True)
    ]  # fmt: skip


def _scale(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = ROOM * (high - low) or 0.01 * abs(high) or 1.0
    return low - room, high + room


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
