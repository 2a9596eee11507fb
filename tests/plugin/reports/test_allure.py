"""Allure's results of a live session and of its replay, read back as JSON."""

import json
from collections import Counter

import pytest

from plugin.reports.allure import SABOTAGES
from tests.plugin.conftest import Gate
from tests.plugin.reports.allure_reading import Result, by_test, read

LIVE = (
    "passes",
    "refuted",
    "inconclusive",
    "harness",
    "harness_in_setup",
    "late_harness",
    "node_died_in_a_group",
    "asserts",
    "unjudged",
    "skipped",
    "skipped_late",
    "crash",
    "sabotage",
    "blunt_sabotage",
    "ordinary",
)
STATUS = {
    "passes": ("passed", ""),
    "refuted": ("failed", "REFUTED: answer: 41, must be == 42"),
    "inconclusive": ("broken", "INCONCLUSIVE: questions: not measured"),
    "harness": ("broken", "HARNESS FAILED: HarnessError: the machine that thinks is out of order"),
    "harness_in_setup": ("broken", "HARNESS FAILED: AssertionError"),
    "late_harness": ("broken", "HARNESS FAILED: OSError: cannot clear away"),
    "node_died_in_a_group": ("failed", "REFUTED: nodes_died: 1 node, must be == 0"),
    "asserts": ("broken", "HARNESS FAILED: AssertionError"),
    "unjudged": ("broken", "HARNESS FAILED: the test of claim question ended without a verdict"),
    "skipped": ("skipped", "SKIPPED: not today"),
    "skipped_late": ("skipped", "SKIPPED: seen enough"),
    "crash": ("broken", "HARNESS FAILED: the worker that ran it died"),
    "sabotage": ("passed", ""),
    "blunt_sabotage": ("failed", "NOT AS EXPECTED: the sabotage did not refute answer"),
    "ordinary": ("passed", ""),
}


def test_a_session_with_workers_one_of_which_dies_and_its_replay(gate: Gate) -> None:
    ran = gate(*gate.tests(*LIVE), "-n", "2", "--alluredir", "live", "--clean-alluredir", "--run-dir", "out")
    assert ran.status == 1, ran.text
    assert "Allure results are missing" not in ran.text
    live = by_test(gate.path / "live")
    undecided = live.pop("question")
    assert undecided.message.startswith("REQUIRED AND NOT DECIDED"), "a test of it was skipped"
    assert set(live) == set(LIVE)
    for name, (status, message) in STATUS.items():
        assert live[name].json["status"] == status, name
        assert live[name].message.startswith(message), (name, live[name].message)
        assert bool(live[name].message) == bool(message), name
    assert "answer                                41  == 42" in live["refuted"].json["statusDetails"]["trace"]
    sabotages = {"sabotage", "blunt_sabotage"}
    for name, result in live.items():
        epic = SABOTAGES if name in sabotages else "Claims of one's own"
        if name != "ordinary":
            assert result.labels["epic"] == result.labels["parentSuite"] == epic, name
            assert ("sabotage" in result.tags) == (name in sabotages)
    assert live["sabotage"].tags >= {"sabotage", "refuted as expected"}

    judged = gate("--judge", "out", "--alluredir", "judged")
    assert judged.status == 1, judged.text
    assert f"Allure results: 14 written to {gate.path / 'judged'}" in judged.text
    stored = by_test(gate.path / "judged")
    assert stored.pop("question").message == undecided.message
    assert set(stored) == set(LIVE) - {"skipped", "ordinary"}
    for name, result in stored.items():
        for key in ("historyId", "testCaseId", "fullName", "name", "start"):
            assert result.json[key] == live[name].json[key], (name, key)
        assert result.json["status"] == live[name].json["status"], name
        assert set(live[name].names) <= set(result.names) <= {*live[name].names, "verdict.json"}
    assert (gate.path / "judged" / "categories.json").exists()

    one = by_test_of(gate, "passes", "refuted", "skipped", "sabotage")
    assert one.pop("question").json["historyId"] == undecided.json["historyId"]
    for name, result in one.items():
        assert result.json["historyId"] == live[name].json["historyId"], "without workers as with them"


