"""Cut links: what nodes send each other vanishes without a word, while clients still reach them; undone by healing."""

from collections.abc import Callable, Iterable

from clusters.cluster import Cluster
from clusters.errors import HarnessError
from clusters.faults.disturbance import Fault
from clusters.model import Capability

Link = tuple[str, str]
"""Who sends, and who receives."""


def cut(first: str, second: str, *, one_way: bool = False) -> Fault:
    """Between two nodes (or a node and a service) nothing passes; with ``one_way`` from the first to the second.

    To be aimed at both, of which each is proven to be hurt.
    """
    links = [(first, second)] if one_way else [(first, second), (second, first)]
    return _fault("cut one way" if one_way else "cut", lambda _, node: [link for link in links if node in link])


def isolate() -> Fault:
    """A node is cut off from every other and from the services beside the nodes, both ways. Clients still reach it."""
    return _fault("isolate", isolating)


def isolating(cluster: Cluster, node: str) -> list[Link]:
    """The links that are cut to isolate a node."""
    others = [name for name in cluster.linked if name != node]
    return [*((node, other) for other in others), *((other, node) for other in others)]


def _fault(name: str, links_of: Callable[[Cluster, str], Iterable[Link]]) -> Fault:
    """A fault of its own for each time, since it heals what it cut itself and leaves what another had cut before."""
    own: set[Link] = set()

    async def bite(cluster: Cluster, node: str) -> str:
        proofs = []
        for link in links_of(cluster, node):
            if link not in cluster.cut_links:
                own.add(link)
            proofs.append(await cluster.cut(*link))
        return "; ".join(proofs)

    async def undo(cluster: Cluster, node: str) -> None:
        failed = []
        for link in sorted(own):
            if node in link:
                try:
                    await cluster.heal(*link)
                except HarnessError as error:
                    failed.append(str(error))
        if failed:
            raise HarnessError("; ".join(failed))
        await cluster.accepting(node)

    return Fault(name=name, capabilities=frozenset({Capability.CUT_LINKS}), bite=bite, undo=undo)
