"""A claim of one's own, kept anywhere: the README's own example is run, by the README's own commands."""

import json
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from clusters.engines import control_notice
from plugin.evidence.store import VERDICT
from tests.plugin.conftest import CHECKOUT, Gate

RUN_IN_TOX = ".venv/bin/tox exec -q -e gate -- pytest "
TIMEOUT_S = 240
"""A run takes 20 to 35 s."""


def readme() -> tuple[dict[str, str], list[str]]:
    """The example's files by name, and the commands below it."""
    text = (CHECKOUT / "README.md").read_text().partition("## A claim of your own\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    files = {}
    for language, block in blocks:
        if language in ("toml", "python"):
            title = re.match(r"# ~/mine/(\S+)\n", block)
            assert title, f"the block does not say in its first line which file it is:\n{block}"
            files[title[1]] = block
    (commands,) = (block.splitlines() for language, block in blocks if language == "sh")
    return files, commands


def ran(command: str, mine: Path, run_dir: Path) -> subprocess.CompletedProcess[str]:
    """What comes of a command of the README, run from the checkout in this interpreter instead of tox's."""
    assert command.startswith(RUN_IN_TOX)
    words = shlex.split(command.removeprefix(RUN_IN_TOX))
    words = [w.replace("~/mine", str(mine)).replace(".roachproof/<run>", str(run_dir)) for w in words]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def test_the_readmes_example(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """It passes, turns red under its sabotage, and is judged again to the same verdicts."""
    monkeypatch.setenv("ROACHPROOF_STATE", str(gate.path / "state"))  # it waits for no other run's clusters
    files, (run, judge) = readme()
    assert set(files) == {"claims.toml", "test_orders.py"}
    mine, out = gate.path / "elsewhere" / "mine", gate.run_dir
    mine.mkdir(parents=True)
    for name, text in files.items():
        (mine / name).write_text(text)
    junit = gate.path / "junit.xml"
    done = ran(f"{run} --engine postgres --run-dir {out} --junit-xml {junit}", mine, out)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    lines = [line for line in text.splitlines() if line]
    assert lines[0] == lines[-1] == control_notice(["postgres"])
    assert text.count("orders-survive  PASS") == text.count("orders-survive  REFUTED AS EXPECTED") == 1
    assert text.count("testing postgres v") == 1

    verdicts = {trial.name: json.loads((trial / VERDICT).read_text()) for trial in gate.trials}
    values = {
        name: {result["check"]["metric"]: result["measurement"]["value"] for result in verdict["results"]}
        for name, verdict in verdicts.items()
    }
    good, bad = sorted(verdicts, key=lambda name: verdicts[name]["outcome"], reverse=True)
    assert (verdicts[good]["outcome"], verdicts[bad]["outcome"]) == ("pass", "fail")
    assert "unlogged" in bad
    assert values[good]["orders_missing"] == 0
    assert values[bad]["orders_missing"] > 0
    assert 0 < values[good]["repair_s"] < 60
    properties = [(p.get("name"), p.get("value")) for p in ET.parse(junit).iter("property")]
    assert [str(value).split()[0] for name, value in properties if name == "tested"] == ["postgres"] * 2
    assert len([value for name, value in properties if name == "postgres sha256"]) == 2
    assert {condition["name"] for condition in verdicts[good]["conditions"]} >= {"fault_bit", "integrity"}

    again = ran(judge, mine, out)
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout.count("same verdict as stored") == 2
    assert again.stdout.count("(a sabotage: expected to be refuted)") == 1
    assert sorted(path.name for path in mine.iterdir() if path.name != "__pycache__") == sorted(files)


def test_the_readmes_commands_fit_tox_and_refuse_what_is_not_there(gate: Gate) -> None:
    """The environment they run in exists, and without a CockroachDB they say so instead of turning green."""
    assert "[testenv:gate]" in (CHECKOUT / "tox.ini").read_text()
    files, (run, judge) = readme()
    for name, text in files.items():
        (gate.path / "nothing" / name).write_text(text)
    refused = ran(f"{run} --run-dir {gate.run_dir}", gate.path / "nothing", gate.run_dir)
    assert refused.returncode == 4
    assert refused.stderr.count("no CockroachDB to test") + refused.stdout.count("no CockroachDB to test") == 1
    missing = ran(judge, gate.path / "nothing", gate.path / "nowhere")
    assert missing.returncode == 4
    assert "no such directory" in missing.stderr
