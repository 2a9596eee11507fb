"""TPC-C runs as static pictures (SVG) and as tables (CSV): each run second by second, ratios against their margin, ramps."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from fixtures.workloads.tpcc.judge.capacity import LEAST_SHARE, Knee
from fixtures.workloads.tpcc.judge.figures import CAPACITY_TPMC, EFC_TPMC
from plugin.reports.series import Series
from plugin.reports.text import number
from plugin.reports.timeline import COLOURS, GRID, INK, MOST_POINTS, SHADE, picture
from plugin.reports.tpcc import Comparison, Tpcc
from plugin.reports.tpcc_charts import ramp
from plugin.reports.tpcc_series import LOADING, RAMP, STOPPING, LoadSeries
from plugin.reports.tpcc_words import HEAD, arm_in_words, rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STATES: Mapping[str, tuple[str, str]] = {
    LOADING: ("#dfe5eb", ".."), RAMP: ("#ffe8a3", "//"), STOPPING: ("#dfe5eb", ".."),
}  # fmt: skip
"""Fill and hatching of what a run does; of what is measured ``MEASURED_FILL``."""
MEASURED_FILL = ("#b2d8b4", "")
LINES = ("#0b7285", "#c2255c", "#5f3dc4", "#b35c1e", "#2b8a3e")
DASHES = ("-", "--", ":", "-.")


def _csv(lines: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


def table_csv(found: Tpcc) -> str:
    """The papers' table."""
    return _csv([HEAD, *(row.cells for row in rows(found))])


def seconds_csv(series: Series, found: Tpcc) -> str:
    """One row a second: its run, arm and cell, what that did, tpmC, latencies in ms, failed and repeated attempts."""
    load = series.load
    assert load is not None
    runs = {run.name: run for run in found.runs}
    names = list(load.latency)
    head = ("second", "run", "arm", "cell", "doing", "tpmC", *(f"{name} ms" for name in names), "failed a second", "made again a second")  # fmt: skip
    lines: list[Sequence[object]] = [head]
    for second in range(series.seconds):
        run = runs.get(load.run[second] or "")
        doing = next(
            (
                b.name
                for bands in load.lanes.values()
                for b in bands
                if b.begin < second + 1 and b.end > second
            ),
            "",
        )
        values = [load.tpmc[second], *(load.latency[name][second] for name in names), load.failed[second], load.retried[second]]  # fmt: skip
        lines.append(
            (second, run.name if run else "", run.arm if run else "", run.cell if run else "", doing, *("" if value is None else number(value) for value in values))
        )  # fmt: skip
    return _csv(lines)


def ratios_csv(found: Tpcc) -> str:
    """Every ratio with its interval and margin."""
    head = (
        "figure",
        "second",
        "first",
        "cell",
        "n",
        "ratio",
        "from",
        "to",
        "margin %",
        "visible %",
        "decision",
    )
    return _csv(
        [
            head,
            *(
                (of.figure, one.second, one.first, one.cell, one.n, *("" if v is None else f"{v:.4f}" for v in (one.mean, one.low, one.high)),
                 number(of.percent), "" if one.visible is None else f"{one.visible:.2f}", "A/A" if one.noise else one.decision)
                for of in found.comparisons
                for one in of.ratios
            ),
        ]
    )  # fmt: skip


def runs_svg(series: Series, title: str) -> str:
    """What ran when, tpmC and latencies over one axis. Raises ``ImportError`` without matplotlib."""
    load = series.load
    assert load is not None
    step = max(1, -(-series.seconds // MOST_POINTS))
    at = list(range(0, series.seconds, step))

    def line(values: Sequence[float | None]) -> list[float]:
        return [float("nan") if (value := values[second]) is None else value for second in at]

    def draw(axes: "Sequence[Axes]") -> None:
        _runs(axes[0], load)
        means = f", means of {load.every} s" if load.every > 1 else ""
        axes[1].plot(at, line(load.tpmc), color="#1864ab", linewidth=1.4)
        axes[1].set_ylabel("tpmC")
        axes[1].set_ylim(bottom=0)
        for name, colour, dash in zip(load.latency, COLOURS.values(), DASHES, strict=False):
            axes[2].plot(
                at, line(load.latency[name]), color=colour, linestyle=dash, linewidth=1.3, label=name
            )
        axes[2].set_ylabel("latency, ms")
        if any(value for values in load.latency.values() for value in values):
            _logarithmic(axes[2])
            axes[2].legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), fontsize=9, frameon=False, ncols=3)
        axes[2].set_xlabel(f"seconds since the test began{means}")
        axes[2].set_xlim(0, max(1, series.seconds))
        for panel in axes:
            _plain(panel)

    return picture(title, [0.4 + 0.42 * max(1, len(load.lanes)), 2.4, 2.4], draw)


def _logarithmic(panel: "Axes") -> None:
    """Plain numbers on the axis; matplotlib's own are formulae, which are shown as text here."""
    from matplotlib.ticker import NullFormatter

    panel.set_yscale("log")
    panel.yaxis.set_major_formatter(lambda value, _: number(value))
    panel.yaxis.set_minor_formatter(NullFormatter())


