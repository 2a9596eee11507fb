"""What the tests of the substrate ``processes`` share: programs for a node to run, and looks at what runs."""

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clusters.model import (
    NodeSpec,
    Placement,
    ProcessSpec,
)
from clusters.substrates.processes import Processes, proctree

PYTHON = (sys.executable, "-I", "-S", "-c")
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        if "elsewhere" in sys.argv:
            os.chdir("/")
        if "unmarked" in sys.argv:
            os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", NAP], {})
        exec(NAP)
    os._exit(0)
time.sleep(1000)
"""


PATIENCE_S = 120.0
"""For what comes by itself, and on a busy machine late; nothing that is there sooner waits for it."""


def working_in(directory: Path) -> list[int]:
    return [pid for pid, p in proctree.snapshot().items() if not p.dead and proctree.inside(pid, str(directory))]


async def eventually(condition: Callable[[], object], seconds: float = PATIENCE_S) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        await asyncio.sleep(0.01)


@dataclass(frozen=True, kw_only=True)
class At:
    """A placement whose directories are this machine's."""

    node: NodeSpec
    address: str
    home: Path
    store: Path
    logs: Path


def at_hand(placement: Placement) -> At:
    home, store, logs = map(Path, (placement.home, placement.store, placement.logs))
    return At(node=placement.node, address=placement.address, home=home, store=store, logs=logs)


async def one(place: Processes, name: str = "n1") -> At:
    (placement,) = await place.place([NodeSpec(name=name)])
    return at_hand(placement)


def spec(at: At | Placement, *argv: str, unprivileged: bool = False) -> ProcessSpec:
    return ProcessSpec(
        name=at.node.name,
        argv=argv,
        env={"PATH": "/usr/bin:/bin"},
        cwd=at.home,
        output=at.logs / "out",
        unprivileged=unprivileged,
    )


def shell(at: At | Placement, script: str, *, unprivileged: bool = False) -> ProcessSpec:
    return spec(at, "/bin/sh", "-c", script, unprivileged=unprivileged)


async def daemonised(place: Processes, at: At, *how: str) -> int:
    """A node whose daemon is no descendant of it any more; the daemon's process id."""
    file = at.store / "pid"
    nap = f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(1000)"
    await place.start(spec(at, *PYTHON, f"NAP = {nap!r}\n{DAEMON}", *how))
    await eventually(lambda: file.exists() and file.read_text())
    return int(file.read_text())


def alive(pid: int) -> bool:
    seen = proctree.read(pid)
    return seen is not None and not seen.dead


def leader(place: Processes, name: str) -> int:
    """The id of the process that was started for a name: of the supervisor's children with its mark the first."""
    mine = [p for p in proctree.snapshot().values() if p.parent == place.guards[1]]
    marked = [p for p in mine if (proctree.mark_of(p.pid) or "").endswith(f"/{name}")]
    return min(marked, key=lambda process: process.start).pid
