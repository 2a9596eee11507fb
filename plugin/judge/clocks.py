"""How exactly times from different clocks can be told apart."""

from collections.abc import Iterable
from math import inf

from clusters.clocks import Offset
from clusters.events import ClocksCompared
from plugin.evidence.events import Event, seen


def uncertainty_s(events: Iterable[Event]) -> float:
    """No difference between times of a trial is known better than this, in seconds; infinite with a clock unread.

    Each event ``clocks`` has, for each source that is not the harness itself, by how much its clock was ahead and how
    well that was known. A clock that drifted between two comparisons may have stood anywhere between them. Nothing
    where all have the harness's own clock, or a run was stored before clocks were compared: those were all one.
    """
    events = list(events)
    if unread(events):
        return inf
    read: dict[str, list[Offset]] = {}
    for _, compared in seen(events, ClocksCompared):
        for source, known in compared.sources.items():
            read.setdefault(source, []).append(known)
    return max(
        (
            max(each.uncertainty_s for each in readings)
            + max(each.offset_s for each in readings)
            - min(each.offset_s for each in readings)
            for readings in read.values()
        ),
        default=0.0,
    )


def unread(events: Iterable[Event]) -> dict[str, str]:
    """The sources whose clocks could not be read, at the begin or at the end, and why.

    One that was read at another time and is the harness's own is known all the same.
    """
    failed: dict[str, str] = {}
    own: set[str] = set()
    for _, compared in seen(events, ClocksCompared):
        failed |= compared.unread
        own |= {source for source, known in compared.sources.items() if known.clock == compared.own}
    return {source: why for source, why in failed.items() if source not in own}
