"""The embedded control on real processes: what it promises beyond the engines' contract."""

import asyncio
import json
import stat
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from clusters.cluster import Cluster
from clusters.engines.postgres.engine import find
from clusters.errors import HarnessError, NotDrained, TimedOut
from clusters.model import NodeResources, NodeSpec, Topology
from clusters.sql import SqlError, pgwire
from clusters.substrates.processes import Processes
from tests.clusters.substrates.processes.process_nodes import PATIENCE_S
from tests.slow import slow

RESOURCES = NodeResources(cache_mib=64, sql_memory_mib=64)
LEASE_S = 14.0
"""Later than this a lost leader's lease runs out, however slow the machine; what hands over is quicker."""


@asynccontextmanager
async def running(workdir: Path, *, nodes: int = 3, capacity: int = 1) -> AsyncIterator[Cluster]:
    """A healthy cluster, gone at the end whatever happens."""
    topology = Topology(name="test", nodes=tuple(NodeSpec(name=f"n{i}") for i in range(1, nodes + 1)))
    substrate = await Processes.open(name="postgres-test", workdir=workdir, capacity=capacity, say=print)
    try:
        cluster = await Cluster.provision(
            engine=find(), substrate=substrate, topology=topology, resources=RESOURCES, tuned=True
        )
        await cluster.replicated(timeout=PATIENCE_S)
        yield cluster
    finally:
        await substrate.close()


async def primary_of(cluster: Cluster) -> str:
    """The node that an endpoint's client ends up on, host by host as the endpoint says."""
    (endpoint,) = cluster.endpoints
    assert endpoint.primary_only
    for host in endpoint.hosts:
        try:
            async with await pgwire.connect(host, cluster.credentials, timeout=2) as connection:
                if not await connection.value("SELECT pg_is_in_recovery()"):
                    return host.node
        except SqlError:
            continue
    raise AssertionError("no host of the endpoint is a primary")


async def insert(cluster: Cluster, key: int, *, timeout: float = 3.0) -> None:
    """Insert one row through the primary; returns only when it was acknowledged."""
    async with await cluster.deployment.connect(timeout=timeout) as connection:
        async with asyncio.timeout(timeout):
            await connection.execute("INSERT INTO ledger VALUES ($1)", key)


async def until_inserted(cluster: Cluster, key: int) -> float:
    """Try to insert until it is acknowledged; returns the seconds that took."""
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE_S:
        try:
            await insert(cluster, key)
        except (HarnessError, TimeoutError):
            await asyncio.sleep(0.1)
            key += 1  # The last attempt may have been stored.
        else:
            return time.monotonic() - began
    raise AssertionError(f"nothing was acknowledged within {PATIENCE_S:.0f} s")


async def keys(cluster: Cluster, node: str | None = None) -> set[int]:
    async with await cluster.deployment.connect(node) as connection:
        return {row["key"] for row in await connection.query("SELECT key FROM ledger")}


async def with_ledger(cluster: Cluster) -> set[int]:
    """Make the table, with a hundred acknowledged rows."""
    async with await cluster.deployment.connect() as connection:
        await connection.execute("CREATE TABLE ledger (key bigint PRIMARY KEY)")
        await connection.execute("INSERT INTO ledger SELECT generate_series(0, 99)")
    return set(range(100))


async def system_identifier(cluster: Cluster) -> int:
    async with await cluster.deployment.connect() as connection:
        return int(await connection.value("SELECT system_identifier FROM pg_control_system()"))


