"""The nodes' ports brought to the harness's machine, where it is outside of the cluster's network.

A process beside the harness listens on a loopback address for each pod, and takes each connection through the API
server to the pod. That is how the harness talks to nodes, not a way for load: what is measured must not go through it.
"""

import asyncio
import ipaddress
import json
import os
import random
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusters.errors import BadInput, HarnessError
from clusters.substrates.kubernetes.api import Api
from clusters.substrates.kubernetes.companion import Companion
from clusters.substrates.kubernetes.connection import in_a_pod
from clusters.substrates.kubernetes.pods import HARMLESS_S
from clusters.substrates.kubernetes.settings import REACH, Reach

_ADDRESSES = (int(ipaddress.IPv4Address("127.64.0.1")), int(ipaddress.IPv4Address("127.127.255.254")))
_TRIES = 100
_PART = 1 << 16
_AGAIN_S = 0.2
_STATUS = re.compile(r"Handshake status (\d{3})")
"""What the client says of a refusal. Where it does not say so no answer came."""
_ITS_OWN = (401, 403, 429, 502, 503, 504)
"""What an API server answers that does not accept the account, or has too much to do; all else is of the pod."""
_WELL_KNOWN = "kubernetes.default.svc.cluster.local"
"""A name that every cluster has."""


async def named_here() -> bool:
    """Whether this machine knows the names of a cluster's network, and so is taken to reach it."""
    try:
        await asyncio.get_running_loop().getaddrinfo(_WELL_KNOWN, 443)
    except socket.gaierror:
        return False
    return True


async def forwarded(api: Api, reach: Reach, ports: Sequence[int], *, generators: bool) -> bool:
    """Whether pods are reached by port-forwarding. Raises ``BadInput`` where that is not to be had."""
    if reach is Reach.FOUND and in_a_pod() and not api.own:
        raise BadInput(
            f"{api.where}: this harness runs in a pod, whose own cluster may be another; set {REACH} to {Reach.DIRECT} "
            f"where pods of {api.where} are reached from here, else to {Reach.FORWARDED}"
        )
    if reach is Reach.DIRECT or (reach is Reach.FOUND and await named_here()):
        return False
    why = (
        f"{api.where}: the names of its pods are not known on this machine"
        if reach is Reach.FOUND
        else f"{REACH}={reach}"
    )
    inside = f"run the harness in the cluster, or where its network is routed and its names are known ({REACH}=direct)"
    if not ports:
        raise BadInput(f"{why}: the ports of this engine are not forwarded; {inside}")
    if not generators:
        raise BadInput(
            f"{why}: by port-forwarding the harness reaches nodes, and load must not go that way; have it come from "
            f"--generators in the cluster, or {inside}"
        )
    return True


class Forwards:
    """The process beside the harness; it ends with ``close``, and with the harness.

    ``failed`` is a file that is written where the API server does not bring a connection to a pod. Another beside it
    gets a byte for each connection that was cut.
    """

    def __init__(self, context: str | None, namespace: str, ports: Sequence[int], failed: Path) -> None:
        self._failed, self._cut = failed, _cuts(failed)
        self._companion = Companion(__name__, "forwards ports")
        told = {"context": context, "namespace": namespace, "ports": list(ports), "failed": str(failed)}
        self._ask(told)

    def refuse_failed(self) -> None:
        """Raise ``HarnessError`` where nodes were not reached by no fault of theirs: their silence says nothing."""
        self._companion.refuse_ended()
        if self._failed.exists():
            raise HarnessError(
                f"{self._failed.read_text(encoding='utf-8')}: nodes are reached by port-forwarding, and what was asked "
                "of them meanwhile says nothing of the database"
            )

    def cut(self) -> int:
        """How many connections were cut that had been brought to a pod, by no doing of the pod's."""
        return self._cut.stat().st_size if self._cut.exists() else 0

    def _ask(self, what: dict[str, Any]) -> str:
        """What it answers. Raises ``BadInput``, ``HarnessError``."""
        told = self._companion.ask(what)
        if "refused" in told:
            raise BadInput(told["refused"])
        return str(told["address"])

    def address(self, pod: str) -> str:
        """The address of this machine at which a pod is reached from now on. Blocks. Raises ``BadInput``."""
        return self._ask({"pod": pod})

    def close(self) -> None:
        """End it, and all connections."""
        self._companion.end()


