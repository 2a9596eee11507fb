"""A node is drained, stopped, and started again with another version; with its former one where it does not come up."""

import time
from dataclasses import dataclass

from msgspec import UNSET
from msgspec.structs import replace

from clusters.cluster import DRAIN_S, Cluster
from clusters.engines import Engine
from clusters.errors import BadInput, NotDrained, TimedOut
from clusters.events import NodeSwapped, SwapFailed
from clusters.faults.disturbance import UNDO_S, Fault
from clusters.faults.node import drained, restart_dead
from clusters.model import Capability
from clusters.watched import NotUp

UP_S = 60.0
"""A node that takes no clients by then is late with its new version; measured: 3 to 7 s on two busy cores."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Meant:
    """How a version that is there to fail does so: ``shows`` is all to be found in the error that it makes."""

    failure: str
    shows: tuple[str, ...]


def swap(
    new: Engine,
    old: Engine,
    *,
    drain_s: float = DRAIN_S,
    up_s: float = UP_S,
    meant: Meant | None = None,
    changed: set[str] | None = None,
) -> Fault:
    """A node is drained and stopped; undone by starting it with ``new``, or else with ``old``, which it had before.

    ``drain_s``: how long it may take until it is drained, and until it stops; ``up_s``: until it takes clients, with
    ``new`` and with ``old``; in seconds. One that is not drained is stopped all the same, and not given ``new``.
    ``meant``: how ``new`` is to fail; whether it failed so is recorded. What this machine, or the harness, is to blame
    for is no failure of ``new``: then it is not undone. ``changed`` gets the nodes that came up with ``new``. Raises
    ``BadInput`` where they are not of one database.
    """
    if new.kind.name != old.kind.name:
        raise BadInput(f"{old.kind.title} {old.version} cannot go on as {new.kind.title} {new.version}")
    began: dict[str, float] = {}
    former: dict[str, str] = {}
    undrained = set[str]()

    async def stop(cluster: Cluster, node: str) -> str:
        former[node] = (await cluster.running(node)).build
        began[node] = time.monotonic()
        try:
            return await drained(cluster, node, timeout=drain_s, then=new)
        except NotDrained as error:
            undrained.add(node)
            return str(error)

    async def start(cluster: Cluster, node: str) -> None:
        if node not in cluster.down:
            return
        given = new
        if node in undrained:
            given = old
            await restart_dead(cluster, node, up_s=up_s)
        elif (not_up := await _tried(cluster, node, new, up_s)) is not None:
            failed = SwapFailed(
                node=node, wanted=new.version, former=former[node], why=not_up.why, late=not_up.late or UNSET
            )
            if meant is not None:
                as_meant = all(sign in not_up.why for sign in meant.shows)
                failed = replace(failed, meant=meant.failure, as_meant=as_meant)
            cluster.record(failed)
            given = old
            await cluster.deployment.install(node, old)
            await restart_dead(cluster, node, up_s=up_s)
        elif changed is not None:
            changed.add(node)
        cluster.mark(node, down=False)
        runs = await cluster.running(node)
        cluster.record(
            NodeSwapped(
                node=node,
                wanted=given.version,
                build=runs.build,
                able=runs.able,
                active=runs.active,
                seconds=round(time.monotonic() - began[node], 3),
            )
        )

    return Fault(
        name="swap",
        capabilities=frozenset({Capability.DRAIN, Capability.RESTART, Capability.SWAP_VERSION}),
        bite=stop,
        undo=start,
        undo_s=UNDO_S + 2 * up_s,
    )


async def _tried(cluster: Cluster, node: str, new: Engine, up_s: float) -> NotUp | None:
    """Why a node does not come up with a version; ``None`` where it does. Raises ``HarnessError`` as ``comes_up``."""
    try:
        await cluster.deployment.install(node, new)
        await cluster.substrate.start(cluster.deployment.process(node))
    except (BadInput, TimedOut) as error:
        return NotUp(why=str(error), late=isinstance(error, TimedOut))
    return await cluster.comes_up(node, timeout=up_s)
