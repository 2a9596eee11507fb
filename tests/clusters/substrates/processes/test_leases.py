"""What clusters of one machine share: leases of addresses and capacity, and what a killed run leaves behind."""

import asyncio
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from clusters.errors import BadInput, HarnessError
from clusters.model import NodeSpec, ProcessSpec, ProcessState
from clusters.substrates.processes import Processes, cgroups, leases, proctree
from tests.clusters.substrates.processes.process_nodes import PATIENCE_S, alive, eventually, working_in

HARNESS = Path(__file__).with_name("harness_to_kill.py")
HOLDER = """
import asyncio, sys, time
sys.path.insert(0, sys.argv[1])
from clusters.substrates.processes import leases
async def main():
    lease = await leases.lease_slots(int(sys.argv[2]), of=int(sys.argv[3]), name=sys.argv[4], say=lambda text: None)
    print("held", flush=True)
    if len(sys.argv) > 5:
        begun = time.monotonic()
        await asyncio.sleep(float(sys.argv[5]))
        ended = time.monotonic()
        lease.release()
        print(begun, ended, flush=True)
    else:
        await asyncio.sleep(100)
asyncio.run(main())
"""


pytestmark = pytest.mark.usefixtures("state")


def wait_for(condition: Callable[[], object], seconds: float = PATIENCE_S) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.01)


def all_free(state: Path) -> bool:
    for path in (*state.glob("slots/slot-*"), *state.glob("subnets/*")):
        with path.open("rb") as opened:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
    return True


@dataclass
class Doomed:
    """A harness with a running cluster."""

    process: "subprocess.Popen[str]"
    told: dict[str, Any]

    @property
    def directory(self) -> Path:
        return Path(self.told["directory"])

    def kill(self, *names: str) -> None:
        pids = {
            "harness": self.process.pid,
            "guard": self.told["guard"],
            "supervisor": self.told["supervisor"],
        }
        # Stopped first, so that none can react to the death of another before its own.
        for name in names:
            os.kill(pids[name], signal.SIGSTOP)
        for name in names:
            os.kill(pids[name], signal.SIGKILL)


