"""Stretches of a trial's timeline, as series hold them and charts draw them."""

from collections.abc import Mapping
from dataclasses import dataclass

SECOND = 1_000_000
FAULTED: Mapping[str, str] = {
    "kill": "killed",
    "lose_disk": "lost with its disk",
    "pause": "frozen",
    "drain": "drained",
    "resize": "restarted with another size",
    "swap": "restarted with another version",
    "cut": "cut off",
}
"""What a node is while it suffers a fault of this name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Band:
    """A stretch of the timeline with a name."""

    begin: float
    end: float
    name: str


def add(bands: list[Band], begin: int | None, end: int, name: str) -> None:
    """Add a stretch, given in microseconds, unless it is empty or never began."""
    if begin is not None and end > begin:
        bands.append(Band(begin=begin / 1e6, end=end / 1e6, name=name))
