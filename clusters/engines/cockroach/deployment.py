"""CockroachDB on its placements: certificates, flags, readiness, ranges, draining and replacing nodes."""

import asyncio
import functools
import os
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from clusters.engines import Engine
from clusters.engines.cockroach.access import HTTP_PORT, SQL_PORT, Access
from clusters.engines.cockroach.adoption import take_in, take_over
from clusters.engines.cockroach.backup import NodelocalBackups
from clusters.engines.cockroach.binary import called
from clusters.engines.cockroach.installed import Builds, Installed
from clusters.engines.cockroach.introspection import parse_build, parse_ranges, parse_sizes
from clusters.engines.cockroach.licences import enough, give
from clusters.engines.cockroach.members import Members
from clusters.engines.cockroach.membership import Membership
from clusters.engines.cockroach.own_settings import SECRET, give_own
from clusters.engines.cockroach.pace import FAST_PACE, FAST_SETTINGS
from clusters.engines.cockroach.spread import spread
from clusters.engines.cockroach.version import Version
from clusters.engines.cockroach.versions import Dialect
from clusters.errors import BadInput, CommandFailed, CommandTimedOut, HarnessError, NotDrained, TimedOut
from clusters.model import (
    Credentials,
    Endpoint,
    Health,
    Host,
    NodeResources,
    Placement,
    ProcessSpec,
    RangeInfo,
    RunningVersion,
    Tells,
)
from clusters.sql import Failure, SqlError
from clusters.substrates import Nodes
from clusters.waiting import wait_until

STATEMENTS_KEPT_S = 3600.0
"""How long servers before 21.2 keep their statistics of statements (diagnostics.sql_stat_reset.interval)."""
DATABASE = "roachproof"
_LISTEN_S = 5.0
_SILENT_S, _PATIENT_S = 10.0, 60.0
"""How long one node of several may take to answer (it may be frozen), and one that nobody stands in for (on a machine
that has no CPU left)."""
BOOTSTRAP_S = 80.0
"""A cluster that is not up by then is taken for broken; measured: 3 to 12 s on two busy cores."""


