"""The substrate ``processes``, on real processes."""

import asyncio
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from clusters.errors import BadInput, HarnessError
from clusters.model import (
    Capability,
    NodeResources,
    NodeSpec,
    Placement,
    ProcessSpec,
    ProcessState,
)
from clusters.substrates import Substrate
from clusters.substrates.processes import Processes, proctree, spawn

ROOT = os.geteuid() == 0
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


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lock files of the test's own, so that no other run's slots are waited for."""
    monkeypatch.setenv("ROACHPROOF_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Processes]:
    made = await Processes.open(name="test", workdir=tmp_path / "work", slots=2)
    try:
        yield made
    finally:
        await made.close()
        assert not made.directory.exists()
        assert working_in(tmp_path) == []


def working_in(directory: Path) -> list[int]:
    return [
        pid for pid, p in proctree.snapshot().items() if not p.dead and proctree.inside(pid, str(directory))
    ]


async def eventually(condition: Callable[[], object], seconds: float = 5.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        await asyncio.sleep(0.01)


async def one(place: Processes, name: str = "n1") -> Placement:
    (placement,) = await place.place([NodeSpec(name=name)])
    return placement


def spec(at: Placement, *argv: str, stop_signal: int = 15, unprivileged: bool = False) -> ProcessSpec:
    return ProcessSpec(
        name=at.node.name,
        argv=argv,
        env={"PATH": "/usr/bin:/bin"},
        cwd=at.home,
        output=at.logs / "out",
        stop_signal=stop_signal,
        unprivileged=unprivileged,
    )


def shell(at: Placement, script: str, *, stop_signal: int = 15, unprivileged: bool = False) -> ProcessSpec:
    return spec(at, "/bin/sh", "-c", script, stop_signal=stop_signal, unprivileged=unprivileged)


async def daemonised(place: Processes, at: Placement, *how: str) -> int:
    """A node whose daemon is no descendant of it any more; the daemon's process id."""
    file = at.store / "pid"
    nap = f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(1000)"
    await place.start(spec(at, *PYTHON, f"NAP = {nap!r}\n{DAEMON}", *how))
    await eventually(lambda: file.exists() and file.read_text())
    return int(file.read_text())


def alive(pid: int) -> bool:
    seen = proctree.look(pid)
    return seen is not None and not seen.dead


async def test_it_is_a_substrate(place: Processes) -> None:
    substrate: Substrate = place
    assert {Capability.KILL, Capability.PAUSE, Capability.ADD_NODE} <= substrate.capabilities
    assert not {Capability.CUT_LINKS, Capability.STALL_DISK} & substrate.capabilities
    assert substrate.scratch.stat().st_mode & 0o777 == 0o700


async def test_each_node_has_an_address_and_directories_of_its_own(place: Processes) -> None:
    first = await place.place([NodeSpec(name="n1"), NodeSpec(name="n2")])
    added = await one(place, "n3")
    sockets = []
    for placement in (*first, added):
        assert placement.home.stat().st_mode & 0o777 == 0o700
        assert placement.store.parent == placement.logs.parent == placement.home
        listener = socket.create_server((placement.address, 38765))
        sockets.append(listener)
    for listener in sockets:
        listener.close()
    with pytest.raises(BadInput, match="'n2': must be new"):
        await place.place([NodeSpec(name="n2")])
    with pytest.raises(BadInput, match=r"'\.\./n4'"):
        await place.place([NodeSpec(name="../n4")])


async def test_a_process_runs_until_it_ends_and_its_code_comes_back(place: Processes) -> None:
    at = await one(place)
    assert place.state("n1") is ProcessState.ABSENT
    os.mkfifo(at.home / "go")
    await place.start(shell(at, "echo begun; read x < go; echo ended >&2; exit 7"))
    assert place.state("n1") is ProcessState.RUNNING
    assert place.exit_code("n1") is None
    with pytest.raises(HarnessError, match="runs already"):
        await place.start(shell(at, "true"))
    await asyncio.to_thread(at.home.joinpath("go").write_text, "go\n")
    # Not awaited, so that the event cannot have arrived: the code must be there as soon as the process is dead.
    until = time.monotonic() + 5
    while place.state("n1") is not ProcessState.EXITED and time.monotonic() < until:
        pass
    assert place.state("n1") is ProcessState.EXITED
    assert place.exit_code("n1") == 7
    await asyncio.sleep(0.1)
    assert place.exit_code("n1") == 7
    assert place.log_tail("n1", 2) == "begun\nended"
    assert place.log_tail("n1", 1) == "ended"
    await place.start(shell(at, "kill -SEGV $$"))
    await eventually(lambda: place.state("n1") is ProcessState.EXITED)
    assert place.exit_code("n1") == -signal.SIGSEGV


