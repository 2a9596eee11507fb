"""The gate as a user meets it: texts of verdicts, files for other tools, interruptions, and what leaves no trace."""

import re
import signal
import subprocess
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from plugin.evidence.store import EVENTS
from tests.clusters.substrates.processes.process_nodes import PATIENCE_S
from tests.plugin.conftest import Gate
from tests.plugin.killed_runs import on_its_own

SLOW = """
import asyncio
from pathlib import Path

import pytest


@pytest.mark.claim("answer")
async def test_slow(judge):
    judge.measure("answer", 42)
    Path("begun").touch()
    await asyncio.sleep(600)
    assert judge.decide()
"""


def test_a_refuted_claim_is_an_assertion_whose_text_is_the_table(gate: Gate) -> None:
    names = gate.tests("refuted", "inconclusive", "harness", "unjudged", "passes")
    ran = gate(*names, "--tb", "short", "--junit-xml", "report.xml")
    assert ran.status == 1
    cases = {case.get("name"): case for case in ET.parse(gate.path / "report.xml").iter("testcase")}
    table = cases["test_refuted"].findtext("failure", "")
    for line in (
        "claim answer: REFUTED",
        "check                           measured  limit",
        "41, must be == 42",
    ):
        assert line in table
    assert re.search(r"answer +41  == 42 +absolute +R +REFUTED", table)
    assert "end it with: assert judge.decide()" in cases["test_unjudged"].findtext("failure", "")
    assert cases["test_passes"].find("failure") is None
    properties = {p.get("name") for p in cases["test_passes"].iter("property")}
    assert {"trial", "verdict"} <= properties
    assert "HarnessError: the machine that thinks is out of order" in ran.text


def test_ordinary_tests_are_none_of_its_business(gate: Gate) -> None:
    (gate.path / "test_ordinary.py").write_text("def test_ordinary():\n    assert True\n")
    ran, bare = gate("test_ordinary.py"), gate("-p", "no:plugin", "test_ordinary.py", catalogue=False)
    assert ran.status == bare.status == 0
    assert not (gate.path / ".roachproof").exists()
    told = [line for line in ran.lines if line not in bare.lines and " passed in " not in line]
    assert re.fullmatch(r"roachproof .*, seed \d+ host: .*", " ".join(told)), told
    assert len(told) <= 3
    assert gate("-k", "nothing_of_this_name").status == 5


def test_a_plugin_that_is_absent_is_not_missed(gate: Gate) -> None:
    """The markers it adds for workers must not ask for pytest-xdist."""
    ran = gate(*gate.tests("passes"), "-p", "no:xdist")
    assert ran.status == 0, ran.text


@pytest.mark.parametrize(
    ("status", "tests", "options", "verdicts"),
    [
        (6, ["passes", "skipped"], [], ["answer  PASS", "question  SKIPPED"]),
        (6, ["skipped_in_part"], [], ["question  PASS", "question  PASS", "question  SKIPPED"]),
        (6, ["passes"], ["--profile", "adversity-15"], ["answer  NOT EVALUATED"]),
        (1, ["passes", "blunt_sabotage"], [], ["answer  NOT AS EXPECTED", "answer  PASS"]),
        (1, ["passes", "ordinary_failure"], [], ["answer  PASS"]),
    ],
)
def test_statuses(gate: Gate, status: int, tests: list[str], options: list[str], verdicts: list[str]) -> None:
    """Those that are the same with workers are in test_xdist.py."""
    ran = gate(*gate.tests(*tests), *options)
    assert ran.status == status, ran.text
    assert ran.verdicts() == verdicts
    evidence = [*gate.path.glob(".roachproof/*/claims/*/*/trial.json")]
    assert ("judge it again: " in ran.text) == bool(evidence), "there must be something to judge"


