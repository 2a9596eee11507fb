"""What ``/proc`` says of processes, and how a whole tree of them is frozen or ended. Standard library only.

Shared by the harness and by the supervisor, which sees the same process ids.
"""

import os
import signal
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MARK = "ROACHPROOF_NODE"
"""Environment variable of everything a supervisor starts: ``<cluster id>/<name>``."""

STARTS = frozenset({"56", "58", "220", "435"})
"""System calls that start a process: clone, vfork and clone3 on x86-64; clone and clone3 on 64-bit ARM."""


class Process(NamedTuple):
    """One process as ``/proc/PID/stat`` showed it; ``start`` (clock ticks since boot) tells a reused id apart."""

    pid: int
    state: str
    parent: int
    session: int
    tty: int
    start: int
    cpu: int
    """Clock ticks of CPU that it has used, in user and in kernel mode."""
    code: int
    """Its wait status once it is a zombie (0 before, and where the kernel hides it)."""

    @property
    def dead(self) -> bool:
        """Whether it is a zombie or on its way out of the table."""
        return self.state in "ZXx"


class Leader(NamedTuple):
    """The process that was started for a name, and the directory whose visitors are counted to it."""

    pid: int
    start: int
    home: str | None


def read(pid: int | str) -> Process | None:
    """The process with this id, or ``None``."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The command stands in brackets and may itself hold brackets and blanks.
    part = text.rpartition(b")")[2].split()
    return Process(
        pid=int(pid),
        state=part[0].decode(),
        parent=int(part[1]),
        session=int(part[3]),
        tty=int(part[4]),
        start=int(part[19]),
        cpu=int(part[11]) + int(part[12]),
        code=int(part[49]),
    )


def snapshot() -> dict[int, Process]:
    """All processes that can be seen, by id. Not atomic: who needs completeness asks until nothing changes."""
    seen = (read(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - names alone are needed
    return {process.pid: process for process in seen if process is not None}


def descendants(table: Mapping[int, Process], roots: Iterable[int]) -> set[int]:
    """The ids of everything below ``roots``, without the roots."""
    children: dict[int, list[int]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    todo = list(roots)
    while todo:
        for pid in children.get(todo.pop(), ()):
            if pid not in found:
                found.add(pid)
                todo.append(pid)
    return found


def cpu_seconds(root: int) -> float:
    """CPU used by everything that lives below a process, in seconds."""
    table = snapshot()
    return sum(table[pid].cpu for pid in descendants(table, [root])) / os.sysconf("SC_CLK_TCK")


def mark_of(pid: int) -> str | None:
    """The mark it was started with, if its environment can be read and still holds it."""
    with suppress(OSError):
        for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if entry.startswith(MARK.encode() + b"="):
                return entry.partition(b"=")[2].decode(errors="replace")
    return None


def inside(pid: int, directory: str) -> bool:
    """Whether its working directory is ``directory`` or below it, also if that was deleted meanwhile."""
    with suppress(OSError):
        cwd = os.readlink(f"/proc/{pid}/cwd").removesuffix(" (deleted)")  # noqa: PTH115 - may name no file any more
        return cwd == directory or cwd.startswith(directory.rstrip("/") + "/")
    return False


def members(
    table: Mapping[int, Process], *, cluster: str, supervisor: int, leaders: Mapping[str, Leader], name: str
) -> list[Process]:
    """Everything that ``name`` is: its leader, what descends from it, and what was orphaned to the supervisor.

    An orphan belongs to the name in its mark; without one to the leader whose session it is in, else to the name whose
    home it works in.
    """

    def owner(process: Process) -> str | None:
        for candidate, leader in leaders.items():
            if (process.pid, process.start) == (leader.pid, leader.start):
                return candidate
        mark = mark_of(process.pid)
        if mark is not None and mark.startswith(f"{cluster}/"):
            return mark.partition("/")[2]
        for candidate, leader in leaders.items():
            if process.session == leader.pid:
                return candidate
        for candidate, leader in leaders.items():
            if leader.home is not None and inside(process.pid, leader.home):
                return candidate
        return None

    roots = [p.pid for p in table.values() if p.parent == supervisor and owner(p) == name]
    return [table[pid] for pid in {*roots, *descendants(table, roots)}]


def strays(table: Mapping[int, Process], *, cluster: str, directory: str) -> list[Process]:
    """What is left of a cluster whose supervisor is gone: by mark, by descent, or by working directory.

    A process with a terminal that merely stands in the directory is a person's shell, not a node.
    """
    roots = {
        p.pid
        for p in table.values()
        if (mark_of(p.pid) or "").startswith(f"{cluster}/") or (p.tty == 0 and inside(p.pid, directory))
    }
    own = {os.getpid(), os.getppid()}
    return [table[pid] for pid in (roots | descendants(table, roots)) - own if not table[pid].dead]


def stopped(process: Process) -> bool:
    """Whether every thread of it is stopped."""
    if process.state not in "Tt":
        return False
    with suppress(OSError):
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            with suppress(OSError):
                state = task.joinpath("stat").read_bytes().rpartition(b")")[2].split()[0]
                if state not in b"TtZX":
                    return False
    return True


def awaits_child(process: Process) -> bool:
    """Whether it is held in the middle of starting another process (vfork), until that one runs its own program.

    A SIGSTOP that was sent meanwhile takes effect then; if the other one is stopped, it never does, and neither of them
    runs.
    """
    if process.state != "D":
        return False
    with suppress(OSError):
        return Path(f"/proc/{process.pid}/syscall").read_text().split()[0] in STARTS
    return False


def unstopped(processes: Sequence[Process]) -> list[Process]:
    """Those that still run, or will: neither stopped, nor held by one that they were starting and that is stopped."""
    still = {process.pid for process in processes if stopped(process)}
    holding = {process.parent for process in processes if process.pid in still}
    return [p for p in processes if p.pid not in still and not (p.pid in holding and awaits_child(p))]


def send(process: Process, signum: int) -> bool:
    """Send a signal to exactly this process, never to a later one with its id. ``False``: it is gone."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    except OSError:  # A kernel older than 5.3: the window between reading and killing stays.
        handle = -1
    try:
        now = read(process.pid)
        if now is None or now.start != process.start:
            return False
        if handle < 0:
            os.kill(process.pid, signum)
        else:
            signal.pidfd_send_signal(handle, signum)
    except ProcessLookupError:
        return False
    finally:
        if handle >= 0:
            os.close(handle)
    return True


