"""Allure's results of stored runs: what a reader is told, and evidence that is not as it should be."""

import csv
import io
import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from clusters.errors import BadInput
from plugin.catalogue import load
from plugin.evidence.events import OwnEvent
from plugin.evidence.run_seal import RUN_FILE
from plugin.evidence.store import EVENTS, TRIAL_FILE, VERDICT, TrialStore
from plugin.replay import conclude
from plugin.reports import allure_html, allure_results
from plugin.reports.page import write_page
from plugin.reports.stored_run import NOT_AS_LEFT, stored_run
from plugin.required import NOT_DECIDED
from tests.plugin.conftest import edited
from tests.plugin.reports.allure_reading import again, everything, read, written
from tests.plugin.reports.samples import run_of, trial_of

SECRETS = ("hunter2hunter2", "MIIEvQIBADANBgkqhkiG9w0", "tok3n-of-mine-123456", "sl-k3y-p4th")
NASTY = """<script>alert("x")</script> 'quoted' "twice" 🪳 $x^2$"""


def test_what_a_reader_of_a_pass_is_told(tmp_path: Path) -> None:
    (result,) = written(tmp_path, {"began_ms": 1_700_000_000_000})
    assert result.json["status"] == "passed", result.message
    assert result.labels["epic"] == "Survivability"
    assert result.labels["severity"] == "blocker"
    assert result.labels["owner"] == "platform"
    assert result.labels["version"] == "v24.1.3"
    assert result.labels["profile"] == "laptop"
    assert result.parameters == {"inserts": "2000", "engine": "cockroach", "profile": "laptop"}
    text = result.json["descriptionHtml"]
    for told in (
        "Every acknowledged insert",
        "thesis, 5.4 (RQ4), table 5.6",
        "What would refute it",
        "PASS: ",
        "cockroach v24.1.3",
        "kill n1 from 18.0 to 30.0 s",
    ):
        assert told in text, told
    assert '<th scope="row">thesis printed</th><td>2000</td>' in text

    phases = result.steps[:6]
    assert [step["name"].split(":")[0] for step in phases] == [
        "Provision",
        "Load",
        "Disturb",
        "Heal",
        "Load",
        "Audit",
    ]
    disturb = phases[2]
    assert disturb["name"] == "Disturb: kill n1"
    assert (disturb["start"], disturb["stop"]) == (1_700_000_020_000, 1_700_000_028_000)
    assert [step["name"] for step in disturb["steps"]] == ["18.0 s  fault.begin", "18.1 s  fault.bit"]
    conditions, checks = result.steps[6:]
    assert conditions["status"] == checks["status"] == "passed"
    lost = next(step for step in checks["steps"] if step["name"].startswith("lost: 0 rows, must be == 0 rows"))
    facts = {each["name"]: each["value"] for each in lost["parameters"]}
    assert facts["measured"] == "0 rows"
    assert facts["limit"] == "== 0 rows"
    assert facts["kind"] == "absolute"
    assert facts["mark"].startswith("S")
    assert facts["source"].startswith("thesis, 5.4")

    assert result.names == [
        "Timeline",
        "Timeline, second by second",
        "Source beside measurement: table 5.6",
        "Audit of rows",
        "Plan and seed",
        "verdict.json",
    ]
    rows = list(csv.DictReader(io.StringIO(result.attached("Timeline, second by second"))))
    assert len(rows) == 60
    assert rows[10]["acknowledged writes"] == "100"
    assert rows[21]["fault"] == "kill n1"
    assert rows[21]["node n1"] == "killed"
    assert int(rows[21]["errors"]) > 0
    paper = list(csv.reader(io.StringIO(result.attached("Source beside measurement: table 5.6"))))
    assert paper[1][0] == "thesis printed"
    assert [row[0] for row in paper[-3:]] == ["set-up of the thesis", "set-up here", "what differs"]
    assert paper[-2][1].endswith("2 cores, 8 GiB memory, Linux")
    audit = {row["what"]: row for row in csv.DictReader(io.StringIO(result.attached("Audit of rows")))}
    assert audit["stale"]["counted"] == "0 reads", "in the check's unit"
    assert audit["indeterminate"]["counted"].endswith(" operations")
    assert audit["lost"]["limit"] == "must be == 0"
    assert not [cell for row in audit.values() for cell in row.values() if cell.startswith(("=", "+", "@"))]
    assert json.loads(result.attached("Plan and seed"))["trial"]["seed"] == 7
    assert json.loads(result.attached("verdict.json"))["outcome"] == "pass"


