"""The table of all ways to end a session in ``docs/exit-status.md``: each row is run here, or by the test it names."""

import json
import re
import signal
import subprocess
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from plugin.evidence.run_seal import RUN_FILE, RUN_SEAL
from plugin.evidence.store import RESULT, VERDICT
from plugin.reports.result_files import RESULT_FILE, SUMMARY_FILE
from plugin.result import HARNESS, NO_VERDICT
from plugin.trial_result import stored_result
from tests.plugin.conftest import CHECKOUT, Gate

PAGE = CHECKOUT / "docs" / "exit-status.md"
NO_TRIAL = "no trial"
VERDICT_IN_XML = "properties/property[@name='verdict']"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the table: the exit status of the session, and that of ``--judge`` on what it left."""

    how: str
    status: str
    judged: str
    tested_by: str
    """The test that runs it; empty where that is one of this file."""


def rows() -> list[Row]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.read_text().splitlines()]
    table = [each for each in cells if len(each) == 4 and set("".join(each)) != {"-"}][1:]
    return [Row(how=how, status=status, judged=judged, tested_by=by.strip("`")) for how, status, judged, by in table]


RUN_HERE: Mapping[str, Sequence[str]] = {
    "every claim passed": ["passes"],
    "a claim is refuted": ["refuted"],
    "a claim is refuted, and the test hides it": ["swallowed"],
    "a claim is inconclusive": ["inconclusive"],
    "a claim that the suite requires is not decided": ["passes"],
    "a test of a claim was skipped": ["skipped"],
    "no test was found": [],
    "bad input": ["bad_input"],
    "the harness or the machine failed": ["harness"],
    "something did not come in time while the machine had nothing left, or other work had it": ["too_late"],
    "the same, and no check of the claim is judged on this profile": ["passes", "too_late"],
    "the same, and what was recorded by then refutes a claim": ["too_late_after_a_death"],
    "a load generator was lost": ["generator_lost"],
    "a load generator was lost, and what was recorded by then refutes a claim": ["generator_lost_after_a_death"],
    "a node of the old version, with which a new one is compared, ended by itself": ["node_of_the_old_version_died"],
    "the judge has a bug": ["passes"],
    "a claim is refuted, and then the harness fails": ["refuted_then_late_harness", "refuted_then_broken"],
    "a claim would pass, and then the harness fails": ["late_harness"],
    "a claim is refuted, and the judge has a bug elsewhere": ["refuted"],
    "a test ends without a verdict": ["unjudged"],
    "a sabotage came to what it names": ["sabotage"],
    "a sabotage did not come to what it names": ["blunt_sabotage"],
    "an ordinary test failed": ["ordinary_failure"],
}
"""The tests of ``conftest.TESTS`` that a session of each row runs."""

BUG = """
from plugin import replay


def judge_trial(directory, catalogue):
    return 1 / 0


replay.judge_trial = judge_trial
"""

ONE_BUG = """
from plugin.judge import decide

measure = decide.measure


def broken(evidence, metric):
    return 1 / 0 if metric == "broken" else measure(evidence, metric)


decide.measure = broken
"""

RESTS = """
import asyncio
import pytest


@pytest.mark.claim("answer")
async def test_rests(judge, trial):
    judge.measure("answer", 42)
    await asyncio.sleep(1000)
    assert judge.decide()
"""


def judged(gate: Gate, *options: str) -> str:
    """The status of ``--judge`` on what the last session left."""
    if not gate.trials:
        return NO_TRIAL
    return str(gate("--judge", "out", *options).status)


def stored(trial: Path) -> str:
    """What is stored of a trial's end, in the words of JUnit XML."""
    found = stored_result(trial)
    assert found is not None
    if found.expected:
        return f"{found.expected} as expected"
    return HARNESS if found.outcome in NO_VERDICT else found.outcome


