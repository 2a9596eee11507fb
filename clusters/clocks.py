"""Clocks: which one a time was read from, and how far two of them are apart, as exactly as that can be told.

Two readings of the same clock need no comparison. Those of different machines differ by an offset, which is known no
better than to half of the time that asking took.
"""

import functools
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

READINGS = 4
"""How often another clock is read; the reading that took least time counts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What a clock showed: ``seconds`` since 1970. ``clock`` names it: the same name, the same clock."""

    clock: str
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Offset:
    """By how much a clock is ahead of the harness's, in seconds, as exactly as ``uncertainty_s``."""

    clock: str
    offset_s: float
    uncertainty_s: float


@functools.cache
def own() -> str:
    """The name of the harness's clock: of this machine since it was started, containers included."""
    with suppress(OSError):
        return f"boot {Path('/proc/sys/kernel/random/boot_id').read_text().strip()}"
    return f"machine {platform.node()}"


def here() -> Reading:
    """The harness's clock now."""
    return Reading(clock=own(), seconds=time.time())


def compare(read: Callable[[], Reading]) -> Offset:
    """How another clock stands to the harness's; the same clock is asked once. Raises what ``read`` raises."""
    found = []
    for _ in range(READINGS):
        before = time.time()
        reading = read()
        after = time.time()
        if reading.clock == own():
            return Offset(clock=reading.clock, offset_s=0.0, uncertainty_s=0.0)
        ahead, uncertainty = reading.seconds - (before + after) / 2, (after - before) / 2
        found.append(Offset(clock=reading.clock, offset_s=ahead, uncertainty_s=uncertainty))
    return min(found, key=lambda offset: offset.uncertainty_s)
