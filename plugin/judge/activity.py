"""What the clients of a load did in time, whichever workload it is of: a fault must have hit it, timelines show it."""

from array import array
from dataclasses import dataclass, field


def times() -> "array[int]":
    """Room for times, in microseconds."""
    return array("q")


@dataclass(kw_only=True, slots=True)
class Activity:
    """Times in microseconds, in the order in which they were recorded.

    ``attempts``: when each write was sent. ``sent`` and ``acknowledged``: both times of each acknowledged write, at the
    same index. ``refused``: when a writer sought a connection in vain. ``broken``: by node, when a write there failed
    or became indeterminate. ``failures``: when any operation did. ``cut``: by node, when a writer's connection to it
    went down.
    """

    attempts: "array[int]" = field(default_factory=times)
    sent: "array[int]" = field(default_factory=times)
    acknowledged: "array[int]" = field(default_factory=times)
    refused: "array[int]" = field(default_factory=times)
    broken: dict[str, "array[int]"] = field(default_factory=dict)
    failures: "array[int]" = field(default_factory=times)
    cut: dict[str, "array[int]"] = field(default_factory=dict)
