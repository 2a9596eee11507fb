"""A shell in a pod, on the real client: a question waits for its answer, and for nothing else."""

import base64
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.stream.ws_client import STDERR_CHANNEL, STDOUT_CHANNEL

from clusters.substrates.kubernetes.questions import Shell
from tests.clusters.substrates.kubernetes.frames import Frames, opened


def test_a_question_waits_for_its_answer_and_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    said = base64.b64encode(b"yes")
    frames = Frames([(STDERR_CHANNEL, b"noise"), (STDOUT_CHANNEL, b"1 0 " + said + b"\n"), (STDOUT_CHANNEL, b"2 7 \n")])
    run = opened(frames, monkeypatch)
    api: Any = SimpleNamespace(open_exec=lambda *_, **__: run)
    shell = Shell(api, "space", "pod")
    frames.arrive()
    frames.arrive()
    assert shell.ask("true") == (0, "yes")
    frames.arrive()
    assert shell.ask("false") == (7, "")
    assert frames.sent == [b"\x001 true\n", b"\x002 false\n"]
