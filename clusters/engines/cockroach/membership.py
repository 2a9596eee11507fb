"""How nodes leave a running CockroachDB cluster: decommissioned, refused, forgotten."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from clusters.engines.cockroach.access import SQL_PORT, Access
from clusters.engines.cockroach.introspection import parse_memberships
from clusters.engines.cockroach.members import MOST_REPLICAS, Members
from clusters.engines.cockroach.versions import Dialect
from clusters.errors import CommandTimedOut, HarnessError, TimedOut
from clusters.model import Health
from clusters.sql import SqlError
from clusters.waiting import wait_until

GONE = "decommissioned"
REFUSED = "Cannot decommission nodes"
"""What the command of 23.1 and later says at the end where its checks find ranges that cannot be moved."""
LET_GO_S = 600.0
"""How long an emptied node may take to be decommissioned for good; measured: a second."""
REFUSAL_S = {True: 20.0, False: 60.0}
"""How long replicas must stay on a node that cannot be spared: at the fast pace twice as long as servers take to look
through all of theirs; at the default one the first of 174 left within seconds, the last after 190 s."""

POLL_S = 1.0
"""How often to look whether they stay."""


Command = Callable[..., Awaitable[str]]
"""Runs a subcommand of ``cockroach`` to its end, with a ``timeout``, and returns what it printed.