async def test_stop_asks_with_the_stop_signal_and_kills_who_does_not_listen(place: Processes) -> None:
    at = await one(place)
    await place.start(shell(at, "trap 'exit 5' INT; echo ready; while :; do sleep 0.05; done", stop_signal=2))
    await eventually(lambda: "ready" in place.log_tail("n1"))
    assert await place.stop("n1", timeout=10) == 5
    await place.start(shell(at, "trap '' TERM; echo deaf; while :; do sleep 0.05; done"))
    await eventually(lambda: "deaf" in place.log_tail("n1"))
    begun = time.monotonic()
    assert await place.stop("n1", timeout=0.5) == -signal.SIGKILL
    assert 0.5 <= time.monotonic() - begun < 3
    assert await place.stop("n1", timeout=0.5) == -signal.SIGKILL, "a second stop only reports"
    with pytest.raises(HarnessError, match="n9 was never started"):
        await place.stop("n9", timeout=1)


@pytest.mark.parametrize("how", [(), ("elsewhere",), ("unmarked",)])
async def test_kill_reaches_what_left_the_tree(place: Processes, how: tuple[str, ...]) -> None:
    """Found by its mark where it left the home, by its home where it lost the mark."""
    at, other = await one(place), await one(place, "n2")
    mine, theirs = await daemonised(place, at, *how), await daemonised(place, other, *how)
    assert os.getsid(mine) not in (os.getsid(0), os.getpgid(place.guards[0]))
    await place.kill("n1")
    assert not alive(mine)
    assert place.exit_code("n1") == -signal.SIGKILL
    assert alive(theirs)
    assert place.state("n2") is ProcessState.RUNNING


async def test_what_a_dead_leader_left_behind_is_gone_before_it_starts_again(place: Processes) -> None:
    at = await one(place)
    left = await daemonised(place, at)
    leader = proctree.look(place._watch.run("n1").leader.pid)  # type: ignore[union-attr]
    assert leader is not None
    proctree.send(leader, signal.SIGKILL)
    await eventually(lambda: place.state("n1") is ProcessState.EXITED)
    assert alive(left)
    with pytest.raises(HarnessError, match=f"in use by process {left}"):
        await place.wipe("n1")
    await place.start(shell(at, "sleep 100"))
    assert not alive(left)
    assert place.state("n1") is ProcessState.RUNNING


async def test_a_fork_bomb_in_bloom_is_killed(place: Processes) -> None:
    """A tree that goes on forking while it is looked at: only freezing it first gets all of it."""
    at = await one(place)
    await place.start(
        shell(at, "spawn() { sleep 0.02 & }; while :; do spawn; (spawn; sleep 0.1) & wait $!; done")
    )
    await asyncio.sleep(0.3)
    await place.kill("n1")
    assert working_in(at.home) == []


async def test_no_part_of_a_killed_node_sees_another_die(place: Processes) -> None:
    """A supervisor within the node (as Patroni is) must not react to the death of what it watches."""
    at = await one(place)
    script = (
        "rm -f pipe; mkfifo pipe; sleep 1000 > pipe & for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done;"
        "(read x < pipe; echo saw it > seen) & (echo > ready; wait); wait"
    )
    for _ in range(5):
        await place.start(shell(at, script))
        await eventually(lambda: at.home.joinpath("ready").exists())
        await asyncio.sleep(0.05)
        assert not at.home.joinpath("seen").exists()
        await place.kill("n1")
        assert not at.home.joinpath("seen").exists()
        at.home.joinpath("ready").unlink()


async def test_paused_stands_still_and_resumed_goes_on(place: Processes) -> None:
    at = await one(place)
    count = "while :; do echo x >> {}; sleep 0.01; done"
    await place.start(
        shell(at, f"({count.format('a')}) & setsid sh -c '{count.format('b')}' & {count.format('c')}")
    )
    files = [at.home / name for name in "abc"]
    await eventually(lambda: all(file.exists() for file in files))
    await place.pause("n1")
    assert place.state("n1") is ProcessState.PAUSED
    before = [file.stat().st_size for file in files]
    await asyncio.sleep(0.3)
    assert [file.stat().st_size for file in files] == before
    await place.pause("n1")
    await place.resume("n1")
    assert place.state("n1") is ProcessState.RUNNING
    await eventually(
        lambda: all(file.stat().st_size > size for file, size in zip(files, before, strict=True))
    )
    await place.pause("n1")
    await place.kill("n1")
    assert place.state("n1") is ProcessState.EXITED
    with pytest.raises(HarnessError, match="cannot be paused, it is exited"):
        await place.pause("n1")


