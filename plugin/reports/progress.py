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
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest

from plugin.reports.live import Terminal
from plugin.workloads import WORKLOADS


class Phase(IntEnum):
    """What a trial is about; none comes back. A comparison starts and loads several clusters while it measures."""

    START = 1
    LOAD = 2
    MEASURE = 3
    CHECK = 4

    def __str__(self) -> str:
        return f"{self.value}/{len(Phase)} {self.name.lower()}"


class Ticker:
    """Shows what is said: a line at each change, and at least every 30 s; on a person's terminal the live view."""

    INTERVAL_S = 30.0
    LIVE_S = 1.0

    def __init__(self, directory: Path, descriptor: int) -> None:
        self.at_once: Callable[[], int] = lambda: 1
        """How many claims the machine has room for at a time: asked once there are any."""
        self._directory = directory
        self._descriptor = descriptor
        self._stop = threading.Event()
        self._offsets: dict[Path, int] = {}
        self._latest: dict[str, Mapping[str, Any]] = {}
        self._heard: queue.SimpleQueue[tuple[str, Mapping[str, Any]]] = queue.SimpleQueue()
        self._planned: dict[str, float] = {}
        self._over: set[str] = set()
        self._began = time.monotonic()
        self._live: Terminal | None = None
        self._writer: Any = None
        self._unended = ""
        """The line of pytest's that was ended for one of ours."""
        self._thread = threading.Thread(target=self._follow, name="roachproof-progress", daemon=True)
        self._thread.start()

    def hear(self, said: Mapping[str, Any], worker: str = "main") -> None:
        """Take in what the controller itself says, before there is a run directory or of a worker that ended."""
        self._heard.put((worker, said))

    def over(self, test: str) -> None:
        """A test, by its node id, has ended."""
        self._over.add(test)

    def go_live(self, config: pytest.Config) -> None:
        """Show the live view from now on, where a person looks at a terminal that pytest's own reporter writes to."""
        reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        # Somebody else's reporter may have none that could be shared.
        self._writer = getattr(reporter, "_tw", None)
        if hasattr(self._writer, "_file") and _watched(config, self._descriptor):
            self._live = Terminal(self._writer, self._descriptor)

    def end(self) -> None:
        """Show what was said last, and nothing any more: the results come. The live view goes for good."""
        self._stop.set()
        self._thread.join(timeout=2.0)
        if self._live:
            self._live.close()

    def close(self) -> None:
        """End, if that was not done, and let go of where it is shown."""
        self.end()
        os.close(self._descriptor)

    def _follow(self) -> None:
        shown = time.monotonic()
        last: dict[str, str] = {}
        over = False
        while not over:
            over = self._stop.wait(0.2)  # once more then: a run may end as soon as something was said
            live = self._live
            due = time.monotonic() - shown >= (self.LIVE_S if live else self.INTERVAL_S)
            fresh = self._read()
            for worker, said in fresh if live else ():
                if said.get("lines"):
                    self._show(worker, said)
            if live and (due or fresh):
                live.show([self._line(worker, said, rates=True) for worker, said in self._latest.items()])
                shown = time.monotonic()
            if live:
                continue
            for worker, said in fresh:
                # A count that goes on (bytes of a download) is no change worth a line of its own.
                stage = re.sub(r"\d+", "", said["stage"])
                if stage and (last.get(worker) != stage or said.get("lines")):
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
        for _, said in fresh:
            self._planned.update(said.get("planned", {}))
        fresh = [(worker, said) for worker, said in fresh if "stage" in said]
        for worker, said in fresh:
            if said["stage"]:
                self._latest[worker] = said
            else:
                self._latest.pop(worker, None)
        return fresh

    def _show(self, worker: str, said: Mapping[str, Any]) -> None:
        """Write what was said, with all lines that belong to it; on a person's terminal above the live view."""
        begun = getattr(self._writer, "_current_line", "")
        before = "\n" if begun not in ("", self._unended) else ""
        self._unended = begun
        text = before + "".join(f"  {line}\n" for line in (self._line(worker, said), *said.get("lines", ())))
        if self._live:
            self._live.tell(text)
            return
        with suppress(OSError, ValueError):  # a pipe that nobody reads any more
            if self._writer is not None:
                self._writer.flush()  # what pytest wrote before comes before
            os.write(self._descriptor, text.encode())

    def _line(self, worker: str, said: Mapping[str, Any], *, rates: bool = False) -> str:
        """What a process does, in columns of fixed width but for the last: the times are never cut off."""
        now, ends = time.monotonic(), ends_at(said)
        run = self._left(now, {**self._latest, worker: said})
        left = f"left: claim {clock(ends and ends - now):>7} run {clock(run):>7}"
        told = [said["stage"], "" if ends else time_left(said, now)]
        if rates and said["trial"]:
            told += [workload.progress(Path(said["trial"])) for workload in WORKLOADS.values()]
        columns = f"{said['phase']:<11} {left}  " if said["phase"] else ""
        who, test = ("" if worker == "main" else f"{worker} "), said["test"] and f" ({said['test']})"
        return f"[{now - self._began:5.0f} s] {columns}{who}{', '.join(filter(None, told))}{test}"

    def _left(self, now: float, latest: Mapping[str, Mapping[str, Any]]) -> float | None:
        """How many seconds the run takes still, by what each process said ``latest`` and the catalogue's estimates.

        ``None`` where there are none.
        """
        ends = {said["nodeid"]: end for said in latest.values() if (end := ends_at(said))}
        waiting = [seconds for test, seconds in self._planned.items() if test not in {*ends, *self._over}]
        if not ends and not waiting:
            return None
        going = [max(0.0, end - now) for end in ends.values()]
        lanes = max(1, min(self.at_once(), len(latest)))
        return max(sum([*going, *waiting]) / lanes, *going, 0.0)


def _watched(config: pytest.Config, descriptor: int) -> bool:
    """Whether a person watches: a terminal that can move its cursor, no CI, and nothing else that writes to it."""
    option: Any = config.option
    return (
        os.isatty(descriptor)
        and not os.environ.get("CI")
        and os.environ.get("TERM", "dumb") != "dumb"
        and option.capture == "fd"
        and not option.usepdb
        and not config.getoption("--dry-run")
    )


def ends_at(said: Mapping[str, Any]) -> float | None:
    """When a trial should be over: as was estimated, but not before what it is at. On a busy machine all takes longer.

    ``None`` where nothing was estimated.
    """
    ends: float | None = said["ends"]
    return max(ends, said["at"] + said["expect_s"]) if ends and said["expect_s"] else ends


def time_left(said: Mapping[str, Any], now: float) -> str:
    """About how long a stage still takes, in words; nothing where nobody knows."""
    if not said.get("expect_s"):
        return ""
    left = said["at"] + said["expect_s"] - now
    return f"about {left:.0f} s left" if left > 0 else f"{-left:.0f} s longer than expected"


def clock(seconds: float | None) -> str:
    """A time that is left: ``0:48``, ``1:02:10``; ``late`` where it is up, ``-`` where nobody knows."""
    if seconds is None:
        return "-"
    if seconds < 0:
        return "late"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