@contextmanager
def doomed(tmp_path: Path, *how: str) -> Iterator[Doomed]:
    process = subprocess.Popen(
        [sys.executable, str(HARNESS), str(tmp_path / "work"), *how], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        told = json.loads(process.stdout.readline())
        made = Doomed(process=process, told=told)
        assert len(working_in(made.directory)) >= 6, "three leaders and three daemons"
        yield made
        if told["forked"]:
            os.kill(told["forked"], signal.SIGKILL)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize(
    "killed",
    [
        ("harness",),
        ("harness", "supervisor"),
        ("harness", "guard"),
        ("supervisor",),
        ("guard",),
    ],
    ids="+".join,
)
def test_nothing_outlives_a_killed_harness(tmp_path: Path, state: Path, killed: tuple[str, ...]) -> None:
    with doomed(tmp_path) as harness:
        assert not all_free(state)
        harness.kill(*killed)
        wait_for(lambda: not working_in(harness.directory))
        wait_for(lambda: not harness.directory.exists())
        if "harness" in killed:
            wait_for(lambda: all_free(state))
        assert list((tmp_path / "work").iterdir()) == []
        wait_for(lambda: proctree.read(harness.told["guard"]) is None or "harness" not in killed)


def test_nothing_outlives_a_harness_whose_fork_keeps_the_pipe_open(tmp_path: Path, state: Path) -> None:
    with doomed(tmp_path, "fork") as harness:
        harness.kill("harness")
        wait_for(lambda: not working_in(harness.directory))
        wait_for(lambda: not harness.directory.exists())
        wait_for(lambda: all_free(state))
        assert proctree.read(harness.told["forked"]), "or this would not have been the case to test"


def test_interrupting_the_terminal_does_not_reach_the_supervisor(tmp_path: Path) -> None:
    with doomed(tmp_path) as harness:
        for name in ("guard", "supervisor"):
            seen = proctree.read(harness.told[name])
            assert seen is not None
            assert seen.session == harness.told["guard"] != os.getsid(0)


def test_a_later_run_sweeps_what_was_left_when_all_three_were_killed(tmp_path: Path, state: Path) -> None:
    with doomed(tmp_path) as living, doomed(tmp_path) as harness:
        harness.kill("harness", "guard", "supervisor")
        holders = harness.process.pid, harness.told["guard"], harness.told["supervisor"]
        wait_for(lambda: not any(map(alive, holders)))  # until then what they hold is held
        wait_for(lambda: len(working_in(harness.directory)) == 3)
        assert harness.directory.exists()
        left = working_in(harness.directory)
        assert left, "the daemons got no signal from anybody"
        swept = leases.sweep()
        assert swept == (leases.Swept(directory=str(harness.directory)),)
        assert working_in(harness.directory) == []
        assert not harness.directory.exists()
        assert not list(Path("/sys/fs/cgroup").glob(f"*/**/roachproof-{harness.directory.name}"))
        assert len(working_in(living.directory)) >= 6, "a living cluster is not touched"
        assert leases.sweep() == ()


@pytest.mark.parametrize("after", [0.02 * turn for turn in range(1, 13)])
def test_whenever_a_harness_is_killed_a_sweep_leaves_nothing(tmp_path: Path, state: Path, after: float) -> None:
    """Also between the lease and the directory, and between the directory and the supervisor."""
    process = subprocess.Popen(
        [sys.executable, str(HARNESS), str(tmp_path / "work")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(after)
    process.kill()
    process.wait()
    wait_for(lambda: not state.exists() or all_free(state))
    leases.sweep()
    assert working_in(tmp_path) == []
    assert not tmp_path.joinpath("work").exists() or list(tmp_path.joinpath("work").iterdir()) == []


async def test_the_first_cluster_of_a_process_sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Processes, "swept", False)
    left = tmp_path / "left"
    left.mkdir()
    left.joinpath(".roachproof-cluster").write_text("x-1")
    left.joinpath("store").mkdir()
    with leases.lease_subnet() as subnet:
        subnet.record({"id": "x-1", "directory": str(left), "keep": False, "keep_logs": None, "cgroups": {}})
    said: list[str] = []
    place = await Processes.open(name="test", workdir=tmp_path / "work", slots=1, say=said.append)
    await place.close()
    assert said == [f"left by a killed run: {left}: cleared away"]
    assert not left.exists()


def test_groups_of_version_2_go_where_both_controllers_are_handed_on(tmp_path: Path) -> None:
    """On recorded files: the machine this was written on has version 1."""
    own = tmp_path / "user.slice/session.scope"
    own.mkdir(parents=True)
    tmp_path.joinpath("cgroup.subtree_control").write_text("cpuset cpu io memory pids\n")
    tmp_path.joinpath("user.slice/cgroup.subtree_control").write_text("memory pids\n")
    own.joinpath("cgroup.subtree_control").write_text("\n")
    assert cgroups.handing_on(tmp_path, "/user.slice/session.scope") == tmp_path
    tmp_path.joinpath("cgroup.subtree_control").write_text("memory pids\n")
    assert cgroups.handing_on(tmp_path, "/user.slice/session.scope") is None
    places = {"cpu": str(tmp_path), "memory": str(tmp_path)}
    node = tmp_path / "roachproof-x-1/n1"
    node.mkdir(parents=True)
    for name in ("cgroup.type", "cpu.max", "memory.max"):
        node.joinpath(name).touch()
    joins = cgroups.limit(places, "x-1", "n1", cpus=0.5, memory_mib=None)
    assert joins == [str(node / "cgroup.procs")]
    assert node.joinpath("cpu.max").read_text() == "50000 100000"
    assert node.joinpath("memory.max").read_text() == "max"


def test_the_sweep_deletes_nothing_it_cannot_recognise(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    precious.joinpath("thesis").write_text("words")
    with leases.lease_subnet() as subnet:
        subnet.record({"id": "x-1", "directory": str(precious), "keep": False, "keep_logs": None, "cgroups": {}})
    assert leases.sweep() == (leases.Swept(directory=str(precious)),)
    assert precious.joinpath("thesis").read_text() == "words"


async def test_closing_clears_up_itself_if_both_guards_were_killed(tmp_path: Path, state: Path) -> None:
    place = await Processes.open(name="test", workdir=tmp_path / "work", slots=1)
    (at,) = await place.place([NodeSpec(name="n1")])
    await place.start(
        ProcessSpec(
            name="n1",
            argv=("/bin/sleep", "100"),
            env={},
            cwd=at.home,
            output=at.logs / "out",
            unprivileged=True,
        )
    )
    guard, supervisor = place.guards
    for pid in (guard, supervisor):
        os.kill(pid, signal.SIGSTOP)
    for pid in (guard, supervisor):
        os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(wait_for, lambda: place.state("n1") is ProcessState.EXITED)
    await asyncio.sleep(0.2)
    with pytest.raises(HarnessError, match=r"supervisor of test-.* was killed"):
        await place.run(["/bin/true"], env={}, cwd=tmp_path, timeout=PATIENCE_S)
    await place.close()
    assert not place.directory.exists()
    assert all_free(state)


async def test_two_clusters_at_once_have_different_addresses(tmp_path: Path) -> None:
    one, other = await asyncio.gather(
        *(Processes.open(name="test", workdir=tmp_path / "work", slots=2) for _ in range(2))
    )
    try:
        (a,), (b,) = await one.place([NodeSpec(name="n1")]), await other.place([NodeSpec(name="n1")])
        assert a.address != b.address
        with socket.create_server((a.address, 38766)), socket.create_server((b.address, 38766)):
            pass
    finally:
        await one.close()
        await other.close()


def test_addresses_claimed_by_another_user_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user has another state directory; the loopback interface is the same."""
    monkeypatch.setattr("random.randrange", lambda _: 250)
    with leases.lease_subnet() as first:
        monkeypatch.setenv("ROACHPROOF_STATE", os.environ["ROACHPROOF_STATE"] + "-2")
        with leases.lease_subnet() as second:
            assert first.prefix != second.prefix
        assert second.prefix.startswith("127.")


async def held(count: int, of: int, name: str, *seconds: str) -> asyncio.subprocess.Process:
    root = str(HARNESS.parents[4])
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        HOLDER,
        root,
        str(count),
        str(of),
        name,
        *seconds,
        stdout=asyncio.subprocess.PIPE,
    )


async def line(process: asyncio.subprocess.Process, seconds: float = PATIENCE_S) -> str:
    assert process.stdout is not None
    return (await asyncio.wait_for(process.stdout.readline(), seconds)).decode().strip()


async def test_who_waits_says_for_whom_and_goes_on_when_the_holder_dies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leases, "SAY_EVERY_S", 0.2)
    holder = await held(2, 3, "first")
    assert await line(holder) == "held"
    said: list[str] = []
    waiting = asyncio.create_task(leases.lease_slots(2, of=3, name="second", say=said.append))
    await eventually(lambda: len(said) >= 2)
    assert not waiting.done(), "one of three is free, two are needed"
    assert "second: waiting" in said[0]
    assert f"for 2 of 3 slots of this machine, held by first (pid {holder.pid})" in said[0]
    holder.kill()
    await holder.wait()
    lease = await asyncio.wait_for(waiting, PATIENCE_S)
    lease.release()
    lease.release()


async def test_a_cancelled_wait_gives_back_what_it_had(state: Path) -> None:
    holder = await held(2, 3, "first")
    assert await line(holder) == "held"
    waiting = asyncio.create_task(leases.lease_slots(2, of=3, name="second", say=lambda _: None))
    await asyncio.sleep(0.3)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(PATIENCE_S):
        (await leases.lease_slots(1, of=3, name="third", say=lambda _: None)).release()
    holder.kill()
    await holder.wait()
    async with asyncio.timeout(PATIENCE_S):
        (await leases.lease_slots(3, of=3, name="fourth", say=lambda _: None)).release()


async def test_parallel_takers_never_deadlock_and_never_exceed_the_machine() -> None:
    """Six processes each want two of three slots: one at a time gets them, and all get them.

    Each tells itself when it had them; who hears of it may hear of it late.
    """
    takers = [await held(2, 3, f"taker-{i}", "0.1") for i in range(6)]

    async def times(process: asyncio.subprocess.Process) -> list[float]:
        assert await line(process) == "held"
        told = await line(process)
        assert await process.wait() == 0
        return [float(word) for word in told.split()]

    spans = sorted(await asyncio.gather(*(times(taker) for taker in takers)))
    assert [(a, b) for a, b in pairwise(spans) if b[0] < a[1]] == []


async def test_waiting_for_oneself_is_an_error_and_not_a_deadlock() -> None:
    with await leases.lease_slots(2, of=3, name="first", say=lambda _: None):
        with pytest.raises(HarnessError, match="second needs 2 of 3 slots, and this process itself holds 2"):
            await leases.lease_slots(2, of=3, name="second", say=lambda _: None)
        with await leases.lease_slots(1, of=3, name="third", say=lambda _: None):
            pass
    with pytest.raises(BadInput, match="capacity 4: this machine has 3 slots"):
        await leases.lease_slots(4, of=3, name="much", say=lambda _: None)


def test_the_state_directory_must_be_our_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def choose(path: Path) -> None:
        monkeypatch.setenv("ROACHPROOF_STATE", str(path))

    choose(tmp_path / "wide")
    tmp_path.joinpath("wide").mkdir(mode=0o777)
    assert leases.state_directory().stat().st_mode & 0o777 == 0o700
    tmp_path.joinpath("link").symlink_to(tmp_path / "wide")
    choose(tmp_path / "link")
    with pytest.raises(BadInput, match="must be a directory and not a link; set ROACHPROOF_STATE"):
        leases.state_directory()
    tmp_path.joinpath("file").touch()
    choose(tmp_path / "file")
    with pytest.raises(BadInput, match="cannot hold lock files"):
        leases.state_directory()
    choose(tmp_path / "wide")
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    with pytest.raises(BadInput, match=r"belongs to user \d+, must belong to user 12345"):
        leases.state_directory()
