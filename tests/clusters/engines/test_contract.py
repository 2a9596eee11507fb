"""What every engine that is registered must do: asked of a cluster of three on real processes.

An engine that is not embedded is skipped where none is to be had without a download.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from clusters.cluster import Cluster
from clusters.engines import ENGINES, Deployment, Engine, Wanted
from clusters.errors import BadInput, HarnessError
from clusters.model import Capability, Health, NodeResources
from clusters.sql import Connection, Failure, SqlError
from clusters.waiting import wait_until
from tests.clusters.real_cockroach import leader, running
from tests.clusters.substrates.processes.process_nodes import PATIENCE_S

OTHERS = NodeResources(cache_mib=256, sql_memory_mib=192)

ONLY_WITH: dict[Capability, list[Callable[[Deployment], Awaitable[object]]]] = {
    Capability.REPORT_RANGES: [lambda d: d.layout()],
    Capability.REBALANCE: [lambda d: d.moves(60), lambda d: d.by_hand(60)],
    Capability.REMOVE_NODE: [lambda d: d.remove("n1", timeout=1), lambda d: d.refusal("n1")],
}
"""What a deployment is asked only where its engine says that it can; elsewhere it says that it cannot."""
ASKED = (Capability.REPORT_RANGES, Capability.REBALANCE)
"""Of those, what changes nothing."""


def to_be_had(name: str) -> Engine:
    """The engine; skips the test where there is none on this machine."""
    kind = ENGINES[name]
    try:
        return kind.find(Wanted(download=False))
    except BadInput as error:
        if kind.embedded:
            raise
        pytest.skip(f"no {name} binary: {error}")


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_is_known_before_it_is_found(name: str) -> None:
    kind = ENGINES[name]
    assert kind.name == name
    assert kind.capabilities <= frozenset(Capability)
    if kind.choice.path:
        with pytest.raises(BadInput, match="nowhere"):
            kind.find(Wanted(path="/nowhere", download=False))


@pytest.mark.parametrize("name", ENGINES)
async def test_a_deployment_keeps_to_the_contract(name: str, tmp_path: Path) -> None:
    engine = to_be_had(name)
    async with running(tmp_path, engine) as cluster:
        async with await cluster.deployment.connect() as connection:
            await connection.execute("CREATE TABLE ledger (k INT PRIMARY KEY, v INT)")
        await cluster.replicated(timeout=PATIENCE_S)
        await _tells_what_it_is(cluster)
        await _refuses_what_it_cannot(cluster)
        async with await cluster.deployment.connect() as one, await cluster.deployment.connect() as other:
            await speaks_the_protocol(one)
            await _tells_a_conflict(one, other)
        serving = await leader(cluster, "ledger")
        others = [node for node in cluster.nodes if node != serving]
        await _notices_a_dead_node(cluster, others[0])
        await _acknowledges_nothing_without_a_majority(cluster, others)


async def _tells_what_it_is(cluster: Cluster) -> None:
    """In JSON and without secrets; each node by its name; where the table's parts are."""
    deployment, nodes = cluster.deployment, set(cluster.nodes)
    told = json.dumps([await deployment.observe(), cluster.engine.fingerprint, deployment.tuned])
    assert cluster.engine.version in told
    if password := deployment.credentials.password:
        assert password not in told
    assert {host.node for endpoint in deployment.endpoints for host in endpoint.hosts} == nodes
    for node in nodes:
        assert (await deployment.accepting(node)).ok
        assert deployment.process(node).name == node
        assert {"cache_mib": 384}.items() <= dict(await deployment.shown(node)).items()
    for range_ in await deployment.ranges("ledger"):
        assert range_.lease in range_.replicas
        assert set(range_.replicas) == nodes


async def _refuses_what_it_cannot(cluster: Cluster) -> None:
    """With an error of ours that says what there is none of, or what cannot be done."""
    deployment, capabilities = cluster.deployment, cluster.engine.kind.capabilities
    with pytest.raises(HarnessError, match="no_such_table"):
        await deployment.ranges("no_such_table")
    with pytest.raises(HarnessError, match="n9 is not a node of this cluster"):
        await deployment.connect("n9")
    with pytest.raises(HarnessError, match="n9 is not a node of this cluster"):
        await deployment.drain("n9", timeout=9.0)
    with pytest.raises(HarnessError, match="n9 is not a node of this cluster"):
        await deployment.give("n9", OTHERS)
    for capability, asked in ONLY_WITH.items():
        for ask in asked:
            if capability not in capabilities:
                with pytest.raises(HarnessError):
                    await ask(deployment)
            elif capability in ASKED:
                await ask(deployment)
    if Capability.REMOVE_NODE not in capabilities:
        with pytest.raises(HarnessError, match="cannot remove a node"):
            await cluster.remove("n1")
    assert (deployment.backups is not None) == (Capability.BACKUP in capabilities)


