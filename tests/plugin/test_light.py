"""What a session imports, counted: seconds on a busy machine say nothing, and each module costs some of them.

A run of tests that are none of ours has 0.05 s for all that the plugin does, collecting a gate 0.2 s.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugin.conftest import CHECKOUT

OURS = ("plugin", "clusters", "fixtures")
IDLE = {
    "clusters", "clusters.errors", "clusters.known", "clusters.registry",
    "fixtures", "fixtures.micro_registered", "fixtures.registered", "fixtures.workloads", "fixtures.workloads.known",
    "fixtures.workloads.ledger", "fixtures.workloads.ledger.registered",
    "fixtures.workloads.tenants", "fixtures.workloads.tenants.registered",
    "fixtures.workloads.tpcc", "fixtures.workloads.tpcc.registered",
    "plugin", "plugin.begin", "plugin.micro", "plugin.option_names", "plugin.options", "plugin.ours", "plugin.suites",
}  # fmt: skip
"""What a session without a claim needs: names of options, markers and fixtures. Think twice before adding to it."""
MOST_TO_COLLECT = 140
"""Modules of ours until a gate is collected, its claims' tests not counted; they were 132 on 2026-11-27."""
TO_COLLECT = {"msgspec"}
"""Packages of others that collecting needs: what is declared is read with it."""
SPY = """
import json, sys

def pytest_collection_finish(session):
    with open({place!r}, "w") as file:
        json.dump([*sys.modules], file)
"""


def imported(home: Path, *words: str) -> set[str]:
    """What is imported once pytest has collected; in a process of its own, that nothing has imported before."""
    place = home / "modules.json"
    (home / "spy.py").write_text(SPY.format(place=str(place)))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COCKROACH_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "spy", "-p", "no:cacheprovider", "-q", "--collect-only", *words],
        cwd=CHECKOUT, env={**environment, "PYTHONPATH": str(home)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return set(json.loads(place.read_text()))


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A directory with a test that is none of ours."""
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "test_plain.py").write_text("def test_answer():\n    pass\n")
    return tmp_path / "plain"


@pytest.fixture
def bare(tmp_path: Path, plain: Path) -> set[str]:
    """What pytest itself imports, with the plugins of others that are installed here."""
    return imported(tmp_path, "-c", os.devnull, "--rootdir", str(plain), str(plain))


def of_others(modules: set[str]) -> set[str]:
    """Packages that are neither ours nor Python's own."""
    return {module.partition(".")[0] for module in modules} - {*sys.stdlib_module_names, *OURS, "tests", "spy"}


def test_a_session_without_a_claim_imports_a_handful_of_small_modules(
    tmp_path: Path, plain: Path, bare: set[str]
) -> None:
    own = ("-c", "pyproject.toml", "--rootdir", str(plain), "--confcutdir", str(plain), str(plain))
    added = imported(tmp_path, *own) - bare
    assert {module for module in added if module.startswith(OURS)} == IDLE
    assert of_others(added) == set()


def test_collecting_a_gate_imports_what_it_reads_and_nothing_that_runs_it(tmp_path: Path, bare: set[str]) -> None:
    own = ("-c", "pyproject.toml", "-o", "testpaths=tests/claims", "--suite", "gate", "--engine", "cockroach")
    added = imported(tmp_path, *own) - bare
    ours = sorted(module for module in added if module.startswith(OURS))
    assert len(ours) <= MOST_TO_COLLECT, ours
    assert of_others(added) <= TO_COLLECT
