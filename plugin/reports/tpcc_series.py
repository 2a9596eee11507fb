"""TPC-C runs second by second, as charts and tables draw them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fixtures.workloads.tpcc.evidence import SECOND, TYPES, TpccRun, TpccSecond, merged
from plugin.evidence.records import MalformedRecord
from plugin.judge.arm import ArmEvidence
from plugin.reports.series import Band
from plugin.reports.tpcc import Run, Tpcc

WIDTHS = (1, 2, 5, 10, 20, 30, 60)
"""Seconds that a value may stand for."""
FEWEST = 4
"""New-orders that a stretch has on average at the least: fewer show the cards that were dealt, not the database."""
PERCENTILES = (50, 90, 99)
LOADING, RAMP, MEASURED, STOPPING = "loading", "ramp", "measured", "stopping"


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadSeries:
    """The runs of an arm in its seconds; ``None`` where none was running. A value stands for ``every`` seconds (means), and is repeated in each.

    ``tpmc``: new-orders a minute. ``latency``: percentiles of all types in ms (``"p50"`` …). ``failed``: errors and ambiguous
    results a second; ``retried`` attempts made again. ``lanes``: by arm, what it was doing when; ``run`` the run of each second.
    """

    every: int
    tpmc: Sequence[float | None]
    latency: Mapping[str, Sequence[float | None]]
    failed: Sequence[float | None]
    retried: Sequence[float | None]
    run: Sequence[str | None]
    lanes: Mapping[str, tuple[Band, ...]]


def load_series(evidence: ArmEvidence, found: Tpcc, seconds: int) -> LoadSeries:
    """The runs that were found in this evidence, over so many seconds."""
    every = _every([run.tpmc for run in found.runs if run.tpmc])
    tpmc: list[float | None] = [None] * seconds
    failed: list[float | None] = [None] * seconds
    retried: list[float | None] = [None] * seconds
    names: list[str | None] = [None] * seconds
    latency: dict[str, list[float | None]] = {f"p{share}": [None] * seconds for share in PERCENTILES}
    known: Mapping[str, TpccRun] = evidence.workloads.get("tpcc", {})
    for run in found.runs:
        recorded = known[run.name].seconds if run.name in known else ()
        for stretch in _stretches(recorded, every):
            at = [second.t // SECOND - 1 for second in stretch if 0 < second.t // SECOND <= seconds]
            orders = sum(one.types["new_order"].ok + one.types["new_order"].rolled_back for one in stretch)
            bad = sum(sum(one.errors.values()) + one.ambiguous for one in stretch)
            again = sum(sum(one.retries.values()) for one in stretch)
            percentiles = _percentiles(stretch)
            for index in at:
                names[index] = run.name
                tpmc[index] = _short(60 * orders / len(stretch))
                failed[index] = _short(bad / len(stretch))
                retried[index] = _short(again / len(stretch))
                for name, value in percentiles.items():
                    latency[name][index] = value
    return LoadSeries(
        every=every, tpmc=tpmc, latency=latency, failed=failed, retried=retried, run=names, lanes=_lanes(found.runs)
    )  # fmt: skip


def _every(rates: Sequence[float]) -> int:
    slowest = min(rates, default=60.0) / 60
    return next((width for width in WIDTHS if slowest * width >= FEWEST), WIDTHS[-1])


def _stretches(seconds: Sequence[TpccSecond], every: int) -> list[list[TpccSecond]]:
    """Whole stretches that begin where measuring does, so that none holds seconds of both the ramp and what is measured.

    Seconds past what is measured are left out: terminals are being stopped in them.
    """
    last = max((second.t for second in seconds if second.measured), default=None)
    seconds = [second for second in seconds if last is None or second.t <= last]
    first = next((second.t for second in seconds if second.measured), seconds[0].t if seconds else 0)
    found: dict[tuple[bool, int], list[TpccSecond]] = {}
    ramp = sum(second.t < first for second in seconds)
    earliest = -max(1, ramp // every)
    for second in seconds:
        place = max(earliest, (second.t - first) // (every * SECOND))
        found.setdefault((second.measured, place), []).append(second)
    return list(found.values())


def _percentiles(stretch: Sequence[TpccSecond]) -> Mapping[str, float]:
    try:
        whole = merged(second.types[kind].histogram for second in stretch for kind in TYPES)
    except MalformedRecord:  # the judge says what is wrong with it
        return {}
    if not whole.get_total_count():
        return {}
    values = whole.get_percentile_to_value_dict(PERCENTILES)
    return {f"p{share}": _short(values[share] / 1e3) for share in PERCENTILES}


def _short(value: float) -> float:
    """Three significant places: what a chart shows, and a page of an hour stays small."""
    return float(f"{value:.3g}")


def _lanes(runs: Sequence[Run]) -> dict[str, tuple[Band, ...]]:
    lanes: dict[str, list[Band]] = {}
    several = len({run.driver for run in runs if run.driver}) > 1
    for run in runs:
        lane = run.arm or "runs"
        if several and run.driver:
            lane += f", {run.driver}"
        bands = lanes.setdefault(lane, [])
        marks = [
            (run.begin, run.ramp if run.ramp is not None else run.end, f"{run.name} {LOADING}"),
            (run.ramp, run.measured if run.measured is not None else run.until, f"{run.name} {RAMP}"),
            (run.measured, run.until, f"{run.name} {MEASURED}"),
            (run.until, run.end, f"{run.name} {STOPPING}"),
        ]
        bands += [
            Band(begin=begin, end=end, name=name)
            for begin, end, name in marks
            if begin is not None and end is not None and end > begin
        ]
    return {name: tuple(bands) for name, bands in lanes.items()}
