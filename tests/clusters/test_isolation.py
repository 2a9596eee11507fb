"""A node cut off from the others, on real databases, each of whose nodes has a network namespace of its own."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from clusters.cluster import Cluster
from clusters.engines import Engine
from clusters.engines.postgres.engine import find
from clusters.errors import HarnessError
from clusters.events import FaultBit, Happened
from clusters.faults import cut
from clusters.faults.disturbance import disturb
from clusters.model import NodeResources, NodeSpec, Topology
from clusters.substrates.processes import Processes, namespaces
from tests.clusters import real_cockroach
from tests.clusters.real_cockroach import leader
from tests.clusters.substrates.processes.process_nodes import PATIENCE_S, eventually
from tests.slow import slow

pytestmark = pytest.mark.skipif(
    namespaces.forbidden() is not None, reason=f"links cannot be cut here: {namespaces.forbidden()}"
)
CUT_S = 25.0
"""Longer than any detection (CockroachDB: 9 s)."""
SPLITS = tuple(range(1000, 9000, 1000))


@asynccontextmanager
async def running(workdir: Path, engine: Engine, resources: NodeResources) -> AsyncIterator[Cluster]:
    topology = Topology(name="test", nodes=tuple(NodeSpec(name=f"n{i}") for i in (1, 2, 3)))
    substrate = await Processes.open(name="isolation", workdir=workdir, say=print, namespaces=True)
    try:
        if substrate.cannot_cut is not None:
            pytest.skip(f"links cannot be cut here: {substrate.cannot_cut}")
        begun = time.monotonic()
        cluster = await Cluster.provision(
            engine=engine, substrate=substrate, topology=topology, resources=resources, tuned=True
        )
        await cluster.replicated(timeout=PATIENCE_S)
        print(f"{engine.kind.name} {engine.version}: up after {time.monotonic() - begun:.1f} s")
        yield cluster
    finally:
        await substrate.close()


class Client:
    """Inserts one row after another, each into another range, through a gateway (or whatever ``connect`` finds)."""

    def __init__(
        self, connect: Callable[[], Awaitable[Any]], *, first: int, patience: float, server: str = "''"
    ) -> None:
        self._connect = connect
        self._patience = patience
        self._number = first
        self._server = server
        """SQL for the server's own name."""
        self.acknowledged: dict[int, float] = {}
        """When each key was, by the monotonic clock."""
        self.by: dict[int, str] = {}
        """Which server did."""

    async def run(self) -> None:
        connection: Any = None
        try:
            while True:
                self._number += 3
                key = self._number % 9 * 1000 + self._number // 9 % 1000
                try:
                    connection = connection or await self._connect()
                    async with asyncio.timeout(self._patience):
                        server = await connection.value(f"SELECT {self._server}")
                        await connection.execute("INSERT INTO ledger VALUES ($1)", key)
                    self.acknowledged[key], self.by[key] = time.monotonic(), server
                except (HarnessError, TimeoutError):
                    if connection is not None:
                        connection.terminate()
                    connection = None
                await asyncio.sleep(0.05)
        finally:
            if connection is not None:
                connection.terminate()

    def between(self, begin: float, end: float) -> int:
        return sum(begin < t < end for t in self.acknowledged.values())

    async def further(self) -> None:
        """Return once another row was acknowledged, later than now."""
        begun = time.monotonic()
        await eventually(lambda: max(self.acknowledged.values(), default=0.0) > begun)


def gap(times: list[float]) -> float:
    return max((after - before for before, after in pairwise(times)), default=0.0)


@asynccontextmanager
async def all_running(clients: list[Client]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(client.run()) for client in clients]
    try:
        for client in clients:
            await client.further()
        yield
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert [end for end in ends if not isinstance(end, asyncio.CancelledError)] == []


async def keys_in(cluster: Cluster) -> set[int]:
    async with await cluster.deployment.connect() as connection:
        return {row[0] for row in await connection.query("SELECT k FROM ledger")}


