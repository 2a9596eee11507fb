"""What other work took from what is compared, and whether that alone may be why one side does worse.

Over a whole trial other work may go unnoticed (``machine_free`` lets a tenth of it pass) that had the machine for half
of the seconds in which one side was measured. So each side that a figure refutes is asked by itself: it is given back
what others may have cost it at most. In the seconds that others had nothing at all had been served; and its slowest
answers are those that came due in them, or in as many seconds after them, in which what waited is served. What misses
its margin all the same refutes; what does not is inconclusive. The other side gets nothing back, and what the run
itself uses of the machine is no other work.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from plugin.judge.comparison import Ratio
from plugin.judge.machine import crowded, joined, lasted_s, stretches
from plugin.judge.moments import seconds
from plugin.judge.trial import HostSecond, Window

MOST_TOLD = 12
"""The most stretches that are named: as many runs as a gate has."""

Place = TypeVar("Place")
"""What names a side."""


class Taken(NamedTuple):
    """What other work took while something was measured: when it had the machine, and until when what waited was late.

    ``measured``: the time in which it was measured; what came due before may be answered in it.
    """

    measured: Window = (0, 0)
    stretches: tuple[Window, ...] = ()
    delayed: tuple[Window, ...] = ()

    @property
    def measured_s(self) -> float:
        """How long it was measured."""
        return lasted_s([self.measured])

    @property
    def taken_s(self) -> float:
        """How long others had the machine meanwhile."""
        return lasted_s(_within(self.stretches, self.measured))

    @property
    def part(self) -> float:
        """The part of the measured time that others had."""
        return self.taken_s / self.measured_s if self.stretches else 0.0

    @property
    def delayed_part(self) -> float:
        """The part of it in which answers may be late for that."""
        return lasted_s(_within(self.delayed, self.measured)) / self.measured_s if self.delayed else 0.0

    def late_in(self, window: Window) -> bool:
        """Whether what went wrong in this time may have for that."""
        return any(_within(self.delayed, window))


NOTHING = Taken()


def taken_in(measured: Window, found: Iterable[Window]) -> Taken:
    """What others took that had the machine in these stretches, which are in order."""
    taken = joined(found)
    return Taken(measured, taken, joined((begin, 2 * end - begin) for begin, end in taken))


def taken_from(measured: Window, whole: Window, host: Sequence[HostSecond]) -> Taken:
    """The same by the record of the machine; ``whole``: with the time before it of which answers may come in it."""
    return taken_in(measured, stretches(host, crowded, whole))


def _within(windows: Iterable[Window], other: Window) -> list[Window]:
    parts = ((max(begin, other[0]), min(end, other[1])) for begin, end in windows)
    return [part for part in parts if part[0] < part[1]]


def explained(
    refuted: Sequence[Ratio], place: Callable[[Ratio], Place], again: Callable[[Place], Iterable[Ratio]]
) -> tuple[Place, ...]:
    """The sides whose other work alone may be why these ratios are refuted; none where one of them is all the same.

    ``place``: the side of a ratio that does worse; ``again``: the ratios that are refuted where that side gets back
    what others took from it.
    """
    worse = {one: place(one) for one in refuted}
    if any(_still(one, again(where)) for one, where in worse.items()):
        return ()
    return tuple(dict.fromkeys(worse.values()))


def _still(one: Ratio, again: Iterable[Ratio]) -> bool:
    """Whether a ratio that was refuted is so again, and on the same side of the margin."""
    return any(each.name == one.name and each.mean * one.mean > 0 for each in again)


def told(of: str, taken: Mapping[str, Taken], zero: int) -> str:
    """What others took from a side, in words; ``taken``: by the name of each part of it that was measured."""
    hit = {name: one for name, one in taken.items() if one.delayed_part}
    had, measured = (sum(one.taken_s for one in taken.values()), sum(one.measured_s for one in taken.values()))
    every = [
        f"{name} {seconds(begin, zero)} to {seconds(end, zero)}"
        for name, one in hit.items()
        for begin, end in one.stretches
    ]
    when = ", ".join(every[:MOST_TOLD]) + (f" and {len(every) - MOST_TOLD} more" if len(every) > MOST_TOLD else "")
    return (
        f"other work had the machine for {had:.0f} of the {measured:.0f} s in which {of} was measured ({when}), "
        "which alone may be why: run it again while nothing else uses the machine"
    )
