"""What a suite requires is part of its run: session, replay, page, JUnit XML and Allure agree on what is missing."""

import json
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from plugin.evidence.run_seal import RUN_FILE, RUN_SEAL, broken_run_seal, seal_run
from plugin.evidence.store import MANIFEST, TRIAL_FILE, seal, trials_in
from plugin.reports.stored_run import NOT_AS_LEFT
from plugin.required import Required, required_of, undecided
from tests.plugin.conftest import Gate, edited
from tests.plugin.reports.samples import run_of, trial_of

CALLED = "REQUIRED AND NOT DECIDED: question"


@pytest.fixture
def suite(gate: Gate) -> Gate:
    """A suite of two claims of which one was tested; its run is in ``out``."""
    gate.fake_cockroach("v24.1.3")
    ran = gate(*gate.tests("passes"), "--suite", "gate", "--run-dir", "out", "--junit-xml", "live.xml")
    assert ran.status == 6, ran.text
    assert CALLED in ran.text
    return gate


def told_as(kind: str, path: Path) -> list[tuple[str, str]]:
    """Names and reasons of the test cases with a ``failure`` or an ``error``."""
    cases = ET.parse(path).getroot().iter("testcase")
    return [(case.get("name", ""), found.get("message", "")) for case in cases for found in case.iter(kind)]


def errors_of_all(results: Path) -> list[str]:
    """What Allure shows before all results."""
    told = [json.loads(file.read_text()) for file in results.glob("*-globals.json")]
    return [error["message"] for each in told for error in each["errors"]]


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
        assert not told_as("failure", suite.path / place), place
        errors = told_as("error", suite.path / place)
        assert [name for name, _ in errors] == missing, place
        assert all("REQUIRED AND NOT DECIDED" in why for _, why in errors), place
    for results in (suite.run_dir / "allure-results", suite.path / "again"):
        assert sorted(broken(results)) == sorted(missing)
        (told,) = errors_of_all(results)
        assert told.startswith(f"GATE NOT PASSED: {len(missing)} not decided (")
        assert all(name.partition(" (")[0] in told for name in missing)
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


def vanished(trial: Path) -> None:
    shutil.rmtree(trial)


def nameless(trial: Path) -> None:
    (trial / TRIAL_FILE).unlink()


def without_the_run_s_file(trial: Path) -> None:
    """And with ``run.json`` everything that would say that a trial is missing."""
    shutil.rmtree(trial)
    (trial.parents[2] / RUN_FILE).unlink()


def without_the_seal(trial: Path) -> None:
    (trial.parents[2] / RUN_SEAL).unlink()


def without_either(trial: Path) -> None:
    """As where somebody keeps ``claims/`` alone."""
    without_the_run_s_file(trial)
    (trial.parents[2] / RUN_SEAL).unlink()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (vanished, ["claims/answer/test_claims-test_refuted is missing: the run had it when it ended"]),
        (nameless, ["claims/answer/test_claims-test_refuted has lost its trial.json, without which"]),
        (
            without_the_run_s_file,
            ["claims/answer/test_claims-test_refuted is missing: the run", "run.json is missing: the run"],
        ),
        (without_the_seal, ["the run was never sealed (run-manifest.json)"]),
        (without_either, ["it has neither run.json nor run-manifest.json: which trials the run had is not known"]),
        (None, []),
    ],
)
def test_every_report_says_that_a_run_is_not_as_it_was_left(
    gate: Gate, change: Callable[[Path], None] | None, told: list[str]
) -> None:
    """Terminal, page, JUnit XML, Allure and exit status; without the refuted trial all else passes."""
    gate(*gate.tests("passes", "refuted"), "--run-dir", "out")
    if change:
        change(gate.run_dir / "claims" / "answer" / "test_claims-test_refuted")
    ran = gate("--judge", "out", "--junit-xml", "again.xml", "--alluredir", "again")
    left = len(gate.trials)
    assert ran.status == (6 if left == 1 else 1), ran.text
    xml = told_as("failure", gate.path / "again.xml")
    wrong = [name for name, why in xml if why == NOT_AS_LEFT]
    assert len(xml) - len(wrong) == left - 1, "the refuted trial's own"
    results = [json.loads(file.read_text()) for file in (gate.path / "again").glob("*-result.json")]
    unlike = [each["name"] for each in results if each.get("statusDetails", {}).get("message") == NOT_AS_LEFT]
    page = (gate.run_dir / "judged-again.html").read_text()
    assert page.count(NOT_AS_LEFT.capitalize()) == ran.text.count(f"ERROR: {gate.run_dir}: ") == len(told)
    assert len(wrong) == len(unlike) == len(told)
    for each in told:
        assert each in " ".join(ran.text.split())
        assert each in page
        for named in (wrong, unlike):
            assert any(name.startswith(each) for name in named), (each, named)


