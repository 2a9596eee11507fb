"""Processes beside the harness: what they are told arrives, and one that ends is said so, with what it was for."""

import os
import signal
from pathlib import Path

import pytest

from clusters.errors import HarnessError
from clusters.substrates.kubernetes import companion as companion_module
from clusters.substrates.kubernetes.cleanup import Guard
from clusters.substrates.kubernetes.companion import Companion
from clusters.substrates.kubernetes.forwarding import Forwards
from clusters.substrates.kubernetes.manifests import Settings


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
    with pytest.raises(HarnessError, match="the process that forwards ports ended with 1"):
        Forwards(None, "team", [26257])


def test_a_guard_that_has_ended_keeps_nothing_from_ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    guard = Guard(Settings(namespace="team", cluster="one"), None, own=False, keep_logs=None)
    guard._companion._process.wait()
    guard.dismiss()
