"""CockroachDB on real processes: what a cluster of it promises beyond the engines' contract.

Skips where there is no binary.
"""

import asyncio
import stat
import time
from pathlib import Path

import psutil
import pytest

from clusters.cluster import Cluster
from clusters.engines.cockroach.introspection import parse_memberships
from clusters.engines.cockroach.licences import KEY
from clusters.errors import BadInput, HarnessError
from clusters.model import NodeSpec, ProcessState
from clusters.sql import SqlError
from clusters.substrates.processes import Processes
from tests.clusters.real_cockroach import ask, cockroach, running, versions
from tests.clusters.substrates.processes.process_nodes import PATIENCE_S
from tests.slow import slow

TABLE = "ledger"
CONNECTS_S = 5.0
"""So long a node that says nothing is waited for where nobody knows better."""


async def with_ledger(cluster: Cluster) -> None:
    """A table of nine ranges, led from all nodes, every one with all its replicas."""
    await ask(cluster, f"CREATE TABLE {TABLE} (bucket INT8, key INT8, PRIMARY KEY (bucket, key))")
    await ask(cluster, f"INSERT INTO {TABLE} SELECT x % 9, x FROM generate_series(0, 899) AS g(x)")
    await cluster.deployment.spread(TABLE, "bucket", range(1, 9))
    await cluster.replicated(timeout=PATIENCE_S)


async def rows(cluster: Cluster, node: str | None = None) -> int:
    """How many rows a node can read."""
    (row,) = await ask(cluster, f"SELECT count(*) FROM {TABLE}", node=node)
    return int(row[0])


async def why_not(cluster: Cluster, words: str, seconds: float = PATIENCE_S) -> None:
    """Wait until the cluster says that it is not healthy, and says it in these words."""
    until = time.monotonic() + seconds
    while True:
        health = await cluster.deployment.healthy()
        if not health.ok and words in health.why:
            return
        assert time.monotonic() < until, f"{health}, but no {words!r}"
        await asyncio.sleep(0.1)


@slow
@pytest.mark.parametrize("version", versions())
async def test_five_nodes_are_whole_when_what_the_system_needs_has_five_replicas(tmp_path: Path, version: str) -> None:
    """Three had been enough: a node was restarted while the rest still made replicas."""
    async with running(tmp_path, cockroach(version), nodes=5) as cluster:
        held = (await cluster.deployment.layout()).replicas
        assert {len(nodes) for nodes in held.values()} == {3, 5}
        assert len(held[1]) == 5, "the first range, by which all others are found"
        for table in ("system.descriptor", "system.users", "system.jobs"):
            for found in await cluster.deployment.ranges(table):
                assert len(found.replicas) == 5, table


@pytest.mark.parametrize("version", versions())
async def test_servers_tell_of_their_licence_and_back_up(tmp_path: Path, version: str) -> None:
    engine = cockroach(version)
    async with running(tmp_path, engine, nodes=1) as cluster:
        same = await cluster.deployment.licence(engine.version)
        assert same.ok
        assert same.why.startswith("it has none; none is needed ")
        later = await cluster.deployment.licence("v99.1.0")
        assert not later.ok
        assert f"a change from {engine.version} to v99.1.0 needs a valid licence key, and it has none" in later.why
        await ask(cluster, f"CREATE TABLE {TABLE} (key INT8 PRIMARY KEY)")
        await ask(cluster, f"INSERT INTO {TABLE} SELECT generate_series(1, 100)")
        assert cluster.deployment.backups is not None
        database = cluster.deployment.credentials.database
        await cluster.deployment.backups.back_up(database, "before_the_change", timeout=120)
        await cluster.deployment.backups.restore(database, "before_the_change", to="again", timeout=120)
        (row,) = await ask(cluster, f"SELECT count(*) FROM again.{TABLE}")
        assert row[0] == 100


@pytest.mark.parametrize("version", versions())
async def test_a_licence_that_servers_do_not_take_is_bad_input(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "velvet-marmot-of-1")
    with pytest.raises(BadInput, match=f"{KEY}: the server does not take it .*leave both out") as refused:
        async with running(tmp_path, cockroach(version), nodes=1):
            pytest.fail("it started")
    assert "velvet" not in str(refused.value)


