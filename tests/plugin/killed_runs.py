"""A run of pytest that will be killed, and what is left of one afterwards: nothing, but its evidence."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from clusters.substrates.processes.spawn import die_with_parent
from tests.clusters.real_cockroach import cockroach
from tests.plugin import forked

CHECKOUT = Path(__file__).parents[2]
GONE_S = 10.0
"""Within this time after its end nothing of a run is left."""

STAGES = {
    "provisioning": "provision.begin",
    "baseline": "stage.baseline",
    "fault": "stage.fault",
    "audit": "audit.begin",
}
"""The stages of a run, each with the event that begins it; ``short_claim`` can rest at all but the first."""

CATALOGUE = """
[claims.short]
sentence = "What was acknowledged is there."
nodes = {nodes}
capabilities = ["kill", "restart", "pause"]
checks = [{ metric = "lost", comparison = "==", limit = 0 }]
"""

TESTS = """
import asyncio
import contextlib

import pytest

from clusters.faults.disturbance import disturb
from clusters.faults.node import PAUSE
from plugin.evidence.events import OwnEvent


@pytest.mark.claim("short")
@pytest.mark.topology(nodes={nodes})
@pytest.mark.parametrize("number", [1, 2])
async def test_short(trial, cluster, ledger, probe, fault, judge, number):
    async def stage(name):
        trial.store.event(OwnEvent(name="stage." + name))
        await asyncio.sleep(1000 if "{rest}" == name else 0.5)

    async with probe.watching(ledger), ledger.writing(at_least=1):
        await stage("baseline")
        async with fault.kill("n1"):
            await stage("fault")
        await cluster.healthy()
    # A frozen node keeps the audit asking.
    frozen = disturb(cluster, PAUSE, ["n1"]) if "{rest}" == "audit" else contextlib.nullcontext()
    async with frozen:
        await ledger.audit()
    assert judge.decide()
"""


def shared_memory() -> dict[str, int]:
    """Segments of System V memory, with the processes that made them."""
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return {fields[1]: int(fields[4]) for fields in map(str.split, lines)}


@dataclass(kw_only=True)
class Doomed:
    """A run of pytest in a session of its own, with lock files of its own."""

    place: Path
    directory: Path
    state: Path
    process: "subprocess.Popen[bytes]"
    before: set[str]
    made: set[int] = field(default_factory=set)
    """Every process of it that was seen."""
    clusters: dict[str, dict[str, Any]] = field(default_factory=dict)

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

    def reach(self, stage: str, *, after: float = 0.0, within: float = 600.0) -> None:
        """Wait until some test of the run has recorded an event of this name, and ``after`` seconds more."""
        self.wait(lambda: stage in self.events(), f"the stage {stage}", within=within)
        time.sleep(after)

    def wait(self, condition: Callable[[], bool], what: str, *, within: float = 600.0) -> None:
        """Wait until something is so while the run goes on."""
        until = time.monotonic() + within
        while not condition():
            assert self.process.poll() is None, f"it ended before {what}:\n{self.output}"
            assert time.monotonic() < until, f"{what} did not come:\n{self.output}"
            time.sleep(0.05)
        self.note()

    def kill(self) -> None:
        """SIGKILL pytest itself; see what it had made until then."""
        assert any(str(self.directory) in left for left in self.left()), "it can be seen that it lives"
        self.process.kill()

    def interrupt(self) -> None:
        """Ctrl-C: the terminal sends SIGINT to pytest and to all that it started in its process group."""
        assert any(str(self.directory) in left for left in self.left()), "it can be seen that it lives"
        os.killpg(self.process.pid, signal.SIGINT)

    def ends(self, within: float = 600.0) -> int:
        """Wait for its end, on a busy machine long; the exit status, negative for a signal."""
        return self.process.wait(within)

    def guards(self) -> list[psutil.Process]:
        """The processes that watch over its clusters, the outer ones last."""
        below = psutil.Process(self.process.pid).children(recursive=True)
        return [p for p in reversed(below) if any(word.endswith("/supervisor.py") for word in _words(p))]

    def workers(self) -> list[psutil.Process]:
        """Its pytest-xdist workers."""
        children = psutil.Process(self.process.pid).children()
        return [p for p in children if "sys.stdin.readline" in " ".join(_words(p))]

    def note(self) -> None:
        """Remember what its clusters made on this machine, which their lock files tell as long as they live."""
        for file in (self.state / "subnets").glob("*"):
            with suppress(ValueError):
                record = json.loads(file.read_text())
                if Path(record["directory"]).is_relative_to(self.directory):
                    self.clusters[record["id"]] = record
        self.made |= {pid for pid, _ in self._processes()}

    def left(self) -> list[str]:
        """What is left of it besides its evidence, in words."""
        self.note()
        prefixes = [file.name for file in (self.state / "subnets").glob("*")]
        assert prefixes, "a cluster leased addresses"
        found = [f"process {pid}: {' '.join(words)[:200]}" for pid, words in self._processes()]
        # Once it has let go of its addresses another run may have them: a listener counts if its process was one of
        # ours.
        found += [
            f"listening: {c.laddr}"
            for c in psutil.net_connections("tcp")
            if c.status == psutil.CONN_LISTEN
            and c.laddr
            and c.laddr.ip.rpartition(".")[0] in prefixes
            and (c.pid is None or c.pid in self.made)
        ]
        found += [f"directory {place}" for place in self.directory.glob("clusters/*")]
        found += [f"lock {place}" for place in self._locks() if not _free(place)]
        for id_, record in self.clusters.items():
            groups = [Path(place) / f"roachproof-{id_}" for place in record["cgroups"].values()]
            found += [f"control group {group}" for group in groups if group.exists()]
            device = record.get("device")
            found += [f"interface {device}"] if device and Path("/sys/class/net", device).exists() else []
        found += [
            f"shared memory {segment}"
            for segment, maker in shared_memory().items()
            if segment not in self.before and maker in self.made and not psutil.pid_exists(maker)
        ]
        return found

    def _locks(self) -> Iterator[Path]:
        yield from (self.state / "subnets").iterdir()
        yield from (self.state / "slots").iterdir()

    def _processes(self) -> Iterator[tuple[int, list[str]]]:
        """Every process of its session or that works in its directory, with its command line."""
        for process in psutil.process_iter():
            if process.pid == os.getpid() or not (words := _words(process)):
                continue
            places = list(words)
            with suppress(psutil.Error, OSError):
                places.append(process.cwd())
            with suppress(ProcessLookupError):
                if os.getsid(process.pid) == self.process.pid or any(str(self.directory) in w for w in places):
                    yield process.pid, words

    def assert_gone(self) -> None:
        """Nothing is left within the time that is promised, or as many times longer as work waits for each core."""
        until = time.monotonic() + GONE_S * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        while left := self.left():
            assert time.monotonic() < until, "\n".join(left)
            time.sleep(0.1)


def _words(process: psutil.Process) -> list[str]:
    """A process's command line; none of one that has ended since it was found, waited for or not."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def assert_ended_early(place: Path, *, trials: int = 1) -> None:
    """A replay of all evidence in a directory says of each of its trials that it ended early and so decides nothing."""
    status, text = forked.said([f"--judge={place}", f"--report={place / 'again.html'}"])
    assert status == 6, text
    assert re.findall(r"^claim \S+: (.+)$", text, re.MULTILINE) == ["ENDED EARLY"] * trials, text
    assert text.count("the run ended before it was judged") == trials, text
    assert text.count("evidence: integrity not met:") == trials, text


