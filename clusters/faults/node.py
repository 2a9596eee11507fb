"""Faults of a whole node: it is killed, drained, frozen, or lost with its pod or disk; resizing drains it, too."""

from contextlib import suppress

from msgspec import UNSET

from clusters.cluster import DRAIN_S, Cluster
from clusters.engines import Engine
from clusters.errors import HarnessError, TimedOut
from clusters.events import NodeResized
from clusters.faults.disturbance import Fault
from clusters.model import Capability, Health, NodeResources, ProcessState
from clusters.waiting import wait_until
from clusters.watched import START_TIMEOUT_S

SHOW_S = 30.0
"""A node that does not say by then what it has got shows nothing; measured: within a second of its start."""


async def _kill(cluster: Cluster, node: str) -> str:
    await cluster.kill(node)
    why = await _silent(cluster, node, "killed", ProcessState.EXITED)
    return f"process gone (exit code {cluster.substrate.exit_code(node)}), clients refused: {why}"


async def _silent(cluster: Cluster, node: str, hurt: str, state: ProcessState) -> str:
    """Why a node that was hurt takes no clients. Raises ``HarnessError`` where it does, or is in another state."""
    if (found := cluster.substrate.state(node)) is not state:
        raise HarnessError(f"{node} was {hurt} and is {found}")
    health = await cluster.deployment.accepting(node)
    if health.ok:
        raise HarnessError(f"{node} was {hurt} and still takes clients: something else listens on its address")
    return health.why


async def restart_dead(cluster: Cluster, node: str, *, up_s: float = START_TIMEOUT_S) -> None:
    """Start a node again with its store, unless it is back already; what was cut short half-way is dead first.

    Raises ``TimedOut`` where it takes no clients within ``up_s`` seconds.
    """
    if node in cluster.down:
        await cluster.kill(node)
        await cluster.restart(node, timeout=up_s)


KILL = Fault(name="kill", capabilities=frozenset({Capability.KILL, Capability.RESTART}), bite=_kill, undo=restart_dead)
"""SIGKILL of everything a node is; undone by starting it again with its store."""


async def _delete_pod(cluster: Cluster, node: str) -> str:
    proof = await cluster.delete_pod(node)
    if (state := cluster.substrate.state(node)) is not ProcessState.EXITED:
        raise HarnessError(f"{node} was deleted with its pod and is {state}")
    return proof


DELETE_POD = Fault(
    name="delete_pod",
    capabilities=frozenset({Capability.DELETE_POD, Capability.RESTART}),
    bite=_delete_pod,
    undo=restart_dead,
)
"""The pod that a node runs in is deleted, as by its owner in haste: another is made, with the node's store and another
address. Undone by starting the node in it."""


async def _lose_disk(cluster: Cluster, node: str) -> str:
    proof = await _kill(cluster, node)
    await cluster.wipe(node)
    return f"{proof}; store deleted"


async def _replace(cluster: Cluster, node: str) -> None:
    if node in cluster.down:
        # A store that is half deleted must not be started.
        await cluster.kill(node)
        await cluster.wipe(node)
        await cluster.replace(node)


LOSE_DISK = Fault(
    name="lose_disk",
    capabilities=frozenset({Capability.KILL, Capability.REPLACE}),
    bite=_lose_disk,
    undo=_replace,
)
"""A node dies with its store; undone by an empty node in its place, as an operator would replace it."""


async def _pause(cluster: Cluster, node: str) -> str:
    await cluster.pause(node)
    return f"every process stopped, no answer: {await _silent(cluster, node, 'frozen', ProcessState.PAUSED)}"


async def _resume(cluster: Cluster, node: str) -> None:
    if node in cluster.down:
        await cluster.resume(node)


PAUSE = Fault(name="pause", capabilities=frozenset({Capability.PAUSE}), bite=_pause, undo=_resume)
"""Everything a node is is frozen (SIGSTOP): its connections stay open and say nothing; undone by SIGCONT."""


async def drained(cluster: Cluster, node: str, *, timeout: float = DRAIN_S, then: Engine | None = None) -> str:
    """Drain and stop a node; the proof, in words. ``then``, and what it raises: as ``Cluster.drain``."""
    code = await cluster.drain(node, timeout=timeout, then=then)
    if (state := cluster.substrate.state(node)) is not ProcessState.EXITED:
        raise HarnessError(f"{node} was drained and stopped, and is {state}")
    return f"drained, stopped with exit code {code}"


DRAIN = Fault(
    name="drain", capabilities=frozenset({Capability.DRAIN, Capability.RESTART}), bite=drained, undo=restart_dead
)
"""A node hands over its work and stops in good order, as before maintenance; undone by starting it again."""


def resize(resources: NodeResources, *, size: str = "") -> Fault:
    """A node is drained and stopped; undone by starting it again with these resources, which it must show.

    ``size``: what they are called, if the caller has a name for them.
    """

    async def start(cluster: Cluster, node: str) -> None:
        await cluster.deployment.give(node, resources)
        await restart_dead(cluster, node)
        cluster.record(NodeResized(node=node, shown=await _shown(cluster, node), size=size or UNSET))

    return Fault(
        name="resize",
        capabilities=frozenset({Capability.DRAIN, Capability.RESTART, Capability.NODE_RESOURCES}),
        bite=drained,
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