def test_a_dry_run_starts_and_writes_nothing(gate: Gate) -> None:
    gate.edit("claims.toml", "nodes = 1\ndisturbs", "nodes = 3\ndisturbs")
    (gate.path / "test_claims.py").write_text(
        "import pytest\n@pytest.mark.claim('answer')\n@pytest.mark.topology(nodes=3)\n"
        "async def test_it(engine, judge): raise SystemExit('started')\n"
    )
    ran = gate("--dry-run", "--seed", "7")
    assert ran.status == 0, ran.text
    order = [
        "would start: 3 nodes of cockroach (none at hand): n1",
        "1. think",
        "2. say the answer",
        "would disturb: Nothing is disturbed.",
        "would check:",
        "(of the run: 7)",
        "1 claim to be tested, about ",
        "no engine: ",
        "a run downloads what is lacking where it can, and ends with 4 where it cannot",
    ]
    places = [ran.text.index(text) for text in order]
    assert places == sorted(places)
    assert re.search(r"answer +== 42 +absolute, R", ran.text)
    assert not (gate.path / ".roachproof").exists()
    assert "evidence: " not in ran.text


def test_what_a_suite_requires_and_nobody_chose_is_said_before_it_runs(gate: Gate) -> None:
    gate.fake_cockroach("v24.1.3")
    gate.edit(
        "claims.toml",
        "[claims.answer]",
        "[claims.answer]\nparameters = { guess = { gate = [1, 2], nightly = [1], paper = [1] } }",
    )
    gate.edit("test_claims.py", "async def test_passes(judge", "async def test_passes(judge, guess")
    chosen = ["--suite", "gate", "--claim", "answer", "--claim", "question", "test_claims.py"]
    one = "1 trial is required by --suite gate and not chosen here: "
    for options, said in (
        (["-k", "passes"], f"{one}question"),
        (["-k", "passes[2] or inconclusive"], f"{one}answer (guess 1)"),
        (["-k", "passes or inconclusive"], ""),
    ):
        for more in ([], ["--dry-run"]):
            ran = gate(*chosen, *options, *more)
            assert "passes" in ran.text
            assert [line for line in ran.lines if "not chosen here" in line] == [said][: bool(said)], ran.text


def test_a_run_directory_is_used_once(gate: Gate) -> None:
    assert gate(*gate.tests("passes"), "--run-dir", "out").status == 0
    ran = gate(*gate.tests("passes"), "--run-dir", "out")
    assert ran.status == 4
    assert "holds the evidence of an earlier run; give an empty or new directory" in ran.text


@pytest.mark.parametrize(
    ("file", "old", "new", "arguments", "expected"),
    [
        ("claims.toml", "limit = 42", "limit = -", (), "claims.toml"),
        ("claims.toml", "nodes = 1\n", "node = 1\n", (), "did you mean 'nodes'?"),
        ("claims.toml", "claims.answer", "claims.survivability", (), "both declare the claim 'survivability'"),
        ("claims.toml", "", "", ("--profile", "lapdog"), "profile 'lapdog' is unknown; did you mean 'laptop'?"),
        ("claims.toml", "", "", ("--catalogue", "none.toml"), "none.toml"),
        (
            "test_claims.py",
            '@pytest.mark.claim("answer")',
            '@pytest.mark.clam("answer")',
            (),
            "'clam' not found in `markers`",
        ),
        (
            "test_claims.py",
            '@pytest.mark.claim("answer")\nasync def test_passes',
            '@pytest.mark.topology(nodes=4)\n@pytest.mark.claim("answer")\nasync def test_passes',
            (),
            "has 4 nodes, and claim answer at most 1 in suite gate; say nodes = 4 in ",
        ),
    ],
)
def test_bad_input(gate: Gate, file: str, old: str, new: str, arguments: tuple[str, ...], expected: str) -> None:
    gate.edit(file, old, new)
    ran = gate(*arguments)
    assert expected in ran.text
    assert ran.status == (2 if "clam" in new.split('"')[0] else 4), ran.text
    assert "Traceback" not in ran.text
    assert "passed" not in ran.text


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 2), (signal.SIGKILL, -signal.SIGKILL)])
def test_an_interrupted_run_leaves_its_evidence(gate: Gate, sent: signal.Signals, status: int) -> None:
    (gate.path / "test_claims.py").write_text(SLOW)
    command = gate.command("--run-dir", "out")
    with subprocess.Popen(
        command,
        cwd=gate.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=on_its_own,
    ) as process:
        try:
            wait_for(gate.path / "begun", process)
            process.send_signal(sent)
            output, _ = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert process.returncode == status, output.decode()
    (trial,) = gate.trials
    assert (trial / EVENTS).read_text().count('"trial.begin"') == 1
    again = gate("--judge", "out")
    assert again.status == 6, again.text
    text = " ".join(again.text.split())
    assert "no verdict was stored: the run ended before it was judged" in text
    assert "answer 42 == 42" in text, "what was measured is shown"
    assert "claim answer: ENDED EARLY" in text


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert process.poll() is None, "the run ended by itself"
        assert time.monotonic() < deadline, f"{path} did not come"
        time.sleep(0.05)


