"""The toy's driver behind the protocol of connections."""

import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self

from clusters.sql import Failure, Row, SqlError


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorname", "closed")
        failure = {"closed": Failure.LOST, "SQLITE_LOCKED": Failure.RETRYABLE}.get(code, Failure.REFUSED)
        raise SqlError(f"toy: {error}", failure=failure, code=code) from error


class ToyConnection:
    def __init__(self) -> None:
        self._raw = sqlite3.connect(":memory:", isolation_level=None)
        self._raw.row_factory = sqlite3.Row

    def _ask(self, sql: str, arguments: Sequence[object]) -> sqlite3.Cursor:
        with _told():
            return self._raw.execute(sql, {str(n): value for n, value in enumerate(arguments, 1)})

    async def execute(self, sql: str, *arguments: object, timeout: float | None = None) -> int:
        return max(0, self._ask(sql, arguments).rowcount)

    async def query(self, sql: str, *arguments: object, timeout: float | None = None) -> Sequence[Row]:
        return self._ask(sql, arguments).fetchall()

    async def value(self, sql: str, *arguments: object, timeout: float | None = None) -> Any:
        row = self._ask(sql, arguments).fetchone()
        return row[0] if row else None

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        await self.execute("BEGIN")
        try:
            yield
        except BaseException:
            await self.execute("ROLLBACK")
            raise
        await self.execute("COMMIT")

    def terminate(self) -> None:
        self._raw.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.terminate()
