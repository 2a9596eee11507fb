"""Pods that get other CPU and memory on a real Kubernetes: in place where that can be, else by another pod."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes.utils.quantity import parse_quantity

from clusters.errors import HarnessError
from clusters.model import NodeResources, ProcessState
from tests.kubernetes.at_hand import (
    AT_HAND,
    ENV,
    HANGS,
    apply,
    begun,
    eventually,
    history,
    kubectl,
    opened,
    pod_of,
    spec,
)

pytestmark = AT_HAND


def size(cpus: float | None, memory_mib: int | None) -> NodeResources:
    return NodeResources(cache_mib=1, sql_memory_mib=1, cpus=cpus, memory_mib=memory_mib)


def told(kind: str, name: str, namespace: str) -> Any:
    return json.loads(kubectl("-n", namespace, "get", kind, name, "-o", "json"))


def container(at: Any) -> tuple[str, str]:
    """The pod's identity, and that of the container in it."""
    pod = told("pod", *pod_of(at))
    (status,) = pod["status"]["containerStatuses"]
    return pod["metadata"]["uid"], status["containerID"]


async def another_size(place: Any, at: Any, resources: NodeResources) -> None:
    """As a node gets it: it has handed over its work, is stopped, and starts again."""
    await place.stop("n1", timeout=20)
    await place.start(spec(at, HANGS, resources))


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Any]:
    substrate = await opened(tmp_path)
    try:
        yield substrate
    finally:
        await substrate.close()


async def test_a_node_gets_more_and_less_of_both_in_its_pod(place: Any, tmp_path: Path) -> None:
    """Its process alone starts anew, and where its memory changes its container; its StatefulSet knows, too."""
    at = await begun(place, limits=size(0.5, 64))
    pod, namespace = pod_of(at)
    await place.put("n1", at.store / "kept", b"kept")
    before, starts = container(at), place._pods[pod].starts
    for cpus, memory_mib, another in ((0.25, 64, False), (0.5, 96, True), (0.25, 48, True), (0.75, 48, False)):
        await another_size(place, at, size(cpus, memory_mib))
        assert place.limits("n1") == {"cpus": cpus, "memory_mib": float(memory_mib)}
        now = container(at)
        assert now[0] == before[0], history(tmp_path)
        assert (now[1] != before[1]) is another
        before, starts = now, starts + 1
        assert place._pods[pod].starts == starts, "its process was started once each time"
        wanted = {"cpu": f"{cpus * 1000:.0f}m", "memory": f"{memory_mib}Mi"}
        template = told("statefulset", pod.rpartition("-")[0], namespace)["spec"]["template"]
        assert template["spec"]["containers"][0]["resources"] == {"limits": wanted, "requests": wanted}
        assert f"given cpu {wanted['cpu']}, memory {wanted['memory']} in place, by its control" in history(tmp_path)
    done = await place.run(["/bin/cat", str(at.store / "kept")], env=ENV, timeout=20, node="n1")
    assert done.out == "kept"
    kubectl("-n", namespace, "delete", "pod", pod, "--wait=false")

    def goes_on() -> bool:
        uid = kubectl("-n", namespace, "get", "pod", pod, "-o", "jsonpath={.metadata.uid}", "--ignore-not-found")
        return uid not in ("", before[0]) and place.state("n1") is ProcessState.RUNNING

    await eventually("another pod to go on", goes_on)
    assert place.limits("n1") == {"cpus": 0.75, "memory_mib": 48.0}, "as the StatefulSet was told"


async def test_limits_that_are_added_or_taken_away_take_another_pod(place: Any, tmp_path: Path) -> None:
    at = await begun(place)
    await place.put("n1", at.store / "kept", b"kept")
    for resources, limits in ((size(0.25, 64), {"cpus": 0.25, "memory_mib": 64.0}), (size(None, None), {})):
        before = container(at)[0]
        await another_size(place, at, resources)
        assert place.limits("n1") == limits
        assert container(at)[0] != before
    assert "made anew, as limits are neither added nor taken away in place" in history(tmp_path)
    done = await place.run(["/bin/cat", str(at.store / "kept")], env=ENV, timeout=20, node="n1")
    assert done.out == "kept", "its volume goes with it"


async def test_a_machine_without_room_has_another_pod_made_on_one_that_has_it(place: Any, tmp_path: Path) -> None:
    """In the words of the machine; and where none has it, those of the scheduler, too."""
    at = await begun(place, limits=size(0.1, 64))
    pod, namespace = pod_of(at)
    before = told("pod", pod, namespace)
    machine = before["spec"]["nodeName"]
    cores = parse_quantity(told("node", machine, namespace)["status"]["allocatable"]["cpu"])
    filler: dict[str, Any] = {"image": before["spec"]["containers"][0]["image"], "name": "fills"}
    filler |= {"command": ["sleep", "3600"], "resources": {"requests": {"cpu": f"{float(cores) * 1000 - 600:.0f}m"}}}
    fills = {"nodeName": machine, "containers": [filler], "terminationGracePeriodSeconds": 0}
    where = {"name": "fills", "namespace": namespace}
    apply(tmp_path / "fills.json", {"apiVersion": "v1", "kind": "Pod", "metadata": where, "spec": fills})
    await eventually("it to be there", lambda: told("pod", "fills", namespace)["status"]["phase"] == "Running")
    await another_size(place, at, size(1, 64))
    assert place.limits("n1") == {"cpus": 1.0, "memory_mib": 64.0}
    after = told("pod", pod, namespace)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["spec"]["nodeName"] != machine
    assert "made anew, as it was not given cpu 1000m, memory 64Mi in place: Deferred: " in history(tmp_path)


async def test_a_size_that_no_machine_has_is_said_in_words_of_both(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    at = await begun(place, limits=size(0.1, 64))
    monkeypatch.setattr("clusters.substrates.kubernetes.settings._START_S", 20)
    said = r"made anew as it was not given cpu 64000m.* in place: Infeasible: Node didn't have enough capacity.*"
    with pytest.raises(HarnessError, match=rf"{said}Unschedulable: .*Insufficient cpu"):
        await another_size(place, at, size(64, 64))


async def test_what_a_quota_or_limit_range_refuses_is_said_with_the_pod_still_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = {"name": "little", "namespace": "little"}
    bounds = {"type": "Container", "max": {"memory": "80Mi"}}
    apply(
        tmp_path / "little.json",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "little"}},
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"requests.cpu": "200m"}}},
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": [bounds]}},
    )
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "little")
    try:
        place = await opened(tmp_path)
        try:
            at = await begun(place, limits=size(0.1, 64))
            before = container(at)
            await place.stop("n1", timeout=20)
            for resources, why in (
                (size(0.3, 64), "exceeded quota: little, requested: requests.cpu=200m"),
                (size(0.1, 96), "maximum memory usage per Container is 80Mi, but limit is 96Mi"),
            ):
                with pytest.raises(HarnessError, match=rf"{why}.*that is a rule of the cluster, not a right"):
                    await place.start(spec(at, HANGS, resources))
            assert container(at) == before
            await place.start(spec(at, HANGS, size(0.2, 80)))
            assert place.limits("n1") == {"cpus": 0.2, "memory_mib": 80.0}
            assert container(at)[0] == before[0]
        finally:
            await place.close()
    finally:
        kubectl("delete", "namespace", "little", "--wait=false")
