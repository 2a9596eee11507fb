"""What a history says about each row of the ledger, kept in a few bytes a key.

A row is a register with one writer. Its states are numbered: version ``v`` is *position* ``2v``, "deleted after version
v" is ``2v + 1``, "not yet there" is 0. Each key has a *low* (the newest position known to have been in effect:
acknowledged, or seen by a completed read) and a *top* (the newest position attempted). A read must see a position
between the low at its invocation and the top at its completion.

An indeterminate write may take effect at any later time. While it is the newest of its row it simply lies between low
and top. Once the writer has gone on to the next write of the row without knowing, its position *floats*: it may be seen
at any time, below the low too. Floating and certainly failed positions are rare and kept in dictionaries; everything
else is arrays, so that memory is flat: some 26 bytes a row.

Lines stand in the order in which things happened, so an answer that stands before an invocation came before it.
"""

from array import array
from collections.abc import Iterable

from plugin.evidence.records import (
    Connection,
    Failed,
    GeneratorSecond,
    HistoryEnd,
    HistoryLine,
    Invoke,
    Ok,
    Op,
    Refused,
    Unknown,
)
from plugin.judge.findings import Findings, seconds

MOST_KEYS = 100_000_000
"""Keys are dense and count from 0; one beyond this is a mistake, not a ledger (2.6 GB of state)."""

MOST_SKIPPED = 1000
"""Versions count 1, 2, 3 …; so many may be left out at once before it is called a contradiction."""

OUTSTANDING = 1
"""A write of the row waits for its answer."""
UNSURE = 2
"""The newest write of the row is indeterminate."""
FAILED = 4
"""The newest write of the row certainly did not happen."""
BY_READ = 8
"""The low comes from a read, not from an acknowledgement."""
FOUND = 16
"""The final read found the row."""

READS = (Op.READ, Op.READ_PAIR)


