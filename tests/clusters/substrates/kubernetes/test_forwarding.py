"""Ports of pods on this machine: where they are listened on, and what passes; when that is how pods are reached."""

import asyncio
import io
import json
import random
import socket
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from clusters.errors import BadInput, CommandTimedOut, HarnessError
from clusters.model import Completed, ProcessState
from clusters.substrates.kubernetes import forwarding, substrate
from clusters.substrates.kubernetes.forwarding import Forwards, Told, listening, serve
from clusters.substrates.kubernetes.settings import Reach
from clusters.substrates.kubernetes.substrate import Kubernetes

PATIENCE_S = 120.0


class Server:
    """An API server behind which each pod is one end of a pair of sockets; a pod that is gone is refused."""

    where = "context lab"
    own = False

    def __init__(self) -> None:
        self.pods: dict[tuple[str, int], socket.socket] = {}
        self.refuses: list[str] = []
        """What is said first."""
        self.failed: list[str] = []
        """What its harness is told that it did not bring."""
        self.cuts = False
        """Whether a connection that ends is cut."""
        self.cut: list[str] = []
        """What its harness is told of those."""

    def open_port(self, namespace: str, pod: str, port: int) -> Any:
        if self.refuses:
            raise HarnessError(f"cannot reach port {port} of {pod}: {self.refuses.pop(0)}")
        if (pod, port) not in self.pods:
            raise HarnessError(f"cannot reach port {port} of {pod}: Handshake status 404 Not Found")
        return self.pods.pop((pod, port)), lambda: self.cuts


def forwarded(server: Any, pod: str) -> tuple[str, int]:
    address, (listens,) = listening([0], random.Random())
    port: int = listens.getsockname()[1]
    told = Told(server.failed.append, lambda: server.cut.append(pod))
    threading.Thread(target=serve, args=(listens, server, "team", pod, port, told), daemon=True).start()
    return address, port


def test_pods_get_addresses_of_their_own_with_the_same_port() -> None:
    one, (first,) = listening([0], random.Random(0))
    port = first.getsockname()[1]
    # Drawn alike: where it is taken, the next address is tried.
    other, (second,) = listening([port], random.Random(0))
    assert one != other
    for address, opened in ((one, first), (other, second)):
        assert address.startswith("127.")
        assert opened.getsockname() == (address, port)
        opened.close()


def test_a_machine_without_such_addresses_is_told_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise OSError("cannot assign the address")

    monkeypatch.setattr(socket, "create_server", refused)
    with pytest.raises(BadInput, match=r"ports 26257, 8080 .* \(cannot assign the address\); run the harness on Linux"):
        listening([26257, 8080], random.Random(0))


def test_what_either_side_says_passes_and_its_end_too() -> None:
    server, (there, pod) = Server(), socket.socketpair()
    where = forwarded(server, "node-0")
    server.pods["node-0", where[1]] = there
    with socket.create_connection(where, timeout=PATIENCE_S) as client:
        client.sendall(b"ask" * 100_000)
        heard = b""
        while len(heard) < 300_000:
            heard += pod.recv(1 << 16)
        pod.sendall(b"answer")
        assert client.recv(100) == b"answer"
        pod.close()
        assert client.recv(100) == b""


@pytest.mark.parametrize("cuts", [False, True])
def test_a_connection_that_is_cut_is_told_before_its_end_is_seen(cuts: bool) -> None:
    server, (there, pod) = Server(), socket.socketpair()
    where = forwarded(server, "node-0")
    server.pods["node-0", where[1]], server.cuts = there, cuts
    with socket.create_connection(where, timeout=PATIENCE_S) as client:
        pod.close()
        assert client.recv(100) == b""
        assert server.cut == ["node-0"] * cuts