@slow
async def test_primaries_are_lost_in_every_way(tmp_path: Path) -> None:
    """On two clusters at once, since most of the time passes until the leases of the lost run out."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_a_killed_primary_is_replaced_and_comes_back(tmp_path / "killed"))
        group.create_task(_a_primary_without_its_store_becomes_a_replica(tmp_path / "emptied"))


async def _a_killed_primary_is_replaced_and_comes_back(workdir: Path) -> None:
    async with running(workdir) as cluster:
        written = await with_ledger(cluster)
        primary = await primary_of(cluster)
        (range_,) = await cluster.deployment.ranges("ledger")
        assert range_.lease == primary
        assert set(range_.replicas) == {"n1", "n2", "n3"}
        _keeps_its_secrets(cluster, workdir)

        await cluster.kill(primary)
        assert not (await cluster.deployment.accepting(primary)).ok
        gap = await until_inserted(cluster, 1000)
        # The lease ran out; nobody took it away: that would be quicker than the ttl less one renewal and a late start.
        assert gap > LEASE_S
        assert await primary_of(cluster) != primary
        assert written <= await keys(cluster)
        sick = await cluster.deployment.healthy()
        assert not sick.ok
        assert primary in sick.why

        await cluster.restart(primary)
        await cluster.healthy(timeout=PATIENCE_S)
        assert written <= await keys(cluster, primary)


async def _a_primary_without_its_store_becomes_a_replica(workdir: Path) -> None:
    """And leaders change in good order, or thaw and find that they are none any more."""
    async with running(workdir, capacity=0) as cluster:
        written = await with_ledger(cluster)
        identifier = await system_identifier(cluster)

        # Started again at once, the empty node still holds the leader's lease: it must not make a cluster of its own.
        lost = await primary_of(cluster)
        await cluster.kill(lost)
        await cluster.wipe(lost)
        await cluster.replace(lost)
        await cluster.healthy(timeout=PATIENCE_S)
        assert await primary_of(cluster) != lost
        assert await system_identifier(cluster) == identifier
        assert written <= await keys(cluster, lost)

        drained = await primary_of(cluster)
        began = time.monotonic()
        await cluster.deployment.drain(drained, timeout=40.0)
        await until_inserted(cluster, 1000)
        assert time.monotonic() - began < LEASE_S
        successor = await primary_of(cluster)
        assert successor != drained
        await cluster.healthy(timeout=PATIENCE_S)
        assert await cluster.drain(drained) == 0
        assert await primary_of(cluster) == successor
        await cluster.restart(drained)
        await cluster.healthy(timeout=PATIENCE_S)

        # What a frozen primary is sent is not acknowledged by it alone when it thaws.
        frozen = await cluster.deployment.connect(successor)
        await cluster.pause(successor)
        assert not (await cluster.deployment.accepting(successor)).ok
        late = asyncio.ensure_future(frozen.execute("INSERT INTO ledger VALUES (3000)"))
        await until_inserted(cluster, 2000)
        assert await primary_of(cluster) != successor
        await cluster.resume(successor)
        await cluster.healthy(timeout=PATIENCE_S)
        await asyncio.wait([late], timeout=5)
        acknowledged = late.done() and late.exception() is None
        late.cancel()
        frozen.terminate()
        assert written <= await keys(cluster)
        assert not acknowledged or 3000 in await keys(cluster)


async def test_one_node_alone_serves_and_grows(tmp_path: Path) -> None:
    async with running(tmp_path, nodes=1) as cluster:
        written = await with_ledger(cluster)
        assert "synchronous_mode = quorum" not in cluster.deployment.tuned
        with pytest.raises(NotDrained, match="switchover"):
            await cluster.deployment.drain("n1", timeout=40.0)
        await cluster.add(NodeSpec(name="n2"))
        await cluster.healthy(timeout=PATIENCE_S)
        assert "synchronous_mode = quorum" in cluster.deployment.tuned
        assert written <= await keys(cluster, "n2")
        await cluster.kill("n2")
        with pytest.raises(TimeoutError):
            await insert(cluster, 1000, timeout=5)


async def test_a_process_that_dies_at_the_start_ends_the_wait_with_its_last_words(tmp_path: Path) -> None:
    genuine = find()
    engine = replace(genuine, binaries=replace(genuine.binaries, bin_dir=tmp_path))
    substrate = await Processes.open(name="postgres-test", workdir=tmp_path)
    try:
        with pytest.raises(
            HarnessError, match=r"(?s)^n1 ended with exit code 1, by itself.*Failed to bootstrap"
        ) as caught:
            await Cluster.provision(
                engine=engine,
                substrate=substrate,
                topology=Topology(name="test", nodes=(NodeSpec(name="n1"),)),
                resources=RESOURCES,
                tuned=True,
            )
    finally:
        await substrate.close()
    assert not isinstance(caught.value, TimedOut), "its end is noticed before the time for a start is over"


def _keeps_its_secrets(cluster: Cluster, workdir: Path) -> None:
    """No password in a log or an argument; what holds one is the owner's alone."""
    (told, *_) = (json.loads(path.read_text()) for path in workdir.rglob("patroni.yml"))
    users = [*told["postgresql"]["authentication"].values(), told["restapi"]["authentication"]]
    words = [cluster.credentials.password, *(user["password"] for user in users)]
    assert len(set(words)) == 5
    holders = {"patroni.yml": 0, "pgpass": 0}
    for path in workdir.rglob("*"):
        if path.name in holders:
            holders[path.name] += 1
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        elif path.suffix == ".log":
            text = path.read_text(errors="replace")
            assert text or path.name == "etcd.log"
            assert not any(word in text for word in words), path
    assert holders["patroni.yml"] == 3
    lines = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    assert any("patroni.yml" in line for line in lines)
    assert not any(word in line for word in words for line in lines)
    assert not any(word in repr(cluster.deployment.credentials) for word in words)
