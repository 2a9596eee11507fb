"""The substrate ``processes``: killing and pausing reach all of a node, and nothing else."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from clusters.errors import HarnessError
from clusters.model import (
    ProcessState,
)
from clusters.substrates.processes import Processes, proctree
from tests.clusters.substrates.processes.process_nodes import (
    PATIENCE_S,
    PYTHON,
    alive,
    daemonised,
    eventually,
    leader,
    one,
    shell,
    working_in,
)


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


def test_what_is_not_found_any_more_is_left_until_it_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it dies it has neither mark nor working directory, and may still hold its files and sockets."""
    with subprocess.Popen([*PYTHON, "import time; time.sleep(1000)"]) as process:
        seen = proctree.read(process.pid)
        assert seen is not None
        found = [[seen], [seen], [seen]]  # two rounds of freezing, one of ending
        with monkeypatch.context() as patch:
            patch.setattr(proctree, "send", lambda _, signum: signum)
            patch.setattr(proctree, "unstopped", lambda _: [])
            ending = proctree.end(lambda: found.pop(0) if found else [], seconds=PATIENCE_S)
            for _ in range(6):
                next(ending)
            assert found == []
        process.kill()
        process.wait()
        with pytest.raises(StopIteration) as stop:
            next(ending)
        assert stop.value.value == []


async def test_what_a_dead_leader_left_behind_is_gone_before_it_starts_again(place: Processes) -> None:
    at = await one(place)
    left = await daemonised(place, at)
    os.kill(leader(place, "n1"), signal.SIGKILL)
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
    await place.start(shell(at, "spawn() { sleep 0.02 & }; while :; do spawn; (spawn; sleep 0.1) & wait $!; done"))
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


async def test_what_is_held_while_it_starts_another_is_still(place: Processes) -> None:
    """A shell that was about to run ``sleep`` stands in the kernel until that runs, and takes no signal but SIGKILL."""
    at = await one(place)
    spawn = (
        "import os, sys; os.posix_spawn('/bin/sleep', ['sleep', '0'], {}, "
        "file_actions=[(os.POSIX_SPAWN_OPEN, 0, 'fifo', os.O_RDONLY, 0)]); open('done', 'w'); "
        "import time; time.sleep(100)"
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
