"""What the clients of a load did in time, whichever workload it is of: a fault must have hit it, timelines show it."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import overload

BITS = 32
"""The low bits of a time, which are kept of each; the others change every 72 minutes."""


class Times(Sequence[int]):
    """Times in microseconds, in four bytes each: a load of hours has tens of millions."""

    __slots__ = ("_begin", "_end", "_high", "_low", "_since")

    def __init__(self) -> None:
        self._low = array("I")
        self._begin = self._end = 0
        """The times whose higher bits are the last of ``_high``."""
        self._since: list[int] = []
        self._high: list[int] = []
        """What the low bits are to be added to, from each index of ``_since`` on."""

    def append(self, time: int) -> None:
        """Add a time at the end."""
        if not self._begin <= time < self._end:
            self._begin = time >> BITS << BITS
            self._end = self._begin + (1 << BITS)
            self._since.append(len(self._low))
            self._high.append(self._begin)
        self._low.append(time - self._begin)

    def __len__(self) -> int:
        return len(self._low)

    def __iter__(self) -> Iterator[int]:
        return self._between(0, len(self))

    def _between(self, begin: int, end: int) -> Iterator[int]:
        for high, (since, until) in zip(self._high, pairwise([*self._since, len(self._low)]), strict=True):
            for low in memoryview(self._low)[max(begin, since) : min(end, until)]:
                yield high + low

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> "array[int]": ...
    def __getitem__(self, index: int | slice) -> "int | array[int]":
        if isinstance(index, slice):
            begin, end, step = index.indices(len(self))
            return array(
                "q", self._between(begin, end) if step == 1 else map(self.__getitem__, range(begin, end, step))
            )
        place = range(len(self))[index]
        return self._high[bisect_right(self._since, place) - 1] + self._low[place]

    def within(self, begin: int, end: int) -> "array[int]":
        """Those from ``begin`` on and before ``end``, of times that are in order."""
        return self[bisect_left(self, begin) : bisect_left(self, end)]


@dataclass(kw_only=True, slots=True)
class ConnectionEnds:
    """When a client's connection ended, by node: between two operations, or while one was under way."""

    drained: dict[str, Times] = field(default_factory=dict)
    dropped: dict[str, Times] = field(default_factory=dict)

    def add(self, node: str, t: int, *, dropped: bool) -> None:
        """One more, at ``t`` (µs), no earlier than those before."""
        (self.dropped if dropped else self.drained).setdefault(node, Times()).append(t)


@dataclass(frozen=True, kw_only=True, slots=True)
class Connections:
    """The connections of a load's clients: when they ended, and how many a node had at a time (µs).

    ``held`` gives ``None`` where nobody recorded it.
    """

    ends: ConnectionEnds
    held: Callable[[str, int], int | None]


@dataclass(kw_only=True, slots=True)
class Activity:
    """Times in microseconds, in the order in which they were recorded.

    ``attempts``: when each write was sent. ``sent`` and ``acknowledged``: both times of each acknowledged write, at the
    same index. ``refused``: when a writer sought a connection in vain. ``broken``: by node, when a write there failed
    or became indeterminate. ``failures``: when any operation did. ``cut``: by node, when a writer's connection to it
    went down.
    """

    attempts: Times = field(default_factory=Times)
    sent: Times = field(default_factory=Times)
    acknowledged: Times = field(default_factory=Times)
    refused: Times = field(default_factory=Times)
    broken: dict[str, Times] = field(default_factory=dict)
    failures: Times = field(default_factory=Times)
    cut: dict[str, Times] = field(default_factory=dict)
