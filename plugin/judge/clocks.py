"""How exactly times from different clocks can be told apart."""

from collections.abc import Iterable, Mapping
from itertools import chain
from math import inf

from clusters.clocks import Offset
from clusters.events import ClocksCompared, GeneratorClocks
from plugin.evidence.events import Event, seen

EXACT_S = 0.1
"""The clock of a load generator must be known as well as this (our own choice): its evidence goes by it, and is counted
by the second, of which a tenth may be told to its neighbour."""


def uncertainty_s(events: Iterable[Event]) -> float:
    """No difference between times of a trial is known better than this, in seconds; infinite with a clock unread.

    Each event ``clocks`` has, for each source that is not the harness itself, by how much its clock was ahead and how
    well that was known. A clock that drifted between two comparisons may have stood anywhere between them. Nothing
    where all have the harness's own clock, or a run was stored before clocks were compared: those were all one.
    """
    events = list(events)
    if unread(events):
        return inf
    return max((*_apart(events, ClocksCompared).values(), *_apart(events, GeneratorClocks).values()), default=0.0)


def _apart(events: Iterable[Event], kind: type[ClocksCompared | GeneratorClocks]) -> Mapping[str, float]:
    """How well each source's clock is known, with what it drifted."""
    read: dict[str, list[Offset]] = {}
    for source, known in chain.from_iterable(compared.sources.items() for _, compared in seen(events, kind)):
        read.setdefault(source, []).append(known)
    return {
        source: max(each.uncertainty_s for each in readings)
        + max(each.offset_s for each in readings)
        - min(each.offset_s for each in readings)
        for source, readings in read.items()
    }


def unread(events: Iterable[Event]) -> dict[str, str]:
    """The sources whose clocks could not be read, at the begin or at the end, or not exactly enough, and why.

    One that was read at another time and is the harness's own is known all the same.
    """
    events = list(events)
    failed: dict[str, str] = {}
    own: set[str] = set()
    for _, compared in seen(events, ClocksCompared):
        failed |= compared.unread
        own |= {source for source, known in compared.sources.items() if known.clock == compared.own}
    vague = {
        source: f"it is known to {apart:.2g} s only, a generator's must be to {EXACT_S:g} s"
        for source, apart in _apart(events, GeneratorClocks).items()
        if apart > EXACT_S
    }
    return {source: why for source, why in failed.items() if source not in own} | vague
