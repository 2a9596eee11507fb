"""The audit: what was read at the end, held against what was attempted and acknowledged.

Findings of the final read count a row in one category, in this order: duplicated, phantom, altered, revived (of rows
that were found); lost or, where its bucket was not read to its end, unreadable or unknown; torn (of rows that were not
found). A half of an acknowledged pair that is missing is lost; torn is the missing half of a pair whose insert was
indeterminate. What a read saw during the run counts by itself, a row once: phantom, altered, torn before stale.

The final read is taken to come when no indeterminate write is still under way (after recovery and the writing past it):
only then is a pair whose halves are read one after the other either there or not.
"""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from plugin.evidence.records import (
    BucketRead,
    BucketUnreadable,
    FinalLine,
    FinalRow,
    HistoryLine,
    MalformedRecord,
    Op,
    RowCount,
    SampledRow,
    payload,
)
from plugin.judge.findings import Finding, Findings, seconds
from plugin.judge.row_histories import FOUND, READS, Rows


@dataclass(frozen=True, kw_only=True, slots=True)
class Operations:
    """How many operations of one kind there were; an unanswered one is indeterminate."""

    attempted: int = 0
    acknowledged: int = 0
    failed: int = 0
    indeterminate: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """What the audit found.

    ``operations`` by kind. ``acknowledged``: acknowledged inserted rows (a pair counts two). ``failed`` and
    ``indeterminate`` count writes, ``reads`` completed reads. ``expected``: the least and the most rows there may be at
    the end. ``counted``: what ``SELECT count(*)`` said last, ``None`` where it was not asked. ``found``: different rows
    found. ``sampled``: rows looked up by their key, ``mismatched`` those of them that were not as written. ``read``,
    ``unreadable``, ``unread``: buckets. ``ended``: the history has its end. ``problems``: where the records contradict
    themselves; then nothing else here can be relied on.
    """

    operations: Mapping[Op, Operations]
    acknowledged: int
    failed: int
    indeterminate: int
    reads: int
    expected: tuple[int, int]
    counted: int | None
    found: int
    sampled: int
    mismatched: Finding
    findings: Mapping[str, Finding]
    read: tuple[int, ...]
    unreadable: tuple[int, ...]
    unread: tuple[int, ...]
    ended: bool
    problems: tuple[str, ...]

    def count(self, category: str) -> int:
        """How many rows are in the category (``plugin.judge.findings.CATEGORIES``)."""
        return self.findings[category].count


def audit(history: Iterable[HistoryLine], final: Iterable[FinalLine], *, seed: int, buckets: int) -> Audit:
    """Hold a final read against the history before it. Streams both; memory grows by bytes a row.

    Malformed records do not raise: they end their stream and are named in ``problems``.
    """
    findings = Findings()
    rows = Rows(findings)
    try:
        rows.feed(history)
    except MalformedRecord as error:
        findings.problem(f"history: {error}")
    last = _Final(rows, seed, buckets)
    try:
        last.feed(final)
    except MalformedRecord as error:
        findings.problem(f"final read: {error}")
    expected = last.conclude()
    operations = {
        kind: Operations(
            attempted=rows.attempted[kind],
            acknowledged=rows.acknowledged[kind],
            failed=rows.failures[kind],
            indeterminate=rows.unsure[kind],
        )
        for kind in Op
    }
    writes = [operations[kind] for kind in Op if kind not in READS]
    more = findings.problem_count - len(findings.problems)
    return Audit(
        operations=operations,
        acknowledged=operations[Op.INSERT].acknowledged + 2 * operations[Op.PAIR].acknowledged,
        failed=sum(kind.failed for kind in writes),
        indeterminate=sum(kind.indeterminate for kind in writes),
        reads=sum(operations[kind].acknowledged for kind in READS),
        expected=expected,
        counted=last.counted,
        found=last.found,
        sampled=last.sampled,
        mismatched=Finding(count=len(last.mismatched), examples=tuple(last.mismatched[:5])),
        findings=findings.findings(),
        read=tuple(sorted(last.read)),
        unreadable=tuple(sorted(last.unreadable)),
        unread=tuple(b for b in range(buckets) if b not in last.read and b not in last.unreadable),
        ended=rows.ended,
        problems=(*findings.problems, *([f"and {more} more"] if more else ())),
    )


