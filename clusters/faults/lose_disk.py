"""Lose the disk: a node dies with its store; undone by an empty node in its place, as an operator would replace it."""

from clusters.cluster import Cluster
from clusters.faults.disturbance import Fault
from clusters.faults.kill import kill_and_prove
from clusters.model import Capability


async def _bite(cluster: Cluster, node: str) -> str:
    proof = await kill_and_prove(cluster, node)
    await cluster.wipe(node)
    return f"{proof}; store deleted"


async def _undo(cluster: Cluster, node: str) -> None:
    if node in cluster.down:
        # A store that is half deleted must not be started.
        await cluster.kill(node)
        await cluster.wipe(node)
        await cluster.replace(node)


LOSE_DISK = Fault(
    name="lose_disk", capabilities=frozenset({Capability.KILL, Capability.REPLACE}), bite=_bite, undo=_undo
)
