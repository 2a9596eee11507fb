"""``--judge``: the same evidence gives the same verdict, or another one for a reason that is said."""

import json
import re
import shutil
from pathlib import Path

from plugin.evidence.store import EVENTS, MANIFEST, MEASUREMENTS, TRIAL_FILE, VERDICT
from tests.plugin.conftest import Gate, edited
from tests.plugin.reports.allure_reading import by_test

SAME = "same verdict as stored"
DOUBTED = """

@pytest.mark.sabotage("question")
async def test_doubted_sabotage(judge):
    judge.measure("questions", 1)
    assert judge.inconclusive("recovered")


@pytest.mark.sabotage("question")
async def test_believed_sabotage(judge):
    judge.measure("questions", 1)
    assert judge.inconclusive("replicated_before")
"""


def run(gate: Gate, *names: str) -> dict[str, Path]:
    """A stored run of these tests; its trials by the tests' names."""
    ran = gate(*gate.tests(*names), "--run-dir", "out")
    assert len(gate.trials) == len(names), ran.text
    return {trial.name.removeprefix("test_claims-test_"): trial for trial in gate.trials}


def said(text: str) -> str:
    return " ".join(text.split())


def test_the_same_verdict(gate: Gate) -> None:
    trials = run(gate, "passes", "refuted", "inconclusive", "sabotage")
    verdicts = {trial: (trial / VERDICT).read_bytes() for trial in trials.values()}
    again = gate("--judge", "out")
    assert again.status == 1, again.text
    assert again.text.count(SAME) == 4
    assert "differs" not in again.text
    assert again.text.count("(a sabotage: expected to be refuted)") == 1
    assert {trial: (trial / VERDICT).read_bytes() for trial in trials.values()} == verdicts, "a replay writes nothing"
    assert gate("--judge", "out", "-n", "2").text == again.text
    statuses = {"passes": 0, "refuted": 1, "inconclusive": 6, "sabotage": 6}
    for name, status in statuses.items():
        one = gate("--judge", str(trials[name]))
        assert one.status == status, one.text
        assert one.text.count(SAME) == 1


def test_the_checks_of_what_passed_as_it_did_are_shown_where_they_are_asked_for(gate: Gate) -> None:
    trials = run(gate, "passes", "refuted")
    table = re.compile(r"^  answer .*== 42", re.MULTILINE)
    assert len(table.findall(gate("--judge", "out").text)) == 1, "of what is refuted"
    assert len(table.findall(gate("--judge", "out", "-v").text)) == 2
    assert len(table.findall(gate("--judge", str(trials["passes"])).text)) == 1


def test_the_page_of_a_replay_never_takes_the_place_of_the_runs_own(gate: Gate) -> None:
    assert gate(*gate.tests("passes"), "--run-dir", "out", "--report", "elsewhere/own.html").status == 0
    own = gate.path / "elsewhere" / "own.html"
    written = own.read_bytes()
    for place in ("elsewhere/own.html", "out/../elsewhere/own.html", "out/report.html"):
        again = gate("--judge", "out", "--report", place)
        assert again.status == 4
        assert "is the run's own page, which stays as it is; give another file" in said(again.text)
    assert own.read_bytes() == written
    assert not (gate.run_dir / "report.html").exists()
    assert gate("--judge", "out", "--report", "elsewhere/again.html").status == 0


def test_a_limit_that_changed_is_named_with_what_it_changes(gate: Gate) -> None:
    trials = run(gate, "passes", "refuted")
    gate.edit("claims.toml", "limit = 42", "limit = 41")
    again = gate("--judge", str(trials["passes"]))
    assert again.status == 1, again.text
    for change in (
        "differs: verdict: was pass, is refuted",
        "differs: limit of answer: was == 42.0, is == 41.0",
        "differs: check answer: was pass, is refuted",
    ):
        assert change in again.text
    assert "claim answer: REFUTED" in again.text
    assert SAME not in again.text
    other = gate("--judge", str(trials["refuted"]))
    assert other.status == 0, other.text
    assert "differs: verdict: was refuted, is pass" in other.text
    assert (
        "judged again with today's limits: 1 of 1 trial differs from what was stored, 1 in the verdict itself"
        in other.text
    )


