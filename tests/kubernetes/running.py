"""A run of ``survivability`` on the control beside a test, which does something to it once it has come to a moment."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from fixtures.workloads.relay import ROOT


class Running:
    """The run, in a session of its own; ``end`` it in any case."""

    def __init__(self, home: Path) -> None:
        self._said, self._directory = home / "said", home / "run"
        asked = ["--engine", "postgres", "--substrate", "kubernetes", "--claim", "survivability"]
        own = ["-c", "pyproject.toml", "-o", "testpaths=tests/claims", "--run-dir", str(self._directory)]
        with self._said.open("w") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *own, *asked],
                cwd=ROOT,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """All that it has printed."""
        return self._said.read_text()

    def events(self) -> Iterator[str]:
        """The events that it has written so far."""
        for file in self._directory.glob("claims/*/*/events.jsonl"):
            *whole, _ = file.read_text().split("\n")  # the last line may be half written
            yield from (json.loads(line)["event"] for line in whole)

    def until(self, moment: str, come: Callable[[], bool]) -> None:
        """Wait for a moment. Raises ``AssertionError`` where the run ends before."""
        while not come():
            assert self.process.poll() is None, f"it ended before {moment}: {self.said}"
            time.sleep(0.02)

    def end(self) -> None:
        """Kill its harness, if it has not ended."""
        self.process.kill()
        self.process.wait()
