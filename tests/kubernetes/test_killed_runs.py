"""Runs whose harness is killed, at moments that a seed draws from what a run does: nothing that they made stays."""

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.substrates.kubernetes.manifests import MANAGED, OWNER, RENEWED
from tests.kubernetes.at_hand import AT_HAND, apply, eventually, kubectl, namespaces, opened
from tests.slow import slow

pytestmark = AT_HAND
ROOT = Path(__file__).resolve().parents[2]
SEED = int(os.environ.get("ROACHPROOF_MOMENTS", "17"))
"""Which moments are drawn; any other number draws others."""
OBJECTS = range(1, 10)
"""As many objects are there: while the cluster is made."""
EVENTS = (
    "provisioned", "replicated", "ledger.created", "baseline.begin", "baseline.end", "fault.begin", "fault.bit",
    "fault.undo", "fault.undone", "recovered", "writing.end", "audit.begin", "audit.end",
)  # fmt: skip
"""Of a run of ``survivability``, in their order."""
MOMENTS = random.Random(SEED).sample([*(f"{number} objects" for number in OBJECTS), *EVENTS], 10)
KINDS = "statefulsets,pods,pvc,configmaps,services,pdb"


def ours() -> list[str]:
    """All that carries the label of any run."""
    return kubectl("get", KINDS, "-A", "-l", f"{MANAGED}={OWNER}", "-o", "name", "--ignore-not-found").split()


def happened(run_dir: Path) -> Iterator[str]:
    """The events that the run has written so far."""
    for file in run_dir.glob("claims/*/*/events.jsonl"):
        *whole, _ = file.read_text().split("\n")  # the last line may be half written
        yield from (json.loads(line)["event"] for line in whole)


def has_come(moment: str, run_dir: Path) -> bool:
    number, _, objects = moment.partition(" ")
    return len(ours()) >= int(number) if objects else moment in happened(run_dir)


def killed_at(moment: str, tmp_path: Path) -> None:
    """A run, and SIGKILL of its harness once the moment has come."""
    run_dir = tmp_path / "run"
    asked = ["--engine", "postgres", "--substrate", "kubernetes", "--claim", "survivability", "--run-dir", str(run_dir)]
    line = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-o", "testpaths=tests/claims", *asked]
    with (tmp_path / "said").open("w") as said:
        run = subprocess.Popen(line, cwd=ROOT, stdout=said, stderr=said, start_new_session=True)
    try:
        while not has_come(moment, run_dir):
            assert run.poll() is None, f"it ended before {moment}: {(tmp_path / 'said').read_text()}"
            time.sleep(0.02)
        assert namespaces(), "there is something to be left"
    finally:
        run.kill()
        run.wait()


@slow
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_run_that_is_killed_leaves_nothing(moment: str, tmp_path: Path) -> None:
    await asyncio.to_thread(killed_at, moment, tmp_path)
    await eventually("all that it made to go", lambda: not ours() and not namespaces())


async def test_what_an_owner_left_that_said_nothing_for_long_is_cleared_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As when the machine of the harness is lost, and the process beside it, too: its lease runs out."""

    def left(name: str, said_s: float) -> dict[str, object]:
        renewed = {RENEWED: f"{time.time() - said_s:.0f}"}
        metadata = {"name": name, "labels": {MANAGED: OWNER}, "annotations": renewed}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}

    apply(tmp_path / "left.json", left("lost", 200.0), left("slow", 100.0))
    try:
        substrate = await opened(tmp_path)
        await substrate.close()
        assert "left by a lost run: namespace lost: deleted" in capsys.readouterr().out
        await eventually("it to go", lambda: "namespace/lost" not in namespaces())
        assert "namespace/slow" in namespaces()
    finally:
        kubectl("delete", "namespace", "slow", "--wait=false")