def on_its_own() -> None:
    """Let Ctrl-C end a program, as it would in a shell's foreground; and end it with us, should we be killed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    die_with_parent(signal.SIGKILL)


@contextmanager
def started(place: Path, *options: str, name: str = "run") -> Iterator[Doomed]:
    """Start pytest on the checkout's tests; it and all its session are dead at the end.

    Runs in the same ``place`` share their lock files.
    """
    directory = place / name
    state = place / "state"
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
            preexec_fn=on_its_own,
        )
    try:
        yield Doomed(place=place, directory=directory, state=state, process=process, before=set(before))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(600)


def short_claim(
    place: Path, *, rest: str = "", engine: str = "postgres", nodes: int = 1, numbers: Sequence[int] = (1,)
) -> list[str]:
    """Options that run a short claim, which rests for good at one of ``STAGES`` if that is given."""
    own = place / "own"
    own.mkdir(exist_ok=True, parents=True)
    for file, text in (("test_short.py", TESTS), ("own.toml", CATALOGUE)):
        (own / file).write_text(text.replace("{rest}", rest).replace("{nodes}", str(nodes)))
    config = ["-c", str(CHECKOUT / "pyproject.toml"), "--rootdir", str(own)]
    tests = [f"{own / 'test_short.py'}::test_short[{number}]" for number in numbers]
    return [*config, *tests, "--catalogue", str(own / "own.toml"), *options_of(engine)]


def options_of(engine: str) -> list[str]:
    """The engine's options; skips, saying what is missing, where there is no CockroachDB."""
    if engine == "postgres":
        return ["--engine", "postgres"]
    return ["--cockroach", str(cockroach().binary.path)]


@contextmanager
def one_at_each_stage(tmp_path: Path, end: Callable[[Doomed], None]) -> Iterator[dict[str, Doomed]]:
    """Four runs at once, of which each is ended at another stage: so much sooner than one after the other."""
    with ExitStack() as stack:
        runs: dict[str, Doomed] = {}
        for stage in STAGES:
            options = short_claim(tmp_path / stage, rest=stage)
            runs[stage] = stack.enter_context(started(tmp_path / stage, *options))
        for stage, run in runs.items():
            run.reach(STAGES[stage], after=1.0)
            end(run)
        yield runs


def _free(lock: Path) -> bool:
    with lock.open("rb") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