def test_a_check_or_condition_that_changed_is_named(gate: Gate) -> None:
    run(gate, "passes")
    other = '[{ metric = "answers", comparison = ">=", limit = 1, recorded = true }]'
    gate.edit("claims.toml", '[{ metric = "answer", comparison = "==", limit = 42, recorded = true }]', other)
    again = gate("--judge", "out")
    assert again.status == 6, again.text
    assert "1 check is new: answers" in again.text
    assert "differs: check answer is gone" in again.text
    gate.edit("claims.toml", other, '[{ metric = "answer", comparison = "==", limit = 42, recorded = true }]')
    gate.edit("claims.toml", "nodes = 1\ndisturbs", 'nodes = 1\nneeds = ["fault_bit"]\ndisturbs')
    again = gate("--judge", "out")
    assert again.status == 6, again.text
    assert "differs: verdict: was pass, is inconclusive" in again.text


def tamper(trial: Path, edit: str) -> None:
    match edit:
        case "measurement":
            (trial / MEASUREMENTS).write_text((trial / MEASUREMENTS).read_text().replace("41", "42") + "\n")
        case "event":
            (trial / EVENTS).write_text((trial / EVENTS).read_text().replace('"t": ', '"t": 1'))
        case "description":
            edited(trial / TRIAL_FILE, seed=1)
        case "removed":
            (trial / EVENTS).unlink()
        case "added":
            (trial / "notes.txt").write_text("all was well")
        case "unsealed":
            (trial / MANIFEST).unlink()
        case "manifest":
            (trial / MANIFEST).write_text("{}")


def test_evidence_that_was_edited_passes_nothing(gate: Gate) -> None:
    """Whether the edit would have turned a refuted claim green or left a green one as it is."""
    problems = {
        "measurement": "measurements.jsonl was changed after the run",
        "event": "events.jsonl was changed after the run",
        "description": "trial.json was changed after the run",
        "removed": "events.jsonl is missing",
        "added": "notes.txt was added after the run",
        "unsealed": "the evidence was never sealed: the run ended early",
        "manifest": "manifest.json is unreadable",
    }
    trials = run(gate, "passes", "refuted")
    for edit in problems:
        for name, trial in trials.items():
            tamper(Path(shutil.copytree(trial, gate.path / "copies" / edit / name)), edit)
    again = gate("--judge", "copies")
    assert again.status == 6, again.text
    told = re.split(r"^(\w+/\w+)$", again.text, flags=re.MULTILINE)[1:]
    assert told[::2] == sorted(f"{edit}/{name}" for edit in problems for name in trials)
    for title, table in zip(told[::2], map(said, told[1::2]), strict=True):
        ended = "ENDED EARLY" if title.startswith("removed") else "INCONCLUSIVE"
        assert table.startswith(f"claim answer: {ended}"), title
        assert problems[title.partition("/")[0]] in table
        assert "run the claim again and leave its evidence as it was written" in table
        assert "differs: verdict: was" in table


def test_a_verdict_that_was_edited_is_noticed(gate: Gate) -> None:
    trials = run(gate, "refuted", "passes", "inconclusive")
    edited(trials["refuted"] / VERDICT, outcome="pass")
    (trials["passes"] / VERDICT).write_text("[]")
    (trials["inconclusive"] / VERDICT).write_text('{"outcome": "inconclusive", "results": [{}]}')
    again = gate("--judge", "out")
    assert again.status == 1, again.text
    assert "differs: verdict: was pass, is refuted" in again.text
    assert "differs: no verdict was stored: the run ended before it was judged" in again.text
    assert "differs: the stored verdict is not as it was written (KeyError: 'check')" in again.text
    assert SAME not in again.text


