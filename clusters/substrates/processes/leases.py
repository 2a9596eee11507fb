"""What clusters of a machine must not share: addresses and capacity, leased by locks that die with their holder.

A lease is a file held with ``flock``. The open file is handed to the cluster's supervisor, so the lease ends when the
last of its processes has been cleared away, no matter which process is killed. What is written in such a file serves
messages and the sweep; whether it is held is asked of the kernel alone.
"""

import asyncio
import fcntl
import json
import os
import random
import socket
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from clusters.errors import BadInput, HarnessError
from clusters.substrates.processes import cleanup, namespaces, proctree

STATE_VARIABLE = "ROACHPROOF_STATE"
"""Environment variable that names another state directory than ``/tmp/roachproof-<uid>``."""
_NETWORKS = range(64, 128)
"""Second byte of the addresses; a user starts at one of their own, so that few files ever exist."""
SAY_EVERY_S = 4.0
"""How often who waits for slots says so: a progress line is never older than five seconds."""
_held = 0
"""Slots this very process holds: waiting for those would never end."""


def state_directory() -> Path:
    """The per-user directory of the lock files, the same for all runs on this machine, made if it is missing.

    Raises ``BadInput`` if it belongs to somebody else or cannot be made.
    """
    chosen = os.environ.get(STATE_VARIABLE)
    # Not $TMPDIR: runs with different ones must still see each other.
    place = Path(chosen) if chosen else Path(f"/tmp/roachproof-{os.geteuid()}")  # noqa: S108 - owner is checked
    way_out = f"set {STATE_VARIABLE} to a directory of your own"
    try:
        place.mkdir(mode=0o700, parents=bool(chosen), exist_ok=True)
        found = place.lstat()
        if not stat.S_ISDIR(found.st_mode):
            raise BadInput(f"{place}: must be a directory and not a link; {way_out}")
        if found.st_uid != os.geteuid():
            raise BadInput(f"{place}: belongs to user {found.st_uid}, must belong to user {os.geteuid()}; {way_out}")
        if found.st_mode & 0o077:
            place.chmod(0o700)
        for name in ("subnets", "slots"):
            place.joinpath(name).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{place}: cannot hold lock files ({error.strerror}); {way_out}") from error
    return place


def _lock(path: Path) -> int | None:
    """An open file that holds the lock, or ``None`` if somebody else does. The file is never deleted."""
    while True:
        try:
            opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise HarnessError(f"cannot open the lock file {path}: {error.strerror}") from error
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A cleaner of /tmp may have put another file in its place.
            if path.exists() and os.path.samestat(os.fstat(opened), path.stat()):
                return opened
        except BlockingIOError:
            os.close(opened)
            return None
        except FileNotFoundError:
            pass
        os.close(opened)


def _write(opened: int, record: Mapping[str, Any]) -> None:
    try:
        os.ftruncate(opened, 0)
        os.pwrite(opened, json.dumps(record).encode(), 0)
    except OSError as error:
        raise HarnessError(f"cannot write a lock file in {state_directory()}: {error.strerror}") from error


