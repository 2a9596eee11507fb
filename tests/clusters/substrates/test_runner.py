"""A claim on the substrate ``runner``, whose nodes have paths of their own: none is taken for a local one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from plugin.evidence.store import EVENTS, VERDICT
from tests.clusters.substrates.runner import why_not
from tests.slow import slow

CHECKOUT = Path(__file__).parents[3]
TIMEOUT_S = 600.0
OF_THE_MACHINE = {"baseline_steady", "generator_on_schedule", "probe_on_time", "machine_free"}
"""What a machine that does other things at the same time may fail to give; all else is the substrate's."""


@slow
@pytest.mark.usefixtures("state")
def test_a_node_is_killed_and_nothing_is_lost(tmp_path: Path) -> None:
    """Survivability on the control: whole machinery, from provisioning to the verdict."""
    if reason := why_not():
        pytest.skip(reason)
    run = tmp_path / "run"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-c", str(CHECKOUT / "pyproject.toml")),
            *("-p", "no:cacheprovider", "-p", "tests.clusters.substrates.runner"),
            *("--engine", "postgres", "--substrate", "runner", "--run-dir", str(run)),
            "tests/claims/test_survivability.py::test_a_killed_node",
        ],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode in (0, 6), done.stdout + done.stderr
    (trial,) = run.glob("claims/survivability/*")
    verdict = json.loads((trial / VERDICT).read_text())
    assert verdict["context"]["substrate"] == "runner"
    unmet = {condition["name"] for condition in verdict["conditions"] if not condition["met"]}
    assert unmet <= OF_THE_MACHINE, done.stdout
    outcomes = {result["check"]["metric"]: result["outcome"] for result in verdict["results"]}
    assert "refuted" not in outcomes.values(), done.stdout
    assert {outcomes[metric] for metric in ("lost", "duplicated", "altered", "unreadable", "rows_missing")} == {"pass"}
    assert (verdict["outcome"] == "pass") == (not unmet)
    events = [json.loads(line) for line in (trial / EVENTS).read_text().splitlines()]
    compared = [event["sources"] for event in events if event["event"] == "clocks"]
    assert [set(sources) for sources in compared] == [{"n1", "n2", "n3"}] * 2, "at the begin and at the end"
    assert all(0 < found["uncertainty_s"] < 60 for sources in compared for found in sources.values())
    commands = json.loads((trial / "trial.json").read_text())["fingerprint"]["commands"]
    assert {argv[-1] for argv in commands.values()} == {"/srv/patroni.yml"}, "the same path, in each node another file"