def test_a_suite_asks_for_every_trial_on_every_version(gate: Gate) -> None:
    """What was deselected, or tested on one of two versions only, is named and makes the suite undecided."""
    gate.edit(
        "claims.toml",
        'sentence = "The answer',
        'parameters.guess = { gate = [1, 2], nightly = [1], paper = [1] }\nsentence = "The answer',
    )
    for version in ("v24.1.3", "v24.2.0"):
        gate.fake_cockroach(version)
    ran = gate(
        *gate.tests("trials"), "--suite", "gate", "--deselect", "test_claims.py::test_trials[v24.2.0-1]",
        "--cockroach-version", "v24.1.3", "--cockroach-version", "v24.2.0",
    )  # fmt: skip
    assert ran.status == 6, ran.text
    assert "REQUIRED AND NOT DECIDED: answer (guess 1, v24.2.0)" in ran.text
    assert "NOT DECIDED: answer (guess 2" not in ran.text
    assert "NOT DECIDED: answer (guess 1, v24.1.3)" not in ran.text
    assert re.search(r"REQUIRED AND NOT DECIDED: question$", ran.text, re.MULTILINE)


def test_room_is_asked_for_all_the_nodes_a_claim_comes_to(gate: Gate) -> None:
    """Its test starts one node, and the claim says that there will be more in this suite."""
    gate.edit("claims.toml", "nodes = 1", "nodes = { gate = 90, nightly = 1, paper = 1 }")
    gate.fake_cockroach("v24.1.3")
    most = gate(*gate.tests("passes"), "--suite", "gate")
    assert most.verdicts() == ["answer  NOT EVALUATED"], most.text
    assert "this host cannot carry 90 nodes of profile laptop" in re.sub(r"\s+", " ", most.text)
    assert gate(*gate.tests("passes"), "--suite", "nightly").verdicts() == ["answer  PASS"]


def test_a_marker_chooses_the_hardware(gate: Gate) -> None:
    marked = '@pytest.mark.claim("answer")\n@pytest.mark.hardware(profile="PROFILE")\nasync def test_passes'
    plain = '@pytest.mark.claim("answer")\nasync def test_passes'
    gate.edit("test_claims.py", plain, marked.replace("PROFILE", "laptop"))
    assert gate(*gate.tests("passes")).status == 0
    gate.edit("test_claims.py", '"laptop"', '"medium"')
    elsewhere = gate(*gate.tests("passes"))
    assert elsewhere.status == 6
    assert "asks for the hardware of profile medium; this run has --profile laptop" in elsewhere.text
    gate.edit("test_claims.py", '"medium"', '"huge"')
    unknown = gate(*gate.tests("passes"))
    assert unknown.status == 4
    assert "profile 'huge' is unknown" in unknown.text


