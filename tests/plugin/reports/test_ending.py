"""How a run ended: its last lines, and what it leaves for programs and for the page of a CI's job."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest._io import TerminalWriter

from plugin.outcomes import TestOutcome
from plugin.reports.ending import Ended, concluded, conclusion, ended_of
from plugin.reports.stored_run import StoredRun, StoredTrial
from plugin.reports.terminal import ended_line, print_trial
from plugin.result import Result
from plugin.status import Conclusion, Status, status_told
from tests.plugin.conftest import Gate


def test_of_a_control_no_gate_is_said_to_be_passed() -> None:
    assert conclusion([("a", "pass")], [], gate=True, passed=True, control=True).text == "CONTROL PASSED: 1 claim"


@pytest.mark.parametrize(
    ("outcomes", "undecided", "gate", "passed", "told"),
    [
        (["pass"], [], True, True, "GATE PASSED: 1 claim"),
        (["pass", "pass", "not evaluated"], [], False, True, "RUN PASSED: 2 claims"),
        (
            ["pass", "inconclusive", "refuted", "harness", "refuted"],
            [],
            True,
            False,
            "GATE NOT PASSED: 2 refuted (c, e), 1 harness failed (d), 1 inconclusive (b)",
        ),
        (["pass"], ["parity", "stress"], True, False, "GATE NOT PASSED: 2 not decided (parity, stress)"),
        (
            ["pass"],
            ["swap (path final)", "stress (nodes 3)", "swap (path drawn)"],
            False,
            False,
            "RUN NOT PASSED: 3 not decided (2 × swap, stress (nodes 3))",
        ),
        ([], [], False, False, "RUN NOT PASSED: nothing was decided"),
        (["pass"], [], True, False, "GATE NOT PASSED: what was decided passed, and something else is wrong"),
    ],
)
def test_conclusion(outcomes: list[str], undecided: list[str], gate: bool, passed: bool, told: str) -> None:
    assert conclusion(zip("abcde", outcomes, strict=False), undecided, gate=gate, passed=passed) == Conclusion(
        told, passed
    )


def test_a_claim_is_what_the_worst_of_its_tests_came_to() -> None:
    several = [("a", "pass"), ("a", "refuted"), ("a", "inconclusive"), ("b", "inconclusive"), ("b", "pass")]
    told = conclusion(several, [], gate=True, passed=False).text
    assert told == "GATE NOT PASSED: 1 refuted (a), 1 inconclusive (b)"
    twice = [("a", "pass"), ("a", "pass"), ("b", "not evaluated"), ("b", "pass")]
    assert conclusion(twice, [], gate=True, passed=True).text == "GATE PASSED: 2 claims"


def stored(*outcomes: str, undecided: Sequence[str] = (), problems: Sequence[str] = (), **settings: Any) -> StoredRun:
    """A run whose claims came to this; one that begins with ! is a sabotage's."""
    results = [(Result(outcome=one.lstrip("!"), why=""), one.startswith("!")) for one in outcomes]
    trials: list[Any] = [
        SimpleNamespace(result=result, sabotage=sabotage, claim_id=f"claim-{number}")
        for number, (result, sabotage) in enumerate(results)
    ]
    return StoredRun(
        directory=Path(), described={"settings": settings}, trials=trials, undecided=undecided, problems=problems
    )


def test_stored_claims_pass_only_where_one_passed_and_nothing_is_missing_or_wrong() -> None:
    def passed(run: StoredRun) -> bool:
        found = concluded([run], control=False)
        return found is not None and found.passed

    assert passed(stored("pass", "not evaluated", "!pass"))
    assert not passed(stored("pass", undecided=("parity",)))
    assert not passed(stored("pass", problems=("a trial vanished",)))
    assert not passed(stored("pass", "!not as expected"))
    assert not passed(stored("not evaluated"))
    assert not any(passed(stored("pass", other)) for other in ("refuted", "inconclusive", "harness", "skipped"))
    assert concluded([stored("!pass")], control=False) is None


@pytest.mark.parametrize(
    ("settings", "begins"),
    [({"strict_suite": True}, "GATE"), ({"strict_suite": True, "claims": ["a"]}, "RUN"), ({}, "RUN")],
)
def test_a_gate_is_a_whole_run_of_a_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], begins: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.json").touch()
    found = concluded([stored("pass", **settings)], control=False)
    assert found is not None
    assert found.text == f"{begins} PASSED: 1 claim"
    (tmp_path / "run.json").unlink()
    found = concluded([stored("pass", **settings)], control=False)
    assert found is not None
    assert found.text == "RUN PASSED: 1 claim", "one trial of it"


def test_every_status_has_words() -> None:
    told = [status_told(status) for status in Status]
    assert len(set(told)) == len(told)
    assert status_told(99) == "exit status 99: pytest ended early"


