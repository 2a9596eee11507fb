"""A claim that holds a new version against an old one: one test for both, and none for one alone."""

import json

import pytest

from tests.plugin.conftest import Gate

TEST = '''

@pytest.mark.claim("answer")
async def test_old_and_new(trial, versions, judge):
    """The answer is what it was said to be."""
    trial.know(found=[engine.version for engine in versions])
    judge.measure("answer", 42)
    assert judge.decide()


@pytest.mark.sabotage("question")
async def test_doubted(judge):
    """Nobody asks."""
    assert judge.inconclusive(*CONDITIONS)
'''
OLD, NEW = "v24.1.3", "v24.2.0"


@pytest.fixture
def both(gate: Gate) -> Gate:
    gate.edit("claims.toml", 'sentence = "The answer', 'compares_versions = true\nsentence = "The answer')
    tests = gate.path / "test_claims.py"
    tests.write_text(tests.read_text() + TEST)
    for version in (OLD, NEW):
        gate.fake_cockroach(version)
    return gate


def asked(*versions: str) -> list[str]:
    return [word for version in versions for word in ("--cockroach-version", version)]


def test_both_versions_are_in_one_test_and_both_are_decided_by_it(both: Gate) -> None:
    ran = both(*both.tests("old_and_new"), "--suite=gate", "--run-dir=out", *asked(OLD, NEW))
    (trial,) = both.trials
    assert json.loads((trial / "trial.json").read_text())["found"] == [OLD, NEW]
    assert ran.verdicts() == ["answer  PASS"]
    assert "REQUIRED AND NOT DECIDED: answer" not in ran.text
    assert "REQUIRED AND NOT DECIDED: question" in ran.text


@pytest.mark.parametrize("versions", [(OLD,), (OLD, NEW, OLD)])
def test_one_version_or_three_are_not_evaluated_and_not_required(both: Gate, versions: tuple[str, ...]) -> None:
    ran = both(*both.tests("old_and_new"), "--suite=gate", "-rs", *asked(*versions))
    assert "not evaluated: compares two versions: give the old and the new one" in ran.text
    assert "NOT DECIDED: answer" not in ran.text


@pytest.mark.parametrize(("named", "expected"), [("history_complete", True), ("integrity", False), ("", False)])
def test_a_sabotage_of_the_measurement_names_exactly_what_is_missing(gate: Gate, named: str, expected: bool) -> None:
    tests = gate.path / "test_claims.py"
    tests.write_text(tests.read_text() + f"CONDITIONS = {[named] if named else []}\n" + TEST)
    gate.edit("claims.toml", "[claims.question]", "[claims.question]\nneeds = ['history_complete']")
    ran = gate(*gate.tests("doubted"), "--run-dir=out")
    assert ("1 passed" in ran.text) is expected, ran.text
    assert ("did not make it inconclusive by" in ran.text) is not expected
    page = (gate.run_dir / "report.html").read_text()
    assert ("INCONCLUSIVE AS EXPECTED" in page) is ("INCONCLUSIVE AS EXPECTED" in ran.text) is expected
