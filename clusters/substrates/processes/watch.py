"""What is known of a cluster's processes, most of it by asking the operating system."""

import asyncio
import os
import re
import stat
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clusters.errors import HarnessError
from clusters.model import ProcessState
from clusters.substrates.processes import proctree

_TAIL_BYTES = 64 * 1024
_CRASH_BYTES = 4 << 20
_CRASH = re.compile(r"^(?:panic: |fatal error: |SIG[A-Z]+: |F\d{6} |.*\bPANIC: ).*$", re.MULTILINE)
"""How a crash begins in a log of Go, of glog, of PostgreSQL."""


@dataclass(kw_only=True, slots=True)
class Started:
    """A name's latest process. ``leader`` is ``None`` until it was spawned, ``code`` until it ended.

    ``began`` is in seconds since the epoch, as files have it.
    """

    output: Path
    began: float = field(default_factory=time.time)
    leader: proctree.Leader | None = None
    code: int | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Watch:
    """The latest process of every name of a cluster; hears the supervisor's events."""

    def __init__(self, *, cluster: str, directory: Path) -> None:
        self._cluster = cluster
        self._directory = directory
        self.supervisor = 0
        """The process id of the supervisor proper."""
        self.processes: dict[str, Started] = {}

    def heard(self, event: dict[str, Any]) -> None:
        """Take in that something started or ended."""
        started = self.processes.get(event["name"])
        if started is None:
            return
        if event["event"] == "started":
            started.leader = proctree.Leader(event["pid"], event["start"], event["home"])
        elif started.leader is not None and started.leader.pid == event["pid"]:
            started.code = event["code"]
            started.ended.set()

    def lost(self) -> None:
        """Take in that the supervisor is gone, and with it every process: nobody need wait for an event."""
        for started in self.processes.values():
            started.ended.set()

    def started(self, name: str) -> Started:
        """The name's process. Raises ``HarnessError`` if it was never started."""
        started = self.processes.get(name)
        if started is None or started.leader is None:
            raise HarnessError(f"{self._cluster}: {name} was never started")
        return started

    def members(self, name: str) -> list[proctree.Process]:
        """Everything the name is, now."""
        return proctree.members(
            proctree.snapshot(),
            cluster=self._cluster,
            supervisor=self.supervisor,
            leaders={known: started.leader for known, started in self.processes.items() if started.leader is not None},
            name=name,
        )

    def state(self, name: str) -> ProcessState:
        """What the name's process does now; paused only if everything the name is stands still."""
        started = self.processes.get(name)
        if started is None or started.leader is None:
            return ProcessState.ABSENT
        seen = proctree.read(started.leader.pid)
        if seen is None or seen.start != started.leader.start or seen.dead:
            return ProcessState.EXITED
        if seen.state in "TtD" and not proctree.unstopped([p for p in self.members(name) if not p.dead]):
            return ProcessState.PAUSED
        return ProcessState.RUNNING

    def exit_code(self, name: str) -> int | None:
        """The exit code of a process that ended (negative: the signal), else ``None``."""
        started = self.processes.get(name)
        if started is None or started.leader is None or started.code is not None:
            return None if started is None else started.code
        seen = proctree.read(started.leader.pid)
        if seen is not None and seen.start == started.leader.start:
            return os.waitstatus_to_exitcode(seen.code) if seen.dead else None
        # Written before the process left the table; the event may still be on its way.
        with suppress(OSError, ValueError):
            pid, code = self._directory.joinpath("run", f"{name}.exit").read_text().split()
            if int(pid) == started.leader.pid:
                return int(code)
        return None

    def code_of(self, name: str, started: Started) -> int:
        """The exit code of a process that has ended. Raises ``HarnessError`` if nobody was left to see it."""
        if started.code is None:
            raise HarnessError(f"{self._cluster}: nobody saw how {name} ended: the supervisor was killed")
        return started.code


def tail(path: Path, lines: int) -> str:
    """The last lines of a file, out of its last 64 KiB; empty if it cannot be read."""
    try:
        with path.open("rb") as opened:
            opened.seek(max(0, opened.seek(0, os.SEEK_END) - _TAIL_BYTES))
            text = opened.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def crash(started: Started) -> str:
    """How the process' crash begins in each log beside its output; empty if it left none.

    Servers write their crash to a log of their own, and a stack for each thread after it: the last lines say nothing.
    """
    found = []
    with suppress(OSError):
        for place in sorted(started.output.parent.iterdir()):
            status = place.lstat()
            if place == started.output or not stat.S_ISREG(status.st_mode) or status.st_mtime < started.began:
                continue
            with place.open("rb") as opened:
                opened.seek(max(0, status.st_size - _CRASH_BYTES))
                if lines := _CRASH.findall(opened.read().decode(errors="replace")):
                    found.append(f"{place.name}: {lines[-1][:500]}")
    return "\n".join(found)