def _read(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        found = json.loads(path.read_bytes())
        if isinstance(found, dict):
            return found
    return {}


class Lease:
    """Open files that hold locks. ``release`` lets go of ours; copies handed to other processes still hold."""

    def __init__(self, files: list[int], *, slots: int = 0) -> None:
        self.files = files
        self._slots = slots

    def hand_over(self) -> None:
        """Close our copies: from now on those who inherited the files hold the locks alone."""
        for opened in self.files:
            os.close(opened)
        self.files = []

    def release(self) -> None:
        """Let go. Safe to call twice and after ``hand_over``."""
        global _held
        self.hand_over()
        _held -= self._slots
        self._slots = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class Subnet(Lease):
    """Addresses ``127.A.B.1`` to ``127.A.B.254``, and the record by which a later run finds what was left behind."""

    def __init__(self, prefix: str, files: list[int]) -> None:
        super().__init__(files)
        self.prefix = prefix

    def record(self, record: cleanup.Record) -> None:
        """Write down what must be removed if everybody who knows of it is killed."""
        _write(self.files[0], record)

    def address(self, number: int) -> str:
        """The address of the node with this number, from 1. Raises ``BadInput`` beyond 254."""
        if not 1 <= number <= 254:
            raise BadInput(
                f"node number {number}: a cluster on this machine has addresses for 254 nodes; declare fewer"
            )
        return f"{self.prefix}.{number}"


def lease_subnet() -> Subnet:
    """Lease addresses that no other run uses; what a killed run left there is cleared away first.

    Raises ``HarnessError`` if all are leased or the machine does not answer on such addresses.
    """
    state = state_directory() / "subnets"
    network = os.geteuid() % len(_NETWORKS)
    start = random.randrange(256)
    for turn in range(len(_NETWORKS) * 256):
        second = _NETWORKS[(network + turn // 256) % len(_NETWORKS)]
        prefix = f"127.{second}.{(start + turn) % 256}"
        opened = _lock(state / prefix)
        if opened is None:
            continue
        subnet = Subnet(prefix, [opened])
        guard = namespaces.claim(prefix)
        if guard is not None:
            subnet.files.append(guard.detach())
        left = _bury(state / prefix, opened)
        if guard is None or (left is not None and left.resists):
            subnet.release()
            continue
        try:
            with socket.socket() as probe:
                probe.bind((subnet.address(1), 0))
        except OSError as error:
            subnet.release()
            raise HarnessError(
                f"no server can listen on {prefix}.1 ({error.strerror}): the processes substrate needs Linux with "
                "127.0.0.0/8 on the loopback interface"
            ) from error
        return subnet
    raise HarnessError(f"all address ranges in {state} are leased: end other runs, or wait for them")


async def lease_slots(count: int, *, of: int, name: str, say: Callable[[str], None]) -> Lease:
    """Wait until ``count`` of the machine's ``of`` slots are ours, all together; ``name`` is told to those who wait.

    Only one waiter at a time collects slots, so two never hold half each. ``say`` hears every few seconds who holds
    them. Raises ``BadInput`` if there are not so many, ``HarnessError`` if this process itself holds too many.
    """
    global _held
    if not 0 <= count <= of:
        raise BadInput(f"capacity {count}: this machine has {of} slots; use a smaller topology or allow more slots")
    if _held + count > of:
        raise HarnessError(
            f"{name} needs {count} of {of} slots, and this process itself holds {_held}: close its other clusters first"
        )
    slots = state_directory() / "slots"
    begun = time.monotonic()
    said = begun - SAY_EVERY_S * 0.75  # The first line comes soon.
    lease = Lease([], slots=count)
    _held += count
    turn: int | None = None
    have: set[int] = set()
    try:
        while True:
            if turn is None and (turn := _lock(slots / "turn")) is not None:
                _write(turn, {"pid": os.getpid(), "name": f"{name}, waiting"})
            if turn is not None:
                for number in sorted(set(range(of)) - have):
                    if len(have) < count and (opened := _lock(slots / f"slot-{number}")) is not None:
                        lease.files.append(opened)
                        have.add(number)
                        _write(opened, {"pid": os.getpid(), "name": name})
            if len(have) == count:
                return lease
            now = time.monotonic()
            if now - said >= SAY_EVERY_S:
                said = now
                others = [slots / f"slot-{number}" for number in set(range(of)) - have]
                holders = {holder for place in (*others, slots / "turn") if (holder := _holder(place))}
                waited = f"waiting {now - begun:.0f} s for {count} of {of} slots of this machine"
                say(f"{name}: {waited}, held by {', '.join(sorted(holders)) or 'nobody'}")
            await asyncio.sleep(0.05 + random.random() * 0.05)
    except BaseException:
        lease.release()
        raise
    finally:
        if turn is not None:
            os.close(turn)


def _holder(path: Path) -> str | None:
    opened = _lock(path)
    if opened is not None:
        os.close(opened)
        return None
    record = _read(path)
    if record.get("pid") == os.getpid():
        return None
    return f"{record['name']} (pid {record['pid']})" if {"name", "pid"} <= record.keys() else "somebody"


def _bury(path: Path, opened: int) -> "Swept | None":
    """Clear away the cluster of which a free lock file tells; ``None`` if it tells of none."""
    record = _read(path)
    if not {"id", "directory", "keep", "keep_logs", "cgroups"} <= record.keys():
        return None

    def find() -> list[proctree.Process]:
        return proctree.strays(proctree.snapshot(), cluster=record["id"], directory=record["directory"])

    if left := cleanup.end_all(find, seconds=10.0):
        return Swept(directory=record["directory"], resists=f"process {left[0].pid} still there after SIGKILL")
    try:
        cleanup.remove(record, keep=record["keep"])
    except OSError as error:
        return Swept(directory=record["directory"], resists=f"{error.strerror}: {error.filename}")
    os.ftruncate(opened, 0)
    return Swept(directory=record["directory"])


@dataclass(frozen=True, kw_only=True, slots=True)
class Swept:
    """A cluster of a killed run: its directory, and what could not be removed of it, if anything."""

    directory: str
    resists: str = ""


def sweep() -> tuple[Swept, ...]:
    """Clear away what killed runs of this user left: processes, control groups and directories whose lock is free.

    Blocks for up to 10 s for each that resists.
    """
    swept: list[Swept] = []
    for path in sorted((state_directory() / "subnets").iterdir()):
        if path.stat().st_size == 0:
            continue
        opened = _lock(path)
        if opened is None:
            continue
        try:
            found = _bury(path, opened)
        finally:
            os.close(opened)
        if found is not None:
            swept.append(found)
    return tuple(swept)
