"""PostgreSQL's protocol, spoken by asyncpg: connections of the harness, and what the driver's errors mean.

The one module that knows the driver, besides those workloads that use it on their hot path. asyncpg takes long to
import and is not needed to collect tests: it is imported by whoever connects first.
"""

import asyncio
import errno
import functools
import io
import re
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from clusters.model import Credentials, Host
from clusters.sql import Failure, Row, SqlError
from clusters.sql.states import LOST_STATES, RETRYABLE_STATES

if TYPE_CHECKING:
    import asyncpg

DRIVER = "asyncpg"
"""The package; its version goes into the evidence."""

Raw: TypeAlias = "asyncpg.Connection[Any]"
"""The driver's own connection, for hot paths."""

REFUSED_CLASSES = ("22", "23", "25", "28", "42", "0A", "3D", "XXC01", "XXC02")
"""SQLSTATEs of statements that were refused, or how they begin: bad data, constraint, transaction state, authorization,
syntax, what is not supported, or takes a licence."""

_COPY_IN = re.compile(r"COPY\b.*\bFROM STDIN\s*$", re.IGNORECASE | re.DOTALL)

_UNREACHABLE = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN, errno.EADDRNOTAVAIL}


@functools.cache
def errors() -> tuple[type[Exception], ...]:
    """What asyncpg raises for whatever server and network do, for an ``except``.

    The last, "another operation is in progress", was seen when a server went away between the preparation of a
    statement and its execution; a replica where the primary is asked for is one, too.
    """
    import asyncpg

    return (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


def classified(error: BaseException) -> tuple[Failure, str]:
    """What an error means for the statement that it ended; its SQLSTATE, or a word for what became of the connection.

    Whatever is not known to be harmless is ambiguous or lost: a lawful database is never accused of an operation that
    it may have done or left undone. The rules are those for histories (Jepsen's ok, fail and info).
    """
    if isinstance(error, SqlError):
        return error.failure, error.code
    state = getattr(error, "sqlstate", None)
    if isinstance(state, str) and len(state) == 5:
        if state in RETRYABLE_STATES:
            return Failure.RETRYABLE, state
        if state.startswith(REFUSED_CLASSES):
            return Failure.REFUSED, state
        return Failure.LOST if state.startswith("08") or state in LOST_STATES else Failure.AMBIGUOUS, state
    word = _word(error)
    open_ = isinstance(error, TimeoutError) or word == "interface" or not isinstance(error, errors())
    return Failure.AMBIGUOUS if open_ else Failure.LOST, word


def _word(error: BaseException) -> str:
    from asyncpg import InterfaceError, InternalClientError
    from asyncpg.exceptions import TargetServerAttributeNotMatched

    match error:
        case TimeoutError():
            return "timeout"
        case TargetServerAttributeNotMatched():
            return "not primary"
        case ConnectionRefusedError():
            return "refused"
        case ssl.SSLError():
            return "tls"
        case ConnectionError() if "SSL" in str(error):
            return "tls"  # asyncpg's own, when the answer to its request for TLS is not the one it expects
        case OSError() if error.errno in _UNREACHABLE:
            return "unreachable"
        case OSError():
            return "connection lost"
        case InterfaceError():
            return "connection lost" if "closed" in str(error) else "interface"
        case InternalClientError():
            return "interface"  # seen when a dying server's farewell crosses a statement
        case _:
            return type(error).__name__


def tls_context(credentials: Credentials) -> ssl.SSLContext | None:
    """TLS as the credentials say, the server's certificate and address checked; ``None`` for none."""
    if credentials.tls_ca is None:
        return None
    context = ssl.create_default_context(cafile=str(credentials.tls_ca))
    if credentials.tls_cert is not None:
        key = None if credentials.tls_key is None else str(credentials.tls_key)
        context.load_cert_chain(str(credentials.tls_cert), key)
    return context


async def open_raw(
    host: Host, credentials: Credentials, tls: ssl.SSLContext | None, *, timeout: float, **options: Any
) -> Raw:
    """Asyncpg's connection to this host, with ``options`` of its ``connect``. Raises ``errors()``."""
    import asyncpg

    # asyncpg's own time-out covers opening the socket and the greeting; the outer one a peer frozen in between.
    async with asyncio.timeout(timeout + 0.1):
        return await asyncpg.connect(
            host=host.address,
            port=host.port,
            user=credentials.user,
            password=credentials.password,
            database=credentials.database,
            ssl=tls if tls is not None else "disable",
            timeout=timeout,
            **options,
        )


async def connect(
    host: Host,
    credentials: Credentials,
    *,
    tls: ssl.SSLContext | None = None,
    timeout: float,
    statement_timeout: float | None = None,
    settings: Mapping[str, str] | None = None,
    primary: bool = False,
) -> "PgConnection":
    """A connection to this host, with ``primary`` only if it is one. ``settings`` are variables of the session.

    Statements without a ``timeout`` of their own are given up after ``statement_timeout`` seconds. Raises ``SqlError``.
    """
    try:
        raw = await open_raw(
            host,
            credentials,
            tls,
            timeout=timeout,
            command_timeout=statement_timeout,
            server_settings=dict(settings or {}),
            max_cached_statement_lifetime=0,  # else a statement is prepared anew after five minutes
            target_session_attrs="primary" if primary else "any",
        )
    except errors() as error:
        failure, code = classified(error)
        said = f"within {timeout:g} s" if isinstance(error, TimeoutError) else f"({_told(error)})"
        raise SqlError(
            f"{host.node}: no SQL connection {said}",
            failure=failure if failure.certainly_not_done else Failure.LOST,
            code=code,
        ) from error
    return PgConnection(raw, host.node)


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".strip(": ")


@contextmanager
def _of(node: str) -> Iterator[None]:
    """Raises the driver's errors as ``SqlError``."""
    try:
        yield
    except errors() as error:
        failure, code = classified(error)
        raise SqlError(f"{node}: {_told(error)}", failure=failure, code=code) from error


def _written(status: str) -> int:
    """From ``INSERT 0 10``, ``UPDATE 1`` or ``SET``."""
    count = status.rpartition(" ")[2]
    return int(count) if count.isdecimal() else 0


class PgConnection:
    """See ``clusters.sql.Connection``."""

    def __init__(self, raw: Raw, node: str) -> None:
        self._raw = raw
        self._node = node

    async def execute(self, sql: str, *arguments: object, timeout: float | None = None) -> int:
        """Run a statement, or several without arguments; returns how many rows the last one wrote."""
        with _of(self._node):
            return _written(await self._raw.execute(sql, *arguments, timeout=timeout))

    async def query(self, sql: str, *arguments: object, timeout: float | None = None) -> Sequence[Row]:
        """The rows of a statement; one that copies from the client is given none."""
        with _of(self._node):
            if _COPY_IN.match(sql):  # what the driver prepares else, and waits for the server, which waits for rows
                await self._raw._copy_in(sql, io.BytesIO(), timeout)
                return ()
            rows: Sequence[Row] = await self._raw.fetch(sql, *arguments, timeout=timeout)
        return rows

    async def value(self, sql: str, *arguments: object, timeout: float | None = None) -> Any:
        """The first value of a statement's first row; ``None`` where there is no row."""
        # asyncpg's fetchval leaves a portal open, which CockroachDB before 22.1 refuses in an explicit transaction
        rows = await self.query(sql, *arguments, timeout=timeout)
        return rows[0][0] if rows else None

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """What is run inside is committed at the end, or rolled back where an exception ends it."""
        await self.execute("BEGIN")
        try:
            yield
        except BaseException:
            with suppress(SqlError):
                await self.execute("ROLLBACK")
            raise
        with _of(self._node):
            ended = await self._raw.execute("COMMIT")
        if ended != "COMMIT":
            why = f"{self._node}: a transaction was rolled back at its end"
            raise SqlError(why, failure=Failure.RETRYABLE, code=ended)

    def terminate(self) -> None:
        """End it at once, without waiting for the server."""
        self._raw.terminate()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.terminate()
