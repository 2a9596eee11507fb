"""The records that evidence consists of, and how each is written as a line and read back.

Times are microseconds (``t``) on the trial's one monotonic timeline: ``(time.monotonic_ns() - origin_ns) // 1000`` with
the trial's ``origin_ns``, which every process of the trial is told. CLOCK_MONOTONIC is one clock for all processes of a
host.

Files of a trial (``claims/<claim>/<trial>/``):

``events.jsonl``        what was done, an object a line: ``{"t": …, "event": …, …}``
``ledger.tsv``          the history of every operation of the ledger (``HistoryLine``), in the order it happened
``ledger-final.tsv``    what was read at the end (``FinalLine``)
``probe.jsonl``         a header, then an object a second (``ProbeSecond``)
``layout.jsonl``        where the replicas were, an object a sample (``plugin.evidence.layout``)
``host.jsonl``          load of the host, an object a second

What another workload writes is described in its package.

A line is written with one ``write`` and ends in a newline; a last line without one was cut off by a crash and is
dropped when reading.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from clusters.events import Happened
from plugin.evidence.events import KNOWN, Event, happened

SCHEMA = 1
"""Version of all formats here; a change that old readers would misread raises it."""

HISTORY_HEADER = f"# roachproof ledger history {SCHEMA}"
FINAL_HEADER = f"# roachproof ledger final read {SCHEMA}"


class MalformedRecord(ValueError):  # noqa: N818 - a record, not an error of ours
    """A line that is not what its format says; the message has the line's number and text."""


class Op(StrEnum):
    """What a ledger client does."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    PAIR = "pair"
    """Inserts two rows of different buckets in one explicit transaction."""
    READ = "read"
    READ_PAIR = "read_pair"
    """Reads both rows of a pair in one statement."""


@dataclass(frozen=True, slots=True)
class Invoke:
    """Written before an operation is sent. A key is written by one client only; its versions count 1, 2, 3 …"""

    t: int
    op: int
    client: str
    node: str
    kind: Op
    keys: tuple[int, ...]
    version: int


@dataclass(frozen=True, slots=True)
class Ok:
    """The operation was acknowledged.

    ``seen`` (reads only) has for each key the version read, 0 for absent; it is negative when the row's payload was not
    the one that belongs to that version.
    """

    t: int
    op: int
    seen: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The operation certainly did not happen (``detail``: SQLSTATE or reason)."""

    t: int
    op: int
    detail: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Indeterminate: the operation may or may not have happened, or may happen yet."""

    t: int
    op: int
    detail: str


@dataclass(frozen=True, slots=True)
class Connection:
    """A client's connection to a node came up or went down. Writers are named ``w1``, ``w2`` …, readers ``r1`` …"""

    t: int
    client: str
    node: str
    up: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """A client sought a connection to go on with its work, and no host of the endpoint took it: an attempt that never got as far as an operation."""

    t: int
    client: str
    endpoint: str
    detail: str


@dataclass(frozen=True, slots=True)
class GeneratorSecond:
    """Once a second: the largest delay behind the schedule while no operation was waited for, and CPU time used."""

    t: int
    lag_us: int
    cpu_us: int


@dataclass(frozen=True, slots=True)
class HistoryEnd:
    """The last line of a complete history."""

    t: int


HistoryLine = Invoke | Ok | Failed | Unknown | Connection | Refused | GeneratorSecond | HistoryEnd


def _word(text: str) -> str:
    """A detail as one field: no tab, no newline, at most 200 characters."""
    return " ".join(text.split())[:200] or "-"


def history_line(record: HistoryLine) -> str:
    """The record as a line, newline included."""
    match record:
        case Invoke(t, op, client, node, kind, keys, version):
            return f"I\t{t}\t{op}\t{client}\t{node}\t{kind}\t{','.join(map(str, keys))}\t{version}\n"
        case Ok(t, op, seen):
            return f"O\t{t}\t{op}\t{','.join(map(str, seen))}\n"
        case Failed(t, op, detail):
            return f"F\t{t}\t{op}\t{_word(detail)}\n"
        case Unknown(t, op, detail):
            return f"U\t{t}\t{op}\t{_word(detail)}\n"
        case Connection(t, client, node, up, detail):
            return f"C\t{t}\t{client}\t{node}\t{'up' if up else 'down'}\t{_word(detail)}\n"
        case Refused(t, client, endpoint, detail):
            return f"N\t{t}\t{client}\t{endpoint}\t{_word(detail)}\n"
        case GeneratorSecond(t, lag_us, cpu_us):
            return f"S\t{t}\t{lag_us}\t{cpu_us}\n"
        case HistoryEnd(t):
            return f"E\t{t}\n"