async def test_what_is_held_while_it_starts_another_is_still(place: Processes) -> None:
    """A shell that was about to run ``sleep`` stands in the kernel until that runs, and takes no signal but SIGKILL."""
    at = await one(place)
    spawn = (
        "import os, sys; os.posix_spawn('/bin/sleep', ['sleep', '0'], {}, "
        "file_actions=[(os.POSIX_SPAWN_OPEN, 0, 'fifo', os.O_RDONLY, 0)]); open('done', 'w'); import time; time.sleep(100)"
    )
    await place.start(shell(at, f'mkfifo fifo; {sys.executable} -c "{spawn}"'))

    def held() -> bool:
        here = [p for p in proctree.snapshot().values() if proctree.inside(p.pid, str(at.home))]
        return any(map(proctree.awaits_child, here))

    await eventually(held)
    await place.pause("n1")
    await place.resume("n1")
    assert not (at.home / "done").exists()
    (at.home / "fifo").write_text("")
    await eventually((at.home / "done").exists)
    await place.pause("n1")


async def test_wipe_empties_the_store_of_a_dead_node_only(place: Processes) -> None:
    at = await one(place)
    await place.start(
        shell(at, "mkdir -p store/closed; echo 1 > store/closed/x; chmod 0 store/closed; sleep 100")
    )
    await eventually(
        lambda: (
            at.store.joinpath("closed").exists() and at.store.joinpath("closed").stat().st_mode & 0o777 == 0
        )
    )
    with pytest.raises(HarnessError, match="kill it first"):
        await place.wipe("n1")
    assert any(at.store.iterdir())
    await place.kill("n1")
    await place.wipe("n1")
    assert list(at.store.iterdir()) == []
    assert at.logs.joinpath("out").exists()


async def test_a_helper_runs_to_its_end(place: Processes) -> None:
    done = await place.run(
        ["/bin/sh", "-c", "echo $WORD; pwd; echo oops >&2; sleep 1000 & exit 3"],
        env={"WORD": "hello", "PATH": "/usr/bin:/bin"},
        cwd=place.scratch,
        timeout=5,
    )
    assert (done.code, done.out, done.err) == (3, f"hello\n{place.scratch}\n", "oops\n")
    assert working_in(place.scratch) == [], "what it left in the background is killed"


async def test_a_helper_that_takes_too_long_or_is_cancelled_is_killed(place: Processes) -> None:
    async def slow(timeout: float) -> None:
        await place.run(
            ["/bin/sh", "-c", "echo still here; sleep 1000"],
            env={"PATH": "/bin"},
            cwd=place.scratch,
            timeout=timeout,
        )

    with pytest.raises(HarnessError, match=r"did not end within 0.2 s; its last words: still here"):
        await slow(0.2)
    assert working_in(place.scratch) == []
    task = asyncio.create_task(slow(100))
    await eventually(lambda: working_in(place.scratch))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: working_in(place.scratch) == [])


def program(path: Path, content: bytes, mode: int = 0o755) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


async def test_what_cannot_be_executed_is_said_plainly(place: Processes, tmp_path: Path) -> None:
    at = await one(place)
    elf = (
        b"\x7fELF\x02\x01\x01"
        + bytes(9)
        + (2).to_bytes(2, "little")
        + (243).to_bytes(2, "little")
        + bytes(100)
    )
    cases = {
        tmp_path / "missing": "no such file",
        tmp_path: "is a directory",
        program(tmp_path / "plain", b"#!/bin/sh\n", 0o644): "not executable for user",
        program(tmp_path / "foreign", elf): "it is an ELF program for riscv64",
        program(tmp_path / "empty", b""): "it is an empty file",
        program(tmp_path / "text", b"hello there"): "it begins with b'hello th'",
        program(
            tmp_path / "orphan", b"#!/no/such/shell\n"
        ): "interpreter or loader does not exist.*/no/such/shell",
    }
    for path, words in cases.items():
        with pytest.raises(BadInput, match=words) as caught:
            await place.start(spec(at, str(path)))
        assert str(path) in str(caught.value)
        with pytest.raises(BadInput, match=words):
            await place.run([str(path)], env={}, cwd=place.scratch, timeout=5)
    assert place.state("n1") is ProcessState.ABSENT
    gone = ProcessSpec(name="n1", argv=("/bin/true",), env={}, cwd=at.home / "gone", output=at.logs / "out")
    with pytest.raises(HarnessError, match=r"cwd .*/gone: No such file"):
        await place.start(gone)


