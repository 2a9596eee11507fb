"""A run beside a test, which does something to it once it has come to a moment."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from fixtures.workloads.relay import ROOT
from plugin.evidence.store import CLUSTERS


def on_the_control(claim: str, more: Sequence[str] = ()) -> Sequence[str]:
    """What asks for a claim on it in pods. ``more``: options of the claim's own."""
    asked = ["--engine", "postgres", "--substrate", "kubernetes", "--claim", claim, *more]
    return ["-c", "pyproject.toml", "-o", "testpaths=tests/claims", *asked]


SURVIVABILITY = on_the_control("survivability")


class Running:
    """The run, in a session of its own; ``end`` it in any case.

    ``asked``: the arguments of pytest. ``by``: what the command line begins with.
    """

    def __init__(self, home: Path, asked: Sequence[str] = SURVIVABILITY, by: Sequence[str] = ()) -> None:
        self._said, self.directory = home / "said", home / "run"
        with self._said.open("w") as said:
            self.process = subprocess.Popen(
                [*by, sys.executable, "-m", "pytest", *asked, "--run-dir", str(self.directory)],
                cwd=ROOT,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    @property
    def clusters(self) -> Path:
        """Where it keeps what its own machine has of its clusters."""
        return self.directory / CLUSTERS

    @property
    def said(self) -> str:
        """All that it has printed."""
        return self._said.read_text()

    def events(self) -> Iterator[str]:
        """The events that it has written so far, by their names."""
        yield from (told["event"] for told in self.told())

    def told(self) -> Iterator[Mapping[str, Any]]:
        """The same with all that they tell."""
        for file in self.directory.glob("claims/*/*/events.jsonl"):
            *whole, _ = file.read_text().split("\n")  # the last line may be half written
            yield from map(json.loads, whole)

    def until(self, moment: str, come: Callable[[], bool]) -> None:
        """Wait for a moment. Raises ``AssertionError`` where the run ends before."""
        while not come():
            assert self.process.poll() is None, f"it ended before {moment}: {self.said}"
            time.sleep(0.02)

    def keys(self) -> list[Path]:
        """The directories of clusters that it has on this machine now, with their keys and passwords."""
        return [*self.clusters.iterdir()]

    def begun(self) -> Mapping[psutil.Process, str]:
        """The processes that it has begun and that run now, with their command lines."""
        told = {}
        for process in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                told[process] = " ".join(process.cmdline())
        return told

    def end(self) -> None:
        """Kill its harness, if it has not ended."""
        self.process.kill()
        self.process.wait()


def alive(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those that have not ended."""
    return [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