def test_what_cannot_be_read_hides_nothing_else(gate: Gate) -> None:
    trials = run(gate, "refuted", "passes")
    edited(trials["passes"] / TRIAL_FILE, schema=0)
    again = gate("--judge", "out")
    assert again.status == 1, "the other claim is refuted whatever cannot be read"
    assert "claim answer: REFUTED" in again.text
    assert "claims: 1 refuted" in again.lines
    assert "ERROR: " in again.text
    assert "evidence of schema 0; this release reads schema 1" in again.text
    page = (gate.run_dir / "judged-again.html").read_text()
    assert "every verdict is as it was stored; 1 could not be judged." in page
    assert "UNREADABLE" in page
    assert "REFUTED" in page
    shutil.rmtree(trials["refuted"])
    assert gate("--judge", "out").status == 4, "it lets nothing pass"


def test_what_is_of_another_type_is_left_out_of_every_report(gate: Gate) -> None:
    """Each is said, and no report is missing for it."""
    trials = run(gate, "refuted", "passes", "inconclusive")
    edited(trials["passes"] / TRIAL_FILE, sides={"old": True}, sentence="The answer.")
    (trials["inconclusive"] / MEASUREMENTS).write_text('{"metric": "questions", "value": 3, "note": null}\n')
    edited(gate.run_dir / "run.json", settings=[], host=True)
    again = gate("--judge", "out", "--junit-xml", "again.xml", "--alluredir", "again")
    assert again.status == 1, again.text
    assert "its metric, unit and note are not all texts" in said(again.text)
    assert "run.json was changed after the run" in said(again.text)
    assert "not written" not in again.text
    assert "The answer." in (gate.run_dir / "judged-again.html").read_text()
    assert (gate.path / "again.xml").read_text().count("<testcase ") == 3 + 1, "the trials, and the run"
    assert len(list((gate.path / "again").glob("*-result.json"))) == 3 + 1


def test_a_profile_that_is_unknown(gate: Gate) -> None:
    edited(run(gate, "passes")["passes"] / TRIAL_FILE, profile="labtop")
    again = gate("--judge", "out")
    assert again.status == 4
    assert "profile 'labtop' is unknown; did you mean 'laptop'?" in again.text


def test_what_is_no_stored_run(gate: Gate) -> None:
    trial = run(gate, "passes")["passes"]
    described = json.loads((trial / TRIAL_FILE).read_text())
    newer, broken = gate.path / "newer", gate.path / "broken"
    for directory, text in (
        (newer, json.dumps({**described, "schema": 99})),
        (broken, json.dumps({**described, "checks": None})),
    ):
        directory.mkdir()
        (directory / TRIAL_FILE).write_text(text)
    for name, message in (
        ("nowhere", "nowhere: no such directory; give a run directory or one trial of it"),
        ("claims.toml", "claims.toml: no such directory"),
        ("nothing", "nothing: holds no evidence (no trial.json); give a run directory or one trial of it"),
        ("newer", "evidence of schema 99; this release reads schema 1: judge it with the release that recorded it"),
        (
            "broken",
            "not the description of a trial (Expected `array`, got `null` - at `$.checks`); give a directory as a run "
            "wrote it",
        ),
    ):
        ran = gate("--judge", name)
        assert ran.status == 4, ran.text
        assert message in said(ran.text)
        assert "Traceback" not in ran.text


def test_a_claim_of_ones_own_without_its_catalogue(gate: Gate) -> None:
    """It is judged by the checks that were stored with it, to the same verdict."""
    trials = run(gate, "passes", "refuted", "sabotage")
    again = gate("--judge", "out", catalogue=False)
    assert again.status == 1, again.text
    assert again.text.count(SAME) == 3
    edited(trials["passes"] / TRIAL_FILE, checks=[{"metric": "answer"}])
    again = gate("--judge", str(trials["passes"]), catalogue=False)
    assert again.status == 4, again.text
    assert "its checks cannot be read" in said(again.text)
    assert "name the claim's catalogue with --catalogue FILE" in said(again.text)