def _plain(panel: "Axes") -> None:
    panel.grid(visible=True, color=GRID, linewidth=0.6)
    panel.set_axisbelow(True)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def _runs(panel: "Axes", load: LoadSeries) -> None:
    last = max((band.end for bands in load.lanes.values() for band in bands), default=1.0)
    for row, bands in enumerate(load.lanes.values()):
        for band in bands:
            run, _, doing = band.name.rpartition(" ")
            fill, hatch = STATES.get(doing, MEASURED_FILL)
            panel.broken_barh([(band.begin, band.end - band.begin)], (row - 0.4, 0.8), facecolor=fill, hatch=hatch, edgecolor="#7b8794", linewidth=0.5)  # fmt: skip
            if doing not in STATES and band.end - band.begin > 0.02 * last:
                panel.text((band.begin + band.end) / 2, row, run, ha="center", va="center", fontsize=8.5, color=INK)  # fmt: skip
    panel.set_yticks(range(len(load.lanes)), [name[:28] for name in load.lanes])
    panel.set_ylim(len(load.lanes) - 0.5, -0.5)


def ratios_svg(of: Comparison, title: str) -> str:
    """Every ratio's interval against the margin's band. Raises ``ImportError`` without matplotlib."""

    def draw(axes: "Sequence[Axes]") -> None:
        (panel,) = axes
        if of.lower is not None:
            ends = [one.high for one in of.ratios if one.high is not None]
            panel.axvspan(of.lower, of.upper if of.upper is not None else max([1.1, *ends]), color="#b2d8b4", alpha=0.45, linewidth=0)  # fmt: skip
        panel.axvline(1.0, color=INK, linewidth=0.9, linestyle="--")
        names = []
        for row, one in enumerate(of.ratios):
            colour = "#7b8794" if one.noise else "#c92a2a" if one.decision == "refuted" else "#0b7285"
            if one.low is not None and one.high is not None:
                panel.plot(
                    [one.low, one.high], [row, row], color=colour, linewidth=2, marker="|", markersize=11
                )
            panel.plot([one.mean], [row], color=colour, marker="o", markersize=6)
            who = f"{arm_in_words(one.first)} twice (A/A)" if one.noise else f"{arm_in_words(one.second)} / {arm_in_words(one.first)}"  # fmt: skip
            names.append(f"{who}\n{one.cell}, n = {one.n}")
        panel.set_yticks(range(len(names)), names)
        panel.set_ylim(len(names) - 0.5, -0.5)
        panel.set_xlabel(f"ratio of {of.figure}" + (f"; shaded: the margin of {of.percent:g} %" if of.percent else ""))  # fmt: skip
        _plain(panel)

    return picture(title, [0.5 + 0.55 * len(of.ratios)], draw)


def ramp_svg(ramps: Mapping[str, Knee], title: str) -> str:
    """TpmC and latencies over warehouses, the ideal line, the pass criterion and the capacity. Raises ``ImportError`` without matplotlib."""
    drawn = ramp(ramps, "")
    sizes = drawn["warehouses"]

    def lines(panel: "Axes", values: Mapping[str, Sequence[float | None]]) -> None:
        for index, (name, points) in enumerate(values.items()):
            known = [float("nan") if point is None else point for point in points]
            panel.plot(sizes, known, color=LINES[index % len(LINES)], linestyle=DASHES[index % len(DASHES)], marker="o", markersize=4, label=name)  # fmt: skip

    def draw(axes: "Sequence[Axes]") -> None:
        lines(axes[0], drawn["tpmc"])
        axes[0].plot(sizes, [EFC_TPMC * size for size in sizes], color=INK, linewidth=0.9, linestyle="--", label=f"ideal: {EFC_TPMC:g} a warehouse")  # fmt: skip
        asked = LEAST_SHARE / 100 * CAPACITY_TPMC
        axes[0].plot(sizes, [asked * size for size in sizes], color=INK, linewidth=0.9, linestyle=":", label=f"asked: {LEAST_SHARE:g} % of {CAPACITY_TPMC:g}")  # fmt: skip
        axes[0].set_ylabel("tpmC")
        lines(axes[1], drawn["latency"])
        axes[1].axhline(
            drawn["limit"], color=INK, linewidth=0.9, linestyle=":", label="p90 asked (stock-level 20 s)"
        )
        _logarithmic(axes[1])
        axes[1].set_ylabel("latency, ms")
        axes[1].set_xlabel("warehouses")
        for panel in axes:
            for mark in drawn["marks"]:
                panel.axvline(mark["capacity"] or sizes[0], color="#c92a2a", linewidth=1.2)
                if len(drawn["marks"]) == 1 and not mark["open"]:
                    panel.axvspan(
                        mark["capacity"] or sizes[0], sizes[-1], color=SHADE, alpha=0.35, linewidth=0
                    )
            panel.legend(fontsize=9, frameon=False, loc="upper left")
            _plain(panel)

    return picture(title, [3.0, 2.4], draw)
