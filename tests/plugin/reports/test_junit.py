"""For machines: the properties of each claim in JUnit XML, and ``verdict.json`` as its schema says."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from plugin.evidence.records import SCHEMA
from plugin.evidence.store import VERDICT
from plugin.release import release
from plugin.required import NO_CLAIM, NOT_DECIDED, NOTHING_DECIDED
from tests.plugin.conftest import CHECKOUT, Gate

SCHEMA_FILE = CHECKOUT / "plugin" / "evidence" / "verdict.schema.json"
NAMES = (
    "passes",
    "refuted",
    "inconclusive",
    "harness",
    "late_harness",
    "unjudged",
    "skipped",
    "sabotage",
    "blunt_sabotage",
)


def told(path: Path) -> dict[str, dict[str, str]]:
    """The properties of each test."""
    return {
        str(case.get("name")).removeprefix("test_"): {
            str(p.get("name")): str(p.get("value")) for p in case.iter("property")
        }
        for case in ET.parse(path).iter("testcase")
    }


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "workers"])
def test_every_claim_and_check_is_a_property(gate: Gate, workers: tuple[str, ...]) -> None:
    gate(*gate.tests(*NAMES, "ordinary"), "--junit-xml", "report.xml", "--run-dir", "out", *workers)
    said = told(gate.path / "report.xml")
    assert {name: said[name]["verdict"] for name in NAMES} == {
        "passes": "pass",
        "refuted": "refuted",
        "inconclusive": "inconclusive",
        "harness": "harness",
        "late_harness": "harness",
        "unjudged": "harness",
        "skipped": "skipped",
        "sabotage": "refuted as expected",
        "blunt_sabotage": "not as expected",
    }
    assert {said[name]["claim"] for name in ("passes", "refuted", "sabotage")} == {"answer"}
    assert said["passes"]["check.answer"] == "42 == 42: pass"
    assert said["refuted"]["check.answer"] == "41 == 42: refuted"
    assert said["inconclusive"]["check.questions"] == "- >= 1: inconclusive"
    assert said["refuted"]["why"] == "answer: 41, must be == 42"
    assert said["late_harness"]["why"] == "OSError: cannot clear away"
    assert {name for name in NAMES if "sabotage" in said[name]} == {"sabotage", "blunt_sabotage"}
    assert said["ordinary"] == {}
    judged = gate("--judge", "out", "--junit-xml", "judged/again.xml")
    assert f"JUnit XML: {gate.path}/judged/again.xml" in judged.text
    again = told(gate.path / "judged" / "again.xml")
    assert again.pop("question") == {}, "in place of the test that was skipped and left no trial"
    assert set(again) == set(NAMES) - {"skipped"}
    for name, properties in again.items():
        assert properties["verdict"] == said[name]["verdict"], name
        assert properties["claim"] == said[name]["claim"]
        checks = {key: value for key, value in said[name].items() if key.startswith("check.")}
        if name != "late_harness":  # its error came after the verdict, and a replay knows of it before
            assert checks.items() <= properties.items(), name
    cases = {
        str(case.get("name")): [e.tag for e in case if e.tag != "properties"]
        for case in ET.parse(gate.path / "judged" / "again.xml").iter("testcase")
    }
    assert cases["test_passes"] == cases["test_sabotage"] == []
    assert cases["test_refuted"] == cases["test_inconclusive"] == cases["test_blunt_sabotage"] == ["failure"]
    assert cases["test_harness"] == ["error"]
    refused = gate("--judge", "out", "--junit-xml", "out/run.json/again.xml")
    assert "JUnit XML: not written: " in refused.text


DATABASE = """
import pytest

@pytest.mark.claim("answer")
async def test_it(trial, judge):
    trial.know(context={"engine": "postgres", "version": "v16.2", "nodes": "3"})
    judge.measure("answer", 42)
    assert judge.decide()