def test_a_replayed_control_says_so_in_its_first_and_last_line(gate: Gate) -> None:
    trial = run(gate, "passes")["passes"]
    edited(trial / TRIAL_FILE, context={"engine": "postgres"})
    lines = [line for line in gate("--judge", "out").lines if line]
    assert lines[0] == lines[-1] == "CONTROL RUN on PostgreSQL: it says nothing about CockroachDB."


def test_a_node_that_ended_by_itself_is_judged_live_as_in_a_replay(gate: Gate) -> None:
    """Also where it ended before the test began, and no verdict could be asked for."""
    names = gate.tests("node_died_in_a_group", "node_died_in_setup")
    ran = gate(*names, "--run-dir", "out")
    assert ran.status == 1, ran.text
    assert len(re.findall(r"nodes_died +1 node  == 0 +absolute +R +REFUTED", ran.text)) >= 2
    again = gate("--judge", "out")
    assert again.status == 1, again.text
    assert again.text.count(SAME) == 2


def test_a_failure_of_the_harness_is_one_in_a_replay(gate: Gate) -> None:
    assert gate(*gate.tests("asserts", "harness"), "--run-dir", "out").status == 7
    again = gate("--judge", "out")
    assert again.status == 7, again.text
    assert again.text.count("claim question: HARNESS FAILED") == 2
    assert "HarnessError: the machine that thinks is out of order" in said(again.text)


def test_a_sabotage_is_told_by_the_ending_that_it_names(gate: Gate) -> None:
    known = 'sentence = "The question is known."\nnodes = 1\n'
    gate.edit("claims.toml", known, known + 'needs = ["recovered"]\n')
    with (gate.path / "test_claims.py").open("a") as file:
        file.write(DOUBTED)
    names = ("sabotage", "blunt_sabotage", "doubted_sabotage", "believed_sabotage")
    assert gate(*gate.tests(*names), "--run-dir", "out", "--alluredir", "live").status == 1
    again = gate("--judge", "out", "--alluredir", "judged")
    told = re.findall(r"expected to be (\w+)\)\nclaim \w+: ([A-Z ]+)$", again.text, re.MULTILINE)
    assert sorted(told) == [
        ("inconclusive", "INCONCLUSIVE AS EXPECTED"),
        ("inconclusive", "NOT AS EXPECTED"),
        ("refuted", "NOT AS EXPECTED"),
        ("refuted", "REFUTED AS EXPECTED"),
    ], again.text
    for results in map(by_test, (gate.path / "live", gate.path / "judged")):
        for name, ending in zip(names, ("refuted", "refuted", "inconclusive", "inconclusive"), strict=True):
            assert f"The claim must be {ending}." in results[name].json["descriptionHtml"], name
    page = (gate.run_dir / "report.html").read_text()
    assert re.findall(r"sabotage: expected to be (\w+)<", page).count("inconclusive") == 2


def test_a_sabotage_that_was_not_as_expected_is_not_green_beside_a_pass(gate: Gate) -> None:
    assert gate(*gate.tests("passes", "blunt_sabotage"), "--run-dir", "out").status == 1
    again = gate("--judge", "out")
    assert again.status == 6, again.text


def test_a_defect_of_the_judge_is_no_refutation_and_hides_no_other_verdict(gate: Gate) -> None:
    trials = run(gate, "passes", "inconclusive")
    (gate.path / "conftest.py").write_text(
        "from plugin import replay\n\njudge = replay.judge_trial\n\n\n"
        "def judge_trial(directory, catalogue):\n"
        "    return 1 / 0 if 'passes' in directory.name else judge(directory, catalogue)\n\n\n"
        "replay.judge_trial = judge_trial\n"
    )
    again = gate("--judge", "out")
    assert again.status == 7, again.text
    assert "claim question: INCONCLUSIVE" in again.text
    assert f"{trials['passes'].name}: the judge failed (ZeroDivisionError: division by zero)" in said(again.text)
    assert "Traceback" not in again.text
    assert gate("--judge", str(trials["passes"])).status == 7
