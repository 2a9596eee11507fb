"""The one way in which anything here waits: on monotonic time, failing at once when what is waited for has died."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from clusters.errors import TimedOut
from clusters.model import Health


async def wait_until(
    what: str,
    check: Callable[[], Awaitable[Health]],
    *,
    timeout: float,
    watch: Callable[[], None] = lambda: None,
    interval: float = 0.1,
) -> float:
    """Wait until ``check`` is ok; returns the seconds it took.

    ``watch`` raises when waiting has become useless (a node died). Raises ``TimedOut`` with what was waited for, for how
    long, and what was seen last.
    """
    began = time.monotonic()
    attempts, last = 0, "never asked"
    while True:
        attempts += 1
        remaining = timeout - (time.monotonic() - began)
        try:
            async with asyncio.timeout(max(remaining, 0.05)):
                health = await check()
            if health.ok:
                return time.monotonic() - began
            last = health.why
        except TimeoutError:
            last = f"{last} (and the last look did not return)"
        watch()
        if time.monotonic() - began >= timeout:
            raise TimedOut(
                f"waiting for {what}: not after {time.monotonic() - began:.1f} s and {attempts} looks; last seen: {last}"
            )
        await asyncio.sleep(interval)
