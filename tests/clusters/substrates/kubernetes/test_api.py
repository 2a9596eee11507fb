"""What commands in containers say arrives whole, on the real client over a socket that only pretends."""

import io
import json
from typing import Any

import pytest
from kubernetes.stream.ws_client import ERROR_CHANNEL, STDERR_CHANNEL, STDOUT_CHANNEL

from clusters.substrates.kubernetes.api import _drain, _exit_code, _Nowhere
from tests.clusters.substrates.kubernetes.frames import Frames, opened


def test_nothing_that_arrives_while_another_channel_is_read_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = Frames([(STDOUT_CHANNEL, b"1"), (STDOUT_CHANNEL, b"2"), (STDERR_CHANNEL, b"!"), (STDOUT_CHANNEL, b"3")])
    run = opened(frames, monkeypatch)
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
