"""Moments of a trial in words: reports count from when its cluster stood, its files from when the test began."""

from collections.abc import Iterable

from clusters.events import Provisioned
from plugin.evidence.events import Event, seen


def zero_of(events: Iterable[Event]) -> int:
    """From when a trial with these events is told, in whole seconds of its timeline: when its cluster stood.

    Of several clusters the first one. Nothing (the begin of the test) where none ever stood, or that was not recorded.
    """
    return next((t // 1_000_000 for t, _ in seen(events, Provisioned)), 0)


def seconds(t: int, zero: int) -> str:
    """A time of the timeline, in microseconds, in words, counted from its second ``zero``."""
    return f"{t / 1e6 - zero:.1f} s"
