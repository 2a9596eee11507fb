"""The official client's connection to a command in a pod, over a socket that only pretends."""

import socket
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.stream import ws_client
from kubernetes.stream.ws_client import STDERR_CHANNEL, WSClient

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

    def arrive(self, *, all_of_them: bool = False) -> None:
        while self._coming:
            self._there.append(self._coming.pop(0))
            self._peer.send(b"x")
            if not all_of_them:
                break


def arriving_late(run: WSClient, frames: Frames, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all frames arrive after the output was looked at, and before the errors are."""
    read = run.read_channel

    def read_channel(channel: int) -> bytes:
        if channel == STDERR_CHANNEL:
            frames.arrive(all_of_them=True)
        found: bytes = read(channel)
        return found

    monkeypatch.setattr(run, "read_channel", read_channel)


def opened(frames: Frames, monkeypatch: pytest.MonkeyPatch) -> WSClient:
    """The client on these frames."""
    monkeypatch.setattr(ws_client, "create_websocket", lambda *_: frames)
    return WSClient(None, "", None, capture_all=True, binary=True)