def freeze(find: Callable[[], list[Process]], *, seconds: float) -> Generator[None, None, list[Process]]:
    """SIGSTOP what ``find`` finds until two rounds in a row find the same, all stopped; yields between rounds.

    Returns what still moves after ``seconds`` (in uninterruptible sleep, say).
    """
    until = time.monotonic() + seconds
    before: set[int] | None = None
    while True:
        alive = [p for p in find() if not p.dead]
        moving = unstopped(alive)
        found = {p.pid for p in alive}
        if not moving and found == before:
            return []
        if time.monotonic() > until:
            return moving
        for process in moving:
            send(process, signal.SIGSTOP)
        before = None if moving else found
        yield


def end(find: Callable[[], list[Process]], *, seconds: float) -> Generator[None, None, list[Process]]:
    """Freeze what ``find`` finds, then SIGKILL all of it until nothing is found or lives; yields between rounds.

    Freezing first keeps one part from reacting to the death of another, or from starting what was not found yet. One
    that dies loses its mark and its working directory before its files and sockets: until it is dead it is left, too.
    Returns what is left after ``seconds``.
    """
    until = time.monotonic() + seconds
    yield from freeze(find, seconds=min(2.0, seconds))
    killed: dict[int, Process] = {}
    while left := {process.pid: process for process in [*killed.values(), *find()]}:
        for process in left.values():
            send(process, signal.SIGKILL)
        if time.monotonic() > until:
            return [*left.values()]
        yield
        killed = {pid: process for pid, process in left.items() if lives(process)}
    return []


def lives(process: Process) -> bool:
    """Whether exactly this process is there, and not dead."""
    now = read(process.pid)
    return now is not None and now.start == process.start and not now.dead
