"""What a new claim takes is what the page says: its example runs by the page's own commands, kept anywhere."""

import json
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from clusters.cluster import Cluster
from clusters.engines import control_notice
from clusters.sql import Connection, Failure
from fixtures.fault import Faults
from fixtures.judge import Judge
from fixtures.probe import Probe
from fixtures.workloads.ledger.fixture import Ledger
from plugin import catalogue
from plugin.evidence.store import VERDICT
from plugin.reports.result_files import RESULT_FILE
from plugin.suites import EVERY
from tests.benchmarks.test_example import MOST_S
from tests.docs.commands import environment
from tests.docs.extending.pages import CHECKOUT, PAGES, counted, example, tables
from tests.plugin.conftest import Gate, gate

__all__ = ["gate"]
PAGE = "claim.md"
RUN_IN_TOX = ".venv/bin/tox -e try -- "
TIMEOUT_S = 900
"""A run takes 20 to 35 s where the machine is free."""


def commands() -> list[str]:
    """The commands that run the example and judge it again."""
    (block,) = re.findall(r"^```sh\n(.*?)^```$", (PAGES / PAGE).read_text(), re.MULTILINE | re.DOTALL)
    return str(block).splitlines()


def ran(command: str, mine: Path, run_dir: Path) -> subprocess.CompletedProcess[str]:
    """What comes of a command of the page, run from the checkout in this interpreter instead of tox's."""
    assert command.startswith(RUN_IN_TOX)
    given = shlex.split(command.removeprefix(RUN_IN_TOX))
    given = [w.replace("~/mine", str(mine)).replace(".roachproof/<run>", str(run_dir)) for w in given]
    ((program, *words),) = environment("try", given)
    assert program == "pytest"
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def charted(run: Path) -> list[tuple[str, list[Any]]]:
    """What the page calls each trial of a run, and the charts of its timeline."""
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', (run / "report.html").read_text())
    return [(trial["label"], trial["groups"]["time"]) for trial in json.loads(data)["trials"]]


@pytest.fixture
def mine(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example in a directory outside the checkout; its runs wait for no other run's clusters."""
    monkeypatch.setenv("ROACHPROOF_STATE", str(gate.path / "state"))
    home = gate.path / "elsewhere" / "mine"
    home.mkdir(parents=True)
    for name, text in example(PAGE).items():
        (home / name).write_text(text)
    return home


def test_it_passes_is_refuted_by_its_sabotage_and_is_judged_again(gate: Gate, mine: Path) -> None:
    out, junit, (run, judge) = gate.run_dir, gate.path / "junit.xml", commands()
    done = ran(f"{run} --engine postgres --run-dir {out} --junit-xml {junit}", mine, out)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    lines = [line for line in text.splitlines() if line]
    assert lines[0] == lines[-1] == control_notice(["postgres"])
    assert len(re.findall(r"^PASS +\d+ s  orders-survive  ", text, re.MULTILINE)) == 1
    assert text.count("orders-survive  REFUTED AS EXPECTED") == 1
    assert text.count("testing postgres v") == 1

    verdicts = {trial.name: json.loads((trial / VERDICT).read_text()) for trial in gate.trials}
    values = {
        name: {result["check"]["metric"]: result["measurement"]["value"] for result in verdict["results"]}
        for name, verdict in verdicts.items()
    }
    good, bad = sorted(verdicts, key=lambda name: verdicts[name]["outcome"])
    assert (verdicts[good]["outcome"], verdicts[bad]["outcome"]) == ("pass", "refuted")
    assert "unlogged" in bad
    assert values[good]["orders_missing"] == 0
    assert values[bad]["orders_missing"] > 0
    assert 0 < values[good]["repair_s"] < 60
    properties = [(p.get("name"), p.get("value")) for p in ET.parse(junit).iter("property")]
    assert [str(value).split()[0] for name, value in properties if name == "tested"] == ["postgres"] * 2
    assert len([value for name, value in properties if name == "postgres sha256"]) == 2
    assert {condition["name"] for condition in verdicts[good]["conditions"]} >= {"fault_bit", "integrity"}
    for label, charts in charted(out):
        assert re.search(r"orders-survive . postgres v\d", label)
        assert [lane["name"] for chart in charts for lane in chart["lanes"]] == ["test", "n1"]
        assert "killed" in {state["name"] for chart in charts for state in chart["lanes"][1]["states"]}
    (claim,) = json.loads((out / RESULT_FILE).read_text())["claims"]
    assert claim["seconds"] > 0

    again = ran(judge, mine, out)
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout.count("same verdict as stored") == 2
    assert again.stdout.count("(a sabotage: expected to be refuted)") == 1

    made = {path.name.replace("orders", "NAME") for path in mine.iterdir() if path.name != "__pycache__"}
    assert counted(PAGE) == dict.fromkeys(made, True)


def test_the_commands_refuse_what_is_not_there(gate: Gate, mine: Path) -> None:
    """Without a CockroachDB that was asked for they say so instead of turning green."""
    run, judge = commands()
    refused = ran(f"{run} --engine cockroach --run-dir {gate.run_dir}", mine, gate.run_dir)
    assert refused.returncode == 4
    assert refused.stderr.count("no CockroachDB to test") + refused.stdout.count("no CockroachDB to test") == 1
    missing = ran(judge, mine, gate.path / "nowhere")
    assert missing.returncode == 4
    assert "no such directory" in missing.stderr


def test_it_declares_that_it_ends_soon(mine: Path) -> None:
    """Whether it does is measured on a machine without other work: ``tests/benchmarks/test_example.py``."""
    claim = catalogue.load([mine / "claims.toml"]).claim("orders-survive")
    told = [claim.estimate_for(suite) for suite in EVERY]
    assert [one for one in told if one is None or not 0 < one.seconds <= MOST_S] == []


def test_the_page_lists_every_key() -> None:
    claims = catalogue.schema()["properties"]["claims"]["additionalProperties"]["properties"]
    for head, known in (("key", claims), ("key of a check", claims["checks"]["items"]["properties"])):
        listed = [name for row in tables(PAGE, head) for name in re.findall(r"`(\w+)`", row[0])]
        assert sorted(listed) == sorted(known)


def test_what_the_page_offers_a_test_is_there() -> None:
    conditions = [name for row in tables(PAGE, "condition for `needs`") for name in re.findall(r"`(\w+)`", row[0])]
    assert {*conditions} <= {*catalogue.KNOWN_CONDITIONS}
    failures = " ".join(row[0] for row in tables(PAGE, "exception"))
    assert {*re.findall(r"\b[A-Z]{4,}\b", failures)} == {failure.name for failure in Failure}
    assert {"SqlError", "TimedOut", "NodeDied"} == {*re.findall(r"`(\w+)`", failures)} - {one.name for one in Failure}
    given = {row[0].split()[-1].strip("`"): row[1] for row in tables(PAGE, "what a test is given")}
    for name, kind in (("cluster", Cluster), ("ledger", Ledger), ("fault", Faults), ("probe", Probe), ("judge", Judge)):
        called = {word.rpartition(".")[2] for word in re.findall(r"([\w.]+)\(", given[name])}
        assert called
        assert not [one for one in called if not hasattr(kind, one)]
    assert not [name for name in ("execute", "query", "value", "transaction") if not hasattr(Connection, name)]