def _ints(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()


def read_history(lines: Iterable[str]) -> Iterator[HistoryLine]:
    """The records of a history, in order. Raises ``MalformedRecord``; an unfinished last line is dropped."""
    for number, line in enumerate(lines, 1):
        if not line.endswith("\n"):
            return
        if line.startswith("#"):
            if line.rstrip("\n") != HISTORY_HEADER:
                raise MalformedRecord(f"line {number}: {line!r} is not {HISTORY_HEADER!r}")
            continue
        fields = line[:-1].split("\t")
        try:
            match fields[0]:
                case "I":
                    _, t, op, client, node, kind, keys, version = fields
                    yield Invoke(int(t), int(op), client, node, Op(kind), _ints(keys), int(version))
                case "O":
                    yield Ok(int(fields[1]), int(fields[2]), _ints(fields[3]))
                case "F":
                    yield Failed(int(fields[1]), int(fields[2]), fields[3])
                case "U":
                    yield Unknown(int(fields[1]), int(fields[2]), fields[3])
                case "C":
                    if fields[4] not in ("up", "down"):
                        raise ValueError(fields[4])
                    yield Connection(int(fields[1]), fields[2], fields[3], fields[4] == "up", fields[5])
                case "N":
                    yield Refused(int(fields[1]), fields[2], fields[3], fields[4])
                case "S":
                    yield GeneratorSecond(int(fields[1]), int(fields[2]), int(fields[3]))
                case "E":
                    yield HistoryEnd(int(fields[1]))
                case _:
                    raise ValueError(fields[0])
        except (ValueError, IndexError) as error:
            raise MalformedRecord(f"line {number}: {line!r} is not a ledger record ({error})") from error


def payload(seed: int, key: int, version: int) -> str:
    """What the row of ``key`` must contain at ``version``: 32 hexadecimal digits that nobody else would write there."""
    return hashlib.blake2b(f"{seed}/{key}/{version}".encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class FinalRow:
    """A row found at the end."""

    key: int
    version: int
    payload: str


@dataclass(frozen=True, slots=True)
class BucketRead:
    """A bucket (``key % buckets``) was read to its end. Its rows come before this line, in the order of their keys."""

    t: int
    bucket: int
    rows: int


@dataclass(frozen=True, slots=True)
class BucketUnreadable:
    """A bucket could not be read to its end within the recovery limit."""

    t: int
    bucket: int
    detail: str


@dataclass(frozen=True, slots=True)
class RowCount:
    """What ``SELECT count(*)`` said, as the thesis' script asked."""

    t: int
    rows: int


@dataclass(frozen=True, slots=True)
class SampledRow:
    """One acknowledged row chosen at random and read by its key (table 5.6): the version found, 0 for absent."""

    t: int
    key: int
    version: int
    payload: str


FinalLine = FinalRow | BucketRead | BucketUnreadable | RowCount | SampledRow


def final_line(record: FinalLine) -> str:
    """The record as a line, newline included."""
    match record:
        case FinalRow(key, version, text):
            return f"R\t{key}\t{version}\t{_word(text)}\n"
        case BucketRead(t, bucket, rows):
            return f"D\t{t}\t{bucket}\t{rows}\n"
        case BucketUnreadable(t, bucket, detail):
            return f"X\t{t}\t{bucket}\t{_word(detail)}\n"
        case RowCount(t, rows):
            return f"N\t{t}\t{rows}\n"
        case SampledRow(t, key, version, text):
            return f"P\t{t}\t{key}\t{version}\t{_word(text)}\n"


def read_final(lines: Iterable[str]) -> Iterator[FinalLine]:
    """The records of a final read, in order. Raises ``MalformedRecord``; an unfinished last line is dropped."""
    for number, line in enumerate(lines, 1):
        if not line.endswith("\n"):
            return
        if line.startswith("#"):
            if line.rstrip("\n") != FINAL_HEADER:
                raise MalformedRecord(f"line {number}: {line!r} is not {FINAL_HEADER!r}")
            continue
        fields = line[:-1].split("\t")
        try:
            match fields[0]:
                case "R":
                    yield FinalRow(int(fields[1]), int(fields[2]), fields[3])
                case "D":
                    yield BucketRead(int(fields[1]), int(fields[2]), int(fields[3]))
                case "X":
                    yield BucketUnreadable(int(fields[1]), int(fields[2]), fields[3])
                case "N":
                    yield RowCount(int(fields[1]), int(fields[2]))
                case "P":
                    yield SampledRow(int(fields[1]), int(fields[2]), int(fields[3]), fields[4])
                case _:
                    raise ValueError(fields[0])
        except (ValueError, IndexError) as error:
            raise MalformedRecord(f"line {number}: {line!r} is not a final-read record ({error})") from error


def event_line(event: Event) -> str:
    """The event as a line, newline included."""
    return json.dumps({"t": event.t, "event": event.name, **event.data}, ensure_ascii=False) + "\n"


def read_events(lines: Iterable[str], kinds: Mapping[str, type[Happened]] = KNOWN) -> Iterator[Event]:
    """The events in order, of these classes by name. Raises ``MalformedRecord``; an unfinished last line is dropped."""
    for number, line in enumerate(lines, 1):
        if not line.endswith("\n"):
            return
        try:
            data = json.loads(line)
            yield Event(int(data.pop("t")), happened(str(data.pop("event")), data, kinds))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MalformedRecord(f"line {number}: {line!r} is not an event ({error})") from error


@dataclass(frozen=True, slots=True)
class RouteSecond:
    """One route (a gateway and a bucket) of the probe in one second.

    ``first``, ``last``: times of the first and last success in it, 0 where there was none; ``gap``: the longest stretch
    between two neighbouring successes inside it. ``errors`` counts by SQLSTATE or reason.
    """

    ok: int = 0
    first: int = 0
    last: int = 0
    gap: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProbeSecond:
    """One second of the probe. ``routes`` by ``"<endpoint>/<bucket>"``; ``latency``: HDR histograms by endpoint.

    ``lag_us`` is how far the probe's own clock tick was late: a probe that stalls proves nothing about the server. A
    histogram is in microseconds (1 to 10^8, 2 significant figures), encoded by ``hdrh`` as base64 text; latency is
    counted from when an operation was due, so that a stalled server is charged for the wait.
    """

    t: int
    lag_us: int
    routes: Mapping[str, RouteSecond]
    latency: Mapping[str, str] = field(default_factory=dict)


def probe_header(interval_us: int, routes: Iterable[str]) -> str:
    """The first line of ``probe.jsonl``: how often each route is asked, and all routes by name."""
    return json.dumps({"roachproof": "probe", "schema": SCHEMA, "interval_us": interval_us, "routes": [*routes]}) + "\n"


def probe_line(second: ProbeSecond) -> str:
    """The second as a line, newline included."""
    routes = {
        name: {
            "ok": c.ok,
            "first": c.first,
            "last": c.last,
            "gap": c.gap,
            **({"errors": dict(c.errors)} if c.errors else {}),
        }
        for name, c in second.routes.items()
    }
    return (
        json.dumps({"t": second.t, "lag_us": second.lag_us, "routes": routes, "latency": dict(second.latency)}) + "\n"
    )


def read_probe(lines: Iterable[str]) -> tuple[Mapping[str, Any], list[ProbeSecond]]:
    """Header and seconds. Raises ``MalformedRecord``; an unfinished last line is dropped."""
    header: Mapping[str, Any] = {}
    seconds: list[ProbeSecond] = []
    for number, line in enumerate(lines, 1):
        if not line.endswith("\n"):
            break
        try:
            data = json.loads(line)
            if number == 1:
                if data["roachproof"] != "probe" or data["schema"] != SCHEMA:
                    raise ValueError(f"schema {data['schema']}, not {SCHEMA}")
                header = data
                continue
            routes = {name: RouteSecond(**route) for name, route in data["routes"].items()}
            seconds.append(ProbeSecond(int(data["t"]), int(data["lag_us"]), routes, data["latency"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MalformedRecord(f"line {number}: {line[:200]!r} is not a probe record ({error})") from error
    return header, seconds
