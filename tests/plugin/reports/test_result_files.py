"""What a run leaves for programs and for the page of a CI's job."""

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from plugin.reports.builds import targets_of
from plugin.reports.ending import Ended
from plugin.reports.result_files import CELL, RESULT_FILE, SUMMARY_FILE, row_of, write
from tests.plugin.conftest import Gate

DIGEST = "1f" * 32
COMMIT = "dd7980267a6ddca0175de563672faff38037786c"
TESTED = f"""
import pytest

OLD = {{"engine": "cockroach", "version": "v24.1.3", "date": "2024-08-01", "commit": "{COMMIT}", "sha256": "{DIGEST}",
       "origin": "--cockroach"}}
NEW = {{**OLD, "version": "v24.1.4", "commit": ""}}


@pytest.mark.claim("answer")
@pytest.mark.parametrize("said", [42, 41])
async def test_it(trial, judge, said):
    trial.know(context={{"engine": "cockroach"}}, fingerprint=OLD, sides={{"old": OLD, "new": NEW}})
    judge.measure("answer", said)
    assert judge.decide()


@pytest.mark.sabotage("answer")
async def test_wrong(trial, judge):
    trial.know(context={{"engine": "postgres"}}, fingerprint={{"engine": "postgres", "version": "v18.4"}})
    judge.measure("answer", 41)
    assert judge.refuted("answer")


@pytest.mark.claim("question")
async def test_skipped(judge):
    pytest.skip("not today")
"""


def test_programs_read_what_was_tested_when_and_each_check(gate: Gate) -> None:
    (gate.path / "test_claims.py").write_text(TESTED)
    before = datetime.now(UTC).replace(microsecond=0)
    gate("--run-dir", "out")
    told = json.loads((gate.run_dir / RESULT_FILE).read_text())
    started, ended = (datetime.fromisoformat(told[name]) for name in ("started", "ended"))
    assert before <= started <= ended <= datetime.now(UTC)
    common = {"engine": "cockroach", "date": "2024-08-01", "sha256": DIGEST, "origin": "--cockroach"}
    assert told["targets"] == [
        {**common, "version": "v24.1.3", "commit": COMMIT},
        {**common, "version": "v24.1.4", "commit": None},
    ], "each build once, and none of a sabotage"
    rows = {row["test"]: row for row in told["claims"]}
    assert set(rows) == {"test_it[41]", "test_it[42]", "test_skipped"}
    check = {"metric": "answer", "unit": "", "comparison": "==", "limit": 42}
    assert rows["test_it[41]"]["checks"] == [{**check, "value": 41, "outcome": "refuted"}]
    assert rows["test_it[42]"]["checks"] == [{**check, "value": 42, "outcome": "pass"}]
    assert rows["test_skipped"]["checks"] == []
    assert rows["test_it[42]"]["sentence"] == "The answer is what it was said to be."
    assert rows["test_skipped"]["sentence"] == "The question is known."


def test_where_no_trial_knew_its_database_the_targets_are_those_that_were_found(gate: Gate) -> None:
    gate.fake_cockroach("v24.1.3")
    suite = ["--suite", "gate", "--cockroach-version", "v24.1.3", "--claim", "answer"]
    gate(*gate.tests("passes"), *suite, "--run-dir", "out")
    (target,) = json.loads((gate.run_dir / RESULT_FILE).read_text())["targets"]
    assert (target["engine"], target["version"]) == ("cockroach", "v24.1.3")
    assert len(target["sha256"]) == 64


def test_of_several_programs_the_digest_is_the_server_s_and_a_build_stands_once() -> None:
    postgres = {"engine": "postgres", "version": "v18.4", "postgres_sha256": "a", "etcd_sha256": "b"}
    assert targets_of([postgres, postgres]) == [
        {"engine": "postgres", "version": "v18.4", "date": None, "commit": None, "sha256": "a", "origin": None}
    ]
    other = {**postgres, "postgres_sha256": "c"}
    assert [one["sha256"] for one in targets_of([postgres, other])] == ["a", "c"], "of one version, another build"


def test_only_judged_checks_are_told_and_counted(tmp_path: Path) -> None:
    def result(outcome: str, value: object) -> dict[str, Any]:
        check = {"metric": "m", "unit": "s", "comparison": "<=", "limit": 1.0, "kind": "absolute"}
        return {"check": check, "measurement": {"value": value}, "outcome": outcome}

    outcomes = ("pass", "refuted", "inconclusive", "reported", "not evaluated")
    verdict = {"results": [result(outcome, "inf") for outcome in outcomes]}
    trial: Any = SimpleNamespace(verdict=verdict, notes=["the machine was busy"])
    row = row_of(Ended(claim="a", test="t", outcome="refuted", why="w", seconds=1.0), trial, "A | b.")
    assert [check["outcome"] for check in row["checks"]] == ["pass", "refuted", "inconclusive"]
    assert {check["value"] for check in row["checks"]} == {"inf"}
    write(tmp_path, [row], about())
    assert "| REFUTED | a | A \\| b. | 1 of 3 | 1 | w |" in (tmp_path / SUMMARY_FILE).read_text().splitlines()
    assert (tmp_path / SUMMARY_FILE).read_text().endswith(" |\n\n- a, t: the machine was busy.\n")


def test_a_reason_in_the_summary_is_short_enough_for_a_table(tmp_path: Path) -> None:
    long = Ended(claim="a", test="t", outcome="refuted", why="a | b: " + "word " * 200, seconds=1.0)
    write(tmp_path, [row_of(long, None, "")], about())
    row = next(line for line in (tmp_path / SUMMARY_FILE).read_text().splitlines() if "REFUTED" in line)
    assert len(row) < CELL + 50 < len(long.why)
    assert row.endswith("… |")
    assert "a \\| b: word" in row
    assert json.loads((tmp_path / RESULT_FILE).read_text())["claims"][0]["why"] == long.why


def about() -> dict[str, Any]:
    """What is told of a run as a whole, as far as its summary needs it."""
    told = dict.fromkeys(("conclusion", "tested", "status_told", "profile", "suite", "suite_revision"), "x")
    return {**told, "status": 1, "seed": 7, "undecided": [], "not_tested": []}
