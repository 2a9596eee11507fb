"""A node is drained, stopped, and started again with another version; with its former one where it does not come up."""

import time
from dataclasses import dataclass

from msgspec.structs import replace

from clusters.cluster import Cluster
from clusters.engines import Engine
from clusters.errors import BadInput, HarnessError, TimedOut
from clusters.events import NodeSwapped, SwapFailed
from clusters.faults.disturbance import Fault
from clusters.faults.node import DRAIN, restart_dead
from clusters.model import Capability, Health, ProcessState
from clusters.waiting import wait_until

COMES_UP_S = 60.0
"""A node that takes no clients by then has not come up with its new version; measured: 3 to 7 s on two busy cores."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Meant:
    """How a version that is there to fail does so: ``shows`` is all to be found in the error that it makes."""

    failure: str
    shows: tuple[str, ...]


def swap(new: Engine, old: Engine, *, meant: Meant | None = None) -> Fault:
    """A node is drained and stopped; undone by starting it with ``new``, or else with ``old``, which it had before.

    ``meant``: how ``new`` is to fail; whether it failed so is recorded. Raises ``BadInput`` where they are not of one
    database.
    """
    if new.kind.name != old.kind.name:
        raise BadInput(f"{old.kind.title} {old.version} cannot go on as {new.kind.title} {new.version}")
    began: dict[str, float] = {}

    async def stop(cluster: Cluster, node: str) -> str:
        began[node] = time.monotonic()
        return await DRAIN.bite(cluster, node)

    async def start(cluster: Cluster, node: str) -> None:
        if node not in cluster.down:
            return
        given = new
        try:
            await cluster.deployment.install(node, new)
            await come_up(cluster, node)
        except (HarnessError, BadInput) as error:
            why = str(error)
            failed = SwapFailed(node=node, wanted=new.version, why=why)
            if meant is not None:
                as_meant = all(sign in why for sign in meant.shows)
                failed = replace(failed, meant=meant.failure, as_meant=as_meant)
            cluster.record(failed)
            given = old
            await cluster.deployment.install(node, old)
            await restart_dead(cluster, node)
        runs = await cluster.deployment.running(node)
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
    )


async def come_up(cluster: Cluster, node: str) -> None:
    """Start a node and wait until it takes clients; it counts as down until then.

    Raises ``HarnessError`` where it ends, ``TimedOut`` where it takes no clients, both with its last words.
    """
    await cluster.substrate.start(cluster.deployment.process(node))

    async def up() -> Health:
        if cluster.substrate.state(node) is ProcessState.EXITED:
            code, last = cluster.substrate.exit_code(node), cluster.substrate.log_tail(node)
            raise HarnessError(f"{node} ended with exit code {code} when it was started; it wrote last:\n{last}")
        return await cluster.deployment.accepting(node)

    try:
        await wait_until(f"{node} to take clients", up, timeout=COMES_UP_S, watch=cluster.watch)
    except TimedOut as error:
        raise TimedOut(f"{error}; it wrote last:\n{cluster.substrate.log_tail(node)}") from error
    cluster.mark(node, down=False)
