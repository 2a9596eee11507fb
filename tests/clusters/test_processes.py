"""The substrate ``processes``, on real processes."""

import asyncio
import os
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path

import pytest

from clusters.errors import BadInput, CommandTimedOut, HarnessError
from clusters.model import (
    Capability,
    NodeSpec,
    ProcessState,
)
from clusters.substrates import Substrate
from clusters.substrates.processes import Processes
from tests.clusters.process_nodes import at_hand, daemonised, eventually, one, shell, working_in

pytestmark = pytest.mark.usefixtures("state")


async def test_it_is_a_substrate(place: Processes) -> None:
    substrate: Substrate = place
    assert {Capability.KILL, Capability.PAUSE, Capability.ADD_NODE} <= substrate.capabilities
    assert not {Capability.CUT_LINKS, Capability.STALL_DISK} & substrate.capabilities
    assert substrate.scratch.stat().st_mode & 0o777 == 0o700


async def test_each_node_has_an_address_and_directories_of_its_own(place: Processes) -> None:
    first = await place.place([NodeSpec(name="n1"), NodeSpec(name="n2")])
    added = await one(place, "n3")
    sockets = []
    for placement in (*map(at_hand, first), added):
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

    with pytest.raises(CommandTimedOut, match=r"did not end within 0.2 s; its last words: still here"):
        await slow(0.2)
    assert working_in(place.scratch) == []
    task = asyncio.create_task(slow(100))
    await eventually(lambda: working_in(place.scratch))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: working_in(place.scratch) == [])


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
