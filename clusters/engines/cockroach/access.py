"""The harness's own way into a CockroachDB cluster: connections over TLS to a node, or to whichever answers."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from clusters.errors import HarnessError
from clusters.model import Credentials, Health, Host, Placement
from clusters.sql import Connection, Failure, SqlError, pgwire

SQL_PORT = 26257
HTTP_PORT = 8080


class Access:
    """Connections as the client root. ``session`` are variables that those to a node are given.

    Without a node's name the one that answered last is asked first: one that is frozen or slow is not waited for each
    time.
    """

    def __init__(self, *, session: Callable[[str], Mapping[str, str]]) -> None:
        self.certs = Path()
        """The directory of the certificates; made before the first connection."""
        self._session = session
        self._order: list[str] = []
        self.placements: dict[str, Placement] = {}
        """The nodes of the cluster."""
        self.database = "defaultdb"
        self.rpc_port = SQL_PORT
        """Where commands reach a node; operators give SQL a port of its own."""

    @property
    def addresses(self) -> dict[str, str]:
        """Where clients reach each node."""
        return {name: placement.client_address for name, placement in self.placements.items()}

    def add(self, placement: Placement) -> None:
        """Take in one more node."""
        self.placements[placement.node.name] = placement
        self._order.append(placement.node.name)

    def remove(self, node: str) -> None:
        """Ask this node no more."""
        del self.placements[node]
        self._order.remove(node)

    def placement(self, node: str) -> Placement:
        """Where a node is. Raises ``HarnessError`` for one that is not there."""
        if node not in self.placements:
            raise HarnessError(f"{node} is not a node of this cluster ({', '.join(self.placements)})")
        return self.placements[node]

    @property
    def credentials(self) -> Credentials:
        """The client root by certificate."""
        return Credentials(
            user="root",
            database=self.database,
            tls_ca=self.certs / "ca.crt",
            tls_cert=self.certs / "client.root.crt",
            tls_key=self.certs / "client.root.key",
        )

    @cached_property
    def tls(self) -> ssl.SSLContext | None:
        """What proves each side to the other: the cluster's authority, and the certificate of the client root."""
        return pgwire.tls_context(self.credentials)

    async def connect(self, node: str | None = None, *, timeout: float = 5.0) -> Connection:
        """A connection to this node, or to the first that takes one. Raises ``SqlError`` when none does.

        Raises ``HarnessError`` for a node that is not there.
        """
        refused: list[SqlError] = []
        for name in [node] if node else list(self._order):
            address = self.placement(name).client_address
            try:
                return await pgwire.connect(
                    Host(node=name, address=address, port=SQL_PORT),
                    self.credentials,
                    tls=self.tls,
                    timeout=timeout,
                    statement_timeout=timeout * 2,
                    settings=self._session(name),
                )
            except SqlError as error:
                refused.append(error)
                if node is None:
                    self._ask_last(name)
        raise SqlError(
            f"no node takes a connection ({'; '.join(map(str, refused))})",
            failure=refused[-1].failure if refused else Failure.LOST,
            code=refused[-1].code if refused else "",
        )

    def _ask_last(self, name: str) -> None:
        self._order.remove(name)
        self._order.append(name)

    @asynccontextmanager
    async def connected(self, what: str, *, node: str | None = None) -> AsyncIterator[Connection]:
        """A connection to this node, or to whoever serves.

        Raises ``SqlError`` naming ``what`` was being done when it fails.
        """
        async with await self.connect(node) as connection:
            try:
                yield connection
            except SqlError as error:
                raise error.while_doing(f"cannot {what}") from error

    async def query(self, sql: str, *, node: str | None = None, timeout: float = 5.0) -> Sequence[Any]:
        """The rows of a statement, of one node if it is named. Raises ``SqlError``."""
        connection = await self.connect(node, timeout=timeout)
        asked = node or self._order[0]
        try:
            async with connection:
                return await connection.query(sql, timeout=timeout)
        except BaseException as error:
            if node is None:
                self._ask_last(asked)
            if isinstance(error, SqlError):
                raise error.while_doing(f"no answer to `{sql}`") from error
            raise

    async def execute(self, sql: str, *, timeout: float, node: str | None = None) -> None:
        """Run a statement whose answer tells nothing, on this node or any. Raises ``SqlError``."""
        async with self.connected(f"run `{sql}`", node=node) as connection:
            await connection.execute(sql, timeout=timeout)

    async def accepting(self, node: str) -> Health:
        """Whether ``SELECT 1`` comes back from this node within 2 s."""
        try:
            async with asyncio.timeout(2.0):
                await self.query("SELECT 1", node=node, timeout=2.0)
        except Exception as error:
            return Health(ok=False, why=f"{type(error).__name__}: {error}".strip(": "))
        return Health(ok=True)
