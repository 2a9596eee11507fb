"""Where the two TPC-C drivers tell different things of the same cell, by more than chance and more than their ways of counting explain.

The native driver counts latencies from when a transaction was due, in two significant figures; the built-in one from when it was sent, in
one. So under saturation the native latencies are rightly longer, and a built-in percentile lies up to a bucket (an eighth) off.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean, stdev

from plugin.evidence.tpcc import TYPES
from plugin.judge.student import student_quantile
from plugin.judge.tpcc import Figures

LEVEL = 0.005
"""Of each side of an interval: chance alone shows a disagreement in one of a hundred figures at most (our own choice)."""

TPMC_PERCENT = 3.0
"""tpmC of the two may differ so far: the built-in one measures from its ramp's end, the native one whole seconds (our own choice)."""

P90_PERCENT = 25.0
"""So far may the 90th percentiles: a bucket of the built-in driver is up to 12.5 % wide, and either end may be off by one (our own choice)."""

NORMAL = 10_000
"""Degrees of freedom at which Student's distribution is the normal one."""

FEW = 10
"""A 90th percentile of fewer latencies is nearly their highest, and says nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Disagreement:
    """One figure of one cell: what each driver found (geometric means), and how far apart at least, in percent of the native one."""

    figure: str
    native: float
    builtin: float
    at_least_percent: float
    allowed_percent: float

    def __str__(self) -> str:
        more = "more" if self.builtin > self.native else "less"
        return (
            f"{self.figure}: the native driver found {self.native:.4g}, the built-in one {self.builtin:.4g}, at least "
            f"{self.at_least_percent:.1f} % {more} (allowed: {self.allowed_percent:g} %)"
        )


def disagreements(native: Sequence[Figures], builtin: Sequence[Figures]) -> tuple[Disagreement, ...]:
    """Where runs of the same cell by the two drivers disagree beyond noise.

    Noise is what runs of one driver differ by, and at least what so many counted transactions scatter by. Under think times
    tpmC scatters less than that, so a disagreement that is told is one. A run of the built-in driver with errors is left out: later
    versions of it (seen on v26.1) count a transaction that failed as done. Raises ``ValueError`` for runs of different cells.
    """
    cells = {(one.warehouses, one.header.waits) for one in (*native, *builtin)}
    if len(cells) > 1:
        raise ValueError(
            f"runs of {len(cells)} cells (warehouses, waits): {sorted(cells)}; compare one at a time"
        )
    return tuple(_disagreements(native, [one for one in builtin if not one.errors]))


def _disagreements(native: Sequence[Figures], builtin: Sequence[Figures]) -> Iterator[Disagreement]:
    found = _apart(_tpmc(native), _tpmc(builtin), TPMC_PERCENT, "tpmC")
    if found is not None:
        yield found
    if native and not native[0].header.waits:
        return  # without think times the native latencies hold the wait for a turn, the built-in ones do not
    for kind in TYPES:
        found = _apart(_p90(native, kind), _p90(builtin, kind), P90_PERCENT, f"p90 of {kind} in ms")
        if found is not None:
            yield found


@dataclass(frozen=True, kw_only=True, slots=True)
class _Value:
    """A figure of one run as a logarithm, and the variance that counting alone gives it."""

    value: float
    variance: float


def _tpmc(runs: Sequence[Figures]) -> list[_Value]:
    return [
        _Value(value=log(one.tpmc), variance=1 / one.finished["new_order"])
        for one in runs
        if one.tpmc and one.finished.get("new_order")
    ]


def _p90(runs: Sequence[Figures], kind: str) -> list[_Value]:
    """The quantile q of n exponential latencies has a log of variance q / (1 - q) / ln²(1 - q) / n; those of databases are alike there."""
    spread = 0.9 / 0.1 / log(0.1) ** 2
    return [
        _Value(value=log(found.p90_ms), variance=spread / found.count)
        for one in runs
        if (found := one.latencies.get(kind)) is not None and found.p90_ms > 0 and found.count >= FEW
    ]


def _apart(
    native: Sequence[_Value], builtin: Sequence[_Value], allowed: float, figure: str
) -> Disagreement | None:
    if not native or not builtin:
        return None
    (mine, my_error, my_df), (theirs, their_error, their_df) = _mean(native), _mean(builtin)
    half = student_quantile(1 - LEVEL, min(my_df, their_df)) * sqrt(my_error**2 + their_error**2)
    least = abs(theirs - mine) - half
    if least <= log(1 + allowed / 100):
        return None
    percent = 100 * (exp(least) - 1) if theirs > mine else 100 * (1 - exp(-least))
    return Disagreement(
        figure=figure,
        native=exp(mine),
        builtin=exp(theirs),
        at_least_percent=percent,
        allowed_percent=allowed,
    )


def _mean(values: Sequence[_Value]) -> tuple[float, float, int]:
    """Mean, standard error, degrees of freedom: by the runs' own spread where that is wider than what counting gives."""
    n = len(values)
    counted = sqrt(fmean(one.variance for one in values) / n)
    seen = stdev([one.value for one in values]) / sqrt(n) if n > 1 else 0.0
    return fmean(one.value for one in values), max(counted, seen), n - 1 if seen > counted else NORMAL