def by_test_of(gate: Gate, *names: str) -> dict[str, Result]:
    ran = gate(*gate.tests(*names), "--alluredir", "alone", "--run-dir", "alone-out")
    assert ran.status == 1, ran.text
    fixtures = Counter(
        part["name"]
        for file in (gate.path / "alone").glob("*-container.json")
        for part in json.loads(file.read_text()).get("befores", [])
    )
    assert fixtures["place of the evidence"] == 3, fixtures
    assert fixtures["prepare the judge (audit, verdict)"] == 3
    assert not [name for name in fixtures if name.startswith("_")]
    return by_test(gate.path / "alone")


def test_histories_run_across_versions(gate: Gate) -> None:
    for version in ("v24.1.3", "v24.2.0"):
        gate.fake_cockroach(version)
        ran = gate(*gate.tests("passes"), f"--cockroach-version={version}", "--alluredir", "alone")
        assert ran.status == 0, ran.text
    first, second = read(gate.path / "alone")
    assert first.json["historyId"] == second.json["historyId"]
    both = [f"--cockroach-version={version}" for version in ("v24.1.3", "v24.2.0", "v24.2.0")]
    assert gate(*gate.tests("passes"), *both, "--alluredir", "both", "-n", "1").status == 0
    several = read(gate.path / "both")
    assert len({result.json["historyId"] for result in several}) == 3, "one would hide the others as its retries"
    assert {r.parameters["place among the versions"] for r in several} == {"1 of 3", "2 of 3", "3 of 3"}
    assert {result.json["testCaseId"] for result in several} == {first.json["testCaseId"]}


def test_a_suite_has_its_results_in_its_run_directory(gate: Gate) -> None:
    gate.fake_cockroach("v24.1.3")
    options = ("--suite=gate", "--cockroach-version=v24.1.3", "--run-dir", "out")
    ran = gate(*gate.tests("passes"), *options)
    assert "Allure results: " in " ".join(ran.text.split())
    home = gate.run_dir / "allure-results"
    told = {r.json["name"]: r.json["status"] for r in read(home)}
    assert [*told.values()].count("passed") == 1
    assert told["question"] == "broken", "required and not decided"
    said = dict(line.split("=", 1) for line in (home / "environment.properties").read_text().splitlines())
    assert said["profile"] == "laptop"
    assert said["suite"] == "gate"
    assert {"seed", "cores", "kernel"} <= set(said)
    (gate.path / "test_light.py").write_text(
        "import sys\n"
        "def test_it(): assert not {'plugin.reports.allure_live', 'plugin.reports.allure'} & set(sys.modules)\n"
    )
    ran = gate("test_light.py", *gate.tests("passes"), "--run-dir", "quiet")
    assert ran.status == 0, ran.text
    assert "Allure" not in ran.text
    assert not (gate.path / "quiet" / "allure-results").exists(), "nobody asked for any"


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_directory_that_cannot_be_written(gate: Gate, workers: tuple[str, ...]) -> None:
    (gate.path / "occupied").write_text("a file")
    ran = gate(*gate.tests("passes", "inconclusive"), "--alluredir", "occupied", *workers, "--run-dir", "out")
    assert ran.status == 6, ran.text
    said = " ".join(ran.text.split())
    assert "Allure results are missing or incomplete:" in said
    assert "occupied: cannot be written (File exists); give another with --alluredir DIR" in said
    assert "Traceback" not in ran.text
    if workers:
        return
    again = gate("--judge", "out", "--alluredir", "occupied")
    assert again.status == 6
    assert "Allure results: not written" in again.text
    inside = gate("--judge", "out", "--alluredir", f"{gate.trials[0]}/here")
    assert "is sealed evidence" in " ".join(inside.text.split())
    assert not (gate.trials[0] / "here").exists()


def test_a_directory_that_goes_away_while_tests_run(gate: Gate) -> None:
    (gate.path / "test_claims.py").write_text(
        "import pathlib, shutil, pytest\n"
        "@pytest.mark.claim('answer')\n"
        "async def test_it(judge):\n"
        "    shutil.rmtree('al'); pathlib.Path('al').write_text('')\n"
        "    judge.measure('answer', 42)\n"
        "    assert judge.decide()\n"
    )
    ran = gate("--alluredir", "al", "-n", "1")
    assert ran.status == 0, ran.text
    assert "Allure results are missing or incomplete: " in ran.text
    assert "Traceback" not in ran.text
