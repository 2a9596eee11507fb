"""What every process says it is doing, as it happens: lines in a pipe or in CI, a live view on a person's terminal.

The processes of a run write what they do into ``<run_dir>/progress/<worker>.jsonl``; the controller follows those
files.
"""

import json
import os
import queue
import re
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from plugin.reports.live import Terminal


class Ticker:
    """Shows what is said: a line at each change, and at least every 4 s; on a person's terminal the live view."""

    INTERVAL_S = 4.0
    LIVE_S = 1.0

    def __init__(self, directory: Path, descriptor: int) -> None:
        self._directory = directory
        self._descriptor = descriptor
        self._stop = threading.Event()
        self._offsets: dict[Path, int] = {}
        self._latest: dict[str, Mapping[str, Any]] = {}
        self._heard: queue.SimpleQueue[tuple[str, Mapping[str, Any]]] = queue.SimpleQueue()
        self._began = time.monotonic()
        self._live: Terminal | None = None
        self._thread = threading.Thread(target=self._follow, name="roachproof-progress", daemon=True)
        self._thread.start()

    def hear(self, said: Mapping[str, Any], worker: str = "main") -> None:
        """Take in what the controller itself says, before there is a run directory or of a worker that ended."""
        self._heard.put((worker, said))

    def go_live(self, config: pytest.Config) -> None:
        """Show the live view from now on, where a person looks at a terminal that pytest's own reporter writes to."""
        reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        # Somebody else's reporter may have none that could be shared.
        writer = getattr(reporter, "_tw", None)
        if hasattr(writer, "_file") and _watched(config, self._descriptor):
            self._live = Terminal(writer, self._descriptor)

    def end_live(self) -> None:
        """Take the live view away for good; what pytest writes goes straight to the terminal again."""
        live, self._live = self._live, None
        if live:
            live.close()

    def close(self) -> None:
        """Stop following."""
        self._stop.set()
        self._thread.join(timeout=2.0)
        self.end_live()
        os.close(self._descriptor)

    def _follow(self) -> None:
        shown = time.monotonic()
        last: dict[str, str] = {}
        while not self._stop.wait(0.2):
            live = self._live
            due = time.monotonic() - shown >= (self.LIVE_S if live else self.INTERVAL_S)
            fresh = self._read()
            if live and (due or fresh):
                live.show([*self._latest.items()], time.monotonic() - self._began)
                shown = time.monotonic()
            if live:
                continue
            for worker, said in fresh:
                # A count that goes on (bytes of a download) is no change worth a line of its own.
                stage = re.sub(r"\d+", "", said["stage"])
                if stage and last.get(worker) != stage:
                    self._show(worker, said)
                    shown, due = time.monotonic(), False
                last[worker] = stage
            if due:
                for worker, said in self._latest.items():
                    self._show(worker, said)
                    shown = time.monotonic()

    def _read(self) -> list[tuple[str, Mapping[str, Any]]]:
        """What was said since, in the order of each process."""
        fresh: list[tuple[str, Mapping[str, Any]]] = []
        for path in sorted(self._directory.glob("*.jsonl")):
            with path.open(encoding="utf-8") as file:
                file.seek(self._offsets.get(path, 0))
                for line in iter(file.readline, ""):
                    if not line.endswith("\n"):
                        break
                    self._offsets[path] = file.tell()
                    fresh.append((path.stem, json.loads(line)))
        while not self._heard.empty():
            fresh.append(self._heard.get())
        for worker, said in fresh:
            if said["stage"]:
                self._latest[worker] = said
            else:
                self._latest.pop(worker, None)
        return fresh

    def _show(self, worker: str, said: Mapping[str, Any]) -> None:
        now = time.monotonic()
        who = "" if worker == "main" else f"{worker} "
        test = f"{said['test']}: " if said["test"] else ""
        left = time_left(said, now)
        line = f"\n  [{now - self._began:4.0f} s] {who}{test}{said['stage']}{', ' if left else ''}{left}"
        with suppress(OSError):  # a pipe that nobody reads any more
            os.write(self._descriptor, line.encode())


def _watched(config: pytest.Config, descriptor: int) -> bool:
    """Whether a person watches: a terminal that can move its cursor, no CI, and nothing else that writes to it."""
    option: Any = config.option
    return (
        os.isatty(descriptor)
        and not os.environ.get("CI")
        and os.environ.get("TERM", "dumb") != "dumb"
        and option.capture == "fd"
        and not option.usepdb
        and not option.dry_run
    )


def time_left(said: Mapping[str, Any], now: float) -> str:
    """About how long a stage still takes, in words; nothing where nobody knows."""
    if not said.get("expect_s"):
        return ""
    left = said["at"] + said["expect_s"] - now
    return f"about {left:.0f} s left" if left > 0 else f"{-left:.0f} s longer than expected"
