"""The official client's connection to a command in a pod, over a socket that only pretends."""

import socket
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.stream import ws_client
from kubernetes.stream.ws_client import WSClient

END = (-1, b"")
"""Instead of a frame: the connection is closed from there."""


class Frames:
    """A websocket whose next frame, a channel and what it says, arrives when ``arrive`` is called."""

    connected = True
    subprotocol = "v4.channel.k8s.io"

    def __init__(self, frames: Sequence[tuple[int, bytes]]) -> None:
        self._coming, self._there = list(frames), list[tuple[int, bytes]]()
        self.sock, self._peer = socket.socketpair()
        self.sent: list[bytes] = []

    def recv_data_frame(self, _: bool) -> tuple[int, Any]:
        self.sock.recv(1)
        channel, content = self._there.pop(0)
        return (8, None) if channel < 0 else (2, SimpleNamespace(data=bytes([channel]) + content))

    def send(self, payload: bytes, opcode: int) -> None:
        self.sent.append(payload)

    def close(self) -> None:
        self.connected = False

    def arrive(self) -> None:
        if self._coming:
            self._there.append(self._coming.pop(0))
            self._peer.send(b"x")


def opened(frames: Frames, monkeypatch: pytest.MonkeyPatch) -> WSClient:
    """The client on these frames."""
    monkeypatch.setattr(ws_client, "create_websocket", lambda *_: frames)
    return WSClient(None, "", None, capture_all=True, binary=True)
