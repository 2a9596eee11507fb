"""Events as tests write them: by name and facts."""

from collections.abc import Mapping
from typing import Any

from fixtures.workloads.tpcc.events import EVENTS
from plugin.evidence.events import KNOWN, Event, happened, tag

KINDS = {**KNOWN, **{tag(kind): kind for kind in EVENTS}}
"""Every class of the suite's own events, by name."""


def recorded(t: int, name: str, data: Mapping[str, Any] | None = None) -> Event:
    """The event at ``t`` microseconds."""
    return Event(t, happened(name, data or {}, KINDS))
