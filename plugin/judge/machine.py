"""What other work took of the machine, and when it had nothing left, by its record second by second."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter

from plugin.judge.trial import SECOND, HostSecond, Window

CROWDED_CPU, CROWDED_OTHERS = 90.0, 10.0
"""A second is crowded when the machine's CPU was in use to this percentage, this much of it by other work (our own
choices)."""

CROWDED_STALLED, CROWDED_DISK_OTHERS = 50.0, 25.0
"""Or when all work waited for disks for this percentage of it, and this much of what was read and written was other
work's: as much as a fourth node would do beside three, for own work excuses nothing (our own choices). Where nobody
could see whose it was, it may have been."""

EXHAUSTED_CPU = 97.0
"""Percent of the machine's CPU in use from which on nothing was left in a second, whoever used it (our own choice)."""

EXHAUSTED_STALLED = CROWDED_STALLED
"""The same of its disks: percent of the second in which all work waited for them. Whose work it is cannot be seen where
a neighbour has the same disk, or a volume is throttled."""

EXHAUSTED_NETWORK = 90.0
"""The same of its network: percent of what its fullest interface can pass in one direction (our own choice). It
is recorded where nodes run elsewhere, which are behind it."""

FULL_CPU, FULL_DISK = 90.0, 50.0
"""From when on, on average over some time, the machine was too full to tell how fast anything on it is (our own
choices): percent of the CPU in use, the machine's or that of a side's own limits, and of the time in which all work
waited for disks. Work queues long before each second is exhausted. Of the network it is ``EXHAUSTED_NETWORK``."""


def cpu_taken(second: HostSecond) -> bool:
    """Whether other work left no CPU."""
    return second.cpu >= CROWDED_CPU and (second.others or 0.0) >= CROWDED_OTHERS


def disks_taken(second: HostSecond) -> bool:
    """Whether everything waited for disks that other work kept busy, or nobody knows whose."""
    others = second.disk_others
    return (second.stalled or 0.0) >= CROWDED_STALLED and (others is None or others >= CROWDED_DISK_OTHERS)


def crowded(second: HostSecond) -> bool:
    """Whether other work had the machine. What the run itself uses is none."""
    return cpu_taken(second) or disks_taken(second)


def nothing_left(second: HostSecond) -> bool:
    """Whether the machine had nothing left to give: crowded by others, or exhausted.

    Own work counts here: a cluster that waits for something leaves the machine idle.
    """
    disks, network = (second.stalled or 0.0) >= EXHAUSTED_STALLED, (second.network or 0.0) >= EXHAUSTED_NETWORK
    return second.cpu >= EXHAUSTED_CPU or disks or network or crowded(second)


def too_full(host: Sequence[HostSecond], windows: Iterable[Window]) -> str:
    """That the machine was too full in these stretches to tell how fast anything was, in words; "" where not."""
    seconds = [second for begin, end in windows for second in host if begin < second.t <= end]
    for what, limit, of in (
        ("of the machine's CPU was in use", FULL_CPU, attrgetter("cpu")),
        ("of the time everything waited for the machine's disks", FULL_DISK, attrgetter("stalled")),
        ("of the machine's network was in use", EXHAUSTED_NETWORK, attrgetter("network")),
    ):
        mean = sum(of(second) or 0.0 for second in seconds) / max(1, len(seconds))
        if mean >= limit:
            return f"{mean:.0f} % {what}, limit {limit:g} %: it is asked for too much"
    return ""


def stretches(host: Sequence[HostSecond], of: Callable[[HostSecond], bool], window: Window) -> Iterator[Window]:
    """The parts of the window in which seconds of this kind lie, one after another.

    One record a second is meant; a machine without time records late, and what it says is of all that time.
    """
    first = bisect_left(host, window[0], key=lambda second: second.t)
    last = bisect_left(host, window[1], key=lambda second: second.t) + 1
    begins = [host[first - 1].t if first else host[0].t - SECOND if host else 0, *(s.t for s in host[first:last])]
    for begin, second in zip(begins, host[first:last], strict=False):
        part = max(begin, window[0]), min(second.t, window[1])
        if part[0] < part[1] and of(second):
            yield part


def joined(windows: Iterable[Window]) -> tuple[Window, ...]:
    """Windows that are in order, those that meet as one."""
    found: list[Window] = []
    for begin, end in windows:
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return tuple(found)


def lasted_s(windows: Iterable[Window]) -> float:
    """How long they are together, in seconds."""
    return sum(end - begin for begin, end in windows) / SECOND
