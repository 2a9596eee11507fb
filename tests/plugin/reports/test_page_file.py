"""When a page is written, where to, and that a verdict never depends on it."""

import os
import re
import signal
import subprocess
import sys

import pytest

from clusters.executables import sha256
from plugin.release import release
from tests.clusters.substrates.processes.process_nodes import PATIENCE_S
from tests.plugin.conftest import CHECKOUT, Gate
from tests.plugin.killed_runs import on_its_own
from tests.plugin.test_gate import SLOW, wait_for

UNWANTED = {"jinja2", "rich", "plotly", "bokeh", "altair", "hdrh"}


def test_a_session_ends_with_a_page(gate: Gate) -> None:
    for ran in (gate(*gate.tests("passes", "refuted", "sabotage"), "--run-dir", "out"),
                gate(*gate.tests("passes", "refuted", "sabotage"), "--run-dir", "again", "-n", "2")):  # fmt: skip
        assert ran.status == 1, ran.text
        (hint, place) = re.search(r"^(.*)\nreport: (\S+)$", ran.text, re.MULTILINE).groups()  # type: ignore[union-attr]
        assert hint == "what passing claims measured, and what was tuned: in the report, or with -v"
        page = (gate.path / place).read_text()
        assert place in ("out/report.html", "again/report.html")
        assert "Trials: 1 refuted, 1 pass; sabotages: 1 refuted as expected" in page
        assert "The answer is what it was said to be." in page


def test_no_claim_no_page(gate: Gate) -> None:
    for arguments in (gate.tests("ordinary"), ["--dry-run"]):
        assert "report:" not in gate(*arguments, "--run-dir", "out").text
        assert not list(gate.path.glob("**/*.html"))


def test_an_interrupted_session_has_its_page(gate: Gate) -> None:
    (gate.path / "test_claims.py").write_text(SLOW)
    with subprocess.Popen(
        gate.command("--run-dir", "out"), cwd=gate.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        preexec_fn=on_its_own,
    ) as process:  # fmt: skip
        try:
            wait_for(gate.path / "begun", process)
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert process.returncode == 2
    assert "report: out/report.html" in output.decode()
    page = (gate.run_dir / "report.html").read_text()
    assert "… ENDED EARLY" in page
    assert "the run ended early, after" in page


def test_a_page_that_cannot_be_written_changes_nothing(gate: Gate) -> None:
    (gate.path / "taken.html").mkdir()
    ran = gate(*gate.tests("passes"), "--run-dir", "out", "--report", "taken.html")
    assert ran.status == 0, ran.text
    assert re.search(
        r"^report: not written: taken\.html: .+; choose another place with --report FILE$",
        ran.text,
        re.MULTILINE,
    )
    (gate.path / "another.html").mkdir()
    again = gate("--judge", "out", "--report", "another.html")
    assert again.status == 0, again.text
    assert "report: not written: another.html: " in again.text


def test_a_stored_run_gets_another_page_and_all_of_its_own_stays(gate: Gate) -> None:
    gate(*gate.tests("passes", "refuted"), "--run-dir", "out")
    before = {path: sha256(path) for path in gate.run_dir.rglob("*") if path.is_file()}
    assert "Judged again" not in (gate.run_dir / "report.html").read_text()
    assert "Trials: 1 refuted, 1 pass" in (gate.run_dir / "report.html").read_text()
    gate.edit("claims.toml", "limit = 42", "limit = 41")
    again = gate("--judge", "out")
    assert "report: out/judged-again.html" in again.lines
    page = (gate.run_dir / "judged-again.html").read_text()
    again_by = f"Judged again by Roachproof {release()}, with its limits: "
    assert f"{again_by}2 of 2 trials differ from what was stored, 2 in the verdict itself." in page
    assert "limit of answer: was == 42.0, is == 41.0; check answer: was pass, is refuted." in page
    assert re.search(r"✘ REFUTED.+?42, must be == 41", page, re.DOTALL), "by today's limits"
    trial = gate.trials[0]
    beside = f"report: out/claims/answer/{trial.name}.html"
    assert beside in gate("--judge", str(trial)).lines, "beside the sealed evidence"
    assert "report: elsewhere/mine.html" in gate("--judge", "out", "--report", "elsewhere/mine.html").lines
    assert (gate.path / "elsewhere" / "mine.html").exists()
    assert {path: sha256(path) for path in before} == before
    gate.edit("claims.toml", "limit = 41", "limit = 42")
    assert "after the run" not in gate("--judge", "out").text
    assert f"{again_by}every verdict is as it was stored." in (gate.run_dir / "judged-again.html").read_text()
    gate.edit(
        "claims.toml", "recorded = true }]", 'recorded = true }, { metric = "mood", kind = "report", recorded = true }]'
    )
    again = gate("--judge", "out")
    assert again.text.count("same verdict as stored\n  1 check is new: mood") == 2, again.text
    page = (gate.run_dir / "judged-again.html").read_text()
    assert "limits: every verdict is as it was stored; 2 checks are new." in page
    assert page.count("Checks that are new since: mood.") == 2
    assert "differs from what was stored" not in page


