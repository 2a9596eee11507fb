"""Latency as the probe saw it, from when each operation was due: a stalled server is charged for the wait."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from plugin.evidence.records import ProbeSecond
from plugin.judge.trial import Window

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram


def merged(seconds: Iterable[ProbeSecond], window: Window, victims: Collection[str]) -> "HdrHistogram | None":
    """One histogram, in microseconds, of the seconds that begin in the window and the endpoints that were not hit.

    ``None`` where none of them has a success.
    """
    return together(
        encoded
        for second in seconds
        if window[0] <= second.t < window[1]
        for endpoint, encoded in second.latency.items()
        if endpoint not in victims
    )


def together(encoded: Iterable[str]) -> "HdrHistogram | None":
    """One histogram of all these encoded ones; ``None`` where they count nothing."""
    from hdrh.histogram import HdrHistogram

    whole: HdrHistogram | None = None
    for text in encoded:
        histogram = HdrHistogram.decode(text)
        if whole is None:
            whole = histogram
        else:
            whole.add(histogram)
    return whole if whole is not None and whole.get_total_count() else None
