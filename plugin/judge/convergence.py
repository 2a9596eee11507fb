"""Whether and when the replicas of a cluster that grew or shrank spread evenly, from their numbers over time alone.

*Balanced*: the first sample from which every node stays near the mean, short excursions aside. *Settled*: no replica is
added or removed for a quiet period. Two results with two times: nodes that are even may still trade replicas, and a
cluster may come to rest unevenly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from statistics import fmean

BAND = 0.05
"""Part of the mean by which a node may be off it (CockroachDB: kv.allocator.range_rebalance_threshold)."""

LEAST = 2.0
"""Replicas that 5 % are at least: on small clusters they are less than one."""

MOST = 0.5
"""Part of the mean that the band is at most: a node without a replica is not near a mean of three (our own choice)."""

SLACK = 1.0
"""A replica more, since the mean is no whole number (our own choice)."""

STALLED_BELOW = 0.9
"""A cluster that rests with less of its way done has stalled; with more it is called uneven (our own choice)."""

PAPER_QUIET_S = 120.0
"""The quiet period at full size: how long CockroachDB's own tests wait without a range event."""

EVEN_SHARE = 0.9
"""Part of the time, from when they count as even, in which replicas must have been so (our own choice). A replica that
is moved counts on two nodes until the old one is gone, and the nodes decide from counts that others told them up to 10
s ago: a node that trades replicas at rest is seen off the band now and then."""