@pytest.mark.parametrize(
    ("status", "counts", "told"),
    [
        (1, {"refuted": 1, "harness": 1}, "1 claim is refuted"),
        (1, {"refuted": 2, "failed": 1}, "2 claims are refuted and 1 test without a claim failed"),
        (1, {"unexpected": 1}, "1 sabotage did not end as named"),
        (6, {"inconclusive": 1, "undecided": 2}, "1 claim is inconclusive and 2 claims were required and not decided"),
        (6, {"inconclusive": 0}, "a claim is inconclusive or was not decided: nothing is let through"),
        (
            7,
            {"harness": 1},
            "1 test was ended by the harness or the machine, nothing was learnt from that",
        ),
        (7, {"harness": 0, "unwritten": 1}, "1 file could not be written"),
        (0, {"refuted": 1}, "every required claim passed"),
    ],
)
def test_a_status_says_what_happened(status: int, counts: dict[str, int], told: str) -> None:
    assert status_told(status, counts) == f"exit status {status}: {told}"


def test_the_reason_is_one_line_and_a_pass_has_none() -> None:
    ended = Ended(claim="a", test="t", outcome="refuted", why="\nfirst\nsecond", seconds=1.0)
    assert ended.reason == "first"
    assert Ended(claim="a", test="t", outcome="pass", why="all is well", seconds=1.0).reason == ""


def test_a_pass_with_checks_that_were_not_evaluated_says_so_on_its_line() -> None:
    why = "2 of 3 checks were not evaluated; the one check that was judged holds"
    row = Ended(claim="a", test="t", outcome="pass", why=why, seconds=1.0)
    assert ended_line(row).endswith(why)
    trial = StoredTrial(
        directory=Path("a/t"), described={}, claim=None, verdict=None, series=None, events=(),
        result=Result(outcome="pass", why=why),
    )  # fmt: skip
    print_trial(TerminalWriter(written := StringIO()), trial, title="a/t", in_full=False)
    assert written.getvalue() == f"\na/t\nclaim a: PASS\n  {why}\n"


def test_sabotages_are_no_part_of_it() -> None:
    about: Any = {"nodeid": "t.py::test_a[x::y]", "claim": "a", "trial": None, "seconds": 1.23}
    result = Result(outcome="pass", why="")
    outcomes = [TestOutcome(**about, sabotage=sabotage, result=result) for sabotage in (True, False)]
    assert ended_of(outcomes, Path()) == [Ended(claim="a", test="test_a[x::y]", outcome="pass", why="", seconds=1.2)]


@pytest.mark.parametrize("named", ["sabotage", "blunt_sabotage"])
def test_where_no_claim_was_to_be_decided_nothing_is_concluded(gate: Gate, named: str) -> None:
    ran = gate(*gate.tests(named), "--run-dir", "out", "--alluredir", "out/allure")
    assert ran.status == (named == "blunt_sabotage")
    page = (gate.run_dir / "report.html").read_text()
    headline = page.partition("<header>")[2].partition("</header>")[0]
    (title,) = re.findall("<title>(.*)</title>", page)
    assert "Roachproof" in title
    assert "Roachproof" in headline
    for told in (title, headline, ran.text):
        assert "PASSED" not in told
    assert not list(gate.run_dir.glob("allure/*-globals.json"))
    assert not (gate.run_dir / "result.json").exists()


def test_the_last_lines_and_files_of_a_gate(gate: Gate) -> None:
    gate.fake_cockroach("v24.1.3")
    asked = ["--suite", "gate", "--cockroach-version", "v24.1.3", "--claim", "answer", "--claim", "question"]
    ran = gate(*gate.tests("passes", "refuted", "sabotage"), *asked, "--run-dir", "out")
    lines = [line for line in ran.lines if line]
    last = lines[next(at for at, line in enumerate(lines) if line.startswith("PASS ")) :]
    assert last[0].endswith(" s  answer  test_passes")
    assert "REFUTED" in last[1]
    assert last[1].endswith("answer  test_refuted  answer: 41, must be == 42")
    assert "RUN NOT PASSED: 1 refuted (answer), 1 not decided (question)" in last
    assert "exit status 1: 1 claim is refuted" in last
    assert not any(line.startswith("answer  PASS") for line in lines), "a pass among others is one line"
    told = json.loads((gate.run_dir / "result.json").read_text())
    assert (told["status"], told["gate"], told["undecided"]) == (1, False, ["question"])
    assert [(row["claim"], row["outcome"]) for row in told["claims"]] == [("answer", "pass"), ("answer", "refuted")]
    assert all((gate.run_dir / row["evidence"] / "verdict.json").exists() for row in told["claims"])
    summary = (gate.run_dir / "summary.md").read_text()
    assert summary.startswith("## RUN NOT PASSED: 1 refuted (answer), 1 not decided (question)\n")
    assert "| REFUTED | answer | The answer is what it was said to be. | 0 of 1 | " in summary
    assert "| PASS | answer | The answer is what it was said to be. | 1 of 1 | " in summary
    assert f"\nseed {told['seed']}, profile laptop, suite gate, Roachproof {told['suite_revision']}\n" in summary
    assert "results: out/result.json, out/summary.md" in last
    assert "| NOT DECIDED | question | | | | |" in summary
    page = (gate.run_dir / "report.html").read_text()
    assert "<title>RUN NOT PASSED: 1 refuted (answer), 1 not decided (question) – Roachproof" in page
    again = gate("--judge", "out", "--report", "again.html")
    assert again.status == 1
    assert (
        "<title>RUN NOT PASSED: 1 refuted (answer), 1 not decided (question) – "
        in (gate.path / "again.html").read_text()
    )


