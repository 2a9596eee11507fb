"""The substrate ``processes``: what it does beyond the contract of all substrates (``tests.clusters.substrates``)."""

import asyncio
import os
import signal
import socket
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from clusters.errors import BadInput, CommandTimedOut, HarnessError
from clusters.model import NodeSpec, ProcessState
from clusters.substrates.processes import Processes
from tests.clusters.substrates.processes.process_nodes import (
    PATIENCE_S,
    at_hand,
    daemonised,
    eventually,
    one,
    shell,
    working_in,
)

pytestmark = pytest.mark.usefixtures("state")


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


async def test_a_command_that_is_cancelled_is_killed(place: Processes) -> None:
    async def slow(timeout: float) -> None:
        await place.run(
            ["/bin/sh", "-c", "echo still here; sleep 1000"],
            env={"PATH": "/bin"},
            cwd=place.scratch,
            timeout=timeout,
        )

    for seconds in (0.2, 2.0, 20.0, PATIENCE_S):  # the last word has to be said by then
        with pytest.raises(CommandTimedOut, match=rf"did not end within {seconds:g} s; its last words: ") as late:
            await slow(seconds)
        if "still here" in str(late.value):
            break
    assert str(late.value).endswith("its last words: still here")
    task = asyncio.create_task(slow(100))
    await eventually(lambda: working_in(place.scratch))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: working_in(place.scratch) == [])


async def test_a_node_whose_program_is_refused_is_what_it_was_before(place: Processes) -> None:
    """So the former program can be started again: it is how an update fails."""
    at = await one(place)
    (at.home / "broken").write_text("this is no program\n")
    (at.home / "broken").chmod(0o755)
    broken = replace(shell(at, "true"), argv=(str(at.home / "broken"),))

    async def refused() -> None:
        with pytest.raises(BadInput, match="it is no program"):
            await place.start(broken)

    await refused()
    assert place.state("n1") is ProcessState.ABSENT
    with pytest.raises(HarnessError, match="never started"):
        await place.kill("n1")
    await place.start(shell(at, "sleep 1000"))
    assert await place.stop("n1", timeout=60) == -signal.SIGTERM
    await refused()
    assert place.state("n1") is ProcessState.EXITED
    assert place.exit_code("n1") == -signal.SIGTERM
    await place.kill("n1")
    await place.start(shell(at, "sleep 1000"))
    assert place.state("n1") is ProcessState.RUNNING


async def test_children_inherit_no_lock_and_no_pipe(place: Processes) -> None:
    at = await one(place)
    done = await place.run(["/bin/ls", "-l", "/proc/self/fd"], env={}, cwd=at.home, timeout=PATIENCE_S)
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
        place = await Processes.open(name="test", workdir=tmp_path / "work", slots=1, keep_logs=tmp_path / "logs")
        at = await one(place)
        await place.start(shell(at, "echo said; sleep 1000"))
        await eventually(lambda: place.log_tail("n1"))  # noqa: B023 - used within the turn
        await place.close(keep=keep)
        assert working_in(tmp_path) == []
        assert place.directory.exists() == keep
        assert at.logs.joinpath("out").exists() == keep
        assert tmp_path.joinpath("logs").exists() != keep
    assert tmp_path.joinpath("logs/n1/out").read_text() == "said\n"


@pytest.mark.parametrize("killed", ["as told", "supervisor", "guard"])
async def test_what_is_left_running_goes_on_until_it_is_ended(tmp_path: Path, killed: str) -> None:
    work, logs = tmp_path / "work", tmp_path / "logs"
    place = await Processes.open(name="test", workdir=work, slots=1, keep=True, keep_logs=logs)
    at = await one(place)
    await place.start(shell(at, "echo said; sleep 1000"))
    guard, supervisor = place.guards
    ending = await place.leave()
    assert ending == f"kill {supervisor}"
    await place.close(keep=True)
    await asyncio.sleep(0.3)
    assert working_in(at.home)
    waited: list[str] = []
    waiting = asyncio.create_task(Processes.open(name="next", workdir=work, slots=1, say=waited.append))
    await eventually(lambda: waited)
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert f"{place.directory.name}, which --keep running left (pid {supervisor})" in waited[0]
    if killed == "as told":
        subprocess.run(ending, shell=True, check=True)  # noqa: ASYNC221 - it takes no time
    else:
        os.kill({"supervisor": supervisor, "guard": guard}[killed], signal.SIGKILL)
    await eventually(lambda: not place.directory.exists())
    assert working_in(tmp_path) == []
    assert not logs.exists(), "evidence that is sealed is not added to"
    following = await asyncio.wait_for(Processes.open(name="next", workdir=work, slots=1), PATIENCE_S)
    await following.close()


async def test_bad_names_and_capacity(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cluster name 'a/b'"):
        await Processes.open(name="a/b", workdir=tmp_path)
    with pytest.raises(BadInput, match="capacity 3: this machine has 2 slots"):
        await Processes.open(name="ab", workdir=tmp_path, capacity=3, slots=2)
    tmp_path.joinpath("file").write_text("")
    with pytest.raises(BadInput, match=r"file: clusters cannot be kept there .*; name a directory"):
        await Processes.open(name="ab", workdir=tmp_path / "file")
