"""A CockroachDB cluster of somebody else's, on a real Kubernetes: found, described, hurt only where that is allowed."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from clusters.cluster import Cluster
from clusters.engines import ENGINES, Wanted
from clusters.errors import BadInput, HarnessError
from clusters.faults.disturbance import disturb
from clusters.faults.node import DELETE_POD, DRAIN, KILL
from clusters.faults.swap import swap
from clusters.model import NodeResources, NodeSpec, ProcessState, Topology
from clusters.substrates import SUBSTRATES
from clusters.substrates.adopted.pods import OUTSIDE
from clusters.substrates.kubernetes.manifests import GENERATORS
from tests.kubernetes.at_hand import ADMIN, AT_HAND, apply, eventually, kubectl, objects
from tests.kubernetes.from_generators import asked, events, ran, told_whole
from tests.kubernetes.lab import suite
from tests.kubernetes.lab.images import SHELL
from tests.kubernetes.release import (
    ADDRESSES,
    NAME,
    NAMESPACE,
    begin,
    image_of,
    other_than,
    secret,
    serving,
    stateful,
)
from tests.kubernetes.running import Running, alive
from tests.slow import slow

ROOT = Path(__file__).resolve().parents[2]
NODES = tuple(NodeSpec(name=f"n{number}") for number in (1, 2, 3))
SMALL = NodeResources(cache_mib=64, sql_memory_mib=64)


IMAGE, PROGRAM = image_of()
OTHER_IMAGE, OTHER = other_than(IMAGE)
ON = ("--engine", "cockroach", "--cockroach", PROGRAM, "--substrate", "adopted", "--allow-disruption")
pytestmark = [AT_HAND, pytest.mark.skipif(not IMAGE, reason="no build of CockroachDB is in the cache")]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A release of the chart, as far as it is known by: labels, services, secrets, StatefulSet. Its certificates."""
    flags = ["--cache=64MiB", "--max-sql-memory=64MiB"]
    certs = begin(tmp_path_factory.mktemp("release"), PROGRAM, IMAGE, flags=flags)
    serving(PROGRAM, certs)
    kubectl("-n", NAMESPACE, "rollout", "status", f"statefulset/{NAME}", "--timeout=120s")
    assert sql(certs, "SELECT 'up'") == "up"
    try:
        yield certs
    finally:
        kubectl("delete", "namespace", NAMESPACE, "--wait=false")


@pytest.fixture(autouse=True)
def meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", NAMESPACE)
    monkeypatch.setenv("ROACHPROOF_ADOPT", "shop")


def sql(certs: Path, statement: str) -> str:
    """The first value that the last of the nodes answers."""
    line = [PROGRAM, "sql", f"--host={ADDRESSES[-1]}:26257", f"--certs-dir={certs}", "--format=csv", "-e", statement]
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.split("\n")[1].strip()


def databases(certs: Path) -> str:
    return sql(certs, "SELECT string_agg(database_name, ',' ORDER BY database_name) FROM [SHOW DATABASES]")


def everything() -> list[str]:
    """All objects of the namespace but the pods, each with what tells a change of it."""
    kinds = "statefulsets,services,pvc,pdb,secrets,configmaps"
    told = json.loads(kubectl("-n", NAMESPACE, "get", kinds, "-o", "json"))["items"]
    return sorted(f"{one['kind']} {one['metadata']['name']} {one['metadata'].get('generation')}" for one in told)


def pods() -> dict[str, str]:
    told = json.loads(kubectl("-n", NAMESPACE, "get", "pods", "-l", "app.kubernetes.io/instance=shop", "-o", "json"))
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in told["items"]}


def kept(tmp_path: Path) -> tuple[list[str], list[Path]]:
    return sorted(log.parent.name for log in tmp_path.glob("kept/*/output.txt")), [*tmp_path.glob("adopted-*")]


async def described() -> Sequence[str]:
    describe = SUBSTRATES["adopted"].describe
    assert describe is not None
    return await describe()


async def opened(tmp_path: Path) -> Any:
    opens: Any = SUBSTRATES["adopted"].open
    return await opens(
        name="test",
        workdir=tmp_path,
        needed=frozenset(),
        capacity=1,
        nodes=NODES,
        resources=SMALL,
        say=print,
        keep=False,
        keep_logs=tmp_path / "kept",
        allow_disruption=True,
    )


