"""Asks a running cluster again and again where its replicas are, at little cost."""

import asyncio
import urllib.request
from collections.abc import Mapping

from clusters.engines.cockroach.access import HTTP_PORT, Access
from clusters.engines.cockroach.members import Members
from clusters.engines.cockroach.metrics import parse_vars
from clusters.engines.cockroach.versions import Dialect
from clusters.errors import HarnessError
from clusters.model import Layout, NodeGauges

ANSWER_S = 3.0
"""Within this a sample is answered or lost: the next one is due soon."""


class Sampling:
    """``members`` are asked only when a replica stands on a store that is not known yet."""

    def __init__(self, access: Access, dialect: Dialect, members: Members) -> None:
        self._access = access
        self._dialect = dialect
        self._members = members
        self._names: dict[int, str] = {}

    async def layout(self) -> Layout:
        """The nodes of every range's replicas. Raises ``HarnessError`` when nobody says within some seconds."""
        try:
            async with asyncio.timeout(ANSWER_S):
                held = await self._members.replicas(timeout=ANSWER_S)
                if frozenset().union(*held.values()) - self._names.keys():
                    self._names |= await self._members.stores()
        except Exception as error:
            raise HarnessError(f"nobody says where the replicas are: {type(error).__name__} {error}") from error
        if not held:
            raise HarnessError("nobody says where the replicas are: no range was listed")
        return Layout(
            replicas={
                range_: frozenset(self._names.get(store, f"store {store}") for store in stores)
                for range_, stores in held.items()
            },
            source=self._dialect.all_ranges.rpartition("FROM ")[2].strip("[]"),
        )

    async def gauges(self) -> dict[str, NodeGauges]:
        """The metrics of each node that answers."""
        nodes = self._access.addresses
        told = await asyncio.gather(
            *(asyncio.to_thread(self._vars, address) for address in nodes.values()), return_exceptions=True
        )
        return {
            node: self._gauges(answer)
            for node, answer in zip(nodes, told, strict=True)
            if not isinstance(answer, BaseException)
        }

    def _vars(self, address: str) -> Mapping[str, float]:
        url = f"https://{address}:{HTTP_PORT}/_status/vars"
        with urllib.request.urlopen(url, timeout=ANSWER_S, context=self._access.tls) as answer:
            return parse_vars(answer.read().decode(errors="replace"))

    def _gauges(self, metrics: Mapping[str, float]) -> NodeGauges:
        def count(name: str) -> int | None:
            return int(metrics[name]) if name in metrics else None

        tripped = count(self._dialect.tripped) if self._dialect.tripped else None
        unavailable = [told for told in (count(self._dialect.unavailable), tripped) if told is not None]
        return NodeGauges(
            replicas=count("replicas"),
            leases=count("replicas_leaseholders"),
            unavailable=max(unavailable, default=None),
            underreplicated=count(self._dialect.underreplicated),
        )
