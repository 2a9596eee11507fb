"""Ports of pods on this machine: where they are listened on, and what passes; when that is how pods are reached."""

import random
import socket
import threading
from typing import Any

import pytest

from clusters.errors import BadInput, HarnessError
from clusters.substrates.kubernetes import forwarding
from clusters.substrates.kubernetes.forwarding import listening, serve
from clusters.substrates.kubernetes.settings import Reach

PATIENCE_S = 120.0


class Server:
    """An API server behind which each pod is one end of a pair of sockets; a pod that is gone is refused."""

    where = "context lab"

    def __init__(self) -> None:
        self.pods: dict[tuple[str, int], socket.socket] = {}

    def open_port(self, namespace: str, pod: str, port: int) -> socket.socket:
        if (pod, port) not in self.pods:
            raise HarnessError(f"{pod} is not there")
        return self.pods.pop((pod, port))


def forwarded(server: Any, pod: str) -> tuple[str, int]:
    address, (listens,) = listening([0], random.Random())
    port: int = listens.getsockname()[1]
    threading.Thread(target=serve, args=(listens, server, "team", pod, port), daemon=True).start()
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


def test_a_pod_that_is_not_there_ends_the_connection() -> None:
    with socket.create_connection(forwarded(Server(), "node-0"), timeout=PATIENCE_S) as client:
        assert client.recv(100) == b""


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
