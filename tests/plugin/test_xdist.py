"""With workers and without: the same exit status, the same verdicts, the same words about what is refused."""

import re
from collections.abc import Sequence

import pytest

from tests.plugin.conftest import Gate


@pytest.mark.parametrize(
    ("status", "tests", "options", "verdicts"),
    [
        (0, ["passes", "sabotage"], [], ["answer  PASS", "answer  REFUTED AS EXPECTED"]),
        (
            1,
            ["refuted", "harness", "inconclusive", "node_died_in_a_group", "node_died_in_setup"],
            [],
            ["answer  REFUTED", "question  HARNESS FAILED", "question  INCONCLUSIVE", *["question  REFUTED"] * 2],
        ),
        (
            7,
            ["unjudged", "asserts", "late_harness", "harness_in_setup", "unproven_sabotage", "inconclusive"],
            [],
            ["answer  HARNESS FAILED", *["question  HARNESS FAILED"] * 4, "question  INCONCLUSIVE"],
        ),
        (6, ["passes", "inconclusive"], [], ["answer  PASS", "question  INCONCLUSIVE"]),
        (6, ["passes"], ["--suite", "gate"], ["answer  PASS"]),
        (4, ["bad_input", "refuted"], [], ["answer  REFUTED", "question  BAD INPUT"]),
    ],
    ids=["pass", "refuted", "harness", "inconclusive", "undecided", "bad-input"],
)  # fmt: skip
def test_the_same_status_and_verdicts(
    gate: Gate, status: int, tests: Sequence[str], options: Sequence[str], verdicts: list[str]
) -> None:
    gate.fake_cockroach("v24.1.3")
    for ran in gate.both(*gate.tests(*tests), *options):
        assert ran.status == status, ran.text
        assert ran.verdicts() == verdicts
        undecided = "REQUIRED AND NOT DECIDED: question" in ran.text
        assert undecided == ("--suite" in options or "bad_input" in tests)
        assert "INTERNALERROR" not in ran.text


def test_a_worker_that_dies(gate: Gate) -> None:
    ran = gate(*gate.tests("crash", "passes", "ordinary"), "-n", "2", "--run-dir", "out")
    assert ran.status == 7, ran.text
    assert ran.verdicts() == ["answer  PASS", "question  HARNESS FAILED"]
    assert "the worker that ran it died; the evidence ends there" in ran.text
    again = gate("--judge", "out/claims/question")
    assert again.status == 7, again.text
    assert "the evidence was never sealed: the run ended early" in " ".join(again.text.split())


def test_a_worker_that_dies_before_there_is_evidence(gate: Gate) -> None:
    ran = gate(*gate.tests("early_crash", "passes"), "-n", "2")
    assert ran.status == 7, ran.text
    assert ran.verdicts() == ["answer  PASS", "question  HARNESS FAILED"]
    assert "died before its evidence began" in ran.text


def test_no_cockroach_to_be_had(gate: Gate) -> None:
    (gate.path / "test_claims.py").write_text(
        "import pytest\n@pytest.mark.claim('answer')\nasync def test_it(engine, judge): assert judge.decide()\n"
    )
    for ran in gate.both():
        assert ran.status == 4, ran.text
        text = " ".join(ran.text.split())
        assert "no CockroachDB to test" in text
        assert "--cockroach PATH names a binary" in text
        assert "--engine postgres, or --engine auto" in text
        assert "Traceback" not in text
        assert ran.verdicts() == []


@pytest.mark.parametrize("problem", ["misspelt", "claimless", "unwritable"])
def test_what_cannot_be_used_is_refused_in_the_same_words(gate: Gate, problem: str) -> None:
    arguments: tuple[str, ...] = ()
    match problem:
        case "misspelt":
            gate.edit("test_claims.py", '@pytest.mark.claim("answer")', '@pytest.mark.claim("anwser")')
            expected = r"test_claims\.py:\d+: claim 'anwser' is in no catalogue; did you mean 'answer'\?"
        case "claimless":
            claims = gate.path / "tests" / "claims"
            claims.mkdir(parents=True)
            (claims / "test_stray.py").write_text("def test_stray(): pass\n")
            expected = (
                r"tests/claims/test_stray\.py:1: a test in tests/claims without a claim; add @pytest\.mark\.claim"
            )
        case "unwritable":
            (gate.path / "occupied").write_text("a file")
            arguments = (*gate.tests("passes"), "--run-dir", "occupied")
            expected = r"run directory .*occupied: cannot be written \(.+\); give another with --run-dir DIR"
    for ran in gate.both(*arguments):
        assert ran.status == 4, ran.text
        assert re.search(expected, ran.text), ran.text
        assert "Traceback" not in ran.text
        assert "passed" not in ran.text
    assert not list(gate.path.glob("**/trial.json"))


def test_progress_is_shown_for_each_worker(gate: Gate) -> None:
    (gate.path / "test_claims.py").write_text(
        "import asyncio, pytest\n"
        "@pytest.mark.claim('answer')\n"
        "async def test_it(trial, judge):\n"
        "    trial.say('thinking', 30)\n"
        "    await asyncio.sleep(1)\n"
        "    judge.measure('answer', 42)\n"
        "    assert judge.decide()\n"
    )
    plain, workers = gate.both()
    assert plain.status == workers.status == 0
    columns = r"3/4 measure left: claim +[\d:]+ run +[\d:]+"
    for ran, who in ((plain, ""), (workers, "gw[01] ")):
        lines = [
            line for line in ran.lines if re.fullmatch(rf"  \[ +\d+ s\] {columns}  {who}thinking \(test_it\)", line)
        ]
        assert len(lines) == 1, ran.text
        assert ran.lines.index(lines[0]) > next(n for n, line in enumerate(ran.lines) if line.startswith("roachproof "))


def test_an_aa_run_and_two_versions(gate: Gate) -> None:
    gate.fake_cockroach("v24.1.3")
    gate.fake_cockroach("v24.2.0")
    ran = gate(
        *gate.tests("passes"),
        "--cockroach-version=v24.1.3",
        "--cockroach-version=v24.1.3",
        "--cockroach-version=v24.2.0",
        "-n",
        "2",
        "-v",
        "--run-dir",
        "out",
    )
    assert ran.status == 0, ran.text
    assert [trial.name.partition("passes-")[2][:7] for trial in gate.trials] == [
        "v24.1.3",
        "v24.1.3",
        "v24.2.0",
    ]
    for name in ("v24.1.3#1", "v24.1.3#2", "v24.2.0"):
        assert f"PASSED test_claims.py::test_passes[{name}]" in ran.text
