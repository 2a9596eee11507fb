"""Splits a table and has its pieces led from all nodes in turn."""

import asyncio
import time
from collections.abc import Sequence
from itertools import cycle

from clusters.engines.cockroach.access import Access
from clusters.engines.cockroach.members import MOST_REPLICAS
from clusters.engines.cockroach.versions import Dialect
from clusters.sql import Connection, Failure, SqlError

RELOCATE_S = 60.0
"""How long a lease may refuse to move: a fresh range gets its replicas within seconds."""


async def spread(access: Access, dialect: Dialect, table: str, values: Sequence[int], stores: Sequence[int]) -> None:
    """Split the table at ``values`` of its first key column; each piece is led from the next of ``stores``.

    Where there are more nodes than replicas, the next node that has a replica leads the piece. Raises ``SqlError``.
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
    until = time.monotonic() + RELOCATE_S
    for statement in cycle(statements):
        try:
            await connection.execute(statement)
            break
        except SqlError as error:
            if error.failure is Failure.LOST:
                raise
            if time.monotonic() > until:
                raise error.while_doing(f"`{statement}` still fails after {RELOCATE_S:.0f} s") from error
            await asyncio.sleep(0.25 if statement == statements[-1] else 0)
