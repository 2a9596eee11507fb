"""What commands in containers say arrives whole, on the real client over a socket that only pretends."""

import io
import json
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.stream.ws_client import ERROR_CHANNEL, STDERR_CHANNEL, STDOUT_CHANNEL

from clusters.substrates.kubernetes.api import Api, _drain, _exit_code, _Nowhere
from clusters.substrates.kubernetes.history import History
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


def test_a_log_may_have_what_is_no_text() -> None:
    api: Any = Api.__new__(Api)
    answer = SimpleNamespace(read=lambda: b"one \x80\ntwo\n", close=lambda: None)
    api.core = SimpleNamespace(read_namespaced_pod_log=lambda *_, **__: answer)
    assert api.log("team", "shop-0", "db") == "one \N{REPLACEMENT CHARACTER}\ntwo\n"


def killing(name: str, words: str) -> Any:
    return SimpleNamespace(
        metadata=SimpleNamespace(uid=words, resource_version="1"),
        involved_object=SimpleNamespace(name=name, kind="Pod"),
        reason="Killing",
        message=words,
        type="Normal",
        count=1,
    )


def test_a_container_that_fails_its_probe_is_ended_by_kubernetes() -> None:
    nobody: Any = None
    history = History(nobody, "team", None)
    history._happened(killing("node-0", "Container db failed liveness probe, will be restarted"))
    history._happened(killing("node-1", "Stopping container db"))
    assert history.probed("node-0") == "Killing: Container db failed liveness probe, will be restarted"
    assert history.probed("node-1") == ""
    history.begins("node-0")
    assert history.probed("node-0") == ""
