"""A run of pytest that will be killed, and what is left of one afterwards: nothing, but its evidence."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

CHECKOUT = Path(__file__).parents[2]
GONE_S = 10.0
"""Within this time after its end nothing of a run is left."""

CATALOGUE = """
[claims.short]
sentence = "What was acknowledged is there."
nodes = 1
capabilities = ["kill", "restart"]
checks = [{ metric = "lost", comparison = "==", limit = 0 }]
"""

TESTS = """
import asyncio

import pytest


@pytest.mark.claim("short")
@pytest.mark.topology(nodes=1)
@pytest.mark.parametrize("number", [1, 2])
async def test_short(arm, cluster, ledger, probe, fault, judge, number):
    async with ledger.writing(at_least=1), probe.watching(ledger):
        arm.store.event("stage.baseline")
        await asyncio.sleep({pause})
        async with fault.kill("n1"):
            await asyncio.sleep({pause})
        await cluster.healthy()
    await ledger.audit()
    arm.store.event("stage.audited")
    await asyncio.sleep({pause})
    assert judge.decide()
"""


def shared_memory() -> set[str]:
    """Segments of System V memory whose creator is dead."""
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return {line.split()[1] for line in lines if not psutil.pid_exists(int(line.split()[4]))}


@dataclass(kw_only=True)
class Doomed:
    """A run of pytest in a session of its own, with lock files of its own."""

    directory: Path
    state: Path
    process: "subprocess.Popen[bytes]"
    before: set[str]

    @property
    def output(self) -> str:
        """What it printed so far."""
        return self.directory.with_suffix(".log").read_text(errors="replace")

    def events(self) -> list[str]:
        """The names of the events of all its tests."""
        names = []
        for file in self.directory.glob("claims/*/*/events.jsonl"):
            for line in file.read_text().splitlines():
                with suppress(ValueError):
                    names.append(str(json.loads(line)["event"]))
        return names

    def reach(self, stage: str, *, after: float = 0.0, within: float = 240.0) -> None:
        """Wait until some test of the run has recorded an event of this name, and ``after`` seconds more."""
        self.wait(lambda: stage in self.events(), f"the stage {stage}", within=within)
        time.sleep(after)

    def wait(self, condition: Callable[[], bool], what: str, *, within: float = 240.0) -> None:
        """Wait until something is so while the run goes on."""
        until = time.monotonic() + within
        while not condition():
            assert self.process.poll() is None, f"it ended before {what}:\n{self.output}"
            assert time.monotonic() < until, f"{what} did not come:\n{self.output}"
            time.sleep(0.05)

    def send(self, signum: int) -> None:
        """Send pytest itself a signal."""
        self.process.send_signal(signum)

    def ends(self, within: float = 120.0) -> int:
        """Wait for its end; the exit status, negative for a signal."""
        return self.process.wait(within)

    def workers(self) -> list[psutil.Process]:
        """Its pytest-xdist workers."""
        children = psutil.Process(self.process.pid).children()
        return [p for p in children if "sys.stdin.readline" in " ".join(p.cmdline())]

    def left(self) -> list[str]:
        """What is left of it besides its evidence, in words."""
        prefixes = [file.name for file in (self.state / "subnets").glob("*")]
        assert prefixes, "a cluster leased addresses"
        found = [f"process {p.pid}: {' '.join(p.cmdline())[:200]}" for p in self._processes()]
        found += [
            f"listening: {c.laddr}"
            for c in psutil.net_connections("tcp")
            if c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.ip.rpartition(".")[0] in prefixes
        ]
        found += [f"directory {place}" for place in self.directory.glob("clusters/*")]
        found += [f"lock {place}" for place in self._locks() if not _free(place)]
        found += [f"shared memory {segment}" for segment in shared_memory() - self.before]
        return found

    def _locks(self) -> Iterator[Path]:
        yield from (self.state / "subnets").iterdir()
        yield from (self.state / "slots").iterdir()

    def _processes(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
                    continue
                words = [process.cwd(), *process.cmdline()]
                if os.getsid(process.pid) == self.process.pid or any(str(self.directory) in w for w in words):
                    yield process

    def assert_gone(self) -> None:
        """Nothing is left within the time that is promised."""
        until = time.monotonic() + GONE_S
        while left := self.left():
            assert time.monotonic() < until, "\n".join(left)
            time.sleep(0.1)

    def judged(self) -> tuple[int, str]:
        """What a replay of its evidence says: exit status and text."""
        done = subprocess.run(
            [sys.executable, "-m", "pytest", f"--judge={self.directory}"],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


@contextmanager
def started(tmp_path: Path, *options: str, name: str = "run") -> Iterator[Doomed]:
    """Start pytest on the checkout's tests; it and all its session are dead at the end."""
    directory = tmp_path / name
    state = tmp_path / "state"
    before = shared_memory()
    with directory.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--run-dir={directory}", *options],
            cwd=CHECKOUT,
            env={**os.environ, "ROACHPROOF_STATE": str(state)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Doomed(directory=directory, state=state, process=process, before=before)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def short_claim(tmp_path: Path, *, pause: float, numbers: Sequence[int] = (1,)) -> list[str]:
    """Options that run a short claim on one node of the control, resting ``pause`` seconds at every stage."""
    place = tmp_path / "own"
    place.mkdir(exist_ok=True)
    file = place / "test_short.py"
    file.write_text(TESTS.replace("{pause}", str(pause)))
    (place / "own.toml").write_text(CATALOGUE)
    tests = [f"{file}::test_short[{number}]" for number in numbers]
    config = ["-c", str(CHECKOUT / "pyproject.toml"), "--rootdir", str(place)]
    return [*config, *tests, "--catalogue", str(place / "own.toml"), "--engine", "postgres"]


def _free(lock: Path) -> bool:
    with lock.open("rb") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