"""


def of_suites(path: Path) -> list[dict[str, str]]:
    """The properties of each suite, its tests' aside."""
    suites = ET.parse(path).iter("testsuite")
    return [{p.get("name", ""): p.get("value", "") for p in suite.findall("properties/property")} for suite in suites]


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "workers"])
def test_the_suite_says_what_was_tested(gate: Gate, workers: tuple[str, ...]) -> None:
    (gate.path / "test_claims.py").write_text(DATABASE)
    options = ("--engine", "auto", "--seed", "7", "--run-dir", "out")
    gate(*options, "--junit-xml", "report.xml", *workers)
    told = {
        "engine": "postgres",
        "version": "v16.2",
        "control": "yes",
        "seed": "7",
        "profile": "laptop",
        "suite": "gate",
        "substrate": "processes",
        "run directory": str(gate.run_dir),
    }
    told["conclusion"] = "CONTROL PASSED: 1 claim"
    told["Roachproof"] = json.loads((gate.run_dir / "run.json").read_text())["suite_revision"]
    assert of_suites(gate.path / "report.xml") == [told]
    assert json.loads((gate.run_dir / "result.json").read_text())["suite_revision"] == told["Roachproof"]
    gate("--judge", "out", "--junit-xml", "again.xml")
    assert of_suites(gate.path / "again.xml") == [{**told, "judged by": f"Roachproof {release()}"}]


def test_where_nothing_ran_the_suite_says_what_was_asked_for(gate: Gate) -> None:
    gate(*gate.tests("harness"), "--seed", "7", "--run-dir", "out", "--junit-xml", "report.xml")
    (told,) = of_suites(gate.path / "report.xml")
    assert told["conclusion"].startswith("RUN NOT PASSED: 1 harness failed (question)")
    assert (told["engine"], told["version"], told["control"]) == ("cockroach", "", "no")


def errors_in(path: Path) -> dict[str, str]:
    """The cases that are errors, with their messages."""
    cases = [*ET.parse(path).iter("testcase")]
    return {str(c.get("name")): str(e.text or e.get("message")) for c in cases for e in c.iterfind("error")}


