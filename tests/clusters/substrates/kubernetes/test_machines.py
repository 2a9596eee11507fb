"""What is known of the machines under pods: one that is lost while a pod is on it is remembered, others are not."""

import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes import client

from clusters.errors import BadInput
from clusters.substrates.kubernetes.history import History
from clusters.substrates.kubernetes.machines import Machines

AT = datetime(2026, 11, 27, 0, 31, 2, tzinfo=UTC)
SINCE = "since 2026-11-27 00:31:02 UTC"


def machine(name: str, ready: str | None = "True") -> Any:
    """One that says this of itself; ``None``: nothing."""
    words = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
    full = client.V1NodeCondition(type="DiskPressure", status="True")
    conditions = ready and [
        full,
        client.V1NodeCondition(type="Ready", status=ready, last_transition_time=AT, **words),
    ]
    return client.V1Node(metadata=client.V1ObjectMeta(name=name), status=client.V1NodeStatus(conditions=conditions))


class Told:
    """Machines of which a watch says one thing after another, once ``then`` is called."""

    def __init__(self, *, may: bool = True) -> None:
        self.wrote, self.said = list[str](), list[str]()
        self._next, self._heard, self._step = threading.Semaphore(0), threading.Semaphore(0), list[Any]()
        review = SimpleNamespace(status=SimpleNamespace(allowed=may))

        async def call(*_: object) -> Any:
            return review

        api: Any = SimpleNamespace(
            call=call,
            where="context lab",
            core=SimpleNamespace(list_node="nodes"),
            authorization=SimpleNamespace(create_self_subject_access_review=None),
            watch=self._watch,
        )
        self.history = History(api, "team", None, of=bool)
        self.history.write = self.wrote.append  # type: ignore[method-assign, assignment]
        self.machines = Machines(api, self.history)

    def _watch(self, what: str, listing: str, namespace: None, ended: threading.Event) -> Iterator[tuple[str, Any]]:
        assert (listing, namespace) == ("nodes", None)
        while True:
            self._next.acquire()
            if isinstance(step := self._step.pop(), Exception):
                self._heard.release()
                raise step
            yield step
            self._heard.release()

    async def begin(self) -> None:
        await self.machines.begin(self.said.append)

    def then(self, kind: str, seen: Any) -> None:
        """Let the watch say this, and wait until it was taken in."""
        self._step.append((kind, seen))
        self._next.release()
        assert self._heard.acquire(timeout=60)

    def breaks(self, error: Exception) -> None:
        self._step.append(error)
        self._next.release()
        assert self._heard.acquire(timeout=60)


async def watching(machines: Sequence[str] = ("m1", "m2")) -> Told:
    told = Told()
    await told.begin()
    told.then("LISTED", [machine(name) for name in machines])
    told.machines.on("node-0", "m1")
    told.machines.on("node-1", "m2")
    return told


LOST = f"its machine m1 was not ready {SINCE} (Ready Unknown: NodeStatusUnknown Kubelet stopped posting node status.)"


async def test_a_machine_that_is_lost_is_remembered_for_the_pods_that_were_on_it() -> None:
    told = await watching()
    assert told.machines.lost("node-0") == ""
    told.then("MODIFIED", machine("m1", "Unknown"))
    assert told.machines.lost("node-0") == LOST
    assert told.machines.lost("node-1") == told.machines.lost("node-2") == ""
    told.machines.on("node-0", "")
    told.then("MODIFIED", machine("m1"))
    told.machines.on("node-0", "m2")
    assert told.machines.lost("node-0") == LOST, "its silence was then"
    assert told.wrote == [LOST.removeprefix("its "), "machine m1 is ready again"]


@pytest.mark.parametrize("ready", ["False", "Unknown"])
async def test_one_that_is_lost_as_a_pod_comes_to_it(ready: str) -> None:
    told = await watching()
    told.then("MODIFIED", machine("m3", ready))
    assert told.wrote == [], "nothing of ours was on it"
    told.machines.on("node-2", "m3")
    assert f"its machine m3 was not ready {SINCE} (Ready {ready}: " in told.machines.lost("node-2")


async def test_one_that_was_lost_before_is_nothing_to_pods_that_come_later() -> None:
    told = await watching()
    told.then("MODIFIED", machine("m3", "Unknown"))
    told.then("MODIFIED", machine("m3"))
    told.machines.on("node-2", "m3")
    assert told.machines.lost("node-2") == ""


async def test_one_that_is_taken_out_is_lost_and_one_that_says_nothing_yet_is_not() -> None:
    told = await watching()
    told.then("MODIFIED", machine("m2", None))
    told.then("DELETED", machine("m1"))
    assert told.machines.lost("node-0") == "its machine m1 was taken out"
    assert told.machines.lost("node-1") == ""


async def test_where_the_watch_ends_it_is_said_and_pods_events_tell_the_rest() -> None:
    told = await watching()
    told.breaks(BadInput("its token has expired"))
    told.history._happened(unready("node-0"))
    assert "was not ready (NodeNotReady: " in told.machines.lost("node-0")


async def test_without_the_right_it_is_known_by_the_pods_own_events() -> None:
    """An account of a team has none outside of its namespace."""
    told = Told(may=False)
    await told.begin()
    assert told.said == [
        "that a machine is lost is known by events of its pods alone; to see why takes: list nodes, watch nodes "
        "(whole cluster)"
    ]
    told.machines.on("node-0", "m1")
    told.history._happened(unready("node-0"))
    assert told.machines.lost("node-0") == (
        "its machine m1 was not ready (NodeNotReady: Node is not ready, since 2026-11-27 00:31:02 UTC)"
    )
    assert told.machines.lost("node-1") == ""


def unready(pod: str) -> Any:
    return SimpleNamespace(
        metadata=SimpleNamespace(uid=pod, resource_version="1"),
        involved_object=SimpleNamespace(name=pod, kind="Pod"),
        reason="NodeNotReady",
        message="Node is not ready",
        type="Warning",
        count=1,
        first_timestamp=AT,
    )
