"""Processes and pods come to the same verdicts: no check that one substrate passes is refuted on the other.

Sabotages need no comparison: each names what must refute its claim, on whichever substrate it runs.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from clusters.cache import cache_dir
from clusters.engines.cockroach.cache import versions
from fixtures.workloads.relay import ROOT
from plugin.reports.result_files import RESULT_FILE
from plugin.status import Status
from tests.kubernetes.at_hand import AT_HAND
from tests.kubernetes.lab import __main__ as lab
from tests.kubernetes.lab import control
from tests.slow import slow

CONTROL = ("--engine", "postgres")
TWO_VERSIONS = (*CONTROL, "--two-versions")
"""As the lab has it: they are chosen when the test runs."""
SUBJECT = ("--engine", "cockroach")
CLAIMS: Sequence[tuple[str, str, Sequence[str]]] = (
    ("gate", "survivability*", CONTROL),
    ("gate", "tenancy", CONTROL),
    ("gate", "tenancy-drop", CONTROL),
    ("gate", "hot-swap", TWO_VERSIONS),
    ("nightly", "scale-up", CONTROL),
    ("nightly", "survivability-pause", CONTROL),
    ("nightly", "survivability-drain", CONTROL),
    ("gate", "survivability", SUBJECT),
    ("gate", "rebalance", SUBJECT),
    ("nightly", "rebalance-scale-in", SUBJECT),
)
"""Suite, claim, and how its engine is asked for. Those that add nodes need more machines than three."""

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


def newest() -> str:
    """The newest build of CockroachDB in the cache: the lab has an image of each. Skips where there is none."""
    if not (builds := versions(cache_dir(os.environ))):
        pytest.skip("no build of CockroachDB is in the cache, and so the lab has no image of one")
    return str(builds[-1])


def two_versions() -> Sequence[str]:
    """How two versions of the control are asked for between which a node can change. Skips where there are none."""
    if not (asked := lab.two_versions(cache_dir(os.environ), CONTROL)):
        pytest.skip(
            "no two versions of the control are here that are of one major version: the wheel with 16.2 is for Python "
            "3.11 and 3.12 on x86-64 alone, and was not put into the cache by hand either"
        )
    return asked


def test_its_versions_are_those_that_are_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two were named, of which one is in a wheel that not every machine has."""
    monkeypatch.setattr(control, "installed", lambda: dict.fromkeys(["16.9", "17.1", "17.4"], tmp_path))
    assert two_versions() == [*CONTROL, "--postgres-version", "17.1", "--postgres-version", "17.4"]
    monkeypatch.setattr(control, "installed", lambda: dict.fromkeys(["16.14", "17.4"], tmp_path))
    with pytest.raises(pytest.skip.Exception, match="no two versions of the control are here"):
        two_versions()
    assert not [word for _, _, engine in CLAIMS for word in engine if word[:1].isdecimal()]


def run(suite: str, claim: str, engine: Sequence[str], substrate: str, home: Path) -> Outcomes:
    """A run of a claim to its verdict, which it must come to; what is refuted is one, too."""
    (home / substrate).mkdir()
    directory = home / substrate / "run"
    own = ["-c", "pyproject.toml", "-o", "testpaths=tests/claims", "--run-dir", str(directory)]
    asked = [*engine, "--substrate", substrate, "--claim", claim, "--suite", suite, "--seed", "17"]
    line = [sys.executable, "-m", "pytest", *own, *asked]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode in (Status.PASSED, Status.REFUTED, Status.INCONCLUSIVE), said
    return outcomes(json.loads((directory / RESULT_FILE).read_text()))


@slow
@AT_HAND
@pytest.mark.parametrize(
    ("suite", "claim", "engine"), CLAIMS, ids=[f"{engine[1]}-{claim}" for _, claim, engine in CLAIMS]
)
def test_processes_and_pods_do_not_contradict_each_other(
    suite: str, claim: str, engine: Sequence[str], tmp_path: Path
) -> None:
    if engine == TWO_VERSIONS:
        engine = two_versions()
    if engine == SUBJECT:
        engine = (*SUBJECT, "--cockroach-version", newest())
    here, there = (run(suite, claim, engine, substrate, tmp_path) for substrate in ("processes", "kubernetes"))
    both = [name for name in here if "inconclusive" not in (here[name], there.get(name, "inconclusive"))]
    print(f"{claim}: {len(both)} of {len(here)} checks decided on both, {len(there)} judged in pods")
    assert both
    assert here.keys() == there.keys(), "a check is judged on both, or on none"
    assert not contradictions(here, there)
