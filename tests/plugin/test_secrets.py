"""A live session full of secrets: none is in any file that it leaves, nor in what it says of a claim."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from plugin.evidence import redaction
from plugin.reports import allure_html
from tests.plugin.conftest import Gate

SECRET = "hunter2SECRET"
ORDINARY = "ord1narySECRET"
TESTS = """
import logging
import os
import sys

import allure
import pytest

from clusters.errors import BadInput, HarnessError
from plugin.evidence.events import OwnEvent

SECRET = "hunter2" + "SECRET"
DSN = f"postgresql://root:{SECRET}@db/shop"
PIN = 12345670 + 8


@pytest.fixture
def talks(record_property):
    record_property("dsn", DSN)
    record_property("password", SECRET)
    record_property("facts", {"token": SECRET})
    print(f"stdout password={SECRET}")
    print(f"stderr password={SECRET}", file=sys.stderr)
    logging.getLogger().warning("log %s", DSN)
    yield
    print(f"later password={SECRET}")


@pytest.mark.claim("answer")
async def test_raises(talks, judge):
    password = SECRET
    raise HarnessError(f"cannot connect to {DSN}")


@pytest.mark.claim("answer")
async def test_in_a_group(judge):
    try:
        raise OSError(f"--token {SECRET}")
    except OSError as error:
        raise ExceptionGroup(f"token={SECRET}", [HarnessError(DSN), ValueError(f"password: {SECRET}")]) from error


@pytest.fixture
def breaks_early(trial):
    raise OSError(f"setting up {DSN}")


@pytest.mark.claim("answer")
async def test_breaks_early(breaks_early, judge):
    assert judge.decide()


@pytest.fixture
def breaks_late(trial):
    yield
    raise OSError(f"putting away {DSN}")


@pytest.mark.claim("answer")
async def test_breaks_late(breaks_late, judge):
    judge.measure("answer", 42)
    assert judge.decide()


@pytest.mark.claim("answer")
async def test_bad_input(judge):
    raise BadInput(f"--dsn {DSN}: must be another; give --dsn")


@pytest.mark.claim("answer")
async def test_skips(judge):
    pytest.skip(f"no token={SECRET}")


@pytest.mark.skip(reason=f"no {DSN}")
@pytest.mark.claim("answer")
async def test_is_skipped(judge):
    assert judge.decide()


@pytest.mark.xfail(reason=f"with {DSN}", strict=False)
@pytest.mark.claim("answer")
async def test_is_expected_to_fail(judge):
    raise HarnessError(DSN)


@pytest.mark.claim("answer")
async def test_refuted(trial, judge):
    trial.store.event(OwnEvent(name="note", data={"dsn": DSN, "password": SECRET, "tokens_found": 3}))
    trial.say(f"connecting to {DSN}")
    trial.know(commands=["cockroach", "--token", SECRET])
    judge.measure("answer", 41, note=f"with password={SECRET}")
    assert judge.decide()


@pytest.mark.parametrize("dsn", [DSN, DSN.replace(SECRET, SECRET + "2"), "postgresql://db/shop"])
@pytest.mark.claim("answer")
async def test_parameters(talks, judge, dsn):
    judge.measure("answer", 42)
    assert judge.decide()


@pytest.mark.parametrize("password", [SECRET, SECRET + "2", PIN])
@pytest.mark.claim("answer")
async def test_named_parameters(judge, password):
    judge.measure("answer", 41)
    assert judge.decide()


@pytest.mark.parametrize("dsn", [pytest.param(1, id=f"password={SECRET}")])
@pytest.mark.claim("answer")
async def test_named_by_hand(judge, dsn):
    raise HarnessError("of no interest")


