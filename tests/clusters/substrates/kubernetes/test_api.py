"""What commands in containers say arrives whole, on the real client over a socket that only pretends."""

import io
import json
import socket
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.stream import ws_client
from kubernetes.stream.ws_client import ERROR_CHANNEL, STDERR_CHANNEL, STDOUT_CHANNEL, WSClient

from clusters.substrates.kubernetes.api import _drain, _exit_code, _Nowhere


class Frames:
    """A websocket whose next frame arrives when ``arrive`` is called."""

    connected = True
    subprotocol = "v4.channel.k8s.io"

    def __init__(self, frames: Sequence[tuple[int, bytes]]) -> None:
        self._coming, self._there = list(frames), list[tuple[int, bytes]]()
        self.sock, self._peer = socket.socketpair()

    def recv_data_frame(self, _: bool) -> tuple[int, Any]:
        self.sock.recv(1)
        channel, content = self._there.pop(0)
        return 2, SimpleNamespace(data=bytes([channel]) + content)

    def arrive(self) -> None:
        if self._coming:
            self._there.append(self._coming.pop(0))
            self._peer.send(b"x")


def test_nothing_that_arrives_while_another_channel_is_read_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = Frames([(STDOUT_CHANNEL, b"1"), (STDOUT_CHANNEL, b"2"), (STDERR_CHANNEL, b"!"), (STDOUT_CHANNEL, b"3")])
    monkeypatch.setattr(ws_client, "create_websocket", lambda *_: frames)
    run = WSClient(None, "", None, capture_all=True, binary=True)
    run._all = _Nowhere()
    told = {STDOUT_CHANNEL: io.BytesIO(), STDERR_CHANNEL: io.BytesIO(), ERROR_CHANNEL: io.BytesIO()}
    read = run.read_channel

    def read_channel(channel: int) -> bytes:
        found: bytes = read(channel)
        frames.arrive()  # just after this channel was read
        return found

    monkeypatch.setattr(run, "read_channel", read_channel)
    for _ in range(4):
        _drain(run, told)
    assert {channel: file.getvalue() for channel, file in told.items()} == {1: b"123", 2: b"!", 3: b""}


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ({"status": "Success"}, 0),
        ({"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "7"}]}}, 7),
    ],
)
def test_the_exit_code_is_what_the_end_of_the_stream_says(status: dict[str, Any], code: int) -> None:
    assert _exit_code(json.dumps(status).encode()) == code
