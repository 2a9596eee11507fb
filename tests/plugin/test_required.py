"""What a suite requires is part of its run: session, replay, page, JUnit XML and Allure agree on what is missing."""

import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from plugin.evidence.run_seal import RUN_FILE, RUN_SEAL
from plugin.required import Required, required_of, undecided
from tests.plugin.conftest import Gate

CALLED = "REQUIRED AND NOT DECIDED: question"


@pytest.fixture
def suite(gate: Gate) -> Gate:
    """A suite of two claims of which one was tested; its run is in ``out``."""
    gate.fake_cockroach("v24.1.3")
    ran = gate(*gate.tests("passes"), "--suite", "gate", "--run-dir", "out", "--junit-xml", "live.xml")
    assert ran.status == 6, ran.text
    assert CALLED in ran.text
    return gate


def failures(path: Path) -> list[tuple[str | None, str | None]]:
    """Names and reasons of the test cases that did not pass."""
    cases = ET.parse(path).getroot().iter("testcase")
    return [(case.get("name"), found.get("message")) for case in cases for found in case.iter("failure")]


def broken(results: Path) -> list[str]:
    """Names of Allure's results that are neither passed nor skipped."""
    told = [json.loads(file.read_text()) for file in results.glob("*-result.json")]
    return [result["name"] for result in told if result["status"] not in ("passed", "skipped")]


def test_every_report_says_what_is_missing(suite: Gate) -> None:
    replayed = suite("--judge", "out", "--junit-xml", "again.xml", "--alluredir", "again")
    assert replayed.status == 6, replayed.text
    assert CALLED in replayed.text
    assert replayed.text.count("same verdict as stored") == 1
    missing = json.loads((suite.run_dir / RUN_SEAL).read_text())["undecided"]
    assert "question" in missing
    assert "rebalance (sizes 3 6)" in missing or "rebalance" in missing
    for place in ("live.xml", "again.xml"):
        assert failures(suite.path / place) == [(name, "REQUIRED AND NOT DECIDED") for name in missing], place
    for results in (suite.run_dir / "allure-results", suite.path / "again"):
        assert sorted(broken(results)) == sorted(missing)
    page = (suite.run_dir / "report.html").read_text()
    assert all(f"Required and not decided: {name}" in page for name in missing)


def test_a_trial_that_vanished_or_was_sealed_anew_is_noticed(gate: Gate) -> None:
    ran = gate(*gate.tests("passes", "refuted"), "--run-dir", "out")
    assert ran.status == 1
    (refuted,) = (trial for trial in gate.trials if trial.name == "test_claims-test_refuted")
    assert gate("--judge", "out").text.count("same verdict as stored") == 2
    seal = json.loads((refuted / "manifest.json").read_text())
    seal["sha256"].pop("measurements.jsonl", None)
    (refuted / "manifest.json").write_text(json.dumps(seal))
    assert "test_claims-test_refuted was changed after the run" in " ".join(gate("--judge", "out").text.split())
    shutil.rmtree(refuted)
    without = gate("--judge", "out")
    assert without.status == 6, without.text
    assert "test_claims-test_refuted is missing: the run had it when it ended" in " ".join(without.text.split())
    (gate.run_dir / RUN_SEAL).unlink()
    never = gate("--judge", "out")
    assert never.status == 6, never.text
    assert "the run was never sealed" in never.text


def test_what_was_required_cannot_be_taken_back(suite: Gate) -> None:
    """Neither in the run's description, whose digest is in the seal, nor in the seal: each has it."""
    described = json.loads((suite.run_dir / RUN_FILE).read_text())
    seal = json.loads((suite.run_dir / RUN_SEAL).read_text())
    (suite.run_dir / RUN_FILE).write_text(json.dumps({**described, "required": []}))
    changed = suite("--judge", "out")
    assert (changed.status, CALLED in changed.text) == (6, True), changed.text
    assert "run.json was changed after the run" in " ".join(changed.text.split())
    (suite.run_dir / RUN_FILE).write_text(json.dumps(described))
    (suite.run_dir / RUN_SEAL).write_text(json.dumps({**seal, "undecided": []}))
    emptied = suite("--judge", "out")
    assert (emptied.status, CALLED in emptied.text) == (6, True), emptied.text


def test_what_is_not_decided() -> None:
    every = [Required(claim="a", parameters={"n": n}, target=t) for n in (1, 2) for t in ("old", "new")]
    done = [{"claim": "a", "parameters": {"n": n}, "target": "old"} for n in (1, 2)]
    assert undecided(every, done) == ["a (n 1, new)", "a (n 2, new)"]
    assert undecided(every, []) == undecided(every, done, skipped={"a"}) == ["a"]
    assert undecided(every, [{"claim": "a", "target": t} for t in ("old", "new")]) == []
    assert required_of({"required": [{"claim": 1}]}) == ()