class CockroachDeployment:
    """One CockroachDB cluster, secure, one SQL and one HTTP address a node."""

    def __init__(
        self, *, build: Installed, resources: NodeResources, tuned: bool, settings: Mapping[str, str] | None = None
    ) -> None:
        """``settings``: cluster settings of the user's own."""
        self._builds = Builds(build)
        self._programs: dict[Path, PurePath] = {}
        self._default = resources
        self._resources: dict[str, NodeResources] = {}
        pace = FAST_PACE if tuned else {}
        self._environment = {
            "COCKROACH_SKIP_ENABLING_DIAGNOSTIC_REPORTING": "1",
            "COCKROACH_SKIP_UPDATE_CHECK": "1",
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            **pace,
        }
        self.tuned = _told(pace)
        """What was changed for the faster pace, if that was asked for, and by the user."""
        self._settings, self._own_settings = FAST_SETTINGS if tuned else {}, settings or {}
        self._join: tuple[str, ...] = ()
        self._access = Access(session=lambda node: self._builds.of(node).dialect.session)
        self._members = Members(self._access, build.dialect)
        self._membership = Membership(self._access, build.dialect, self._cockroach, self._members, tuned=tuned)
        self._nodes: Nodes
        self._found = build.tag
        """What its nodes run at first."""
        self._adopted = self._kept = False
        """Whether the cluster was there already, and whether its version is kept back by us alone."""
        self._store_names: dict[int, str] = {}
        self.connect = self._access.connect
        self.accepting = self._access.accepting
        self.healthy = self._members.whole
        self.layout = self._members.layout
        self.gauges = self._members.gauges
        self.refusal = self._membership.refusal

    # ---- before the processes -------------------------------------------------------------------------------------

    async def prepare(self, placements: Sequence[Placement], nodes: Nodes) -> None:
        """Make one authority, a certificate for the nodes and one for the client root. Raises ``HarnessError``."""
        self._nodes = nodes
        await self._present(self._builds.oldest.binary)
        self._access.certs = nodes.scratch / "certs"
        self._access.certs.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._join = tuple(f"{p.address}:{SQL_PORT}" for p in placements[:3])
        await self._cockroach("cert", "create-ca", self._ca_key)
        # One after the other: each command reads all that is in the directory, and refuses a key that is not there yet.
        await self._cockroach("cert", "create-client", "root", self._ca_key)
        await self._certify(*placements)

    async def adopt(self, placements: Sequence[Placement], nodes: Nodes) -> Callable[[], Awaitable[None]]:
        """Take over a cluster that is there already, with the certificate of root that lies in ``scratch``.

        Returns what leaves it as it was. Raises ``BadInput``, and then nothing was made.
        """
        self._nodes, self._access.certs, self._adopted = nodes, nodes.scratch / "certs", True
        await self._present(self._builds.oldest.binary)
        for placement in placements:
            self._builds.add(placement.node.name)
        await take_over(self._access, self._builds.oldest, placements, DATABASE)
        self._access.database = DATABASE
        return self._left

    async def _left(self) -> None:
        """The version stays kept where a node does not say that it is the build that was found.

        Else a newer one would make itself final within seconds, and what its nodes had before could not read their
        stores any more.
        """
        try:
            await self._access.execute(f"DROP DATABASE {DATABASE} CASCADE", timeout=60.0)
        finally:
            if self._kept:
                await self._let_go()

    async def _let_go(self) -> None:
        others = dict[str, str]()
        for node in self._access.placements:
            try:
                others[node] = f"is {(await self.running(node)).build}"
            except HarnessError as error:
                others[node] = f"does not say its build ({error})"
        if others := {node: how for node, how in others.items() if how != f"is {self._found}"}:
            told = ", ".join(f"{node} {how}" for node, how in others.items())
            raise HarnessError(
                f"cluster.preserve_downgrade_option is left set, as not every node is {self._found} again: {told}; "
                f"give them {self._found}, or keep what they are; then `{self._dialect.free_version}`"
            )
        await self._access.execute(self._dialect.free_version, timeout=10.0)

    async def place(self, placement: Placement) -> None:
        """Prepare one more node. Raises ``BadInput`` where it cannot be one of a cluster that was there already."""
        if self._adopted:
            await take_in(self._access, placement)
            self._builds.add(placement.node.name)
        else:
            await self._certify(placement)

    async def withdraw(self, node: str) -> None:
        """Ask it no more."""
        self._access.remove(node)
        self._builds.remove(node)
        self._set_dialect()

    @property
    def _ca_key(self) -> str:
        return f"--ca-key={self._access.certs.parent / 'ca.key'}"

    async def _certify(self, *placements: Placement) -> None:
        """Take in new nodes, and put a certificate for their addresses into their homes."""
        for placement in placements:
            self._access.add(placement)
            self._builds.add(placement.node.name)
        addresses = dict.fromkeys(a for p in placements for a in (p.address, p.client_address))
        await self._cockroach("cert", "create-node", *addresses, "localhost", self._ca_key, "--overwrite")
        files = {name: (self._access.certs / name).read_bytes() for name in ("ca.crt", "node.crt", "node.key")}
        for placement in placements:
            for name, content in files.items():
                await self._nodes.put(placement.node.name, placement.home / "certs" / name, content)

    async def _present(self, binary: Path) -> None:
        self._programs[binary] = await self._nodes.present(binary)

    async def _cockroach(self, *arguments: str, timeout: float = 30.0, node: str | None = None) -> str:
        """Run a subcommand that takes ``--certs-dir``, of a node's build or of the oldest; its standard output.

        Raises ``CommandFailed``, or another ``HarnessError`` where it was killed.
        """
        build = self._builds.of(node) if node else self._builds.oldest
        argv = (str(build.binary), *arguments, f"--certs-dir={self._access.certs}")
        done = await self._nodes.run(argv, env=self._environment, timeout=timeout)
        if done.code:
            failed = CommandFailed if done.code > 0 else HarnessError
            raise failed(
                f"`cockroach {' '.join(arguments)}` ended with {done.code}: {done.err.strip() or done.out.strip()}"
            )
        return done.out

    # ---- processes ------------------------------------------------------------------------------------------------

    services: tuple[ProcessSpec, ...] = ()
    """None: a node is all there is."""

    def process(self, node: str) -> ProcessSpec:
        """``cockroach start`` with this node's addresses, store, locality and memory; or what runs there already."""
        placement, build = self._access.placement(node), self._builds.of(node)
        spec, resources = placement.node, self._resources.get(node, self._default)
        program = str(self._programs[build.binary])
        tells = Tells(argv=(program, "version"), read=called, version=str(build.version))
        if placement.command:
            output = placement.logs / "output.txt"
            return ProcessSpec(
                name=node,
                argv=placement.command,
                env={},
                cwd=placement.home,
                output=output,
                program=build.binary,
                tells=tells,
            )
        return ProcessSpec(
            name=node,
            argv=(
                program,
                "start",
                f"--certs-dir={placement.home / 'certs'}",
                f"--store={placement.store}",
                f"--log-dir={placement.logs}",
                # A port that is forwarded leads to a pod's loopback address, not to that of its name.
                f"--listen-addr={placement.binds_to or placement.address}:{SQL_PORT}",
                f"--advertise-addr={placement.address}:{SQL_PORT}",
                f"--http-addr={placement.binds_to or placement.address}:{HTTP_PORT}",
                f"--join={','.join(self._join)}",
                f"--locality=region={spec.region},zone={spec.zone}",
                f"--cache={resources.cache_mib}MiB",
                f"--max-sql-memory={resources.sql_memory_mib}MiB",
            ),
            env={**self._environment, "HOME": str(placement.home)},
            cwd=placement.home,
            output=placement.logs / "output.txt",
            resources=resources,
            tells=tells,
        )

    @functools.cached_property
    def backups(self) -> NodelocalBackups | None:
        """In the directory of external files of node 1, unless that is somebody's."""
        if self._adopted:
            return None
        first = next(iter(self._access.placements.values()))
        return NodelocalBackups(self._access, self._dialect, self._nodes, first)

    @property
    def _dialect(self) -> Dialect:
        return self._builds.dialect

    # ---- versions -------------------------------------------------------------------------------------------------

    async def install(self, node: str, engine: Engine) -> None:
        """Another binary, from the node's next start on."""
        await self._present(engine.program)
        if self._adopted:  # there must be a way back, whoever asked for this
            await self.keep_version()
        self._builds.give(node, Installed(binary=engine.program, tag=engine.version))
        self._set_dialect()

    def _set_dialect(self) -> None:
        """Let all parts use the SQL of the oldest build that is there."""
        for asked in (self._members, self._membership, self.backups):
            if asked is not None:
                asked.dialect = self._dialect

    async def running(self, node: str) -> RunningVersion:
        """Its build tag, the version of that, and the cluster's as this node knows it. Raises ``SqlError``."""
        dialect = self._builds.of(node).dialect
        tag, able, active = [
            str((await self._access.query(question, node=node, timeout=_PATIENT_S))[0][0])
            for question in (dialect.build_tag, dialect.able_version, dialect.active_version)
        ]
        return RunningVersion(build=str(parse_build(tag)), able=able, active=active)

    async def keep_version(self) -> str:
        """Set ``cluster.preserve_downgrade_option`` to the version in force, or leave it so. Raises ``SqlError``."""
        if self._adopted:
            (row,) = await self._access.query(self._dialect.kept_version)
            if str(row[0]):
                return str(row[0])
            self._kept = True
        (row,) = await self._access.query(self._dialect.active_version)
        await self._access.execute(self._dialect.keep_version(str(row[0])), timeout=10.0)
        return str(row[0])

    async def licence(self, new: str) -> Health:
        """What the cluster says of its licence, held against what the change asks for. Raises ``SqlError``."""
        (row,) = await self._access.query(self._dialect.licence)
        left_s = None if row["left_s"] is None else float(row["left_s"])
        return enough(self._builds.oldest.version, Version.parse(new), given=bool(row["given"]), left_s=left_s)

    async def finalise(self, *, timeout: float) -> None:
        """Reset that setting; the cluster then raises its version by itself.

        Raises ``SqlError``, ``TimedOut``, and ``BadInput`` of a cluster of others: nothing would lead back.
        """
        if self._adopted:
            raise BadInput(
                "a version is not made final on a cluster that Roachproof did not make, as nothing would lead back; "
                "give --plan back-from-half or back-from-all"
            )
        begun = time.monotonic()
        try:
            await self._access.execute(self._dialect.free_version, timeout=timeout / 2)
        except SqlError as error:
            if error.code != "timeout":  # then it may have been done: servers are asked
                raise

        async def final() -> Health:
            try:
                told = {node: await self.running(node) for node in self._access.placements}
            except SqlError as error:
                return Health(ok=False, why=str(error))
            old = [
                f"{node} is at {one.active}, able to be at {one.able}" for node, one in told.items() if not one.final
            ]
            return Health(ok=not old, why=", ".join(old))

        left_s = timeout - (time.monotonic() - begun)
        await wait_until("the new version to be in force", final, timeout=left_s, interval=0.5)

    # ---- a running cluster ----------------------------------------------------------------------------------------

    async def give(self, node: str, resources: NodeResources) -> None:
        """Other sizes of cache and SQL memory, and other limits, from the node's next start on."""
        self._access.placement(node)
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

        first = next(iter(self._access.placements.values()))
        listening = functools.partial(_listening, first.client_address, self._access.tls)
        await wait_until(f"{first.node.name} to listen", listening, timeout=left(), interval=0.02)
        await self._cockroach("init", f"--host={first.client_address}:{SQL_PORT}", timeout=left())
        for node in self._access.placements:
            accepting = functools.partial(self.accepting, node)
            await wait_until(f"{node} to take clients", accepting, timeout=left(), interval=0.05)
        async with self._access.connected("set the cluster up") as connection:
            own = f"CREATE DATABASE IF NOT EXISTS {DATABASE}"
            pace = (f"SET CLUSTER SETTING {name} = {value}" for name, value in self._settings.items())
            for statement in (self._dialect.diagnostics_off, *self._dialect.setup, *pace, own):
                await connection.execute(statement, timeout=left())
            await give(connection, os.environ, left)
            await give_own(connection, self._own_settings, left)
        self.tuned += _told({**self._settings, **self._own_settings})
        self._access.database = DATABASE

    async def observe(self) -> Mapping[str, Any]:
        """Each node's own version, the cluster settings that somebody set, and those that say how it works.

        Raises ``HarnessError`` when a node runs another build: the dialect was chosen by the binary's.
        """
        servers = {}
        for node in self._access.placements:
            (row,) = await self._access.query(self._dialect.build_tag, node=node)
            servers[node] = str(row[0])
            build = self._builds.of(node)
            if str(parse_build(servers[node])) != str(build.version):
                raise HarnessError(f"{node} calls itself {servers[node]!r}, its binary {build.tag}")
        rows = await self._access.query(self._dialect.settings_set)
        settings = {row["name"]: row["value"] for row in rows if not SECRET.search(row["name"])}
        works = await self._access.query(self._dialect.behaviour)
        return {"servers": servers, "settings": settings, "behaviour": {row["name"]: row["value"] for row in works}}

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """One a node: every node is a gateway to everything."""
        return tuple(
            Endpoint(name=name, hosts=(Host(node=name, address=p.client_address, port=SQL_PORT),))
            for name, p in self._access.placements.items()
        )

    @property
    def credentials(self) -> Credentials:
        """The client root by certificate."""
        return replace(self._access.credentials, database=DATABASE)

    @property
    def administrator(self) -> Credentials:
        """The client root, too."""
        return self.credentials

    async def spread(self, table: str, column: str, values: Sequence[int]) -> None:
        """Split the table at ``values`` and lead its pieces from all nodes in turn."""
        await spread(self._access, self._dialect, table, values, sorted(await self._members.stores()))

    async def ranges(self, table: str) -> tuple[RangeInfo, ...]:
        """The table's ranges. Raises ``HarnessError`` when nobody answers, ``TimedOut`` not in time.

        That is, a second node neither.
        """
        try:
            try:
                rows = await self._ranges(table, timeout=_SILENT_S)
            except SqlError as error:
                if error.failure is not Failure.AMBIGUOUS:
                    raise
                rows = await self._ranges(table, timeout=_PATIENT_S)  # the node that was silent is asked last now
        except Exception as error:
            failed = TimedOut if isinstance(error, SqlError) and error.code == "timeout" else HarnessError
            raise failed(f"the ranges of {table} cannot be listed: {type(error).__name__} {error}") from error
        return parse_ranges(rows, self._store_names)

    async def _ranges(self, table: str, *, timeout: float) -> Sequence[Any]:
        self._store_names |= await self._members.stores(timeout=timeout)
        return await self._access.query(self._dialect.table_ranges(table), timeout=timeout)

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
                f"these servers forget after {STATEMENTS_KEPT_S:g} s which statements they executed, "
                f"and {seconds:.0f} s are asked for"
            )
        asked = [*self._access.placements] if self._dialect.statements_of_one_node else [None]
        steps: dict[str, int] = {}
        for node in asked:
            for row in await self._access.query(self._dialect.by_hand(seconds), node=node, timeout=30.0):
                steps[str(row["what"])] = max(int(row["times"]), steps.get(str(row["what"]), 0))
        return steps

    async def drain(self, node: str, *, timeout: float) -> None:
        """``cockroach node drain``: hands over leases and connections; the process runs on until it is stopped.

        Raises ``NotDrained`` where the command fails, ``TimedOut``.
        """
        host = f"--host={self._access.placement(node).client_address}:{self._access.rpc_port}"
        flags = self._builds.of(node).dialect.drain_flags
        try:
            await self._cockroach("node", "drain", *flags, host, timeout=timeout, node=node)
        except CommandTimedOut as error:
            raise TimedOut(str(error)) from error
        except CommandFailed as error:
            raise NotDrained(str(error)) from error

    async def forget(self, node: str) -> None:
        """Decommission for good what a node was: lost, with an empty one in its place, or removed and stopped."""
        if node in self._access.placements:
            await self._membership.replaced(node)
        else:
            await self._membership.stopped(node)

    async def remove(self, node: str, *, timeout: float) -> None:
        """Have a living node's replicas moved elsewhere, and wait until it holds none; then it is asked no more."""
        await self._membership.emptied(node, timeout=timeout)
        await self.withdraw(node)


async def _listening(address: str, tls: ssl.SSLContext | None) -> Health:
    """Whether a server shows its certificate: where its port is forwarded somebody always takes the connection."""
    try:
        async with asyncio.timeout(_LISTEN_S):
            _, writer = await asyncio.open_connection(address, SQL_PORT, ssl=tls)
    except (OSError, TimeoutError) as error:
        return Health(ok=False, why=f"{type(error).__name__} {error}".strip())
    writer.close()
    return Health(ok=True)


def _told(settings: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name} = {value}" for name, value in settings.items())
