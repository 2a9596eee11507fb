"""CockroachDB on its placements: certificates, flags, readiness, ranges, draining and replacing nodes."""

import asyncio
import functools
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path, PurePath
from typing import Any

from clusters.engines.cockroach.access import HTTP_PORT, SQL_PORT, Access
from clusters.engines.cockroach.backup import NodelocalBackups
from clusters.engines.cockroach.introspection import (
    ids,
    parse_build,
    parse_ranges,
    parse_sizes,
)
from clusters.engines.cockroach.membership import MOST_REPLICAS, Membership
from clusters.engines.cockroach.sampling import Sampling
from clusters.engines.cockroach.version import Version
from clusters.engines.cockroach.versions import Dialect
from clusters.errors import HarnessError
from clusters.model import (
    Credentials,
    Endpoint,
    Health,
    Host,
    Layout,
    NodeGauges,
    NodeResources,
    NodeSpec,
    Placement,
    ProcessSpec,
    RangeInfo,
)
from clusters.sql import Connection, Failure, SqlError
from clusters.substrates import Nodes
from clusters.waiting import wait_until

FAST_PACE = {"COCKROACH_SCAN_INTERVAL": "10s"}
"""Makes a server look through all its replicas in 10 s. By default that takes 10 minutes, and never more than a second
a replica.

Not in less: stores tell each other every 10 s how many replicas they have (``gossip.StoresInterval``). Looking through
them more often than that, all stores give replicas to the one that had too few when it last said so, and the next time
take them away again.
"""
STATEMENTS_KEPT_S = 3600.0
"""So long servers before 21.2 keep their statistics of statements (diagnostics.sql_stat_reset.interval)."""
DATABASE = "roachproof"
_SECRET = re.compile("secret|license|password|token|key")
"""Settings of which the value is nobody's business."""
BOOTSTRAP_S = 80.0
"""A cluster that is not up by then is taken for broken; measured: 3 to 12 s on two busy cores."""
RELOCATE_S = 60.0
"""How long a lease may refuse to move: a fresh range gets its replicas within seconds."""


