"""Splits a table and has its pieces led from all nodes in turn."""

from collections.abc import Sequence

from clusters.engines.cockroach.access import Access
from clusters.engines.cockroach.members import MOST_REPLICAS
from clusters.engines.cockroach.versions import Dialect
from clusters.model import Health
from clusters.sql import Connection, Failure, SqlError
from clusters.waiting import wait_until

RELOCATE_S = 60.0
"""How long a lease may refuse to move: a fresh range gets its replicas within seconds."""


async def spread(access: Access, dialect: Dialect, table: str, values: Sequence[int], stores: Sequence[int]) -> None:
    """Split the table at ``values`` of its first key column; each piece is led from the next of ``stores``.

    Where there are more nodes than replicas, the next node that has a replica leads the piece. Raises ``SqlError``, or
    ``TimedOut`` with the statement that still fails.
    """
    async with access.connected(f"spread {table}") as connection:
        if values:
            await connection.execute(dialect.split(table, tuple(values)), timeout=RELOCATE_S)
        for number, value in enumerate([0, *values]):
            turn = number % len(stores)
            wanted = [*stores[turn:], *stores[:turn]]
            tried = wanted if len(stores) > MOST_REPLICAS else wanted[:1]
            await _lead(connection, [dialect.relocate_lease(table, store, value) for store in tried])


async def _lead(connection: Connection, statements: Sequence[str]) -> None:
    """Until one succeeds: a lease moves only to a node that has a replica, which a fresh range gets within seconds."""

    async def led() -> Health:
        why = "nothing was tried"
        for statement in statements:
            try:
                await connection.execute(statement)
                return Health(ok=True)
            except SqlError as error:
                if error.failure is Failure.LOST:
                    raise
                why = f"`{statement}`: {error}"
        return Health(ok=False, why=why)

    await wait_until("a lease to move", led, timeout=RELOCATE_S, interval=0.25)