@pytest.mark.parametrize("cuts", [False, True], ids=["by itself", "cut"])
@pytest.mark.parametrize("code", [None, 1, 0], ids=["late", "failed", "done"])
async def test_a_command_whose_connection_may_have_been_cut_is_not_taken_at_its_word(
    code: int | None, cuts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drain asks once, and is not asked again: one that was cut counted as one that a node did not do."""

    async def run(*_: object) -> Completed:
        if cuts:
            with place._forwards._cut.open("ab") as file:
                file.write(b"..")
        if code is None:
            await asyncio.Event().wait()
        return Completed(code=code or 0, out="", err="error: EOF\n")

    monkeypatch.setattr(substrate, "run_here", run)
    place: Any = Kubernetes.__new__(Kubernetes)
    place._cluster, place._closing, place.scratch = "c", None, tmp_path
    place._forwards = Forwards.__new__(Forwards)
    place._forwards._cut = tmp_path / "cut"
    place._forwards._cut.write_bytes(b".")  # at another time
    drains = place.run(("cockroach", "node", "drain"), env={}, timeout=0.1)
    happened = "did not end within 0.1 s" if code is None else r"ended with 1 \(error: EOF\)"
    if cuts and code != 0:
        with pytest.raises(HarnessError, match=f"node drain {happened}, and meanwhile .* cut 2 of the conn") as failed:
            await drains
        assert not isinstance(failed.value, CommandTimedOut)
    elif code is None:
        with pytest.raises(CommandTimedOut, match=f"node drain {happened}$"):
            await drains
    else:
        assert (await drains).code == code


def test_a_thread_that_ends_is_not_taken_for_the_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A node whose connections nobody takes any more is silent, and was an outage of the database."""
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(forwarding, "Api", lambda _: None)
    monkeypatch.setattr(forwarding, "listening", lambda *_: ("127.64.0.1", [None]))  # which nobody can accept from
    failed = tmp_path / "failed"
    told = {"context": None, "namespace": "team", "ports": [1], "failed": str(failed)}
    monkeypatch.setattr(sys, "stdin", io.StringIO(f'{json.dumps(told)}\n{{"pod": "node-0"}}\n'))
    before = {*threading.enumerate()}
    forwarding.main()
    for thread in {*threading.enumerate()} - before:
        thread.join()
    assert "a thread that forwards ports ended: AttributeError" in failed.read_text()


def test_a_pod_that_is_not_there_ends_the_connection() -> None:
    with socket.create_connection(forwarded(server := Server(), "node-0"), timeout=PATIENCE_S) as client:
        assert client.recv(100) == b""
    assert server.failed == [], "that is the pod's own"


AWAY, REFUSES = "[Errno 111] Connection refused", "Handshake status 403 Forbidden -+-+- {} -+-+- "


def test_an_api_server_that_fails_for_a_moment_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "_AGAIN_S", 0.0)
    server, (there, pod) = Server(), socket.socketpair()
    where = forwarded(server, "node-0")
    server.refuses, server.pods["node-0", where[1]] = [AWAY, "Handshake status 503 Service Unavailable"], there
    with socket.create_connection(where, timeout=PATIENCE_S) as client:
        pod.sendall(b"answer")
        assert client.recv(100) == b"answer"
    assert server.failed == []


@pytest.mark.parametrize("refused", [AWAY, REFUSES])
def test_an_api_server_that_does_not_bring_a_connection_is_not_taken_for_the_node(
    refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes that nobody could reach look like nodes that serve nobody."""
    monkeypatch.setattr(forwarding, "HARMLESS_S", -1.0)
    server = Server()
    server.refuses = [refused]
    with socket.create_connection(forwarded(server, "node-0"), timeout=PATIENCE_S) as client:
        assert client.recv(100) == b""
    (why,) = server.failed
    assert refused in why
    place: Any = Kubernetes.__new__(Kubernetes)
    place._guard, place._nodes, place._pods = None, {}, SimpleNamespace(refuse_unwatched=lambda: None)
    place._forwards = Forwards.__new__(Forwards)
    place._forwards._companion = SimpleNamespace(refuse_ended=lambda: None)
    place._forwards._failed = tmp_path / "failed"
    assert place.state("n1") is ProcessState.ABSENT
    place._forwards._failed.write_text(why)
    with pytest.raises(HarnessError, match=r"cannot reach port \d+ of node-0: .* says nothing of the database"):
        place.state("n1")


@pytest.mark.parametrize(
    ("reach", "known", "ports", "generators", "found"),
    [
        (Reach.FOUND, True, (), False, False),
        (Reach.DIRECT, False, (), False, False),
        (Reach.FOUND, False, (1,), True, True),
        (Reach.FORWARDED, True, (1,), True, True),
        (Reach.FOUND, False, (1,), False, "names of its pods are not known on this machine: .* must not go that way"),
        (Reach.FORWARDED, True, (1,), False, "REACH=port-forward: .* --generators in the cluster, or run the harness"),
        (Reach.FORWARDED, True, (), True, "the ports of this engine are not forwarded; run the harness in the cluster"),
    ],
)
async def test_when_pods_are_reached_so(
    reach: Reach, known: bool, ports: Any, generators: bool, found: bool | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def named_here() -> bool:
        return known

    monkeypatch.setattr(forwarding, "named_here", named_here)
    server: Any = Server()
    if isinstance(found, bool):
        assert await forwarding.forwarded(server, reach, ports, generators=generators) is found
    else:
        with pytest.raises(BadInput, match=found):
            await forwarding.forwarded(server, reach, ports, generators=generators)


async def test_a_pod_of_another_cluster_says_how_it_reaches_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name by which a cluster's network is known leads there to the pod's own."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setattr(forwarding, "named_here", AsyncMock(return_value=True))
    server: Any = Server()
    with pytest.raises(BadInput, match=r"runs in a pod, .* set ROACHPROOF_KUBERNETES_REACH to direct where pods of"):
        await forwarding.forwarded(server, Reach.FOUND, (1,), generators=True)
    assert not await forwarding.forwarded(server, Reach.DIRECT, (1,), generators=True)
    server.own = True
    assert not await forwarding.forwarded(server, Reach.FOUND, (1,), generators=True)