@pytest.mark.parametrize("version", versions())
async def test_nodes_are_drained_and_frozen_and_come_back(tmp_path: Path, version: str) -> None:
    engine = cockroach(version)
    async with running(tmp_path, engine) as cluster:
        _keeps_its_secrets(tmp_path)
        _listens_on_its_own_addresses_only(cluster)
        (reporting,) = await ask(cluster, "SHOW CLUSTER SETTING diagnostics.reporting.enabled")
        (collecting,) = await ask(cluster, "SHOW CLUSTER SETTING sql.stats.automatic_collection.enabled")
        assert (reporting[0], collecting[0]) == (False, False)
        assert cluster.deployment.tuned[-1] == "sql.stats.automatic_collection.enabled = false"
        works = (await cluster.deployment.observe())["behaviour"]
        assert works["kv.allocator.load_based_rebalancing"] == "leases and replicas"
        await with_ledger(cluster)
        leases = await cluster.leases(TABLE)
        assert leases == {"n1": 3, "n2": 3, "n3": 3}
        assert all(len(r.replicas) == 3 for r in await cluster.deployment.ranges(TABLE))
        await _tells_who_moved_replicas(cluster)

        assert await cluster.drain("n3") == 0
        assert cluster.substrate.state("n3") is ProcessState.EXITED
        await why_not(cluster, "n3")
        await cluster.restart("n3")
        assert await rows(cluster, "n3") == 900
        assert await cluster.deployment.shown("n1") == {"cache_mib": 384, "sql_memory_mib": 256}
        assert cluster.substrate.limits("n3") == {}, "none was asked for"

        await cluster.pause("n1")
        began = time.monotonic()
        assert not (await cluster.deployment.accepting("n1")).ok
        assert time.monotonic() - began < CONNECTS_S, "a frozen node is not waited for longer than the protocol says"
        await why_not(cluster, "n1")
        # n1 was asked first so far; from now on somebody else is, at once.
        began = time.monotonic()
        (await cluster.deployment.connect()).terminate()
        assert time.monotonic() - began < CONNECTS_S
        await cluster.resume("n1")
        await cluster.healthy(timeout=PATIENCE_S)

        if engine.dialect.tripped is not None:
            threshold = "kv.replica_circuit_breaker.slow_replication_threshold"
            await ask(cluster, f"SET CLUSTER SETTING {threshold} = '2s'")
            for node in ("n2", "n3"):
                await cluster.kill(node)
            async with await cluster.deployment.connect("n1") as connection:
                with pytest.raises(SqlError):
                    await connection.execute(f"INSERT INTO {TABLE} VALUES (0, 9999)", timeout=6)
            await _counts_ranges_without_a_quorum(cluster)
            await asyncio.gather(cluster.restart("n2"), cluster.restart("n3"))
            await cluster.healthy(timeout=PATIENCE_S)
    assert _processes_in(tmp_path) == []


@slow
@pytest.mark.parametrize("version", versions())
async def test_a_lost_node_is_replaced_another_added_and_one_removed(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, cockroach(version)) as cluster:
        await with_ledger(cluster)
        before = await _ids(cluster)
        victim = next(name for name, id_ in before.items() if id_ == 2)
        await cluster.kill(victim)
        await cluster.wipe(victim)
        # At once, while the cluster still takes the lost node for living.
        await cluster.replace(victim)
        await cluster.healthy(timeout=PATIENCE_S)
        after = await _ids(cluster)
        assert after[victim] not in before.values(), "an empty node is a new one"
        assert {n: i for n, i in after.items() if n != victim} == {n: i for n, i in before.items() if n != victim}
        former = await _status(cluster, before[victim])
        assert former in ("decommissioning", "decommissioned")
        assert all(set(r.replicas) == {"n1", "n2", "n3"} for r in await cluster.deployment.ranges(TABLE))
        assert await rows(cluster, victim) == 900

        await cluster.add(NodeSpec(name="n4"))
        await cluster.healthy(timeout=PATIENCE_S)
        assert cluster.nodes == ["n1", "n2", "n3", "n4"]
        assert [endpoint.name for endpoint in cluster.endpoints] == cluster.nodes
        assert await rows(cluster, "n4") == 900
        _listens_on_its_own_addresses_only(cluster)

        # The one that was asked first so far, and by whose address the others once joined.
        leaving = (await _ids(cluster))["n1"]
        assert await cluster.remove("n1") == 0, "it stopped in good order"
        await cluster.healthy(timeout=PATIENCE_S)
        assert cluster.nodes == ["n2", "n3", "n4"]
        assert not cluster.down
        assert await _status(cluster, leaving) == "decommissioned"
        assert all(set(r.replicas) == {"n2", "n3", "n4"} for r in await cluster.deployment.ranges(TABLE))
        assert await rows(cluster) == 900
        with pytest.raises(HarnessError, match="3 nodes hold 3 replicas of everything; add a node first"):
            await cluster.remove("n4")
        monkeypatch.setattr("clusters.engines.cockroach.membership.REFUSAL_S", dict.fromkeys((True, False), 4.0))
        said = await cluster.deployment.refusal("n4")
        assert said is not None
        assert "replicas stayed where they were for 4 s" in said
        assert await _status(cluster, (await _ids(cluster))["n4"]) == "active", "it was taken back"
        await cluster.healthy(timeout=PATIENCE_S)
    assert _processes_in(tmp_path) == []


