"""Nodes of the control change between two minor versions, there and back, while rows are written."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from clusters.cluster import Cluster
from clusters.engines import Wanted
from clusters.engines.postgres.engine import Postgres, find
from clusters.errors import BadInput, HarnessError
from clusters.events import Happened, NodeSwapped, SwapFailed
from clusters.faults.disturbance import disturb
from clusters.faults.swap import swap
from clusters.sql import Connection, SqlError
from tests.clusters.real_cockroach import leader, running
from tests.clusters.substrates.processes.process_nodes import PATIENCE_S
from tests.slow import slow

ANSWER_S = 3.0
"""Longer than a switchover takes on an idle machine; what is not answered by then counts as not acknowledged."""


def at(version: str) -> Postgres:
    """The control at that version; skips the test where its wheel is not made for this Python or platform."""
    try:
        return find(Wanted(version=version))
    except BadInput as error:
        pytest.skip(str(error))


class Writer:
    """A client that inserts one row after another through the primary, each under a key of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._key = 0
        self.acknowledged: set[int] = set()

    async def write(self) -> None:
        """Write for ever; a row that failed is not tried again, as nobody knows whether it is there."""
        connection: Connection | None = None
        while True:
            self._key += 1
            try:
                connection = connection or await self._cluster.deployment.connect(timeout=ANSWER_S)
                await connection.execute("INSERT INTO ledger VALUES ($1)", self._key, timeout=ANSWER_S)
            except SqlError:
                if connection is not None:
                    connection.terminate()
                connection = None
                await asyncio.sleep(0.05)
            else:
                self.acknowledged.add(self._key)
                await asyncio.sleep(0.005)

    async def further(self) -> None:
        """Return once another row was acknowledged that was begun after now."""
        key = self._key
        while max(self.acknowledged, default=0) <= key:
            self._cluster.watch()
            await asyncio.sleep(0.05)


@asynccontextmanager
async def writing(cluster: Cluster) -> AsyncIterator[Writer]:
    """A table and a client that writes to it for as long as the block lasts; every acknowledged row is then there."""
    async with await cluster.deployment.connect() as connection:
        await connection.execute("CREATE TABLE ledger (key bigint PRIMARY KEY)")
    writer = Writer(cluster)
    task = asyncio.ensure_future(writer.write())
    try:
        await writer.further()
        yield writer
        await writer.further()
    finally:
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()
    for node in cluster.nodes:
        await caught_up(cluster, node)
        async with await cluster.deployment.connect(node) as connection:
            present = {row["key"] for row in await connection.query("SELECT key FROM ledger")}
            damaged = await connection.value("SELECT sum(checksum_failures)::bigint FROM pg_stat_database")
            checked = await connection.value("SHOW data_checksums")
        assert not writer.acknowledged - present, node
        assert (damaged, checked) == (0, "on"), node


async def caught_up(cluster: Cluster, node: str) -> None:
    """Wait until the node has replayed all that the primary has written by now."""
    async with await cluster.deployment.connect() as primary, await cluster.deployment.connect(node) as connection:
        there = await primary.value("SELECT pg_current_wal_flush_lsn()::text")
        replayed = "SELECT NOT pg_is_in_recovery() OR pg_last_wal_replay_lsn() >= $1::text::pg_lsn"
        while not await connection.value(replayed, there):
            cluster.watch()
            await asyncio.sleep(0.05)


async def roll(cluster: Cluster, writer: Writer, *, new: Postgres, old: Postgres) -> None:
    """Change every node's version while rows are written: replicas first, then the primary, which hands over."""
    primary = await leader(cluster, "ledger")
    for node in [*(name for name in cluster.nodes if name != primary), primary]:
        assert (await cluster.deployment.running(node)).build == old.version
        async with disturb(cluster, swap(new, old), [node]):
            await writer.further()
        assert (await cluster.deployment.running(node)).build == new.version
        await cluster.healthy(timeout=PATIENCE_S)
        await writer.further()
    assert await leader(cluster, "ledger") != primary


@slow
async def test_versions_are_rolled_out_and_taken_back_under_load(tmp_path: Path) -> None:
    old, new = at("16.2"), at("16.14")
    async with running(tmp_path, old) as cluster:
        events: list[Happened] = []
        cluster.record = events.append
        with pytest.raises(BadInput, match=r"^n1: PostgreSQL v18\.4 .* cannot start with the data of 16\.2"):
            await cluster.deployment.install("n1", find())
        with pytest.raises(HarnessError, match="n9 is not a node of this cluster"):
            await cluster.deployment.install("n9", new)
        async with writing(cluster) as writer:
            await roll(cluster, writer, new=new, old=old)
            await roll(cluster, writer, new=old, old=new)
        swapped = [event for event in events if isinstance(event, NodeSwapped)]
        assert [event.wanted for event in swapped] == [new.version] * 3 + [old.version] * 3
        assert all(event.build == event.wanted and event.able == event.active == "16" for event in swapped)
        assert not [event for event in events if isinstance(event, SwapFailed)]
        assert await cluster.deployment.keep_version() == ""


@slow
async def test_what_is_no_postgresql_leaves_a_node_its_former_version(tmp_path: Path) -> None:
    """Of a replica and of the primary, which hands over first."""
    genuine = at("16.14")
    empty, broken = (tmp_path / name / "bin" for name in ("empty", "broken"))
    for directory in (empty, broken):
        directory.mkdir(parents=True)
    (broken / "postgres").write_text("#!/bin/sh\necho libpq.so.5: no such file >&2\nexit 1\n")
    (broken / "postgres").chmod(0o755)
    async with running(tmp_path / "run", genuine) as cluster, writing(cluster) as writer:
        primary = await leader(cluster, "ledger")
        replica = next(name for name in cluster.nodes if name != primary)
        for node, directory, why in (
            (replica, empty, "empty/bin/postgres: no such file"),
            (primary, broken, "ended with exit code 1 and said libpq.so.5: no such file"),
        ):
            events: list[Happened] = []
            cluster.record = events.append
            wrong = replace(genuine, binaries=replace(genuine.binaries, bin_dir=directory))
            async with disturb(cluster, swap(wrong, genuine), [node]):
                await writer.further()
            assert (await cluster.deployment.running(node)).build == genuine.version
            (failed,) = (event for event in events if isinstance(event, SwapFailed))
            assert (failed.node, failed.wanted) == (node, wrong.version)
            assert why in failed.why
            (back,) = (event for event in events if isinstance(event, NodeSwapped))
            assert (back.node, back.build) == (node, genuine.version)
            await cluster.healthy(timeout=PATIENCE_S)