def told_in(xml: Path) -> dict[str, str]:
    """What JUnit XML says that each test came to; one that is refuted has a failure, whatever else went wrong.

    Pytest makes two test cases of a test that fails and then cannot clear away.
    """
    cases = [*ET.parse(xml).iter("testcase")]
    told = {str(case.get("name")): str(each.get("value")) for case in cases for each in case.iterfind(VERDICT_IN_XML)}
    failed = {str(case.get("name")) for case in cases if case.find("failure") is not None}
    assert {name for name, verdict in told.items() if verdict == "refuted"} <= failed
    return told


def broken_beside_the_answer(gate: Gate) -> None:
    """The claim has a check whose metric the judge fails over, before the one that decides it."""
    (gate.path / "conftest.py").write_text(ONE_BUG)
    check = '{ metric = "answer", comparison = "==", limit = 42, recorded = true }'
    gate.edit("claims.toml", check, f'{{ metric = "broken", kind = "report", recorded = true }}, {check}')


def test_where_the_judge_failed_is_told_and_kept(gate: Gate) -> None:
    """With a claim that is refuted all the same, one that would pass, and a sabotage that refutes what it must."""
    broken_beside_the_answer(gate)
    ran = gate(*gate.tests("refuted", "passes", "sabotage"), "--run-dir", "out")
    assert ran.status == 1, ran.text
    by_test = {trial.name.rpartition("test_")[2]: trial for trial in gate.trials}
    found = {name: json.loads((trial / RESULT).read_text())["outcome"] for name, trial in by_test.items()}
    assert found == {"refuted": "refuted", "passes": HARNESS, "sabotage": HARNESS}
    (failure,) = json.loads((by_test["passes"] / VERDICT).read_text())["failures"]
    assert (failure["what"], failure["error"]) == ("metric broken", "ZeroDivisionError: division by zero")
    assert "in broken" in failure["traceback"]
    again = gate("--judge", "out")
    assert again.status == 1
    assert "Traceback" not in again.text
    told = "the judge failed at metric broken (ZeroDivisionError: division by zero); please report it"
    for trial in gate.trials:
        assert f"ERROR: {trial}: {told}" in " ".join(again.text.split()), again.text
    assert gate("--judge", str(by_test["passes"])).status == 7


@pytest.mark.parametrize(
    ("test", "lacked"),
    [
        ("too_late", "other work took 60 % of the machine's CPU, and in 60 of 60 s"),
        ("too_late_by_its_own_doing", "for 60 of the last 60 s the machine had no CPU, disk or network left (99 % of"),
    ],
)
def test_what_the_machine_lacked_is_told_with_what_did_not_come_in_time(gate: Gate, test: str, lacked: str) -> None:
    """With the claim's result, live and judged again."""
    figures = f"the ranges of thought cannot be listed: {lacked}"
    ran = gate(*gate.tests(test), "--run-dir", "out")
    assert ran.status == 6, ran.text
    assert figures in " ".join(ran.text.split())
    (trial,) = gate.trials
    assert figures in json.loads((trial / RESULT).read_text())["why"]
    again = gate("--judge", "out")
    assert again.status == 6
    assert figures in " ".join(again.text.split())


def test_what_neither_the_machine_nor_a_lost_load_generator_explains_is_the_harness_s_failure(gate: Gate) -> None:
    ran = gate(*gate.tests("too_late_with_room", "generator_lost_and_more"), "--run-dir", "out")
    assert ran.status == 7, ran.text
    assert [json.loads((trial / RESULT).read_text())["outcome"] for trial in gate.trials] == [HARNESS, HARNESS]


def test_a_lost_load_generator_is_named_and_no_check_passes_without_it(gate: Gate) -> None:
    lost = (
        "no_errors is not met: GeneratorLost: generator 1: its connection ended (pod roachproof-generators-1-x: gone)"
    )
    ran = gate(*gate.tests("generator_lost"), "--run-dir", "out")
    assert ran.status == 6
    (trial,) = gate.trials
    assert json.loads((trial / RESULT).read_text())["why"].startswith(lost)
    assert lost in " ".join(gate("--judge", "out").text.split())


