"""Polls until healthy, timed out, or the watchdog raises. Time is monotonic."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from clusters.errors import HarnessError, TimedOut
from clusters.model import Health

T = TypeVar("T")

WATCH_EVERY_S = 0.25
UNFINISHED = " (and the last attempt did not return)"


async def wait_until(
    what: str,
    check: Callable[[], Awaitable[Health]],
    *,
    timeout: float,
    watch: Callable[[], None] = lambda: None,
    interval: float = 0.1,
    late: type[HarnessError] = TimedOut,
) -> float:
    """Poll ``check`` until it is ok; returns the seconds it took.

    ``watch`` is the watchdog: it raises when waiting has become useless (a node died). It is called several times a
    second, also while a check runs. Raises ``TimedOut`` with what was waited for, for how long, and what was seen last;
    in its place ``late``, as ``HarnessError`` for what is not the database's to do.
    """
    began = time.monotonic()
    attempts, last = 0, "nothing"
    while True:
        attempts += 1
        until = max(began + timeout, time.monotonic() + 0.05)
        health = await _attempt(check, until=until, watch=watch)
        if health is None:
            last = f"{last.removesuffix(UNFINISHED)}{UNFINISHED}"
        elif health.ok:
            return time.monotonic() - began
        else:
            last = health.why
        watch()
        if time.monotonic() - began >= timeout:
            tried = f"{time.monotonic() - began:.1f} s and {attempts} attempts"
            raise late(f"waiting for {what}: not after {tried}; last seen: {last}")
        await asyncio.sleep(interval)


async def _attempt(check: Callable[[], Awaitable[Health]], *, until: float, watch: Callable[[], None]) -> Health | None:
    """What one attempt shows, or ``None`` if it does not return in time."""
    attempt = asyncio.ensure_future(check())
    try:
        while not attempt.done():
            left = until - time.monotonic()
            if left <= 0:
                return None
            await asyncio.wait([attempt], timeout=min(left, WATCH_EVERY_S))
            if not attempt.done():
                watch()
        return attempt.result()
    except TimeoutError:
        return None
    finally:
        if not attempt.done():
            attempt.cancel()
            await asyncio.gather(attempt, return_exceptions=True)


async def hold(seconds: float, *, watch: Callable[[], None]) -> None:
    """Sleep, and call the watchdog meanwhile."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        watch()
        await asyncio.sleep(min(left, WATCH_EVERY_S))


async def to_the_end(work: "Coroutine[Any, Any, T] | asyncio.Task[T]") -> T:
    """What work comes to that goes on even if we are cancelled meanwhile.

    The cancellation is let through at its end, with a note of what failed. Raises what ``work`` raises.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return task.result()
    if (failure := task.exception()) is not None:
        cancelled.add_note(str(failure))
    raise cancelled