async def _tells_who_moved_replicas(cluster: Cluster) -> None:
    """Neither what the servers do by themselves nor how the harness spread the leases is a step by hand."""
    steps = await cluster.deployment.by_hand(600)
    assert not [what for what in steps if what.startswith("ALTER")], steps
    async with await cluster.deployment.connect("n2") as connection:
        for statement in (
            f"ALTER TABLE {TABLE} SCATTER",
            f"ALTER TABLE {TABLE} EXPERIMENTAL_RELOCATE VALUES (ARRAY[1, 2, 3], 0)",
            f"ALTER TABLE {TABLE} CONFIGURE ZONE USING gc.ttlseconds = 600",
        ):
            await connection.execute(statement)
    # What nodes executed is in their statistics some moments later.
    until = time.monotonic() + PATIENCE_S
    while True:
        told = await cluster.deployment.by_hand(600)
        moved = [what for what in told if what.startswith("ALTER")]
        if len(moved) == 2 and "RELOCATE" in moved[0] and moved[1].endswith("SCATTER"):
            break
        assert time.monotonic() < until, told
        await asyncio.sleep(0.2)
    assert told["set_zone_config"] == steps.get("set_zone_config", 0) + 1


async def _counts_ranges_without_a_quorum(cluster: Cluster) -> None:
    """As unavailable, which their own metric does not on a node that lost the others."""
    until = time.monotonic() + PATIENCE_S
    while not (told := (await cluster.deployment.gauges())["n1"].unavailable):
        assert time.monotonic() < until, told
        await asyncio.sleep(0.5)


async def _ids(cluster: Cluster) -> dict[str, int]:
    """Each node's own id, said by the node itself."""
    return {
        name: int((await ask(cluster, "SELECT crdb_internal.node_id()", node=name))[0][0]) for name in cluster.nodes
    }


async def _status(cluster: Cluster, id_: int) -> str:
    """A node's membership as ``cockroach node status`` has it."""
    argv = cluster.deployment.process(cluster.nodes[0]).argv
    certificates = f"--certs-dir={cluster.substrate.scratch / 'certs'}"
    done = await cluster.substrate.run(
        [argv[0], "node", "status", "--decommission", "--format=csv", certificates, *_host(cluster)],
        env={"HOME": str(cluster.substrate.scratch)},
        cwd=cluster.substrate.scratch,
        timeout=PATIENCE_S,
    )
    return parse_memberships(done.out)[id_]


def _host(cluster: Cluster) -> tuple[str, ...]:
    host = cluster.endpoints[0].hosts[0]
    return (f"--host={host.address}:{host.port}",)


def _keeps_its_secrets(workdir: Path) -> None:
    """Keys can be read by their owner only, and nobody else can look into the directories of certificates."""
    keys = list(workdir.rglob("*.key"))
    assert len(keys) >= 3
    for key in keys:
        assert stat.S_IMODE(key.stat().st_mode) == 0o600, key
    certificates = {key.parent for key in keys if key.name == "node.key"}
    assert len(certificates) == 4, "the harness's, and one of each node"
    assert {stat.S_IMODE(directory.stat().st_mode) for directory in certificates} == {0o700}
    for store in workdir.glob("*/nodes/*"):
        assert stat.S_IMODE(store.stat().st_mode) == 0o700


def _processes_in(directory: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if str(directory) in " ".join(process.info["cmdline"] or []):
            found.append(process)
    return found


def _listens_on_its_own_addresses_only(cluster: Cluster) -> None:
    assert isinstance(cluster.substrate, Processes)
    addresses = {endpoint.hosts[0].address for endpoint in cluster.endpoints}
    heard = set()
    for process in _processes_in(cluster.substrate.directory):
        for connection in process.net_connections():
            if connection.status == psutil.CONN_LISTEN or not connection.raddr:
                heard.add(connection.laddr.ip)
    assert heard == addresses
