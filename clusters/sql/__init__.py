"""How the harness speaks SQL with a cluster, whichever driver an engine takes: connections, rows, and errors by class.

``Deployment.connect`` gives a ``Connection``. An engine whose servers speak PostgreSQL's protocol has it from
``clusters.sql.pgwire``; another one brings an adapter of its own. Workloads may use a driver directly where every
microsecond counts.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Any, Protocol, Self

from clusters.errors import HarnessError


class Failure(StrEnum):
    """What an error says of the statement that it ended."""

    RETRYABLE = "retryable"
    """Certainly not done; the same may be done when it is tried again: a conflict, no connection left."""
    REFUSED = "refused"
    """Certainly not done, and it would be refused again: bad data, a constraint, a name that is not there."""
    AMBIGUOUS = "ambiguous"
    """Done or not, nobody knows: no answer in time, cancelled perhaps while committing, any error not known to be
    harmless."""
    LOST = "lost"
    """The connection broke, or none was to be had; what was under way on it is done or not."""

    @property
    def certainly_not_done(self) -> bool:
        """Whether the statement left nothing behind."""
        return self in (Failure.RETRYABLE, Failure.REFUSED)


class SqlError(HarnessError):
    """A statement of the harness's own, or its connection, failed. The message names the node.

    ``code`` is for the evidence: the server's own (SQLSTATE), or a word for what happened to the connection.
    """

    def __init__(self, message: str, *, failure: Failure, code: str) -> None:
        super().__init__(message)
        self.failure = failure
        self.code = code

    def while_doing(self, what: str) -> "SqlError":
        """The same error, its message beginning with what was being done."""
        return SqlError(f"{what}: {self}", failure=self.failure, code=self.code)


def quoted(name: str) -> str:
    """An identifier as it stands in a statement."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


class Row(Protocol):
    """A row: its values in order, and each by its position or its column's name."""

    def __getitem__(self, key: int | str, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __len__(self) -> int: ...


class Connection(Protocol):
    """One session with one server; as a context manager it is terminated at the end.

    Methods raise ``SqlError`` for whatever server, network and driver do. ``timeout`` is in seconds; without it the
    connection's own holds, which is the engine's choice. A statement that is run again is prepared once.
    """

    async def execute(self, sql: str, *arguments: object, timeout: float | None = None) -> int:
        """Run a statement; returns how many rows it wrote."""

    async def query(self, sql: str, *arguments: object, timeout: float | None = None) -> Sequence[Row]:
        """The rows of a statement."""

    async def value(self, sql: str, *arguments: object, timeout: float | None = None) -> Any:
        """The first value of a statement's first row; ``None`` where there is no row."""

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """What is run inside is committed at the end, or rolled back where an exception ends it.

        Raises ``SqlError`` at the end, ``RETRYABLE``, where the server rolled back what it was to commit.
        """

    def terminate(self) -> None:
        """End it at once, without waiting for the server."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...
