"""Ways to start pytest: none of them lets a refuted claim pass, or says that a gate passed where nothing ran."""

import re
import shlex
import subprocess
import sys

import pytest

from plugin.trial_result import stored_result
from tests.plugin.conftest import Gate

REFUTED, PASSES = "test_claims.py::test_refuted", "test_claims.py::test_passes"

RUNS = (
    # what is run
    f"{REFUTED}",
    f"{REFUTED} {PASSES}",
    f"{REFUTED} {REFUTED}",
    "test_claims.py -k test_refuted",
    "-k 'test_refuted and not late and not broken'",
    "test_claims.py -m claim -k 'test_refuted or test_passes'",
    f"{REFUTED} --claim answer",
    f"{REFUTED} --claim 'ans*'",
    f"{REFUTED} --deselect {PASSES}",
    f"{REFUTED} --ignore nowhere",
    f"{PASSES} {REFUTED}",
    "./test_claims.py::test_refuted",
    "--keep-duplicates test_claims.py::test_refuted",
    # when it ends
    f"-x {PASSES} {REFUTED}",
    f"--maxfail=1 {REFUTED} {PASSES}",
    f"-p cacheprovider -p stepwise --stepwise {REFUTED}",
    f"-p cacheprovider -p stepwise --stepwise --stepwise-skip {REFUTED}",
    f"-p cacheprovider --lf {REFUTED}",
    f"-p cacheprovider --nf {REFUTED}",
    f"--continue-on-collection-errors {REFUTED}",
    # what is shown
    f"-q {REFUTED}",
    f"-qqq -rN --no-header --disable-warnings {REFUTED}",
    f"-vv -rA --force-short-summary --xfail-tb {REFUTED}",
    f"--no-summary {REFUTED}",
    f"--tb=no --show-capture=no {REFUTED}",
    f"--tb=native {REFUTED}",
    f"--full-trace --trace-config --log-cli-level=DEBUG {REFUTED}",
    f"--junit-xml=live.xml --alluredir=allure {REFUTED}",
    f"--junit-xml=live.xml -o junit_family=xunit1 {REFUTED}",
    # how what is printed is caught
    f"-s {REFUTED}",
    f"--capture=sys {REFUTED}",
    f"--capture=tee-sys {REFUTED}",
    # how tests are imported and rewritten
    f"--assert=plain {REFUTED}",
    f"--import-mode=prepend {REFUTED}",
    f"--doctest-modules {REFUTED}",
    f"--noconftest {REFUTED}",
    f"--strict-markers --strict-config {REFUTED}",
    # what marks and warnings are taken for
    f"--runxfail {REFUTED}",
    f"-o xfail_strict=true {REFUTED}",
    f"-W error {REFUTED}",
    f"-W ignore {REFUTED}",
    # which plugins there are
    f"-p no:terminal {REFUTED}",
    f"-p no:skipping {REFUTED}",
    f"-p no:xdist {REFUTED}",
    f"-p no:warnings -p no:logging -p no:unraisableexception -p no:threadexception {REFUTED}",
    f"-p no:junitxml -p no:allure_pytest -p no:benchmark -p no:hypothesispytest {REFUTED}",
    f"--benchmark-skip {REFUTED}",
    # who runs it
    f"-n 0 {REFUTED}",
    f"--dist=load {REFUTED}",
    f"-n 1 {REFUTED}",
    f"-n 2 --dist=loadfile {REFUTED} {PASSES}",
    f"-n 2 --dist=worksteal {REFUTED} {PASSES}",
    f"-n 2 --dist=each {REFUTED}",
)
"""Arguments of pytest with which the refuted claim's test is run."""


INTERPRETERS = (
    ["-m", "pytest"],
    ["-O", "-m", "pytest"],
    ["-OO", "-m", "pytest"],
    ["-P", "-m", "pytest"],
    ["-X", "dev", "-m", "pytest"],
    ["-c", "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"],
)
"""Ways to start Python: with ``-O`` no assertion of a test is carried out."""

NOTHING = {
    "--collect-only test_claims.py": 0,
    "--setup-plan test_claims.py::test_passes": 6,
    "--setup-only test_claims.py::test_passes": 7,
    "--help": 0,
    "--version": 0,
    "--fixtures": 0,
    "--markers": 0,
    "--claims": 0,
    "-p cacheprovider --cache-show": 0,
    "test_claims.py -k nowhere": 5,
    "test_claims.py::test_nowhere": 4,
    "nowhere.py": 4,
    "--nowhere": 4,
    "-c nowhere.toml": 4,
    "-p no:asyncio test_claims.py::test_passes": 4,
    "--asyncio-mode=strict test_claims.py::test_refuted": 7,
}
"""Arguments with which no claim's test is run, and the exit status."""


def refuted(gate: Gate) -> bool:
    """Whether the evidence says that a claim is refuted."""
    results = [found for each in gate.trials if (found := stored_result(each))]
    return "refuted" in {found.outcome for found in results}


@pytest.mark.parametrize("way", RUNS)
def test_a_refuted_claim_is_refuted_however_it_is_run(gate: Gate, way: str) -> None:
    ran = gate(*shlex.split(way), "--run-dir", "out")
    assert ran.status == 1, ran.text
    assert refuted(gate)
    assert not re.search(r"(?<!NOT )PASSED: ", ran.text)


@pytest.mark.parametrize("way", INTERPRETERS, ids=" ".join)
def test_a_refuted_claim_is_refuted_by_any_interpreter(gate: Gate, way: list[str]) -> None:
    command = [sys.executable, *way, *gate.arguments(REFUTED, "--run-dir", "out")]
    ran = subprocess.run(command, cwd=gate.path, capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert refuted(gate)


@pytest.mark.parametrize("way", NOTHING)
def test_where_no_claim_s_test_is_run_nothing_passed(gate: Gate, way: str) -> None:
    ran = gate(*shlex.split(way), "--run-dir", "out")
    assert ran.status == NOTHING[way], ran.text
    assert not re.search(r"(?<!NOT )PASSED: ", ran.text)
