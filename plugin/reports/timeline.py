"""The timeline of an arm as a static picture (SVG) and as a table (CSV)."""

import csv
import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plugin.reports.layout_series import LayoutSeries
from plugin.reports.series import Band, Series
from plugin.reports.text import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

WIDTH_IN = 11.0
"""Of the picture, 72 points an inch: 792 units, so that it is read at 800 pixels without being scaled."""
MOST_POINTS = 1200
"""A longer arm is drawn by stretches of several seconds; the table has every second."""
MOST_LANES = 15
INK, GRID, SHADE, EDGE = "#1f2933", "#d9dee3", "#f6c9a8", "#b35c1e"
COLOURS = {"p50": "#0b7285", "p95": "#5f3dc4", "p99": "#c2255c"}
DASHES = {"p50": "-", "p95": "--", "p99": ":"}
LANES: Mapping[str, tuple[str, str]] = {
    "up": ("#b2d8b4", ""),
    "starting": ("#dfe5eb", ".."),
    "coming back": ("#ffe8a3", "//"),
    "leaving": ("#ffe8a3", "\\\\"),
}
"""Fill and hatching of a node's states; every other state is a fault's."""
GROUPS = ("#1864ab", "#c2255c", "#2b8a3e", "#5f3dc4")
"""Of nodes, by the change of size with which they came."""
FAULTY = ("#f0a08c", "xx")


def as_csv(series: Series) -> str:
    """One row a second: phase, fault, acknowledged writes, latency in ms, errors by kind, the state of each node."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    percentiles = list(series.latency)
    replicas = series.layout.replicas if series.layout else {}
    head = ["second", "phase", "fault", "acknowledged writes", *(f"{name} ms" for name in percentiles)]
    table.writerow(
        [
            *head,
            "errors",
            "kinds of errors",
            *(f"node {node}" for node in series.nodes),
            *(f"replicas {node}" for node in replicas),
        ]
    )
    for second in range(series.seconds):
        kinds = series.error_kinds.get(second, {})
        table.writerow(
            [
                second,
                _named(series.phases, second),
                _named(series.faults, second),
                _at(series.throughput, second),
                *(number(_at(series.latency[name], second)) for name in percentiles),
                _at(series.errors, second),
                "; ".join(f"{kind} {count}" for kind, count in kinds.items()),
                *(_named(bands, second) for bands in series.nodes.values()),
                *(_at(counts, second) for counts in replicas.values()),
            ]
        )
    return out.getvalue()


def _at(values: Sequence[Any], second: int) -> Any:
    return values[second] if second < len(values) else None


def _named(bands: Sequence[Band], second: int) -> str:
    """The bands that this second touches."""
    return ", ".join(band.name for band in bands if band.begin < second + 1 and band.end > second)


def as_svg(series: Series, title: str) -> str:
    """Throughput with its baseline, latency percentiles, errors, and a lane a node, all over one axis; faults as shaded bands.

    Raises ``ImportError`` where matplotlib is not installed.
    """
    nodes = dict(list(series.nodes.items())[:MOST_LANES])
    every = max(1, -(-series.seconds // MOST_POINTS))
    panels: list[tuple[float, Callable[[Axes], None]]] = [
        (2.9, lambda panel: _throughput(panel, series, every)),
        (2.4, lambda panel: _latency(panel, series, every)),
        (1.3, lambda panel: _errors(panel, series, every)),
        (0.2 + 0.34 * max(2, len(nodes)), lambda panel: _lanes(panel, nodes)),
    ]
    if layout := series.layout:
        panels.insert(0, (2.9, lambda panel: _replicas(panel, layout, every)))

    def draw(axes: "Sequence[Axes]") -> None:
        for panel, (_, fill) in zip(axes, panels, strict=True):
            fill(panel)
        for panel in axes:
            _dress(panel, series)
        axes[-1].set_xlabel("seconds since the test began")
        begin = max(0.0, min((band.begin for band in series.phases), default=0.0) - 1)
        axes[-1].set_xlim(begin, max(begin + 1, series.seconds))

    return picture(title, [height for height, _ in panels], draw)


def picture(title: str, heights: Sequence[float], draw: "Callable[[Sequence[Axes]], None]") -> str:
    """Panels of these heights (inches) over one axis, as ``draw`` fills them. Raises ``ImportError`` without matplotlib."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "roachproof",
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
        "font.size": 10.5,
        "text.parse_math": False,
        "hatch.linewidth": 0.5,
        "path.simplify": True,
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # of characters that a font lacks: the reader's has them, or a box
        figure = Figure(figsize=(WIDTH_IN, sum(heights) + 1.5), layout="constrained", facecolor="white")
        FigureCanvasSVG(figure)
        axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
        figure.suptitle(title, fontsize=11.5, color=INK, x=0.01, ha="left")
        draw(list(axes))
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def _thinned(
    values: Sequence[float | None], every: int, how: Callable[[Sequence[float]], float]
) -> tuple[list[float], list[float]]:
    """The middle of each stretch of ``every`` seconds, and what ``how`` makes of its values; not a number where there is none."""
    at, found = [], []
    for begin in range(0, len(values), every):
        known = [value for value in values[begin : begin + every] if value is not None]
        at.append(begin + min(every, len(values) - begin) / 2)
        found.append(float(how(known)) if known else float("nan"))
    return at, found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _throughput(panel: "Axes", series: Series, every: int) -> None:
    panel.set_ylabel("writes / s")
    if not series.throughput:
        return _nothing(panel, "no writes were recorded")
    at, values = _thinned(series.throughput, every, _mean)
    panel.plot(at, values, color="#1864ab", linewidth=1.5, label="acknowledged writes a second")
    if series.normal:
        panel.axhline(
            series.normal, color=INK, linewidth=1, linestyle="--", label=f"baseline {number(series.normal)}"
        )
        panel.axhline(
            0.8 * series.normal, color=INK, linewidth=0.8, linestyle=":", label="80 % of the baseline"
        )
    panel.set_ylim(bottom=0, top=1.12 * max(1.0, max(series.throughput), series.normal or 0))
    return _legend(panel)


