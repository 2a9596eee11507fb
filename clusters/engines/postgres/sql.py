"""The control as SQL shows it: connections host by host, what each node says of itself, and whether all is whole."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from clusters.engines.postgres.configuration import Replication
from clusters.model import Credentials, Health, Host
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
        async with asyncio.timeout(timeout), await pgwire.connect(host, credentials, timeout=timeout) as connection:
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


def only_primary(seen: Mapping[str, Seen]) -> tuple[str | None, str]:
    """The primary if there is exactly one, else ``None`` and why: a former primary may not know yet that it is one."""
    found = [name for name, one in seen.items() if one.primary]
    if len(found) == 1:
        return found[0], ""
    silent = "; ".join(one.error for one in seen.values() if one.error)
    why = f"several primaries: {', '.join(found)}" if found else "no primary"
    return None, f"{why} ({silent})" if silent else why


def whole(seen: Mapping[str, Seen], members: Mapping[str, Any], replication: Replication) -> Health:
    """Every node answers, one of them is the primary, and all others stream from it in the mode that was asked for.

    ``members`` is Patroni's ``GET /cluster``.
    """
    silent = [one.error for one in seen.values() if one.error]
    if silent:
        return Health(ok=False, why="; ".join(silent))
    primary, why = only_primary(seen)
    if primary is None:
        return Health(ok=False, why=why)
    wanted = "quorum" if replication is Replication.QUORUM else "async"
    for name in seen:
        state, mode = seen[primary].replicas.get(name, ("not connected", ""))
        if name != primary and (state, mode) != ("streaming", wanted):
            return Health(ok=False, why=f"{name} replicates from {primary}: {f'{state} {mode}'.strip()}")
    if members.get("pause"):
        return Health(ok=False, why="Patroni is in maintenance mode (pause): no failover would happen")
    roles = {member.get("name"): member.get("role") for member in members.get("members", ())}
    # "Quorum standby": Patroni would let it take over, since the lease's record names it, too.
    others = "quorum_standby" if replication is Replication.QUORUM else "replica"
    for name in seen:
        expected = "leader" if name == primary else others
        if roles.get(name) != expected:
            return Health(ok=False, why=f"Patroni takes {name} for {roles.get(name)}, not yet for {expected}")
    return Health(ok=True)


async def create_application(connection: Connection, credentials: Credentials) -> None:
    """Make the application's user and its database.

    The user may read statistics, as monitoring does, and make roles and databases of its own.
    """
    # The statement holds a password: keep it out of the server's log, whatever happens.
    await connection.execute("SET log_statement = none; SET log_min_error_statement = panic")
    await connection.execute("SET log_min_duration_statement = -1")
    user = f'"{credentials.user}"'
    await connection.execute(f"CREATE ROLE {user} LOGIN CREATEROLE CREATEDB PASSWORD '{credentials.password}'")
    await connection.execute(f"GRANT pg_monitor TO {user}")
    await connection.execute(f'CREATE DATABASE "{credentials.database}" OWNER {user}')
