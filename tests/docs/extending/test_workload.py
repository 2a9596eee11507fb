"""What a new workload takes is what the page says: its example runs, kept anywhere, on a cluster that only answers."""

import json
import re
from pathlib import Path

import pytest

from plugin.evidence.store import VERDICT
from tests.docs.extending.pages import counted, example
from tests.plugin.conftest import Gate, gate

__all__ = ["gate"]
PAGE = "workload.md"

STUB = '''
from types import SimpleNamespace

import pytest


class Connection:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc):
        pass

    async def query(self, sql):
        return [(1,)]


async def connect(node):
    return Connection()


@pytest.fixture
def cluster():
    """Instead of a real one."""
    return SimpleNamespace(nodes=("n1",), deployment=SimpleNamespace(connect=connect))
'''


@pytest.fixture
def mine(gate: Gate) -> Path:
    """The example in a directory outside the checkout and outside the one that pytest is run in."""
    files = example(PAGE)
    assert {name.replace("pings/", "NAME/") for name in files} == {*counted(PAGE), "test_pings.py"}
    home = gate.path / "elsewhere" / "mine"
    for name, text in {**files, "conftest.py": STUB}.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    return home


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_it_runs_through_gate_page_and_replay(gate: Gate, mine: Path) -> None:
    own = ("--catalogue", str(mine / "claims.toml"))
    done = gate(str(mine), *own, f"--run-dir={gate.run_dir}", catalogue=False)
    assert done.status == 0, done.text
    (trial,) = gate.trials
    verdict = json.loads((trial / VERDICT).read_text())
    assert verdict["outcome"] == "pass"
    (result,) = verdict["results"]
    assert (result["check"]["metric"], result["measurement"]["note"]) == ("slowest_ping_ms", "of 20 pings")
    assert {c["name"]: c["met"] for c in verdict["conditions"]}["pings_complete"]

    found = f"20 pings, the slowest took {result['measurement']['value']:.1f} ms"
    assert found in (gate.run_dir / "report.html").read_text()
    again = gate(*own, f"--judge={gate.run_dir}", catalogue=False)
    assert again.status == 0, again.text
    assert "same verdict as stored" in again.text
    assert found in " ".join(again.text.split())

    (trial / "pings.jsonl").write_text('{"t": 1, "ms": 2000}\nnot a ping\n')
    edited = gate(*own, f"--judge={gate.run_dir}", catalogue=False)
    assert edited.status == 6, edited.text
    assert "'not a ping' is no ping" in " ".join(edited.text.split())


def test_a_size_is_asked_for_where_a_claim_needs_it_and_before_anything_starts(gate: Gate, mine: Path) -> None:
    edit(mine / "claims.toml", "[profiles.laptop.pings]", "[profiles.small.pings]")
    own = ("--catalogue", str(mine / "claims.toml"), f"--run-dir={gate.run_dir}")
    done = gate(str(mine), *own, catalogue=False)
    assert done.status == 4, done.text
    assert "plugin/profiles.toml: profiles.laptop.pings: is missing" in " ".join(done.text.split())
    assert gate.trials == []
    other = gate(*gate.tests("passes"), *own, "--catalogue=claims.toml", catalogue=False)
    assert other.status == 0, other.text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            '"pings.workload"',
            '"pings.work"',
            r"workloads\.pings: 'pings\.work' cannot be imported \(ModuleNotFoundError: .*\)",
        ),
        ('"pings.workload"', '"json"', r"workloads\.pings: module 'json' must have a KIND"),
        ("pings =", "pongs =", r"workloads\.pongs: module .* a Workload of the name 'pongs'"),
        ("pings =", "tpcc =", r"workloads\.tpcc: plugin/catalogue/workloads\.toml declares a workload of this name"),
        ("pings =", '"my pings" =', r'workloads\."my pings": .* must be a name of small letters'),
        ("count = 20", "count = 0", r"profiles\.laptop\.pings\.count: 0 must be a whole number from 1"),
        (
            "laptop.pings",
            "laptop.pongs",
            r"profiles\.laptop\.pongs: 'pongs' must be a workload; did you mean 'pings'\?",
        ),
        ("laptop.pings", "laptop.ledger", r"profiles\.laptop\.ledger: the profile has this size already"),
    ],
    ids=[
        "no module",
        "no KIND",
        "another name",
        "a name of the suite",
        "no name",
        "a bad size",
        "an unknown workload",
        "a size again",
    ],
)
def test_what_is_wrong_is_said_with_file_and_key(gate: Gate, mine: Path, old: str, new: str, said: str) -> None:
    edit(mine / "claims.toml", old, new)
    done = gate(str(mine), "--catalogue", str(mine / "claims.toml"), "--collect-only", catalogue=False)
    assert done.status == 4, done.text
    assert re.search(f"{re.escape(str(mine / 'claims.toml'))}: {said}", " ".join(done.text.split())), done.text


def test_a_metric_has_one_meaning(gate: Gate, mine: Path) -> None:
    edit(mine / "pings" / "workload.py", '"slowest_ping_ms": MetricInfo', '"tpmc": MetricInfo')
    done = gate(str(mine), "--catalogue", str(mine / "claims.toml"), "--collect-only", catalogue=False)
    assert done.status == 4, done.text
    assert "workloads: 'tpmc' is a metric of something else already" in " ".join(done.text.split())
