"""Network namespaces: whether this machine lets us make some, and the two system calls. Standard library only.

A namespace here has no name and no file: it lives as long as a process in it or an open file of it, so that nothing of
it can outlive the cluster.
"""

import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from clusters.substrates.processes.spawn import LIBC, checked

_CLONE_NEWNET = 0x40000000
_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
"""What making namespaces and links in them takes, by the bits of linux/capability.h."""
_TRIAL_S = 30.0
"""How long the trial may take; measured: 0.8 s."""


def enter(namespace: int) -> None:
    """Move this thread into the network namespace of an open file. Raises ``OSError``."""
    checked(LIBC.setns(namespace, _CLONE_NEWNET))


def own() -> int:
    """An open file of this thread's network namespace."""
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def claim(prefix: str) -> socket.socket | None:
    """An abstract socket that stands for the addresses; ``None`` where another cluster has it.

    Seen by every user and container that shares our network.
    """
    claimed = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claimed.bind(f"\0roachproof-{prefix}")
    except OSError:
        claimed.close()
        return None
    return claimed


@contextmanager
def inside(namespace: int | None, *, home: int) -> Iterator[None]:
    """Be in that namespace, or in a new one for ``None``; then back in ``home``. Raises ``OSError``.

    Only this thread moves. Sockets that are opened meanwhile stay in that namespace for good.
    """
    if namespace is not None:
        enter(namespace)
    else:
        checked(LIBC.unshare(_CLONE_NEWNET))
    try:
        yield
    finally:
        enter(home)


def packages() -> str | None:
    """The directory from which pyroute2, which speaks netlink, is imported; ``None`` where it is not installed."""
    spec = importlib.util.find_spec("pyroute2")
    places = spec.submodule_search_locations if spec else None
    return str(Path(places[0]).parent) if places else None


def forbidden() -> str | None:
    """Why no namespaces with links can be made here, as far as that can be told without making one; else ``None``."""
    if sys.platform != "linux":
        return f"platform {sys.platform} has no network namespaces"
    if packages() is None:
        return "the package pyroute2 is not installed"
    status = Path("/proc/self/status").read_text()
    held = next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), 0)
    missing = [name for name, bit in _CAPABILITIES.items() if not held >> bit & 1]
    return f"{missing[0]} is missing (run as root, or grant it)" if missing else None


@cache
def why_not() -> str | None:
    """Why links between nodes cannot be cut on this machine, or ``None`` where they can: tried once, for real.

    Blocks for about a second the first time, where nothing forbids it at once.
    """
    if (reason := forbidden()) is not None:
        return reason
    root = Path(__file__).resolve().parent.parent.parent.parent
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from clusters.substrates.processes import network\n"
        "sys.exit(network.trial())"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", program, str(root)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TRIAL_S,
            cwd="/",
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"network namespaces could not be tried: {error}"
    if done.returncode == 0:
        return None
    said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
    return f"network namespaces do not work here: {said}"
