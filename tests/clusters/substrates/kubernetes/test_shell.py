"""A shell in a pod, on the real client: a question waits for its answer, and for nothing else."""

import base64
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.stream.ws_client import STDERR_CHANNEL, STDOUT_CHANNEL

from clusters.errors import HarnessError
from clusters.substrates.kubernetes.commands import written
from clusters.substrates.kubernetes.manifests import ORDER, STORE
from clusters.substrates.kubernetes.shell import Shell
from tests.clusters.substrates.kubernetes.frames import Frames, opened


def test_a_question_waits_for_its_answer_and_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    said = base64.b64encode(b"yes")
    frames = Frames([(STDERR_CHANNEL, b"noise"), (STDOUT_CHANNEL, b"1 0 " + said + b"\n"), (STDOUT_CHANNEL, b"2 7 \n")])
    run = opened(frames, monkeypatch)
    api: Any = SimpleNamespace(open_exec=lambda *_, **__: run)
    shell = Shell(api, "space", "pod", container="node")
    frames.arrive()
    frames.arrive()
    assert shell.ask("true") == (0, "yes")
    frames.arrive()
    assert shell.ask("false") == (7, "")
    assert frames.sent == [b"\x001 true\n", b"\x002 false\n"]


def test_what_is_written_into_a_file_is_in_no_message() -> None:
    """Keys and passwords are."""

    def open_exec(*_: Any, **__: Any) -> Any:
        raise HarnessError("it is away")

    api: Any = SimpleNamespace(open_exec=open_exec)
    for place in (ORDER, STORE / "x"):
        with pytest.raises(HarnessError, match=r"pod node-0 does not answer `eval .*: it is away") as raised:
            Shell(api, "space", "node-0", container="node").ask("eval", written(place, b"velvet-marmot"))
        assert base64.b64encode(b"velvet-marmot").decode()[:4] not in str(raised.value)
