"""The timeline of a trial as charts and as a table (CSV)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from plugin.judge.swapping import SWAP
from plugin.reports.bands import Band
from plugin.reports.charts import DASHED, DOTTED, Chart, Lane, Line, Mark
from plugin.reports.layout_series import LayoutSeries
from plugin.reports.section import Section, csv_text
from plugin.reports.series import Series
from plugin.reports.swapping_charts import look_of, marks_of, plan_of
from plugin.reports.text import number

STATES: Mapping[str, str] = {"up": "up", "starting": "wait", "coming back": "back", "leaving": "back"}
"""Colours of a node's states; every other state is a fault's."""
GROUPS: Sequence[tuple[str, tuple[int, ...]]] = (("a", ()), ("b", DASHED), ("c", DOTTED))
"""Colour and dashes of nodes, by the change of size with which they came."""


def timeline_of(series: Series, sections: Iterable[Section]) -> Sequence[Chart]:
    """A trial's timeline: those of its workloads that have one, else that of load, probe and nodes.

    Where versions change, what runs where stands above all of them.
    """
    own = [chart for section in sections for chart in section.timeline]
    if series.swapping is None:
        return own or charts(series)
    found, marks = charts(series), marks_of(series.swapping)
    nodes, load = [chart for chart in found if chart.lanes], [chart for chart in found if not chart.lanes]
    own = [chart if chart.lanes or chart.x else replace(chart, behind=[*marks, *chart.behind]) for chart in own]
    return _as_long([*nodes, *load[:1], *own, *load[1:]])


def _as_long(all_charts: Sequence[Chart]) -> list[Chart]:
    """The same over one axis: those that end early have no values from there on."""
    seconds = max(chart.seconds for chart in all_charts)

    def longer(line: Line) -> Line:
        return replace(line, values=[*line.values, *[None] * (seconds - len(line.values))])

    return [
        chart if chart.x else replace(chart, seconds=seconds, lines=[longer(line) for line in chart.lines])
        for chart in all_charts
    ]


def charts(series: Series) -> list[Chart]:
    """Replicas where they were sampled, throughput, latency, errors, and a lane a node; faults behind them.

    Of a trial in which nothing was written and nothing probed only replicas and nodes, if there are any.
    """
    faults = [Mark(begin=band.begin, end=band.end, name=band.name, colour="fault") for band in series.faults]
    if series.swapping is not None:
        others = [mark for mark, cost in zip(faults, series.resilience, strict=True) if cost.fault != SWAP]
        faults = sorted([*marks_of(series.swapping), *others], key=lambda mark: mark.begin)
    found = [_replicas(series.layout, series.seconds, faults)] if series.layout else []
    written: list[float | None] = list(series.throughput)
    if series.ended is not None:  # what is missing from then on was not asked for
        written[series.ended :] = [None] * len(written[series.ended :])
    normal = [series.normal] * series.seconds if written and series.normal else ()
    latency = {
        name: [None if value is None else float(f"{value:.3g}") for value in series.latency.get(name, ())]
        for name in ("p50", "p95", "p99")
    }
    found += [
        Chart(
            title="Acknowledged writes a second", seconds=series.seconds, behind=faults,
            lines=[
                Line(label="writes/s", values=written, colour="a", shape="steps"),
                Line(label="baseline", values=normal, colour="quiet", dash=(6, 4), width=1, quiet=True),
            ],
            empty="no writes were recorded", compared=("Acknowledged writes a second", "writes/s"),
        ),
        Chart(
            title="Latency of the probe, from when each operation was due (logarithmic)" if series.probed
            else "Latency of acknowledged writes, from when each was sent (logarithmic)",
            seconds=series.seconds, behind=faults, logarithmic=True,
            lines=[
                Line(label=name, values=latency[name], colour=colour, unit="ms", dash=dash, shape="dot")
                for name, colour, dash in (("p50", "a", ()), ("p95", "c", DASHED), ("p99", "b", DOTTED))
            ],
            empty="no operation of the probe succeeded" if series.probed else "no write was acknowledged",
            compared=("Latency p99 (logarithmic)", "p99"),
        ),
        Chart(
            title="Operations a second of load and probe that failed, or whose outcome is unknown", height=150,
            seconds=series.seconds, behind=faults, room=1.4,
            lines=[Line(label="errors", values=series.errors, colour="b", shape="bars")],
            empty="neither load nor probe recorded anything",
            notes={
                second: ", ".join(f"{count} {kind}" for kind, count in kinds.items())
                for second, kinds in series.error_kinds.items()
            },
        ),
    ]  # fmt: skip
    if series.swapping is None and not series.throughput and not series.errors:  # there was neither
        found = [chart for chart in found if any(line.values for line in chart.lines)]
    look = look_of(series.swapping) if series.swapping else _state
    lanes = [
        Lane(name=name, states=[*map(look, series.nodes.get(name, ()))], shares=series.reached.get(name, ()))
        for name in dict.fromkeys([*series.nodes, *series.reached])
    ]
    if lanes or series.phases:
        phases = [Mark(begin=band.begin, end=band.end, name=band.name, colour="wait") for band in series.phases]
        rows = (
            [Lane(name="test", states=phases, quiet=True)] * bool(phases)
            + (plan_of(series.swapping) if series.swapping else [])
            + lanes
        )
        what = "Nodes" if series.swapping is None else "What runs on each node, and in which state it is"
        red = " (red below: share of ranges that the probe did not reach through it)"
        title = what + red * any(lane.shares for lane in lanes)
        usual = "all nodes up" if lanes else ""
        found.append(Chart(title=title, height=66 + 28 * len(rows), seconds=series.seconds, lanes=rows, usual=usual))
    return found


def _state(band: Band) -> Mark:
    return Mark(begin=band.begin, end=band.end, name=band.name, colour=STATES.get(band.name, "hit"))


def _replicas(layout: LayoutSeries, seconds: int, faults: Sequence[Mark]) -> Chart:
    """A line a node; those that came with the same change look alike, as the source's figures have them."""
    lines = []
    for node, values in layout.replicas.items():
        colour, dash = GROUPS[layout.joined[node] % len(GROUPS)]
        lines.append(Line(label=node, values=values, colour=colour, dash=dash, quiet=True))
    lines.append(Line(label="mean", values=layout.mean, colour="quiet", dash=(1, 3), width=1, quiet=True))
    changes = [Mark(begin=band.begin, end=band.end, name=band.name, colour="heal") for band in layout.changes]
    return Chart(
        title="Replicas on each node (those that came together look alike)", height=240, seconds=seconds,
        lines=lines, behind=[*faults, *changes],
    )  # fmt: skip


