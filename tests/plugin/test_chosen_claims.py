"""``--claim``: only these are run and required; what of the suite was not tested is told wherever the run is."""

import json
import re
import xml.etree.ElementTree as ET

import pytest

from plugin.evidence.run_seal import RUN_SEAL
from plugin.reports.page_file import JUDGED_AGAIN, PAGE
from plugin.reports.result_files import RESULT_FILE, SUMMARY_FILE
from tests.plugin.conftest import Gate

VERSION = "v24.1.3"
GATE = ["--suite", "gate", "--cockroach-version", VERSION]
TOLD = re.compile(r"ot tested: (\d+) more claims of the suite gate: ((?:[\w-]+, )*[\w-]+)")
OF_THE_SUITE = """
import pytest

@pytest.mark.claim("survivability")
async def test_it(judge):
    assert judge.decide()
"""


@pytest.mark.parametrize("suite", [[], GATE], ids=["without a suite", "with a suite"])
@pytest.mark.parametrize("named", [["answer"], ["ans*"], ["answer", "answer"]])
def test_it_alone_passes(gate: Gate, suite: list[str], named: list[str]) -> None:
    gate.fake_cockroach(VERSION)
    options = [word for name in named for word in ("--claim", name)]
    ran = gate(*gate.tests("passes", "inconclusive", "ordinary_failure"), *options, *suite)
    assert ran.status == 0, ran.text
    assert ran.verdicts() == ["answer  PASS"]
    assert "not tested" not in ran.text
    assert "RUN PASSED: 1 claim" in ran.lines, "no gate is passed by a part of it"


def test_the_others_are_not_required_and_it_is(gate: Gate) -> None:
    gate.fake_cockroach(VERSION)
    ran = gate(*gate.tests("passes"), "--claim", "question", *GATE)
    assert ran.status == 6
    assert "RUN NOT PASSED: 1 not decided (question)" in ran.lines


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--claim", "anwser"], "--claim anwser: no claim is called so; did you mean 'answer'?"),
        (["--claim", "z*"], "--claim z*: no claim is called so; there are "),
        (
            ["--claim", "tenancy-isolation", "--suite", "gate"],
            "--claim tenancy-isolation: is not in the suite gate; give --suite, one of nightly, paper",
        ),
        (
            ["--claim", "ycsb", "--suite", "gate"],
            "--claim ycsb: is planned, and has no test yet; --claims lists those that have",
        ),
        (
            ["--claim", "adversity", "--suite", "nightly"],
            "--claim adversity: is planned, and has no test yet; --claims lists those that have",
        ),
    ],
)
def test_what_cannot_be_chosen_is_bad_input(gate: Gate, options: list[str], told: str) -> None:
    gate.fake_cockroach(VERSION)
    ran = gate(*gate.tests("passes"), *options)
    assert ran.status == 4
    assert told in " ".join(ran.text.split())
    assert not gate.run_dir.exists()


def test_one_whose_test_is_elsewhere_is_said(gate: Gate) -> None:
    """As with a catalogue of one's own, and without the directory of its test."""
    (gate.path / "test_other.py").write_text("def test_other():\n    pass\n")
    ran = gate("test_other.py", "--claim", "question")
    assert ran.status == 4
    told = " ".join(ran.text.split())
    assert "--claim question: no test of it was found in test_other.py; give the directory" in told


@pytest.mark.parametrize(
    "left_out",
    [
        ["-k", "passes"],
        ["-m", "not claim"],
        ["--deselect", "test_claims.py"],
        ["test_claims.py::test_passes"],
    ],
    ids=["-k", "-m", "--deselect", "node id"],
)
def test_one_whose_test_is_left_out_is_not_decided(gate: Gate, left_out: list[str]) -> None:
    gate.fake_cockroach(VERSION)
    ran = gate("--claim", "question", *left_out)
    assert ran.status == 6, ran.text
    assert "1 trial is required by --claim and not chosen here: question" in ran.lines
    assert "RUN NOT PASSED: 1 not decided (question)" in ran.lines


def test_workers_choose_alike_and_a_default_keyword_steps_back(gate: Gate) -> None:
    ran = gate(
        "--claim", "answer", "--default-keyword", "nothing_is_called_so", "-k", "passes or inconclusive", "-n", "2"
    )
    assert ran.verdicts() == ["answer  PASS"]
    assert ran.status == 0, ran.text
    ran = gate(".", "--claim", "question", "--collect-only", "-q", "--default-keyword", "nothing_is_called_so")
    assert "test_inconclusive" in ran.text
    assert "test_passes" not in ran.text