FULL = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from clusters.errors import HarnessError
from clusters.model import NodeSpec
from clusters.substrates.processes import Processes

async def main():
    place = await Processes.open(name="full", workdir=Path(sys.argv[2]), slots=2)
    try:
        for i in range(100):
            await place.place([NodeSpec(name=f"n{i}")])
    except HarnessError as error:
        print(error)
    await place.close()
    print(list(Path(sys.argv[2]).iterdir()))
    try:
        for i in range(100):
            Path(sys.argv[2], str(i)).touch()
    except OSError:
        await Processes.open(name="full", workdir=Path(sys.argv[2]), slots=2)

try:
    asyncio.run(main())
except HarnessError as error:
    print(error)
"""


async def test_a_full_disk_is_named_as_such(place: Processes, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = f'mount -t tmpfs -o nr_inodes=30 none {small} && exec "$@"'
    repository = Path(__file__).parent.parent.parent
    done = await place.run(
        [
            "/usr/bin/unshare",
            "-Urm",
            "/bin/sh",
            "-c",
            mount,
            "sh",
            sys.executable,
            "-c",
            FULL,
            str(repository),
            str(small),
        ],
        env=dict(os.environ),
        cwd=place.scratch,
        timeout=30,
    )
    if "unshare" in done.err or "mount" in done.err:
        pytest.skip(f"no file system can be mounted here: {done.err}")
    placing, left, opening = done.out.splitlines()
    assert placing.startswith("cannot make the directories of n"), done
    assert placing.endswith("No space left on device; free some space or use another directory")
    assert left == "[]"
    assert opening.startswith("cannot make the directory of full-")


def groups_of(place: Processes) -> list[Path]:
    return list(Path("/sys/fs/cgroup").glob(f"**/roachproof-{place.directory.name}"))


async def test_resources_are_limited_or_refused(place: Processes) -> None:
    at = await one(place)
    limited = ProcessSpec(
        name="n1",
        argv=(*PYTHON, "while True: pass"),
        env={},
        cwd=at.home,
        output=at.logs / "out",
        resources=NodeResources(cache_mib=1, sql_memory_mib=1, cpus=0.2, memory_mib=64),
    )
    if Capability.NODE_RESOURCES not in place.capabilities:
        with pytest.raises(BadInput, match="choose a profile without them"):
            await place.start(limited)
        return
    await place.start(limited)
    pid = place._watch.run("n1").leader.pid  # type: ignore[union-attr]
    groups = groups_of(place)
    assert groups
    assert place.limits("n1") == {"cpus": 0.2, "memory_mib": 64.0}

    def used() -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before, begun = used(), time.monotonic()
    await asyncio.sleep(1.5)
    assert (used() - before) / (time.monotonic() - begun) < 0.35
    await place.kill("n1")
    greedy = ProcessSpec(
        name="n1",
        argv=(*PYTHON, "x = bytearray(256 << 20)\nprint(len(x))"),
        env={},
        cwd=at.home,
        output=at.logs / "out",
        resources=limited.resources,
    )
    await place.start(greedy)
    await eventually(lambda: place.state("n1") is ProcessState.EXITED, 20)
    assert place.exit_code("n1") == -signal.SIGKILL, place.log_tail("n1")
    with pytest.raises(HarnessError, match="n1 has no limits, it is exited"):
        place.limits("n1")
    sleeping = replace(limited, argv=(*PYTHON, "import time; time.sleep(60)"))
    for cpus, memory, shown in ((0.5, 128, {"cpus": 0.5, "memory_mib": 128.0}), (1.0, None, {"cpus": 1.0})):
        given = NodeResources(cache_mib=1, sql_memory_mib=1, cpus=cpus, memory_mib=memory)
        await place.start(replace(sleeping, resources=given))
        assert place.limits("n1") == shown, "an earlier limit must not stay"
        await place.kill("n1")
    await place.close()
    assert [group for group in groups if group.exists()] == []


@pytest.fixture
def passable() -> Iterator[Path]:
    """A directory that others may pass, which pytest's own are not."""
    made = Path(f"/var/tmp/roachproof-test-{os.getpid()}")
    made.mkdir()
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.mark.skipif(not ROOT, reason="only root must become somebody else")
@pytest.mark.parametrize("way", ["namespace", "setuid"])
async def test_root_runs_the_unprivileged_as_nobody(
    way: Literal["namespace", "setuid"], passable: Path
) -> None:
    if way == "namespace" and not spawn.namespaces_work():
        pytest.skip("user namespaces are forbidden here")
    place = await Processes.open(
        name="nobody",
        workdir=passable,
        slots=2,
        nobody=way,
    )
    try:
        at = await one(place)
        place.scratch.joinpath("key").write_text("secret")
        place.scratch.joinpath("key").chmod(0o600)
        done = await place.run(
            ["/bin/sh", "-c", "id -u; cat key; grep CapEff /proc/self/status; echo x > mine; exit 4"],
            env={"PATH": "/usr/bin:/bin"},
            cwd=place.scratch,
            timeout=5,
            unprivileged=True,
        )
        assert (done.code, done.out.split()) == (4, ["65534", "secretCapEff:", "0000000000000000"])
        script = "trap 'exit 6' TERM; id -u; cd store; echo $$ > pid; while :; do sleep 0.05; done"
        await place.start(shell(at, script, unprivileged=True))
        await eventually(lambda: at.store.joinpath("pid").exists() and at.store.joinpath("pid").read_text())
        assert int(at.store.joinpath("pid").read_text()) == place._watch.run("n1").leader.pid  # type: ignore[union-attr]
        assert place.log_tail("n1") == "65534"
        assert place.state("n1") is ProcessState.RUNNING
        await place.pause("n1")
        await place.resume("n1")
        assert await place.stop("n1", timeout=10) == 6
        await place.wipe("n1")
        await place.start(shell(at, "echo again > store/x; exec sleep 100", unprivileged=True))
        await eventually(lambda: at.store.joinpath("x").exists())
        closed = passable / "closed"
        closed.mkdir(mode=0o700)
        shutil.copy("/bin/true", closed / "true")
        if way == "namespace":
            assert (
                await place.run(
                    [str(closed / "true")], env={}, cwd=place.scratch, timeout=5, unprivileged=True
                )
            ).code == 0
        else:
            with pytest.raises(BadInput, match=rf"may not pass {closed}\..*chmod o\+x {closed}"):
                await place.run(
                    [str(closed / "true")], env={}, cwd=place.scratch, timeout=5, unprivileged=True
                )
    finally:
        await place.close()


