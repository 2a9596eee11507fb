"""Pause: everything a node is is frozen (SIGSTOP): its connections stay open and say nothing; undone by SIGCONT."""

from clusters.cluster import Cluster
from clusters.errors import HarnessError
from clusters.faults.disturbance import Fault
from clusters.model import Capability, ProcessState


async def _bite(cluster: Cluster, node: str) -> str:
    await cluster.pause(node)
    state = cluster.substrate.state(node)
    if state is not ProcessState.PAUSED:
        raise HarnessError(f"{node} was frozen and is {state}")
    health = await cluster.deployment.accepting(node)
    if health.ok:
        raise HarnessError(f"{node} was frozen and still answers")
    return f"every process stopped, no answer: {health.why}"


async def _undo(cluster: Cluster, node: str) -> None:
    if node in cluster.down:
        await cluster.resume(node)


PAUSE = Fault(name="pause", capabilities=frozenset({Capability.PAUSE}), bite=_bite, undo=_undo)
