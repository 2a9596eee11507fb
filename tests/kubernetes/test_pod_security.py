"""A namespace of the level ``restricted`` on a real Kubernetes: nodes, load generators and the gate's Job run there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusters.cluster import Cluster
from clusters.engines import ENGINES, Wanted
from clusters.generators import WantedGenerators
from clusters.model import NodeResources, NodeSpec, ProcessState, Topology
from clusters.substrates.kubernetes.rights import MANIFEST
from fixtures.workloads.relay import code
from tests.kubernetes.at_hand import ADMIN, AT_HAND, apply, begun, kubectl, objects, opened
from tests.kubernetes.lab import suite
from tests.kubernetes.lab.images import SHELL
from tests.kubernetes.release import image_of

pytestmark = AT_HAND
SPACE = "restricted"
SMALL = NodeResources(cache_mib=64, sql_memory_mib=64)
REFUSED = 'violates PodSecurity "restricted:latest"'


@pytest.fixture(autouse=True)
def space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    apply(
        tmp_path / "space.json",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE, "labels": labels}},
    )
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", SPACE)
    try:
        yield
    finally:
        kubectl("delete", "namespace", SPACE)


def admitted(file: Path, spec: Any) -> str:
    """What the API server says of a pod, which is not made."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asked", "namespace": SPACE}, "spec": spec}
    file.write_text(json.dumps(pod))
    return kubectl("create", "--dry-run=server", "-f", str(file))


async def test_nodes_of_cockroachdb_run_there(tmp_path: Path) -> None:
    program = image_of()[1]
    if not program:
        pytest.skip("no build of CockroachDB is in the cache")
    nodes = tuple(NodeSpec(name=f"n{number}") for number in (1, 2, 3))
    substrate = await opened(tmp_path, nodes=nodes, resources=SMALL)
    try:
        cluster = await Cluster.provision(
            engine=ENGINES["cockroach"].find(Wanted(path=program)),
            substrate=substrate,
            topology=Topology(name="three", nodes=nodes),
            resources=SMALL,
            tuned=False,
        )
        await cluster.replicated()
        await cluster.kill("n2")
        await cluster.restart("n2")
        async with await cluster.deployment.connect("n2") as connection:
            ((answer,),) = await connection.query("SELECT 42", timeout=60.0)
        assert answer == 42
    finally:
        await substrate.close()
    assert objects(SPACE) == ""


async def test_load_generators_run_there(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    image = suite.give(Path(ADMIN).parent, tmp_path_factory.mktemp("suite"))
    substrate = await opened(tmp_path, generators=WantedGenerators(number=1, image=image, code=code()))
    try:
        assert substrate.generators.names == ("generator 0",)
        await begun(substrate)
        assert substrate.state("n1") is ProcessState.RUNNING
    finally:
        await substrate.close()


def test_the_gate_s_job_is_taken_there_and_a_pod_of_nothing_in_particular_is_not(tmp_path: Path) -> None:
    *_, job = yaml.safe_load_all(MANIFEST.with_name("gate.yaml").read_text())
    said = admitted(tmp_path / "gate.json", {**job["spec"]["template"]["spec"], "serviceAccountName": "default"})
    assert "pod/asked created (server dry run)" in said, said
    assert "Warning" not in said
    plain = {"containers": [{"name": "c", "image": SHELL, "command": ["sleep", "9"]}]}
    assert REFUSED in admitted(tmp_path / "plain.json", plain)
