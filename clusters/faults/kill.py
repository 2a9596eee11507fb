"""Kill: SIGKILL of everything a node is; undone by starting it again with its store."""

from clusters.cluster import Cluster
from clusters.errors import HarnessError
from clusters.faults.disturbance import Fault
from clusters.model import Capability, ProcessState


async def kill_and_prove(cluster: Cluster, node: str) -> str:
    """Kill a node; returns the proof that nothing of it lives and that it takes no clients."""
    await cluster.kill(node)
    state = cluster.substrate.state(node)
    if state is not ProcessState.EXITED:
        raise HarnessError(f"{node} was killed and is {state}")
    health = await cluster.deployment.accepting(node)
    if health.ok:
        raise HarnessError(f"{node} was killed and still takes clients: something else listens on its address")
    return f"process gone (exit code {cluster.substrate.exit_code(node)}), clients refused: {health.why}"


async def restart_dead(cluster: Cluster, node: str) -> None:
    """Start a node again with its store, unless it is back already; what was cut short half-way is dead first."""
    if node in cluster.down:
        await cluster.kill(node)
        await cluster.restart(node)


KILL = Fault(
    name="kill",
    capabilities=frozenset({Capability.KILL, Capability.RESTART}),
    bite=kill_and_prove,
    undo=restart_dead,
)
