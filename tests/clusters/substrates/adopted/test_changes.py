"""What a StatefulSet of somebody's is told, and told to be again."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from clusters.errors import BadInput, HarnessError
from clusters.substrates.adopted.changes import Changes
from tests.clusters.substrates.adopted.test_finding import RELEASE, found

STRATEGY = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}


class Server:
    """An API server that keeps what it is told."""

    where = "context lab"

    def __init__(self, *volumes: str) -> None:
        self.told: list[dict[str, Any]] = []
        self.volumes = list(volumes)
        self.core = self.apps = self

    async def call(self, what: str, function: Any, *args: Any) -> Any:
        return function(*args)

    def delete_now(self, what: str, function: Any, *args: Any) -> None:
        function(*args)

    def patch_namespaced_stateful_set(self, name: str, namespace: str, body: dict[str, Any]) -> Any:
        self.told.append(body)
        return self.read_namespaced_stateful_set(name, namespace)

    def read_namespaced_stateful_set(self, name: str, namespace: str) -> Any:
        assert (name, namespace) == ("shop-cockroachdb", "team")
        now = len(self.told)
        seen = SimpleNamespace(observed_generation=now)
        return SimpleNamespace(metadata=SimpleNamespace(generation=now), status=seen)

    def list_namespaced_persistent_volume_claim(self, namespace: str) -> Any:
        return SimpleNamespace(items=[SimpleNamespace(metadata=SimpleNamespace(name=name)) for name in self.volumes])

    def delete_namespaced_persistent_volume_claim(self, name: str, namespace: str) -> None:
        self.volumes.remove(name)


def changes(server: Server) -> Changes:
    there: Any = server
    return Changes(there, found("shop", [{**RELEASE, "spec": {**RELEASE["spec"], "updateStrategy": STRATEGY}}]))


async def test_it_is_told_what_pods_are_to_be_and_then_to_be_as_it_was_found() -> None:
    server = Server()
    asked = changes(server)
    await asked.put_back()
    await asked.ask(image="cockroachdb/cockroach:v24.1.3", replicas=3)
    assert server.told == [], "as it was found it is already"
    await asked.ask(image="cockroachdb/cockroach:v24.2.0")
    (told,) = server.told
    was = {"replicas": 3, "image": "cockroachdb/cockroach:v24.1.3", "updateStrategy": STRATEGY}
    assert json.loads(told["metadata"]["annotations"]["roachproof/found"]) == was
    container = {"name": "db", "image": "cockroachdb/cockroach:v24.2.0"}
    assert told["spec"]["template"] == {"spec": {"containers": [container]}}
    assert told["spec"]["updateStrategy"] == {"type": "OnDelete", "rollingUpdate": None}
    await asked.put_back()
    await asked.put_back()
    (_, back) = server.told
    assert back["metadata"]["annotations"] == {"roachproof/found": None}
    assert back["spec"]["template"]["spec"]["containers"] == [{"name": "db", "image": was["image"]}]
    assert (back["spec"]["replicas"], back["spec"]["updateStrategy"]) == (3, STRATEGY)


async def test_nodes_that_nobody_took_out_are_not_scaled_away() -> None:
    server = Server()
    asked = changes(server)
    await asked.ask(replicas=4)
    with pytest.raises(HarnessError, match=r"has 4 replicas, and was found with 3: .* decommission each added node"):
        await asked.put_back()
    assert server.told[-1]["spec"]["replicas"] == 4
    assert server.told[-1]["metadata"] == {}, "the note stays"


async def test_a_volume_that_an_earlier_pod_left_is_not_taken_for_a_new_one() -> None:
    server = Server("datadir-shop-cockroachdb-2", "datadir-shop-cockroachdb-3", "datadir-orders-4")
    asked = changes(server)
    with pytest.raises(BadInput, match="datadir-shop-cockroachdb-3 is there already"):
        await asked.free("shop-cockroachdb-3")
    await asked.free("shop-cockroachdb-4")
    await asked.forget("shop-cockroachdb-3")
    assert server.volumes == ["datadir-shop-cockroachdb-2", "datadir-orders-4"]
