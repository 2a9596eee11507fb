"""Runs that are killed or interrupted at every stage: nothing is left but evidence, and that says it ended early."""

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.clusters.substrates.processes.process_nodes import PATIENCE_S
from tests.plugin.killed_runs import (
    STAGES,
    Doomed,
    assert_ended_early,
    one_at_each_stage,
    options_of,
    short_claim,
    started,
)
from tests.slow import slow

GATE = ["tests/claims/test_survivability.py", "-k", "test_a_killed_node"]


def test_killed_at_each_stage(tmp_path: Path) -> None:
    with one_at_each_stage(tmp_path, Doomed.kill) as runs:
        for run in runs.values():
            assert run.ends() == -signal.SIGKILL
            run.assert_gone()
    assert_ended_early(tmp_path, trials=len(STAGES))


def test_interrupted_at_each_stage(tmp_path: Path) -> None:
    """Ctrl-C: pytest's own status, and all is undone before it ends."""
    with one_at_each_stage(tmp_path, Doomed.interrupt) as runs:
        for stage, run in runs.items():
            assert run.ends() == 2, run.output
            assert not run.left(), stage
            events = run.events()
            assert events.count("fault.bit") == events.count("fault.undone"), stage
            assert ("fault.bit" in events) == (stage in ("fault", "audit")), stage
    assert_ended_early(tmp_path, trials=len(STAGES))


