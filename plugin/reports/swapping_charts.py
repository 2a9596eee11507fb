"""Nodes that are given other versions, as charts draw them: lanes of states and versions, and marks on the traffic."""

import re
from collections.abc import Callable, Mapping, Sequence

from plugin.reports.bands import Band
from plugin.reports.charts import Lane, Mark
from plugin.reports.swapping_series import AWAY, DOWN, DRAINING, NOT_READY, STARTING, UNKNOWN, SwappingSeries

STATES: Mapping[str, str] = {
    UNKNOWN: "up", STARTING: "wait", DRAINING: "back", DOWN: "hit", NOT_READY: "wait", AWAY: "back",
}  # fmt: skip
"""Colours of the states of a node that is given other versions; every other state is a fault's."""
TINTS = ("up", "new", "newer")
"""Colours of nodes that run, by the version they run, in turn."""


def look_of(swapping: SwappingSeries) -> Callable[[Band], Mark]:
    """What a node's states look like: in the colour of the state, or of the version that it runs."""
    short = shortened(swapping.versions)
    tints = {version: TINTS[at % len(TINTS)] for at, version in enumerate(swapping.versions)}

    def look(band: Band) -> Mark:
        colour = STATES.get(band.name) or tints.get(band.name, "hit")
        return Mark(begin=band.begin, end=band.end, name=band.name, colour=colour, short=short.get(band.name, ""))

    return look


def shortened(versions: Sequence[str]) -> Mapping[str, str]:
    """What each version is called where there is little room: as much of it as tells it from all others."""
    parts = {version: re.findall(r"[^.+-]+[.+-]?", version) or [version] for version in versions}
    for most in range(2, 1 + max(map(len, parts.values()), default=0)):
        short = {version: "".join(found[:most]).rstrip(".+-") for version, found in parts.items()}
        if len({*short.values()}) == len(versions):
            return short
    return dict(zip(versions, versions, strict=True))


def plan_of(swapping: SwappingSeries) -> list[Lane]:
    """The steps of the plan that were begun, on a lane of their own."""
    end = _end(swapping)
    states = [
        Mark(
            begin=step.begun, end=max(step.begun, end) if step.ended is None else step.ended,
            name=f"{step.number}. {step.kind}", short=str(step.number), colour="wait",
        )
        for step in swapping.steps
        if step.begun is not None
    ]  # fmt: skip
    return [Lane(name="plan", states=states, quiet=True)] if states else []


def marks_of(swapping: SwappingSeries) -> list[Mark]:
    """Over the traffic: which node is given what, and what is done to the cluster as a whole."""
    short = shortened(swapping.versions)
    end = _end(swapping)
    marks = [
        Mark(
            begin=swap.begin, end=max(swap.begin, end if swap.up is None else swap.up), colour="fault",
            name=f"{swap.node} → {short.get(swap.wanted, swap.wanted)}",
        )
        for swap in swapping.swaps
    ]  # fmt: skip
    marks += [
        Mark(begin=mark.begin, end=mark.end, name=mark.name, colour="heal" if mark.end > mark.begin else "c")
        for mark in swapping.marks
    ]
    return sorted(marks, key=lambda mark: mark.begin)


def _end(swapping: SwappingSeries) -> float:
    return max((band.end for bands in swapping.lanes.values() for band in bands), default=0.0)
