"""A run of a claim on the control beside a test, which does something to it once it has come to a moment."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fixtures.workloads.relay import ROOT
from plugin.evidence.store import CLUSTERS


class Running:
    """The run, in a session of its own; ``end`` it in any case. ``more``: options of the claim's own."""

    def __init__(self, home: Path, claim: str = "survivability", more: Sequence[str] = ()) -> None:
        self._said, self.directory = home / "said", home / "run"
        asked = ["--engine", "postgres", "--substrate", "kubernetes", "--claim", claim, *more]
        own = ["-c", "pyproject.toml", "-o", "testpaths=tests/claims", "--run-dir", str(self.directory)]
        with self._said.open("w") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *own, *asked],
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

    def end(self) -> None:
        """Kill its harness, if it has not ended."""
        self.process.kill()
        self.process.wait()
