"""What all faults share: begin, prove that it bit, hold, and always undo, on a context of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from clusters.cluster import Cluster
from clusters.errors import CommandTimedOut, HarnessError, NodeDied, TimedOut
from clusters.events import FaultBegin, FaultBit, FaultUndo, FaultUndone, UndoSlow
from clusters.model import Capability
from clusters.waiting import to_the_end

UNDO_S = 180.0
"""An undo that takes longer is reported as a failure of the harness; a drained node restarts in about 7 s."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A kind of disturbance.

    ``bite`` hurts one node and returns the proof, in words, that it is hurt (it raises ``HarnessError`` where it cannot
    prove it). Once begun it is never cut short, so it must end by itself. ``undo`` heals what ``bite`` did; it must be
    safe to call when ``bite`` failed half-way, and leaves no node among ``Cluster.down``. It has ``undo_s`` seconds.
    """

    name: str
    capabilities: frozenset[Capability]
    bite: Callable[[Cluster, str], Coroutine[Any, Any, str]]
    undo: Callable[[Cluster, str], Coroutine[Any, Any, None]]
    undo_s: float = UNDO_S


@asynccontextmanager
async def disturb(cluster: Cluster, fault: Fault, nodes: Sequence[str], **facts: Any) -> AsyncIterator[None]:
    """Hurt ``nodes`` for as long as the block lasts.

    ``facts`` go into the ``fault.begin`` event (leases and connections of the victims just before). Bite and undo run
    in tasks of their own, so that a cancelled or failing test still leaves a whole cluster or a clear error:
    ``HarnessError`` when the fault could not be proven or undone, ``NodeDied`` when a node did not live through it.
    What the block raised goes before that, with a note of it.
    """
    if missing := fault.capabilities - cluster.capabilities:
        where = f"{cluster.engine.kind.name} on {cluster.substrate.kind.name}"
        raise HarnessError(f"fault {fault.name}: {where} cannot {', '.join(sorted(missing))}")
    cluster.record(FaultBegin(fault=fault.name, nodes=nodes, **facts))
    hurt: list[str] = []
    try:
        for node in nodes:
            hurt.append(node)
            proof = await to_the_end(fault.bite(cluster, node))
            cluster.record(FaultBit(node=node, proof=proof))
        yield
    except BaseException as error:
        try:
            await to_the_end(_undo(cluster, fault, hurt))
        except (HarnessError, NodeDied) as further:
            error.add_note(str(further))
        raise
    await to_the_end(_undo(cluster, fault, hurt))


async def _undo(cluster: Cluster, fault: Fault, nodes: Sequence[str]) -> None:
    """Undo on every node, whatever becomes of the others. Raises ``HarnessError`` or ``NodeDied``."""
    try:
        cluster.record(FaultUndo(nodes=nodes))
    finally:
        try:
            async with asyncio.timeout(fault.undo_s):
                ends = await asyncio.gather(*(fault.undo(cluster, node) for node in nodes), return_exceptions=True)
        except TimeoutError:
            ends = [CommandTimedOut(f"not after {fault.undo_s:.0f} s")]
        failed, late = [], True
        for node, end in zip(nodes, ends, strict=False):
            if isinstance(end, TimedOut):
                # The node runs again, and the database takes long to come back: that is for the judge.
                cluster.record(UndoSlow(node=node, why=str(end)))
            elif isinstance(end, NodeDied):
                raise end
            elif isinstance(end, BaseException):
                failed.append(str(end) if isinstance(end, HarnessError) else f"{type(end).__name__} {end}")
                late = late and isinstance(end, CommandTimedOut)
        if failed:
            raise (CommandTimedOut if late else HarnessError)(
                f"fault {fault.name} could not be undone: {'; '.join(failed)}"
            )
    cluster.record(FaultUndone(nodes=nodes))
