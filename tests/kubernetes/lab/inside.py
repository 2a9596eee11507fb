"""What the modules of a lab share: where it is, and how its parts are started, watched and asked."""

import ctypes
import json
import signal
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

GATEWAY = "172.30.0.1"
SERVICE, SERVICES = "10.96.0.1", "10.96.0.0/16"
"""The address by which pods are told to reach the API server, the first of all services'. No other service's leads
anywhere: nothing here passes them on."""
API_PORT = 443
"""That of its service, so that the API server itself can be reached by that address."""
API = f"https://{GATEWAY}:{API_PORT}"
TOKEN = "lab"
READY, API_UP = "ready", "api-up"
UNVERIFIED = ssl._create_unverified_context()
"""The API server signs its own certificate."""
APART = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "--mount-proc")
"""What begins a command line that is to be in namespaces of its own, which end with it."""
LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Have the kernel kill us when the thread that is our parent ends."""
    LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def until(what: str, check: Callable[[], Any], timeout: float = 120.0) -> Any:
    """Wait for something to be true; what it was. Raises ``TimeoutError``."""
    began = time.monotonic()
    while not (found := check()):
        if time.monotonic() - began > timeout:
            raise TimeoutError(f"{what}: not within {timeout:g} s")
        time.sleep(0.05)
    return found


def ask(path: str) -> str:
    """What the API server answers; nothing where it does not."""
    request = urllib.request.Request(API + path, headers={"Authorization": f"Bearer {TOKEN}"})
    try:
        return str(urllib.request.urlopen(request, context=UNVERIFIED, timeout=3).read().decode())
    except OSError:
        return ""


def do(*lines: str) -> None:
    """Run commands, words parted by spaces. Raises ``CalledProcessError``."""
    for line in lines:
        subprocess.run(line.split(), check=True)


def write(path: Path, content: object) -> Path:
    """Write a file, text or JSON, and the directories on the way; its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


parts: dict[str, Callable[[], int | None]] = {}
"""What this process has started that is not to end: each tells its exit code once it has."""


def spawn(directory: Path, name: str, *argv: str) -> None:
    """Start a part, which writes to a log in the directory."""
    log = directory / f"{name}.log"
    with log.open("ab") as output:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
    parts[f"{name} ({log})"] = process.poll


def complete() -> bool:
    """That all parts run. Raises ``RuntimeError`` for one that has ended."""
    for name, ended in parts.items():
        if (code := ended()) is not None:
            raise RuntimeError(f"{name} ended with {code}")
    return True


def own_mounts() -> None:
    """Have directories of our own where programs insist on theirs."""
    for place in ("/run", "/var/log", "/var/lib/cni", "/var/lib/kubelet"):
        do(f"mount -t tmpfs tmpfs {place}")