class Rows:
    """The state of every row; ``feed`` it the history."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.size = 0
        self.low = array("I")
        self.top = array("I")
        self.deleted = array("I")
        """The newest position of a delete that may have happened, 0 for none."""
        self.when = array("q")
        """When the low was acknowledged or read, microseconds."""
        self.partner = array("I")
        """1 + the key of the row's other half, 0 for none."""
        self.flags = bytearray()
        self.floating: dict[int, set[int]] = {}
        self.failed: dict[int, set[int]] = {}
        self.attempted = dict.fromkeys(Op, 0)
        self.acknowledged = dict.fromkeys(Op, 0)
        self.failures = dict.fromkeys(Op, 0)
        self.unsure = dict.fromkeys(Op, 0)
        self.ended = False
        self._pending: dict[int, Invoke] = {}
        self._lows: dict[int, tuple[int, ...]] = {}
        """Of each outstanding read: the low of each key when it was invoked."""
        self._deletes: dict[int, tuple[int, ...]] = {}
        """Of each outstanding delete: what ``deleted`` was before."""
        self._early: dict[int, tuple[int, int, int]] = {}
        """Rows whose outstanding write was seen by a read before its answer: low, time and flag as they were."""

    def feed(self, records: Iterable[HistoryLine]) -> None:
        """Take in the whole history, in order."""
        line = 0
        for line, record in enumerate(records, 1):
            kind = type(record)
            if self.ended:
                self.findings.problem(f"history: {kind.__name__} at {seconds(record.t)} after its end")
                self.ended = False
            if kind is Invoke:
                self._invoke(record)  # type: ignore[arg-type]
            elif kind is Ok or kind is Failed or kind is Unknown:
                invoke = self._pending.pop(record.op, None)  # type: ignore[union-attr]
                if invoke is None:
                    self.findings.problem(
                        f"history: an answer at {seconds(record.t)} to operation {record.op}, "  # type: ignore[union-attr]
                        "which was never invoked or already answered"
                    )
                elif kind is Ok:
                    self._ok(invoke, record)  # type: ignore[arg-type]
                elif kind is Failed:
                    self._failed(invoke, record.t)
                else:
                    self._unknown(invoke)
            elif kind is HistoryEnd:
                self.ended = True
            elif kind is not Connection and kind is not GeneratorSecond and kind is not Refused:
                self.findings.problem(f"history: record {line} is a {kind.__name__}")
        for invoke in self._pending.values():
            # Sent, and the history ends before its answer: as indeterminate as a lost answer.
            self._unknown(invoke)
        self._pending.clear()

    def _grow(self, key: int) -> None:
        size = max(1024, key + 1, min(self.size * 3 // 2, MOST_KEYS))
        more = size - self.size
        for column in (self.low, self.top, self.deleted, self.partner):
            column.frombytes(bytes(column.itemsize * more))
        self.when.frombytes(bytes(self.when.itemsize * more))
        self.flags.extend(bytes(more))
        self.findings.grow(size)
        self.size = size

    def _invoke(self, record: Invoke) -> None:
        if record.op in self._pending:
            self.findings.problem(f"history: operation {record.op} is invoked twice")
            return
        kind, keys = record.kind, record.keys
        if not keys or min(keys) < 0 or max(keys) >= MOST_KEYS:
            self.findings.problem(f"history: operation {record.op} has the keys {keys}: not between 0 and {MOST_KEYS}")
            return
        self._pending[record.op] = record
        self.attempted[kind] += 1
        if kind in READS:
            low, size = self.low, self.size
            self._lows[record.op] = tuple([low[key] if key < size else 0 for key in keys])
            return
        for key in keys:
            if key >= self.size:
                self._grow(key)
        if kind is Op.DELETE:
            self._deletes[record.op] = tuple(self.deleted[key] for key in keys)
        for key in keys:
            if self.partner[key] and kind in (Op.INSERT, Op.PAIR):
                # Its pair failed and the row is inserted anew: the two no longer stand or fall together.
                self.partner[self.partner[key] - 1] = 0
                self.partner[key] = 0
            self._begin(key, record)
        if kind is Op.PAIR and len(keys) == 2:
            self.partner[keys[0]] = keys[1] + 1
            self.partner[keys[1]] = keys[0] + 1

    def _begin(self, key: int, record: Invoke) -> None:
        top, flags = self.top[key], self.flags[key]
        delete = record.kind is Op.DELETE
        position = top | 1 if delete else 2 * record.version
        if flags & OUTSTANDING:
            self.findings.problem(
                f"key {key}: written at {seconds(record.t)} while another write of it waits for its answer"
            )
        if position < top or position < 1 or position - top > 2 * MOST_SKIPPED:
            self.findings.problem(
                f"key {key}: version {record.version} is attempted at {seconds(record.t)} after version {top // 2}; "
                "versions count 1, 2, 3 …"
            )
            self.floating.setdefault(key, set()).add(position)
            return
        for version in range(top // 2 + 1, record.version if not delete else 0):
            self.failed.setdefault(key, set()).add(2 * version)
        if flags & UNSURE and self.low[key] < top:
            self.floating.setdefault(key, set()).add(top)
            if position == top and record.kind in (Op.INSERT, Op.PAIR):
                self.findings.problem(
                    f"key {key}: its indeterminate insert is repeated at {seconds(record.t)}, which may make a duplicate"
                )
        elif top and position == top and not flags & FAILED:
            # Done twice at one position (deleted again, say): which of the two a later read sees cannot be told.
            self.floating.setdefault(key, set()).add(top)
        elif flags & FAILED and position != top:
            self.failed.setdefault(key, set()).add(top)
        self.top[key] = position
        self.flags[key] = (flags | OUTSTANDING) & ~(UNSURE | FAILED)
        if delete:
            self.deleted[key] = position

    def _ok(self, invoke: Invoke, record: Ok) -> None:
        self.acknowledged[invoke.kind] += 1
        if invoke.kind in READS:
            self._read(invoke, record)
            return
        low, top, when, flags = self.low, self.top, self.when, self.flags
        for key in invoke.keys:
            low[key] = top[key]
            when[key] = record.t
            flags[key] &= ~(OUTSTANDING | BY_READ)
            if self._early:
                self._early.pop(key, None)
        self._deletes.pop(invoke.op, None)

    def _failed(self, invoke: Invoke, t: int) -> None:
        self.failures[invoke.kind] += 1
        if invoke.kind in READS:
            del self._lows[invoke.op]
            return
        before = self._deletes.pop(invoke.op, ())
        for index, key in enumerate(invoke.keys):
            if before:
                self.deleted[key] = before[index]
            self.flags[key] = (self.flags[key] | FAILED) & ~OUTSTANDING
            early = self._early.pop(key, None)
            if early and self.low[key] >= self.top[key]:
                seen = seconds(self.when[key])
                if invoke.kind is Op.DELETE:
                    text = f"key {key}: missing in a read at {seen}, though its delete certainly failed at {seconds(t)}"
                    self.findings.found("stale", key, text)
                else:
                    text = f"key {key}: version {invoke.version} was read at {seen}, though its {invoke.kind} certainly failed at {seconds(t)}"
                    self.findings.found("phantom", key, text)
                self.low[key], self.when[key], flag = early
                self.flags[key] = (self.flags[key] & ~BY_READ) | flag

    def _unknown(self, invoke: Invoke) -> None:
        self.unsure[invoke.kind] += 1
        if invoke.kind in READS:
            del self._lows[invoke.op]
            return
        self._deletes.pop(invoke.op, None)
        for key in invoke.keys:
            self.flags[key] = (self.flags[key] | UNSURE) & ~OUTSTANDING
            self._early.pop(key, None)

    def _read(self, invoke: Invoke, record: Ok) -> None:
        keys, seen = invoke.keys, record.seen
        lows = self._lows.pop(invoke.op)
        if len(seen) != len(keys):
            self.findings.problem(f"history: read {invoke.op} of {len(keys)} keys saw {len(seen)}")
            return
        wrong = [self._see(key, version, low, record.t) for key, version, low in zip(keys, seen, lows, strict=True)]
        if invoke.kind is Op.READ_PAIR and len(keys) == 2 and (seen[0] == 0) != (seen[1] == 0):
            absent = 0 if seen[0] == 0 else 1
            if wrong[1 - absent] != "phantom" and self.is_pair(keys[0], keys[1]):
                wrong[absent] = "torn"
        for key, version, low, category in zip(keys, seen, lows, wrong, strict=True):
            if category:
                self.findings.found(category, key, self._told(category, key, version, low, invoke, record.t))

    def _see(self, key: int, version: int, low: int, t: int) -> str:
        """The category of what a read saw of a row, "" for what is lawful; what is lawful raises the row's low."""
        if key >= self.size or not self.top[key]:
            return "phantom" if version else ""
        if version < 0:
            return "altered"
        floating = self.floating.get(key, ()) if self.floating else ()
        if version == 0:
            if low == 0 or low & 1 or any(position & 1 for position in floating):
                return ""
            if self.deleted[key] <= low:
                return "stale"
            if self.low[key] == low and not floating:
                self._raise(key, low | 1, t)
            return ""
        position = 2 * version
        if self.is_phantom(key, position):
            return "phantom"
        if position < low and position not in floating:
            return "stale"
        if position > self.low[key]:
            self._raise(key, position, t)
        return ""

    def _raise(self, key: int, position: int, t: int) -> None:
        flags = self.flags[key]
        if flags & OUTSTANDING:
            self._early.setdefault(key, (self.low[key], self.when[key], flags & BY_READ))
        self.low[key] = position
        self.when[key] = t
        self.flags[key] = flags | BY_READ

    def is_phantom(self, key: int, position: int) -> bool:
        """Whether the position of an attempted row was never attempted, or only by writes that certainly failed."""
        if key in self.floating and position in self.floating[key]:
            return False
        top = self.top[key]
        if position > top or (position == top and self.flags[key] & FAILED):
            return True
        return bool(self.failed) and position in self.failed.get(key, ())

    def is_pair(self, one: int, other: int) -> bool:
        """Whether the two rows were inserted together and nothing can have deleted only one of them."""
        if max(one, other) >= self.size or self.partner[one] != other + 1:
            return False
        return not any(self.deleted[key] or key in self.floating for key in (one, other))

    def may_be_deleted(self, key: int) -> bool:
        """Whether the row's low may have been deleted since."""
        low = self.low[key]
        return bool(low & 1 or self.deleted[key] > low or any(position & 1 for position in self.floating.get(key, ())))

    def may_be_there(self, key: int) -> bool:
        """Whether the row may lawfully be found at the end."""
        low, top = self.low[key], self.top[key]
        if low and not low & 1:
            return True
        if top > low and not top & 1 and not self.flags[key] & FAILED:
            return True
        return any(not position & 1 for position in self.floating.get(key, ()))

    def known(self, key: int) -> str:
        """How the row's low came to be known, in words."""
        what = f"version {self.low[key] // 2}" if not self.low[key] & 1 else "its delete"
        return f"{what} {'read' if self.flags[key] & BY_READ else 'acknowledged'} at {seconds(self.when[key])}"

    def _told(self, category: str, key: int, version: int, low: int, invoke: Invoke, t: int) -> str:
        saw = f"version {abs(version)}" if version else "no row"
        read = f"key {key}: a read from {seconds(invoke.t)} to {seconds(t)}"
        match category:
            case "phantom":
                return f"{read} saw {saw}, which was never written or certainly failed"
            case "altered":
                return f"{read} saw {saw} with a content that was never written"
            case "torn":
                return f"{read} saw only its other half, key {self.partner[key] - 1}"
            case _:
                newer = f"version {low // 2}" if not low & 1 else "its delete"
                return f"{read} saw {saw}, though {newer} was known before it began"
