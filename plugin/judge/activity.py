"""What the ledger's history says about time: when writes were sent and acknowledged, what was lost on which node.

Gathered in the same pass as the audit (``watch`` lets the records through), so that a large history is read once.
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from plugin.evidence.records import (
    Connection,
    Failed,
    GeneratorSecond,
    HistoryEnd,
    HistoryLine,
    Invoke,
    Ok,
    Refused,
    Unknown,
)
from plugin.judge.row_histories import READS

WRITER = "w"
"""The names of clients that write begin so; readers prove nothing about what a fault did to writing."""


def _times() -> "array[int]":
    return array("q")


@dataclass(kw_only=True, slots=True)
class Activity:
    """Times in microseconds, in the order of the history.

    ``attempts``: when each write was sent. ``sent`` and ``acknowledged``: both times of each acknowledged write, at the
    same index. ``refused``: when a writer sought a connection in vain. ``broken``: by node, when a write there failed
    or became indeterminate. ``failures``: when any operation did. ``cut``: by node, when a writer's connection to it
    went down. ``generator``: each second of the generator. ``ended``: the history has its end.
    """

    attempts: "array[int]" = field(default_factory=_times)
    sent: "array[int]" = field(default_factory=_times)
    acknowledged: "array[int]" = field(default_factory=_times)
    refused: "array[int]" = field(default_factory=_times)
    broken: dict[str, "array[int]"] = field(default_factory=dict)
    failures: "array[int]" = field(default_factory=_times)
    cut: dict[str, "array[int]"] = field(default_factory=dict)
    generator: list[GeneratorSecond] = field(default_factory=list)
    ended: bool = False

    def watch(self, history: Iterable[HistoryLine]) -> Iterator[HistoryLine]:
        """The same records, noted on their way."""
        pending: dict[int, Invoke] = {}
        attempts, sent, acknowledged = self.attempts.append, self.sent.append, self.acknowledged.append
        for record in history:
            kind = type(record)
            if kind is Invoke:
                assert isinstance(record, Invoke)
                pending[record.op] = record
                if record.kind not in READS:
                    attempts(record.t)
            elif kind is Ok:
                assert isinstance(record, Ok)
                invoke = pending.pop(record.op, None)
                if invoke is not None and invoke.kind not in READS:
                    sent(invoke.t)
                    acknowledged(record.t)
            elif isinstance(record, Failed | Unknown):
                invoke = pending.pop(record.op, None)
                self.failures.append(record.t)
                if invoke is not None and invoke.kind not in READS:
                    self.broken.setdefault(invoke.node, _times()).append(record.t)
            elif isinstance(record, Connection):
                if not record.up and record.client.startswith(WRITER):
                    self.cut.setdefault(record.node, _times()).append(record.t)
            elif isinstance(record, GeneratorSecond):
                self.generator.append(record)
            elif isinstance(record, Refused):
                if record.client.startswith(WRITER):
                    self.refused.append(record.t)
            elif isinstance(record, HistoryEnd):
                self.ended = True
            yield record


def observe(history: Iterable[HistoryLine]) -> Activity:
    """The activity of a whole history."""
    activity = Activity()
    for _ in activity.watch(history):
        pass
    return activity
