"""What is done when a cluster ends, however it ends: its processes, control groups and directories. Stdlib only."""

import errno
import os
import shutil
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from clusters.substrates.processes import cgroups, proctree

MARKER = ".roachproof-cluster"
"""File in a cluster's directory that holds its id: nothing without it is ever deleted."""

Record = Mapping[str, Any]
"""A cluster as the lock file of its lease has it; see ``Processes.open``."""
_LINK_GONE_S = 5.0
"""How long the kernel may take to remove a network that nothing holds any more; measured: below 0.1 s."""


def end_all(find: Callable[[], list[proctree.Process]], *, seconds: float) -> list[proctree.Process]:
    """End everything that ``find`` finds, reaping what is ours; returns what is left after ``seconds``."""
    ending = proctree.end(find, seconds=seconds)
    while True:
        try:
            next(ending)
        except StopIteration as stop:
            left: list[proctree.Process] = stop.value
            return left
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.002)


def remove(record: Record, *, keep: bool) -> None:
    """Remove what a cluster left on disk; its processes are gone. Raises ``OSError`` if something cannot be removed.

    With ``keep`` the nodes' stores and logs stay, but no certificate, key or configuration beside them. Without it the
    logs are moved to ``keep_logs``, if that was asked for.
    """
    cgroups.remove(record["cgroups"], record["id"])
    _await_end(record.get("device"))
    directory = Path(record["directory"])
    if not _is_of(directory, record["id"]):
        return
    if keep:
        _remove_all_but_data(directory)
        return
    if record["keep_logs"]:
        _move_logs(directory, Path(record["keep_logs"]))
    remove_tree(directory)


def _await_end(device: str | None) -> None:
    """Wait until the host's end of the cluster's network is gone; the kernel removes it with the last namespace."""
    until = time.monotonic() + _LINK_GONE_S
    while device is not None:
        try:
            socket.if_nametoindex(device)
        except OSError:
            return
        if time.monotonic() > until:
            raise OSError(errno.EBUSY, "still there, held by a namespace that lives", device)
        time.sleep(0.01)


def _is_of(directory: Path, cluster: str) -> bool:
    """Whether a directory is this cluster's; one that was made and not yet marked has nothing else in it."""
    try:
        if directory.is_symlink():
            return False
        if {entry.name for entry in directory.iterdir()} <= {MARKER}:
            return True
        return directory.joinpath(MARKER).read_text() == cluster
    except (FileNotFoundError, NotADirectoryError):
        return False


def _move_logs(directory: Path, target: Path) -> None:
    """Move each node's logs to a directory of the node's name; a full disk must not keep the rest from going."""
    with suppress(OSError, shutil.Error):
        for logs in sorted(directory.glob("nodes/*/logs")):
            place = target / logs.parent.name
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.exists():
                place = target / f"{logs.parent.name}-{directory.name}"
            shutil.move(logs, place)


def _remove_all_but_data(directory: Path) -> None:
    others = (
        entry for node in directory.glob("nodes/*") for entry in node.iterdir() if entry.name not in ("store", "logs")
    )
    for entry in [directory / "scratch", *others]:
        if entry.is_dir() and not entry.is_symlink():
            remove_tree(entry)
        else:
            entry.unlink(missing_ok=True)


def remove_tree(directory: Path) -> None:
    """Delete a directory, also where a node took its own right to write or to look. Raises ``OSError``."""
    try:
        shutil.rmtree(directory)
    except PermissionError:
        for place, names, _ in os.walk(directory):
            for name in names:
                inner = Path(place, name)
                if not inner.is_symlink():
                    inner.chmod(0o700)
        shutil.rmtree(directory)
