"""A trial on a machine that other work had is noted as such, whatever it came to, and once in each place."""

import json

from plugin.catalogue import load
from plugin.evidence.store import VERDICT
from plugin.reports.page_file import JUDGED_AGAIN, PAGE
from plugin.reports.result_files import RESULT_FILE, SUMMARY_FILE
from plugin.reports.stored_run import stored_trial
from tests.plugin.conftest import TESTS, Gate, edited

NOTE = "other work had the machine for 60 of 60 s (60 % of its CPU): times are a busy machine's"
BUSY = """

@pytest.mark.claim("answer")
@pytest.mark.parametrize("others", [60.0, 61.0, 1.0])
async def test_busy(trial, judge, others):
    busy(trial, others)
    judge.measure("answer", 42)
    assert judge.decide()
"""


def test_a_pass_is_noted_by_every_report_and_by_a_replay(gate: Gate) -> None:
    (gate.path / "test_claims.py").write_text(TESTS + BUSY)
    ran = gate("test_claims.py::test_busy[60.0]", "--run-dir", "out", "--alluredir", "allure")
    assert ran.status == 0, ran.text
    assert ran.lines.count(f"note: {NOTE}") == 1
    assert ran.text.count("other work had the machine") == 1
    told = NOTE[0].upper() + NOTE[1:]
    escaped = told.replace("'", "&#39;")
    assert (gate.run_dir / PAGE).read_text().count(f"{escaped}.") == 1
    assert f"\n- answer, test_busy[60.0]: {NOTE}.\n" in (gate.run_dir / SUMMARY_FILE).read_text()
    (row,) = json.loads((gate.run_dir / RESULT_FILE).read_text())["claims"]
    assert row["notes"] == [NOTE]
    (allure,) = (json.loads(file.read_text()) for file in (gate.path / "allure").glob("*-result.json"))
    assert f"{escaped}." in allure["descriptionHtml"]
    again = gate("--judge", "out")
    assert again.lines.count(f"  note: {NOTE}") == 1
    assert (gate.run_dir / JUDGED_AGAIN).read_text().count(f"{escaped}.") == 1


def test_of_several_one_line_has_the_first_and_the_number_and_a_free_machine_none(gate: Gate) -> None:
    (gate.path / "test_claims.py").write_text(TESTS + BUSY)
    ran = gate("test_claims.py::test_busy", "--run-dir", "out")
    assert f"note: answer: {NOTE}; summary.md has 1 more note" in " ".join(ran.text.split())
    rows = json.loads((gate.run_dir / RESULT_FILE).read_text())["claims"]
    assert [len(row["notes"]) for row in rows] == [0, 1, 1], "those of 1, 60 and 61 %"


def test_where_the_verdict_is_that_other_work_had_the_machine_it_is_not_noted_again(gate: Gate) -> None:
    (gate.path / "test_claims.py").write_text(TESTS + BUSY)
    gate("test_claims.py::test_busy[60.0]", "--run-dir", "out")
    (trial,) = gate.trials
    verdict = json.loads((trial / VERDICT).read_text())
    taken = {"name": "machine_free", "met": False, "why": "other work took 60 %"}

    def noted(why: str) -> bool:
        edited(trial / VERDICT, conditions=[*verdict["conditions"], taken], why=why)
        return bool(stored_trial(trial, load([gate.path / "claims.toml"])).notes)

    assert noted("another check is refuted")
    assert not noted("gap_s: 70 s, must be <= 60, but machine_free: other work took 60 %")