@slow
async def test_cockroach_goes_on_without_an_isolated_node(tmp_path: Path) -> None:
    async with running(tmp_path, real_cockroach.cockroach(), real_cockroach.RESOURCES) as cluster:
        async with await cluster.deployment.connect() as connection:
            await connection.execute("CREATE TABLE ledger (k INT PRIMARY KEY)")
        await cluster.deployment.spread("ledger", "k", SPLITS)
        await cluster.replicated(timeout=PATIENCE_S)
        held = await cluster.leases("ledger")
        assert min(held[node] for node in cluster.nodes) >= 2, held
        victim, *others = sorted(cluster.nodes, key=lambda node: -held[node])
        events: list[Happened] = []
        cluster.record = events.append
        clients = {
            node: Client(
                lambda node=node: cluster.deployment.connect(node, timeout=2),  # type: ignore[misc]
                first=number,
                patience=30,
            )
            for number, node in enumerate(cluster.nodes)
        }
        async with all_running([*clients.values()]):
            async with disturb(cluster, cut.isolate(), [victim]):
                begun = time.monotonic()
                await asyncio.sleep(CUT_S)
                for node in others:  # they serve writes while the victim is cut off
                    await clients[node].further()
                end = time.monotonic()
                assert not (await cluster.deployment.healthy()).ok
                for node in others:
                    # All ranges, those that the victim led among them.
                    assert await real_cockroach.ask(cluster, "SELECT count(*) FROM ledger", node=node)
            await cluster.healthy(timeout=PATIENCE_S)
            healed = time.monotonic()
            await clients[victim].further()
        worst = {node: gap(sorted(client.acknowledged.values())) for node, client in clients.items()}
        overall = gap(sorted(t for node in others for t in clients[node].acknowledged.values()))
        print(
            f"{cluster.engine.version}: {victim} isolated for {end - begun:.1f} s, healthy {healed - end:.1f} s after; "
            f"the others' gap {overall:.2f} s together; by gateway: "
            f"{', '.join(f'{n} {s:.1f} s' for n, s in worst.items())}"
        )
        assert not clients[victim].between(begun + 1, end), "a minority acknowledges nothing"
        assert overall < CUT_S - 1
        (proof,) = (event.proof for event in events if isinstance(event, FaultBit))
        assert proof.count("all 3 datagrams lost, the one before the cut arrived") == 4
        assert {key for client in clients.values() for key in client.acknowledged} <= await keys_in(cluster)


async def test_an_isolated_primary_of_the_control_gives_way(tmp_path: Path) -> None:
    async with running(tmp_path, find(), NodeResources(cache_mib=64, sql_memory_mib=64)) as cluster:
        assert cluster.linked == ("n1", "n2", "n3", "etcd")
        async with await cluster.deployment.connect() as connection:
            await connection.execute("CREATE TABLE ledger (k INT PRIMARY KEY)")
        victim = await leader(cluster, "ledger")
        client = Client(
            lambda: cluster.deployment.connect(timeout=2), first=0, patience=2, server="host(inet_server_addr())"
        )
        async with all_running([client]):
            async with disturb(cluster, cut.isolate(), [victim]):
                begun = time.monotonic()
                demoted = await until(lambda: replica(cluster, victim))
                successor = ""

                async def taken_over() -> bool:
                    nonlocal successor
                    successor = await leader(cluster, "ledger")
                    return successor != victim

                taken = await until(taken_over)
                await client.further()
                end = time.monotonic()
            await cluster.healthy(timeout=PATIENCE_S)
            healed = time.monotonic()
            await client.further()
        times = sorted(client.acknowledged.values())
        print(
            f"{cluster.engine.version}: {victim} isolated; demoted after {demoted:.1f} s, {successor} took over after "
            f"{taken:.1f} s more, healthy {healed - end:.1f} s after healing; gap {gap(times):.1f} s"
        )
        (isolated,) = {client.by[key] for key, t in client.acknowledged.items() if t < begun}
        after = {client.by[key] for key, t in client.acknowledged.items() if t > begun + 0.5}
        assert isolated not in after, "no majority, no acknowledgement"
        assert set(client.acknowledged) <= await keys_in(cluster)


async def replica(cluster: Cluster, node: str) -> bool:
    """Asked of the node itself: clients still reach it."""
    async with await cluster.deployment.connect(node, timeout=2) as connection:
        return bool(await connection.value("SELECT pg_is_in_recovery()", timeout=2))


async def until(condition: Callable[[], Awaitable[bool]]) -> float:
    """How many seconds until it held."""
    begun = time.monotonic()
    while True:
        try:
            if await condition():
                return time.monotonic() - begun
        except (HarnessError, TimeoutError):
            pass
        assert time.monotonic() < begun + PATIENCE_S, "waited in vain"
        await asyncio.sleep(0.1)