async def test_children_inherit_no_lock_and_no_pipe(place: Processes) -> None:
    at = await one(place)
    done = await place.run(["/bin/ls", "-l", "/proc/self/fd"], env={}, cwd=at.home, timeout=5)
    assert sorted(line.split()[-3] for line in done.out.splitlines() if "->" in line) == [
        "0",
        "1",
        "2",
        "3",
    ], done.out
    assert "/proc/" in done.out.splitlines()[-1].split()[-1]


async def test_close_is_safe_at_every_stage(tmp_path: Path) -> None:
    place = await Processes.open(name="test", workdir=tmp_path / "work", slots=1)
    at = await one(place)
    await daemonised(place, at)
    closing = asyncio.create_task(place.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert not place.directory.exists(), "a cancelled close finishes first"
    assert working_in(tmp_path) == []
    await place.close()
    with pytest.raises(HarnessError, match="is closed"):
        await place.start(shell(at, "true"))
    # Cancelled at any moment of its opening, nothing stays and the only slot is free again.
    for moment in range(12):
        opening = asyncio.create_task(Processes.open(name="test", workdir=tmp_path / "work", slots=1))
        for _ in range(moment):
            await asyncio.sleep(0.004 if moment > 3 else 0)
        opening.cancel()
        with suppress(asyncio.CancelledError):
            await (await opening).close()
        assert list((tmp_path / "work").iterdir()) == []


async def test_keep_and_keep_logs(tmp_path: Path) -> None:
    for keep in (True, False):
        place = await Processes.open(
            name="test", workdir=tmp_path / "work", slots=1, keep_logs=tmp_path / "logs"
        )
        at = await one(place)
        await place.start(shell(at, "echo said; sleep 1000"))
        await eventually(lambda: place.log_tail("n1"))  # noqa: B023 - used within the turn
        await place.close(keep=keep)
        assert working_in(tmp_path) == []
        assert place.directory.exists() == keep
        assert at.logs.joinpath("out").exists() == keep
        assert tmp_path.joinpath("logs").exists() != keep
    assert tmp_path.joinpath("logs/n1/out").read_text() == "said\n"


async def test_bad_names_and_capacity(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cluster name 'a/b'"):
        await Processes.open(name="a/b", workdir=tmp_path)
    with pytest.raises(BadInput, match="capacity 3: this machine has 2 slots"):
        await Processes.open(name="ab", workdir=tmp_path, capacity=3, slots=2)
    tmp_path.joinpath("file").write_text("")
    with pytest.raises(BadInput, match=r"file: clusters cannot be kept there .*; name a directory"):
        await Processes.open(name="ab", workdir=tmp_path / "file")
