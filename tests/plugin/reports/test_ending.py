"""How a run ended: its last lines, and what it leaves for programs and for the page of a CI's job."""

import json
from pathlib import Path
from typing import Any

import pytest

from plugin.outcomes import TestOutcome
from plugin.reports.ending import Ended, conclusion, ended_of, passes, status_told
from plugin.result import Result
from plugin.status import Status
from tests.plugin.conftest import Gate


def test_of_a_control_no_gate_is_said_to_be_passed() -> None:
    assert conclusion(["pass"], [], gate=True, passed=True, control=True) == "CONTROL PASSED: 1 claim"


@pytest.mark.parametrize(
    ("outcomes", "undecided", "gate", "passed", "told"),
    [
        (["pass"], [], True, True, "GATE PASSED: 1 claim"),
        (["pass", "pass", "not evaluated"], [], False, True, "RUN PASSED: 2 claims"),
        (["pass", "refuted", "inconclusive", "refuted"], [], True, False, "GATE NOT PASSED: 2 refuted, 1 inconclusive"),
        (["pass"], ["parity", "stress"], True, False, "GATE NOT PASSED: 2 not decided (parity, stress)"),
        ([], [], False, False, "RUN NOT PASSED: nothing was decided"),
    ],
)
def test_conclusion(outcomes: list[str], undecided: list[str], gate: bool, passed: bool, told: str) -> None:
    assert conclusion(outcomes, undecided, gate=gate, passed=passed) == told


def test_stored_claims_let_a_version_through_only_where_one_passed_and_nothing_is_missing() -> None:
    assert passes(["pass", "not evaluated"], [])
    assert not passes(["pass"], ["parity"])
    assert not passes(["not evaluated"], [])
    assert not any(passes(["pass", other], []) for other in ("refuted", "inconclusive", "harness", "skipped"))


def test_every_status_has_words() -> None:
    told = [status_told(status) for status in Status]
    assert len(set(told)) == len(told)
    assert status_told(99) == "exit status 99: pytest ended early"


def test_the_reason_is_one_line_and_a_pass_has_none() -> None:
    ended = Ended(claim="a", test="t", outcome="refuted", why="\nfirst\nsecond", seconds=1.0)
    assert ended.reason == "first"
    assert Ended(claim="a", test="t", outcome="pass", why="all is well", seconds=1.0).reason == ""


def test_sabotages_are_no_part_of_it() -> None:
    about: Any = {"nodeid": "t.py::test_a[x::y]", "claim": "a", "trial": None, "seconds": 1.23}
    result = Result(outcome="pass", why="")
    outcomes = [TestOutcome(**about, sabotage=sabotage, result=result) for sabotage in (True, False)]
    assert ended_of(outcomes, Path()) == [Ended(claim="a", test="test_a[x::y]", outcome="pass", why="", seconds=1.2)]


def test_the_last_lines_and_files_of_a_gate(gate: Gate) -> None:
    gate.fake_cockroach("v24.1.3")
    asked = ["--suite", "gate", "--cockroach-version", "v24.1.3", "--claim", "answer", "--claim", "question"]
    ran = gate(*gate.tests("passes", "refuted", "sabotage"), *asked, "--run-dir", "out")
    lines = [line for line in ran.lines if line]
    last = lines[next(at for at, line in enumerate(lines) if line.startswith("PASS ")) :]
    assert last[0].endswith(" s  answer  test_passes")
    assert "REFUTED" in last[1]
    assert last[1].endswith("answer  test_refuted  answer: 41, must be == 42")
    assert "GATE NOT PASSED: 1 refuted, 1 not decided (question)" in last
    assert "exit status 1: a claim is refuted, or a test of the suite's own failed" in last
    assert not any(line.startswith("answer  PASS") for line in lines), "a pass among others is one line"
    told = json.loads((gate.run_dir / "result.json").read_text())
    assert (told["status"], told["gate"], told["undecided"]) == (1, True, ["question"])
    assert [(row["claim"], row["outcome"]) for row in told["claims"]] == [("answer", "pass"), ("answer", "refuted")]
    assert all((gate.run_dir / row["evidence"] / "verdict.json").exists() for row in told["claims"])
    summary = (gate.run_dir / "summary.md").read_text()
    assert summary.startswith("## GATE NOT PASSED: 1 refuted, 1 not decided (question)\n")
    assert "| REFUTED | answer |" in summary
    assert "| NOT DECIDED | question |" in summary
    page = (gate.run_dir / "report.html").read_text()
    assert "<title>GATE NOT PASSED: 1 refuted, 1 not decided (question) – Roachproof" in page
    again = gate("--judge", "out", "--report", "again.html")
    assert again.status == 1
    assert "<title>GATE NOT PASSED: 1 refuted, 1 not decided (question) – " in (gate.path / "again.html").read_text()


def test_passing_claims_are_shown_in_full_where_that_is_asked_for(gate: Gate) -> None:
    tests = gate.tests("skipped_in_part")
    assert "question  PASS\n" not in gate(*tests).text
    assert gate(*tests, "-v").text.count("question  PASS\n") == 2
    one = gate(*gate.tests("passes"))
    assert "answer  PASS\n" in one.text
    assert "RUN PASSED: 1 claim" in one.lines
    assert one.lines[-1].startswith("="), one.lines[-1]
