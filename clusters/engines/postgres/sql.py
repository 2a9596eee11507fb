"""The control as SQL shows it: connections host by host, and what one node says of itself and of its replicas."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from clusters.model import Credentials, Host
from clusters.sql import Connection, Failure, SqlError, pgwire

_REPLICAS = "SELECT application_name, state, sync_state FROM pg_stat_replication"


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What a node answered: ``error`` says why it did not answer.

    ``replicas``: for each node that replicates from this one ``(state, sync_state)`` of ``pg_stat_replication``.
    """

    error: str = ""
    primary: bool = False
    replicas: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@asynccontextmanager
async def session(host: Host, credentials: Credentials, *, timeout: float) -> AsyncIterator[Connection]:
    """A connection for a few short queries, opening included in ``timeout``. Raises ``SqlError``."""
    try:
        async with (
            asyncio.timeout(timeout),
            await pgwire.connect(host, credentials, timeout=timeout) as connection,
        ):
            yield connection
    except TimeoutError as error:
        raise SqlError(
            f"{host.node}: no answer to SQL within {timeout:g} s", failure=Failure.AMBIGUOUS, code="timeout"
        ) from error


async def inspect(host: Host, credentials: Credentials, *, timeout: float) -> Seen:
    """What the node says of itself; never raises."""
    try:
        async with session(host, credentials, timeout=timeout) as connection:
            if await connection.value("SELECT pg_is_in_recovery()"):
                return Seen()
            rows = await connection.query(_REPLICAS)
    except SqlError as error:
        return Seen(error=str(error))
    return Seen(primary=True, replicas={row["application_name"]: (row["state"], row["sync_state"]) for row in rows})


async def create_application(connection: Connection, credentials: Credentials) -> None:
    """Make the application's user and its database (the user may read statistics, as monitoring does)."""
    # The statement holds a password: keep it out of the server's log, whatever happens.
    await connection.execute("SET log_statement = none; SET log_min_error_statement = panic")
    await connection.execute("SET log_min_duration_statement = -1")
    user = f'"{credentials.user}"'
    await connection.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{credentials.password}'")
    await connection.execute(f"GRANT pg_monitor TO {user}")
    await connection.execute(f'CREATE DATABASE "{credentials.database}" OWNER {user}')
