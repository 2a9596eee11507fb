"""A whole trial as it should be: n1 killed under a ledger of 100 inserts and 10 reads a second, everything survives."""

import functools
from typing import Any

from fixtures.workloads.ledger.records import (
    Connection,
    Failed,
    FinalLine,
    GeneratorSecond,
    HistoryEnd,
    HistoryLine,
    Invoke,
    Ok,
    Op,
    RowCount,
    SampledRow,
    Unknown,
    numbers,
    payload,
)
from plugin.judge.trial import HostSecond, TrialEvidence
from tests.plugin.judge.histories import SECOND, SEED, events, final, probe, row, trial

RATE = 100
OFTEN = 300
"""Inserts a second where buckets of throughput are to be a second long."""
READS = 10


def history(
    *,
    first: int = 1,
    until: int = 30,
    quiet: range | frozenset[int] = range(13, 15),
    lag_us: int = 3000,
    cpu_us: int = 80_000,
    rate: int = RATE,
) -> list[HistoryLine]:
    """``rate`` inserts and ``READS`` reads in each second but the ``quiet`` ones, answered after 2 ms.

    n1 is cut off at 12.1 s, and its client goes to n2.
    """
    return [*_history(first, until, quiet, lag_us, cpu_us, rate)]


@functools.cache
def _history(
    first: int, until: int, quiet: range | frozenset[int], lag_us: int, cpu_us: int, rate: int
) -> tuple[HistoryLine, ...]:
    # made while tests are collected, more than once
    lines: list[HistoryLine] = [Connection(SECOND // 2, "w1", "n1", True)]
    key = 0
    for second in range(first, until):
        lines.append(GeneratorSecond(second * SECOND, lag_us, cpu_us))
        if second == 12:
            lines.append(Connection(12_100_000, "w1", "n1", False, "connection reset"))
            lines.append(Connection(12_900_000, "w1", "n2", True, "n2"))
        for i in range(0 if second in quiet else rate):
            t = second * SECOND + i * SECOND // rate
            lines += [Invoke(t, key, "w2", "n2", Op.INSERT, numbers([key]), 1), Ok(t + 2000, key, numbers())]
            key += 1
        for i in range(0 if second in quiet else READS):
            t, op = second * SECOND + 5000 + i * SECOND // READS, 10**8 + READS * second + i
            lines += [Invoke(t, op, "r1", "n3", Op.READ, numbers([key - rate]), 0), Ok(t + 2000, op, numbers([1]))]
    lines.sort(key=lambda line: line.t)
    return (*lines, HistoryEnd(until * SECOND + 100))


def in_vain(
    lines: list[HistoryLine], begin: float, end: float, *clients: str, detail: str = "57014"
) -> list[HistoryLine]:
    """The same, but what these clients (all by default) sent meanwhile, in seconds, ends with this error."""
    sent = {line.op: line for line in lines if isinstance(line, Invoke) and begin <= line.t / SECOND < end}
    mine = {op: line for op, line in sent.items() if not clients or line.client in clients}
    return [
        (Failed if mine[line.op].kind is Op.READ else Unknown)(line.t, line.op, detail)
        if isinstance(line, Ok) and line.op in mine
        else line
        for line in lines
    ]


def keys(lines: list[HistoryLine]) -> list[int]:
    """Of all that was inserted, each by itself."""
    return [int(line.key_text) for line in lines if isinstance(line, Invoke) and line.kind is Op.INSERT]


def last_read(lines: list[HistoryLine], *, without: tuple[int, ...] = (), **options: Any) -> list[FinalLine]:
    """Every row but ``without``, their count, and one of them looked up."""
    there = [key for key in keys(lines) if key not in without]
    return [
        *final((row(key) for key in there), **options),
        RowCount(31 * SECOND, len(there)),
        *(SampledRow(31 * SECOND, key, 1, payload(SEED, key, 1)) for key in there[-1:]),
    ]


def seen(route: str, tenth: int) -> bool:
    """n1's own client is away from 12.0 to 17.0 s, bucket 1 from 12.0 to 15.0 s."""
    return not (route.startswith("n1/") and 120 < tenth < 170) and not (route.endswith("/1") and 120 < tenth < 150)


def host(*, others: float | None, cpu: float = 92.0) -> list[HostSecond]:
    """The machine's load in each second."""
    return [HostSecond(t=second * SECOND, cpu=cpu, others=others) for second in range(1, 31)]


def whole(**fields: Any) -> TrialEvidence:
    """The trial, with some fields replaced."""
    lines = fields.pop("history", None) or history()
    return trial(
        **{
            "parameters": {"inserts": "2000"},
            "context": {"engine": "cockroach", "nodes": "3"},
            "events": events(),
            "history": lines,
            "final": last_read(lines),
            "probe": probe(seen),
            "host": host(others=1.0),
            **fields,
        }
    )