@pytest.mark.claim("answer")
async def test_attaches(judge, tmp_path):
    allure.dynamic.title(f"with password={SECRET}")
    allure.dynamic.description(DSN)
    allure.dynamic.parameter("token", SECRET)
    allure.dynamic.label("where", DSN)
    allure.dynamic.link(f"https://root:{SECRET}@db/console?{SECRET}", name=DSN)
    with allure.step(f"connect with password={SECRET}"):
        with pytest.raises(OSError), allure.step(DSN):
            raise OSError(DSN)
        allure.attach(f"password={SECRET}", f"at {DSN}")
    allure.attach(f"password={SECRET}".encode(), "bytes", allure.attachment_type.TEXT)
    allure.attach(f'{{"password": "{SECRET}", "tokens": 5}}', "json", allure.attachment_type.JSON)
    allure.attach(f"name,dsn\\nx,{DSN}\\n", "table", allure.attachment_type.CSV)
    allure.attach(b"\\x89PNG\\0 is no text", "picture", allure.attachment_type.PNG)
    (tmp_path / "a.log").write_text(f"connecting to {DSN}")
    allure.attach.file(tmp_path / "a.log", "file", allure.attachment_type.TEXT)
    judge.measure("answer", 42)
    assert judge.decide()


@pytest.mark.sabotage("answer")
async def test_sabotage(judge):
    judge.measure("answer", 42, note=DSN)
    assert judge.refuted("answer"), DSN


def test_ordinary():
    print("password=ord1narySECRET")
    assert "postgresql://root:ord1narySECRET@db/shop" == ""


@pytest.mark.parametrize("dsn", [DSN])
@pytest.mark.claim("question")
async def test_crash(judge, dsn):
    os._exit(3)
"""


def holding(directory: Path, secret: str) -> list[str]:
    """The files below a directory that hold a secret, by name or by content."""
    return [
        str(path.relative_to(directory))
        for path in sorted(directory.rglob("*"))
        if secret in str(path.relative_to(directory)) or (path.is_file() and secret.encode() in path.read_bytes())
    ]


@pytest.fixture
def secretive(gate: Gate) -> Gate:
    (gate.path / "test_claims.py").write_text(TESTS)
    return gate


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["plain", "workers"])
def test_no_secret_is_left_anywhere(secretive: Gate, workers: tuple[str, ...]) -> None:
    options = ["-v", "-l", "-rA", "-o", "junit_logging=all", "-k", "not crash"]
    ran = secretive(*options, *workers, "--run-dir", "out", "--alluredir", "out/allure", "--junit-xml", "out/junit.xml")
    assert "INTERNALERROR" not in ran.text
    assert len(secretive.trials) == 17, ran.text
    assert holding(secretive.run_dir, SECRET) == []
    assert holding(secretive.run_dir, "12345678") == []
    assert [line for line in ran.lines if SECRET in line] == []
    assert holding(secretive.run_dir, ORDINARY) == ["junit.xml"], "pytest's own words stay pytest's own"
    assert f"password={ORDINARY}" in ran.text

    # All is told, without its secrets.
    assert "HarnessError: cannot connect to postgresql://…@db/shop" in ran.text
    assert "test_parameters[postgresql://…@db/shop-1]" in ran.text
    assert "test_parameters[postgresql://…@db/shop-2]" in ran.text
    assert "test_parameters[postgresql://db/shop]" in ran.text
    cases = {
        str(case.get("name")): case for case in ElementTree.parse(secretive.run_dir / "junit.xml").iter("testcase")
    }
    failure = cases["test_raises"].find("failure")
    assert failure is not None
    assert failure.get("message") == "clusters.errors.HarnessError: cannot connect to postgresql://…@db/shop"
    properties = {p.get("name"): p.get("value") for p in cases["test_raises"].iter("property")}
    assert properties["why"] == "HarnessError: cannot connect to postgresql://…@db/shop"
    assert properties["password"] == "…"
    skipped = cases["test_skips"].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "no token=…"
    (result,) = [
        found
        for file in (secretive.run_dir / "allure").glob("*-result.json")
        if "test_attaches" in (found := json.loads(file.read_text()))["fullName"]
    ]
    bodies = {
        each["name"]: (secretive.run_dir / "allure" / each["source"]).read_bytes()
        for each in [*result["attachments"], *next(s for s in result["steps"] if "connect" in s["name"])["attachments"]]
    }  # fmt: skip
    assert bodies["at postgresql://…@db/shop"] == "password=…".encode()
    assert json.loads(bodies["json"]) == {"password": "…", "tokens": 5}
    assert bodies["picture"] == b"\x89PNG\0 is no text"
    assert bodies["file"] == "connecting to postgresql://…@db/shop".encode()

    again = secretive("--judge", "out", "--alluredir", "again", "--report", "again.html")
    assert SECRET not in again.text
    assert holding(secretive.path / "again", SECRET) == []
    assert SECRET not in (secretive.path / "again.html").read_text()
    assert "no verdict was stored" in again.text


def test_no_secret_is_in_the_name_of_a_test_that_kills_its_worker(secretive: Gate) -> None:
    ran = secretive(
        *(
            "-n",
            "2",
            "-k",
            "crash",
            "--run-dir",
            "out",
            "--alluredir",
            "out/allure",
            "--junit-xml",
            "out/j.xml",
        )
    )
    assert "the worker that ran it died" in ran.text
    assert SECRET not in ran.text
    assert holding(secretive.run_dir, SECRET) == []


def test_a_test_is_chosen_by_the_name_that_is_shown(secretive: Gate) -> None:
    listed = secretive("--collect-only", "-q", "-k", "test_parameters").text
    assert SECRET not in listed
    names = re.findall(r"^test_claims\.py::.*$", listed, re.MULTILINE)
    assert len(names) == 3
    assert "1 passed" in secretive(names[0]).text


FINDS = """
import pytest


