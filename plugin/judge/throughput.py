"""Throughput and latency of acknowledged writes, before, during and after a disturbance.

Operations are counted in *buckets*: the smallest number of whole seconds in which the baseline expects at least 200 of
them, since healthy seconds of fewer dip by chance (Poisson seconds of 100 fall below 80 % in 1.7 % of cases, of 200 in
0.2 %). *Degraded* is the time in buckets below 80 % of the baseline's median. The throughput rule asks for 80 % in 95 %
of the buckets; a baseline that breaks it against itself in more than 1 % of its buckets proves nothing.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import quantiles
from typing import TypeVar

from plugin.judge.activity import Times
from plugin.judge.trial import SECOND, Window

T = TypeVar("T", int, float)
EXPECTED = 200
"""Operations that a bucket of the baseline expects at least."""
FLOOR = 0.80
"""The share of the baseline's median below which a bucket is degraded."""
UNSTEADY = 0.01
"""The largest share of a steady baseline's own buckets that may be degraded."""
FEWEST = 5
"""A baseline of fewer buckets has no median worth the name, and a share of fewer says nothing (our own choice)."""


def median(values: Sequence[int]) -> float:
    """The median of at least one value. (Python's own ``statistics`` takes longer to import than all of the judge.)"""
    ordered, half = sorted(values), len(values) // 2
    return float(ordered[half]) if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Baseline:
    """What is normal: the buckets' width in whole seconds, operations in each, their median."""

    width_s: int
    counts: tuple[int, ...]
    median: float

    @property
    def below(self) -> float:
        """The share of its own buckets that are degraded; 1 where there is none."""
        return sum(count < FLOOR * self.median for count in self.counts) / len(self.counts) if self.counts else 1.0

    @property
    def obeys(self) -> bool:
        """Whether it is long and steady enough to be compared with."""
        return len(self.counts) >= FEWEST and self.median > 0 and self.below <= UNSTEADY


@dataclass(frozen=True, kw_only=True, slots=True)
class Bucket:
    """Some seconds of the window: from when to when, how many operations, how many are normal for its length."""

    begin: int
    end: int
    count: int
    normal: float

    @property
    def degraded(self) -> bool:
        """Whether it is below 80 % of normal."""
        return self.count < FLOOR * self.normal


def within(times: Iterable[int], window: Window) -> Sequence[int]:
    """Those in the window, its end excluded. Of ``Times`` out of order (contradictory evidence) others, too."""
    if isinstance(times, Times):
        return times.within(*window)
    return [time for time in times if window[0] <= time < window[1]]


def per_second(times: Iterable[int], window: Window) -> list[int]:
    """Operations in each second from the window's begin; a last second that is cut off by its end is left out."""
    return counted(times, window, 1)


def counted(times: Iterable[int], window: Window, width_s: int) -> list[int]:
    """Operations in each whole bucket of ``width_s`` seconds from the window's begin."""
    begin, width = window[0], width_s * SECOND
    counts = [0] * max(0, (window[1] - begin) // width)
    for time in within(times, (begin, begin + len(counts) * width)):
        bucket = (time - begin) // width
        if 0 <= bucket < len(counts):
            counts[bucket] += 1
    return counts


def baseline(times: Sequence[int], window: Window) -> Baseline | None:
    """What is normal in the window; ``None`` where nothing was acknowledged in it."""
    length = (window[1] - window[0]) / SECOND
    operations = len(within(times, window))
    if length <= 0 or not operations:
        return None
    width = max(1, ceil(EXPECTED * length / operations - 1e-9))
    counts = counted(times, window, width)
    return Baseline(width_s=width, counts=tuple(counts), median=median(counts) if counts else 0.0)


def buckets(times: Sequence[int], window: Window, normal: Baseline, *, until: int) -> tuple[Bucket, ...]:
    """The buckets that begin in the window.

    The last one reaches beyond its end, up to ``until`` (when writing ended); one that is cut off there is held against
    the normal count of its part.
    """
    width = normal.width_s * SECOND
    begins = range(window[0], window[1], width)
    counts = counted(times, (window[0], window[0] + len(begins) * width), normal.width_s)
    found = []
    for begin, count in zip(begins, counts, strict=True):
        end = min(begin + width, max(until, window[1]))
        found.append(Bucket(begin=begin, end=end, count=count, normal=normal.median * (end - begin) / width))
    return tuple(found)


def degraded_s(found: Iterable[Bucket], window: Window) -> float:
    """Seconds of the window in degraded buckets."""
    return sum(min(b.end, window[1]) - max(b.begin, window[0]) for b in found if b.degraded) / SECOND


def untouched(found: Iterable[Bucket], excluded: Sequence[Window]) -> tuple[Bucket, ...]:
    """The buckets that touch no ``excluded`` stretch (the gap of a restart, which has a limit of its own)."""
    return tuple(b for b in found if not any(b.end > begin and b.begin < end for begin, end in excluded))


def share_obeying(found: Sequence[Bucket]) -> float | None:
    """The throughput rule: the share of buckets with at least 80 % of normal. ``None`` where there is none."""
    return sum(not b.degraded for b in found) / len(found) if found else None


def rate(times: Sequence[int], window: Window, width_s: int) -> float | None:
    """The median of the window's whole buckets in operations a second, of the window as a whole where it has none."""
    length = (window[1] - window[0]) / SECOND
    if length <= 0:
        return None
    counts = counted(times, window, width_s)
    if counts:
        return median(counts) / width_s
    return len(within(times, window)) / length


def latencies(sent: Sequence[int], acknowledged: Sequence[int], window: Window) -> "array[int]":
    """Sorted latencies in microseconds of the acknowledged operations that were sent in the window."""
    counts = Counter(
        done - begun for begun, done in zip(sent, acknowledged, strict=True) if window[0] <= begun < window[1]
    )
    ordered = array("q")
    for latency in sorted(counts):
        ordered.extend(array("q", [latency]) * counts[latency])
    return ordered


def percentile(ordered: Sequence[T], share: float) -> T | None:
    """The nearest-rank percentile of sorted values; ``None`` of nothing."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else None


def in_19_of_20(values: Iterable[float]) -> float | None:
    """What 19 of 20 values do not exceed, interpolated (Hyndman and Fan 1996, type 7); ``None`` of nothing.

    Of fewer than twenty the nearest rank is their largest: one second of a short run decided alone.
    """
    ordered = sorted(values)
    if len(ordered) < 2:
        return ordered[0] if ordered else None
    return quantiles(ordered, n=20, method="inclusive")[-1]