def as_csv(series: Series) -> str:
    """One row a second: phase, fault, acknowledged writes, latency in ms, errors by kind, states of nodes.

    Seconds before the cluster stood are negative.
    """
    percentiles = list(series.latency)
    replicas = series.layout.replicas if series.layout else {}
    head = [
        *("second", "phase", "fault", "acknowledged writes"), *(f"{name} ms" for name in percentiles), "errors",
        "kinds of errors", *(f"node {node}" for node in series.nodes), *(f"replicas {node}" for node in replicas),
    ]  # fmt: skip
    rows = (
        [
            second - series.zero,
            _named(series.phases, second),
            _named(series.faults, second),
            _at(series.throughput, second),
            *(number(_at(series.latency[name], second)) for name in percentiles),
            _at(series.errors, second),
            "; ".join(f"{kind} {count}" for kind, count in series.error_kinds.get(second, {}).items()),
            *(_named(bands, second) for bands in series.nodes.values()),
            *(_at(counts, second) for counts in replicas.values()),
        ]
        for second in range(series.seconds)
    )
    return csv_text([head, *rows])


def _at(values: Sequence[Any], second: int) -> Any:
    return values[second] if second < len(values) else None


def _named(bands: Sequence[Band], second: int) -> str:
    """The bands that this second touches."""
    return ", ".join(band.name for band in bands if band.begin < second + 1 and band.end > second)