def test_a_trial_that_ended_early_is_sealed_with_its_run(tmp_path: Path) -> None:
    """So that it cannot vanish, nor be sealed later as if it had come to its end."""
    run = run_of(tmp_path / "run", trials=[{"judged": False}])
    (trial,) = trials_in(run)
    (trial / MANIFEST).unlink()
    seal_run(run, ())
    assert broken_run_seal(run) == ()
    name = str(trial.relative_to(run))
    seal(trial)
    assert broken_run_seal(run) == (f"{name} was sealed after the run, in which it had ended early",)
    shutil.rmtree(trial)
    assert broken_run_seal(run) == (f"{name} is missing: the run had it when it ended",)


def test_a_trial_of_another_run_is_noticed(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run")
    trial_of(run / "claims" / "survivability" / "another", judged=False)
    assert broken_run_seal(run) == ("claims/survivability/another was added after the run",)
    edited(run / RUN_SEAL, sha256={})
    assert set(broken_run_seal(run)) == {
        "run.json was changed after the run",
        *(f"claims/survivability/{name} was added after the run" for name in ("another", "trial-0")),
    }


def test_evidence_without_a_description_is_noticed_though_the_run_is_sealed_anew(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", trials=[{"judged": False}, {"judged": False}])
    (run / "claims" / "survivability" / "trial-0" / TRIAL_FILE).unlink()
    seal_run(run, ())
    (told,) = broken_run_seal(run)
    assert told.startswith("claims/survivability/trial-0 has lost its trial.json")
    assert broken_run_seal(run / "claims" / "survivability" / "trial-1") == ()


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


def test_a_trial_that_vanished_is_noticed_wherever_the_run_is_judged(gate: Gate) -> None:
    """The whole, a part of it, or several; the directory of one trial is judged, and is said to be one of several."""
    assert gate(*gate.tests("passes", "refuted"), "--run-dir", "all/out").status == 1
    home = gate.path / "all" / "out" / "claims" / "answer"
    refuted, passed = sorted(home.iterdir(), key=lambda trial: "refuted" not in trial.name)
    alone = gate("--judge", str(passed))
    assert alone.status == 0, alone.text
    assert "1 of 2 trials of the run out: the others are not judged here" in alone.text
    assert "trials of the run" not in gate("--judge", "all/out").text
    shutil.rmtree(refuted)
    for judged in ("all", "all/out", "all/out/claims", "all/out/claims/answer"):
        ran = gate("--judge", judged)
        assert ran.status == 6, (judged, ran.text)
        assert f"claims/answer/{refuted.name} is missing: the run had it when it ended" in " ".join(ran.text.split())
    alone = gate("--judge", str(passed))
    assert alone.status == 0, alone.text
    assert "1 of 2 trials of the run out" in alone.text
    edited(passed / "manifest.json", note="sealed anew")
    assert gate("--judge", str(passed)).status == 6


def test_a_part_of_a_run_is_held_against_its_seal(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", trials=[{"judged": False}, {"judged": False}])
    part, one = run / "claims" / "survivability", run / "claims" / "survivability" / "trial-0"
    shutil.copytree(one, part / "another")
    assert broken_run_seal(part) == broken_run_seal(run) == ("claims/survivability/another was added after the run",)
    assert broken_run_seal(part / "another") == ("claims/survivability/another was added after the run",)
    assert broken_run_seal(one) == ()
    (run / RUN_SEAL).unlink()
    assert "never sealed" in broken_run_seal(part)[0]
    assert broken_run_seal(one) == ()


def test_what_is_not_decided() -> None:
    every = [Required(claim="a", parameters={"n": n}, target=t) for n in (1, 2) for t in ("old", "new")]
    done = [{"claim": "a", "parameters": {"n": n}, "target": "old"} for n in (1, 2)]
    assert undecided(every, done) == ["a (n 1, new)", "a (n 2, new)"]
    assert undecided(every, []) == undecided(every, done, skipped={"a"}) == ["a"]
    assert undecided(every, [{"claim": "a", "target": t} for t in ("old", "new")]) == []
    assert required_of({"required": [{"claim": 1}]}) == ()
