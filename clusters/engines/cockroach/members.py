"""Which nodes of a cluster live, and by what numbers it knows them; where its replicas are; whether it is whole."""

import asyncio
import urllib.request
from collections.abc import Mapping

from clusters.engines.cockroach.access import HTTP_PORT, Access
from clusters.engines.cockroach.introspection import ids, parse_vars
from clusters.engines.cockroach.versions import Dialect
from clusters.errors import HarnessError
from clusters.model import Health, Layout, NodeGauges

MOST_REPLICAS = 3
"""How many replicas of a range CockroachDB keeps by default; of its own it keeps five."""
SAMPLE_S = 3.0
"""Within this a sample is answered or lost: the next one is due soon."""


def needed(wanted: int, live: int) -> int:
    """How many replicas servers keep of a range that is to have so many, on so many nodes: fewer are an odd number."""
    return wanted if wanted <= live else max(min(MOST_REPLICAS, live), live - (live % 2 == 0))


class Members:
    """Our names of the nodes, and their ids and those of their stores, which do not follow the order of their start."""

    def __init__(self, access: Access, dialect: Dialect) -> None:
        self._access = access
        self.dialect = dialect
        """How the cluster is spoken to now: versions may change."""
        self.known: dict[str, set[int]] = {}
        """All ids that the holders of each name ever had."""
        self._sampled: dict[int, str] = {}
        """The stores that ``layout`` knows: the nodes are asked only when a replica stands on another one."""

    async def live(self, *, timeout: float = 5.0) -> dict[str, int]:
        """The ids of the live nodes by name; a node that was replaced has a new one. Raises ``SqlError``."""
        rows = await self._access.query(self.dialect.nodes, timeout=timeout)
        names = {at.address: name for name, at in self._access.placements.items()}
        # Where a lost node still seems to live beside the one in its place, the later id is the new one.
        live = {
            names[host]: int(row["node_id"])
            for row in sorted(rows, key=lambda row: int(row["node_id"]))
            if row["is_live"] and (host := row["address"].rpartition(":")[0]) in names
        }
        for name, id_ in live.items():
            self.known.setdefault(name, set()).add(id_)
        return live

    async def stores(self, live: Mapping[str, int] | None = None, *, timeout: float = 5.0) -> dict[int, str]:
        """The names of the live nodes by the id of their one store, which is what replicas are listed by.

        The ids of a node and its store are drawn apart: nodes that join at the same time may swap them. A node that has
        not reported its store yet is taken to have one of its own number. Raises ``SqlError``.
        """
        live = await self.live(timeout=timeout) if live is None else live
        rows = await self._access.query(self.dialect.stores, timeout=timeout)
        known = {int(row["node_id"]): int(row["store_id"]) for row in rows}
        return {known.get(id_, id_): name for name, id_ in live.items()}

    async def replicas(self, *, timeout: float = 8.0) -> dict[int, frozenset[int]]:
        """By the id of each range the stores that have a replica of it. Raises ``SqlError``."""
        rows = await self._access.query(self.dialect.all_ranges, timeout=timeout)
        return {int(row["range_id"]): frozenset(ids(row["replicas"] or "")) for row in rows}

    async def wanted(self) -> dict[int, int]:
        """By the id of each range that is to have more than three replicas how many. Raises ``SqlError``."""
        rows = await self._access.query(self.dialect.wanted)
        return {int(row["range_id"]): int(row["replicas"]) for row in rows}

    async def whole(self) -> Health:
        """Whether every node lives and takes clients and every range is whole; never raises, answers within 10 s.

        A range is whole with as many replicas on live nodes as its zone asks for and there can be, never fewer than
        by default, and none on a dead one.
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
        # Three nodes can hold no more than three.
        wanted = await self.wanted() if len(live) > MOST_REPLICAS else {}
        replicas = await self.replicas()
        lacking = sum(
            len(held & stores) < needed(wanted.get(range_, MOST_REPLICAS), len(live))
            for range_, held in replicas.items()
        )
        dead = sum(bool(held - stores) for held in replicas.values())
        why = [f"{lacking} of {len(replicas)} ranges lack replicas on live nodes"] if lacking else []
        why += [f"{dead} have replicas on dead ones"] if dead else []
        why += [] if replicas else ["no range reported"]
        return Health(ok=not why, why=", ".join(why))

    async def layout(self) -> Layout:
        """The nodes of every range's replicas. Raises ``HarnessError`` when nobody says within some seconds."""
        try:
            async with asyncio.timeout(SAMPLE_S):
                held = await self.replicas(timeout=SAMPLE_S)
                if frozenset().union(*held.values()) - self._sampled.keys():
                    self._sampled |= await self.stores()
        except Exception as error:
            raise HarnessError(f"nobody says where the replicas are: {type(error).__name__} {error}") from error
        if not held:
            raise HarnessError("nobody says where the replicas are: no range was listed")
        return Layout(
            replicas={
                range_: frozenset(self._sampled.get(store, f"store {store}") for store in stores)
                for range_, stores in held.items()
            },
            source=self.dialect.all_ranges.rpartition("FROM ")[2].strip("[]"),
        )

    async def gauges(self) -> dict[str, NodeGauges]:
        """The metrics of each node that answers."""
        nodes = self._access.addresses
        asked = (asyncio.to_thread(self._gauges, address) for address in nodes.values())
        told = await asyncio.gather(*asked, return_exceptions=True)
        return {node: answer for node, answer in zip(nodes, told, strict=True) if isinstance(answer, NodeGauges)}

    def _gauges(self, address: str) -> NodeGauges:
        url = f"https://{address}:{HTTP_PORT}/_status/vars"
        with urllib.request.urlopen(url, timeout=SAMPLE_S, context=self._access.tls) as answer:
            metrics = parse_vars(answer.read().decode(errors="replace"))

        def count(name: str | None) -> int | None:
            return int(metrics[name]) if name in metrics else None

        both = (count(self.dialect.unavailable), count(self.dialect.tripped))
        unavailable = [ranges for ranges in both if ranges is not None]
        return NodeGauges(
            replicas=count("replicas"),
            leases=count("replicas_leaseholders"),
            unavailable=max(unavailable, default=None),
            underreplicated=count(self.dialect.underreplicated),
        )
