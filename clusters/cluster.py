"""A cluster: an engine's deployment on a substrate, started together and changed node by node."""

import asyncio
import functools
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from msgspec import UNSET

from clusters import clocks, events
from clusters.engines import Deployment, Engine
from clusters.errors import BadInput, HarnessError, NodeDied, NotDrained, TimedOut
from clusters.model import (
    Capability,
    Credentials,
    Endpoint,
    Health,
    NodeResources,
    NodeSpec,
    ProcessState,
    Topology,
)
from clusters.substrates import Substrate
from clusters.waiting import hold
from clusters.watched import START_TIMEOUT_S, NotUp, Watched

DRAIN_S = 120.0
"""A node that has not handed over its work by then, or has not stopped after as long, is late; measured: a few seconds
for both."""
GO_BACK_S = 240.0
"""How long a cluster that was changed may take to be whole before its next node goes back."""
LOST_S = 60.0
"""Within this time it is known that a machine is lost: Kubernetes says so when nothing was heard of one for 50 s."""
REMOVE_TIMEOUT_S = 600.0
"""Moving 174 replicas off a node took 190 s at the default pace (CockroachDB v20.2, two busy cores)."""


class NotInstalled(BadInput):
    """A node cannot be given this version: seen before its process was started."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptOut:
    """How a new node was kept out. ``for_version``: somebody said that its version is why; ``how`` begins with that."""

    how: str
    for_version: bool


class Cluster(Watched):
    """A running cluster. ``record`` is told each thing done to it, as an event of the evidence."""

    def __init__(
        self,
        *,
        engine: Engine,
        deployment: Deployment,
        substrate: Substrate,
        topology: Topology,
        record: Callable[[events.Happened], None],
    ) -> None:
        super().__init__(engine=engine, deployment=deployment, substrate=substrate, nodes=topology.names, record=record)
        self.topology = topology
        self.cut_links: set[tuple[str, str]] = set()
        """Each as sender and receiver."""
        self._leave: Callable[[], Awaitable[None]] | None = None
        self._read = set[str]()
        """The nodes whose clocks were read."""

    @classmethod
    async def provision(
        cls,
        *,
        engine: Engine,
        substrate: Substrate,
        topology: Topology,
        resources: NodeResources,
        tuned: bool,
        record: Callable[[events.Happened], None] = lambda _: None,
    ) -> Self:
        """Place, prepare and start all nodes in parallel, or take over those that are there already.

        Returns when every one of them takes clients.

        Whatever goes wrong, the caller closes the substrate; nothing outlives that. Raises ``HarnessError``.
        """
        deployment = engine.deploy(topology.nodes, resources=resources, tuned=tuned)
        self = cls(engine=engine, deployment=deployment, substrate=substrate, topology=topology, record=record)
        placements = await substrate.place(topology.nodes)
        if substrate.kind.there_already:
            if engine.kind.adopt is None:
                raise BadInput(f"{engine.kind.title} is not taken over where it is there already; start one")
            self._leave = await engine.kind.adopt(deployment, placements, substrate)
        else:
            await deployment.prepare(placements, substrate)
            for service in deployment.services:
                await substrate.start(service)
            await asyncio.gather(*(substrate.start(deployment.process(name)) for name in topology.names))
            await self._come_up()
        self._up = True
        record(events.Provisioned(nodes=topology.names))
        return self

    async def leave(self) -> None:
        """Leave a cluster that was there already as it was; of one that was started nothing is asked.

        Nodes that were added are taken out, and those with another version go back. That is no part of what was
        measured, and is not recorded. Raises ``HarnessError`` where it cannot be done: no further node is touched then,
        and the engine, which knows what each still runs, leaves the rest so that there is a way back.
        """
        leave, self._leave = self._leave, None
        if leave is None:
            return
        self.record, self.measured = lambda _: None, False
        failed: list[Exception] = []
        try:
            for node in [node for node in self.nodes if self._changed(node)]:
                await self._go_back(node)
            for node in [node for node in reversed(self.nodes) if node not in self.topology.names]:
                await self.remove(node)
        except (HarnessError, NodeDied) as error:
            failed.append(error)
        finally:
            try:
                await leave()
            except HarnessError as error:
                failed.append(error)
        if failed:
            raise HarnessError("; ".join(map(str, failed))) from failed[0]

    def _changed(self, node: str) -> bool:
        return self.deployment.process(node).program != self.engine.program

    async def _go_back(self, node: str) -> None:
        await self._until("the cluster to be whole", self.deployment.healthy, GO_BACK_S, 0.25)
        try:
            await self.drain(node, then=self.engine)
        except NotDrained:
            await self.restart(node)  # with what it has: it was stopped
            raise
        await self.deployment.install(node, self.engine)
        await self.restart(node)

    def compare_clocks(self) -> None:
        """Record how the clocks of all nodes that run stand to the harness's, and whose they are.

        Raises ``HarnessError`` where the machine of one was lost; for that is waited where one is silent that was not.
        """
        sources, unread = dict[str, clocks.Offset](), dict[str, str]()
        for node in self.nodes:
            if self.substrate.state(node) is not ProcessState.RUNNING:
                continue
            try:
                sources[node] = clocks.compare(functools.partial(self.substrate.clock, node))
            except HarnessError as error:
                unread[node] = str(error)
        until = time.monotonic() + LOST_S
        while self._read & unread.keys() and time.monotonic() < until:
            self.refuse_lost_machines()
            time.sleep(0.5)
        self.refuse_lost_machines()
        self._read.update(sources)
        on = self.substrate.kind.machine
        machines = {node: on(self.substrate, node) for node in sources} if on else UNSET
        self.record(events.ClocksCompared(own=clocks.own(), sources=sources, unread=unread, machines=machines))

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The ways in for clients."""
        return self.deployment.endpoints

    @property
    def credentials(self) -> Credentials:
        """How clients identify themselves."""
        return self.deployment.credentials

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What engine and substrate offer together."""
        return self.engine.kind.capabilities & self.substrate.capabilities

    async def _come_up(self) -> None:
        try:
            await self._until(f"{self.engine.kind.name} to come up", self._booted, START_TIMEOUT_S)
        except HarnessError:
            # What failed to reach a node that is just dying must not hide why it died.
            await hold(0.5, watch=self.watch)
            raise

    async def _booted(self) -> Health:
        try:
            await self.deployment.bootstrap()
        except (HarnessError, BadInput):
            raise
        except Exception as error:
            why = f"{type(error).__name__} {error}"
            raise HarnessError(f"the nodes run, and could not be made a cluster: {why}") from error
        return Health(ok=True)

    async def leases(self, table: str) -> Counter[str]:
        """How many of the table's ranges each node leads."""
        return Counter(range_.lease for range_ in await self.deployment.ranges(table))

    async def kill(self, node: str) -> None:
        """SIGKILL everything a node is."""
        self.mark(node, down=True)
        await self.substrate.kill(node)

    async def delete_pod(self, node: str) -> str:
        """Delete the pod that a node runs in; returns the proof, once another is in its place."""
        self.mark(node, down=True)
        return await self.substrate.delete_pod(node)

    async def pause(self, node: str) -> None:
        """Freeze everything a node is."""
        self.mark(node, down=True)
        await self.substrate.pause(node)

    async def resume(self, node: str) -> None:
        """Thaw a node and wait until it takes clients."""
        await self.substrate.resume(node)
        self.mark(node, down=False)
        await self.accepting(node)

    async def cut(self, sender: str, receiver: str) -> str:
        """Let nothing pass from one node or service to another any more, clients aside; returns the proof."""
        for name in (sender, receiver):
            if name not in self.linked:
                raise HarnessError(f"{name} is not part of this cluster ({', '.join(self.linked)})")
        self.cut_links.add((sender, receiver))
        return await self.substrate.cut(sender, receiver)

    async def heal(self, sender: str, receiver: str) -> None:
        """Let everything pass again."""
        await self.substrate.heal(sender, receiver)
        self.cut_links.discard((sender, receiver))

    async def drain(self, node: str, *, timeout: float = DRAIN_S, then: Engine | None = None) -> int:
        """Let a node hand over its work, then stop it; returns its exit code.

        ``then``: the version that it is to go on with, where that is another one than it has. One that does not hand
        it over, or not within ``timeout`` seconds, is stopped all the same: then ``NotDrained`` is raised. Raises
        ``HarnessError`` where something outside the database ended it, or kept it from that.
        """
        self.mark(node, down=True)
        failed: HarnessError | None = None
        if then is not None:
            self._comes_back(node, then.program)
        try:
            await self.deployment.drain(node, timeout=timeout)
            self.record(events.NodeDrained(node=node))
        except (NotDrained, TimedOut) as error:
            failed = error
            self._comes_back(node, self.deployment.process(node).program or self.engine.program)
            if lack := self._lack(node, self.substrate.log_tail(node)):
                raise HarnessError(f"{node} was not drained, {lack}: {error}") from error
        code = await self._stop(node, timeout=timeout)
        if failed is not None:
            late = isinstance(failed, TimedOut) or UNSET
            self.record(events.DrainFailed(node=node, why=str(failed), late=late))
            raise NotDrained(f"{node} was not drained, and stopped with exit code {code}: {failed}") from failed
        return code

    async def _stop(self, node: str, *, timeout: float) -> int:
        """Stop a node, or kill it after ``timeout`` seconds; returns its exit code.

        Raises ``HarnessError`` where something outside the database ended it.
        """
        begun = time.monotonic()
        code = await self.substrate.stop(node, timeout=timeout)
        late = code == -signal.SIGKILL and time.monotonic() - begun >= timeout
        last = self.substrate.log_tail(node)
        in_order = late or code in (0, -signal.SIGTERM)
        if outside := self.substrate.ended_by(node) or (None if in_order else self._outside(node, code, last)):
            raise HarnessError(f"{node} ended with exit code {code} when it was to stop, {outside}; last:\n{last}")
        self.watch()  # before it is told as late: it may have waited for a node that somebody else ended
        self.record(events.NodeStopped(node=node, code=code, late=late or UNSET))
        return code

    async def restart(self, node: str, *, timeout: float = START_TIMEOUT_S) -> None:
        """Start a dead node again with its store, and wait until it takes clients."""
        await self.substrate.start(self.deployment.process(node))
        self.mark(node, down=False)
        await self.accepting(node, timeout=timeout)

    async def wipe(self, node: str) -> None:
        """Delete a dead node's store."""
        self.mark(node, down=True)
        await self.substrate.wipe(node)

    async def replace(self, node: str) -> None:
        """Start an empty node where one was lost with its disk, and tell the cluster that the old one is gone."""
        await self.restart(node)
        await self.deployment.forget(node)

    async def add(self, node: NodeSpec, *, timeout: float = START_TIMEOUT_S) -> None:
        """Add a node to the running cluster, and wait until it takes clients."""
        await self._begin(node, None)
        self.nodes.append(node.name)
        await self.accepting(node.name, timeout=timeout)

    async def joins(self, node: NodeSpec, engine: Engine, *, timeout: float = START_TIMEOUT_S) -> NotUp | None:
        """Start a new node of this version that is to be taken in; why it was not, by its own doing: it is gone then.

        Raises ``HarnessError`` where something outside the database ended it, or keeps it from serving.
        """
        await self._begin(node, engine)
        not_up = await self.comes_up(node.name, timeout=timeout)
        if not_up is None:
            self.nodes.append(node.name)
        else:
            await self._forget(node.name)
        return not_up

    async def _forget(self, node: str) -> None:
        """Kill a new node that never took clients; nothing is asked of it any more."""
        self._comes_back(node, None)
        await self.substrate.kill(node)
        await self.deployment.withdraw(node)

    async def _begin(self, node: NodeSpec, engine: Engine | None) -> None:
        """Place a new node and start it. One that cannot be is forgotten, else nothing would ever be whole again."""
        (placement,) = await self.substrate.place([node])
        self.placed.add(node.name)
        await self.deployment.place(placement)
        try:
            if engine is not None:
                await self._install(node.name, engine)
            await self.substrate.start(self.deployment.process(node.name))
        except (HarnessError, BadInput):
            await self.deployment.withdraw(node.name)
            raise

    async def _install(self, node: str, engine: Engine) -> None:
        """Raises ``NotInstalled`` where it is seen before a start that the node cannot go on with this version."""
        try:
            await self.deployment.install(node, engine)
        except BadInput as error:
            raise NotInstalled(str(error)) from error

    async def refuses(self, node: NodeSpec, engine: Engine, *, timeout: float = START_TIMEOUT_S) -> KeptOut | None:
        """Start a new node that must not be taken in; returns how it was kept out, ``None`` where it takes clients.

        It may have been kept out by this machine as well as by its version. It is gone when this returns.
        """
        try:
            await self._begin(node, engine)
        except NotInstalled as error:
            return KeptOut(how=str(error), for_version=True)
        try:
            not_up = await self.comes_up(node.name, timeout=timeout)
        except HarnessError as error:
            kept_out = KeptOut(how=str(error), for_version=False)
        else:
            if not_up is None:
                self.nodes.append(node.name)
                return None
            lines = [line.strip("* ") for line in not_up.why.splitlines()]
            said = [line for line in lines if any(words in line.lower() for words in engine.kind.keeps_out)]
            kept_out = KeptOut(how="; ".join([*said[:1], not_up.why]), for_version=bool(said))
        await self._forget(node.name)
        return kept_out

    def _comes_back(self, node: str, program: Path | None) -> None:
        """Say what a node is when it is stopped next, where it then comes back by itself; ``None``: it stays away."""
        if (tell := self.substrate.kind.comes_back) is not None:
            tell(self.substrate, node, program)

    async def remove(self, node: str, *, timeout: float = REMOVE_TIMEOUT_S) -> int:
        """Take a node out of the running cluster for good, its data moved elsewhere first; returns its exit code.

        Raises ``TimedOut`` when its data is not moved by then.
        """
        if Capability.REMOVE_NODE not in self.capabilities:
            raise HarnessError(f"{self.engine.kind.name} on {self.substrate.kind.name} cannot remove a node")
        self._comes_back(node, None)
        try:
            await self.deployment.remove(node, timeout=timeout)
        except BaseException:
            self._comes_back(node, self.engine.program)
            raise
        self.mark(node, down=True)
        code = await self.substrate.stop(node, timeout=60.0)
        self.nodes.remove(node)
        self.down.discard(node)
        await self.deployment.forget(node)
        if (take_away := self.substrate.kind.take_away) is not None:
            await take_away(self.substrate, node)
        return code
