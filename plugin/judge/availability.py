"""Gaps: the longest stretches without a success, as an independent probe saw them.

A *stretch* lies between two neighbouring successes of a route (an endpoint and a bucket). One that overlaps the window
counts in its whole length, also the part outside: a stretch that is open when the window begins counts from the last
success before it, one that is open when the window ends counts on to the success that ends it. Before the first success
a stretch counts from the begin of the probe's first second, after the last one to the last time at which the probe is
known to have run. Inside one second only the longest stretch of a route is recorded, not where it lay, so in the two
seconds that the window's edges fall into, a gap may be charged that was just outside; that is never more than a second.
"""

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from plugin.evidence.records import ProbeSecond
from plugin.judge.moments import seconds as told
from plugin.judge.trial import SECOND, Window, outside

EDGE_US = 2_000_000
"""How long after the begin of its window the probe's first line may begin, as writers may be started beside it, and
before its end the last: a second is written when it is over."""

LAG_US = 500_000
"""A probe whose own clock tick comes later than this proves nothing about the server."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """A stretch without a success: which route, from when to when (microseconds)."""

    route: str
    begin: int
    end: int

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end - self.begin) / 1e6


@dataclass(frozen=True, kw_only=True, slots=True)
class Availability:
    """The longest gap of each route in the window.

    ``worst`` is the longest of any route whose endpoint is not itself a node that was hit, ``victims`` the longest of
    the others. ``None`` where there is no such route.
    """

    routes: Mapping[str, Gap]
    worst: Gap | None
    victims: Gap | None


def together(seen: Sequence[Availability]) -> Availability | None:
    """The longest gaps of several windows."""

    def longest(gaps: Iterable[Gap | None]) -> Gap | None:
        return max((gap for gap in gaps if gap), key=lambda gap: gap.seconds, default=None)

    if len(seen) < 2:
        return seen[0] if seen else None
    return Availability(
        routes={name: max((one.routes[name] for one in seen), key=lambda gap: gap.seconds) for name in seen[0].routes},
        worst=longest(one.worst for one in seen),
        victims=longest(one.victims for one in seen),
    )


def undisturbed(
    seconds: Sequence[ProbeSecond],
    routes: Iterable[str],
    *,
    window: Window,
    excused: Sequence[Window],
    gone: Mapping[str, int],
) -> Gap | None:
    """The longest part of a stretch of any route in the window that lies outside all the ``excused`` ones, in order.

    Whoever was hit counts like anybody else there, but for nodes that are ``gone``, each since that time. ``None``
    where there is no such part.
    """
    longest: Gap | None = None
    most = -1
    for route, mine, stretch in _of_all(seconds, routes, excused, gone):
        if stretch[1] - stretch[0] <= most:
            continue
        for begin, end in outside(stretch, mine):
            if _overlaps(begin, end, window) and end - begin > most:
                longest, most = Gap(route=route, begin=begin, end=end), end - begin
    return longest


def long_stretches(
    seconds: Sequence[ProbeSecond],
    routes: Iterable[str],
    *,
    window: Window,
    excused: Sequence[Window] = (),
    gone: Mapping[str, int] = MappingProxyType({}),
) -> list[Window]:
    """All parts of a second and more, as ``undisturbed`` has the longest of them."""
    return [
        (begin, end)
        for _, mine, stretch in _of_all(seconds, routes, excused, gone)
        if stretch[1] - stretch[0] >= SECOND
        for begin, end in outside(stretch, mine)
        if end - begin >= SECOND and _overlaps(begin, end, window)
    ]


def away_again_us(
    seconds: Sequence[ProbeSecond], routes: Iterable[str], *, window: Window, gone: Mapping[str, int]
) -> tuple[int, str, int]:
    """For how long a route had no success in the window, its longest stretch aside; the route, and how many others.

    In microseconds, of the worst route, and of stretches of a second and more, each as far as it lies in the window.
    """
    found: dict[str, list[int]] = {}
    for route, mine, (begin, end) in _of_all(seconds, routes, (), gone):
        lengths = found.setdefault(route, [])
        within = max(begin, window[0]), min(end, window[1])
        if within[1] - within[0] >= SECOND:
            lengths += [end - begin for begin, end in outside(within, mine) if end - begin >= SECOND]
    again = {route: sorted(lengths)[:-1] for route, lengths in found.items()}
    worst = max(again, key=lambda route: sum(again[route]), default="")
    return (sum(again[worst]), worst, len(again[worst])) if worst else (0, "", 0)


def _of_all(
    seconds: Sequence[ProbeSecond], routes: Iterable[str], excused: Sequence[Window], gone: Mapping[str, int]
) -> Iterator[tuple[str, list[Window], Window]]:
    """Each route, what excuses it, and each of its stretches."""
    if not seconds:
        return
    bounds = _bounds(seconds)
    for name in dict.fromkeys(routes):
        since = gone.get(endpoint(name), bounds[1])
        mine = [*(one for one in excused if one[0] < since), (since, max(since, bounds[1]))]
        for stretch in _stretches(name, seconds, bounds):
            yield name, mine, stretch


def endpoint(route: str) -> str:
    """The endpoint of a route named ``<endpoint>/<bucket>``."""
    return route.rpartition("/")[0]


def availability(
    seconds: Sequence[ProbeSecond], routes: Iterable[str], *, window: Window, victims: Iterable[str] = ()
) -> Availability:
    """Gaps in the window. ``routes`` are all that were declared; one that never appears was never available.

    A route belongs to a victim when its endpoint has the node's name, as on CockroachDB; PostgreSQL's one endpoint
    ("primary") is none of the nodes and always counts.
    """
    if not seconds:
        return Availability(routes={}, worst=None, victims=None)
    hit = frozenset(victims)
    names = list(dict.fromkeys([*routes, *(name for second in seconds for name in second.routes)]))
    bounds = _bounds(seconds)
    by_route = {name: _longest(name, seconds, window, bounds) for name in names}
    living = [gap for name, gap in by_route.items() if endpoint(name) not in hit]
    hurt = [gap for name, gap in by_route.items() if endpoint(name) in hit]
    return Availability(
        routes=by_route,
        worst=max(living, key=lambda gap: gap.seconds, default=None),
        victims=max(hurt, key=lambda gap: gap.seconds, default=None),
    )


def nearby(probe: Sequence[ProbeSecond], routes: Iterable[str], window: Window) -> Sequence[ProbeSecond]:
    """As much of the probe as gaps in the window depend on: to where each route had a success before, and after it.

    In a run of hours with many faults the rest would be gone through once for each of them.
    """
    all_routes = frozenset(routes)

    def reach(indices: range) -> int:
        missing = set(all_routes)
        index = indices.start
        for index in indices:
            missing -= {name for name, route in probe[index].routes.items() if route.ok}
            if not missing:
                break
        return index

    first = bisect_left(probe, window[0] - SECOND, key=lambda second: second.t)
    last = bisect_left(probe, window[1] + SECOND, key=lambda second: second.t)
    return probe[max(0, reach(range(first - 1, -1, -1))) : reach(range(last, len(probe))) + 1]


def _bounds(seconds: Sequence[ProbeSecond]) -> Window:
    """Begin of the first second; begin of the last one or the last success of any route in it, whichever is later."""
    begin, end = seconds[0].t, seconds[-1].t
    for second in seconds:
        for route in second.routes.values():
            if route.ok:
                begin, end = min(begin, route.first), max(end, route.last)
    return begin, end


def _overlaps(begin: int, end: int, window: Window) -> bool:
    return end > window[0] and begin < window[1]


def _longest(name: str, seconds: Sequence[ProbeSecond], window: Window, bounds: Window) -> Gap:
    longest = Gap(route=name, begin=window[0], end=window[0])
    for begin, end in _stretches(name, seconds, bounds):
        if end - begin > longest.end - longest.begin and _overlaps(begin, end, window):
            longest = Gap(route=name, begin=begin, end=end)
    return longest


def _stretches(name: str, seconds: Sequence[ProbeSecond], bounds: Window) -> Iterator[Window]:
    last = bounds[0]
    for second in seconds:
        route = second.routes.get(name)
        if route is None or not route.ok:
            continue
        yield last, route.first
        # Where the longest stretch inside the second lay is not recorded; the end of the second is as good a place.
        yield max(route.first, route.last - route.gap), route.last
        last = route.last
    yield last, bounds[1]


def holes(seconds: Sequence[ProbeSecond], window: Window, zero: int = 0) -> tuple[str, ...]:
    """Where the probe's record has holes in the window, in words: lines missing, or not there from begin to end.

    Moments count from the second ``zero``.
    """
    if not seconds:
        return ("the probe recorded nothing",)
    found = []
    if seconds[0].t > window[0] + EDGE_US:
        found.append(f"the probe begins at {told(seconds[0].t, zero)}, the window at {told(window[0], zero)}")
    if seconds[-1].t < window[1] - EDGE_US:
        found.append(f"the probe ends at {told(seconds[-1].t, zero)}, the window at {told(window[1], zero)}")
    for one, other in itertools.pairwise(seconds):
        if other.t - one.t > SECOND and _overlaps(one.t + SECOND, other.t, window):
            found.append(f"nothing is recorded between {told(one.t + SECOND, zero)} and {told(other.t, zero)}")
    return tuple(found)


def late(seconds: Sequence[ProbeSecond], window: Window) -> tuple[int, int]:
    """In how many seconds of the window the probe itself was late by more than ``LAG_US``, and its largest lag (µs)."""
    lags = [second.lag_us for second in seconds if _overlaps(second.t, second.t + SECOND, window)]
    return sum(lag > LAG_US for lag in lags), max(lags, default=0)
