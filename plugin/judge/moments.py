"""Moments of a trial in words: reports count from when its cluster stood, its files from when the test began.

What is told of a trial is told while ``counting_from`` holds, so that no function between has to hand on the zero.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from clusters.events import Provisioned
from plugin.evidence.events import Event, seen

_ZERO: ContextVar[int] = ContextVar("zero", default=0)


def zero_of(events: Iterable[Event]) -> int:
    """From when a trial with these events is told, in whole seconds of its timeline: when its cluster stood.

    Of several clusters the first one. Nothing (the begin of the test) where none ever stood, or that was not recorded.
    """
    return next((t // 1_000_000 for t, _ in seen(events, Provisioned)), 0)


@contextmanager
def counting_from(zero: int) -> Iterator[None]:
    """Tell moments from this second of the timeline on."""
    before = _ZERO.set(zero)
    try:
        yield
    finally:
        _ZERO.reset(before)


def since(second: float) -> float:
    """A second of the timeline as it is told."""
    return second - _ZERO.get()


def seconds(t: int) -> str:
    """A time of the timeline, in microseconds, in words."""
    return f"{since(t / 1e6):.1f} s"
