"""Events as tests write them: by name and facts."""

from collections.abc import Mapping
from typing import Any

from plugin.evidence.events import KNOWN, Event, happened, tag
from plugin.workloads import WORKLOADS

KINDS = {**KNOWN, **{tag(kind): kind for workload in WORKLOADS.values() for kind in workload.events}}
"""Every class of the suite's own events, by name."""


def recorded(t: int, name: str, data: Mapping[str, Any] | None = None) -> Event:
    """The event at ``t`` microseconds."""
    return Event(t, happened(name, data or {}, KINDS))