async def taken_over(place: Any) -> Cluster:
    engine = ENGINES["cockroach"].find(Wanted(path=PROGRAM))
    three = Topology(name="three", nodes=NODES)
    return await Cluster.provision(engine=engine, substrate=place, topology=three, resources=SMALL, tuned=False)


def gate(
    tmp_path: Path, *more: str, claim: str = "survivability", limit_s: int = 300
) -> "subprocess.CompletedProcess[str]":
    asked = [
        "--substrate",
        "adopted",
        "--cockroach",
        PROGRAM,
        "--claim",
        claim,
        "--run-dir",
        str(tmp_path / "run"),
    ]
    line = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-o", "testpaths=tests/claims", *asked, *more]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False, timeout=limit_s)


def test_it_is_described_and_nothing_is_done_unless_that_is_allowed(release: Path, tmp_path: Path) -> None:
    before = (everything(), pods(), databases(release))
    done = gate(tmp_path)
    assert done.returncode == 6, done.stdout
    for said in (
        f"adopted: StatefulSet {NAME} of Helm release shop, namespace {NAMESPACE}, Kubernetes context lab",
        f"nodes: {NAME}-0 on machine-",
        f"image {IMAGE}",
        f"services: {NAME}; disruption budgets: {NAME}-budget; certificate of root: secret {NAME}-client-secret",
        "kill, delete pod, restart: deletes a pod",
        "and nothing without --allow-disruption",
        "adopted clusters are loaded and disturbed only with --allow-disruption",
    ):
        assert said in done.stdout
    assert (everything(), pods(), databases(release)) == before


async def test_faults_touch_a_pod_each_and_all_else_is_left_as_it_was(release: Path, tmp_path: Path) -> None:
    before, were, had = everything(), pods(), databases(release)
    place = await opened(tmp_path)
    try:
        cluster = await taken_over(place)
        assert "roachproof" in databases(release)
        assert place.clock("n1").seconds > 0
        await cluster.deployment.observe()
        await cluster.replicated()
        async with disturb(cluster, KILL, ["n1"]):
            assert place.state("n1") is ProcessState.EXITED
            assert place.exit_code("n1") is not None, "within the second that it is given a node may end in good order"
        await cluster.healthy()
        async with disturb(cluster, DRAIN, ["n2"]):
            assert place.exit_code("n2") == 0, "in good order"
        await cluster.healthy()
        async with disturb(cluster, DELETE_POD, ["n3"]):
            assert place.state("n3") is ProcessState.EXITED
        await cluster.healthy()
        another = await opened(tmp_path)
        with pytest.raises(BadInput, match="database roachproof is there already"):
            await taken_over(another)
        await another.close()
        await cluster.leave()
    finally:
        await place.close()
    now = pods()
    assert {name[-1] for name, uid in were.items() if now[name] != uid} == {"0", "1", "2"}
    assert (everything(), databases(release)) == (before, had)
    assert "Active" in kubectl("get", "namespace", NAMESPACE)
    assert kept(tmp_path) == (["n1", "n2", "n3"], []), "the nodes' logs, and no key of root"


async def test_a_pod_that_its_owner_deletes_is_no_end_of_the_database(release: Path, tmp_path: Path) -> None:
    """As soon as it is seen to have ended: it did in good order, as one that crashes with 0 would."""
    place = await opened(tmp_path)
    try:
        await place.place(NODES)
        kubectl("-n", NAMESPACE, "delete", "pod", f"{NAME}-1", "--wait=false")
        await eventually("it to end", lambda: place.state("n2") is ProcessState.EXITED)
        assert place.ended_by("n2") == OUTSIDE
    finally:
        await place.close()
    kubectl("-n", NAMESPACE, "rollout", "status", f"statefulset/{NAME}", "--timeout=120s")