class CockroachDeployment:
    """One CockroachDB cluster, secure, one SQL and one HTTP address a node."""

    def __init__(
        self,
        *,
        binary: Path,
        build_tag: str,
        dialect: Dialect,
        nodes: Sequence[NodeSpec],
        resources: NodeResources,
        tuned: bool,
    ) -> None:
        self._binary = binary
        self._build_tag = build_tag
        self._dialect = dialect
        self._default = resources
        self._resources: dict[str, NodeResources] = {}
        self._environment = {
            "COCKROACH_SKIP_ENABLING_DIAGNOSTIC_REPORTING": "1",
            "COCKROACH_SKIP_UPDATE_CHECK": "1",
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            **(FAST_PACE if tuned else {}),
        }
        self._tuned = tuned
        self._placements: dict[str, Placement] = {}
        self._join: tuple[str, ...] = ()
        self._certs = Path()
        self._access = Access(self._certs, session=dialect.session)
        self._nodes: Nodes | None = None
        self._program: PurePath = binary
        self._ids: dict[str, set[int]] = {}
        """All ids that the holders of each address ever had."""
        self._store_names: dict[int, str] = {}

    # ---- before the processes -------------------------------------------------------------------------------------

    async def prepare(self, placements: Sequence[Placement], nodes: Nodes) -> None:
        """Make one authority, a certificate for the nodes and one for the client root. Raises ``HarnessError``."""
        self._nodes = nodes
        self._program = await nodes.present(self._binary)
        self._certs = nodes.scratch / "certs"
        self._certs.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._access = Access(self._certs, session=self._dialect.session)
        self._join = tuple(f"{p.address}:{SQL_PORT}" for p in placements[:3])
        await self._cockroach("cert", "create-ca", self._ca_key)
        # One after the other: each command reads all that is in the directory, and refuses a key that is not there yet.
        await self._cockroach("cert", "create-client", "root", self._ca_key)
        await self._certify(*placements)

    async def place(self, placement: Placement) -> None:
        """Prepare one more node."""
        await self._certify(placement, again=True)

    @property
    def _ca_key(self) -> str:
        return f"--ca-key={self._certs.parent / 'ca.key'}"

    async def _certify(self, *placements: Placement, again: bool = False) -> None:
        """Take in new nodes, and put a certificate for their addresses into their homes.

        ``again``: an earlier one was made.
        """
        nodes = self._prepared
        for placement in placements:
            self._placements[placement.node.name] = placement
            self._access.add(placement.node.name, placement.client_address)
        addresses = dict.fromkeys(a for p in placements for a in (p.address, p.client_address))
        overwrite = ["--overwrite"] if again else []
        await self._cockroach("cert", "create-node", *addresses, "localhost", self._ca_key, *overwrite)
        files = {name: (self._certs / name).read_bytes() for name in ("ca.crt", "node.crt", "node.key")}
        for placement in placements:
            for name, content in files.items():
                await nodes.put(placement.node.name, placement.home / "certs" / name, content)

    @property
    def _prepared(self) -> Nodes:
        if self._nodes is None:
            raise HarnessError("cockroach: the deployment was not prepared")
        return self._nodes

    async def _cockroach(self, *arguments: str, timeout: float = 30.0) -> str:
        """Run a subcommand that takes ``--certs-dir``; its standard output. Raises ``HarnessError``."""
        argv = (str(self._binary), *arguments, f"--certs-dir={self._certs}")
        done = await self._prepared.run(argv, env=self._environment, timeout=timeout)
        if done.code:
            raise HarnessError(
                f"`cockroach {' '.join(arguments)}` ended with {done.code}: {done.err.strip() or done.out.strip()}"
            )
        return done.out

    # ---- processes ------------------------------------------------------------------------------------------------

    @property
    def services(self) -> tuple[ProcessSpec, ...]:
        """None: a node is all there is."""
        return ()

    def process(self, node: str) -> ProcessSpec:
        """``cockroach start`` with this node's addresses, store, locality and memory."""
        placement = self._placement(node)
        spec, resources = placement.node, self._resources.get(node, self._default)
        return ProcessSpec(
            name=node,
            argv=(
                str(self._program),
                "start",
                f"--certs-dir={placement.home / 'certs'}",
                f"--store={placement.store}",
                f"--log-dir={placement.logs}",
                f"--listen-addr={placement.address}:{SQL_PORT}",
                f"--advertise-addr={placement.address}:{SQL_PORT}",
                f"--http-addr={placement.address}:{HTTP_PORT}",
                f"--join={','.join(self._join)}",
                f"--locality=region={spec.region},zone={spec.zone}",
                f"--cache={resources.cache_mib}MiB",
                f"--max-sql-memory={resources.sql_memory_mib}MiB",
            ),
            env={**self._environment, "HOME": str(placement.home)},
            cwd=placement.home,
            output=placement.logs / "output.txt",
            resources=resources,
        )

    @functools.cached_property
    def backups(self) -> NodelocalBackups:
        """In the directory of external files of node 1."""
        first = next(iter(self._placements.values()))
        return NodelocalBackups(self._access, self._dialect, self._prepared, first)

    @property
    def tuned(self) -> tuple[str, ...]:
        """The faster pace, if it was asked for."""
        return tuple(f"{name} = {value}" for name, value in FAST_PACE.items()) if self._tuned else ()

    # ---- a running cluster ----------------------------------------------------------------------------------------

    async def give(self, node: str, resources: NodeResources) -> None:
        """Other sizes of cache and SQL memory, and other limits, from the node's next start on."""
        self._placement(node)
        self._resources[node] = resources

    async def shown(self, node: str) -> Mapping[str, float]:
        """The cache and the SQL memory of its command line, as the node itself reports it. Raises ``HarnessError``."""
        (row,) = await self._access.query(self._dialect.arguments, node=node)
        return parse_sizes(str(row["args"]))

    async def bootstrap(self) -> None:
        """Initialise the cluster as soon as the first node listens; return when every node takes clients."""
        until = time.monotonic() + BOOTSTRAP_S

        def left() -> float:
            return max(0.1, until - time.monotonic())

        first = next(iter(self._placements.values()))
        await wait_until(
            f"{first.node.name} to listen",
            lambda: _listening(first.client_address),
            timeout=left(),
            interval=0.02,
        )
        await self._cockroach("init", f"--host={first.client_address}:{SQL_PORT}", timeout=left())
        for node in self._placements:
            await wait_until(
                f"{node} to take clients",
                functools.partial(self.accepting, node),
                timeout=left(),
                interval=0.05,
            )
        async with self._access.connected("set the cluster up") as connection:
            for statement in (
                self._dialect.diagnostics_off,
                *self._dialect.setup,
                f"CREATE DATABASE IF NOT EXISTS {DATABASE}",
            ):
                await connection.execute(statement, timeout=left())
        self._access.database = DATABASE

    async def observe(self) -> Mapping[str, Any]:
        """Each node's own version, which must be the binary's, the cluster settings that somebody set, and those that say how it works.

        Raises ``HarnessError`` when a node runs another build: the dialect was chosen by the binary's.
        """
        servers = {}
        for node in self._placements:
            (row,) = await self._access.query(self._dialect.build_tag, node=node)
            servers[node] = str(row[0])
            if str(parse_build(servers[node])) != str(Version.parse(self._build_tag, origin=str(self._binary))):
                raise HarnessError(f"{node} calls itself {servers[node]!r}, its binary {self._build_tag}")
        rows = await self._access.query(self._dialect.settings_set)
        settings = {row["name"]: row["value"] for row in rows if not _SECRET.search(row["name"])}
        works = await self._access.query(self._dialect.behaviour)
        return {
            "servers": servers,
            "settings": settings,
            "behaviour": {row["name"]: row["value"] for row in works},
        }

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """One a node: every node is a gateway to everything."""
        return tuple(
            Endpoint(name=name, hosts=(Host(node=name, address=p.client_address, port=SQL_PORT),))
            for name, p in self._placements.items()
        )

    @property
    def credentials(self) -> Credentials:
        """The client root by certificate."""
        return replace(self._access.credentials, database=DATABASE)

    async def connect(self, node: str | None = None, *, timeout: float = 5.0) -> Connection:
        """A connection to this node, or to the first that takes one. Raises ``SqlError`` when none does."""
        return await self._access.connect(node, timeout=timeout)

    async def accepting(self, node: str) -> Health:
        """Whether ``SELECT 1`` comes back from this node within 2 s."""
        return await self._access.accepting(node)

    async def healthy(self) -> Health:
        """Whether every node lives and takes clients and every range is whole.

        A range is whole with as many replicas on live nodes as there can be, at most 3, and none on a dead one.
        """
        doing = ["which nodes live"]
        try:
            async with asyncio.timeout(9.0):
                return await self._look(doing)
        except TimeoutError:
            return Health(ok=False, why=f"no answer within 9 s to the question {doing[-1]}")
        except Exception as error:
            return Health(ok=False, why=f"{type(error).__name__}: {error}".strip(": "))

    async def _look(self, doing: list[str]) -> Health:
        live = await self._live_ids()
        missing = [name for name in self._placements if name not in live]
        if missing:
            return Health(ok=False, why=f"not live: {', '.join(missing)}")
        doing.append("whether each node takes clients")
        answers = await asyncio.gather(*map(self.accepting, self._placements))
        for name, answer in zip(self._placements, answers, strict=True):
            if not answer.ok:
                return Health(ok=False, why=f"{name} takes no clients ({answer.why})")
        doing.append("where the replicas are")
        stores = await self._stores(live)
        wanted, rows = (
            min(MOST_REPLICAS, len(live)),
            await self._access.query(self._dialect.all_ranges, timeout=8.0),
        )
        replicas = [frozenset(ids(row["replicas"] or "")) for row in rows]
        lacking = [held for held in replicas if len(held & stores.keys()) < wanted]
        dead = [held for held in replicas if held - stores.keys()]
        if lacking or dead:
            why = [f"{len(lacking)} of {len(rows)} ranges lack replicas on live nodes"] if lacking else []
            why += [f"{len(dead)} have replicas on dead ones"] if dead else []
            return Health(ok=False, why=", ".join(why))
        return Health(ok=bool(rows), why="" if rows else "no range reported")

    async def _live_ids(self) -> dict[str, int]:
        """Node ids of the live nodes by our names. Ids do not follow start order; a replaced node has a new one."""
        rows = await self._access.query(self._dialect.nodes)
        by_address = {f"{p.address}:{SQL_PORT}": name for name, p in self._placements.items()}
        # In their order: where a lost node still seems to live beside the one in its place, the later id is the new
        # one.
        live = {
            by_address[r["address"]]: int(r["node_id"])
            for r in sorted(rows, key=lambda r: int(r["node_id"]))
            if r["is_live"] and r["address"] in by_address
        }
        for name, id_ in live.items():
            self._ids.setdefault(name, set()).add(id_)
        return live

    async def _stores(self, live: Mapping[str, int]) -> dict[int, str]:
        """Our names of the live nodes by the id of their one store, which is what replicas are listed by.

        The ids of a node and its store are drawn apart: nodes that join at the same time may swap them. A node that has
        not reported its store yet is taken to have one of its own number.
        """
        names = {id_: name for name, id_ in live.items()}
        rows = await self._access.query(self._dialect.stores)
        known = {int(r["node_id"]): int(r["store_id"]) for r in rows}
        return {known.get(id_, id_): name for id_, name in names.items()}

    async def spread(self, table: str, column: str, values: Sequence[int]) -> None:
        """Split the table at ``values`` and lead its pieces from all nodes in turn."""
        stores = await self._stores(await self._live_ids())
        async with self._access.connected(f"spread {table}") as connection:
            if values:
                await connection.execute(self._dialect.split(table, tuple(values)), timeout=RELOCATE_S)
            await self._relocate(connection, table, [0, *values], sorted(stores))

    async def _relocate(self, connection: Connection, table: str, values: Sequence[int], stores: Sequence[int]) -> None:
        """A lease can move only to a node that has a replica, which a fresh range gets within seconds: so try, and wait.

        Where there are more nodes than replicas, the next node that has one leads the piece.
        """
        for number, value in enumerate(values):
            turn = number % len(stores)
            wanted = [*stores[turn:], *stores[:turn]]
            tried = wanted if len(stores) > MOST_REPLICAS else wanted[:1]
            until = time.monotonic() + RELOCATE_S
            for store in cycle(tried):
                statement = self._dialect.relocate_lease(table, store, value)
                try:
                    await connection.execute(statement)
                    break
                except SqlError as error:
                    if error.failure is Failure.LOST:
                        raise
                    if time.monotonic() > until:
                        raise error.while_doing(f"`{statement}` still fails after {RELOCATE_S:.0f} s") from error
                    await asyncio.sleep(0.25 if store == tried[-1] else 0)

    async def ranges(self, table: str) -> tuple[RangeInfo, ...]:
        """The table's ranges. Raises ``HarnessError`` when nobody answers, a second node neither."""
        try:
            try:
                rows = await self._ranges(table)
            except SqlError as error:
                if error.failure is not Failure.AMBIGUOUS:
                    raise
                rows = await self._ranges(table)  # the node that was silent is asked last now
        except Exception as error:
            raise HarnessError(f"the ranges of {table} cannot be listed: {type(error).__name__} {error}") from error
        return parse_ranges(rows, self._store_names)

    async def _ranges(self, table: str) -> Sequence[Any]:
        self._store_names |= await self._stores(await self._live_ids())
        return await self._access.query(self._dialect.table_ranges(table), timeout=10.0)

    @functools.cached_property
    def _sampling(self) -> Sampling:
        async def names() -> Mapping[int, str]:
            return await self._stores(await self._live_ids())

        return Sampling(self._access, self._dialect, names)

    async def layout(self) -> Layout:
        """Where all replicas lie now. Raises ``HarnessError`` when nobody says within some seconds."""
        return await self._sampling.layout()

    async def gauges(self) -> Mapping[str, NodeGauges]:
        """What each node's own metrics say; they are refreshed about every 10 s."""
        return await self._sampling.gauges()

    async def moves(self, seconds: float) -> Mapping[str, int]:
        """See ``Dialect.moves``. Raises ``HarnessError``."""
        rows = await self._access.query(self._dialect.moves(seconds), timeout=30.0)
        return {str(row["why"]): int(row["times"]) for row in rows}

    async def by_hand(self, seconds: float) -> Mapping[str, int]:
        """See ``Dialect.by_hand``; of what several nodes tell, the most.

        Raises ``HarnessError``, also where nodes have forgotten it.
        """
        if self._dialect.statements_of_one_node and seconds > STATEMENTS_KEPT_S:
            raise HarnessError(
                f"these servers forget after {STATEMENTS_KEPT_S:g} s which statements they executed, and {seconds:.0f} s are asked for"
            )
        asked = [*self._placements] if self._dialect.statements_of_one_node else [None]
        steps: dict[str, int] = {}
        for node in asked:
            for row in await self._access.query(self._dialect.by_hand(seconds), node=node, timeout=30.0):
                steps[str(row["what"])] = max(int(row["times"]), steps.get(str(row["what"]), 0))
        return steps

    async def drain(self, node: str) -> None:
        """``cockroach node drain``: hands over leases and connections; the process runs on until it is stopped."""
        host = f"--host={self._placement(node).client_address}:{SQL_PORT}"
        await self._cockroach("node", "drain", *self._dialect.drain_flags, host, timeout=120.0)

    @functools.cached_property
    def _membership(self) -> Membership:
        return Membership(
            self._access,
            self._dialect,
            self._cockroach,
            live=self._live_ids,
            stores=self._stores,
            known=self._ids,
            tuned=self._tuned,
        )

    async def forget(self, node: str) -> None:
        """Decommission for good what a node was: the lost one in whose place an empty one runs, or one removed and stopped."""
        if node in self._placements:
            await self._membership.replaced(node)
        else:
            await self._membership.stopped(node)

    async def remove(self, node: str, *, timeout: float) -> None:
        """Have a living node's replicas moved elsewhere, and wait until it holds none; then it is none of the cluster's any more."""
        await self._membership.emptied(node, timeout=timeout)
        del self._placements[node]
        self._access.remove(node)

    async def refusal(self, node: str) -> str | None:
        """How the cluster refuses to let a living node go that it cannot spare; ``None`` where replicas began to leave it."""
        return await self._membership.refusal(node)

    def _placement(self, node: str) -> Placement:
        if node not in self._placements:
            raise HarnessError(f"{node} is not a node of this cluster ({', '.join(self._placements)})")
        return self._placements[node]


async def _listening(address: str) -> Health:
    try:
        _, writer = await asyncio.open_connection(address, SQL_PORT)
    except OSError as error:
        return Health(ok=False, why=str(error))
    writer.close()
    return Health(ok=True)