def test_a_cluster_that_is_left_running_is_connected_to_and_ended_as_it_was_printed(tmp_path: Path) -> None:
    with started(tmp_path, *short_claim(tmp_path, nodes=3), "--keep=running") as run:
        assert run.ends() == 0, run.output
    (place,) = run.directory.glob("clusters/*")
    said = dict(re.findall(r"^(left running|connect|end, and delete its files): (.+)$", run.output, re.MULTILINE))
    assert said["left running"] == str(place)
    asked = f"{said['connect']} --tuples-only --no-align -c 'SELECT count(*) FROM pg_stat_replication'"
    answer = subprocess.run(["/bin/sh", "-c", asked], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert answer.stdout == "2\n", answer.stderr
    assert "password" not in run.output
    subprocess.run(["/bin/sh", "-c", said["end, and delete its files"]], timeout=PATIENCE_S, check=True)
    with suppress(psutil.NoSuchProcess):  # its end is that of all it started
        psutil.Process(int(said["end, and delete its files"].split()[-1])).wait(PATIENCE_S)
    run.assert_gone()


def test_stores_that_are_kept_are_named_and_nothing_runs(tmp_path: Path) -> None:
    with started(tmp_path, *short_claim(tmp_path), "--keep") as run:
        assert run.ends() == 0, run.output
    (place,) = run.directory.glob("clusters/*")
    assert f"kept: stores and logs: {place}" in run.output.splitlines()
    assert run.left() == [f"directory {place}"]
    assert {entry.name for entry in place.glob("nodes/*/*")} == {"store", "logs"}


def test_interrupted_again_while_it_clears_away(tmp_path: Path) -> None:
    with started(tmp_path, *short_claim(tmp_path, rest="fault")) as run:
        run.reach("stage.fault")
        run.interrupt()
        run.reach("fault.undo")
        run.interrupt()
        # Where the second one interrupts a task in the middle of a step, the task raises it once more while pytest
        # finishes.
        assert run.ends() in (2, -signal.SIGINT), run.output
        run.assert_gone()
    assert_ended_early(tmp_path)


@pytest.mark.parametrize("engine", ["cockroach", "postgres"])
def test_three_nodes_are_left_by_a_killed_run(tmp_path: Path, engine: str) -> None:
    """One of them dead, as the fault was never undone."""
    with started(tmp_path, *short_claim(tmp_path, rest="fault", engine=engine, nodes=3)) as run:
        run.reach("stage.fault")
        run.kill()
        assert run.ends() == -signal.SIGKILL
        run.assert_gone()
    assert_ended_early(tmp_path)


def test_the_gate_is_interrupted(tmp_path: Path) -> None:
    """By a signal to pytest alone, as a CI server sends it, while the writers write."""
    with started(tmp_path, *GATE, *options_of("cockroach")) as run:
        run.reach("baseline.begin", after=1.0)
        run.process.send_signal(signal.SIGINT)
        assert run.ends() == 2, run.output
        assert not run.left()
    assert_ended_early(tmp_path)


def test_the_controller_is_killed_or_interrupted(tmp_path: Path) -> None:
    """With two workers: one is in its test's baseline, the other waits for room on the machine."""
    places = killed, interrupted = tmp_path / "killed", tmp_path / "interrupted"
    options = [[*short_claim(place, rest="baseline", numbers=[1, 2]), "-n", "2"] for place in places]
    with started(killed, *options[0]) as first, started(interrupted, *options[1]) as second:
        for run, end in ((first, Doomed.kill), (second, Doomed.interrupt)):
            run.reach("stage.baseline")
            workers = run.workers()
            assert len(workers) == 2
            end(run)
            assert run.ends() == (-signal.SIGKILL if run is first else 2), run.output
            run.assert_gone()
            assert not any(map(_lives, workers))
    assert_ended_early(tmp_path, trials=4)


def test_a_worker_is_killed(tmp_path: Path) -> None:
    """Its cluster goes with it, the other worker's test is not disturbed, and the harness has failed."""
    with started(tmp_path, *short_claim(tmp_path, numbers=[1, 2]), "-n", "2") as run:
        run.reach("stage.baseline")
        (holder,) = _holders(run.state, [worker.pid for worker in run.workers()])
        os.kill(holder, signal.SIGKILL)
        assert run.ends() == 7, run.output
        assert run.events().count("audit.end") == 1, run.output
        run.assert_gone()


def test_what_a_killed_run_and_its_guards_left_is_cleared_away_by_the_next(tmp_path: Path) -> None:
    with started(tmp_path, *short_claim(tmp_path, rest="baseline"), name="first") as first:
        first.reach("stage.baseline")
        guards = first.guards()
        assert len(guards) == 2
        first.kill()
        for guard in guards:
            guard.kill()
        first.ends()
        (directory,) = first.directory.glob("clusters/*")
        assert any(left.startswith("process ") for left in first.left()), "nobody ended the server"
        with started(tmp_path, *short_claim(tmp_path), name="later") as later:
            later.reach("provision.begin")
            said = (later.directory / "progress" / "main.jsonl").read_text()
            assert f"left by a killed run: {directory}: cleared away" in said
            assert not directory.exists()
            later.kill()
            later.ends()
            later.assert_gone()
            first.assert_gone()


@slow
def test_three_runs_at_once(tmp_path: Path) -> None:
    """One runs, the others wait for room and say who has it; one of those is interrupted."""
    with started(tmp_path, *short_claim(tmp_path), name="first") as first:
        first.reach("provision.begin")
        with (
            started(tmp_path, *short_claim(tmp_path), name="second") as second,
            started(tmp_path, *short_claim(tmp_path), name="third") as third,
        ):
            for run in (second, third):
                run.wait(partial(_knows, run, first.process.pid), "being told who holds the machine")
            os.killpg(third.process.pid, signal.SIGINT)
            assert third.ends() == 2, third.output
            assert "provision.begin" not in third.events()
            assert first.ends() == 0, first.output
            assert second.ends() == 0, second.output
            for run in (first, second, third):
                run.assert_gone()


def _lives(process: psutil.Process) -> bool:
    """A dead child of somebody who has not looked yet is no process any more."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _knows(run: Doomed, holder: int) -> bool:
    return re.search(rf"held by .*short \(pid {holder}\)", run.output) is not None


def _holders(state: Path, pids: Sequence[int]) -> set[int]:
    """Which of these processes hold the machine's slots."""
    texts = [slot.read_text() for slot in (state / "slots").glob("slot-*")]
    return {pid for pid in pids if any(f'"pid": {pid},' in text for text in texts)}
