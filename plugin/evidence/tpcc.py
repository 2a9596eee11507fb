"""The evidence of a TPC-C run: one file for each process of the load, ``tpcc-<run>.jsonl`` or ``tpcc-<run>-<i>.jsonl``.

First a header, then an object for each whole second of the arm's timeline in which the process ran, at last an object
with ``end`` and the audit. Each line is appended as it happens; a file without the last one was cut off.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plugin.evidence.records import MalformedRecord

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram

TPCC_SCHEMA = 1

TYPES: tuple[str, ...] = ("new_order", "payment", "order_status", "delivery", "stock_level")

SECOND = 1_000_000
"""Microseconds."""

LATENCY_US = (1, 10**9)
"""Lowest and highest latency a histogram holds; what is higher counts as the highest."""

LATENCY_DIGITS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class TpccHeader:
    """What ran. Everything but ``process`` (of ``processes``) describes the whole run, not one process's share.

    ``terminals``: simulated users (workers). ``waits``: whether they key and think. Times in seconds; the ramp comes before ``duration_s``.
    ``client``: what the driver is built on, as far as it matters for its speed; "" where it does not say.
    """

    run: str
    driver: str
    warehouses: int
    terminals: int
    connections: int
    waits: bool
    seed: int
    ramp_s: float
    duration_s: float
    process: int = 0
    processes: int = 1
    client: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TypeSecond:
    """One transaction type in one second: committed, and rolled back as the specification asks (new-order's 1 %).

    ``histogram``: latencies in µs of both, and the waits of those that were given up or of which nobody knows, from when each was due,
    as ``encode`` writes it; "" where there were none.
    """

    ok: int = 0
    rolled_back: int = 0
    histogram: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TpccSecond:
    """One second that ended at ``t`` (µs on the arm's timeline, a multiple of 10⁶).

    ``types`` has all of ``TYPES``. ``retries`` counts attempts that were made again, by SQLSTATE; ``errors`` transactions given up,
    by SQLSTATE or reason; ``ambiguous`` those of which nobody knows whether they committed. ``lag_ms``: how late the process itself
    was; ``cpu_s``: CPU time it used so far. ``measured`` is false during the ramp and after the measured period.
    """

    t: int
    types: Mapping[str, TypeSecond]
    retries: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)
    ambiguous: int = 0
    reconnects: int = 0
    lag_ms: float = 0.0
    cpu_s: float = 0.0
    measured: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class TpccAudit:
    """What the load was made of, counted over the transactions that ended in the measured period.

    ``new_orders`` includes the rolled-back ones; ``order_lines`` and ``remote_lines`` are those of all of them. Counts by
    name are of customers chosen by last name. ``skipped_deliveries``: districts that had no order to deliver.
    """

    new_orders: int = 0
    rolled_back: int = 0
    order_lines: int = 0
    remote_lines: int = 0
    payments: int = 0
    remote_payments: int = 0
    payments_by_name: int = 0
    order_statuses: int = 0
    order_statuses_by_name: int = 0
    deliveries: int = 0
    skipped_deliveries: int = 0
    stock_levels: int = 0

    def __add__(self, other: "TpccAudit") -> "TpccAudit":
        mine, others = asdict(self), asdict(other)
        return TpccAudit(**{name: mine[name] + others[name] for name in mine})


@dataclass(frozen=True, kw_only=True, slots=True)
class TpccRun:
    """A run as read back, its processes merged second by second.

    ``audit`` and ``end`` (why it ended: "duration", "stopped" or more than one of those) are ``None`` unless every process
    ended in order; ``audit`` also where a driver counts nothing of the kind. ``due``: how many transactions of each type came due
    in the measured period, ``None`` where that does not follow from the schedule alone. ``problems``: what is missing, cut off or contradicts itself, in words.
    """

    header: TpccHeader
    seconds: Sequence[TpccSecond]
    audit: TpccAudit | None
    end: str | None
    due: Mapping[str, int] | None = None
    problems: tuple[str, ...] = ()


def new_histogram() -> "HdrHistogram":
    """An empty histogram of latencies in µs."""
    from hdrh.histogram import HdrHistogram

    return HdrHistogram(*LATENCY_US, LATENCY_DIGITS)


def encode(histogram: "HdrHistogram") -> str:
    """The histogram as text, "" for an empty one."""
    return str(histogram.encode().decode("ascii")) if histogram.get_total_count() else ""


def merged(histograms: Iterable[str]) -> "HdrHistogram":
    """One histogram of all these encoded ones. Raises ``MalformedRecord`` for what is none of ours."""
    total = new_histogram()
    for text in histograms:
        if text:
            _add(total, text)
    return total


def _add(total: "HdrHistogram", text: str) -> None:
    try:
        total.decode_and_add(text)
    except Exception as error:  # the decoder raises what its pieces raise
        raise MalformedRecord(f"histogram {text[:40]!r}… cannot be read ({error})") from error


def tpcc_header_line(header: TpccHeader) -> str:
    """The first line, newline included."""
    return json.dumps({"tpcc": TPCC_SCHEMA, **asdict(header)}) + "\n"


def tpcc_second_line(second: TpccSecond) -> str:
    """The second as a line, newline included."""
    types = {
        name: {"ok": one.ok, "rolled_back": one.rolled_back, "hist": one.histogram}
        for name, one in second.types.items()
    }
    values = {
        each.name: getattr(second, each.name)
        for each in fields(TpccSecond)
        if each.name not in ("t", "types")
    }
    return json.dumps({"t": second.t, "types": types, **values}, default=dict) + "\n"


def tpcc_end_line(why: str, audit: TpccAudit | None, due: Mapping[str, int] | None = None) -> str:
    """The last line, newline included; without an audit for a driver that counts nothing of the kind."""
    end = {"end": True, "why": why, "audit": None if audit is None else asdict(audit), "due": due}
    return json.dumps(end, default=dict) + "\n"


@dataclass(slots=True)
class _File:
    header: TpccHeader
    seconds: dict[int, TpccSecond]
    audit: TpccAudit | None = None
    due: Mapping[str, int] | None = None
    why: str | None = None


def read_tpcc(files: Sequence[Path]) -> TpccRun:
    """The run that these files tell of, one for each process.

    What was cut off is read as far as it goes and named in ``problems``. Raises ``MalformedRecord`` for lines that are not what
    this module writes, and where no file has as much as a header; ``OSError`` for a file that cannot be read.
    """
    parts: list[_File] = []
    problems: list[str] = []
    for path in files:
        with path.open(encoding="utf-8", errors="replace") as lines:
            try:
                part = _read(lines)
            except MalformedRecord as error:
                raise MalformedRecord(f"{path.name}: {error}") from error
        if part is None:
            problems.append(f"{path.name}: was cut off before its header")
            continue
        parts.append(part)
        problems += [f"{path.name}: {problem}" for problem in _incomplete(part)]
    if not parts:
        raise MalformedRecord(
            f"no header in {', '.join(path.name for path in files) or 'no file'}: nothing is known of the run"
        )
    header = replace(parts[0].header, process=0)
    if any(replace(part.header, process=0) != header for part in parts):
        problems.append("the files' headers differ: they are not of one run")
    there = Counter(part.header.process for part in parts)
    if missing := sorted(set(range(header.processes)) - set(there)):
        problems.append(f"no evidence of process {', '.join(map(str, missing))} of {header.processes}")
    if twice := [number for number, count in there.items() if count > 1]:
        problems.append(f"two files of process {', '.join(map(str, twice))}")
    ended = not missing and len(parts) == len(files) and all(part.why is not None for part in parts)
    audits = [part.audit for part in parts if part.audit is not None]
    dues = [part.due for part in parts if part.due is not None]
    return TpccRun(
        header=header,
        seconds=tuple(_merge(parts)),
        audit=sum(audits, TpccAudit()) if ended and len(audits) == len(parts) else None,
        end=", ".join(sorted({str(part.why) for part in parts})) if ended else None,
        due={n: sum(each[n] for each in dues) for n in TYPES} if ended and len(dues) == len(parts) else None,
        problems=tuple(problems),
    )


def _incomplete(part: _File) -> Iterator[str]:
    if part.why is None:
        last = f"at {max(part.seconds) / SECOND:.0f} s" if part.seconds else "before its first second"
        yield f"was cut off {last}"
    times = list(part.seconds)
    for before, after in pairwise(times):
        if after != before + SECOND:
            yield f"no record between {before / SECOND:.0f} s and {after / SECOND:.0f} s"


def _read(lines: Iterable[str]) -> _File | None:
    part: _File | None = None
    for number, line in enumerate(lines, 1):
        if not line.endswith("\n"):
            break
        try:
            data = json.loads(line)
            if part is None:
                part = _File(_header(data), {})
            elif part.why is not None:
                raise ValueError("a line after the end")
            elif "end" in data:
                part.why = str(data["why"])
                part.audit = None if data["audit"] is None else TpccAudit(**_counts(data["audit"]))
                part.due = None if data.get("due") is None else _counts({n: data["due"][n] for n in TYPES})
            else:
                second = _second(data)
                last = next(reversed(part.seconds), -1)
                if second.t <= last:
                    raise ValueError(f"t = {second.t} does not follow {last}")
                part.seconds[second.t] = second
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MalformedRecord(
                f"line {number}: {line[:200]!r} is not a TPC-C record ({type(error).__name__}: {error})"
            ) from error
    return part


def _header(data: Mapping[str, Any]) -> TpccHeader:
    if data["tpcc"] != TPCC_SCHEMA:
        raise ValueError(f"schema {data['tpcc']}, not {TPCC_SCHEMA}")
    # evidence of before drivers said what they are built on
    header = TpccHeader(
        **{each.name: data[each.name] for each in fields(TpccHeader) if each.name != "client"}
    )
    header = replace(header, client=data.get("client", ""))
    if not all(isinstance(word, str) for word in (header.run, header.driver, header.client)):
        raise TypeError("run, driver and client are words")
    if not isinstance(header.waits, bool):
        raise TypeError("waits is true or false")
    numbers = (header.warehouses, header.terminals, header.connections, header.ramp_s, header.duration_s)
    if not all(isinstance(value, int | float) and value >= 0 for value in numbers):
        raise TypeError("warehouses, terminals, connections, ramp_s and duration_s are numbers of at least 0")
    if not 0 <= header.process < header.processes:
        raise ValueError(f"process {header.process} of {header.processes}")
    return header


def _second(data: Mapping[str, Any]) -> TpccSecond:
    if data["t"] % SECOND:
        raise ValueError(f"t = {data['t']} is not the end of a second")
    types = {}
    for name in TYPES:
        one = data["types"][name]
        counts = _counts({"ok": one["ok"], "rolled_back": one["rolled_back"]})
        if not isinstance(one["hist"], str):
            raise TypeError("hist is text")
        types[name] = TypeSecond(**counts, histogram=one["hist"])
    return TpccSecond(
        t=data["t"],
        types=types,
        retries=_counts(data["retries"]),
        errors=_counts(data["errors"]),
        **_counts({name: data[name] for name in ("ambiguous", "reconnects")}),
        lag_ms=float(data["lag_ms"]),
        cpu_s=float(data["cpu_s"]),
        measured=bool(data["measured"]),
    )


def _counts(data: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in data.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise TypeError(f"{name} = {value!r} is not a count")
    return dict(data)


def _merge(parts: Sequence[_File]) -> Iterator[TpccSecond]:
    if len(parts) == 1:
        yield from parts[0].seconds.values()
        return
    cpu = [0.0] * len(parts)
    for t in sorted({t for part in parts for t in part.seconds}):
        here = []
        for index, part in enumerate(parts):
            if (second := part.seconds.get(t)) is not None:
                here.append(second)
                cpu[index] = second.cpu_s
        yield TpccSecond(
            t=t,
            types={name: _merge_type([second.types[name] for second in here]) for name in TYPES},
            retries=dict(sum((Counter(second.retries) for second in here), Counter())),
            errors=dict(sum((Counter(second.errors) for second in here), Counter())),
            ambiguous=sum(second.ambiguous for second in here),
            reconnects=sum(second.reconnects for second in here),
            lag_ms=max(second.lag_ms for second in here),
            cpu_s=sum(cpu),
            measured=all(second.measured for second in here),
        )


def _merge_type(ones: Sequence[TypeSecond]) -> TypeSecond:
    texts = [one.histogram for one in ones if one.histogram]
    return TypeSecond(
        ok=sum(one.ok for one in ones),
        rolled_back=sum(one.rolled_back for one in ones),
        histogram=texts[0] if len(texts) == 1 else encode(merged(texts)),
    )