async def speaks_the_protocol(connection: Connection) -> None:
    """Rows and how many were written; what is refused leaves the connection as it was."""
    assert await connection.execute("INSERT INTO ledger VALUES (1, 0), (2, 0)") == 2
    (row,) = await connection.query("SELECT k, v FROM ledger WHERE k = $1", 2)
    assert (tuple(row), row["k"], row[1]) == ((2, 0), 2, 0)
    assert await connection.value("SELECT v FROM ledger WHERE k = $1", 9) is None
    add = "UPDATE ledger SET v = v + $2 WHERE k = $1"
    assert [await connection.execute(add, 1, 5), await connection.execute(add, 9, 5)] == [1, 0]
    assert await connection.value("SELECT v FROM ledger WHERE k = $1", 1) == 5
    for wrong in ("INSERT INTO ledger VALUES (1, 1)", "SELECT * FROM nowhere", "SELEC 1"):
        with pytest.raises(SqlError) as refused:
            await connection.execute(wrong)
        assert refused.value.failure is Failure.REFUSED, refused.value
        assert refused.value.code
    with pytest.raises(SqlError):
        await _together(connection, 3, 1)
    await _together(connection, 4)
    assert [row["k"] for row in await connection.query("SELECT k FROM ledger ORDER BY k")] == [1, 2, 4]


async def _together(connection: Connection, *keys: int) -> None:
    async with connection.transaction():
        for key in keys:
            await connection.execute("INSERT INTO ledger VALUES ($1, 0)", key)


async def _tells_a_conflict(one: Connection, other: Connection) -> None:
    """Of two transactions that read what the other writes at most one is committed; the other may be tried again."""
    with pytest.raises(SqlError) as conflict:
        await _crosswise(one, other)
    assert conflict.value.failure is Failure.RETRYABLE, conflict.value
    assert await one.value("SELECT count(*) FROM ledger WHERE v = 100") <= 1


async def _crosswise(one: Connection, other: Connection) -> None:
    async with one.transaction(), other.transaction():
        for connection in (one, other):
            await connection.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        await one.query("SELECT v FROM ledger WHERE k = 1")
        await other.query("SELECT v FROM ledger WHERE k = 2")
        await one.execute("UPDATE ledger SET v = 100 WHERE k = 2")
        await other.execute("UPDATE ledger SET v = 100 WHERE k = 1")


async def _notices_a_dead_node(cluster: Cluster, victim: str) -> None:
    """Nobody connects to it, it is missed, and it comes back with what it was given meanwhile."""
    deployment = cluster.deployment
    cut_off = await deployment.connect(victim)
    await cluster.kill(victim)
    with pytest.raises(SqlError) as lost:
        await cut_off.value("SELECT 1", timeout=PATIENCE_S)
    assert lost.value.failure is Failure.LOST, lost.value
    cut_off.terminate()
    with pytest.raises(SqlError, match=victim) as lost:
        await deployment.connect(victim, timeout=PATIENCE_S)
    assert lost.value.failure is Failure.LOST, lost.value
    answer = await deployment.accepting(victim)
    assert not answer.ok
    assert "ConnectionRefused" in answer.why

    async def missed() -> Health:
        health = await deployment.healthy()
        return Health(ok=not health.ok and victim in health.why, why=str(health))

    await wait_until(f"{victim} to be missed", missed, timeout=PATIENCE_S)
    await deployment.give(victim, OTHERS)
    await cluster.restart(victim)
    await cluster.healthy(timeout=PATIENCE_S)
    shown = await deployment.shown(victim)
    assert shown["cache_mib"] == OTHERS.cache_mib
    assert shown.get("sql_memory_mib", OTHERS.sql_memory_mib) == OTHERS.sql_memory_mib
    async with await deployment.connect(victim) as connection:
        assert await connection.value("SELECT count(*) FROM ledger") == 3


async def _acknowledges_nothing_without_a_majority(cluster: Cluster, others: list[str]) -> None:
    """What was never acknowledged may be there or not, and says so."""
    async with await cluster.deployment.connect(await leader(cluster, "ledger")) as connection:
        for node in others:
            await cluster.kill(node)
        with pytest.raises(SqlError) as unanswered:
            await connection.execute("INSERT INTO ledger VALUES (9, 9)", timeout=6)
    assert unanswered.value.failure is Failure.AMBIGUOUS, unanswered.value
    health = await cluster.deployment.healthy()
    assert not health.ok
    assert health.why
    await asyncio.gather(*(cluster.restart(node) for node in others))
    await cluster.healthy(timeout=PATIENCE_S)
    async with await cluster.deployment.connect() as connection:
        assert await connection.value("SELECT count(*) FROM ledger") in (3, 4)
    assert not cluster.down
