"""Runs that are killed or interrupted at every stage: nothing is left but evidence, and that says it ended early."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.clusters.real_cockroach import cockroach
from tests.plugin.killed_runs import short_claim, started

GATE = ["tests/claims/test_survivability.py", "-k", "test_a_killed_node"]


def options_of(engine: str) -> list[str]:
    """The engine's options; skips, saying what is missing, where there is no CockroachDB."""
    if engine == "postgres":
        return ["--engine", "postgres"]
    return ["--cockroach", str(cockroach().binary.path)]


def assert_ended_early(judged: tuple[int, str]) -> None:
    status, text = judged
    assert status == 6, text
    assert "INCONCLUSIVE" in text
    assert "ended early" in " ".join(text.split())


@pytest.mark.parametrize(
    ("engine", "stage", "after"),
    [
        ("cockroach", "provision.begin", 1.0),
        ("cockroach", "fault.bit", 1.0),
        ("postgres", "provision.begin", 4.0),
        ("postgres", "fault.bit", 1.0),
    ],
)
def test_the_gate_is_killed(tmp_path: Path, engine: str, stage: str, after: float) -> None:
    with started(tmp_path, *GATE, *options_of(engine)) as run:
        run.reach(stage, after=after)
        assert any(str(run.directory) in left for left in run.left()), "it can be seen that it lives"
        run.send(signal.SIGKILL)
        assert run.ends() == -signal.SIGKILL
        run.assert_gone()
        assert_ended_early(run.judged())


def test_the_gate_is_interrupted(tmp_path: Path) -> None:
    """Ctrl-C while the writers write: pytest's own status, and all is undone before it ends."""
    with started(tmp_path, *GATE, *options_of("cockroach")) as run:
        run.reach("baseline.begin", after=1.0)
        run.send(signal.SIGINT)
        assert run.ends() == 2, run.output
        assert not run.left()
        status, text = run.judged()
        assert status == 6, text
        run.assert_gone()


@pytest.mark.parametrize("stage", ["waiting", "stage.baseline", "fault.bit"])
def test_a_run_is_interrupted(tmp_path: Path, stage: str) -> None:
    with started(tmp_path, *short_claim(tmp_path, pause=60), name="first") as first:
        if stage != "waiting":
            first.reach(stage)
            first.send(signal.SIGINT)
            assert first.ends() == 2, first.output
            assert not first.left()
            assert "fault.bit" not in first.events() or "fault.undone" in first.events()
            assert first.judged()[0] == 6
            return
        first.reach("provision.begin")
        with started(tmp_path, *short_claim(tmp_path, pause=60), name="second") as second:
            second.wait(lambda: "held by" in second.output, "being told who holds the machine")
            assert f"held by short (pid {first.process.pid})" in second.output
            second.send(signal.SIGINT)
            assert second.ends() == 2, second.output
            assert first.process.poll() is None
            assert "provision.begin" not in second.events()
        first.send(signal.SIGKILL)
        first.ends()
        first.assert_gone()


def test_a_run_is_killed_before_its_verdict(tmp_path: Path) -> None:
    with started(tmp_path, *short_claim(tmp_path, pause=1)) as run:
        run.reach("stage.audited")
        run.send(signal.SIGKILL)
        run.ends()
        run.assert_gone()
        assert_ended_early(run.judged())


def test_the_controller_is_killed(tmp_path: Path) -> None:
    with started(tmp_path, *short_claim(tmp_path, pause=60, numbers=[1, 2]), "-n", "2") as run:
        run.reach("stage.baseline")
        workers = run.workers()
        assert len(workers) == 2
        run.send(signal.SIGKILL)
        run.ends()
        run.assert_gone()
        assert not any(worker.is_running() for worker in workers)


def test_a_worker_is_killed(tmp_path: Path) -> None:
    """Its cluster goes with it, the other worker's test is not disturbed, and the harness has failed."""
    with started(tmp_path, *short_claim(tmp_path, pause=2, numbers=[1, 2]), "-n", "2") as run:
        run.reach("stage.baseline")
        (holder,) = _holders(run.state, [worker.pid for worker in run.workers()])
        os.kill(holder, signal.SIGKILL)
        assert run.ends() == 7, run.output
        assert run.events().count("stage.audited") == 1, run.output
        run.assert_gone()


def test_two_runs_at_once(tmp_path: Path) -> None:
    """The second waits for room, says who has it, and both end well."""
    with (
        started(tmp_path, *short_claim(tmp_path, pause=1), name="first") as first,
        started(tmp_path, *short_claim(tmp_path, pause=1), name="second") as second,
    ):
        statuses = [first.ends(), second.ends()]
        texts = [first.output, second.output]
        assert statuses == [0, 0], "\n".join(texts)
        pids = [first.process.pid, second.process.pid]
        assert any(
            f"held by short (pid {pid})" in text for pid, text in zip(pids, reversed(texts), strict=True)
        )
        first.assert_gone()


def _holders(state: Path, pids: Sequence[int]) -> set[int]:
    """Which of these processes hold the machine's slots."""
    texts = [slot.read_text() for slot in (state / "slots").glob("slot-*")]
    return {pid for pid in pids if any(f'"pid": {pid},' in text for text in texts)}
