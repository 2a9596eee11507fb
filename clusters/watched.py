"""The nodes of a cluster as they are watched and waited for, and what ended one that is not there any more."""

import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from clusters import events
from clusters.engines import Deployment, Engine
from clusters.errors import HarnessError, NodeDied, TimedOut
from clusters.model import Health, ProcessState, RunningVersion
from clusters.substrates import Substrate
from clusters.waiting import hold, wait_until

START_TIMEOUT_S = 90.0
"""A node that does not take clients by then is taken for broken; measured starts take 3 to 12 s (two busy cores)."""
ENDED_S = 2.0
"""A connection is lost a moment before its process is seen to have ended."""
SENT = frozenset({-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP})
"""Exit codes of a process that somebody else ended; no program sends itself these."""
SHORTAGES = (
    "no space left on device",
    "disk quota exceeded",
    "disk full",
    "address already in use",
    "cannot allocate memory",
    "disk stall detected",
)
"""Last words of a node that the machine let down (strerror(3); CockroachDB ends itself where its disk takes 20 s for a
write); the database is not to blame."""
FULL_BYTES = 32 << 20
"""A disk with less room than this is full for a database: a store cannot grow by one file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NotUp:
    """Why a node that was started takes no clients, by its own doing.

    ``late``: its process ran on, and the time was up.
    """

    why: str
    late: bool = False


class Watched:
    """Nodes that run. ``record`` is told each thing done to them, as an event of the evidence."""

    def __init__(
        self,
        *,
        engine: Engine,
        deployment: Deployment,
        substrate: Substrate,
        nodes: Iterable[str],
        record: Callable[[events.Happened], None],
    ) -> None:
        self.engine = engine
        self.deployment = deployment
        self.substrate = substrate
        self.record = record
        self.nodes: list[str] = list(nodes)
        self.placed: set[str] = set(self.nodes)
        """Every node that was ever placed, removed ones too."""
        self.down: set[str] = set()
        """The nodes that were taken down on purpose and are not back yet; ``watch`` looks at all others."""
        self.measured = True
        """Whether what is seen is evidence: not while a cluster of others is left as it was found."""
        self._up = False

    def mark(self, node: str, *, down: bool) -> None:
        """Say that a node is taken down on purpose, or is back: ``watch`` looks at it only while it is not down.

        Raises ``HarnessError`` for a name that is no node of the cluster.
        """
        if node not in self.nodes:
            raise HarnessError(f"{node} is not a node of this cluster ({', '.join(self.nodes)})")
        (self.down.add if down else self.down.discard)(node)

    def watch(self) -> None:
        """Raise when this cluster cannot be waited for any longer, because a node died that nobody killed.

        Raises ``NodeDied``, or ``HarnessError`` before the cluster was up, or when something outside the database ended
        the node: a signal that was sent, a lack of disk or memory, the death of whoever watched over it; or where its
        machine was lost.
        """
        self.refuse_lost_machines()
        for name in self.linked:
            ended = self.substrate.state(name) in (ProcessState.EXITED, ProcessState.ABSENT)
            if name in self.down or not ended:
                continue
            code = self.substrate.exit_code(name)
            last = self.substrate.log_tail(name)
            outside = self._outside(name, code, last)
            how = f"with exit code {code}" if code is not None else "unseen"
            message = f"{name} ended {how}, {outside or 'by itself'}; it wrote last:\n{last or '(nothing)'}"
            if self._up and outside is None and name in self.nodes:
                self.record(events.NodeDeath(node=name, code=code))
                raise NodeDied(message)
            raise HarnessError(message)

    def refuse_lost_machines(self) -> None:
        """Raise ``HarnessError`` where the machine of a node was lost: its silence is none of the database's."""
        for name in self.linked if self.measured else ():
            if lost := self.substrate.machine_lost(name):
                raise HarnessError(f"{name}: {lost}; what the node did then says nothing of the database")

    @property
    def linked(self) -> tuple[str, ...]:
        """Everything that nodes may have to reach: the nodes, and the services beside them."""
        return (*self.nodes, *(service.name for service in self.deployment.services))

    def _outside(self, name: str, code: int | None, last: str) -> str | None:
        """What, if not the database, ended a node; ``None`` when nothing is known but that it ended."""
        if seen := self.substrate.ended_by(name):
            return seen
        if code is None:
            return "or was never started: whoever watched over it is gone"
        if code in SENT:
            return f"by a {signal.Signals(-code).name} that was not sent from here (lack of memory, or a person)"
        return self._lack(name, last)

    def _lack(self, name: str, last: str) -> str | None:
        """What this machine lacks for a node, by its last words or by its disk; ``None`` when nothing is known."""
        lack = next((words for words in SHORTAGES if words in last.lower()), None)
        if lack is None and name in self.placed:
            free = self.substrate.free_bytes(name)
            if free is not None and free < FULL_BYTES:
                lack = f"less than {FULL_BYTES >> 20} MiB are free on its disk"
        return f"let down by this machine ({lack})" if lack else None

    async def _until(self, what: str, check: Callable[[], Any], timeout: float, interval: float = 0.1) -> float:
        return await wait_until(what, check, timeout=timeout, watch=self.watch, interval=interval)

    async def accepting(self, node: str, *, timeout: float = START_TIMEOUT_S) -> None:
        """Wait until a node takes clients. Raises ``TimedOut``, or ``HarnessError`` where the machine is why."""
        try:
            await self._until(f"{node} to take clients", lambda: self.deployment.accepting(node), timeout)
        except TimedOut as error:
            if lack := self._lack(node, self.substrate.log_tail(node)):
                raise HarnessError(f"{error}; {node} was {lack}") from error
            raise

    async def running(self, node: str) -> RunningVersion:
        """What a node says of its version. Raises ``NodeDied`` where it ended by itself before it could say so."""
        try:
            return await self.deployment.running(node)
        except HarnessError:
            await hold(ENDED_S, watch=self.watch)
            raise

    async def comes_up(self, node: str, *, timeout: float) -> NotUp | None:
        """Wait until a node whose process was just started takes clients; why it does not, where that is its own doing.

        Raises ``HarnessError`` where something outside the database ended it, or keeps it from serving.
        """

        def ended() -> bool:
            return self.substrate.state(node) in (ProcessState.EXITED, ProcessState.ABSENT)

        async def settled() -> Health:
            return Health(ok=True) if ended() else await self.deployment.accepting(node)

        late = ""
        try:
            await self._until(f"{node} to take clients", settled, timeout)
        except TimedOut as error:
            late = str(error)
        last = self.substrate.log_tail(node)
        if ended():
            code, late = self.substrate.exit_code(node), ""
            how, outside = f"{node} ended with exit code {code} when it was started", self._outside(node, code, last)
        elif late:
            how, outside = late, self._lack(node, last)
        else:
            return None
        why = f"{how}; it wrote last:\n{last or '(nothing)'}"
        if outside:
            raise HarnessError(f"{node} did not come up, {outside}: {why}")
        return NotUp(why=why, late=bool(late))

    async def replicated(self, *, timeout: float = 180.0) -> None:
        """Wait until every range has all its replicas on living nodes; before that no fault may be injected."""
        seconds = await self._until("all ranges to have all their replicas", self.deployment.healthy, timeout, 0.25)
        self.record(events.Replicated(seconds=round(seconds, 3)))

    async def healthy(self, *, timeout: float = 240.0) -> None:
        """Wait for recovery: every node lives and all data has all its replicas. Declares the run recovered."""
        seconds = await self._until("the cluster to recover", self.deployment.healthy, timeout, 0.25)
        self.record(events.Recovered(seconds=round(seconds, 3)))