def test_passing_claims_are_shown_in_full_where_that_is_asked_for(gate: Gate) -> None:
    tests = gate.tests("skipped_in_part")
    assert "question  PASS\n" not in gate(*tests).text
    assert gate(*tests, "-v").text.count("question  PASS\n") == 2
    one = gate(*gate.tests("passes"))
    assert "= claims =" not in one.text, "a single one that passes is a line, too"
    assert one.verdicts() == ["answer  PASS"]
    assert "RUN PASSED: 1 claim" in one.lines
    assert "answer  PASS\n" in gate(*gate.tests("passes"), "-v").text


def test_the_table_of_checks_stands_once_and_the_last_lines_are_ours(gate: Gate) -> None:
    row = re.compile(r"answer +41  == 42 +absolute")
    tests = gate.tests("refuted", "inconclusive", "passes", "harness", "blunt_sabotage")
    ran = gate(*tests, "--junit-xml", "report.xml", "--run-dir", "out")
    assert len(row.findall(ran.text)) == 1, ran.text
    assert len(re.findall(r"answer +42  == 42 +absolute", ran.text)) == 1, "the sabotage's"
    assert "FAILED test_claims.py::test_refuted - REFUTED: answer: 41, must be == 42" in ran.lines
    assert "HarnessError" in ran.text.partition("= claims =")[0], "of what is no verdict the traceback says most"
    cases = {case.get("name"): case for case in ET.parse(gate.path / "report.xml").iter("testcase")}
    assert row.search(cases["test_refuted"].findtext("failure", ""))
    ends = next(at for at, line in enumerate(ran.lines) if re.match(r"=+ .* in [\d.]+s", line))
    last = ran.lines[ends + 1 :]
    told = [line[:14].strip() for line in last if re.match(r".{14} +\d+ s  ", line)]
    assert sorted(told) == ["HARNESS FAILED", "INCONCLUSIVE", "PASS", "REFUTED"]
    assert any(line.startswith("RUN NOT PASSED: ") for line in last)
    assert last[-1] == "report: out/report.html"
    assert len(row.findall(gate(*gate.tests("refuted"), "-v").text)) >= 2, (
        "of pytest's, too, and in its summary where CI is set"
    )


def test_lines_of_pytests_are_short_in_ci_too(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    gate.edit(
        "test_claims.py", 'judge.measure("answer", 41, note="a slip")', 'judge.measure("answer", 41, note="x " * 900)'
    )
    gate.edit("test_claims.py", "the machine that thinks is out of order", "out of " + "order " * 900)
    ran = gate(*gate.tests("refuted", "harness"), "-n", "2")
    told = [line for line in ran.lines if line.startswith("FAILED ")]
    assert len(told) == 2
    assert all(len(line) < 200 for line in told), told


def test_an_ordinary_test_that_fails_is_said_and_the_page_agrees(gate: Gate) -> None:
    ran = gate(*gate.tests("passes", "ordinary_failure"), "--run-dir", "out")
    assert ran.status == 1
    told = "RUN NOT PASSED: what was decided passed, and something else is wrong"
    assert told in ran.lines
    assert "exit status 1: 1 test without a claim failed" in ran.lines
    assert f"<title>{told} – Roachproof" in (gate.run_dir / "report.html").read_text()
    assert json.loads((gate.run_dir / "result.json").read_text())["conclusion"] == told


def test_a_part_of_a_suite_is_no_gate_that_passed(gate: Gate) -> None:
    gate.fake_cockroach("v24.1.3")
    ran = gate(*gate.tests("passes"), "--suite", "gate", "--cockroach-version", "v24.1.3")
    assert ran.status == 6
    assert re.search(r"^GATE NOT PASSED: \d+ not decided \(", ran.text, re.MULTILINE), ran.text