def _replicas(panel: "Axes", layout: LayoutSeries, every: int) -> None:
    """A line a node; those that came with the same change look alike, as the source's figures have them."""
    panel.set_ylabel("replicas a node")
    told: set[int] = set()
    for node, values in layout.replicas.items():
        group = layout.joined[node]
        at, known = _thinned(values, every, max)
        first = group not in told
        told.add(group)
        panel.plot(
            at, known, color=GROUPS[group % len(GROUPS)], linewidth=1.2,
            label=("there at first" if not group else f"came with change {group}") if first else None,
        )  # fmt: skip
    at, mean = _thinned(layout.mean, every, _mean)
    panel.plot(at, mean, color=INK, linewidth=1, linestyle=":", label="mean")
    for change in layout.changes:
        panel.axvline(change.begin, color=EDGE, linewidth=1)
        panel.text(change.begin, 1.0, f" {change.name}", transform=panel.get_xaxis_transform(), va="top", fontsize=9, color=EDGE)  # fmt: skip
    panel.set_ylim(bottom=0)
    _legend(panel)


def _latency(panel: "Axes", series: Series, every: int) -> None:
    panel.set_ylabel("latency, ms" if series.probed else "latency of writes, ms")
    drawn = [name for name in COLOURS if name in series.latency]
    if not any(value for name in drawn for value in series.latency[name]):
        return _nothing(
            panel, "no operation of the probe succeeded" if series.probed else "no write was acknowledged"
        )
    from matplotlib.ticker import LogLocator, NullFormatter

    for name in drawn:
        at, values = _thinned(series.latency[name], every, max)
        panel.plot(at, values, color=COLOURS[name], linestyle=DASHES[name], linewidth=1.4, label=name)
    panel.set_yscale("log")
    known = [value for name in drawn for value in series.latency[name] if value]
    wide = max(known) > 50 * min(known)
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    panel.yaxis.set_major_formatter(lambda value, _: number(value))
    panel.yaxis.set_minor_formatter(NullFormatter())
    return _legend(panel)


