"""A lab's DNS: the addresses of headless services' pods, from the API server's EndpointSlices."""

import http.client
import json
import socket
import struct
import threading
import time
import urllib.request
from collections.abc import Iterable, Mapping
from typing import Any

from tests.kubernetes.lab.inside import API, GATEWAY, TOKEN, UNVERIFIED

SLICES = "/apis/discovery.k8s.io/v1/endpointslices"
_A, _REFUSED_NAME = 1, 3


def addresses(slices: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Addresses by name: a service has all of its pods', a pod with a host name has its own."""
    found: dict[str, list[str]] = {}
    for one in slices:
        service = one["metadata"].get("labels", {}).get("kubernetes.io/service-name")
        domain = f"{service}.{one['metadata']['namespace']}.svc.cluster.local"
        if not service or one["addressType"] != "IPv4":
            continue
        for endpoint in one.get("endpoints") or []:
            if endpoint.get("conditions", {}).get("ready") is False:
                continue
            names = [domain, *([f"{endpoint['hostname']}.{domain}"] if endpoint.get("hostname") else [])]
            for name in names:
                found.setdefault(name, []).extend(endpoint["addresses"])
    return found


def asked(message: bytes) -> tuple[str, int, int]:
    """A question's name, its type, and where it ends."""
    at, labels = 12, []
    while size := message[at]:
        labels.append(message[at + 1 : at + 1 + size].decode("ascii", "replace").lower())
        at += size + 1
    (kind,) = struct.unpack(">H", message[at + 1 : at + 3])
    return ".".join(labels), kind, at + 5


def answer(message: bytes, known: Mapping[str, list[str]]) -> bytes:
    """The answer to a question, with a time to live of a second."""
    name, kind, end = asked(message)
    there = known.get(name)
    found = there if there and kind == _A else []
    code = 0 if there else _REFUSED_NAME
    head = message[:2] + struct.pack(">HHHHH", 0x8580 | code, 1, len(found), 0, 0)
    records = [b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 1, 4) + socket.inet_aton(address) for address in found]
    return head + message[12:end] + b"".join(records)


class _Known:
    """What is known now, kept by a watch."""

    def __init__(self) -> None:
        self.addresses: dict[str, list[str]] = {}
        threading.Thread(target=self._watch, daemon=True).start()

    def _open(self, query: str) -> Any:
        request = urllib.request.Request(API + SLICES + query, headers={"Authorization": f"Bearer {TOKEN}"})
        return urllib.request.urlopen(request, context=UNVERIFIED, timeout=330)

    def _watch(self) -> None:
        while True:
            try:
                self._follow()
            except (OSError, http.client.HTTPException, ValueError, KeyError):
                time.sleep(0.2)

    def _follow(self) -> None:
        listed = json.load(self._open(""))
        slices = {one["metadata"]["uid"]: one for one in listed["items"]}
        self.addresses = addresses(slices.values())
        version = listed["metadata"]["resourceVersion"]
        for line in self._open(f"?watch=1&timeoutSeconds=300&resourceVersion={version}"):
            event = json.loads(line)
            one = event["object"]
            slices.pop(one["metadata"]["uid"], None)
            if event["type"] != "DELETED":
                slices[one["metadata"]["uid"]] = one
            self.addresses = addresses(slices.values())


def main() -> None:
    """Answer for ever."""
    known = _Known()
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((GATEWAY, 53))
    while True:
        message, client = server.recvfrom(4096)
        try:
            server.sendto(answer(message, known.addresses), client)
        except (IndexError, struct.error, OSError):
            continue


if __name__ == "__main__":
    main()
