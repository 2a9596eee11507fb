"""Resize: a node is drained and stopped; undone by starting it again with other resources, which it must show."""

import asyncio
from contextlib import suppress

from clusters.cluster import Cluster
from clusters.errors import HarnessError
from clusters.faults.disturbance import Fault
from clusters.faults.drain import drain_and_prove
from clusters.faults.kill import restart_dead
from clusters.model import Capability, NodeResources

SHOW_S = 30.0
"""A node that does not say by then what it has got shows nothing; measured: within a second of its start."""


def resize(resources: NodeResources, **facts: object) -> Fault:
    """The change of a node to these resources. ``facts`` go into the event ``node.resized`` beside what the node shows."""

    async def start(cluster: Cluster, node: str) -> None:
        cluster.deployment.give(node, resources)
        await restart_dead(cluster, node)
        cluster.record("node.resized", node=node, shown=await _shown(cluster, node), **facts)

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
    deadline = asyncio.get_running_loop().time() + SHOW_S
    while not told and asyncio.get_running_loop().time() < deadline:
        cluster.watch()
        with suppress(HarnessError):
            told = dict(await cluster.deployment.shown(node))
        if not told:
            await asyncio.sleep(0.5)
    cluster.watch()
    return told | dict(cluster.substrate.limits(node))
