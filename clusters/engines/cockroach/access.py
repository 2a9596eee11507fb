"""The harness's own way into a CockroachDB cluster: connections over TLS to a node, or to whichever answers."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clusters.errors import HarnessError
from clusters.model import Health

if TYPE_CHECKING:
    import asyncpg

SQL_PORT = 26257
HTTP_PORT = 8080


class Access:
    """Connections as the client root. ``session`` are variables that each of them is given.

    Without a node's name the one that answered last is asked first: one that is frozen or slow is not waited for each time.
    """

    def __init__(self, certs: Path, *, session: Mapping[str, str]) -> None:
        self._certs = certs
        self._session = dict(session)
        self._addresses: dict[str, str] = {}
        self._order: list[str] = []
        self.database = "defaultdb"

    @property
    def addresses(self) -> dict[str, str]:
        """The address of each node."""
        return dict(self._addresses)

    def add(self, node: str, address: str) -> None:
        """Ask this node, too."""
        self._addresses[node] = address
        self._order.append(node)

    def remove(self, node: str) -> None:
        """Ask this node no more."""
        del self._addresses[node]
        self._order.remove(node)

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """What proves each side to the other: the cluster's authority, and the certificate of the client root."""
        context = ssl.create_default_context(cafile=str(self._certs / "ca.crt"))
        context.load_cert_chain(self._certs / "client.root.crt", self._certs / "client.root.key")
        return context

    async def connect(self, node: str | None = None, *, timeout: float = 5.0) -> "asyncpg.Connection[Any]":
        """A connection to this node, or to the first that takes one. Raises ``HarnessError`` when none does."""
        import asyncpg

        if node is not None and node not in self._addresses:
            raise HarnessError(f"{node} is not a node of this cluster ({', '.join(self._addresses)})")
        refused = []
        for name in [node] if node else list(self._order):
            try:
                connection = await asyncpg.connect(
                    host=self._addresses[name],
                    port=SQL_PORT,
                    user="root",
                    database=self.database,
                    ssl=self.tls,
                    timeout=timeout,
                    command_timeout=timeout * 2,
                    server_settings=self._session,
                )
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                refused.append(f"{name}: {type(error).__name__} {error}".strip())
                if node is None:
                    self._ask_last(name)
            else:
                return connection
        raise HarnessError(f"no node takes a connection ({'; '.join(refused)})")

    def _ask_last(self, name: str) -> None:
        self._order.remove(name)
        self._order.append(name)

    @asynccontextmanager
    async def connected(self, what: str) -> "AsyncIterator[asyncpg.Connection[Any]]":
        """A connection to whoever serves. Raises ``HarnessError`` naming ``what`` was being done when it fails."""
        import asyncpg

        connection = await self.connect()
        try:
            yield connection
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise HarnessError(f"cannot {what}: {type(error).__name__} {error}") from error
        finally:
            connection.terminate()

    async def query(
        self, sql: str, *arguments: object, node: str | None = None, timeout: float = 5.0
    ) -> list[Any]:
        """The rows of a statement. Raises ``HarnessError`` where nobody connects, else what asyncpg raises."""
        connection = await self.connect(node, timeout=timeout)
        asked = node or self._order[0]
        try:
            rows: list[Any] = await connection.fetch(sql, *arguments, timeout=timeout)
        except BaseException:
            if node is None:
                self._ask_last(asked)
            raise
        finally:
            connection.terminate()
        return rows

    async def ask(self, node: str | None, sql: str, *, timeout: float = 5.0) -> list[Any]:
        """The same, of one node if it is named. Raises ``HarnessError`` whatever goes wrong."""
        import asyncpg

        try:
            return await self.query(sql, node=node, timeout=timeout)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise HarnessError(
                f"{node or 'the cluster'} does not answer `{sql}`: {type(error).__name__} {error}"
            ) from error

    async def execute(self, sql: str, *, timeout: float) -> None:
        """Run a statement whose answer tells nothing. Raises ``HarnessError``."""
        async with self.connected(f"run `{sql}`") as connection:
            await connection.execute(sql, timeout=timeout)

    async def accepting(self, node: str) -> Health:
        """Whether ``SELECT 1`` comes back from this node within 2 s."""
        try:
            async with asyncio.timeout(2.0):
                await self.query("SELECT 1", node=node, timeout=2.0)
        except Exception as error:
            return Health(ok=False, why=f"{type(error).__name__}: {error}".strip(": "))
        return Health(ok=True)