class _Final:
    """Takes in the final read and says of each row whether it may be as it was found."""

    def __init__(self, rows: Rows, seed: int, buckets: int) -> None:
        self.rows = rows
        self.findings = rows.findings
        self.seed = seed
        self.buckets = max(buckets, 1)
        self.read: dict[int, int] = {}
        self.unreadable: dict[int, str] = {}
        self.counted: int | None = None
        self.found = 0
        self.sampled = 0
        self.mismatched: list[str] = []
        self._listed = array("q", bytes(8 * self.buckets))
        self._aliens: set[int] = set()

    def feed(self, records: Iterable[FinalLine]) -> None:
        for record in records:
            if type(record) is FinalRow:
                self._row(record)
            elif isinstance(record, BucketRead | BucketUnreadable):
                self._bucket(record)
            elif isinstance(record, RowCount):
                self.counted = record.rows
            elif isinstance(record, SampledRow):
                self._sample(record)

    def _row(self, record: FinalRow) -> None:
        key = record.key
        self._listed[key % self.buckets] += 1
        if key % self.buckets in self.read:
            self.findings.problem(f"final read: key {key} is listed after its bucket was finished")
        rows = self.rows
        ours = 0 <= key < rows.size and rows.top[key] > 0
        if (rows.flags[key] & FOUND) if ours else key in self._aliens:
            self.findings.found("duplicated", key, f"key {key}: found more than once in the final read")
            return
        self.found += 1
        if ours:
            rows.flags[key] |= FOUND
        else:
            self._aliens.add(key)
        if wrong := self._wrong(key, record.version, record.payload):
            self.findings.found(wrong[0], key, f"key {key}: {wrong[1]}")

    def _wrong(self, key: int, version: int, text: str) -> tuple[str, str] | None:
        """Category and words for a row that may not be there like this."""
        rows = self.rows
        if not 0 <= key < rows.size or not rows.top[key]:
            return "phantom", "found at the end, and nobody ever tried to write it"
        if text != payload(self.seed, key, version):
            return (
                "altered",
                f"found at the end as version {version} with the content {text[:40]!r}, which was never written",
            )
        position = 2 * version
        if version < 1 or rows.is_phantom(key, position):
            return (
                "phantom",
                f"found at the end as version {version}, which was never written or certainly failed",
            )
        if position < rows.low[key] and position not in rows.floating.get(key, ()):
            return "revived", f"found at the end as version {version}, though {rows.known(key)}"
        return None

    def _bucket(self, record: BucketRead | BucketUnreadable) -> None:
        bucket = record.bucket
        if not 0 <= bucket < self.buckets or bucket in self.read or bucket in self.unreadable:
            self.findings.problem(
                f"final read: bucket {bucket} at {seconds(record.t)} was already finished or is none of {self.buckets}"
            )
        elif isinstance(record, BucketUnreadable):
            self.unreadable[bucket] = record.detail
        else:
            self.read[bucket] = record.rows
            if self._listed[bucket] != record.rows:
                self.findings.problem(
                    f"final read: bucket {bucket} had {record.rows} rows, {self._listed[bucket]} are listed"
                )

    def _sample(self, record: SampledRow) -> None:
        self.sampled += 1
        key = record.key
        if record.version:
            wrong = self._wrong(key, record.version, record.payload)
            if wrong:
                self.mismatched.append(f"key {key}: {wrong[1]}")
        elif self._must_be_there(key):
            self.mismatched.append(f"key {key}: not there at {seconds(record.t)}, though {self.rows.known(key)}")

    def _must_be_there(self, key: int) -> bool:
        return 0 <= key < self.rows.size and self.rows.low[key] > 0 and not self.rows.may_be_deleted(key)

    def conclude(self) -> tuple[int, int]:
        """Look at every row once more, those that were not found above all; the least and the most rows expected."""
        rows, findings, buckets = self.rows, self.findings, self.buckets
        low, top, flags, deleted, floating = rows.low, rows.top, rows.flags, rows.deleted, rows.floating
        least = most = 0
        for key in range(rows.size):
            if not top[key]:
                continue
            if low[key] and not low[key] & 1 and not deleted[key] and key not in floating:
                least += 1
                most += 1
            else:
                least += self._must_be_there(key)
                most += rows.may_be_there(key)
            if flags[key] & FOUND:
                continue
            bucket = key % buckets
            if self._must_be_there(key):
                if bucket in self.read:
                    findings.found("lost", key, f"key {key}: {rows.known(key)}, absent at the end{self._half(key)}")
                elif bucket in self.unreadable:
                    text = f"key {key}: {rows.known(key)}, in bucket {bucket}: {self.unreadable[bucket]}"
                    findings.found("unreadable", key, text)
                else:
                    findings.found("unknown", key, f"key {key}: {rows.known(key)}, in bucket {bucket}, never read")
            elif bucket in self.read and self._half(key) and rows.is_pair(key, rows.partner[key] - 1):
                other = rows.partner[key] - 1
                if not rows.is_phantom(other, top[other]):
                    findings.found("torn", key, f"key {key}: absent at the end{self._half(key)}")
        return least, most

    def _half(self, key: int) -> str:
        other = self.rows.partner[key] - 1
        return f"; its other half, key {other}, is there" if other >= 0 and self.rows.flags[other] & FOUND else ""
