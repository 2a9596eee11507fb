"""Histories and evidence written by hand, for the judge's tests."""

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from fixtures.workloads.ledger.judge.audit import Audit, audit
from fixtures.workloads.ledger.records import (
    BucketRead,
    BucketUnreadable,
    Failed,
    FinalLine,
    FinalRow,
    HistoryEnd,
    HistoryLine,
    Invoke,
    LedgerEvidence,
    Ok,
    Op,
    Unknown,
    numbers,
    payload,
)
from plugin.evidence.events import Event
from plugin.evidence.records import ProbeSecond, RouteSecond
from plugin.judge.trial import TrialEvidence
from tests.plugin.recorded import recorded

SEED = 11
BUCKETS = 3
SECOND = 1_000_000


class Story:
    """A history told step by step; every line is 10 ms after the one before."""

    def __init__(self) -> None:
        self.lines: list[HistoryLine] = []
        self.t = 0
        self.op = 0

    def tick(self) -> int:
        self.t += 10_000
        return self.t

    def begin(self, kind: Op, *keys: int, version: int = 1, node: str = "n1") -> int:
        self.op += 1
        self.lines.append(Invoke(self.tick(), self.op, "w1", node, kind, numbers(keys), version))
        return self.op

    def ok(self, op: int, *seen: int) -> None:
        self.lines.append(Ok(self.tick(), op, numbers(seen)))

    def failed(self, op: int, detail: str = "40001") -> None:
        self.lines.append(Failed(self.tick(), op, detail))

    def unknown(self, op: int) -> None:
        self.lines.append(Unknown(self.tick(), op, "timeout"))

    def insert(self, *keys: int) -> None:
        for key in keys:
            self.ok(self.begin(Op.INSERT, key))

    def update(self, key: int, version: int) -> None:
        self.ok(self.begin(Op.UPDATE, key, version=version))

    def delete(self, key: int, version: int) -> None:
        self.ok(self.begin(Op.DELETE, key, version=version))

    def pair(self, one: int, other: int) -> None:
        self.ok(self.begin(Op.PAIR, one, other))

    def read(self, key: int, seen: int) -> None:
        self.ok(self.begin(Op.READ, key, version=0), seen)

    def audit(self, final: Iterable[FinalLine]) -> Audit:
        return audit([*self.lines, HistoryEnd(self.t)], final, seed=SEED, buckets=BUCKETS)


@functools.cache
def row(key: int, version: int = 1) -> FinalRow:
    # the same thousands of rows are read in hundreds of trials
    return FinalRow(key, version, payload(SEED, key, version))


def final(rows: Iterable[FinalRow], *, unreadable: Sequence[int] = (), unread: Sequence[int] = ()) -> list[FinalLine]:
    """A final read of these rows, bucket by bucket; nothing is listed of buckets that were not read."""
    found = list(rows)
    lines: list[FinalLine] = []
    for bucket in range(BUCKETS):
        mine = [r for r in found if r.key % BUCKETS == bucket]
        if bucket in unreadable:
            lines.append(BucketUnreadable(9 * SECOND, bucket, "timeout after 60 s"))
        elif bucket not in unread:
            lines += [*mine, BucketRead(9 * SECOND, bucket, len(mine))]
    return lines


def wrong(found: Audit) -> dict[str, int]:
    """The categories in which anything was found."""
    return {name: finding.count for name, finding in found.findings.items() if finding.count}


def event(t: float, name: str, **data: Any) -> Event:
    """An event at ``t`` seconds."""
    return recorded(int(t * SECOND), name, data)


def events(**changes: Any) -> list[Event]:
    """A whole trial: baseline 1 to 11 s, n1 killed at 12 s, undone at 16 s, recovered at 20 s, writing to 30 s.

    ``changes`` replace facts of an event (``fault_begin={…}``; ``None``: it lacks it), or leave the event out
    (``None``).
    """
    told: dict[str, tuple[float, dict[str, Any]]] = {
        "trial.begin": (0.0, {"past_recovery_s": 10}),
        "provisioned": (0.1, {}),
        "replicated": (0.2, {}),
        "ledger.created": (
            0.5,
            {
                "table": "ledger",
                "buckets": BUCKETS,
                "reports_ranges": True,
                "ranges": 9,
                "leases": {"n1": 3, "n2": 3, "n3": 3},
            },
        ),
        "baseline.begin": (1.0, {}),
        "baseline.end": (11.0, {}),
        "fault.begin": (
            12.0,
            {
                "fault": "kill",
                "nodes": ["n1"],
                "leases": {"n1": 3},
                "connections": {"n1": 2},
                "blocks": False,
            },
        ),
        "fault.bit": (12.1, {"node": "n1", "proof": "pid 17 is gone"}),
        "fault.undo": (15.0, {"nodes": ["n1"]}),
        "fault.undone": (16.0, {"nodes": ["n1"]}),
        "recovered": (20.0, {}),
        "writing.end": (30.1, {}),
        "audit.begin": (30.2, {}),
        "audit.end": (31.0, {}),
        "trial.end": (31.1, {}),
    }
    lines = []
    for name, (t, data) in told.items():
        change = changes.get(name.replace(".", "_"), {})
        if change is not None:
            at = change.pop("at", t) if change else t
            facts = {key: value for key, value in {**data, **change}.items() if value is not None}
            lines.append(event(at, name, **facts))
    return lines


def probe(
    ok: Callable[[str, int], bool],
    *,
    until: int = 31,
    routes: Sequence[str] = ("n1/0", "n2/1", "n3/2", "n2/0", "n2/2"),
) -> tuple[dict[str, Any], list[ProbeSecond]]:
    """A probe with a success in each tenth of a second of which ``ok(route, tenth)`` says so."""
    seconds = []
    for second in range(until):
        told = {}
        for route in routes:
            times = [tenth * 100_000 for tenth in range(10 * second, 10 * second + 10) if ok(route, tenth)]
            pairs = itertools.pairwise(times)
            told[route] = RouteSecond(
                ok=len(times),
                first=times[0] if times else 0,
                last=times[-1] if times else 0,
                gap=max((b - a for a, b in pairs), default=0),
            )
        seconds.append(ProbeSecond(second * SECOND, 1000, told))
    return {"roachproof": "probe", "schema": 1, "interval_us": 100_000, "routes": list(routes)}, seconds


def trial(**fields: Any) -> TrialEvidence:
    """Evidence of a trial; the ledger's ``history`` and ``final`` are given as lists."""
    left = {name: fields.pop(name, None) for name in ("history", "final")}
    if any(lines is not None for lines in left.values()):
        opened = {name: partial(iter, lines) for name, lines in left.items() if lines is not None}
        fields["workloads"] = {"ledger": LedgerEvidence(**opened), **fields.get("workloads", {})}
    return TrialEvidence(**{"claim": "survivability", "profile": "laptop", "seed": SEED, "buckets": BUCKETS, **fields})
