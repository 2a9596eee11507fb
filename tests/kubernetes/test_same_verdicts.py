"""Processes and pods come to the same verdicts: no check that one substrate passes is refuted on the other.

Sabotages need no comparison: each names what must refute its claim, on whichever substrate it runs.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fixtures.workloads.relay import ROOT
from plugin.reports.result_files import RESULT_FILE
from plugin.status import Status
from tests.kubernetes.at_hand import AT_HAND
from tests.slow import slow

CONTROL = ("--engine", "postgres")
TWO_VERSIONS = (*CONTROL, "--postgres-version", "16.2", "--postgres-version", "16.14")
CLAIMS: Mapping[str, Sequence[str]] = {
    "survivability*": CONTROL,
    "tenancy": CONTROL,
    "tenancy-drop": CONTROL,
    "hot-swap": TWO_VERSIONS,
}
"""By claim how the control is asked for it."""

Outcomes = Mapping[tuple[str, str, str | None], str]
"""What became of each judged check, by its test, metric and comparison."""


def outcomes(result: Mapping[str, Any]) -> Outcomes:
    """Those of a run, from its ``result.json``."""
    return {
        (row["test"], check["metric"], check["comparison"]): check["outcome"]
        for row in result["claims"]
        for check in row["checks"]
    }


def contradictions(here: Outcomes, there: Outcomes) -> list[str]:
    """The checks of which one passed and the other is refuted; inconclusive contradicts nothing."""
    return [
        f"{' '.join(filter(None, name))}: {here[name]} here, {there[name]} there"
        for name in here
        if {here[name], there.get(name)} == {"pass", "refuted"}
    ]


def test_a_check_that_passes_here_and_is_refuted_there_is_a_contradiction() -> None:
    here: Outcomes = {("a", "lost", "=="): "pass", ("a", "gap_s", "<="): "pass", ("a", "p99", "<="): "refuted"}
    there: Outcomes = {
        ("a", "lost", "=="): "refuted",
        ("a", "gap_s", "<="): "inconclusive",
        ("a", "p99", "<="): "refuted",
    }
    assert contradictions(here, there) == ["a lost ==: pass here, refuted there"]
    assert contradictions(there, here) == ["a lost ==: refuted here, pass there"]


def run(claim: str, substrate: str, home: Path) -> Outcomes:
    """A run of a claim to its verdict, which it must come to; what is refuted is one, too."""
    (home / substrate).mkdir()
    directory = home / substrate / "run"
    own = ["-c", "pyproject.toml", "-o", "testpaths=tests/claims", "--run-dir", str(directory)]
    asked = [*CLAIMS[claim], "--substrate", substrate, "--claim", claim, "--suite", "gate", "--seed", "17"]
    line = [sys.executable, "-m", "pytest", *own, *asked]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode in (Status.PASSED, Status.REFUTED, Status.INCONCLUSIVE), said
    return outcomes(json.loads((directory / RESULT_FILE).read_text()))


@slow
@AT_HAND
@pytest.mark.parametrize("claim", CLAIMS)
def test_processes_and_pods_do_not_contradict_each_other(claim: str, tmp_path: Path) -> None:
    here, there = run(claim, "processes", tmp_path), run(claim, "kubernetes", tmp_path)
    both = [name for name in here if "inconclusive" not in (here[name], there.get(name, "inconclusive"))]
    print(f"{claim}: {len(both)} of {len(here)} checks decided on both, {len(there)} judged in pods")
    assert both
    assert not contradictions(here, there)
