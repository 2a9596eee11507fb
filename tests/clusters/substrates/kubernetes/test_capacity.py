"""Whether pods fit, on what an API server tells."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from clusters.errors import BadInput
from clusters.generators import WantedGenerators
from clusters.model import NodeResources, NodeSpec
from clusters.substrates.kubernetes import capacity
from clusters.substrates.kubernetes.capacity import (
    Asked,
    beyond_limit_ranges,
    beyond_machines,
    beyond_quotas,
    refuse_shortage,
    without_storage,
    zones,
)
from clusters.substrates.kubernetes.manifests import Settings, group

ASKED = Asked(nodes=3, groups=1, cpus=2, memory_mib=4096, volume_mib=1024, storage_class="fast")
UNLIMITED = replace(ASKED, cpus=None, memory_mib=None)
LOADED = replace(ASKED, generators=WantedGenerators(number=4, image="suite:1", cpus=0.5, memory_mib=512))


def quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "team"}, "spec": {"hard": hard, **spec}, "status": {"used": used or {}}}


@pytest.mark.parametrize(
    ("hard", "used", "says"),
    [
        ({"limits.memory": "12Gi"}, {}, None),
        ({"limits.memory": "12Gi"}, {"limits.memory": "1Mi"}, "12,288 MiB are asked, 12,287 MiB of 12Gi are left"),
        ({"requests.cpu": "6500m"}, {"requests.cpu": "600m"}, "requests.cpu: 6 are asked, 5.9 of 6500m are left"),
        ({"cpu": "6"}, {}, None),
        ({"cpu": "10", "requests.cpu": "6.3"}, {"requests.cpu": "0.3"}, None),
        ({"pods": "10"}, {"pods": "8"}, "pods: 3 are asked, 2 of 10 are left"),
        ({"count/statefulsets.apps": "0"}, {}, "count/statefulsets.apps: 1 are asked, 0 of 0 are left"),
        ({"requests.storage": "3Gi"}, {}, None),
        ({"requests.storage": "2Gi"}, {}, "requests.storage: 3,072 MiB are asked"),
        ({"fast.storageclass.storage.k8s.io/requests.storage": "1Gi"}, {}, "3,072 MiB are asked, 1,024 MiB of 1Gi"),
        ({"slow.storageclass.storage.k8s.io/requests.storage": "0"}, {}, None),
        ({"secrets": "0", "requests.nvidia.com/gpu": "0"}, {}, None),
    ],
)
def test_what_a_quota_leaves(hard: dict[str, str], used: dict[str, str], says: str | None) -> None:
    found = list(beyond_quotas(ASKED, [quota(hard, used)]))
    assert len(found) == (says is not None)
    assert says is None or (found[0].startswith("ResourceQuota team") and says in found[0])


def test_a_quota_that_wants_declared_limits_admits_no_pod_without() -> None:
    (found,) = beyond_quotas(UNLIMITED, [quota({"limits.cpu": "100"})])
    assert "admits only pods with limits.cpu, of which the profile declares none" in found
    assert not list(beyond_quotas(UNLIMITED, [quota({"limits.cpu": "100"}, scopes=["Terminating"])]))


def limit_range(kind: str, **bounds: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": "usual"}, "spec": {"limits": [{"type": kind, **bounds}]}}


@pytest.mark.parametrize(
    ("asked", "given", "says"),
    [
        (ASKED, limit_range("Container", max={"cpu": "2", "memory": "4Gi"}, min={"cpu": "2"}), None),
        (replace(ASKED, cpus=0.1), limit_range("Container", max={"cpu": "100m"}), None),
        (ASKED, limit_range("Container", max={"cpu": "1500m"}), "a Container may have cpu 1500m, 2 are asked"),
        (ASKED, limit_range("Pod", min={"memory": "8Gi"}), "a Pod must have memory 8Gi, 4,096 MiB are asked"),
        (ASKED, limit_range("Container", default={"cpu": "1"}, defaultRequest={"cpu": "1"}), None),
        (UNLIMITED, limit_range("Container", default={"cpu": "1"}), "limits cpu to 1, and the profile declares no"),
        (UNLIMITED, limit_range("Container", defaultRequest={"cpu": "1"}), None),
        (ASKED, limit_range("PersistentVolumeClaim", max={"storage": "512Mi"}), "may have storage 512Mi, 1,024 MiB"),
        (ASKED, limit_range("openshift.io/Image", max={"storage": "1Mi"}), None),
    ],
)
def test_what_a_limit_range_refuses_or_would_change(asked: Asked, given: dict[str, Any], says: str | None) -> None:
    found = list(beyond_limit_ranges(asked, [given]))
    assert len(found) == (says is not None)
    assert says is None or says in found[0]


def machine(name: str, cpu: str, memory: str, zone: str = "a", **spec: Any) -> dict[str, Any]:
    allocatable = {"cpu": cpu, "memory": memory, "pods": "110"}
    return {"metadata": {"name": name, "labels": {"zone": zone}}, "spec": spec, "status": {"allocatable": allocatable}}


def pod(on: str, **requests: str) -> dict[str, Any]:
    return {"spec": {"nodeName": on, "containers": [{"resources": {"requests": requests}}, {}]}}


MACHINES = [machine("m1", "4", "16Gi"), machine("m2", "4", "6Gi"), machine("m3", "1900m", "16Gi")]


def test_machines_have_room_beside_what_runs_there() -> None:
    def lacking(machines: list[dict[str, Any]], pods: list[dict[str, Any]]) -> list[str]:
        return list(beyond_machines(ASKED, machines, pods, {"node-a": 3}, {}))

    assert lacking(MACHINES, [pod("m3", cpu="1"), pod("gone", cpu="9")]) == []
    (said,) = lacking(MACHINES, [pod("m1", cpu="2500m", memory="1Gi")])
    assert said == (
        "machines: 3 nodes of node-a ask cpu 2, memory 4,096 MiB each, 1 fit (m1 has cpu 1.5, memory 15,360 MiB, pods "
        "109; m2 has cpu 4, memory 6,144 MiB, pods 110; m3 has cpu 1.9, memory 16,384 MiB, pods 110)"
    )
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    closed = [machine("m1", "9", "99Gi", unschedulable=True), machine("m2", "9", "99Gi", taints=[taint])]
    (said,) = lacking(closed, [])
    assert "0 fit (none takes them)" in said
    unsaid: list[dict[str, Any]] = [{"metadata": {"name": "new"}, "spec": {}, "status": {}}]
    unsaid.append({"metadata": {"name": "new"}, "spec": {}})
    assert lacking([*MACHINES, *unsaid], []) == [], "one that does not say what it has is no reason to fail"
    (said,) = lacking(unsaid, [])
    assert "0 fit (new has cpu 0, memory 0 MiB, pods 0" in said


@pytest.mark.parametrize(
    ("hard", "says"),
    [
        ({"limits.memory": "14Gi", "cpu": "8", "pods": "7", "count/jobs.batch": "1"}, None),
        ({"limits.memory": "13Gi"}, "limits.memory: 14,336 MiB are asked, 13,312 MiB of 13Gi are left"),
        ({"cpu": "7"}, "cpu: 8 are asked, 7 of 7 are left"),
        ({"pods": "6"}, "pods: 7 are asked, 6 of 6 are left"),
        ({"count/jobs.batch": "0"}, "count/jobs.batch: 1 are asked"),
    ],
)
def test_load_generators_count_in_a_quota(hard: dict[str, str], says: str | None) -> None:
    found = list(beyond_quotas(LOADED, [quota(hard)]))
    assert len(found) == (says is not None)
    assert says is None or says in found[0]


def test_load_generators_without_limits_are_refused_where_limits_are_asked_for() -> None:
    unlimited = replace(ASKED, generators=WantedGenerators(number=1, image="suite:1"))
    (found,) = beyond_quotas(unlimited, [quota({"limits.cpu": "100"})])
    assert "admits only pods with limits.cpu" in found
    (found,) = beyond_limit_ranges(unlimited, [limit_range("Container", default={"memory": "1Gi"})])
    assert "limits memory to 1Gi, and the profile declares no such limit" in found


@pytest.mark.parametrize(
    ("number", "fit"), [(1, None), (5, None), (6, 5), (1000, 5)], ids=["one", "all", "one too many", "far too many"]
)
def test_load_generators_have_room_beside_nodes(number: int, fit: int | None) -> None:
    """Nodes take six of eight and a half cores, whichever machines they go to."""
    asked = replace(LOADED, generators=WantedGenerators(number=number, image="suite:1", cpus=0.5))
    machines = [machine("m1", "4500m", "64Gi"), machine("m2", "4", "64Gi")]
    said = list(beyond_machines(asked, machines, [], {"node-a": 3}, {}))
    told = f"machines: {number} load generators ask cpu 0.5 each, {fit} fit beside the nodes"
    assert said == ([] if fit is None else [f"{told} (see --generators)"])


def test_a_zone_has_room_only_on_its_own_machines() -> None:
    machines = [machine("m1", "8", "64Gi", "a"), machine("m2", "2", "64Gi", "b")]
    groups, where = {"node-a": 1, "node-b": 2}, {"node-a": {"zone": "a"}, "node-b": {"zone": "b"}}
    (said,) = beyond_machines(ASKED, machines, [], groups, where)
    assert "2 nodes of node-b ask" in said
    assert "1 fit (m2 has" in said
    assert not list(beyond_machines(UNLIMITED, machines, [], groups, where))


def test_a_storage_class_is_there_or_the_default_one() -> None:
    default = {"metadata": {"name": "slow", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}
    unnamed = replace(ASKED, storage_class=None)
    assert list(without_storage(ASKED, [default])) == ["storage class fast is not there; there are: slow"]
    assert list(without_storage(unnamed, [default])) == []
    (said,) = without_storage(unnamed, [{"metadata": {"name": "fast"}}])
    assert "no storage class is the default one" in said
    assert list(without_storage(ASKED, [{"metadata": {"name": "fast"}}])) == []


class Server:
    """An API server with machines, a default storage class, and a quota of that; the account may look at all."""

    where = "context lab"

    def __init__(self, machines: list[dict[str, Any]]) -> None:
        self.core = self.storage = SimpleNamespace(
            list_node=machines,
            list_storage_class=[default_class_of("slow", "2024-01-01"), default_class_of("fast", "2025-01-01")],
            list_namespaced_resource_quota=[quota({"fast.storageclass.storage.k8s.io/requests.storage": "1Gi"})],
            list_namespaced_limit_range=[],
            list_pod_for_all_namespaces=[],
        )

    async def told(self, what: str, listed: list[dict[str, Any]], *_: object, **__: object) -> list[dict[str, Any]]:
        return listed


def default_class_of(name: str, made: str) -> dict[str, Any]:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    return {"metadata": {"name": name, "annotations": annotations, "creationTimestamp": made}}


@pytest.fixture
def everything_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "lacking", AsyncMock(return_value=[]))
    monkeypatch.setattr(capacity, "refuse_without", AsyncMock())


@pytest.mark.usefixtures("everything_granted")
async def test_a_quota_of_the_storage_class_that_is_the_default_one_counts() -> None:
    """Volumes that name none are of that: nobody looked at its quota, and the run ended with a pod that never ran."""
    there: Any = Server([machine("m1", "8", "64Gi")])
    told: Any = {"own": False, "resources": None, "generators": None, "where": {}, "say": print}
    settings = Settings(namespace="team", cluster="c", volume_mib=1024)
    three = [NodeSpec(name=f"n{number}") for number in range(3)]
    with pytest.raises(BadInput, match=r"fast\.storageclass\.storage\.k8s\.io/requests\.storage: 3,072 MiB are asked"):
        await refuse_shortage(there, settings, nodes=three, **told)
    await refuse_shortage(there, settings, nodes=three[:1], **told)
    await refuse_shortage(there, replace(settings, storage_class="slow"), nodes=three, **told)


def zoned(name: str, zone: str, **spec: Any) -> dict[str, Any]:
    one = machine(name, "8", "64Gi", **spec)
    one["metadata"]["labels"] = {"topology.kubernetes.io/region": "eu", "topology.kubernetes.io/zone": zone}
    return one


@pytest.mark.usefixtures("everything_granted")
async def test_a_zone_of_machines_that_take_no_pods_is_none() -> None:
    """A node of it would wait for ever for one of them."""
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    there = [zoned("m1", "a", unschedulable=True), zoned("m2", "b", taints=[taint]), zoned("m3", "c"), zoned("m4", "d")]
    nodes = [NodeSpec(name=f"n{number}", zone=f"z{number}") for number in (1, 2)]
    server: Any = Server(there)
    found = await zones(server, nodes)
    assert [place["topology.kubernetes.io/zone"] for place in found.values()] == ["c", "d"]
    another: Any = Server(there[:3])
    with pytest.raises(BadInput, match="its machines that take pods have no topology"):
        await zones(another, nodes)
    second = group(nodes[1])
    known = {second: found[second]}
    later = await zones(server, [nodes[1], NodeSpec(name="n3", zone="z0")], known=known)
    assert later[second] == found[second], "what is placed stays where it is"
    assert {place["topology.kubernetes.io/zone"] for place in later.values()} == {"c", "d"}


def test_load_generators_beside_a_cluster_of_others_ask_for_themselves_alone() -> None:
    """Its nodes, volumes and services are there already."""
    wanted = WantedGenerators(number=4, image="suite:1", cpus=0.5, memory_mib=512)
    asked = Asked(nodes=0, groups=0, generators=wanted)
    over = {"pods": "3", "services": "3"}  # somebody has more of these than the quota has now
    none_left = quota({"pods": "6", "services": "2", "requests.storage": "0", "configmaps": "0", "cpu": "2"}, over)
    (pods,) = beyond_quotas(asked, [none_left])
    assert "pods: 4 are asked, 3 of 6 are left" in pods
    assert not list(beyond_limit_ranges(asked, [limit_range("PersistentVolumeClaim", max={"storage": "1"})]))
    assert not list(beyond_limit_ranges(asked, [limit_range("Container", max={"cpu": "1", "memory": "1Gi"})]))


ONLY = {"key": "only", "value": "databases", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("tolerations", "takes"),
    [
        ([], False),
        ([{"operator": "Exists"}], True),
        ([{"key": "only", "operator": "Exists"}], True),
        ([{"key": "only", "value": "databases"}], True),
        ([{"key": "only", "operator": "Equal", "value": "databases", "effect": "NoSchedule"}], True),
        ([{"key": "only", "value": "web"}], False),
        ([{"key": "only", "operator": "Exists", "effect": "NoExecute"}], False),
        ([{"key": "other", "operator": "Exists"}, {"key": "only"}], False),
    ],
)
def test_a_machine_with_a_taint_takes_pods_that_tolerate_it(tolerations: list[dict[str, str]], takes: bool) -> None:
    assert capacity.takes(machine("m1", "4", "16Gi", taints=[ONLY]), {"tolerations": tolerations}) is takes


@pytest.mark.parametrize(
    ("labels", "pods", "takes"),
    [
        ({"kubernetes.io/os": "windows"}, {}, False),
        ({"kubernetes.io/os": "linux"}, {}, True),
        ({"pool": "web"}, {"nodeSelector": {"pool": "databases"}}, False),
        ({"pool": "databases"}, {"nodeSelector": {"pool": "databases"}}, True),
    ],
)
def test_a_machine_takes_pods_that_select_it(labels: dict[str, str], pods: dict[str, Any], takes: bool) -> None:
    one = machine("m1", "4", "16Gi")
    one["metadata"]["labels"] = labels
    assert capacity.takes(one, pods) is takes


@pytest.mark.usefixtures("everything_granted")
async def test_machines_that_are_added_as_they_are_needed_may_lack_room() -> None:
    there: Any = Server([machine("m1", "1", "1Gi")])
    settings = Settings(namespace="own", cluster="c", volume_mib=64)
    nodes, resources = [NodeSpec(name="n1")], NodeResources(cache_mib=1, sql_memory_mib=1, cpus=2, memory_mib=64)
    said = list[str]()
    told: Any = {
        "own": True,
        "nodes": nodes,
        "resources": resources,
        "generators": None,
        "where": {},
        "say": said.append,
    }
    with pytest.raises(BadInput, match=r"1 nodes of .* 0 fit .* set ROACHPROOF_KUBERNETES_AUTOSCALED=1"):
        await refuse_shortage(there, settings, **told)
    await refuse_shortage(there, settings, autoscaled=True, **told)
    (words,) = said
    assert "0 fit" in words
    assert words.endswith("machines must be added (ROACHPROOF_KUBERNETES_AUTOSCALED)")


@pytest.mark.parametrize(
    ("major", "minor", "fits"),
    [("1", "28", False), ("1", "28+", False), ("1", "29", True), ("1", "33+", True), ("2", "0", True), ("1", "", True)],
)
async def test_a_kubernetes_that_makes_load_generators_anew_is_refused(major: str, minor: str, fits: bool) -> None:
    """Clouds write a sign behind their minor version."""
    version = SimpleNamespace(major=major, minor=minor, git_version=f"v{major}.{minor}.1")
    api: Any = SimpleNamespace(where="context lab", version=AsyncMock(return_value=version))
    if fits:
        await capacity.refuse_old(api)
    else:
        with pytest.raises(BadInput, match=r"its Kubernetes is v1\.28.*, and must be 1\.29 or later"):
            await capacity.refuse_old(api)
    api.version = AsyncMock(return_value=None)
    await capacity.refuse_old(api)
