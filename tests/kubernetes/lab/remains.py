"""What a lab has on the machine besides processes: a directory, control groups, mount points; how that is removed.

``python -m tests.kubernetes.lab.remains DIRECTORY`` removes it once its standard input ends.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fixtures.workloads.relay import ROOT
from tests.kubernetes.lab.inside import until

CONTROL_GROUPS = Path("/sys/fs/cgroup")
PREFIX = "roachproof-lab-"
_ALIVE, _MADE = "alive", "made"
PLACES = ("/var/lib/cni", "/var/lib/kubelet", "/tmp/hostpath_pv")
"""Where a lab mounts what is its own: each is an empty directory for everybody else."""
_END_S = 30.0
"""How long a lab's processes may take to be gone once they were killed."""


def groups() -> list[Path]:
    """The roots of control groups: one, or one a controller."""
    if (CONTROL_GROUPS / "cgroup.controllers").exists():
        return [CONTROL_GROUPS]
    return [path for path in CONTROL_GROUPS.iterdir() if path.is_dir() and not path.is_symlink()]


def make_places(directory: Path) -> None:
    """Make those places that are not there, and keep in the lab's directory which these were."""
    missing = [place for place in PLACES if not Path(place).exists()]
    (directory / _MADE).write_text("\n".join(missing))
    for place in missing:
        Path(place).mkdir(parents=True, exist_ok=True)


def _remove_places(directory: Path) -> None:
    """Remove those that this lab made, unless another is there: what it has mounted there would go with them."""
    if (directory / _MADE).exists() and not any(list(root.glob(f"{PREFIX}*")) for root in groups()):
        for place in (directory / _MADE).read_text().split():
            with suppress(OSError):
                Path(place).rmdir()


@contextmanager
def alone(base: Path) -> Iterator[None]:
    """What labs that begin at the same time do one after the other. Not to be nested."""
    base.mkdir(parents=True, exist_ok=True)
    with (base / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def hold(directory: Path) -> int:
    """The number of an open file: the lab counts as alive as long as any process has it."""
    handle = os.open(directory / _ALIVE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def _is_held(directory: Path) -> bool:
    try:
        with (directory / _ALIVE).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def sweep(base: Path) -> list[str]:
    """Remove what labs left whose process was killed; their names."""
    with alone(base):
        return sweep_alone(base)


def sweep_alone(base: Path) -> list[str]:
    """The same, for who is ``alone`` already."""
    names = {path.name for path in base.glob(f"{PREFIX}*")}
    for root in groups():
        names |= {path.name for path in root.glob(f"{PREFIX}*")}
    dead = [name for name in sorted(names) if _is_dead(base / name)]
    for name in dead:
        remove(base / name)
    return dead


def remove_after_us(directory: Path) -> subprocess.Popen[bytes]:
    """Have a process of its own remove everything once we are gone, killed or not: it reads from us until then."""
    line = [sys.executable, "-m", __name__, str(directory)]
    void = subprocess.DEVNULL
    # A signal for our whole session is not for it.
    return subprocess.Popen(line, stdin=subprocess.PIPE, stdout=void, stderr=void, cwd=ROOT, start_new_session=True)


def _is_dead(directory: Path) -> bool:
    owner = directory.name.removeprefix(PREFIX).split("-")[0]
    if not Path(f"/proc/{owner}").exists():
        return True
    # Its number may be another process' by now.
    return (directory / _ALIVE).exists() and not _is_held(directory)


def remove(directory: Path) -> None:
    """Remove everything, once no process is left that could write there. Raises ``TimeoutError``."""
    until(f"the processes of {directory} to be gone", lambda: not _is_held(directory), _END_S)
    for root in groups():
        group = root / directory.name
        inside = [path for path in group.rglob("*") if path.is_dir()]
        # Deepest first.
        for path in sorted([group, *inside], reverse=True):
            until(f"{path} to be empty", lambda path=path: _removed(path), _END_S)  # type: ignore[misc]
    _remove_places(directory)
    subprocess.run(["rm", "-rf", directory], check=True)


def _removed(group: Path) -> bool:
    """A control group goes once its last process is gone, which takes a moment."""
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.stdin.read()
    left = Path(sys.argv[1])
    if left.exists():  # it is removed last of all
        with alone(left.parent):
            remove(left)
