"""Load generators in the cluster, on a real Kubernetes. ``tox -e k8s`` makes one."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from clusters.errors import BadInput
from clusters.generators import WantedGenerators
from clusters.model import NodeSpec
from fixtures.workloads.relay import ROOT, code
from plugin.evidence.trailer import trailer_of
from tests.kubernetes.at_hand import ADMIN, AT_HAND, eventually, kubectl, namespaces, objects, opened
from tests.kubernetes.lab import suite
from tests.kubernetes.lab.images import SHELL

pytestmark = AT_HAND

CATALOGUE = """
[claims.from-generators]
sentence = "Rows that generators in the cluster were told to be written are there, and orders are consistent."
nodes = 1
needs = ["integrity", "history_complete", "audit_complete"]
checks = [
    { metric = "lost", comparison = "==", limit = 0, unit = "rows" },
    { metric = "inconsistent", comparison = "==", limit = 0, unit = "violations" },
]
"""

TESTS = '''
import asyncio

import pytest

from fixtures.workloads.tpcc.loaded_cluster import Loaded, Work

pytestmark = [pytest.mark.claim("from-generators"), pytest.mark.topology(nodes=1)]


async def driven(trial, cluster, ledger, probe, meanwhile):
    """The ledger and the probe in a generator each, TPC-C in both."""
    async with ledger.writing(at_least=100), probe.watching(ledger):
        loaded = Loaded(trial, cluster, 2, name="beside")
        await loaded.fill()
        async with loaded.running("r01", Work(warehouses=2, ramp_s=1, measured_s=4), side="it", block=0):
            await ledger.more(50)
            await meanwhile()
    await ledger.audit()
    await loaded.check()


async def test_all_is_told(trial, cluster, ledger, probe, judge):
    async def told_meanwhile():
        kept = (trial.store.directory / "ledger.tsv").read_text()
        assert kept.count("\\nO\\t") >= 50, "its evidence is here while it writes"

    await driven(trial, cluster, ledger, probe, told_meanwhile)
    assert judge.decide()


async def test_one_is_killed(trial, cluster, ledger, probe, judge):
    async def killed():
        namespace = cluster.endpoints[0].hosts[0].address.split(".")[2]
        of = "batch.kubernetes.io/job-completion-index=1"
        line = ["kubectl", "-n", namespace, "delete", "pod", "-l", of, "--grace-period=0", "--force"]
        assert not await (await asyncio.create_subprocess_exec(*line)).wait()

    await driven(trial, cluster, ledger, probe, killed)
    assert judge.decide()
'''


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The suite's own, which every machine has."""
    return suite.give(Path(ADMIN).parent, tmp_path_factory.mktemp("suite"))


def ran(home: Path, image: str, test: str) -> tuple[int, str, Path]:
    """A session of this test on the control, its load from two generators: its status, words, and trial."""
    (home / "claims.toml").write_text(CATALOGUE)
    (home / "test_it.py").write_text(TESTS)
    asked = ["--engine", "postgres", "--substrate", "kubernetes", "--generators", "2", "--generator-image", image]
    own = ["--catalogue", str(home / "claims.toml"), "--run-dir", str(home / "run"), f"{home}/test_it.py::{test}"]
    line = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider", *asked, *own]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr, next(home.glob("run/claims/*/*"), home)


def events(trial: Path, name: str) -> list[Mapping[str, Any]]:
    every = map(json.loads, (trial / "events.jsonl").read_text().splitlines())
    return [event for event in every if event.get("event") == name]


async def test_load_from_two_generators_is_told_whole(image: str, tmp_path: Path) -> None:
    status, said, trial = ran(tmp_path, image, "test_all_is_told")
    assert status == 0, said
    told = [event["sources"] for event in events(trial, "generator.clocks")]
    assert {name for sources in told for name in sources} == {"generator 0", "generator 1"}
    assert all(each["uncertainty_s"] == 0 for sources in told for each in sources.values()), "machines of one kernel"
    parts = [trial / f"tpcc-r01-{process}.jsonl" for process in range(2)]
    assert all(trailer_of(file) for file in (trial / "ledger.tsv", trial / "probe.jsonl", *parts))
    assert [json.loads(part.open().readline())["processes"] for part in parts] == [2, 2]
    assert json.loads((trial / "trial.json").read_text())["context"]["generators"] == "2"
    await eventually("its namespace to go", lambda: not namespaces())


async def test_a_generator_that_is_killed_is_named(image: str, tmp_path: Path) -> None:
    status, said, trial = ran(tmp_path, image, "test_one_is_killed")
    assert status == 6, said
    why = json.loads((trial / "result.json").read_text())["why"]
    assert "GeneratorLost: generator 1: its connection ended" in why
    assert "pod generators-1-" in why
    assert (trial / "ledger.tsv").read_text().count("\nO\t") >= 50, "what the other told is kept"
    await eventually("its namespace to go", lambda: not namespaces())


async def test_generators_go_with_their_cluster(image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "default")
    substrate = await opened(tmp_path, generators=WantedGenerators(number=2, image=image, code=code()))
    try:
        assert substrate.generators.names == ("generator 0", "generator 1")
        assert "job.batch/generators" in objects("default")
        machines = ("get", "pods", "-n", "default", "-o", "jsonpath={.items[*].spec.nodeName}")
        assert len(set(kubectl(*machines).split())) == 2, "each has a machine of its own where there are enough"
    finally:
        await substrate.close()
    assert objects("default") == ""


@pytest.mark.parametrize(
    ("name", "digest", "why"),
    [
        ("nowhere.invalid/none:1", "", r"generator \d: .*ImagePull.*; name one that the cluster can pull"),
        (SHELL, "", r"has no suite that runs in /suite .*python"),
        (
            suite.NAME,
            "another",
            r"has another version of the suite \([0-9a-f]{16}, not another\); name an image that was",
        ),
    ],
    ids=["no image", "no suite", "another suite"],
)
async def test_an_image_that_will_not_do(name: str, digest: str, why: str, image: str, tmp_path: Path) -> None:
    wanted = WantedGenerators(number=2, image=name, code=digest)
    with pytest.raises(BadInput, match=f"--generator-image {name}: {why}"):
        await opened(tmp_path, generators=wanted)
    await eventually("its namespace to go", lambda: not namespaces())


async def test_more_generators_than_there_is_room_for(image: str, tmp_path: Path) -> None:
    wanted = WantedGenerators(number=1000, image=image, cpus=1, memory_mib=64, code=code())
    with pytest.raises(BadInput, match=r"1000 load generators ask cpu 1, memory 64 MiB each, \d+ fit beside the nodes"):
        await opened(tmp_path, nodes=[NodeSpec(name="n1")], generators=wanted)
    assert not namespaces()