def test_the_picture(tmp_path: Path) -> None:
    (result,) = written(
        tmp_path,
        {
            "seconds": 1500,
            "nodes": 4,
            "rate": 20,
            "faults": [("kill", "n1", 20), ("pause", "n2", 1000)],
            "judged": False,
        },
    )
    picture = result.attached("Timeline")
    assert len(picture) < 700_000
    root = ElementTree.fromstring(picture)
    text = " ".join("".join(each.itertext()) for each in root.iter() if each.tag.endswith("text"))
    for shown in (
        "Acknowledged writes a second",
        "Latency of the probe",
        "Operations a second of load and probe that failed",
        "20:00",
        "kill n1",
        "pause n2",
        "baseline",
        "p99",
        "n4",
        "frozen",
    ):
        assert shown in text, shown
    assert "$" not in text


def test_refuted_with_the_logs_of_its_nodes_around_the_fault(tmp_path: Path) -> None:
    began = 1_700_000_000_000  # 2023-11-14 22:13:20 UTC
    run = run_of(tmp_path / "run", trials=[{"began_ms": began, "judged": False}])
    trial = next(run.glob("claims/*/*"))
    final = trial / "ledger-final.tsv"
    final.write_text(re.sub(r"^R\t10\t1\t\w+$", f"R\t10\t1\t{'f' * 32}", final.read_text(), flags=re.MULTILINE))
    logs = trial / "logs" / "n1"
    logs.mkdir(parents=True)
    lines = [
        "I231114 22:13:21.000000 1 long before the fault",
        "I231114 22:13:38.000000 1 just before it",
        "goroutine 1 [running] belongs to the line before",
        "W231114 22:13:41.000000 1 raft is slow",
        *(f"I231114 22:13:45.{number:06} 1 chatter" for number in range(5000)),
        "E231114 22:13:50.000000 1 the end of it",
        "I231114 22:15:00.000000 1 long after",
    ]
    (logs / "cockroach.log").write_text("\n".join(lines) + "\n")
    (logs / "cockroach-pebble.log").write_text("compaction\n")
    (logs / "link.log").symlink_to(logs / "cockroach.log")
    from plugin.replay import conclude

    conclude(trial, load())
    (result,) = again(tmp_path, run)
    assert result.json["status"] == "failed"
    assert result.message.startswith("REFUTED: altered: 1 row, must be == 0"), result.message
    (checks,) = [step for step in result.steps if step["name"].startswith("Checks: ")]
    altered = next(step for step in checks["steps"] if step["name"].startswith("altered: 1 row"))
    assert checks["status"] == altered["status"] == "failed"
    assert "key 10: " in result.attached("Audit of rows")
    text = result.attached("Log of node n1")
    for shown in (
        "just before it",
        "goroutine 1 [running] belongs",
        "raft is slow",
        "the end of it",
        "lines left out",
    ):
        assert shown in text, shown
    assert "long before" not in text
    assert "long after" not in text
    assert "compaction" not in text
    assert len(text.splitlines()) < 310