def listening(ports: Sequence[int], drawn: random.Random) -> tuple[str, list[socket.socket]]:
    """A loopback address on which all ports are free, and sockets that listen there. Raises ``BadInput``."""
    why = ""
    for _ in range(_TRIES):
        address, opened = str(ipaddress.IPv4Address(drawn.randint(*_ADDRESSES))), list[socket.socket]()
        try:
            for port in ports:
                opened.append(socket.create_server((address, port)))
        except OSError as error:
            why = str(error)
            for one in opened:
                one.close()
        else:
            return address, opened
    raise BadInput(
        f"ports {', '.join(map(str, ports))} cannot be listened on at any of {_TRIES} loopback addresses of this "
        f"machine ({why}); run the harness on Linux, or in the cluster"
    )


@dataclass(frozen=True, slots=True)
class Told:
    """Who is told what the API server is to blame for. ``fail``: why it did not bring a connection; ``cut``: one."""

    fail: Callable[[str], None]
    cut: Callable[[], None]


def serve(listens: socket.socket, api: Api, namespace: str, pod: str, port: int, told: Told) -> None:
    """Take connections to a pod until the process ends."""
    while True:
        here, _ = listens.accept()
        threading.Thread(target=_forward, args=(here, api, namespace, pod, port, told), daemon=True).start()


def of_the_pod(refusal: str) -> bool:
    """Whether a connection is refused as a pod is not there, or does not run; else the API server is why."""
    return any(int(status) not in _ITS_OWN for status in _STATUS.findall(refusal))


def _brought(
    api: Api, namespace: str, pod: str, port: int, fail: Callable[[str], None]
) -> tuple[socket.socket, Callable[[], bool]] | None:
    """A connection to a pod, as ``Api.open_port``; nothing where none can be. The API server may fail for a moment."""
    until = time.monotonic() + HARMLESS_S
    while True:
        try:
            return api.open_port(namespace, pod, port)
        except (HarnessError, BadInput) as error:
            if of_the_pod(str(error)):
                return None
            if time.monotonic() > until:
                fail(str(error))
                return None
        time.sleep(_AGAIN_S)


def _forward(here: socket.socket, api: Api, namespace: str, pod: str, port: int, told: Told) -> None:
    """One connection, until either side ends it. Where the pod is not there it ends at once."""
    if (brought := _brought(api, namespace, pod, port, told.fail)) is None:
        here.close()
        return
    there, was_cut = brought

    def over() -> None:
        if was_cut():
            told.cut()

    back = threading.Thread(target=_copy, args=(there, here, over), daemon=True)
    back.start()
    _copy(here, there)
    back.join()
    for end in (here, there):
        end.close()


def _copy(source: socket.socket, to: socket.socket, over: Callable[[], None] = lambda: None) -> None:
    """Pass on what comes until there is no more; then neither side gets anything any more, ``over`` before that."""
    with suppress(OSError):
        while part := source.recv(_PART):
            to.sendall(part)
    over()  # whoever is told by its end asks at once why
    for end in (source, to):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _cuts(failed: Path) -> Path:
    return failed.with_suffix(".cut")


def main() -> None:
    """Answer each line of standard input with an address or a refusal; ends with it."""
    settings = json.loads(sys.stdin.readline())
    namespace, ports, drawn = settings["namespace"], settings["ports"], random.Random(os.urandom(8))
    api, failed = Api(settings["context"]), Path(settings["failed"])

    def fail(why: str) -> None:
        (written := failed.with_suffix(f".{threading.get_ident()}")).write_text(why, encoding="utf-8")
        written.replace(failed)  # whole, for whoever reads it

    def cut() -> None:
        with _cuts(failed).open("ab") as file:
            file.write(b".")

    # One that ends unheard, of the client's too, leaves connections that nobody serves.
    threading.excepthook = lambda ended: fail(f"a thread that forwards ports ended: {ended.exc_value!r}")
    told = Told(fail, cut)
    print(json.dumps({"address": ""}), flush=True)
    for line in sys.stdin:
        pod = json.loads(line)["pod"]
        try:
            address, opened = listening(ports, drawn)
        except BadInput as error:
            print(json.dumps({"refused": str(error)}), flush=True)
            continue
        for port, listens in zip(ports, opened, strict=True):
            threading.Thread(target=serve, args=(listens, api, namespace, pod, port, told), daemon=True).start()
        print(json.dumps({"address": address}), flush=True)


if __name__ == "__main__":
    main()
