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


class ToyStatement:
    def __init__(self, connection: "ToyConnection", sql: str) -> None:
        self._connection = connection
        self._sql = sql

    async def execute(self, *arguments: object) -> int:
        return await self._connection.execute(self._sql, *arguments)

    async def query(self, *arguments: object) -> Sequence[Row]:
        return await self._connection.query(self._sql, *arguments)


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

    async def prepare(self, sql: str) -> ToyStatement:
        return ToyStatement(self, sql)

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
