"""What all faults share: begin, prove that it bit, hold, and always undo, on a context of its own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from clusters.cluster import Cluster
from clusters.errors import HarnessError
from clusters.model import Capability

UNDO_TIMEOUT_S = 180.0
"""An undo that takes longer is reported as a failure of the harness; a drained node restarts in about 7 s."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A kind of disturbance.

    ``bite`` hurts one node and returns the proof, in words, that it is hurt (it raises ``HarnessError`` where it cannot
    prove it). ``undo`` heals what ``bite`` did; it must be safe to call when ``bite`` failed half-way.
    """

    name: str
    capabilities: frozenset[Capability]
    bite: Callable[[Cluster, str], Awaitable[str]]
    undo: Callable[[Cluster, str], Coroutine[Any, Any, None]]


@asynccontextmanager
async def disturb(cluster: Cluster, fault: Fault, nodes: Sequence[str], **facts: Any) -> AsyncIterator[None]:
    """Hurt ``nodes`` for as long as the block lasts.

    ``facts`` go into the ``fault.begin`` event (leases and connections of the victims just before). The undo runs in a
    task of its own, so that a cancelled or failing test still leaves a whole cluster or a clear ``HarnessError``.
    """
    missing = fault.capabilities - cluster.capabilities
    if missing:
        raise HarnessError(
            f"fault {fault.name}: {cluster.engine.name} on {cluster.substrate.name} cannot {', '.join(sorted(missing))}"
        )
    cluster.record("fault.begin", fault=fault.name, nodes=list(nodes), **facts)
    hurt: list[str] = []
    try:
        for node in nodes:
            hurt.append(node)
            proof = await fault.bite(cluster, node)
            cluster.record("fault.bit", node=node, proof=proof)
        yield
    finally:
        await _on_its_own(_undo(cluster, fault, hurt))


async def _undo(cluster: Cluster, fault: Fault, nodes: Sequence[str]) -> None:
    cluster.record("fault.undo", nodes=list(nodes))
    async with asyncio.timeout(UNDO_TIMEOUT_S), asyncio.TaskGroup() as group:
        for node in nodes:
            group.create_task(fault.undo(cluster, node))
    cluster.record("fault.undone", nodes=list(nodes))


async def _on_its_own(undo: Awaitable[None]) -> None:
    """Run to the end even if we are cancelled meanwhile; then let the cancellation through."""
    task = asyncio.ensure_future(undo)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
        except Exception:
            break
    if cancelled is not None:
        raise cancelled
    try:
        task.result()
    except* HarnessError as group:
        raise HarnessError(
            f"the fault could not be undone: {'; '.join(str(e) for e in group.exceptions)}"
        ) from group
