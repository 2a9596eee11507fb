"""The control on its placements: PostgreSQL servers under Patroni, with etcd beside them."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from clusters.engines import Engine
from clusters.engines.postgres import configuration, files, rest, sql
from clusters.engines.postgres.binaries import Binaries
from clusters.engines.postgres.configuration import Replication, Secrets
from clusters.engines.postgres.version import why_not_from
from clusters.errors import BadInput, HarnessError, NotDrained
from clusters.model import (
    Credentials,
    Endpoint,
    Health,
    Host,
    NodeGauges,
    NodeResources,
    NodeSpec,
    Placement,
    ProcessSpec,
    RangeInfo,
    RunningVersion,
)
from clusters.sql import Connection, Failure, SqlError, pgwire
from clusters.substrates import Nodes
from clusters.waiting import wait_until

BOOTSTRAP_S = 80.0
"""A cluster that is not up by then is taken for broken; measured: 5 to 12 s on two busy cores."""

OBSERVED = [
    "fsync",
    "full_page_writes",
    "max_connections",
    "shared_buffers",
    "synchronous_commit",
    "synchronous_standby_names",
]

ANSWER_S = 2.5
"""How long one node may take to say how it is: an answer takes milliseconds, and callers wait 3 s in all."""


def _not_offered(why: str) -> Any:
    async def refuse(*_: object, **__: object) -> Any:
        raise HarnessError(f"not to be had of the control: {why}")

    return refuse


class PostgresDeployment:
    """PostgreSQL with automatic failover on the nodes of one cluster.

    Clients and replicas identify themselves by SCRAM over plain connections on addresses of this machine: the wheel's
    PostgreSQL is built without TLS. Passwords are random for each cluster and stand in files of mode 0600 only.
    """

    def __init__(
        self,
        *,
        binaries: Binaries,
        nodes: Sequence[NodeSpec],
        resources: NodeResources,
        replication: Replication,
    ) -> None:
        self._binaries = binaries
        self._declared = len(nodes)
        self._resources = resources
        self._given: dict[str, NodeResources] = {}
        self._installed: dict[str, tuple[str, PurePath]] = {}
        """What nodes were given since they were placed: a version and where its programs are."""
        self._replication = replication
        self._secrets = Secrets()
        self._ports = files.PREFERRED_PORTS
        self._placed: dict[str, Placement] = {}
        self._nodes: Nodes
        self._programs: files.Programs
        self._etcd: Placement
        self.services: tuple[ProcessSpec, ...] = ()
        """etcd: one member, outside the fault model."""
        self._latest_primary = ""

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """One way in: all hosts, of which the primary accepts."""
        return (Endpoint(name="primary", hosts=tuple(map(self._sql, self._placed)), primary_only=True),)

    @property
    def credentials(self) -> Credentials:
        """The application's: it owns the database, reads statistics, makes roles and databases, and is no superuser."""
        return Credentials(user=configuration.SCOPE, database=configuration.SCOPE, password=self._secrets.application)

    backups: None = None
    """None are made here."""

    @property
    def tuned(self) -> tuple[str, ...]:
        """What differs from the defaults of Patroni and PostgreSQL."""
        return configuration.tuned(self._replication, len(self._placed) or self._declared)

    def process(self, node: str) -> ProcessSpec:
        """The node's Patroni, which starts PostgreSQL (in a session of its own)."""
        given = self._given.get(node, self._resources)
        programs = replace(self._programs, bin_dir=self._bin_dir(node))
        return files.patroni_process(self._placement(node), programs, given)

    async def give(self, node: str, resources: NodeResources) -> None:
        """Another size of PostgreSQL's buffers, and other limits, from the node's next start on."""
        placement = self._placement(node)
        self._given[node] = resources
        await self._configure(placement)

    async def shown(self, node: str) -> Mapping[str, float]:
        """The size of the node's shared buffers."""
        async with sql.session(self._sql(node), self.administrator, timeout=ANSWER_S) as connection:
            blocks = "SELECT setting::FLOAT8 * 8 / 1024 FROM pg_settings WHERE name = 'shared_buffers'"
            return {"cache_mib": float(await connection.value(blocks))}

    async def install(self, node: str, engine: Engine) -> None:
        """Another version of PostgreSQL's programs, from the node's next start on; of the same major version.

        They must say so themselves: Patroni would try for ever to start what cannot be started.
        """
        placement = self._placement(node)
        has, _ = self._installed.get(node, (self._binaries.postgres_version, None))
        if why := why_not_from(has, engine.version):
            raise BadInput(f"{node}: {why}")
        bin_dir = await files.bin_dir(engine.program, self._nodes)
        await files.check(placement, replace(self._programs, bin_dir=bin_dir), engine.version, self._nodes)
        self._installed[node] = engine.version, bin_dir
        await self._configure(placement)

    async def running(self, node: str) -> RunningVersion:
        """The server's version; data and protocol of all minor versions are those of the major one."""
        async with sql.session(self._sql(node), self.administrator, timeout=ANSWER_S) as connection:
            version = str(await connection.value("SHOW server_version"))
        major = version.partition(".")[0]
        build = f"v{version} (Patroni {self._binaries.patroni_version})"
        return RunningVersion(build=build, able=major, active=major)

    async def keep_version(self) -> str:
        """Nothing: a minor version may always be taken back."""
        return ""

    async def licence(self, new: str) -> Health:
        """None is needed."""
        return Health(ok=True, why="none is needed")

    async def finalise(self, *, timeout: float) -> None:
        """Nothing, as there is no more to be made final."""

    async def prepare(self, placements: Sequence[Placement], nodes: Nodes) -> None:
        """Choose ports and write every node's configuration; Patroni itself sets PostgreSQL up."""
        self._nodes = nodes
        self._etcd = await nodes.beside("etcd")
        self._programs = await files.Programs.present(self._binaries, nodes)
        self._ports = files.free_ports([placement.address for placement in placements])
        self._placed = {placement.node.name: placement for placement in placements}
        for placement in placements:
            await self._configure(placement)
        self.services = (files.etcd_process(self._etcd, self._ports, self._programs),)

    async def place(self, placement: Placement) -> None:
        """Configure one more node, and ask for as many acknowledgements as make a majority with it."""
        primary = await self._primary()
        self._placed[placement.node.name] = placement
        await self._configure(placement)
        keys = configuration.synchronous(self._replication, len(self._placed))
        await self._patroni(primary, "PATCH", "/config", timeout=10.0, body=keys)

    async def withdraw(self, node: str) -> None:
        """Look at it no more, and ask for as many acknowledgements as make a majority without it."""
        del self._placed[node]
        keys = configuration.synchronous(self._replication, len(self._placed))
        await self._patroni(await self._primary(), "PATCH", "/config", timeout=10.0, body=keys)

    async def bootstrap(self) -> None:
        """Wait for the primary that Patroni makes, create the application's user and database, wait until all is whole.

        No less than whole: Patroni 4.1.5 starts a strict quorum cluster with ``synchronous_standby_names`` set to ``ANY
        None (*)``, which PostgreSQL refuses, and so acknowledges alone until the first replicas stream.
        """
        # Not for the first that takes SQL: Patroni may restart that once more before it makes it the leader.
        spent = await wait_until("Patroni to make a primary", self._led, timeout=BOOTSTRAP_S)
        primary = self._sql(self._latest_primary)
        async with sql.session(primary, self.administrator, timeout=BOOTSTRAP_S - spent) as connection:
            await sql.create_application(connection, self.credentials)
        await wait_until("every node to take clients", self._all_accepting, timeout=BOOTSTRAP_S - spent)
        await wait_until("replication to begin", self.healthy, timeout=BOOTSTRAP_S - spent)

    async def observe(self) -> Mapping[str, Any]:
        """The primary's version, and the settings on which its promises rest."""
        async with sql.session(self._sql(await self._primary()), self.administrator, timeout=ANSWER_S) as connection:
            version = await connection.value("SELECT version()")
            settings = "SELECT name, setting FROM pg_settings WHERE name = ANY($1::text[])"
            rows = await connection.query(settings, OBSERVED)
        return {"servers": {"primary": version}, "settings": {row["name"]: row["setting"] for row in rows}}

    async def accepting(self, node: str) -> Health:
        """Whether the application can query this node, be it primary or replica."""
        try:
            async with sql.session(self._sql(node), self.credentials, timeout=ANSWER_S) as connection:
                await connection.value("SELECT 1")
        except HarnessError as error:
            return Health(ok=False, why=str(error))
        return Health(ok=True)

    async def healthy(self) -> Health:
        """One primary, all others streaming from it in the mode that was asked for, Patroni in charge."""
        try:
            seen = await self._look()
            primary, why = sql.only_primary(seen)
            if primary is None:
                return Health(ok=False, why=why)
            answer = await self._patroni(primary, "GET", "/cluster", timeout=ANSWER_S)
            return sql.whole(seen, json.loads(answer), self._replication)
        except (HarnessError, ValueError) as error:
            return Health(ok=False, why=str(error))

    async def connect(self, node: str | None = None, *, timeout: float = 5.0) -> Connection:
        """A connection of the application's user to this node, or to the primary.

        The primary is looked for host by host, each with its share of ``timeout``: a frozen host accepts connections
        and says nothing.
        """
        if node is not None:
            return await pgwire.connect(self._sql(node), self.credentials, timeout=timeout)
        refused = []
        share = timeout / max(len(self._placed), 1)
        for name in sorted(self._placed, key=lambda name: name != self._latest_primary):
            try:
                connection = await pgwire.connect(self._sql(name), self.credentials, timeout=share, primary=True)
            except SqlError as error:
                refused.append(str(error))
            else:
                self._latest_primary = name
                return connection
        raise SqlError(f"no primary to connect to: {'; '.join(refused)}", failure=Failure.LOST, code="no primary")

    async def spread(self, table: str, column: str, values: Sequence[int]) -> None:
        """Nothing: PostgreSQL keeps a table whole."""

    async def ranges(self, table: str) -> tuple[RangeInfo, ...]:
        """The table as one range: its object id, leased to the primary, replicas wherever it is streamed to."""
        seen = await self._look()
        primary, why = sql.only_primary(seen)
        if primary is None:
            raise HarnessError(f"table {table}: {why}")
        async with sql.session(self._sql(primary), self.credentials, timeout=ANSWER_S) as connection:
            oid = await connection.value("SELECT to_regclass($1)::oid::bigint", table)
        if oid is None:
            raise HarnessError(f"table {table}: there is none of this name in {self.credentials.database}")
        streaming = (name for name, (state, _) in seen[primary].replicas.items() if state == "streaming")
        return (RangeInfo(range_id=oid, start="", lease=primary, replicas=(primary, *sorted(streaming))),)

    async def drain(self, node: str, *, timeout: float) -> None:
        """Let another node take over if this is the primary; a replica has nothing to hand over.

        Measured: 2.5 s. Raises ``NotDrained`` where Patroni refuses, or gives up (after 20 s), ``TimedOut``.
        """
        self._placement(node)
        if await self._primary() != node:
            return
        until = time.monotonic() + timeout
        try:
            await self._patroni(node, "POST", "/switchover", timeout=timeout, body={"leader": node})
        except rest.Refused as error:
            raise NotDrained(str(error)) from error

        async def taken_over() -> Health:
            primary, why = sql.only_primary(await self._look())
            return Health(ok=primary not in (None, node), why=why or f"{node} is the primary")

        await wait_until(f"another node to take over from {node}", taken_over, timeout=until - time.monotonic())

    async def forget(self, node: str) -> None:
        """Nothing: Patroni takes an empty node of a known name for what it is and drops what the former one left."""

    layout = _not_offered("it has no ranges: every node has a copy of everything")
    by_hand = moves = _not_offered("it keeps no log of where data was moved")
    remove = refusal = _not_offered("it has no way to take a member out for good")

    async def gauges(self) -> Mapping[str, NodeGauges]:
        """None: there are no ranges."""
        return {}

    @property
    def administrator(self) -> Credentials:
        """The superuser."""
        return Credentials(user="postgres", database="postgres", password=self._secrets.superuser)

    def _placement(self, node: str) -> Placement:
        if node not in self._placed:
            raise HarnessError(f"{node} is not a node of this cluster ({', '.join(self._placed)})")
        return self._placed[node]

    def _sql(self, node: str) -> Host:
        return Host(node=node, address=self._placement(node).client_address, port=self._ports.sql)

    def _bin_dir(self, node: str) -> PurePath:
        return self._installed[node][1] if node in self._installed else self._programs.bin_dir

    async def _configure(self, placement: Placement) -> None:
        """Put the node's Patroni configuration there, readable by nobody else (JSON, which Patroni reads as YAML)."""
        settings = configuration.patroni(
            placement,
            nodes=max(self._declared, len(self._placed)),
            etcd=f"{self._etcd.address}:{self._ports.etcd_client}",
            ports=self._ports,
            passwords=self._secrets,
            bin_dir=self._bin_dir(placement.node.name),
            resources=self._given.get(placement.node.name, self._resources),
            replication=self._replication,
        )
        content = json.dumps(settings, indent=1).encode()
        await self._nodes.put(placement.node.name, files.configuration_file(placement), content)

    async def _look(self) -> Mapping[str, sql.Seen]:
        asked = (sql.inspect(self._sql(name), self.administrator, timeout=ANSWER_S) for name in self._placed)
        return dict(zip(self._placed, await asyncio.gather(*asked), strict=True))

    async def _primary(self) -> str:
        primary, why = sql.only_primary(await self._look())
        if primary is None:
            raise HarnessError(why)
        return primary

    async def _led(self) -> Health:
        """Whether some node's Patroni says that it is the leader and runs; remembers which."""
        refused = []
        for name in self._placed:
            try:
                await self._patroni(name, "GET", "/primary", timeout=ANSWER_S)
            except HarnessError as error:
                refused.append(str(error))
            else:
                self._latest_primary = name
                return Health(ok=True)
        return Health(ok=False, why="; ".join(refused))

    async def _all_accepting(self) -> Health:
        states = await asyncio.gather(*map(self.accepting, self._placed))
        refused = [state.why for state in states if not state.ok]
        return Health(ok=not refused, why="; ".join(refused))

    async def _patroni(
        self, node: str, method: str, path: str, *, timeout: float, body: Mapping[str, Any] | None = None
    ) -> str:
        """What the node's Patroni answers. Raises ``HarnessError`` when it does not, or refuses."""
        host = Host(node=node, address=self._placement(node).client_address, port=self._ports.rest)
        return await rest.ask(host, method, path, timeout=timeout, body=body, password=self._secrets.rest)
