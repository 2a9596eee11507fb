"""Which processes are frozen that send a control's log: those of one node, and nobody else's."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from tests.sabotage.senders import FREEZE

CALLED = ["bash", "-c", 'exec -a "$0" sleep 600']


@pytest.fixture
def running() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def begun(running: ExitStack, name: str, at: Path) -> psutil.Process:
    at.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen([*CALLED, name], cwd=at)
    running.callback(process.wait)
    running.callback(process.kill)
    found = psutil.Process(process.pid)
    while found.cmdline()[:1] != [name]:  # it is another program's still, or nobody's for a moment
        pass
    return found


def frozen(home: Path) -> list[int]:
    """Those that were, as a node would say; they stand still then."""
    env = {"PATH": os.environ["PATH"], "home": str(home)}
    line = ["/bin/sh", "-c", FREEZE]
    done = subprocess.run(line, cwd=home, env=env, capture_output=True, text=True, check=True)
    return sorted(map(int, done.stdout.split()))


def test_those_of_a_node_alone_are_frozen(tmp_path: Path, running: ExitStack) -> None:
    home = tmp_path / "n1"
    sends = [begun(running, "postgres: three: walsender replicator streaming", home / "store") for _ in range(2)]
    others = [
        begun(running, "postgres: three: checkpointer", home / "store"),
        begun(running, "postgres: three: walsender replicator streaming", tmp_path / "n2" / "store"),
        begun(running, "postgres: three: walsender replicator streaming", tmp_path / "n11" / "store"),
    ]
    assert frozen(home) == sorted(process.pid for process in sends)
    for process in sends:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
    assert psutil.STATUS_STOPPED not in {process.status() for process in others}


def test_a_node_that_sends_nothing_has_none(tmp_path: Path, running: ExitStack) -> None:
    begun(running, "postgres: three: walreceiver", tmp_path / "n1" / "store")
    assert frozen(tmp_path / "n1") == []