@pytest.mark.parametrize("row", [row for row in rows() if row.how in RUN_HERE], ids=lambda row: row.how)
def test_a_session_ends_as_the_table_says(gate: Gate, row: Row) -> None:
    options: list[str] = []
    if row.how == "a claim that the suite requires is not decided":
        gate.fake_cockroach("v24.1.3")
        options = ["--suite", "gate"]
    if row.how == "the judge has a bug":
        (gate.path / "conftest.py").write_text(BUG)
    if row.how == "a claim is refuted, and the judge has a bug elsewhere":
        broken_beside_the_answer(gate)
    if row.how == "the same, and no check of the claim is judged on this profile":
        claims = gate.path / "claims.toml"
        claims.write_text(claims.read_text().replace('comparison = ">=", limit = 1', 'kind = "report"'))
    tests = gate.tests(*RUN_HERE[row.how]) or ["test_claims.py", "-k", "nothing_is_called_so"]
    by_a_worker = gate(*tests, *options, "-n", "1", "--maxfail=1")
    assert str(by_a_worker.status) == row.status, by_a_worker.text
    alone = gate(*tests, *options, "-x", "--run-dir", "out", "--junit-xml", "live.xml")
    assert str(alone.status) == row.status, alone.text
    assert "INTERNALERROR" not in alone.text
    assert judged(gate, "--junit-xml", "judged.xml") == row.judged
    if gate.trials:
        live, again = told_in(gate.path / "live.xml"), told_in(gate.path / "judged.xml")
        assert live == again
        assert Counter(live.values()) == Counter(map(stored, gate.trials))


@pytest.mark.parametrize("left_none", ["skipped", "harness_before_its_trial", "ordinary_failure"])
def test_what_left_no_trial_lets_nothing_pass_beside_one_that_did(gate: Gate, left_none: str) -> None:
    """The seal knows of it, so that judging the run again does; an ordinary test is none of a claim."""
    ends = {"skipped": ("6", "6"), "harness_before_its_trial": ("7", "6"), "ordinary_failure": ("1", "0")}
    live = gate(*gate.tests("passes", left_none), "--run-dir", "out")
    assert (str(live.status), judged(gate)) == ends[left_none], live.text
    told = "REQUIRED AND NOT DECIDED: question"
    assert (told in gate("--judge", "out").text) == (left_none != "ordinary_failure")


FULL = """
import errno
import os
import re
from pathlib import Path

write_text = Path.write_text


def on_a_full_disk(path, *args, **options):
    if re.search({where!r}, str(path)):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return write_text(path, *args, **options)


Path.write_text = on_a_full_disk
"""
"""The disk has no room left for such files; the error does not name the file, as that of a real one."""
NO_ROOM = "No space left on device"
SEALED, TOLD, SUMMED = (f"/out/.{name}" for name in (RUN_SEAL, RESULT_FILE, SUMMARY_FILE))
JUDGED, CAME_TO = (f"/claims/.*/.{name}" for name in (VERDICT, RESULT))


def unbroken(text: str) -> str:
    """Without blanks and ends of lines: paths are as long as they are."""
    return "".join(text.split())


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "workers"])
@pytest.mark.parametrize("where", [SEALED, TOLD, SUMMED, CAME_TO])
@pytest.mark.parametrize("test", ["passes", "refuted"])
def test_a_disk_that_fills_passes_and_refutes_nothing(gate: Gate, workers: list[str], where: str, test: str) -> None:
    (gate.path / "conftest.py").write_text(FULL.format(where=where))
    ran = gate(*gate.tests(test), "--run-dir", "out", *workers)
    status = {"passes": 7, "refuted": 1}[test]
    assert ran.status == status, ran.text
    assert "INTERNALERROR" not in ran.text
    assert "RUN NOT PASSED: " in ran.text
    assert f"exit status {status}: " in ran.text
    told = unbroken(f"/{where.rpartition('/.')[2]} cannot be written ({NO_ROOM})") in unbroken(ran.text)
    assert told == ((where, test) != (CAME_TO, "refuted")), ran.text
    files = [(gate.run_dir / name).exists() for name in (RESULT_FILE, SUMMARY_FILE)]
    if where in (TOLD, SUMMED):
        assert files == [False, False]
    else:
        assert files == [True, True]
        assert json.loads((gate.run_dir / RESULT_FILE).read_text())["status"] == status
    if test == "passes" and where in (SEALED, CAME_TO):
        assert gate("--judge", "out").status == 6, "what it came to is not known"