@pytest.mark.claim("answer")
async def test_finds(cluster, judge):
    assert judge.decide()
"""


@pytest.mark.parametrize(
    "options",
    [["--suite", "gate"], ["--suite", "gate", "-n", "1"], ["--dry-run"], [], ["-n", "1"]],
    ids=" ".join,
)
def test_a_password_of_a_mirror_is_not_told(gate: Gate, monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    monkeypatch.setenv("ROACHPROOF_DOWNLOADS", f"ftp://ci:{SECRET}@mirror.example/x")
    (gate.path / "test_claims.py").write_text(FINDS)
    ran = gate("--cockroach-version", "v24.1.3", *options, "--run-dir", "out")
    assert ran.status == 4, ran.text
    assert "ROACHPROOF_DOWNLOADS" in ran.text
    assert SECRET not in ran.text
    assert holding(gate.run_dir, SECRET) == []


def test_nor_is_it_where_it_is_why_the_control_runs(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROACHPROOF_DOWNLOADS", f"https://ci:{SECRET}@mirror.example/x")
    ran = gate(*gate.tests("passes"), "--engine", "auto")
    assert ran.status == 0, ran.text
    assert "why the control: ROACHPROOF_DOWNLOADS: a user or a password in the address is not sent." in ran.text
    assert SECRET not in ran.text


def test_what_is_given_to_a_replay_or_a_report_is_hidden_there(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it was not given to the run, which has it in its evidence."""
    told = "it said wholly-harmless-words"
    gate.edit("test_claims.py", "the machine that thinks is out of order", told)
    assert told in gate(*gate.tests("harness"), "--run-dir", "out").text
    monkeypatch.setenv("DEPLOY_TOKEN", "wholly-harmless-words")
    options = ("--alluredir", "again/allure", "--junit-xml", "again/junit.xml", "--report", "again/page.html")
    again = gate("--judge", "out", *options)
    assert "it said …" in again.text
    assert "harmless" not in again.text
    assert len([*(gate.path / "again").iterdir()]) == 3
    assert holding(gate.path / "again", "harmless") == []
    gate.edit("claims.toml", "The question is known.", "The question is wholly-harmless-words.")
    listed = gate("--claims", "-v")
    assert "The question is …" in listed.text
    monkeypatch.setattr(redaction, "_GIVEN", {})
    monkeypatch.setattr(redaction, "_LEFT", {})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert allure_html.main([str(gate.run_dir)]) == 4, "there is no Node"
    results = gate.run_dir / allure_html.RESULTS
    assert [*results.glob("*-result.json")]
    assert holding(results, "harmless") == []
