"""Links between pods that are cut, on a real Kubernetes: what pods send vanishes, whoever sends it, and comes back."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clusters import events
from clusters.cluster import Cluster
from clusters.engines import ENGINES, Wanted
from clusters.errors import BadInput, HarnessError
from clusters.faults.cut import isolate
from clusters.faults.disturbance import disturb
from clusters.model import Capability, Health, NodeResources, NodeSpec, Topology
from clusters.sql import SqlError
from clusters.substrates.kubernetes.settings import CUTS
from clusters.waiting import wait_until
from tests.kubernetes.at_hand import AT_HAND, ENV, HANGS, apply, kubectl, opened, pod_of, spec
from tests.kubernetes.release import image_of

pytestmark = AT_HAND
CUT = {Capability.CUT_LINKS}
NODES = tuple(NodeSpec(name=f"n{number}") for number in (1, 2, 3))
PORT = 7000


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Any]:
    """Three nodes, each of which tells its own name to whoever asks."""
    substrate = await opened(tmp_path, needed=CUT)
    try:
        placed = await substrate.place(NODES)
        served = "mkdir -p www; echo {} > www/name; exec busybox httpd -f -p {} -h www"
        await asyncio.gather(*(substrate.start(spec(at, served.format(at.node.name, PORT))) for at in placed))
        yield substrate
    finally:
        await substrate.close()


async def told(place: Any, asks: str, asked: str) -> str:
    """What one node is told by another, by a program of its own. (Some builds of it crash with a limit of time.)"""
    address = place._nodes[asked].placement.address
    line = ["/bin/busybox", "timeout", "2", "/bin/busybox", "wget", "-q", "-O", "-", f"http://{address}:{PORT}/name"]
    return str((await place.run(line, env=ENV, timeout=30, node=asks)).out).strip()


async def tells(place: Any, asks: str, asked: str) -> None:
    """Wait until one node is told by another: on a busy machine two seconds may be too few."""

    async def once() -> Health:
        return Health(ok=await told(place, asks, asked) == asked)

    await wait_until(f"{asked} to tell {asks} its name", once, timeout=60)


async def test_only_the_link_that_is_cut_is_silent(place: Any) -> None:
    for other in ("n2", "n3"):
        await tells(place, "n1", other)
    assert "nothing arrives by datagrams, an open connection, a new connection" in await place.cut("n1", "n2")
    assert await told(place, "n1", "n2") == ""
    await tells(place, "n1", "n3")
    await tells(place, "n3", "n2")
    await place.kill("n2")
    await place.start(spec(place._nodes["n2"].placement, HANGS))
    assert await place.cut("n1", "n2"), "a node that is started again stays cut"
    await place.heal("n1", "n2")
    assert await place.cut("n2", "n1")
    await place.heal("n2", "n1")
    await tells(place, "n2", "n1")


async def test_a_pod_that_somebody_deletes_was_not_cut_all_the_time(place: Any) -> None:
    await place.cut("n1", "n2")
    pod, namespace = pod_of(place._nodes["n2"].placement)
    former = place._pods[pod].uid
    kubectl("-n", namespace, "delete", "pod", pod, "--grace-period=0", "--force")
    await place._pods.until(
        "another pod", place._pods[pod], lambda: place._pods[pod].uid not in ("", former), timeout=60
    )
    with pytest.raises(HarnessError, match="was not cut all the time: a pod was made anew meanwhile"):
        await place.heal("n1", "n2")


async def test_an_image_that_is_not_to_be_had_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CUTS, "nowhere.invalid/none:1")
    # Where it is not said that it never will be had, it is tried again for so long.
    monkeypatch.setattr("clusters.substrates.kubernetes.links._START_S", 30)
    substrate = await opened(tmp_path, needed=CUT)
    try:
        await substrate.place(NODES[:2])
        said = rf"{CUTS}=nowhere\.invalid/none:1: .*container cutter: .*Image.*; name an image that the cluster can"
        with pytest.raises(BadInput, match=said):
            await substrate.cut("n1", "n2")
    finally:
        await substrate.close()


async def test_a_namespace_that_forbids_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    apply(
        tmp_path / "s.json", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "strict", "labels": labels}}
    )
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "strict")
    try:
        substrate = await opened(tmp_path, needed=CUT)
        try:
            await substrate.place(NODES[:2])
            with pytest.raises(BadInput, match=r"violates PodSecurity \"baseline.*that is a rule of the cluster"):
                await substrate.cut("n1", "n2")
        finally:
            await substrate.close()
    finally:
        kubectl("delete", "namespace", "strict", "--wait=false")


async def test_a_node_that_is_isolated_serves_nobody_and_the_others_go_on(tmp_path: Path) -> None:
    """Of CockroachDB, by the fault that claims use."""
    program = image_of()[1]
    if not program:
        pytest.skip("no build of CockroachDB is in the cache")
    recorded: list[events.Happened] = []
    substrate = await opened(tmp_path, needed=CUT)
    try:
        cluster = await Cluster.provision(
            engine=ENGINES["cockroach"].find(Wanted(path=program)),
            substrate=substrate,
            topology=Topology(name="three", nodes=NODES),
            resources=NodeResources(cache_mib=64, sql_memory_mib=64),
            tuned=False,
            record=recorded.append,
        )
        await cluster.replicated()
        async with await cluster.deployment.connect("n1") as connection:
            await connection.execute("CREATE TABLE kept (answer INT PRIMARY KEY)", timeout=60.0)
        async with disturb(cluster, isolate(), ["n3"]):
            async with await cluster.deployment.connect("n1") as connection:
                await connection.execute("INSERT INTO kept VALUES (42)", timeout=60.0)
            with pytest.raises((SqlError, TimeoutError)):
                async with asyncio.timeout(10), await cluster.deployment.connect("n3") as connection:
                    await connection.execute("INSERT INTO kept VALUES (43)", timeout=5.0)
        (bit,) = [event for event in recorded if isinstance(event, events.FaultBit)]
        assert bit.proof.count("nothing arrives by datagrams") == 4, "to and from each of the others"
        async with await cluster.deployment.connect("n3") as connection:
            ((answer,),) = await connection.query("SELECT answer FROM kept", timeout=60.0)
        assert answer == 42
    finally:
        await substrate.close()
