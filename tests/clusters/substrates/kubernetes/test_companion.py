"""Processes beside the harness: what they are told arrives, and one that ends is said so, with what it was for."""

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from clusters.errors import HarnessError
from clusters.substrates.kubernetes import companion as companion_module
from clusters.substrates.kubernetes.cleanup import Guard
from clusters.substrates.kubernetes.companion import Companion
from clusters.substrates.kubernetes.forwarding import Forwards
from clusters.substrates.kubernetes.manifests import Settings
from clusters.substrates.kubernetes.substrate import Kubernetes


def test_it_answers_until_its_input_ends() -> None:
    companion = Companion(f"{__package__}.answering", "answers")
    assert companion.ask({"pod": "node-0"}) == [{"pod": "node-0"}, os.getpid()]
    companion.end()
    companion.end("which is no mistake where it has ended")


def test_one_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the API server has gone away: that is no failure of its own."""
    monkeypatch.setattr(companion_module, "_END_S", 0.1)
    companion = Companion(f"{__package__}.answering", "answers")
    assert companion.ask("begun")
    companion._process.send_signal(signal.SIGSTOP)
    companion.end("done")
    assert companion._process.returncode == -signal.SIGKILL


def test_one_that_cannot_begin_is_named_with_its_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(HarnessError, match=r"that forwards ports ended with 1: .*BadInput: .*/none: cannot be used"):
        Forwards(None, "team", [26257], tmp_path / "failed")


def test_what_it_said_last_is_told_of_one_that_has_ended() -> None:
    """As why it could not go on: nobody else is there to hear it."""
    companion = Companion(f"{__package__}.answering", "answers")
    assert companion.ask("begun")
    assert companion._process.stdin is not None
    companion._process.stdin.write("no json\n")
    said = "the process that answers ended with 1: json.decoder.JSONDecodeError: Expecting value: line 1 column 1"
    with pytest.raises(HarnessError, match=said):
        companion.ask("again")
    with pytest.raises(HarnessError, match=said):
        companion.refuse_ended()
    companion.end()
    with pytest.raises(HarnessError, match=r"the process that answers ended with 1$"):
        companion.refuse_ended()


def test_it_reads_the_kubeconfig_that_the_harness_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs in another directory: where the path was of the harness's own it ended at once, and nobody knew."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", f"one{os.pathsep}/two{os.pathsep}")
    companion = Companion(f"{__package__}.answering", "answers")
    assert companion.ask("begun")
    environment = Path(f"/proc/{companion._process.pid}/environ").read_bytes().split(b"\0")
    companion.end()
    assert f"KUBECONFIG={tmp_path}/one{os.pathsep}/two".encode() in environment


def test_a_guard_that_has_ended_keeps_nothing_from_ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is noticed while nodes run: another run would take them for lost, and a killed harness would leave them."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    guard = Guard(Settings(namespace="team", cluster="one"), None, own=False, keep_logs=None, scratch=None)
    place: Any = Kubernetes.__new__(Kubernetes)
    place._guard, place._nodes, place._forwards = guard, {}, None
    place._pods = SimpleNamespace(refuse_unwatched=lambda: None)
    guard._companion._process.wait()
    with pytest.raises(HarnessError, match="the process that guards the cluster ended with 1"):
        place.state("n1")
    guard.dismiss()
