"""Load generators in the cluster, on a real Kubernetes. ``tox -e k8s`` makes one."""

import json
from pathlib import Path

import pytest

from clusters.errors import BadInput
from clusters.generators import WantedGenerators
from clusters.model import NodeSpec
from clusters.substrates.kubernetes import settings
from fixtures.workloads.relay import code
from tests.kubernetes.at_hand import ADMIN, AT_HAND, eventually, kubectl, namespaces, objects, opened
from tests.kubernetes.from_generators import asked, ran, told_whole
from tests.kubernetes.lab import suite
from tests.kubernetes.lab.images import SHELL
from tests.kubernetes.running import Running, alive

pytestmark = AT_HAND
CONTROL = ("--engine", "postgres", "--substrate", "kubernetes")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The suite's own, which every machine has."""
    return suite.give(Path(ADMIN).parent, tmp_path_factory.mktemp("suite"))


async def test_load_from_three_generators_is_told_whole(image: str, tmp_path: Path) -> None:
    status, said, trial = ran(tmp_path, asked(tmp_path, image, "test_all_is_told", on=CONTROL, generators=3))
    assert status == 0, said
    told_whole(trial, 3, parts=3)
    await eventually("its namespace to go", lambda: not namespaces())


async def test_a_generator_that_is_killed_is_named(image: str, tmp_path: Path) -> None:
    status, said, trial = ran(tmp_path, asked(tmp_path, image, "test_one_is_killed", on=CONTROL))
    assert status == 6, said
    why = json.loads((trial / "result.json").read_text())["why"]
    assert "GeneratorLost: generator 1: its connection ended" in why
    assert "pod roachproof-generators-1-" in why
    assert (trial / "ledger.tsv").read_text().count("\nO\t") >= 50, "what the other told is kept"
    await eventually("its namespace to go", lambda: not namespaces())


@pytest.mark.parametrize("moment", ["provisioned", "ledger.created", "generator.clocks"])
async def test_they_go_from_a_namespace_that_is_named_where_the_harness_is_killed(
    moment: str, image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "default")
    run = Running(tmp_path, asked(tmp_path, image, "test_all_is_told", on=CONTROL))
    try:
        run.until(moment, lambda: moment in run.events())
        assert "job.batch/roachproof-generators" in objects("default")
        assert run.keys(), "there are some to be left"
        begun = run.begun()
    finally:
        run.end()
    await eventually("all that it made to go", lambda: not objects("default"))
    await eventually("the processes beside it to end", lambda: not alive(begun))
    assert not run.keys()
    assert "Active" in kubectl("get", "namespace", "default")


async def test_generators_go_with_their_cluster(image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "default")
    substrate = await opened(tmp_path, generators=WantedGenerators(number=2, image=image, code=code()))
    try:
        assert substrate.generators.names == ("generator 0", "generator 1")
        assert "job.batch/roachproof-generators" in objects("default")
        machines = ("get", "pods", "-n", "default", "-o", "jsonpath={.items[*].spec.nodeName}")
        assert len(set(kubectl(*machines).split())) == 2, "each has a machine of its own where there are enough"
    finally:
        await substrate.close()
    assert objects("default") == ""


@pytest.mark.parametrize(
    ("name", "digest", "why"),
    [
        ("nowhere.invalid/none:1", "", r".*generator \d: ImagePull.*; name one that the cluster can pull"),
        (SHELL, "", r"has no suite that runs in /suite .*python"),
        (
            suite.NAME,
            "another",
            r"has another version of the suite \([0-9a-f]{16}, not another\); name an image that was",
        ),
    ],
    ids=["no image", "no suite", "another suite"],
)
async def test_an_image_that_will_not_do(
    name: str, digest: str, why: str, image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "_START_S", 30.0)  # where it is not said that it never will be, it is tried again
    wanted = WantedGenerators(number=2, image=name, code=digest)
    with pytest.raises(BadInput, match=f"--generator-image {name}: {why}"):
        await opened(tmp_path, generators=wanted)
    await eventually("its namespace to go", lambda: not namespaces())


async def test_more_generators_than_there_is_room_for(image: str, tmp_path: Path) -> None:
    wanted = WantedGenerators(number=1000, image=image, cpus=1, memory_mib=64, code=code())
    with pytest.raises(BadInput, match=r"1000 load generators ask cpu 1, memory 64 MiB each, \d+ fit beside the nodes"):
        await opened(tmp_path, nodes=[NodeSpec(name="n1")], generators=wanted)
    assert not namespaces()