def told(text: str) -> list[str]:
    """The claims that were not tested, as a report says it; their number and their names agree."""
    (found,) = TOLD.findall(" ".join(text.split()))
    claims: list[str] = found[1].split(", ")
    assert len(claims) == int(found[0])
    return claims


@pytest.mark.parametrize(
    "suite",
    [["--engine", "auto"], [*GATE, "--claim", "survivability"], [*GATE, "--claim", "survivability", "-n", "2"]],
    ids=["without a suite", "with a suite", "workers"],
)
def test_what_of_the_suite_was_not_tested_is_told_by_every_report_and_by_a_replay(gate: Gate, suite: list[str]) -> None:
    gate.fake_cockroach(VERSION)
    (gate.path / "test_claims.py").write_text(OF_THE_SUITE)
    ran = gate(*suite, "--run-dir", "out", "--junit-xml", "first.xml", "--alluredir", "first")
    left = told(ran.text)
    (followed,) = [line for line in ran.lines if line.startswith("next: ")]
    assert followed.startswith("next: for all claims run .venv/bin/tox -e gate -- ")
    assert f"--cockroach-version {VERSION} " in followed
    assert {"survivability-quorum", "parity", "rebalance"} <= {*left}
    assert not {"survivability", "answer", "question"} & {*left}
    result = json.loads((gate.run_dir / RESULT_FILE).read_text())
    assert (result["not_tested"], result["undecided"]) == (left, [])
    assert json.loads((gate.run_dir / RUN_SEAL).read_text())["not_tested"] == left
    again = gate("--judge", "out", "--junit-xml", "second.xml", "--alluredir", "second")
    texts = [again.text, *((gate.run_dir / name).read_text() for name in (SUMMARY_FILE, PAGE, JUDGED_AGAIN))]
    assert [told(text) for text in texts] == [left] * 4
    for name in ("first", "second"):
        every = [s.findall("properties/property") for s in ET.parse(gate.path / f"{name}.xml").iter("testsuite")]
        values = [p.get("value") for each in every for p in each if p.get("name") == "not tested"]
        assert values == [", ".join(left)]
        assert f"\nnot_tested={', '.join(left)}\n" in (gate.path / name / "environment.properties").read_text()


def test_without_a_suite_nothing_is_said_to_have_been_required(gate: Gate) -> None:
    told = "exit status 0: every claim that was tested passed"
    assert told in gate(*gate.tests("passes"), "--run-dir", "out").lines
    assert told in gate("--judge", "out").lines
    gate.fake_cockroach(VERSION)
    told = "exit status 0: every required claim passed"
    assert told in gate(*gate.tests("passes"), "--claim", "answer", *GATE, "--run-dir", "suite").lines
    assert told in gate("--judge", "suite").lines


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "workers"])
def test_what_was_named_and_is_left_out_is_required_without_a_suite_too(gate: Gate, workers: list[str]) -> None:
    gate.fake_cockroach(VERSION)
    named = ["--claim", "answer", "--claim", "question", "-k", "passes"]
    ran = gate(*named, *workers, "--run-dir", "out")
    assert ran.status == 6, ran.text
    assert "RUN NOT PASSED: 1 not decided (question)" in ran.lines
    if not workers:  # whose controller collects nothing
        assert "1 trial is required by --claim and not chosen here: question" in ran.lines
    assert json.loads((gate.run_dir / RESULT_FILE).read_text())["undecided"] == ["question"]
    assert gate("--judge", "out").status == 6


def test_a_family_says_which_of_it_are_of_other_suites(gate: Gate) -> None:
    gate.fake_cockroach(VERSION)
    (gate.path / "test_claims.py").write_text(OF_THE_SUITE)
    ran = gate("--claim", "survivability*", "--dry-run", "--cockroach-version", VERSION)
    told = " ".join(ran.text.split())
    assert "claims of that name not in the suite gate: " in told
    assert "survivability-pause (nightly, paper)" in told
    assert "required by --claim and not chosen here: " in told


@pytest.mark.parametrize(
    ("named", "suite"),
    [
        (["survivability-pause"], "nightly"),
        (["survivability", "survivability-pause"], "nightly"),
        (["survivability*"], "gate"),
        (["tenancy-growth"], "curve"),
    ],
)
def test_without_a_suite_the_first_one_is_taken_that_has_them(gate: Gate, named: list[str], suite: str) -> None:
    options = [word for name in named for word in ("--claim", name)]
    (gate.path / "test_claims.py").write_text(OF_THE_SUITE.replace('"survivability"', f'"{named[0].strip("*")}"'))
    ran = gate(*options, "--dry-run", "--cockroach-version", VERSION)
    assert f"suite {suite}," in " ".join(ran.text.split()), ran.text
