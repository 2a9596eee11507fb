"""Resize: a node is drained and stopped; undone by starting it again with other resources, which it must show."""

from contextlib import suppress

from msgspec import UNSET

from clusters.cluster import Cluster
from clusters.errors import HarnessError, TimedOut
from clusters.events import NodeResized
from clusters.faults.disturbance import Fault
from clusters.faults.drain import drain_and_prove
from clusters.faults.kill import restart_dead
from clusters.model import Capability, Health, NodeResources
from clusters.waiting import wait_until

SHOW_S = 30.0
"""A node that does not say by then what it has got shows nothing; measured: within a second of its start."""


def resize(resources: NodeResources, *, size: str = "") -> Fault:
    """The change of a node to these resources. ``size``: what they are called, if the caller has a name for them."""

    async def start(cluster: Cluster, node: str) -> None:
        await cluster.deployment.give(node, resources)
        await restart_dead(cluster, node)
        cluster.record(NodeResized(node=node, shown=await _shown(cluster, node), size=size or UNSET))

    return Fault(
        name="resize",
        capabilities=frozenset({Capability.DRAIN, Capability.RESTART, Capability.NODE_RESOURCES}),
        bite=drain_and_prove,
        undo=start,
    )


async def _shown(cluster: Cluster, node: str) -> dict[str, float]:
    """What the operating system allows the running node, and what the node itself says; what is not known is left out.

    Raises ``NodeDied`` when it died meanwhile.
    """
    told: dict[str, float] = {}

    async def shows() -> Health:
        with suppress(HarnessError):
            told.update(await cluster.deployment.shown(node))
        return Health(ok=bool(told))

    with suppress(TimedOut):
        await wait_until(f"what {node} has got", shows, timeout=SHOW_S, watch=cluster.watch, interval=0.5)
    return told | dict(cluster.substrate.limits(node))
