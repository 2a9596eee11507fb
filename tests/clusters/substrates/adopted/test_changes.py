"""What a StatefulSet of somebody's is told, and told to be again."""

import asyncio
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
        self.others = 0
        """How often somebody else changed it."""
        self.refuses = False
        self.seen = asyncio.Event()
        """Whether its controller sees what it is told."""
        self.seen.set()
        self.heard = asyncio.Event()
        """Whether it was told anything."""
        self.core = self.apps = self

    async def call(self, what: str, function: Any, *args: Any) -> Any:
        return function(*args)

    def delete_now(self, what: str, function: Any, *args: Any) -> None:
        function(*args)

    def patch_namespaced_stateful_set(self, name: str, namespace: str, body: dict[str, Any]) -> Any:
        if self.refuses:
            raise BadInput("the account may not do that")
        self.told.append(body)
        self.heard.set()
        return self.read_namespaced_stateful_set(name, namespace)

    def read_namespaced_stateful_set(self, name: str, namespace: str) -> Any:
        assert (name, namespace) == ("shop-cockroachdb", "team")
        now = len(self.told) + self.others
        seen = SimpleNamespace(observed_generation=now if self.seen.is_set() else 0)
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


async def test_what_was_begun_is_put_back_also_where_nobody_waited_for_it() -> None:
    server = Server()
    asked = changes(server)
    server.seen.clear()
    asking = asyncio.create_task(asked.ask(image="cockroachdb/cockroach:v24.2.0"))
    await server.heard.wait()
    asking.cancel()
    server.seen.set()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await asked.put_back()
    assert server.told[-1]["spec"]["updateStrategy"] == STRATEGY
    assert len(server.told) == 2


async def test_what_was_refused_is_not_put_back() -> None:
    server = Server()
    asked = changes(server)
    server.refuses = True
    with pytest.raises(BadInput):
        await asked.ask(replicas=4)
    await asked.put_back()
    assert server.told == []


async def test_what_somebody_else_changed_meanwhile_is_left_as_it_is() -> None:
    """Nodes that its owner added would be scaled away with their data."""
    server = Server()
    asked = changes(server)
    await asked.ask(image="cockroachdb/cockroach:v24.2.0")
    server.others = 1
    for change in (asked.ask(replicas=4), asked.put_back()):
        with pytest.raises(HarnessError, match=r"was changed by somebody else meanwhile, .* put it back by hand"):
            await change
    assert len(server.told) == 1


async def test_what_somebody_changed_since_it_was_found_is_left_as_it_is() -> None:
    """A run takes minutes before it changes anything, and would put back what its owner had before."""
    server = Server()
    asked = changes(server)
    server.others = 1
    with pytest.raises(HarnessError, match="was changed by somebody else meanwhile"):
        await asked.ask(image="cockroachdb/cockroach:v24.2.0")
    assert server.told == []


async def test_pods_that_did_not_go_back_are_not_made_anew_behind_the_cluster_s_back() -> None:
    server = Server()
    asked = changes(server)
    await asked.ask(image="cockroachdb/cockroach:v24.2.0")
    with pytest.raises(HarnessError, match=r"as shop-cockroachdb-1 did not go back to .*: drain and delete"):
        await asked.put_back(["shop-cockroachdb-1"])
    assert len(server.told) == 1


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
