"""CockroachDB on its placements: certificates, flags, readiness, ranges, draining and replacing nodes."""

import asyncio
import functools
import ssl
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clusters.engines import Runner
from clusters.engines.cockroach.introspection import ids, parse_ranges
from clusters.engines.cockroach.versions import Dialect
from clusters.errors import HarnessError
from clusters.model import (
    Credentials,
    Endpoint,
    Health,
    Host,
    NodeResources,
    NodeSpec,
    Placement,
    ProcessSpec,
    RangeInfo,
)
from clusters.waiting import wait_until

if TYPE_CHECKING:
    import asyncpg

SQL_PORT, HTTP_PORT = 26257, 8080
FAST_PACE = {
    "COCKROACH_SCAN_INTERVAL": "10s",
    "COCKROACH_SCAN_MAX_IDLE_TIME": "10ms",
    "COCKROACH_SCAN_MIN_IDLE_TIME": "1ms",
}
"""Makes a server look through its replicas every second or so: all ranges have their replicas 4 s after the start of a fresh
cluster instead of 34 to 37 s (measured on v20.2, two busy cores)."""
DATABASE = "roachproof"


class CockroachDeployment:
    """One CockroachDB cluster, secure, one SQL and one HTTP address a node."""

    def __init__(
        self,
        *,
        binary: Path,
        dialect: Dialect,
        nodes: Sequence[NodeSpec],
        resources: NodeResources,
        tuned: bool,
    ) -> None:
        self._binary = binary
        self._dialect = dialect
        self._resources = resources
        self._environment = {
            "COCKROACH_SKIP_ENABLING_DIAGNOSTIC_REPORTING": "1",
            "COCKROACH_SKIP_UPDATE_CHECK": "1",
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            **(FAST_PACE if tuned else {}),
        }
        self._tuned = tuned
        self._wanted = {node.name: node for node in nodes}
        self._placements: dict[str, Placement] = {}
        self._join: tuple[str, ...] = ()
        self._certs = Path()
        self._run: Runner | None = None
        self._ids: dict[str, int] = {}
        self._store_names: dict[int, str] = {}

    # ---- before the processes -------------------------------------------------------------------------------------

    async def prepare(self, placements: Sequence[Placement], run: Runner, scratch: Path) -> None:
        """Make one authority, a certificate for the nodes and one for the client root. Raises ``HarnessError``."""
        self._run = run
        self._certs = scratch / "certs"
        self._certs.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._placements = {placement.node.name: placement for placement in placements}
        self._join = tuple(f"{p.address}:{SQL_PORT}" for p in placements[:3])
        key = f"--ca-key={scratch / 'ca.key'}"
        await self._cockroach("cert", "create-ca", key)
        await asyncio.gather(
            self._cockroach("cert", "create-node", *(p.address for p in placements), "localhost", key),
            self._cockroach("cert", "create-client", "root", key),
        )

    async def place(self, placement: Placement, run: Runner) -> None:
        """Prepare one more node: the nodes share a certificate, made again with all their addresses."""
        self._run = run
        self._placements[placement.node.name] = placement
        self._wanted[placement.node.name] = placement.node
        addresses = [p.address for p in self._placements.values()]
        await self._cockroach(
            "cert",
            "create-node",
            *addresses,
            "localhost",
            f"--ca-key={self._certs.parent / 'ca.key'}",
            "--overwrite",
        )

    async def _cockroach(self, *arguments: str, timeout: float = 30.0) -> str:
        """Run a subcommand that takes ``--certs-dir``; its standard output. Raises ``HarnessError``."""
        if self._run is None:
            raise HarnessError("cockroach: the deployment was not prepared")
        argv = (str(self._binary), *arguments, f"--certs-dir={self._certs}")
        done = await self._run(argv, env=self._environment, cwd=self._certs.parent, timeout=timeout)
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
        placement = self._placements[node]
        spec = placement.node
        return ProcessSpec(
            name=node,
            argv=(
                str(self._binary),
                "start",
                f"--certs-dir={self._certs}",
                f"--store={placement.store}",
                f"--log-dir={placement.logs}",
                f"--listen-addr={placement.address}:{SQL_PORT}",
                f"--advertise-addr={placement.address}:{SQL_PORT}",
                f"--http-addr={placement.address}:{HTTP_PORT}",
                f"--join={','.join(self._join)}",
                f"--locality=region={spec.region},zone={spec.zone}",
                f"--cache={self._resources.cache_mib}MiB",
                f"--max-sql-memory={self._resources.sql_memory_mib}MiB",
            ),
            env={**self._environment, "HOME": str(placement.home)},
            cwd=placement.home,
            output=placement.logs / "output.txt",
            resources=self._resources,
        )

    @property
    def tuned(self) -> tuple[str, ...]:
        """The faster pace, if it was asked for."""
        return tuple(f"{name} = {value}" for name, value in FAST_PACE.items()) if self._tuned else ()

    # ---- a running cluster ----------------------------------------------------------------------------------------

    async def bootstrap(self) -> None:
        """Initialise the cluster as soon as the first node listens; return when every node takes clients."""
        first = next(iter(self._placements.values()))
        await wait_until(f"{first.node.name} to listen", lambda: _listening(first.address), timeout=60.0, interval=0.02)
        await self._cockroach("init", f"--host={first.address}:{SQL_PORT}")
        for node in self._placements:
            await wait_until(
                f"{node} to take clients", functools.partial(self.accepting, node), timeout=60.0, interval=0.05
            )
        connection = await self.connect()
        try:
            for statement in (
                self._dialect.diagnostics_off,
                *self._dialect.setup,
                f"CREATE DATABASE IF NOT EXISTS {DATABASE}",
            ):
                await connection.execute(statement)
        finally:
            connection.terminate()

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """One a node: every node is a gateway to everything."""
        return tuple(
            Endpoint(name=name, hosts=(Host(node=name, address=p.address, port=SQL_PORT),))
            for name, p in self._placements.items()
        )

    @property
    def credentials(self) -> Credentials:
        """The client root by certificate."""
        return Credentials(
            user="root",
            database=DATABASE,
            tls_ca=self._certs / "ca.crt",
            tls_cert=self._certs / "client.root.crt",
            tls_key=self._certs / "client.root.key",
        )

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self._certs / "ca.crt"))
        context.load_cert_chain(self._certs / "client.root.crt", self._certs / "client.root.key")
        return context

    async def connect(self, node: str | None = None, *, timeout: float = 5.0) -> "asyncpg.Connection[Any]":
        """A connection to this node, or to the first that takes one. Raises ``HarnessError`` when none does."""
        import asyncpg

        refused = []
        for name in [node] if node else list(self._placements):
            try:
                return await asyncpg.connect(
                    host=self._placements[name].address,
                    port=SQL_PORT,
                    user="root",
                    database=DATABASE,
                    ssl=self._tls,
                    timeout=timeout,
                    command_timeout=timeout * 2,
                    server_settings=dict(self._dialect.session),
                )
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                refused.append(f"{name}: {type(error).__name__} {error}".strip())
        raise HarnessError(f"no node takes a connection ({'; '.join(refused)})")

    async def _query(
        self, sql: str, *arguments: object, node: str | None = None, timeout: float = 5.0
    ) -> list[Any]:
        connection = await self.connect(node, timeout=timeout)
        try:
            rows: list[Any] = await connection.fetch(sql, *arguments, timeout=timeout)
        finally:
            connection.terminate()
        return rows

    async def accepting(self, node: str) -> Health:
        """Whether ``SELECT 1`` comes back from this node within 2 s."""
        try:
            async with asyncio.timeout(2.0):
                await self._query("SELECT 1", node=node, timeout=2.0)
        except Exception as error:
            return Health(ok=False, why=f"{type(error).__name__}: {error}".strip(": "))
        return Health(ok=True)

    async def healthy(self) -> Health:
        """Whether every node is live and every range has as many replicas on live nodes as there can be, at most 3."""
        try:
            async with asyncio.timeout(9.0):
                return await self._look()
        except Exception as error:
            return Health(ok=False, why=f"{type(error).__name__}: {error}".strip(": "))

    async def _look(self) -> Health:
        live = await self._live_ids()
        missing = [name for name in self._placements if name not in live]
        if missing:
            return Health(ok=False, why=f"not live: {', '.join(missing)}")
        for name in self._placements:
            if not (answer := await self.accepting(name)).ok:
                return Health(ok=False, why=f"{name} takes no clients ({answer.why})")
        stores = await self._stores(live)
        wanted, rows = min(3, len(live)), await self._query(self._dialect.all_ranges, timeout=8.0)
        replicas = [frozenset(ids(row["replicas"] or "")) for row in rows]
        lacking = [held for held in replicas if len(held & stores.keys()) < wanted or held - stores.keys()]
        if lacking:
            return Health(ok=False, why=f"{len(lacking)} of {len(rows)} ranges lack replicas on live nodes")
        return Health(ok=bool(rows), why="" if rows else "no range reported")

    async def _live_ids(self) -> dict[str, int]:
        """Node ids of the live nodes by our names. Ids do not follow start order; a replaced node has a new one."""
        rows = await self._query(self._dialect.nodes)
        by_address = {f"{p.address}:{SQL_PORT}": name for name, p in self._placements.items()}
        live = {
            by_address[r["address"]]: int(r["node_id"])
            for r in rows
            if r["is_live"] and r["address"] in by_address
        }
        self._ids |= live
        return live

    async def _stores(self, live: Mapping[str, int]) -> dict[int, str]:
        """Our names of the live nodes by the id of their one store, which is what replicas are listed by.

        The ids of a node and its store are drawn apart: nodes that join at the same time may swap them. A node that has
        not reported its store yet is taken to have one of its own number.
        """
        names = {id_: name for name, id_ in live.items()}
        rows = await self._query(self._dialect.stores)
        known = {int(r["node_id"]): int(r["store_id"]) for r in rows}
        return {known.get(id_, id_): name for id_, name in names.items()}

    async def spread(self, table: str, column: str, values: Sequence[int]) -> None:
        """Split the table at ``values`` and lead its pieces from all nodes in turn."""
        stores = await self._stores(await self._live_ids())
        connection = await self.connect()
        try:
            await connection.execute(self._dialect.split(table, tuple(values)))
            await self._relocate(connection, table, [0, *values], sorted(stores))
        finally:
            connection.terminate()

    async def _relocate(
        self, connection: Any, table: str, values: Sequence[int], stores: Sequence[int]
    ) -> None:
        """A lease can move only to a node that has a replica, which a fresh range gets within seconds: so try, and wait."""
        import asyncpg

        for number, value in enumerate(values):
            statement = self._dialect.relocate_lease(table, stores[number % len(stores)], value)
            deadline = asyncio.get_running_loop().time() + 60.0
            while True:
                try:
                    await connection.execute(statement)
                    break
                except asyncpg.PostgresError as error:
                    if asyncio.get_running_loop().time() > deadline:
                        raise HarnessError(f"`{statement}` still fails after 60 s: {error}") from error
                    await asyncio.sleep(0.25)

    async def ranges(self, table: str) -> tuple[RangeInfo, ...]:
        """The table's ranges. Raises ``HarnessError`` when nobody answers."""
        try:
            self._store_names |= await self._stores(await self._live_ids())
            rows = await self._query(self._dialect.table_ranges(table), timeout=10.0)
        except Exception as error:
            raise HarnessError(
                f"the ranges of {table} cannot be listed: {type(error).__name__} {error}"
            ) from error
        return parse_ranges(rows, self._store_names)

    async def drain(self, node: str) -> None:
        """``cockroach node drain``: hands over leases and connections; the process runs on until it is stopped."""
        placement = self._placements[node]
        await self._cockroach(
            "node",
            "drain",
            *self._dialect.drain_flags,
            f"--host={placement.address}:{SQL_PORT}",
            timeout=120.0,
        )

    async def forget(self, node: str) -> None:
        """Decommission the dead node whose address the empty one took over, as an operator would."""
        former = self._ids.get(node)

        async def back() -> Health:
            return Health(ok=node in await self._live_ids(), why=f"{node} is not live yet")

        await wait_until(f"the new {node} to be live", back, timeout=60.0)
        if former is None or former == self._ids[node]:
            return
        host = next(p.address for name, p in self._placements.items() if name != node)
        await self._cockroach(
            "node", "decommission", str(former), "--wait=none", f"--host={host}:{SQL_PORT}", timeout=60.0
        )


async def _listening(address: str) -> Health:
    try:
        _, writer = await asyncio.open_connection(address, SQL_PORT)
    except OSError as error:
        return Health(ok=False, why=str(error))
    writer.close()
    return Health(ok=True)