Raises ``HarnessError`` with what it said when it fails.
"""


class Membership:
    """``tuned``: whether servers look through their replicas faster than by default."""

    def __init__(self, access: Access, dialect: Dialect, command: Command, members: Members, *, tuned: bool) -> None:
        self._access = access
        self.dialect = dialect
        self._command = command
        self._members = members
        self._tuned = tuned

    async def replaced(self, node: str) -> None:
        """Decommission for good the lost node in whose place an empty one runs.

        The lost one's replicas are made anew at once, not only when it counts as dead for good; that is not waited for.
        """
        # Of the node itself: for some seconds the cluster takes the lost one for living.
        (row,) = await self._access.query("SELECT crdb_internal.node_id() AS node_id", node=node)
        new = int(row["node_id"])

        async def back() -> Health:
            try:
                live = await self._members.live()
            except SqlError as error:
                return Health(ok=False, why=str(error))
            return Health(ok=live.get(node) == new, why=f"the new {node} is not live yet")

        await wait_until(f"the new {node} to be live", back, timeout=60.0)
        former = self._members.known.pop(node) - {new}
        self._members.known[node] = {new}
        if former:
            await self._decommission(node, former, wait="none", timeout=60.0)

    async def stopped(self, node: str) -> None:
        """Decommission for good a node that was emptied and whose process has ended."""
        was = self._members.known.pop(node, set())
        await self._decommission(node, was, wait="all", timeout=LET_GO_S)

        async def gone() -> Health:
            # The command itself prints what the node that it asked knew before.
            kept = {id_: how for id_, how in (await self._memberships()).items() if id_ in was and how != GONE}
            return Health(ok=not kept, why=", ".join(f"node {id_}: {how}" for id_, how in kept.items()))

        await wait_until(f"the cluster to let go of {node}", gone, timeout=60.0, interval=0.25)

    async def emptied(self, node: str, *, timeout: float) -> None:
        """Have a living node's replicas moved elsewhere, and wait until it holds none.

        Raises ``TimedOut`` when it still has some then, or the command itself says that they cannot be moved;
        ``HarnessError`` when nobody answers.

        It is decommissioned for good only once it was stopped: the others refuse to speak with a node that is, and so
        it would not drain at SIGTERM (v20.2 runs on for minutes). Refused where fewer nodes than replicas would be
        left.
        """
        if (nodes := len(self._access.addresses)) <= MOST_REPLICAS:
            raise HarnessError(
                f"{node} cannot be removed: {nodes} nodes hold {MOST_REPLICAS} replicas of everything; add a node first"
            )
        id_, store = await self._id_and_store(node)
        until = time.monotonic() + timeout
        try:
            # Asked once only: asked when no replica is left, the command would decommission the node for good.
            await self._decommission(node, [id_], wait="none", timeout=timeout)
        except CommandTimedOut as error:
            # Where nobody answers this either, the machine may be at fault, and nothing was learnt.
            if kept := sum((await self._held(store)).values()):
                raise TimedOut(
                    f"{node} was not let go and has {kept} replicas (later versions check first whether every range "
                    f"can be moved, and try those that cannot again and again): {error}"
                ) from error
        except HarnessError as error:
            if REFUSED in str(error):
                raise TimedOut(f"{node} was not let go: {error}") from error
            raise

        async def empty() -> Health:
            try:
                left = await self._held(store)
            except HarnessError as error:
                return Health(ok=False, why=str(error))
            return Health(ok=not any(left.values()), why=f"{sum(left.values())} replicas left")

        left = max(0.1, until - time.monotonic())
        await wait_until(f"{node} to hold no replica", empty, timeout=left, interval=0.5)

    async def refusal(self, node: str) -> str | None:
        """How the cluster refuses to let a living node go that it cannot spare; ``None`` where replicas began to leave.

        The order is given without the checks that later versions make first: so the servers must keep the replicas
        where they are, which is watched for a while. (Those checks try each range that cannot be moved again and again,
        one after another, and silence is no refusal.)
        """
        id_, store = await self._id_and_store(node)
        before, watched = await self._held(store), REFUSAL_S[self._tuned]
        try:
            await self._decommission(node, [id_], wait="none", timeout=60.0, flags=self.dialect.decommission_unchecked)
            if not await self._stay(store, before, watched):
                return None
        finally:
            await self._command("node", "recommission", str(id_), self._other(node), timeout=60.0)
        return f"all {sum(before.values())} replicas stayed where they were for {watched:.0f} s"

    async def _stay(self, store: int, before: Mapping[int, bool], seconds: float) -> bool:
        """Whether a store keeps all its replicas for so long. Raises ``HarnessError`` when nobody says at the end."""
        until = time.monotonic() + seconds
        while True:
            await asyncio.sleep(POLL_S)
            last = time.monotonic() > until
            try:
                now = await self._held(store)
            except HarnessError:
                if last:
                    raise
                continue
            if any(before.get(range_) and not held for range_, held in now.items()):
                return False
            if last:
                return True

    async def _memberships(self) -> dict[int, str]:
        """What each node is, by id, as the cluster tells it."""
        first = next(iter(self._access.addresses.values()))
        said = await self._command(*self.dialect.node_status, f"--host={first}:{SQL_PORT}")
        return parse_memberships(said)

    async def _id_and_store(self, node: str) -> tuple[int, int]:
        live = await self._members.live()
        if node not in live:
            raise HarnessError(f"{node} is not live and cannot be removed in good order")
        return live[node], next(store for store, name in (await self._members.stores(live)).items() if name == node)

    async def _held(self, store: int) -> Mapping[int, bool]:
        """Of each range whether this store has a replica of it. Raises ``HarnessError`` when nobody says."""
        if not (replicas := await self._members.replicas()):
            raise HarnessError("no range was listed")
        return {range_: store in held for range_, held in replicas.items()}

    def _other(self, node: str) -> str:
        """The flag that asks another node than this one, where there is one."""
        asked = min(self._access.addresses.items(), key=lambda known: known[0] == node)
        return f"--host={asked[1]}:{SQL_PORT}"

    async def _decommission(
        self, node: str, was: Iterable[int], *, wait: str, timeout: float, flags: Sequence[str] = ()
    ) -> None:
        """``cockroach node decommission`` of what a node was, by way of another where there is one."""
        chosen = [str(id_) for id_ in sorted(was)]
        await self._command(
            "node", "decommission", *chosen, f"--wait={wait}", *flags, self._other(node), timeout=timeout
        )
