"""What the thesis did to its StatefulSets by ``kubectl``, done to the control while somebody inserts: nothing is lost.

``docs/kubernetes.md`` says which of its commands is which test.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from clusters.cluster import Cluster
from clusters.engines import ENGINES, Wanted
from clusters.errors import HarnessError
from clusters.faults.disturbance import disturb
from clusters.faults.node import resize
from clusters.model import Health, NodeResources, NodeSpec, ProcessState, Topology
from clusters.sql import Connection, SqlError
from clusters.substrates.kubernetes import settings
from clusters.substrates.kubernetes.manifests import Template
from clusters.waiting import wait_until
from tests.kubernetes.at_hand import AT_HAND, eventually, kubectl, opened, pod_of

pytestmark = [AT_HAND, pytest.mark.asyncio(loop_scope="module")]
NODES = tuple(NodeSpec(name=f"n{number}") for number in (1, 2, 3))
NOWHERE = "nowhere.invalid/none:1"


class Inserts:
    """Inserts of one client, each number once, from ``begin`` on, whatever happens to the servers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.acknowledged: list[int] = []

    async def begin(self) -> "asyncio.Task[None]":
        async with await self._cluster.deployment.connect() as connection:
            await connection.execute("CREATE TABLE inserts (id INT PRIMARY KEY)", timeout=10.0)
        return asyncio.create_task(self._insert())

    async def _insert(self) -> None:
        number = 0
        connection: Connection | None = None
        while True:
            number += 1
            try:
                connection = connection or await self._cluster.deployment.connect(timeout=3.0)
                await connection.execute(f"INSERT INTO inserts VALUES ({number})", timeout=3.0)
                self.acknowledged.append(number)
                await asyncio.sleep(0.02)
            except SqlError:
                if connection is not None:
                    async with connection:
                        await asyncio.sleep(0.1)
                connection = None

    async def go_on(self) -> None:
        """Wait until more are acknowledged."""
        before = len(self.acknowledged)

        async def more() -> Health:
            return Health(ok=len(self.acknowledged) >= before + 20, why=f"{len(self.acknowledged) - before} of 20")

        await wait_until("more inserts", more, timeout=120, watch=self._cluster.watch)

    async def missing(self) -> set[int]:
        """What was acknowledged and is not there. What is acknowledged while it is read may be, or not."""
        before = set(self.acknowledged)
        async with await self._cluster.deployment.connect() as connection:
            rows = await connection.query("SELECT id FROM inserts", timeout=30.0)
        return before - {int(row["id"]) for row in rows}

    async def primary(self) -> str:
        (table,) = await self._cluster.deployment.ranges("inserts")
        return table.lease


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    substrate = await opened(tmp_path_factory.mktemp("control"))
    try:
        cluster = await Cluster.provision(
            engine=ENGINES["postgres"].find(Wanted()),
            substrate=substrate,
            topology=Topology(name="three", nodes=NODES),
            resources=NodeResources(cache_mib=64, sql_memory_mib=64),
            tuned=True,
        )
        cluster.measured = False  # what is done to it by others here would end a claim
        yield cluster
    finally:
        await substrate.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def inserts(cluster: Cluster) -> AsyncIterator[Inserts]:
    client = Inserts(cluster)
    task = await client.begin()
    await client.go_on()
    yield client
    task.cancel()


def told(cluster: Cluster, kind: str, name: str) -> Any:
    _, namespace = where(cluster, "n1")
    return json.loads(kubectl("-n", namespace, "get", kind, name, "-o", "json"))


def where(cluster: Cluster, node: str) -> tuple[str, str]:
    place: Any = cluster.substrate
    return pod_of(place._nodes[node].placement)


async def deleted(cluster: Cluster, node: str, *how: str) -> None:
    """``kubectl delete pod``, and another one is there."""
    pod, namespace = where(cluster, node)
    former = told(cluster, "pod", pod)["metadata"]["uid"]
    cluster.mark(node, down=True)
    kubectl("-n", namespace, "delete", "pod", pod, "--wait=false", *how)
    uid = ("-n", namespace, "get", "pod", pod, "-o", "jsonpath={.metadata.uid}", "--ignore-not-found")
    await eventually("another pod", lambda: kubectl(*uid) not in ("", former))


