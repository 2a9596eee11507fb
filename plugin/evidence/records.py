"""The records that evidence consists of, and how each is written as a line and read back.

Times are microseconds (``t``) on the trial's one monotonic timeline: ``(time.monotonic_ns() - origin_ns) // 1000`` with
the trial's ``origin_ns``, which every process of the trial is told. CLOCK_MONOTONIC is one clock for all processes of a
host.

Files of a trial (``claims/<claim>/<trial>/``):

``events.jsonl``        what was done, an object a line: ``{"t": …, "event": …, …}``
``probe.jsonl``         a header, then an object a second (``ProbeSecond``)
``layout.jsonl``        where the replicas were, an object a sample (``plugin.evidence.layout``)
``host.jsonl``          load of the host, an object a second

What a workload writes is described in its package.

A line is written with one ``write`` and ends in a newline; a last line without one was cut off by a crash and is
dropped when reading.
"""

import json
import struct
from array import array
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Annotated, Any, TypeVar
from zlib import decompress
from zlib import error as CorruptError  # noqa: N812 - a class, whatever its name is

from msgspec import Meta, Struct, convert
from msgspec.json import Decoder, encode
from msgspec.structs import replace

from clusters.events import Happened
from plugin.evidence.events import KNOWN, Event, happened

T = TypeVar("T")

Moment = Annotated[int, Meta(ge=0, le=100 * 86_400_000_000)]
"""A time of the timeline in a file. No trial takes a hundred days: what says so is damaged."""

Count = Annotated[int, Meta(ge=0, le=10**12)]
"""More than that nobody counts: the largest runs published count 10^10 rows."""

SCHEMA = 1
"""Version of all formats here; a change that old readers would misread raises it."""


class MalformedRecord(ValueError):  # noqa: N818 - a record, not an error of ours
    """A line that is not what its format says; the message has the line's number and text."""


def read_lines(lines: Iterable[str], parse: Callable[[str], T], what: str) -> Iterator[T]:
    """Each line parsed, but an unfinished last one and the trailer.

    Raises ``MalformedRecord`` for a line that is not ``what``.
    """
    for number, line in enumerate(lines, 1):
        if not line.endswith("\n"):
            return
        if line.startswith("#"):
            continue
        try:
            record = parse(line)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise MalformedRecord(f"line {number}: {line[:200]!r} is not {what} ({error})") from error
        yield record


def event_line(event: Event) -> str:
    """The event as a line, newline included."""
    return json.dumps({"t": event.t, "event": event.name, **event.data}, ensure_ascii=False) + "\n"


def read_events(lines: Iterable[str], kinds: Mapping[str, type[Happened]] = KNOWN) -> Iterator[Event]:
    """The events in order, of these classes by name. Raises ``MalformedRecord``; an unfinished last line is dropped."""

    def event(line: str) -> Event:
        data = json.loads(line)
        return Event(convert(data.pop("t"), Moment), happened(str(data.pop("event")), data, kinds))

    return read_lines(lines, event, "an event")


class RouteSecond(Struct, frozen=True, omit_defaults=True):
    """One route (a gateway and a bucket) of the probe in one second.

    ``first``, ``last``: times of the first and last success in it, 0 where there was none; ``gap``: the longest stretch
    between two neighbouring successes inside it. ``errors`` counts by SQLSTATE or reason.
    """

    ok: Count
    first: Moment
    last: Moment
    gap: Moment
    errors: Mapping[str, int] = {}


NEVER = -(2**31)
"""In place of a time, in ``PackedRoutes``: 0, of a route without a success."""
NONE: Mapping[str, int] = MappingProxyType({})


class PackedRoutes(Mapping[str, RouteSecond]):
    """The routes of a second in sixteen bytes each, where objects take three hundred: a run of hours has millions.

    ``places`` are the routes' places, which neighbouring seconds share. Raises ``OverflowError`` for a number that does
    not fit.
    """

    __slots__ = ("_errors", "_numbers", "_places", "_t")

    def __init__(self, t: int, places: Mapping[str, int], routes: Mapping[str, RouteSecond]) -> None:
        self._t, self._places = t, places
        self._numbers = array("i")
        for route in routes.values():
            first, last = route.first, route.last
            self._numbers.extend((route.ok, first - t if first else NEVER, last - t if last else NEVER, route.gap))
        self._errors = {name: route.errors for name, route in routes.items() if route.errors}

    def __getitem__(self, name: str) -> RouteSecond:
        place, numbers, t = 4 * self._places[name], self._numbers, self._t
        first, last = numbers[place + 1], numbers[place + 2]
        return RouteSecond(
            numbers[place],
            0 if first == NEVER else t + first,
            0 if last == NEVER else t + last,
            numbers[place + 3],
            self._errors.get(name, NONE),
        )

    def successes(self) -> Sequence[int]:
        """How many each route had, in order."""
        return self._numbers[::4]

    def errors(self) -> Mapping[str, Mapping[str, int]]:
        """Of the routes that had any."""
        return self._errors

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def successes_of(routes: Mapping[str, RouteSecond]) -> Sequence[int]:
    """How many each of these routes had, in order."""
    return routes.successes() if isinstance(routes, PackedRoutes) else [route.ok for route in routes.values()]


