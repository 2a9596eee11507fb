"""TPC-C runs as tables (CSV): the papers', each run second by second, and ratios."""

import csv
import io
from collections.abc import Iterable, Sequence

from plugin.reports.series import Series
from plugin.reports.text import number
from plugin.reports.tpcc import Tpcc
from plugin.reports.tpcc_words import HEAD, rows


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