@pytest.mark.parametrize("how", [[], ["--grace-period=0", "--force"]], ids=["gracefully", "with no grace"])
async def test_kubectl_delete_pod_while_inserting(cluster: Cluster, inserts: Inserts, how: list[str]) -> None:
    hit = await inserts.primary()
    await deleted(cluster, hit, *how)
    await inserts.go_on()
    await eventually("it to go on", lambda: cluster.substrate.state(hit) is ProcessState.RUNNING)
    cluster.mark(hit, down=False)
    await cluster.healthy()
    assert await inserts.missing() == set()


async def test_kubectl_set_image_that_one_pod_cannot_pull_and_back(
    cluster: Cluster, inserts: Inserts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest serves meanwhile, and with the former image the pod goes on with its volume."""
    monkeypatch.setattr(settings, "_START_S", 30.0)  # where it is not said that it never will be, it is tried again
    primary = await inserts.primary()
    hit = next(node for node in cluster.nodes if node != primary)
    pod, namespace = where(cluster, hit)
    group = pod.rpartition("-")[0]
    image = told(cluster, "pod", pod)["spec"]["containers"][0]["image"]
    kubectl("-n", namespace, "set", "image", f"statefulset/{group}", f"node={NOWHERE}")
    await deleted(cluster, hit, "--grace-period=0", "--force")
    with pytest.raises(HarnessError, match=rf"{NOWHERE}.*name an image that the cluster can pull"):
        await cluster.substrate.kill(hit)
    await inserts.go_on()
    kubectl("-n", namespace, "set", "image", f"statefulset/{group}", f"node={image}")
    await deleted(cluster, hit)
    await eventually("it to go on", lambda: cluster.substrate.state(hit) is ProcessState.RUNNING)
    cluster.mark(hit, down=False)
    await cluster.healthy()
    assert await inserts.missing() == set()


async def test_kubectl_edit_of_cpu_and_memory_one_pod_after_the_other(cluster: Cluster, inserts: Inserts) -> None:
    """First pods without limits get some, by other pods; then these get others, in place."""
    # Of the first nine have room on three machines of two cores each.
    first = NodeResources(cache_mib=96, sql_memory_mib=64, cpus=0.6, memory_mib=640)
    then = NodeResources(cache_mib=80, sql_memory_mib=64, cpus=0.5, memory_mib=576)
    for resources, in_place in ((first, False), (then, True)):
        limits = Template(image="", cpus=resources.cpus, memory_mib=resources.memory_mib).limits
        for node in cluster.nodes:
            pod, _ = where(cluster, node)
            former = told(cluster, "pod", pod)["metadata"]["uid"]
            async with disturb(cluster, resize(resources), [node]):
                pass
            assert cluster.substrate.limits(node) == {"cpus": resources.cpus, "memory_mib": resources.memory_mib}
            assert await cluster.deployment.shown(node) == {"cache_mib": resources.cache_mib}
            assert told(cluster, "pod", pod)["spec"]["containers"][0]["resources"]["limits"] == limits
            assert (told(cluster, "pod", pod)["metadata"]["uid"] == former) is in_place
            await cluster.healthy()
        template = told(cluster, "statefulset", pod.rpartition("-")[0])["spec"]["template"]
        assert template["spec"]["containers"][0]["resources"]["limits"] == limits
        await inserts.go_on()
    assert await inserts.missing() == set()


@pytest.mark.parametrize("replicas", [6, 9], ids=["from three to six", "from six to nine"])
async def test_kubectl_scale_by_three_replicas(cluster: Cluster, inserts: Inserts, replicas: int) -> None:
    pod, _ = where(cluster, "n1")
    assert len(cluster.nodes) == replicas - 3
    for number in range(replicas - 2, replicas + 1):
        await cluster.add(NodeSpec(name=f"n{number}"))
        assert told(cluster, "statefulset", pod.rpartition("-")[0])["spec"]["replicas"] == number
    await cluster.healthy()
    await inserts.go_on()
    (table,) = await cluster.deployment.ranges("inserts")
    assert set(table.replicas) == set(cluster.nodes) == {f"n{number}" for number in range(1, replicas + 1)}
    assert await inserts.missing() == set()
