"""Drain: a node hands over its work and stops in good order, as before maintenance; undone by starting it again."""

from clusters.cluster import Cluster
from clusters.errors import HarnessError
from clusters.faults.disturbance import Fault
from clusters.faults.kill import restart_dead
from clusters.model import Capability, ProcessState


async def drain_and_prove(cluster: Cluster, node: str) -> str:
    """Drain and stop a node; returns the proof that it ended."""
    code = await cluster.drain(node)
    if cluster.substrate.state(node) is not ProcessState.EXITED:
        raise HarnessError(f"{node} was drained and stopped, and is {cluster.substrate.state(node)}")
    return f"drained, stopped with exit code {code}"


DRAIN = Fault(
    name="drain",
    capabilities=frozenset({Capability.DRAIN, Capability.RESTART}),
    bite=drain_and_prove,
    undo=restart_dead,
)