def test_of_a_control_it_is_said_again_also_where_no_test_had_a_database(gate: Gate) -> None:
    live = gate(*gate.tests("passes"), "--engine", "postgres", "--run-dir", "out")
    again = gate("--judge", "out")
    for ran, page in ((live, "report.html"), (again, "judged-again.html")):
        assert "CONTROL PASSED: 1 claim" in ran.lines, ran.text
        assert ran.lines[-1].startswith("CONTROL RUN on ")
        text = (gate.run_dir / page).read_text()
        assert "<title>CONTROL PASSED: 1 claim " in text
        assert '<p class="notice" role="note">CONTROL RUN on ' in text


def test_evidence_is_never_overwritten(gate: Gate) -> None:
    gate(*gate.tests("passes"), "--run-dir", "out")
    for place, message in (
        ("out/run.json", "must be named .html, so that nothing else is overwritten"),
        (f"{gate.trials[0]}/page.html", "is sealed evidence; give a place outside of it"),
    ):
        ran = gate("--judge", "out", "--report", place)
        assert ran.status == 4
        assert message in ran.text


def test_two_runs_are_judged_and_compared(gate: Gate) -> None:
    """Of the same name even, and one given twice counts once."""
    gate(*gate.tests("passes"), "--run-dir", "a/run")
    gate(*gate.tests("refuted"), "--run-dir", "b/run")
    ran = gate("--judge", "a/run", "--judge", "b/run", "--judge", "a/run")
    assert ran.status == 1, ran.text
    assert ran.text.count("same verdict as stored") == 2
    assert "report: comparison.html" in ran.lines
    page = (gate.path / "comparison.html").read_text()
    assert "Trials: 1 refuted, 1 pass" in page
    assert f"{gate.path}/a/run" in page
    assert "tox -e gate -- --judge=a/run --judge=b/run" in page
    assert gate("--judge", "a/run", "--judge", "nowhere").status == 4


def test_the_plugin_is_light(gate: Gate) -> None:
    """Neither its import nor a session of ordinary tests brings in what only reports need."""
    code = "import sys, plugin, plugin.session, plugin.outcomes, plugin.commands, plugin.replay; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert not UNWANTED & set(done.stdout.split())
    (gate.path / "test_light.py").write_text(
        f"def test_light():\n    import sys\n    assert not {UNWANTED} & set(sys.modules)\n"
    )
    command = gate.command("test_light.py", "-p", "no:allure_pytest", "-p", "no:benchmark")
    ran = subprocess.run(command, cwd=gate.path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.skipif(os.geteuid() == 0, reason="makes a directory read-only: root may write into it all the same")
def test_a_directory_that_cannot_be_written(gate: Gate) -> None:
    gate(*gate.tests("passes"), "--run-dir", "out", "--report", "mine.html")
    gate.run_dir.chmod(0o555)
    try:
        ran = gate("--judge", "out")
    finally:
        gate.run_dir.chmod(0o755)
    assert ran.status == 0, ran.text
    assert (
        "report: not written: out/report.html: Permission denied; choose another place with --report FILE" in ran.text
    )


def test_every_table_has_a_name_and_every_heading_says_what_it_heads() -> None:
    """In all that makes tables, for those who have them read aloud; what a run shows depends on what it is of."""
    files = [
        file
        for room in ("plugin", "fixtures")
        for file in (CHECKOUT / room).rglob("*")
        if file.suffix in (".py", ".html")
    ]
    tags = [(file.name, tag) for file in files for tag in re.findall(r"<(?:table|th)\b[^>]*", file.read_text())]
    assert len(tags) > 40
    assert [each for each in tags if not re.search("aria-label=|scope=", each[1])] == []