def errors_of(routes: Mapping[str, RouteSecond]) -> Mapping[str, Mapping[str, int]]:
    """Those of the routes that had any."""
    if isinstance(routes, PackedRoutes):
        return routes.errors()
    return {name: route.errors for name, route in routes.items() if route.errors}


LATENCY = (2, 1, 10**8)
"""Significant figures, lowest and highest value of a histogram of latencies, in microseconds."""


class ProbeSecond(Struct, frozen=True):
    """One second of the probe. ``routes`` by ``"<endpoint>/<bucket>"``; ``latency``: HDR histograms by endpoint.

    ``lag_us`` is how far the probe's own clock tick was late: a probe that stalls proves nothing about the server. A
    histogram is in microseconds (1 to 10^8, 2 significant figures), encoded by ``hdrh`` as base64 text; latency is
    counted from when an operation was due, so that a stalled server is charged for the wait.
    """

    t: Moment
    lag_us: int
    routes: Mapping[str, RouteSecond]
    latency: Mapping[str, str] = {}


HISTOGRAM = struct.Struct(">iiiiqq")
"""How a histogram begins, once it is decompressed: cookie, length of what follows, offset, digits, lowest, highest."""
COOKIE, COMPRESSED, REST = 0x1C849313, 0x1C849314, 40
"""What ``hdrh`` marks its two formats with, and how long the beginning is."""


def check_histogram(text: str) -> None:
    """Raise ``ValueError`` for what is no histogram of latencies as ``ProbeSecond`` has them.

    It is decompressed, which has a checksum, but not decoded: that takes twelve times as long, and a run of hours has
    half a million.
    """
    packed = a2b_base64(text, strict_mode=True)
    try:
        plain = decompress(packed[8:])
    except CorruptError as error:
        raise ValueError(f"no histogram: {error}") from error
    begins = int.from_bytes(packed[:4], "big"), int.from_bytes(packed[4:8], "big"), len(plain) >= REST
    if begins != (COMPRESSED, len(packed) - 8, True):
        raise ValueError("no histogram")
    cookie, length, _, digits, lowest, highest = HISTOGRAM.unpack_from(plain)
    if (cookie, length, digits, lowest, highest) != (COOKIE, len(plain) - REST, *LATENCY):
        raise ValueError("no histogram of latencies from 1 to 10^8 µs")


def probe_header(interval_us: int, routes: Iterable[str], *, nodes: Mapping[str, Sequence[str]] | None = None) -> str:
    """The first line of ``probe.jsonl``: how often each route is asked, and all routes by name.

    ``nodes``: those behind each endpoint; older probes do not say.
    """
    told = {"roachproof": "probe", "schema": SCHEMA, "interval_us": interval_us, "routes": [*routes]}
    return json.dumps(told if nodes is None else {**told, "nodes": nodes}) + "\n"


def probe_line(second: ProbeSecond) -> str:
    """The second as a line, newline included."""
    return encode(second).decode() + "\n"


def read_probe(lines: Iterable[str]) -> tuple[Mapping[str, Any], list[ProbeSecond]]:
    """Header and seconds. Raises ``MalformedRecord``; an unfinished last line is dropped."""
    header: dict[str, Any] = {}
    decode = Decoder(ProbeSecond).decode
    places: dict[str, int] = {}

    def packed(second: ProbeSecond) -> ProbeSecond:
        nonlocal places
        if [*places] != [*second.routes]:
            places = {name: place for place, name in enumerate(second.routes)}
        with suppress(OverflowError):
            return replace(second, routes=PackedRoutes(second.t, places, second.routes))
        return second

    def parse(line: str) -> ProbeSecond | None:
        if header:
            second = decode(line)
            for encoded in second.latency.values():
                check_histogram(encoded)
            return packed(second)
        found = json.loads(line)
        if found["roachproof"] != "probe" or found["schema"] != SCHEMA:
            raise ValueError(f"schema {found['schema']}, not {SCHEMA}")
        header.update(found)
        return None

    return header, [found for found in read_lines(lines, parse, "a probe record") if found is not None]
