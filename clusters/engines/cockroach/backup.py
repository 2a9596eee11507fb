"""Backups of whole databases, in the directory beside the first node's store that ``nodelocal`` URLs name."""

from typing import BinaryIO

from clusters.engines.cockroach.access import Access
from clusters.engines.cockroach.versions import Dialect
from clusters.errors import HarnessError
from clusters.model import Placement
from clusters.sql import quoted
from clusters.substrates import Nodes

URL = "nodelocal://1"
DELETE_S = 60.0
"""How long the deletion of a backup may take."""


class NodelocalBackups:
    """What ``clusters.engines.Backups`` asks for. ``first`` is the first node, which has the files below its store."""

    def __init__(self, access: Access, dialect: Dialect, nodes: Nodes, first: Placement) -> None:
        self._access = access
        self.dialect = dialect
        self._nodes = nodes
        self._node = first.node.name
        self._external = first.store / "extern"
        self._made: dict[str, Dialect] = {}
        """How those were made that were made here: they are restored in the same way, also by a later version."""

    async def save(self, name: str, into: BinaryIO) -> None:
        """Archive the files. Raises ``HarnessError``."""
        await self._nodes.archive(self._node, self._external / name, into)

    async def load(self, name: str, out_of: BinaryIO) -> None:
        """Put archived files there. Raises ``HarnessError``."""
        await self._nodes.extract(self._node, self._external / name, out_of)

    async def discard(self, name: str) -> None:
        """Delete the files. Raises ``HarnessError``."""
        argv = ["/bin/rm", "-r", str(self._external / name)]
        done = await self._nodes.run(argv, env={}, timeout=DELETE_S, node=self._node)
        if done.code:
            raise HarnessError(f"the backup {name} cannot be deleted: {done.err.strip()}")

    async def back_up(self, database: str, name: str, *, timeout: float, node: str | None = None) -> None:
        """``BACKUP DATABASE``. Raises ``SqlError``."""
        self._made[name] = self.dialect
        await self._access.execute(self.dialect.backup(database, f"{URL}/{name}"), timeout=timeout, node=node)

    async def restore(self, database: str, name: str, *, to: str, timeout: float, node: str | None = None) -> None:
        """``RESTORE`` of all tables. Raises ``SqlError``."""
        await self._access.execute(f"CREATE DATABASE IF NOT EXISTS {quoted(to)}", timeout=60.0, node=node)
        made = self._made.get(name, self.dialect)
        await self._access.execute(made.restore(database, f"{URL}/{name}", to), timeout=timeout, node=node)
