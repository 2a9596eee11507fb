"""What a TPC-C run came to: tpmC, its share of what the specification allows, latencies by type, errors, the generator."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plugin.evidence.tpcc import SECOND, TYPES, TpccHeader, TpccRun, TpccSecond, merged
from plugin.judge.throughput import percentile

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram

EFC_TPMC = 12.86
"""The most new-orders a minute and warehouse that keying and think times allow (specification, 4.2): what ``efc`` is a share of."""

CAPACITY_TPMC = 12.605
"""The most that CockroachDB's own deck of 10/10/1/1/1 cards can reach: what its capacity search (``capacity_share``) is a share of."""

ALL = "all"
"""All transaction types together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Latencies:
    """Latencies in milliseconds of ``count`` transactions, counted from when each was due."""

    count: int
    avg_ms: float
    p50_ms: float
    p90_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """One run in figures, over its measured seconds.

    ``efc`` is tpmC in percent of 12.86 a warehouse, ``capacity_share`` in percent of 12.605. ``latencies`` has "all" and each
    type that ended at least once; ``finished`` counts those that committed or were rolled back as they should, ``just_after`` the new-orders
    that did so in the second after the last measured one, ``due`` those that the schedule asked for in the measured time, where it
    says so. Rates of the generator: ``cpu_share`` of a core a process, on average; ``lag_p95_ms`` of its seconds' worst lateness. ``None`` for what no
    second tells of.
    """

    header: TpccHeader
    seconds: int
    tpmc: float | None
    latencies: Mapping[str, Latencies] = field(default_factory=dict)
    finished: Mapping[str, int] = field(default_factory=dict)
    just_after: int = 0
    due: Mapping[str, int] | None = None
    retries: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)
    ambiguous: int = 0
    reconnects: int = 0
    cpu_share: float | None = None
    lag_p95_ms: float | None = None
    lag_max_ms: float | None = None

    @property
    def warehouses(self) -> int:
        """The size of the load."""
        return self.header.warehouses

    @property
    def efc(self) -> float | None:
        """TpmC in percent of 12.86 a warehouse."""
        return share(self.tpmc, self.warehouses, EFC_TPMC)

    @property
    def capacity_share(self) -> float | None:
        """TpmC in percent of 12.605 a warehouse."""
        return share(self.tpmc, self.warehouses, CAPACITY_TPMC)

    @property
    def p90_s(self) -> Mapping[str, float]:
        """The 90th percentile of each type in seconds."""
        return {name: one.p90_ms / 1e3 for name, one in self.latencies.items() if name != ALL}

    @property
    def mix(self) -> Mapping[str, float]:
        """The share of each type of the finished transactions, in percent; empty where none finished."""
        whole = sum(self.finished.values())
        return {name: 100 * count / whole for name, count in self.finished.items()} if whole else {}


def share(tpmc: float | None, warehouses: int, each: float) -> float | None:
    """TpmC in percent of so many a warehouse; ``None`` without warehouses or a figure."""
    return None if tpmc is None or warehouses <= 0 else 100 * tpmc / (each * warehouses)


def figures(run: TpccRun) -> Figures:
    """The run in figures. Raises ``MalformedRecord`` for a histogram that cannot be read.

    tpmC counts new-orders that were rolled back as the specification asks, as ``cockroach workload`` does.
    """
    seconds = [second for second in run.seconds if second.measured]
    if not seconds:
        return Figures(header=run.header, seconds=0, tpmc=None)
    end = seconds[-1].t
    finished = {name: sum(_finished(second, name) for second in seconds) for name in TYPES}
    histograms = {name: merged(second.types[name].histogram for second in seconds) for name in TYPES}
    whole = merged(())
    for histogram in histograms.values():
        whole.add(histogram)
    lags = sorted(second.lag_ms for second in seconds)
    return Figures(
        header=run.header,
        seconds=len(seconds),
        tpmc=60 * finished["new_order"] / len(seconds),
        latencies={
            name: found
            for name, histogram in {ALL: whole, **histograms}.items()
            if (found := _latencies(histogram)) is not None
        },
        finished=finished,
        just_after=sum(_finished(s, "new_order") for s in run.seconds if end < s.t <= end + SECOND),
        due=run.due,
        retries=dict(sum((Counter(second.retries) for second in seconds), Counter())),
        errors=dict(sum((Counter(second.errors) for second in seconds), Counter())),
        ambiguous=sum(second.ambiguous for second in seconds),
        reconnects=sum(second.reconnects for second in seconds),
        cpu_share=_cpu_share(seconds, run.header.processes),
        lag_p95_ms=percentile(lags, 0.95),
        lag_max_ms=lags[-1],
    )


def _finished(second: TpccSecond, name: str) -> int:
    one = second.types[name]
    return one.ok + one.rolled_back


def _latencies(histogram: "HdrHistogram") -> Latencies | None:
    count = histogram.get_total_count()
    if not count:
        return None
    at = histogram.get_percentile_to_value_dict((50, 90, 95, 99))
    return Latencies(
        count=count,
        avg_ms=_mean(histogram) / 1e3,
        p50_ms=at[50] / 1e3,
        p90_ms=at[90] / 1e3,
        p95_ms=at[95] / 1e3,
        p99_ms=at[99] / 1e3,
        max_ms=histogram.get_max_value() / 1e3,
    )


def _mean(histogram: "HdrHistogram") -> float:
    """The mean, each value taken for the middle of its bucket. (The library's own walks through all empty ones, in 20 ms.)"""
    total = 0.0
    for index, count in enumerate(histogram.counts):
        if count:
            low = histogram.get_value_from_index(index)
            total += count * (low + histogram.get_highest_equivalent_value(low) + 1) / 2
    return total / float(histogram.get_total_count())


def _cpu_share(seconds: list[TpccSecond], processes: int) -> float | None:
    """Of a core a process, from the first to the last measured second."""
    elapsed = (seconds[-1].t - seconds[0].t) / SECOND
    return (seconds[-1].cpu_s - seconds[0].cpu_s) / elapsed / processes if elapsed > 0 else None
