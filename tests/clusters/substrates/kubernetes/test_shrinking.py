"""Places of nodes that were removed, without a Kubernetes: which are taken away, and in which order."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from clusters.errors import BadInput, HarnessError
from clusters.model import NodeSpec, Placement
from clusters.substrates.kubernetes.manifests import HOME, LOGS, STORE, Settings, Template
from clusters.substrates.kubernetes.places import Node
from clusters.substrates.kubernetes.pods import Pod
from clusters.substrates.kubernetes.settings import Given
from clusters.substrates.kubernetes.shell import Shell
from clusters.substrates.kubernetes.substrate import Kubernetes


class Cluster:
    """Pods of StatefulSets; a pod goes once no replica is asked for that it is. ``did``: what was asked, in words."""

    def __init__(self, *names: str, group: str = "node") -> None:
        self.did, self.wrote = list[str](), list[str]()
        self.pods = dict[str, Pod]()
        self.goes = True
        there: Any = Kubernetes.__new__(Kubernetes)
        there._cluster, there._closing, there._locks, there._keep_logs = "c", None, {}, None
        there._nodes, there._removed, there._where, there._forwards = {}, set(), {}, None
        there._groups, there._given = set(), Given.read({})
        there._settings = Settings(namespace="team", cluster="c")
        there._sets = {group: (Template(image="db:1"), len(names)), "other": (Template(image="db:1"), 1)}
        apps = SimpleNamespace(patch_namespaced_stateful_set=self._scaled)
        core = SimpleNamespace(delete_collection_namespaced_persistent_volume_claim=self._claims)
        there._api = SimpleNamespace(apps=apps, core=core, call=self._call)
        there._pods, there._history = self, SimpleNamespace(write=self.wrote.append, forget=lambda pod: None)
        there._machines = SimpleNamespace(forget=lambda pod: self.did.append(f"forgot the machine of {pod}"))
        self.there = there
        for number, name in enumerate(names):
            self.placed(name, group, f"{group}-{number}")
        self.placed("elsewhere", "other", "other-0")

    def placed(self, name: str, group: str, pod: str) -> None:
        at = Placement(node=NodeSpec(name=name), address=pod, client_address=pod, home=HOME, store=STORE, logs=LOGS)
        shell = cast("Shell", SimpleNamespace(close=lambda: None))
        self.there._nodes[name] = Node(placement=at, group=group, pod=pod, shell=shell, looks=shell)
        self.pods[pod] = Pod(pod, uid=f"uid of {pod}", starts=1)

    def __getitem__(self, name: str) -> Pod:
        return self.pods.setdefault(name, Pod(name))

    def forget(self, name: str) -> None:
        del self.pods[name]

    def expect(self, group: str, image: str) -> None:
        assert image == "db:1"

    async def until(self, what: str, pod: Pod, check: Any, *, timeout: float, of: str = "") -> None:
        if not check():
            raise HarnessError(f"waiting for {what}: not after {timeout:g} s")

    async def _call(self, what: str, function: Any, *args: Any, **options: Any) -> None:
        function(*args, **options)

    def _scaled(self, group: str, namespace: str, changed: Any) -> None:
        replicas = changed["spec"]["replicas"]
        self.did.append(f"{namespace}: {group} has {replicas}")
        if self.goes:
            self.pods[f"{group}-{replicas}"].uid = ""

    def _claims(self, namespace: str, *, field_selector: str, label_selector: str) -> None:
        assert label_selector == self.there._settings.selector
        self.did.append(f"{namespace}: no volume with {field_selector}")


def gone(number: int) -> list[str]:
    return [
        f"team: node has {number}",
        f"team: no volume with metadata.name=home-node-{number}",
        f"forgot the machine of node-{number}",
    ]


async def test_the_last_node_of_a_zone_goes_with_its_pod_and_volume() -> None:
    cluster = Cluster("n1", "n2", "n3")
    await cluster.there.take_away("n3")
    assert cluster.did == gone(2)
    assert set(cluster.there._nodes) == {"n1", "n2", "elsewhere"}
    assert cluster.wrote == ["pod node-2: n3 was removed; its pod and volume are deleted"]


async def test_another_stays_until_all_after_it_are_gone() -> None:
    cluster = Cluster("n1", "n2", "n3")
    await cluster.there.take_away("n2")
    assert cluster.did == []
    (said,) = cluster.wrote
    assert "pod node-1: n2 was removed; its pod and volume stay, as a StatefulSet gives up its last pod alone" in said
    assert "n2" in cluster.there._nodes
    await cluster.there.take_away("n3")
    assert cluster.did == gone(2) + gone(1)
    assert set(cluster.there._nodes) == {"n1", "elsewhere"}


async def test_one_that_is_added_later_gets_the_pod_and_nothing_that_is_known_of_the_former() -> None:
    cluster = Cluster("n1", "n2")
    await cluster.there.take_away("n2")
    with pytest.raises(BadInput, match=r"n2.*must be new to the cluster"):
        await cluster.there._placed(NodeSpec(name="n2"), "node")
    await cluster.there._placed(NodeSpec(name="n3"), "node")
    assert cluster.there._nodes["n3"].pod == "node-1"
    assert (cluster["node-1"].uid, cluster["node-1"].starts) == ("", 0)


async def test_all_nodes_of_a_zone_may_go() -> None:
    cluster = Cluster("n1")
    await cluster.there.take_away("n1")
    assert cluster.did == gone(0)


async def test_a_pod_that_does_not_go_keeps_its_volume() -> None:
    cluster = Cluster("n1", "n2")
    cluster.goes = False
    with pytest.raises(HarnessError, match="pod node-1 to be gone: not after"):
        await cluster.there.take_away("n2")
    assert cluster.did == ["team: node has 1"]


async def test_one_whose_pod_nobody_asked_for_is_forgotten() -> None:
    """As one that was to join, and ended before anything was put into its volume."""
    cluster = Cluster("n1")
    cluster.placed("n2", "new", "new-0")
    await cluster.there.take_away("n2")
    assert cluster.did == []
    assert set(cluster.there._nodes) == {"n1", "elsewhere"}