MARKED = """
import pytest

@pytest.mark.claim("answer")
async def test_anywhere(judge):
    judge.measure("answer", 42)
    assert judge.decide()

@pytest.mark.claim("answer")
@pytest.mark.hardware("medium")
async def test_on_medium(judge): assert judge.decide()

@pytest.mark.claim("question")
async def test_where_its_limit_holds(judge):
    judge.measure("questions", 1)
    assert judge.decide()
"""


@pytest.fixture
def marked(gate: Gate) -> Gate:
    """One claim that any profile can evaluate, one that only ``laptop`` and ``medium`` have a limit for."""
    (gate.path / "test_claims.py").write_text(MARKED)
    limit = 'kind = "profile", limit = { laptop = 1, medium = 1 }, source = "a book", mark = "S"'
    gate.edit("claims.toml", "limit = 1, recorded", f"{limit}, recorded")
    return gate


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ('hardware(profile="laptop")', ["test_anywhere", "test_where_its_limit_holds"]),
        ('hardware(profile="medium")', ["test_anywhere", "test_on_medium", "test_where_its_limit_holds"]),
        ('hardware(profile="small")', ["test_anywhere"]),
        ('not hardware(profile="small")', ["test_on_medium", "test_where_its_limit_holds"]),
    ],
)
def test_tests_are_chosen_by_the_hardware_that_can_evaluate_them(
    marked: Gate, expression: str, chosen: list[str]
) -> None:
    for more in ([], ["-n", "2"]):
        ran = marked("--collect-only", "-q", "-m", expression, *more)
        assert sorted(re.findall(r"::(test_\w+)", ran.text)) == chosen, ran.text


def test_what_is_chosen_by_hardware_agrees_with_the_profile(marked: Gate) -> None:
    fits = marked("-m", 'hardware(profile="laptop")')
    assert fits.status == 0, fits.text
    assert fits.verdicts() == ["answer  PASS", "question  PASS"]
    for expression, profile in (
        ('hardware(profile="medium")', "laptop"),
        ('claim and hardware(profile="medium")', "laptop"),
        ('not hardware(profile="laptop")', "laptop"),
        ('hardware(profile="laptop")', "medium"),
    ):
        for ran in marked.both("-m", expression, "--profile", profile, "--run-dir", "out"):
            assert ran.status == 4, ran.text
            told = " ".join(ran.text.split())
            assert f"-m {expression!r} chooses tests for other hardware than --profile {profile} is" in told
    assert not marked.run_dir.exists()
    for more in ([], ["--collect-only"]):
        for expression, told in (
            ('hardware(profile="mediun")', "profile 'mediun' is unknown; did you mean 'medium'?"),
            ('hardware(profil="medium")', "hardware takes a profile, for instance hardware(profile="),
        ):
            misspelt = marked("-m", expression, *more)
            assert misspelt.status == 4
            assert told in misspelt.text
    either = marked("-m", 'sabotage or hardware(profile="laptop")')
    assert either.verdicts() == ["answer  PASS", "question  PASS"]


def test_hardware_that_is_not_to_be_had_is_said_though_no_option_of_ours_was_given(marked: Gate) -> None:
    """The claims' tests begin the session then, in the middle of the collection."""
    for expression, told in (
        ('hardware(profile="mediun")', "did you mean 'medium'?"),
        ('hardware(profile="medium")', "chooses tests for other hardware than --profile laptop is"),
    ):
        ran = marked("-m", expression, catalogue=False)
        assert ran.status == 4, ran.text
        assert told in " ".join(ran.text.split())
        assert "INTERNALERROR" not in ran.text


def test_what_is_required_and_left_out_by_hardware_is_not_decided(marked: Gate) -> None:
    marked.fake_cockroach("v24.1.3")
    marked.edit("claims.toml", "laptop = 1, ", "")
    ran = marked("-m", 'hardware(profile="laptop")', "--suite", "gate")
    assert ran.status == 6, ran.text
    assert ran.verdicts() == ["answer  PASS"]
    assert "REQUIRED AND NOT DECIDED: question" in ran.text
