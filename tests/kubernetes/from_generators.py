"""A claim whose load comes from generators in the cluster, and a session of it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fixtures.workloads.relay import ROOT
from plugin.evidence.trailer import trailer_of
from tests.kubernetes.running import Running

CATALOGUE = """
[claims.from-generators]
sentence = "Rows that generators in the cluster were told to be written are there, and orders are consistent."
nodes = {nodes}
needs = ["integrity", "history_complete", "audit_complete"]
checks = [
    { metric = "lost", comparison = "==", limit = 0, unit = "rows" },
    { metric = "inconsistent", comparison = "==", limit = 0, unit = "violations" },
]

[claims.rows-from-generators]
sentence = "Rows that generators in the cluster were told to be written are there."
nodes = {nodes}
needs = ["integrity", "history_complete", "audit_complete"]
checks = [{ metric = "lost", comparison = "==", limit = 0, unit = "rows" }]
"""

TESTS = '''
import asyncio

import pytest

from fixtures.workloads.tpcc.loaded_cluster import Loaded, Work

pytestmark = pytest.mark.topology(nodes={nodes})


async def driven(trial, cluster, ledger, probe, meanwhile):
    """The ledger and the probe in a generator each, TPC-C in all."""
    async with ledger.writing(at_least=100), probe.watching(ledger):
        loaded = Loaded(trial, cluster, {generators}, name="beside")
        await loaded.fill()
        async with loaded.running("r01", Work(warehouses={generators}, ramp_s=1, measured_s=4), side="it", block=0):
            await ledger.more(50)
            await meanwhile()
    await ledger.audit()
    await loaded.check()


@pytest.mark.claim("rows-from-generators")
async def test_rows_are_told(trial, cluster, ledger, probe, judge):
    """The ledger and the probe alone, in a generator each."""
    async with ledger.writing(at_least=100), probe.watching(ledger):
        await ledger.more(50)
    await ledger.audit()
    assert judge.decide()


@pytest.mark.claim("from-generators")
async def test_all_is_told(trial, cluster, ledger, probe, judge):
    async def told_meanwhile():
        kept = (trial.store.directory / "ledger.tsv").read_text()
        assert kept.count("\\nO\\t") >= 50, "its evidence is here while it writes"

    await driven(trial, cluster, ledger, probe, told_meanwhile)
    assert judge.decide()


@pytest.mark.claim("from-generators")
async def test_one_is_killed(trial, cluster, ledger, probe, judge):
    async def killed():
        namespace = cluster.endpoints[0].hosts[0].address.split(".")[2]
        of = "batch.kubernetes.io/job-completion-index=1"
        line = ["kubectl", "-n", namespace, "delete", "pod", "-l", of, "--grace-period=0", "--force"]
        assert not await (await asyncio.create_subprocess_exec(*line)).wait()

    await driven(trial, cluster, ledger, probe, killed)
    assert judge.decide()
'''


def asked(
    home: Path, image: str, test: str, *, on: Sequence[str], generators: int = 2, nodes: int = 1
) -> Sequence[str]:
    """What asks pytest for this test, its load from so many generators."""
    for name, text in (("claims.toml", CATALOGUE), ("test_it.py", TESTS)):
        (home / name).write_text(text.replace("{nodes}", str(nodes)).replace("{generators}", str(generators)))
    load = ["--generators", str(generators), *(["--generator-image", image] if image else [])]
    own = ["-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider", "--catalogue", str(home / "claims.toml")]
    return [*own, *on, *load, f"{home}/test_it.py::{test}"]


def ran(home: Path, asked: Sequence[str], by: Sequence[str] = ()) -> tuple[int, str, Path]:
    """A session of what is ``asked``: its status, words, and trial. ``by``: what its command line begins with."""
    run = Running(home, asked, by)
    try:
        status = run.process.wait()
    finally:
        run.end()
    return status, run.said, next(home.glob("run/claims/*/*"), home)


def events(trial: Path, name: str) -> list[Mapping[str, Any]]:
    """All of a trial that are called so."""
    every = map(json.loads, (trial / "events.jsonl").read_text().splitlines())
    return [event for event in every if event.get("event") == name]


def told_whole(trial: Path, generators: int, *, parts: int = 0) -> None:
    """Each of the generators told all that it measured, and its clock; ``parts`` of them their part of TPC-C."""
    told = [event["sources"] for event in events(trial, "generator.clocks")]
    assert {name for sources in told for name in sources} == {f"generator {number}" for number in range(generators)}
    assert all(each["uncertainty_s"] == 0 for sources in told for each in sources.values()), "machines of one kernel"
    tpcc = [trial / f"tpcc-r01-{process}.jsonl" for process in range(parts)]
    assert all(trailer_of(file) for file in (trial / "ledger.tsv", trial / "probe.jsonl", *tpcc))
    assert [json.loads(part.open().readline())["processes"] for part in tpcc] == [parts] * parts
    assert json.loads((trial / "trial.json").read_text())["context"]["generators"] == str(generators)
