"""What the judge measures of nodes that get other CPU and memory one after another.

A test records ``size.begin {size, nodes, asked}`` before it goes over the nodes, and ``node.resized {node, size,
shown}`` when one runs again; both name resources as ``NodeResources`` does.
"""

from collections.abc import Iterator, Mapping

from clusters.events import NodeDeath, NodeResized
from plugin.evidence.events import SizeBegin, seen
from plugin.judge.analysis import Analysis
from plugin.judge.definitions import Measured, Metrics, nothing, some

SHOWN = ("cpus", "memory_mib", "cache_mib")
"""What a node must show of what was asked for; the rest is compared where it shows it."""
TOLERANCE = 0.01
"""A quota is a whole number of microseconds, a limit a whole number of pages: a hundredth is the same."""

RESIZING_METRICS = Metrics()
"""Every metric of a change of size by name."""
measures = RESIZING_METRICS.declare


@measures("nodes_down_at_once", "nodes", ("integrity", "fault_bit"), safety=True)
def _down_at_once(a: Analysis) -> Measured:
    """Nodes that were taken down, or had died, at the same time; the most at any moment."""
    faults = a.timeline.faults
    if not faults:
        return nothing("no node was taken down")
    down = {fault.begin: _down_at(a, fault.begin) for fault in faults}
    worst = max(down, key=lambda t: len(down[t]))
    return len(down[worst]), f"{', '.join(sorted(down[worst]))} at {a.moment(worst)}", ()


def _down_at(a: Analysis, t: int) -> set[str]:
    """The nodes that were taken down and not yet back, the one just taken included; and those that died before."""
    taken = {
        node
        for fault in a.timeline.faults
        if fault.begin <= t and (fault.undone is None or t < fault.undone)
        for node in fault.nodes
    }
    return taken | {died.node for at, died in seen(a.evidence.events, NodeDeath) if at <= t}


@measures("nodes_with_old_resources", "nodes", ("integrity", "fault_bit"))
def _old_resources(a: Analysis) -> Measured:
    """Nodes that did not show the CPU, memory and cache they were given.

    By the operating system's limits and by their own word.
    """
    rounds = [begin for _, begin in seen(a.evidence.events, SizeBegin)]
    if not rounds:
        return nothing("no node was given another size")
    shown: dict[tuple[str, str, int], Mapping[str, float]] = {}
    number = 0
    for event in a.evidence.events:
        number += isinstance(event.what, SizeBegin)
        if isinstance(event.what, NodeResized):
            shown[event.what.node, str(event.what.size), number] = event.what.shown
    wrong = []
    nodes = set()
    for number, begin in enumerate(rounds, 1):
        for node in begin.nodes:
            differing = [*_differing(begin.asked, shown.get((node, begin.size, number), {}))]
            if differing:
                nodes.add(node)
                wrong.append(f"{node} at {begin.size}: {', '.join(differing)}")
    sizes = " → ".join(begin.size for begin in rounds)
    return len(nodes), some(wrong) or f"{sizes}: all as asked for", tuple(wrong[:5])


def _differing(asked: Mapping[str, float], shown: Mapping[str, float]) -> Iterator[str]:
    for name, wanted in asked.items():
        found = shown.get(name)
        if found is None:
            if name in SHOWN:
                yield f"{name} {wanted:g} asked, nothing shown"
        elif abs(found - wanted) > TOLERANCE * wanted:
            yield f"{name} {wanted:g} asked, {found:g} shown"