@pytest.mark.parametrize("test", ["passes", "refuted"])
def test_a_verdict_that_cannot_be_stored_is_none(gate: Gate, test: str) -> None:
    (gate.path / "conftest.py").write_text(FULL.format(where=JUDGED))
    ran = gate(*gate.tests(test), "--run-dir", "out")
    assert ran.status == 7, ran.text
    assert "INTERNALERROR" not in ran.text
    assert NO_ROOM in " ".join(ran.text.split())


NO_ROOM_FOR_EVENTS = f"""
from plugin import conclusion


def record(*_):
    raise OSError(28, "{NO_ROOM}", "events.jsonl")


conclusion.record = record
"""


@pytest.mark.parametrize("test", ["harness", "late_harness", "skipped_late"])
def test_an_error_that_a_full_disk_keeps_from_the_evidence_is_none_the_less_one(gate: Gate, test: str) -> None:
    """It comes when the trial was judged, and would have passed."""
    (gate.path / "conftest.py").write_text(NO_ROOM_FOR_EVENTS)
    ran = gate(*gate.tests(test), "--run-dir", "out", "--junit-xml", "live.xml")
    assert ran.status == 7, ran.text
    assert "INTERNALERROR" not in ran.text
    assert f"events.jsonl cannot be written ({NO_ROOM})" in " ".join(ran.text.split())
    assert told_in(gate.path / "live.xml") == {f"test_{test}": HARNESS}


def test_junit_xml_that_cannot_be_written_is_said_and_is_no_refutation(gate: Gate) -> None:
    ran = gate(*gate.tests("passes"), "--run-dir", "out", "--junit-xml", "claims.toml/junit.xml")
    assert ran.status == 7, ran.text
    assert "Traceback" not in ran.text
    assert unbroken(f"ERROR: {gate.path}/claims.toml cannot be written (File exists)") in unbroken(ran.text)
    assert "exit status 7: 1 file could not be written" in ran.text


def test_a_run_that_a_disk_has_no_room_for_does_not_begin(gate: Gate) -> None:
    (gate.path / "conftest.py").write_text(FULL.format(where=f"/out/.{RUN_FILE}"))
    ran = gate(*gate.tests("passes"), "--run-dir", "out")
    assert ran.status == 4, ran.text
    told = f"ERROR: {gate.run_dir}/{RUN_FILE} cannot be written ({NO_ROOM}); give another place with --run-dir DIR"
    assert unbroken(told) in unbroken(ran.text)


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "workers"])
@pytest.mark.parametrize("row", [row for row in rows() if row.how == "SIGTERM"], ids=lambda row: row.how)
def test_a_signal_ends_a_session_as_the_table_says(gate: Gate, row: Row, workers: list[str]) -> None:
    (gate.path / "test_claims.py").write_text(RESTS)
    command = gate.command("test_claims.py", "--run-dir", "out", *workers)
    process = subprocess.Popen(command, cwd=gate.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 300
        while not list(gate.run_dir.glob("claims/*/*/measurements.jsonl")):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(getattr(signal, row.status))
        assert signal.Signals(-process.wait(300)).name == row.status
    finally:
        process.kill()
    assert judged(gate) == row.judged


def test_every_row_is_tested() -> None:
    table = rows()
    assert {row.how for row in table if not row.tested_by} == {*RUN_HERE, "SIGTERM"}
    for row in table:
        if row.tested_by:
            file, _, name = row.tested_by.partition("::")
            text = (CHECKOUT / file).read_text()
            body = re.search(rf"^def {name}\(.*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
            assert body, row.tested_by
            statuses = [
                f"signal.{status}" if status.startswith("SIG") else status for status in row.status.split(" or ")
            ]
            assert all(re.search(rf"-?\b{re.escape(status)}\b", body[0]) for status in statuses), row