def test_half_written_evidence_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", trials=[{"judged": False}])
    trial = next(run.glob("claims/*/*"))
    (trial / "manifest.json").unlink()
    lines = (trial / EVENTS).read_text().splitlines(keepends=True)
    until = next(number for number, line in enumerate(lines) if "fault.bit" in line)
    (trial / EVENTS).write_text("".join(lines[: until + 1]) + '{"t": 2810')
    probe = (trial / "probe.jsonl").read_text()
    (trial / "probe.jsonl").write_text(probe[: len(probe) // 2])
    (result,) = again(tmp_path, run)
    assert result.json["status"] == "broken"
    assert result.message.startswith("ENDED EARLY: ")
    assert "after fault.bit" in result.message
    assert result.steps[-1]["name"] == "Disturb: kill n1 – the evidence ends here"
    assert result.steps[-1]["status"] == "broken"
    assert "Timeline" in result.names
    assert "verdict.json" not in result.names


@pytest.mark.parametrize("broken", ["schema", "cut off", "verdict"])
def test_what_cannot_be_read(tmp_path: Path, broken: str) -> None:
    run = run_of(tmp_path / "run", trials=[{}, {}])
    trial = sorted(run.glob("claims/*/*"))[0]
    match broken:
        case "schema":
            edited(trial / TRIAL_FILE, schema=0)
            expected = "evidence of schema 0; this release reads schema 1"
        case "cut off":
            (trial / TRIAL_FILE).write_text((trial / TRIAL_FILE).read_text()[:200])
            expected = "not the description of a trial"
        case "verdict":
            (trial / VERDICT).write_text("[]")
            expected = "there is no verdict"
    results = again(tmp_path, run)
    assert sorted(r.json["status"] for r in results) == ["broken", "passed"]
    assert [r for r in results if expected in r.message]


def test_no_operation_that_succeeded_and_thousands_of_errors(tmp_path: Path) -> None:
    silent, noisy = written(
        tmp_path,
        {"silent": True, "judged": False},
        {
            "rate": 1,
            "seconds": 600,
            "faults": [("kill", "n1", 20 + 12 * n) for n in range(45)],
            "judged": False,
        },
    )
    for result in (silent, noisy):
        ElementTree.fromstring(result.attached("Timeline"))
        rows = list(csv.DictReader(io.StringIO(result.attached("Timeline, second by second"))))
        assert sum(int(row["errors"]) for row in rows) > 1000
    assert "no operation of the probe succeeded" in silent.attached("Timeline") + noisy.attached("Timeline")
    size = sum(file.stat().st_size for file in (tmp_path / "results").iterdir())
    assert size < 3_000_000


def test_names_of_any_kind(tmp_path: Path) -> None:
    (result,) = written(
        tmp_path,
        {
            "sentence": NASTY, "test": f"tests/test_x.py::test_y[{NASTY}::z]", "faults": [("kill", NASTY, 20)],
            "parameters": {"guess": NASTY}, "judged": False, "context": {"engine": "cockroach", "version": NASTY},
        },
    )  # fmt: skip
    assert "<script>" not in result.json["descriptionHtml"]
    assert "&lt;script&gt;" in result.json["descriptionHtml"]
    assert result.json["fullName"] == "tests.test_x#test_y"
    assert result.parameters["guess"] == NASTY
    root = ElementTree.fromstring(result.attached("Timeline"))
    assert not [each for each in root.iter() if each.tag.endswith("script")]
    text = (tmp_path / "results" / "environment.properties").read_text()
    assert text.isascii()
    assert "\\ud83e\\udeb3" in text


def test_no_secret_is_in_any_file(tmp_path: Path) -> None:
    password, key, token, path = SECRETS
    pem = f"-----BEGIN RSA PRIVATE KEY-----\n{key}\n{key}\n-----END RSA PRIVATE KEY-----"
    dsn = f"postgresql://maria:{password}@db:26257/shop?sslmode=verify-full&sslkey=/home/{path}"
    run = run_of(
        tmp_path / "run",
        trials=[
            {
                "judged": False,
                "tuned": [f"password = {password}"],
                "fingerprint": {
                    "commands": {"n1": ["cockroach", "start", "--token", token, f"--url={dsn}"]},
                    "api_key": token,
                },
            }
        ],
        dsn=dsn,
    )
    trial = next(run.glob("claims/*/*"))
    with (trial / EVENTS).open("a") as file:
        file.write(json.dumps({"t": 58_000_000, "event": "error", "what": f"OSError: {dsn} refused\n{pem}"}) + "\n")
        file.write(
            json.dumps({"t": 58_000_001, "event": "note", "password": password, "auth": f"Bearer {token}"}) + "\n"
        )
    logs = trial / "logs" / "n1"
    logs.mkdir(parents=True)
    (logs / "node.log").write_text(
        f"connecting to {dsn}\nALTER USER maria WITH PASSWORD '{password}'\nPGPASSWORD={password} psql\n"
        f'{{"client_secret": "{password}", "nested": "{{\\"token\\": \\"{token}\\"}}"}}\n'
        f"primary_conninfo: user=rep password={password} host=n2\n"
        f"Authorization: Bearer {token}\n{pem}\n{pem.replace(chr(10), chr(92) + 'n')}\ncookie: session={token}; x\n"
    )
    (result,) = again(tmp_path, run)
    assert result.json["status"] == "broken"
    assert "ALTER USER maria WITH PASSWORD '…'" in result.attached("Log of node n1")
    catalogue = load()
    page = write_page(tmp_path / "page.html", [stored_run(run, catalogue)], judge="").read_text()
    for text in (everything(tmp_path / "results"), page):
        assert "connecting to" in text or "OSError: postgresql" in text, "it is told, without its secrets"
        assert "maria:" not in text
        assert [secret for secret in SECRETS if secret in text] == []


def test_attached_json_stays_json(tmp_path: Path) -> None:
    fingerprint = {
        "tokens": 5,
        "password": 12345678,
        "log": 'token: x, {"secret": "y"}',
        "list": ["--token", "x"],
    }
    (result,) = written(tmp_path, {"fingerprint": fingerprint})
    shown = {"tokens": 5, "password": "…", "log": 'token: …, {"secret": "…"}', "list": ["--token", "…"]}
    assert json.loads(result.attached("Plan and seed"))["trial"]["fingerprint"] == shown
    for name in result.json["attachments"]:
        if name["type"] == "application/json":
            json.loads(result.attached(name["name"]))


def test_no_secret_gets_into_evidence_and_verdict(tmp_path: Path) -> None:
    password, _, token, path = SECRETS
    dsn = f"postgresql://maria:{password}@db:26257/shop?sslkey=/home/{path}"
    description = json.loads((trial_of(tmp_path / "like", judged=False) / TRIAL_FILE).read_text())
    store = TrialStore(
        tmp_path / "trial", {**description, "commands": ["cockroach", "--token", token], "api_key": token}
    )
    store.event(
        OwnEvent(name="error", data={"what": f"OSError: {dsn} refused", "password": password, "tokens_found": 3})
    )
    store.close()
    conclude(tmp_path / "trial", load())
    text = everything(tmp_path / "trial")
    assert "OSError: postgresql://…@db:26257/shop?…" in json.loads((tmp_path / "trial" / VERDICT).read_text())["why"]
    assert '"tokens_found":3' in text.replace(" ", "")
    assert [secret for secret in (*SECRETS, "maria:") if secret in text] == []


def test_the_history_of_a_control_is_not_that_of_cockroachdb(tmp_path: Path) -> None:
    control = {"context": {"engine": "postgres", "version": "v18.4"}, "judged": False}
    one, other = sorted(written(tmp_path, {"judged": False}, control), key=lambda r: r.labels["engine"])
    assert one.json["testCaseId"] == other.json["testCaseId"]
    assert one.json["historyId"] != other.json["historyId"]
    assert other.labels["epic"] == "Survivability (control: postgres)"
    assert "This says nothing about CockroachDB" in other.json["descriptionHtml"]


def test_categories_tell_outcomes_apart() -> None:
    rules = json.loads(allure_results.CATEGORIES.read_text())

    def category(status: str, message: str) -> str:
        return str(
            next(
                r["name"]
                for r in rules
                if status in r["matchedStatuses"] and re.fullmatch(r.get("messageRegex", ".*"), message)
            )
        )

    assert category("failed", "REFUTED: lost: 3 rows, must be == 0\nmore").startswith("Refuted")
    assert category("broken", "INCONCLUSIVE: no\nmore").startswith("Inconclusive")
    for told in (NOT_DECIDED, NOT_AS_LEFT):
        assert category("broken", told).startswith("Inconclusive")
    assert category("broken", "HARNESS FAILED: OSError").startswith("Harness")
    assert category("failed", "NOT AS EXPECTED: x").startswith("Sabotage")
    assert category("failed", "AssertionError: assert 1 == 2") == "Other tests"


def test_a_pass_costs_little(tmp_path: Path) -> None:
    """Less than 5 % of the run's duration, the first time with the plotting library's import."""
    import time

    trial_of(tmp_path / "claims" / "survivability" / "trial", seconds=90, judged=False)
    (tmp_path / RUN_FILE).write_text("{}")
    began = time.process_time()
    again(tmp_path, tmp_path)
    assert time.process_time() - began < 0.05 * 90


def test_no_run_hides_another(tmp_path: Path) -> None:
    """A refuted run beside one that passed, of the same test."""
    runs = [run_of(tmp_path / name / "run", trials=[{"judged": False}]) for name in ("a", "b")]
    catalogue = load()
    line = allure_results.write_replay(tmp_path / "both", [stored_run(run, catalogue) for run in runs], clean=False)
    assert line == f"Allure results: 2 written to {tmp_path / 'both'}"
    assert allure_html.hidden(tmp_path / "both") == 0
    once = [stored_run(runs[0], catalogue)]
    for clean, several in ((False, 1), (True, 0)):
        for _ in range(2):
            allure_results.write_replay(tmp_path / f"one-{clean}", once, clean=clean)
        assert allure_html.hidden(tmp_path / f"one-{clean}") == several
    with pytest.raises(BadInput, match="1 of its tests have several results"):
        allure_html.build(tmp_path / "one-False", None)


def test_html_shows_what_today_s_judge_says(tmp_path: Path) -> None:
    """Not what stands in a file that nothing seals, nor results of before."""
    run = run_of(tmp_path / "run")
    trial = next(run.glob("claims/*/*"))
    own, said = allure_html.results_of(run)
    assert (own.name, said) == ("allure-results", " (made from the evidence)")
    assert allure_html.results_of(run) == (own, "")
    with (trial / "ledger-final.tsv").open("a") as file:
        file.write("R\t0\t9\tffff\n")
    made, said = allure_html.results_of(run)
    assert made.name == "allure-results-judged-again"
    assert said == " (made from the evidence, since 1 of its verdicts is not what was stored)"
    (result,) = read(made)
    assert result.json["status"] == "broken"
    assert "ledger-final.tsv was changed after the run" in json.dumps(result.json)


def test_html_shows_that_a_run_is_not_as_it_was_left(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", trials=[{"judged": True}, {"judged": True}])
    own, _ = allure_html.results_of(run)
    shutil.rmtree(next(run.glob("claims/*/*")))
    made, said = allure_html.results_of(run)
    assert made != own
    assert said == " (made from the evidence, since it is not as the run left it)"
    assert sorted(result.message for result in read(made)) == ["", NOT_AS_LEFT]
