"""``--claim``: only these are run and required."""

import pytest

from tests.plugin.conftest import Gate

VERSION = "v24.1.3"
GATE = ["--suite", "gate", "--cockroach-version", VERSION]


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
            ["--claim", "tenancy-isolation"],
            "--claim tenancy-isolation: is not in the suite gate; give --suite, one of nightly, paper",
        ),
    ],
)
def test_what_cannot_be_chosen_is_bad_input(gate: Gate, options: list[str], told: str) -> None:
    ran = gate(*gate.tests("passes"), *options)
    assert ran.status == 4
    assert told in " ".join(ran.text.split())
    assert not gate.run_dir.exists()


def test_one_whose_test_is_elsewhere_is_said(gate: Gate) -> None:
    """As with a catalogue of one's own, and without the directory of its test."""
    ran = gate(*gate.tests("passes"), "--claim", "question")
    assert ran.status == 4
    told = " ".join(ran.text.split())
    assert "--claim question: no test of it was found in test_claims.py::test_passes; give the directory" in told


def test_workers_choose_alike_and_a_default_keyword_steps_back(gate: Gate) -> None:
    ran = gate(
        "--claim", "answer", "--default-keyword", "nothing_is_called_so", "-k", "passes or inconclusive", "-n", "2"
    )
    assert ran.verdicts() == ["answer  PASS"]
    assert ran.status == 0, ran.text
    ran = gate(".", "--claim", "question", "--collect-only", "-q", "--default-keyword", "nothing_is_called_so")
    assert "test_inconclusive" in ran.text
    assert "test_passes" not in ran.text