NOTHING = {NOTHING_DECIDED: NO_CLAIM}
REPORTED_ONLY = """

@pytest.mark.claim("reported")
async def test_reports(judge):
    judge.measure("answer", 42)
    assert judge.decide()
"""


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "workers"])
@pytest.mark.parametrize(
    ("tests", "options", "errors", "judged"),
    [
        (["passes", "skipped"], [], {"question": NOT_DECIDED}, {"question": NOT_DECIDED}),
        (["passes", "skipped_late"], [], {"question": NOT_DECIDED}, {"question": NOT_DECIDED}),
        (["skipped"], [], {"question": NOT_DECIDED}, None),
        (["skipped_late"], [], {"question": NOT_DECIDED}, {"question": NOT_DECIDED}),
        (["skipped_in_part"], [], {"question": NOT_DECIDED}, {"question": NOT_DECIDED}),
        (["passes"], ["--profile", "adversity-15"], NOTHING, None),
        (["reports"], [], NOTHING, NOTHING),
        (["sabotage"], [], {}, NOTHING),
        (["passes", "reports"], [], {}, {}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_what_lets_nothing_through_is_an_error_live_and_in_a_replay(
    gate: Gate,
    workers: tuple[str, ...],
    tests: list[str],
    options: list[str],
    errors: dict[str, str],
    judged: dict[str, str] | None,
) -> None:
    """No report is green where the exit status is 6."""
    with (gate.path / "claims.toml").open("a") as file:
        file.write(
            '\n[claims.reported]\nsentence = "It is reported."\nnodes = 1\n'
            'checks = [{ metric = "answer", kind = "report", recorded = true }]\n'
        )
    with (gate.path / "test_claims.py").open("a") as file:
        file.write(REPORTED_ONLY)
    where = ("--run-dir", "out", "--junit-xml", "live.xml", "--alluredir", "live")
    live = gate(*gate.tests(*tests), *options, *where, *workers)
    assert live.status == (6 if errors else 0), live.text
    assert errors_in(gate.path / "live.xml") == errors
    assert broken_in(gate.path / "live") == errors
    (told,) = of_suites(gate.path / "live.xml")
    if judged is None:
        assert not gate.trials
        return
    again = gate("--judge", "out", "--junit-xml", "again.xml", "--alluredir", "again")
    assert again.status == (6 if judged else 0), again.text
    assert errors_in(gate.path / "again.xml") == judged
    assert broken_in(gate.path / "again") == judged
    assert of_suites(gate.path / "again.xml")[0].get("conclusion") == told.get("conclusion")
    assert ("conclusion" in told) == (tests != ["sabotage"])


def broken_in(directory: Path) -> dict[str, str]:
    """The names of Allure's broken results, with what is said of each."""
    found = [json.loads(file.read_text()) for file in directory.glob("*-result.json")]
    return {one["name"]: one["statusDetails"]["message"] for one in found if one["status"] == "broken"}


def test_a_test_whose_worker_died_says_so(gate: Gate) -> None:
    gate(*gate.tests("crash", "passes"), "--junit-xml", "report.xml", "-n", "2")
    said = told(gate.path / "report.xml")
    assert (said["crash"]["claim"], said["crash"]["verdict"]) == ("question", "harness")
    assert said["crash"]["why"].startswith("the worker that ran it died")
    assert said["passes"]["verdict"] == "pass"


def test_what_cannot_be_evaluated_here_says_so(gate: Gate) -> None:
    gate(*gate.tests("passes"), "--profile", "adversity-15", "--junit-xml", "report.xml")
    assert told(gate.path / "report.xml")["passes"]["verdict"] == "not evaluated"


REPORTED = """
import pytest


@pytest.mark.claim("shown")
async def test_not_evaluated(judge):
    judge.measure("shown", 1)
    assert judge.decide()


@pytest.mark.claim("answer")
async def test_endless(judge):
    judge.measure("answer", float("inf"), note="never came back")
    assert judge.decide()
"""


def test_verdicts_are_as_their_schema_says(gate: Gate) -> None:
    """Of every outcome, made by real runs, and with a number that JSON has none for."""
    jsonschema = pytest.importorskip(
        "jsonschema", reason="validates against a JSON Schema: jsonschema is not installed (group test)"
    )
    schema: dict[str, Any] = json.loads(SCHEMA_FILE.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    (gate.path / "test_more.py").write_text(REPORTED)
    with (gate.path / "claims.toml").open("a") as file:
        file.write(
            '\n[claims.shown]\nsentence = "It is shown."\nnodes = 1\n'
            'checks = [{ metric = "shown", kind = "report", recorded = true }]\n'
        )
    names = gate.tests("passes", "refuted", "inconclusive", "sabotage", "node_died_in_setup")
    ran = gate(*names, "test_more.py", "--run-dir", "out")
    verdicts = [strictly((trial / VERDICT).read_text()) for trial in gate.trials]
    assert {v["outcome"] for v in verdicts} == {"pass", "refuted", "inconclusive", "not evaluated"}, ran.text
    assert len(verdicts) == 7
    for verdict in verdicts:
        validator.validate(verdict)
        assert verdict["schema"] == SCHEMA
    (endless,) = (v for v in verdicts if v["results"][0]["measurement"]["value"] == "inf")
    assert endless["outcome"] == "inconclusive"
    assert "inf" in gate("--judge", "out").text
    assert "differs" not in gate("--judge", "out").text
    wrongs: tuple[dict[str, Any], ...] = (
        {"outcome": "green"},
        {"results": [{}]},
        {"colour": 1},
        {"why": None},
    )
    for wrong in wrongs:
        assert not validator.is_valid({**verdicts[0], **wrong}), wrong


def strictly(text: str) -> dict[str, Any]:
    """As a reader that knows JSON and nothing more."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    found: dict[str, Any] = json.loads(text, parse_constant=refuse)
    return found