def _errors(panel: "Axes", series: Series, every: int) -> None:
    panel.set_ylabel("errors / s")
    if not series.errors:
        return _nothing(panel, "neither ledger nor probe recorded anything")
    at, values = _thinned(series.errors, every, _mean)
    panel.bar(at, values, width=float(every), color="#c92a2a", linewidth=0)
    panel.set_ylim(bottom=0, top=1.1 * max(1.0, max(series.errors)))
    return None


def _nothing(panel: "Axes", why: str) -> None:
    panel.text(0.5, 0.5, why, transform=panel.transAxes, ha="center", va="center", color=INK)
    panel.set_yticks([])


def _legend(panel: "Axes") -> None:
    panel.legend(
        loc="lower right", bbox_to_anchor=(1.0, 0.98), fontsize=9, frameon=False, ncols=4, borderaxespad=0
    )


def _lanes(panel: "Axes", nodes: Mapping[str, Sequence[Band]]) -> None:
    panel.set_ylabel("nodes")
    if not nodes:
        return _nothing(panel, "no node was started")
    last = max((band.end for bands in nodes.values() for band in bands), default=1.0)
    for row, bands in enumerate(nodes.values()):
        for band in bands:
            fill, hatch = LANES.get(band.name, FAULTY)
            panel.broken_barh(
                [(band.begin, band.end - band.begin)], (row - 0.4, 0.8), facecolor=fill, hatch=hatch,
                edgecolor="#7b8794", linewidth=0.5,
            )  # fmt: skip
            if band.end - band.begin > 0.011 * len(band.name) * last:
                panel.text(
                    (band.begin + band.end) / 2, row, band.name, ha="center", va="center", fontsize=8.5, color=INK,
                    bbox={"facecolor": fill, "edgecolor": "none", "pad": 1.2},
                )  # fmt: skip
    panel.set_yticks(range(len(nodes)), [name[:16] for name in nodes])
    panel.set_ylim(len(nodes) - 0.5, -0.5)
    states = dict.fromkeys(band.name for bands in nodes.values() for band in bands)
    keys = [_patch(name) for name in list(states)[:8]]
    panel.legend(
        handles=keys, loc="upper right", bbox_to_anchor=(1.0, -0.24 - 0.16 * (3 / max(3, len(nodes)))), fontsize=9,
        frameon=False, ncols=len(keys),
    )  # fmt: skip
    return None


def _patch(state: str) -> "Patch":
    from matplotlib.patches import Patch

    fill, hatch = LANES.get(state, FAULTY)
    return Patch(facecolor=fill, hatch=hatch, edgecolor="#7b8794", linewidth=0.5, label=state)


def _dress(panel: "Axes", series: Series) -> None:
    """Grid, fault bands and, on the topmost panel, what they are."""
    panel.grid(visible=True, axis="x", color=GRID, linewidth=0.6)
    panel.set_axisbelow(True)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    place = panel.get_subplotspec()
    topmost = place is not None and place.is_first_row()
    for index, band in enumerate(series.faults):
        panel.axvspan(band.begin, band.end, color=SHADE, alpha=0.45, linewidth=0, zorder=0)
        for edge in (band.begin, band.end):
            panel.axvline(edge, color=EDGE, linewidth=0.8, zorder=1)
        if topmost and index < 8:
            panel.annotate(
                band.name.replace("_", " ")[:40], (band.begin, 1.0), xycoords=("data", "axes fraction"),
                xytext=(4, -3), textcoords="offset points", fontsize=9.5, color=EDGE, ha="left", va="top",
            )  # fmt: skip
