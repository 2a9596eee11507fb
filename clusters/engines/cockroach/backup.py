"""Backups of whole databases, in the directory beside the first node's store that ``nodelocal`` URLs name."""

from pathlib import Path

from clusters.engines.cockroach.access import Access
from clusters.engines.cockroach.versions import Dialect


class NodelocalBackups:
    """What ``clusters.engines.Backups`` asks for. ``external`` is the first node's directory of external files."""

    def __init__(self, access: Access, dialect: Dialect, external: Path) -> None:
        self._access = access
        self._dialect = dialect
        self._external = external

    def files(self, name: str) -> Path:
        """The directory of the files of this name."""
        return self._external / name

    async def back_up(self, database: str, name: str, *, timeout: float) -> None:
        """``BACKUP DATABASE``. Raises ``HarnessError``."""
        await self._access.execute(self._dialect.backup(database, _url(name)), timeout=timeout)

    async def restore(self, database: str, name: str, *, to: str, timeout: float) -> None:
        """``RESTORE`` of all tables. Raises ``HarnessError``."""
        await self._access.execute(f"CREATE DATABASE IF NOT EXISTS {to}", timeout=60.0)
        await self._access.execute(self._dialect.restore(database, _url(name), to), timeout=timeout)


def _url(name: str) -> str:
    return f"nodelocal://1/{name}"
