"""Which nodes of a cluster live, and by what numbers it knows them; whether it is whole."""

import asyncio
from collections.abc import Mapping

from clusters.engines.cockroach.access import SQL_PORT, Access
from clusters.engines.cockroach.introspection import ids
from clusters.engines.cockroach.versions import Dialect
from clusters.model import Health

MOST_REPLICAS = 3
"""CockroachDB keeps so many replicas of a range by default."""


class Members:
    """Our names of the nodes, and their ids and those of their stores, which do not follow the order of their start."""

    def __init__(self, access: Access, dialect: Dialect) -> None:
        self._access = access
        self._dialect = dialect
        self.known: dict[str, set[int]] = {}
        """All ids that the holders of each name ever had."""

    async def live(self) -> dict[str, int]:
        """The ids of the live nodes by name; a node that was replaced has a new one. Raises ``SqlError``."""
        rows = await self._access.query(self._dialect.nodes)
        names = {f"{at.address}:{SQL_PORT}": name for name, at in self._access.placements.items()}
        # Where a lost node still seems to live beside the one in its place, the later id is the new one.
        live = {
            names[row["address"]]: int(row["node_id"])
            for row in sorted(rows, key=lambda row: int(row["node_id"]))
            if row["is_live"] and row["address"] in names
        }
        for name, id_ in live.items():
            self.known.setdefault(name, set()).add(id_)
        return live

    async def stores(self, live: Mapping[str, int] | None = None) -> dict[int, str]:
        """The names of the live nodes by the id of their one store, which is what replicas are listed by.

        The ids of a node and its store are drawn apart: nodes that join at the same time may swap them. A node that has
        not reported its store yet is taken to have one of its own number. Raises ``SqlError``.
        """
        live = await self.live() if live is None else live
        rows = await self._access.query(self._dialect.stores)
        known = {int(row["node_id"]): int(row["store_id"]) for row in rows}
        return {known.get(id_, id_): name for name, id_ in live.items()}

    async def replicas(self, *, timeout: float = 8.0) -> dict[int, frozenset[int]]:
        """By the id of each range the stores that have a replica of it. Raises ``SqlError``."""
        rows = await self._access.query(self._dialect.all_ranges, timeout=timeout)
        return {int(row["range_id"]): frozenset(ids(row["replicas"] or "")) for row in rows}

    async def whole(self) -> Health:
        """Whether every node lives and takes clients and every range is whole; never raises, answers within 10 s.

        A range is whole with as many replicas on live nodes as there can be, at most 3, and none on a dead one.
        """
        doing = ["which nodes live"]
        try:
            async with asyncio.timeout(9.0):
                return await self._look(doing)
        except TimeoutError:
            return Health(ok=False, why=f"no answer within 9 s to the question {doing[-1]}")
        except Exception as error:
            return Health(ok=False, why=f"{type(error).__name__}: {error}".strip(": "))

    async def _look(self, doing: list[str]) -> Health:
        names = list(self._access.placements)
        live = await self.live()
        if missing := [name for name in names if name not in live]:
            return Health(ok=False, why=f"not live: {', '.join(missing)}")
        doing.append("whether each node takes clients")
        for name, answer in zip(names, await asyncio.gather(*map(self._access.accepting, names)), strict=True):
            if not answer.ok:
                return Health(ok=False, why=f"{name} takes no clients ({answer.why})")
        doing.append("where the replicas are")
        stores = (await self.stores(live)).keys()
        replicas = (await self.replicas()).values()
        lacking = sum(len(held & stores) < min(MOST_REPLICAS, len(live)) for held in replicas)
        dead = sum(bool(held - stores) for held in replicas)
        why = [f"{lacking} of {len(replicas)} ranges lack replicas on live nodes"] if lacking else []
        why += [f"{dead} have replicas on dead ones"] if dead else []
        why += [] if replicas else ["no range reported"]
        return Health(ok=not why, why=", ".join(why))
