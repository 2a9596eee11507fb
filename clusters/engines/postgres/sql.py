"""The control as SQL shows it: connections host by host, and what one node says of itself and of its replicas."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from clusters.errors import HarnessError
from clusters.model import Credentials, Host

TROUBLE = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""What asyncpg raises for whatever server and network do. The last, "another operation is in progress", was seen when a
server went away between the preparation of a statement and its execution."""

_REPLICAS = "SELECT application_name, state, sync_state FROM pg_stat_replication"


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """One look at a node: ``error`` says why it did not answer.

    ``replicas``: for each node that replicates from this one ``(state, sync_state)`` of ``pg_stat_replication``.
    """

    error: str = ""
    primary: bool = False
    replicas: Mapping[str, tuple[str, str]] = field(default_factory=dict)


async def open_connection(
    host: Host, credentials: Credentials, *, timeout: float
) -> "asyncpg.Connection[Any]":
    """A connection to this host, whatever it is. Raises ``HarnessError`` when there is none within ``timeout`` seconds."""
    try:
        # asyncpg's own time-out covers opening the socket and the greeting; the outer one a peer frozen in between.
        async with asyncio.timeout(timeout + 0.1):
            return await asyncpg.connect(
                host=host.address,
                port=host.port,
                user=credentials.user,
                password=credentials.password,
                database=credentials.database,
                ssl=False,
                target_session_attrs="any",
                timeout=timeout,
            )
    except TimeoutError as error:
        raise HarnessError(f"{host.node}: no SQL connection within {timeout:g} s") from error
    except TROUBLE as error:
        raise HarnessError(f"{host.node}: no SQL connection: {_words(error)}") from error


async def open_primary(host: Host, credentials: Credentials, *, timeout: float) -> "asyncpg.Connection[Any]":
    """A connection to this host, provided that it is the primary. Raises ``HarnessError``."""
    began = asyncio.get_running_loop().time()
    connection = await open_connection(host, credentials, timeout=timeout)
    try:
        async with asyncio.timeout_at(began + timeout):
            replica = await connection.fetchval("SELECT pg_is_in_recovery()")
        if replica:
            raise HarnessError(f"{host.node}: is a replica")
    except BaseException as error:
        connection.terminate()
        if isinstance(error, TimeoutError):
            raise HarnessError(f"{host.node}: no answer to SQL within {timeout:g} s") from error
        if isinstance(error, TROUBLE):
            raise HarnessError(f"{host.node}: {_words(error)}") from error
        raise
    return connection


@asynccontextmanager
async def session(
    host: Host, credentials: Credentials, *, timeout: float
) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """A connection for a few short queries, opening included in ``timeout``; it is ended without waiting for the server.

    Raises ``HarnessError`` for whatever the server or the network does.
    """
    try:
        async with asyncio.timeout(timeout):
            connection = await open_connection(host, credentials, timeout=timeout)
            try:
                yield connection
            finally:
                connection.terminate()
    except TimeoutError as error:
        raise HarnessError(f"{host.node}: no answer to SQL within {timeout:g} s") from error
    except TROUBLE as error:
        raise HarnessError(f"{host.node}: {_words(error)}") from error


async def look(host: Host, credentials: Credentials, *, timeout: float) -> Seen:
    """What the node says of itself; never raises."""
    try:
        async with session(host, credentials, timeout=timeout) as connection:
            if await connection.fetchval("SELECT pg_is_in_recovery()"):
                return Seen()
            rows = await connection.fetch(_REPLICAS)
    except HarnessError as error:
        return Seen(error=str(error))
    return Seen(
        primary=True, replicas={row["application_name"]: (row["state"], row["sync_state"]) for row in rows}
    )


async def create_application(connection: "asyncpg.Connection[Any]", credentials: Credentials) -> None:
    """Make the application's user and its database (the user may read statistics, as monitoring does)."""
    # The statement holds a password: keep it out of the server's log, whatever happens.
    await connection.execute("SET log_statement = none; SET log_min_error_statement = panic")
    await connection.execute("SET log_min_duration_statement = -1")
    user = f'"{credentials.user}"'
    await connection.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{credentials.password}'")
    await connection.execute(f"GRANT pg_monitor TO {user}")
    await connection.execute(f'CREATE DATABASE "{credentials.database}" OWNER {user}')


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