FAR = 2.0
"""How far off the mean a node may be in an excursion, as a multiple of the band (our own choice)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """The replicas on each node at one time, in seconds.

    ``moves``: replicas added and removed so far, where the servers count them.
    """

    t: float
    replicas: Mapping[str, int]
    moves: int | None = None

    def on(self, nodes: Sequence[str]) -> list[int]:
        """The replicas on these nodes; none on one that is not known yet."""
        return [self.replicas.get(node, 0) for node in nodes]

    def elsewhere(self, nodes: Sequence[str]) -> Mapping[str, int]:
        """What is on other nodes: on those that leave."""
        return {node: count for node, count in self.replicas.items() if count and node not in nodes}


class State(StrEnum):
    """Where the replicas stand at the end of a series."""

    BALANCED = "balanced"
    UNKNOWN = "no sample"
    NOT_BEGUN = "not begun"
    STALLED = "stalled"
    UNEVEN = "uneven"
    OSCILLATES = "oscillates"
    MOVING = "moving"


@dataclass(frozen=True, kw_only=True, slots=True)
class Convergence:
    """What a series shows.

    Times in seconds of the series; ``None`` for what it does not show, and ``why`` then says so.

    ``left``: how often every node was near the mean and then one no longer; ``even_s``: for how long all were at the
    end. ``rest_s``: how long nothing has changed at the end. ``gained``: replicas that nodes had more than at first
    when they were balanced, or at the end.
    """

    state: State
    balanced: float | None
    settled: float | None
    why: str = ""
    why_not_settled: str = ""
    rest_s: float = 0.0
    left: int = 0
    even_s: float = 0.0
    gained: int = 0


def band(counts: Sequence[int]) -> float:
    """How far from their mean nodes may be: 5 % of it or 2 replicas, whichever is more, and 1; half of it at most."""
    mean = sum(counts) / len(counts)
    return min(max(BAND * mean, LEAST) + SLACK, MOST * mean)


def even(counts: Sequence[int], within: float = 1.0) -> bool:
    """Whether every node is near the mean: not further from it than ``within`` times the band."""
    return _worst(counts) <= within * band(counts)


def _worst(counts: Sequence[int]) -> float:
    """How far the farthest node is from the mean."""
    mean = sum(counts) / len(counts)
    return max(abs(count - mean) for count in counts)


def converge(
    series: Sequence[Spread],
    nodes: Sequence[str],
    *,
    quiet_s: float,
    quiet_from: float | None = None,
    stall_s: float | None = None,
    hold_s: float = 0.0,
) -> Convergence:
    """What the series says of these nodes, which are those the cluster has at its end.

    Replicas that were even may leave it again for ``hold_s`` at the most, not further than ``FAR``, and for a tenth of
    the time since; then they must have been even for ``hold_s`` at the end, or before an excursion that goes on there.
    The servers are at rest where nothing changed from one sample to the next for ``quiet_s``; only from ``quiet_from``
    on, when traffic ended, does that count as settled. Uneven replicas of which none moved in the last ``stall_s`` (as
    long, if not given) are given up.
    Raises ``ValueError`` without nodes or with a quiet period that is none.
    """
    if not nodes or quiet_s <= 0:
        raise ValueError(f"nodes {list(nodes)}, quiet_s {quiet_s:g}: at least one node and a period above 0")
    if not series:
        return Convergence(
            state=State.UNKNOWN, balanced=None, settled=None, why="no sample", why_not_settled="no sample"
        )
    inside = [_even_on(spread, nodes) for spread in series]
    left = sum(was and not is_ for was, is_ in pairwise(inside))
    near = [_even_on(spread, nodes, within=FAR) for spread in series]
    end = _before_last_excursion(series, inside, near, hold_s)
    even_s, again = _even_again(series, inside), _even_again(series[:end], inside[:end])
    balanced = None if left and again < hold_s else _since(series[:end], inside[:end], near[:end], hold_s)
    if balanced is not None and end < len(series):  # the last excursion is part of that tenth of the time, too
        out = series[-1].t - series[end - 1].t - even_s
        balanced = balanced if out <= (1 - EVEN_SHARE) * (series[-1].t - balanced) else None
    settled, why_not_settled = _settled(series, quiet_s, quiet_from, balanced)
    state, why = (
        (State.BALANCED, "")
        if balanced is not None
        else _unbalanced(series, nodes, stall_s or quiet_s, left, _even_share(series, inside), even_s, hold_s)
    )
    at = next((spread for spread in series if spread.t == balanced), series[-1])
    first, last = series[0].on(nodes), at.on(nodes)
    return Convergence(
        state=state,
        balanced=balanced,
        settled=settled,
        why=why,
        why_not_settled=why_not_settled,
        rest_s=_rest_at_end(series, quiet_s),
        left=left,
        even_s=even_s,
        gained=sum(max(0, now - before) for before, now in zip(first, last, strict=True)),
    )


def _even_on(spread: Spread, nodes: Sequence[str], within: float = 1.0) -> bool:
    return even(spread.on(nodes), within) and not spread.elsewhere(nodes)


def _before_last_excursion(
    series: Sequence[Spread], inside: Sequence[bool], near: Sequence[bool], hold_s: float
) -> int:
    """How many samples come before an excursion that ends less than ``hold_s`` before the last one, or goes on there.

    All samples, unless it is as short and as near as any other may be: whether the end of a series falls into one, or
    just after one, is chance.
    """
    back = len(series)
    while back and inside[back - 1] and series[-1].t - series[back - 1].t < hold_s:
        back -= 1
    begin = back
    while begin and not inside[begin - 1] and near[begin - 1]:
        begin -= 1
    short = begin < back and series[back - 1].t - series[begin].t < hold_s
    return begin if short and begin and inside[begin - 1] else len(series)


def _even_again(series: Sequence[Spread], inside: Sequence[bool]) -> float:
    """For how long it has held at the end."""
    since = series[-1].t
    for spread, holds in zip(reversed(series), reversed(inside), strict=True):
        if not holds:
            break
        since = spread.t
    return series[-1].t - since


def _since(series: Sequence[Spread], inside: Sequence[bool], near: Sequence[bool], excursion_s: float) -> float | None:
    """The time from which it holds to the end, but for excursions.

    Those must all be near, none longer than ``excursion_s``, and together a tenth of the time at most. Half the time
    between two samples is added to what is allowed, as an excursion lasts some samples.
    """
    if not inside[-1]:
        return None
    end = since = series[-1].t
    if excursion_s:
        excursion_s += (end - series[0].t) / 2 / max(1, len(series) - 1)
    out = excursion = 0.0
    for number in range(len(series) - 2, -1, -1):
        here, lasted = series[number].t, series[number + 1].t - series[number].t
        if not inside[number]:
            out, excursion = out + lasted, excursion + lasted
            if excursion > excursion_s or not near[number]:
                break
            continue
        excursion = 0.0
        if out <= (1 - EVEN_SHARE) * (end - here):
            since = here
    return since


def _even_share(series: Sequence[Spread], inside: Sequence[bool]) -> float:
    """The part of the time in which it held, from when it first did; a sample stands until the next one."""
    first = next((spread.t for spread, holds in zip(series, inside, strict=True) if holds), None)
    if first is None or series[-1].t == first:
        return float(first is not None)
    held = sum(
        after.t - before.t
        for (before, after), holds in zip(pairwise(series), inside, strict=False)
        if holds and before.t >= first
    )
    return held / (series[-1].t - first)


def _changed(before: Spread, after: Spread, quiet_s: float) -> bool:
    """Whether a replica was, or may have been, added or removed: without counters a long gap may hide it."""
    if before.moves is not None and after.moves is not None:
        return after.moves != before.moves
    return after.replicas != before.replicas or after.t - before.t > quiet_s / 2


def _rests(series: Sequence[Spread], quiet_s: float) -> list[tuple[float, float]]:
    """The stretches in which nothing changed, from and to."""
    found: list[tuple[float, float]] = []
    begin = series[0].t
    for before, after in pairwise(series):
        if _changed(before, after, quiet_s):
            found.append((begin, before.t))
            begin = after.t
    return [*found, (begin, series[-1].t)]


def _rest_at_end(series: Sequence[Spread], quiet_s: float) -> float:
    begin, end = _rests(series, quiet_s)[-1]
    return end - begin


def _settled(
    series: Sequence[Spread], quiet_s: float, quiet_from: float | None, balanced: float | None
) -> tuple[float | None, str]:
    """The first rest without traffic; after it was balanced, if it was."""
    if quiet_from is None:
        return None, "not shown: the traffic never ended, so nobody looked"
    longest = 0.0
    for begin, end in _rests(series, quiet_s):
        begin = max(begin, quiet_from, balanced if balanced is not None else begin)
        if end - begin >= quiet_s:
            return begin, ""
        longest = max(longest, end - begin)
    rest = f"{longest:.0f} s at most without, of {quiet_s:g} s asked for"
    return None, f"not shown: replicas were added or removed all the time, {rest}"


def _unbalanced(
    series: Sequence[Spread],
    nodes: Sequence[str],
    stall_s: float,
    left: int,
    even_share: float,
    again: float,
    hold_s: float,
) -> tuple[State, str]:
    """Why the last sample is not even."""
    counts = series[-1].on(nodes)
    mean = sum(counts) / len(counts)
    off = [f"{node} {count}" for node, count in zip(nodes, counts, strict=True) if abs(count - mean) > band(counts)]
    off += [f"{node} still {count}" for node, count in series[-1].elsewhere(nodes).items()]
    where = f"{', '.join(off)} (mean {mean:.1f} ± {band(counts):.1f})"
    begin, end = _rests(series, stall_s)[-1]
    if left:
        times = f"{left} time{'s' if left > 1 else ''}"
        told = f"replicas were even {times} and left it again, {even_share:.0%} of the time since"
        if off:
            return State.OSCILLATES, f"{told}: {where}, {_drift(series, nodes)}"
        return State.OSCILLATES, f"{told}; they are so again for {again:.0f} s of {hold_s:g} s asked for"
    if end - begin < stall_s:
        return (
            State.MOVING,
            f"replicas still move at the end, {end - begin:.0f} s after the last: {where}, {_drift(series, nodes)}",
        )
    done = _way_done(series, nodes)
    if len(series) > 1 and begin == series[0].t:
        return State.NOT_BEGUN, f"no replica was moved in {end - begin:.0f} s: {where}"
    if done < STALLED_BELOW:
        return (
            State.STALLED,
            f"stalled after {done:.0%} of the way, nothing moved in the last {end - begin:.0f} s: {where}",
        )
    return State.UNEVEN, f"came to rest unevenly, nothing moved in the last {end - begin:.0f} s: {where}"


def _drift(series: Sequence[Spread], nodes: Sequence[str]) -> str:
    """Whether the farthest node comes nearer to the mean: in the last quarter of the samples and the one before."""
    quarter = -(-len(series) // 4)
    worst = [_worst(spread.on(nodes)) for spread in series]
    late, before = fmean(worst[-quarter:]), fmean(worst[-2 * quarter : -quarter] or worst[-quarter:])
    way = "coming nearer" if late < before - 1 else "going further" if late > before + 1 else "staying there"
    return f"{way} (the farthest node {before:.1f} off before, {late:.1f} of late)"


def _way_done(series: Sequence[Spread], nodes: Sequence[str]) -> float:
    """How much of what nodes had above the mean at first was taken from them."""

    def above(spread: Spread) -> float:
        counts = spread.on(nodes)
        mean = sum(counts) / len(counts)
        return sum(max(0.0, count - mean) for count in counts)

    first = above(series[0])
    return 1 - above(series[-1]) / first if first else 0.0