async def test_its_load_may_come_from_generators_beside_it(
    release: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before, were, had = everything(), pods(), databases(release)
    image = suite.give(Path(ADMIN).parent, tmp_path_factory.mktemp("suite"))
    status, said, trial = await asyncio.to_thread(
        ran, tmp_path, asked(tmp_path, image, "test_rows_are_told", on=ON, nodes=3)
    )
    assert status == 0, said
    told_whole(trial, 2)
    assert f"pod {GENERATORS}-1-" in (trial / "logs" / "kubernetes" / "pods.log").read_text()
    assert (everything(), pods(), databases(release)) == (before, were, had)
    assert objects(NAMESPACE) == ""


async def test_they_go_where_the_harness_is_killed_and_nothing_else_does(
    release: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before, were = everything(), pods()
    image = suite.give(Path(ADMIN).parent, tmp_path_factory.mktemp("suite"))
    run = Running(tmp_path, asked(tmp_path, image, "test_rows_are_told", on=ON, nodes=3))
    try:
        run.until("the ledger is there", lambda: "ledger.created" in run.events())
        assert f"job.batch/{GENERATORS}" in objects(NAMESPACE)
        assert run.keys(), "there are some to be left"
        begun = run.begun()
    finally:
        run.end()
    await eventually("the generators to go", lambda: not objects(NAMESPACE))
    await eventually("the processes beside it to end", lambda: not alive(begun))
    assert not run.keys()
    assert (everything(), pods()) == (before, were)
    another = gate(tmp_path / "another", "--allow-disruption")
    assert another.returncode == 4
    assert "database roachproof is there already" in another.stdout + another.stderr
    sql(release, "DROP DATABASE roachproof CASCADE")


def declared() -> dict[str, Any]:
    """What the StatefulSet was told, and what is noted on it."""
    told = json.loads(kubectl("-n", NAMESPACE, "get", "statefulset", NAME, "-o", "json"))
    noted = {key: value for key, value in told["metadata"].get("annotations", {}).items() if "roachproof" in key}
    return {**told["spec"], "noted": noted}


def images() -> list[str]:
    """Of each pod, in the order of their numbers."""
    told = json.loads(kubectl("-n", NAMESPACE, "get", "pods", "-l", "app.kubernetes.io/instance=shop", "-o", "json"))
    return [pod["spec"]["containers"][0]["image"] for pod in sorted(told["items"], key=lambda p: p["metadata"]["name"])]


def volumes() -> str:
    return kubectl("-n", NAMESPACE, "get", "pvc", "-o", "name")


async def test_a_node_is_added_and_taken_out_again(release: Path, tmp_path: Path) -> None:
    before, were, had = (declared(), volumes()), pods(), databases(release)
    place = await opened(tmp_path)
    try:
        cluster = await taken_over(place)
        await cluster.add(NodeSpec(name="n4"))
        assert sql(release, "SELECT count(*) FROM crdb_internal.gossip_nodes WHERE is_live") == "4"
        with pytest.raises(
            BadInput, match=r"was changed by a run that goes on, or that was killed; before it was .*: 3"
        ):
            await described()
        await cluster.healthy()
        with pytest.raises(HarnessError, match=r"n1 .* cannot be taken out: a StatefulSet gives up its last pod alone"):
            await cluster.remove("n1")
        await cluster.leave()
    finally:
        await place.close()
    await eventually("its volume to go", lambda: volumes() == before[1])
    assert (declared(), pods(), databases(release)) == (before[0], were, had)
    live = "SELECT count(*) FROM crdb_internal.gossip_nodes WHERE is_live"
    await eventually("it to be forgotten", lambda: sql(release, live) == "3")  # its lease on being alive runs out


@slow
def test_its_replicas_spread_over_added_nodes(release: Path, tmp_path: Path) -> None:
    """The claim as it stands, of the profile ``laptop``: the release's servers were started with that pace."""
    before, had = (declared(), volumes()), databases(release)
    done = gate(tmp_path, "--allow-disruption", claim="rebalance", limit_s=1800)
    (trial,) = tmp_path.glob("run/claims/rebalance/*")
    assert [event["node"] for event in events(trial, "node.joined")] == ["n4", "n5", "n6"], done.stdout
    assert json.loads((trial / "trial.json").read_text())["tuned"] == ["COCKROACH_SCAN_INTERVAL = 10s"]
    # Where the machine had other work, times tell nothing (6).
    assert done.returncode in (0, 6), done.stdout
    assert "REFUTED" not in done.stdout
    assert (declared(), databases(release)) == (before[0], had)
    assert volumes() == before[1], "those of added nodes go with them"


@pytest.mark.skipif(not OTHER, reason="no other build of that series of CockroachDB is in the cache")
async def test_a_node_goes_to_another_version_and_back(release: Path, tmp_path: Path) -> None:
    before, were, had = declared(), pods(), databases(release)
    place = await opened(tmp_path)
    try:
        cluster = await taken_over(place)
        new = ENGINES["cockroach"].find(Wanted(path=OTHER))
        await cluster.healthy()
        async with disturb(cluster, swap(new, cluster.engine), ["n2"]):
            pass
        assert (await cluster.deployment.running("n2")).build == new.version
        assert images() == [IMAGE, OTHER_IMAGE, IMAGE]
        await cluster.healthy()
        async with disturb(cluster, KILL, ["n1"]):
            pass
        assert images() == [IMAGE, OTHER_IMAGE, IMAGE], "it comes back as what it was"
        with pytest.raises(BadInput, match="not made final on a cluster that Roachproof did not make"):
            await cluster.deployment.finalise(timeout=1)
        await cluster.leave()
        assert images() == [IMAGE] * 3
    finally:
        await place.close()
    assert (declared(), databases(release)) == (before, had)
    assert sql(release, "SHOW CLUSTER SETTING cluster.preserve_downgrade_option") in ("", '""')
    now = pods()
    assert [name[-1] for name, uid in sorted(were.items()) if now[name] == uid] == ["2"]
    hashes = ("-o", "jsonpath={.items[*].metadata.labels.controller-revision-hash}")
    are = kubectl("-n", NAMESPACE, "get", "pods", "-l", "app.kubernetes.io/instance=shop", *hashes).split()
    wanted = kubectl("-n", NAMESPACE, "get", "statefulset", NAME, "-o", "jsonpath={.status.updateRevision}")
    assert set(are) == {wanted}, "nothing is left for the StatefulSet to change"


async def test_a_session_ends_with_4_where_there_is_none_or_no_secret(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROACHPROOF_ADOPT", "nobody")
    done = await asyncio.to_thread(gate, tmp_path)
    assert done.returncode == 4, done.stdout
    assert "ROACHPROOF_ADOPT=nobody: no CockroachDB is there" in done.stdout + done.stderr
    monkeypatch.setenv("ROACHPROOF_ADOPT", "shop")
    monkeypatch.setenv("ROACHPROOF_ADOPT_SECRET", f"{NAME}-node-secret")
    with pytest.raises(BadInput, match=r"no secret has the certificate .* name the secret that has them in"):
        await described()


async def test_one_of_an_operator_is_known_by_its_custom_resource(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The resource is plain here, and what runs is a shell: the operator itself is no part of this."""
    group = "crdb.cockroachlabs.com"
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    spec = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": "crdbclusters", "singular": "crdbcluster", "kind": "CrdbCluster"},
        "versions": [version],
    }
    defined = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    apply(tmp_path / "crd.json", {**defined, "metadata": {"name": f"crdbclusters.{group}"}, "spec": spec})
    kubectl("wait", "--for=condition=Established", f"crd/crdbclusters.{group}", "--timeout=60s")
    named = {"name": "orders", "namespace": NAMESPACE}
    apply(tmp_path / "custom.json", {"apiVersion": f"{group}/v1alpha1", "kind": "CrdbCluster", "metadata": named})
    uid = kubectl("-n", NAMESPACE, "get", "crdbcluster", "orders", "-o", "jsonpath={.metadata.uid}")
    owner = {"apiVersion": f"{group}/v1alpha1", "kind": "CrdbCluster", "name": "orders", "uid": uid, "controller": True}
    container = {"image": SHELL, "command": ["/bin/sh", "-c", ": /cockroach/cockroach.sh start; exec sleep infinity"]}
    apply(
        tmp_path / "orders.json",
        stateful("orders", container=container, replicas=1, ownerReferences=[owner]),
        secret("orders-root", dict.fromkeys(("ca.crt", "tls.crt", "tls.key"), b"none")),
    )
    kubectl("-n", NAMESPACE, "rollout", "status", "statefulset/orders", "--timeout=60s")
    for called in ("orders", "app=orders"):
        monkeypatch.setenv("ROACHPROOF_ADOPT", called)
        told = await described()
        assert told[0].startswith("adopted: StatefulSet orders of CrdbCluster orders, ")
        assert told[2].endswith("certificate of root: secret orders-root")
    monkeypatch.setenv("ROACHPROOF_ADOPT", "")
    with pytest.raises(BadInput, match=f"2 are meant by it: orders, {NAME}"):
        await described()
