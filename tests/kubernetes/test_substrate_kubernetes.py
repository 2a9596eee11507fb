"""The substrate on a real Kubernetes: what goes wrong there, and what is left. ``tox -e k8s`` makes one."""

import asyncio
import json
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clusters.cluster import Cluster
from clusters.engines import ENGINES, Wanted
from clusters.errors import BadInput, HarnessError, TimedOut
from clusters.faults.disturbance import disturb
from clusters.faults.swap import swap
from clusters.model import NodeResources, NodeSpec, ProcessState, Topology
from tests.kubernetes.at_hand import (
    AT_HAND,
    ENV,
    HANGS,
    apply,
    as_account,
    begun,
    eventually,
    history,
    kubectl,
    namespaces,
    objects,
    opened,
    pod_of,
    spec,
)
from tests.kubernetes.release import image_of

pytestmark = AT_HAND
ROOT = Path(__file__).resolve().parents[2]
HARNESS = """
import asyncio, sys
from pathlib import Path
from clusters.model import NodeSpec, ProcessSpec
from clusters.substrates import SUBSTRATES

async def main():
    opened = await SUBSTRATES["kubernetes"].open(
        name="killed", workdir=Path(sys.argv[1]), needed=frozenset(), capacity=1, nodes=(), resources=None,
        say=lambda _: None, keep=False, keep_logs=Path(sys.argv[1], "kept"),
    )
    (at,) = await opened.place([NodeSpec(name="n1")])
    print(at.address.split(".")[2], flush=True)
    argv = ("/bin/sh", "-c", "echo some words; while :; do sleep 0.05; done")
    await opened.start(ProcessSpec(name="n1", argv=argv, env={}, cwd=at.home, output=at.logs / "out"))
    print("started", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def harness(workdir: Path) -> "subprocess.Popen[str]":
    line = [sys.executable, "-c", HARNESS, str(workdir)]
    return subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)


def kept(workdir: Path) -> list[str]:
    """What nodes wrote, as far as it was kept."""
    return [path.read_text() for path in workdir.glob("kept/*/out")]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Any]:
    substrate = await opened(tmp_path)
    try:
        yield substrate
    finally:
        await substrate.close()


async def test_nodes_of_one_group_that_start_at_once_get_each_its_own_limits(place: Any) -> None:
    """They share a StatefulSet, which makes pods of what it was told last."""
    placed = await place.place([NodeSpec(name=f"n{number}") for number in (1, 2, 3)])
    sizes = {"n1": 64, "n2": 96, "n3": 64}
    await asyncio.gather(
        *(
            place.start(
                spec(at, HANGS, NodeResources(cache_mib=1, sql_memory_mib=1, cpus=0.2, memory_mib=sizes[at.node.name]))
            )
            for at in placed
        )
    )
    assert {name: place.limits(name)["memory_mib"] for name in sizes} == sizes


async def test_a_key_stays_private_in_a_volume_that_is_mounted_again(place: Any) -> None:
    """As a kubelet mounts one whose driver knows fsGroup: the group may read and write all of it. That of here does
    not, so its doing is the test's.
    """
    at = await begun(place)
    await place.put("n1", at.home / "certs" / "node.key", b"key")
    pod, namespace = pod_of(at)
    kubectl("-n", namespace, "exec", pod, "--", "chmod", "-R", "g+rwX", str(at.home))
    await place.delete_pod("n1")
    modes = ["/bin/stat", "-c", "%a", str(at.home), str(at.home / "certs" / "node.key")]
    assert (await place.run(modes, env=ENV, timeout=20, node="n1")).out.split() == ["700", "600"]


async def test_a_node_that_is_removed_leaves_no_pod_and_no_volume(tmp_path: Path) -> None:
    """Where its pod is the last of its StatefulSet; another stays until all after it are gone."""
    place = await opened(tmp_path)

    def there(kind: str) -> list[str]:
        found = kubectl("-n", namespace, "get", kind, "-o", "jsonpath={.items[*].metadata.name}").split()
        return sorted(name for name in found if "node-region" in name)

    try:
        placed = await place.place([NodeSpec(name=f"n{number}") for number in (1, 2, 3)])
        for at in placed:
            await place.start(spec(at, f"echo words of {at.node.name}; {HANGS}"))
            await place.put(at.node.name, at.store / "kept", b"kept")
        pods = [pod_of(at)[0] for at in placed]
        _, namespace = pod_of(placed[0])
        await place.stop("n2", timeout=20)
        await place.take_away("n2")
        assert (there("pods"), there("pvc")) == (pods, [f"home-{pod}" for pod in pods])
        assert place.state("n2") is ProcessState.EXITED
        await place.stop("n3", timeout=20)
        await place.take_away("n3")
        await eventually("both to be gone", lambda: there("pods") == pods[:1] and there("pvc") == [f"home-{pods[0]}"])
        assert [place.state(name) for name in ("n1", "n2")] == [ProcessState.RUNNING, ProcessState.ABSENT]
        (another,) = await place.place([NodeSpec(name="n4")])
        assert another.address == placed[1].address
        assert place.state("n4") is ProcessState.ABSENT
        await place.start(spec(another, HANGS))
        done = await place.run(["/bin/ls", str(another.store)], env=ENV, timeout=20, node="n4")
        assert done.out == "", "it has a volume of its own"
    finally:
        await place.close()
    assert (tmp_path / "kept" / "n3" / "out").read_text() == "words of n3\n"
    said = history(tmp_path)
    assert f"pod {pods[1]}: n2 was removed; its pod and volume stay" in said
    assert f"pod {pods[2]}: n3 was removed; its pod and volume are deleted" in said


async def test_too_much_memory_is_a_kill_that_nobody_sent(place: Any) -> None:
    """As the cluster reads it: SIGKILL that was not sent from here is lack of memory, and no fault of the database."""
    limits = NodeResources(cache_mib=1, sql_memory_mib=1, cpus=1, memory_mib=32)
    await begun(place, "tail -c 1000000000 /dev/zero", limits)
    await eventually("it to be killed", lambda: place.state("n1") is ProcessState.EXITED)
    assert place.exit_code("n1") == -signal.SIGKILL
    assert place.ended_by("n1") == "killed by the kernel, as its container's memory ran out"


async def test_what_ended_a_node_is_told_from_its_own_end(place: Any) -> None:
    at = await begun(place, f"trap 'exit 0' TERM; {HANGS}")
    pod, namespace = pod_of(at)
    kubectl("-n", namespace, "exec", pod, "--", "kill", "-TERM", "1")
    await eventually("it to end with its container", lambda: place.state("n1") is ProcessState.EXITED)
    assert place.ended_by("n1")
    restarts = ("-n", namespace, "get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
    await eventually("another container", lambda: kubectl(*restarts) == "1")
    await asyncio.sleep(2)
    assert place.state("n1") is ProcessState.EXITED, "it is down until it is started"
    await place.start(spec(at, "exit 7"))
    await eventually("it to end by itself", lambda: place.state("n1") is ProcessState.EXITED)
    assert (place.exit_code("n1"), place.ended_by("n1")) == (7, "")


async def test_a_pod_that_somebody_deletes_comes_back_and_goes_on(place: Any) -> None:
    """By ``kubectl delete pod``, in good order and with no grace."""
    at = await begun(place, f"trap 'exit 0' TERM; {HANGS}")
    pod, namespace = pod_of(at)
    for how in (["--grace-period=30"], ["--grace-period=0", "--force"]):
        uid = kubectl("-n", namespace, "get", "pod", pod, "-o", "jsonpath={.metadata.uid}")
        kubectl("-n", namespace, "delete", "pod", pod, "--wait=false", *how)

        def another(former: str = uid) -> bool:
            now = kubectl("-n", namespace, "get", "pod", pod, "-o", "jsonpath={.metadata.uid}")
            return now not in ("", former) and place.state("n1") is ProcessState.RUNNING

        await eventually("another pod to go on with its order", another)
        assert "ended from outside" in place.machine_lost("n1"), "so that no claim is refuted by it"
    kubectl("-n", namespace, "delete", "pod", pod, "--wait=false", "--grace-period=0", "--force")
    await place.kill("n1")
    assert place.state("n1") is ProcessState.EXITED, "killed while another pod is made, it stays so"
    await asyncio.sleep(3)
    assert place.state("n1") is ProcessState.EXITED


async def test_an_image_that_is_not_to_be_had_is_said_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROACHPROOF_KUBERNETES_IMAGES")
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_IMAGE", "nowhere.invalid/none:1")
    # Where it is not said that it never will be had, it is tried again for so long.
    monkeypatch.setattr("clusters.substrates.kubernetes.settings._START_S", 30)
    substrate = await opened(tmp_path)
    try:
        said = r"^ROACHPROOF_KUBERNETES_IMAGE=nowhere\.invalid/none:1: pod .*; name an image that the cluster can pull$"
        with pytest.raises(BadInput, match=said):
            await begun(substrate)
    finally:
        await substrate.close()
    kept = history(tmp_path)
    assert 'Failed: Failed to pull image "nowhere.invalid/none:1"' in kept
    assert re.search(
        r"^[-0-9]+ [:0-9]+ pod node-region-1-zone-1-0: Pending, on .*waiting: .*ImagePull", kept, re.MULTILINE
    )


async def test_a_container_that_crashes_again_and_again_is_no_crash_of_the_database(tmp_path: Path) -> None:
    substrate = await opened(tmp_path)
    try:
        (at,) = await substrate.place([NodeSpec(name="n1")])
        broken = json.dumps({"data": {"node.sh": "echo it cannot; exit 3"}})
        kubectl("-n", pod_of(at)[1], "patch", "configmap", "node-scripts", "-p", broken)
        with pytest.raises(HarnessError, match=r"CrashLoopBackOff.*see what it said last: it cannot$"):
            await substrate.start(spec(at, HANGS))
    finally:
        await substrate.close()
    assert "pod node-region-1-zone-1-0: its container said last: it cannot\n" in history(tmp_path)
    assert "waiting: CrashLoopBackOff: back-off" in history(tmp_path)
    assert "container ended: Error, exit code 3, restarted" in history(tmp_path)


async def test_a_pod_that_no_machine_takes_is_said_in_the_schedulers_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clusters.substrates.kubernetes.settings._START_S", 5)
    substrate = await opened(tmp_path)
    try:
        with pytest.raises(
            HarnessError, match=r"Unschedulable: .*Insufficient cpu.*\(last warnings: FailedScheduling: 0/3"
        ) as late:
            await begun(substrate, limits=NodeResources(cache_mib=1, sql_memory_mib=1, cpus=64, memory_mib=64))
        assert not isinstance(late.value, TimedOut), "which would be the database's"
    finally:
        await substrate.close()
    assert "Warning Pod node-region-1-zone-1-0: FailedScheduling: 0/3 nodes are available" in history(tmp_path)


async def test_logs_are_kept_and_nothing_else_is_left(tmp_path: Path) -> None:
    substrate = await opened(tmp_path)
    at = await begun(substrate, f"echo some words; {HANGS}")
    await eventually("its words", lambda: substrate.log_tail("n1") == "some words")
    await substrate.close()
    assert (tmp_path / "kept" / "n1" / "out").read_text() == "some words\n"
    assert kubectl("-n", pod_of(at)[1], "get", "pods,statefulsets,pvc", "-o", "name") == ""
    await eventually("the namespace to go", lambda: pod_of(at)[1] not in namespaces())


@pytest.mark.parametrize("when", ["made", "started"])
async def test_a_killed_harness_leaves_logs_and_nothing_else(tmp_path: Path, when: str) -> None:
    process = harness(tmp_path)
    assert process.stdout is not None
    namespace = process.stdout.readline().strip()
    if when == "started":
        assert process.stdout.readline() == "started\n"
    assert namespace in namespaces()
    process.kill()
    process.wait()
    await eventually("the namespace to go", lambda: namespace not in namespaces())
    assert kept(tmp_path) == (["some words\n"] if when == "started" else [])


async def test_what_is_kept_has_no_owner_that_could_be_lost(tmp_path: Path) -> None:
    """Else a run that begins minutes later would clear it away."""
    substrate = await opened(tmp_path, keep=True)
    at = await begun(substrate)
    pod, namespace = pod_of(at)
    await substrate.close(keep=True)
    try:
        told = json.loads(kubectl("get", "namespace", namespace, "-o", "json"))["metadata"]
        assert "roachproof/renewed" not in told.get("annotations", {})
        assert "Running" in kubectl("-n", namespace, "get", "pod", pod)
    finally:
        kubectl("delete", "namespace", namespace, "--wait=false")


async def test_whoever_does_not_care_for_the_node_has_a_service_that_leads_to_all(tmp_path: Path) -> None:
    substrate = await opened(tmp_path, ports=(26257, 8080))
    try:
        placed = await substrate.place([NodeSpec(name=f"n{number}") for number in (1, 2)])
        await asyncio.gather(*(substrate.start(spec(at, HANGS)) for at in placed))
        of = ("-n", pod_of(placed[0])[1], "get")
        pods = set(kubectl(*of, "pods", "-o", "jsonpath={.items[*].status.podIP}").split())
        assert len(pods) == 2
        slices = ("endpointslices", "-l", "kubernetes.io/service-name=nodes-public")
        leads = (*of, *slices, "-o", "jsonpath={.items[*].endpoints[*].addresses[*]}")
        await eventually("its addresses", lambda: set(kubectl(*leads).split()) == pods)
        ports = kubectl(*of, "service", "nodes-public", "-o", "jsonpath={.spec.ports[*].port}")
        assert ports.split() == ["26257", "8080"]
    finally:
        await substrate.close()


async def test_a_namespace_that_was_there_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "default")
    substrate = await opened(tmp_path)
    try:
        at = await begun(substrate)
        assert pod_of(at)[1] == "default"
    finally:
        await substrate.close()
    left = kubectl("get", "all,pvc,configmaps,pdb", "-l", "app.kubernetes.io/managed-by=roachproof", "-o", "name")
    assert left == ""
    assert "Active" in kubectl("get", "namespace", "default")


async def test_all_that_lacks_is_said_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quota, a limit range, machines and a storage class; what just fits goes on."""
    small = NodeResources(cache_mib=1, sql_memory_mib=1, cpus=0.1, memory_mib=64)
    metadata = {"name": "few", "namespace": "few"}
    bounds = {"type": "Container", "max": {"cpu": "100m"}}
    apply(
        tmp_path / "few.json",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "few"}},
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": metadata,
            "spec": {"hard": {"requests.memory": "128Mi", "pods": "2"}},
        },
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": [bounds]}},
    )
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "few")
    nodes = [NodeSpec(name=f"n{number}") for number in (1, 2, 3)]
    try:
        substrate = await opened(tmp_path, nodes=nodes[:2], resources=small)
        try:
            await asyncio.gather(*(substrate.start(spec(at, HANGS, small)) for at in await substrate.place(nodes[:2])))
        finally:
            await substrate.close()
        monkeypatch.setenv("ROACHPROOF_KUBERNETES_STORAGE_CLASS", "none")
        with pytest.raises(BadInput) as refused:
            await opened(tmp_path, nodes=nodes, resources=replace(small, cpus=64))
        for lack in (
            "3 nodes cannot be placed in namespace few",
            "ResourceQuota few: requests.memory: 192 MiB are asked, 128 MiB of 128Mi are left",
            "ResourceQuota few: pods: 3 are asked, 2 of 2 are left",
            "LimitRange few: a Container may have cpu 100m, 64 are asked",
            "storage class none is not there; there are: standard",
            "machines: 3 nodes of node-region-1-zone-1 ask cpu 64, memory 64 MiB each, 0 fit (machine-1 has cpu ",
        ):
            assert lack in str(refused.value)
        assert objects("few") == ""
    finally:
        kubectl("delete", "namespace", "few", "--wait=false")


async def test_another_image_forward_and_back_is_another_version_with_the_same_rows(tmp_path: Path) -> None:
    """Of CockroachDB, as versions of the control share an image."""
    kind, (image, program) = ENGINES["cockroach"], image_of()
    if not program or (old := kind.former(new := kind.find(Wanted(path=program)))) is None:
        pytest.skip("the cache has no build of CockroachDB that may become another one of its series")
    nodes = tuple(NodeSpec(name=f"n{number}") for number in (1, 2, 3))
    substrate = await opened(tmp_path)

    def runs() -> str:
        pod, namespace = pod_of(substrate._nodes["n2"].placement)
        return kubectl("-n", namespace, "get", "pod", pod, "-o", "jsonpath={.spec.containers[0].image}")

    try:
        cluster = await Cluster.provision(
            engine=old,
            substrate=substrate,
            topology=Topology(name="three", nodes=nodes),
            resources=NodeResources(cache_mib=64, sql_memory_mib=64),
            tuned=False,
        )
        await cluster.deployment.keep_version()
        async with await cluster.deployment.connect() as connection:
            await connection.execute("CREATE TABLE kept (answer INT PRIMARY KEY)", timeout=60.0)
            await connection.execute("INSERT INTO kept VALUES (42)", timeout=60.0)
        former = runs()
        for to, back, wanted in ((new, old, image), (old, new, former)):
            await cluster.replicated()
            async with disturb(cluster, swap(to, back), ["n2"]):
                pass
            assert runs() == wanted != ""
            assert (await cluster.deployment.running("n2")).build == to.version
        async with await cluster.deployment.connect("n2") as connection:
            ((answer,),) = await connection.query("SELECT answer FROM kept")
        assert answer == 42
    finally:
        await substrate.close()


async def test_a_kubeconfig_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token, a context and a file that are none."""
    as_account(tmp_path / "stranger", "none", monkeypatch)
    with pytest.raises(BadInput, match="its token or certificate is not accepted"):
        await opened(tmp_path)
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_CONTEXT", "nonsense")
    with pytest.raises(BadInput, match="ROACHPROOF_KUBERNETES_CONTEXT"):
        await opened(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "no such file"))
    with pytest.raises(BadInput, match="no such file"):
        await opened(tmp_path)


async def test_pods_go_where_they_are_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To machines that are for databases alone, and to none where there is no such machine."""
    (told := tmp_path / "pods.json").write_text(
        json.dumps({"nodeSelector": {"pool": "databases"}, "tolerations": [{"key": "only", "operator": "Exists"}]})
    )
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_PODS", str(told))
    two = [NodeSpec(name="n1"), NodeSpec(name="n2")]
    with pytest.raises(BadInput, match=r"2 nodes of .* 0 fit \(none takes them\); where machines are added .* set"):
        await opened(tmp_path, nodes=two)
    kubectl("label", "node", "machine-2", "pool=databases")
    kubectl("taint", "node", "machine-2", "only=databases:NoSchedule")
    try:
        substrate = await opened(tmp_path, nodes=two)
        try:
            for at in await substrate.place(two):
                await substrate.start(spec(at, HANGS))
            _, namespace = pod_of(at)
            on = kubectl("-n", namespace, "get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}")
            assert on.split() == ["machine-2"] * 2
        finally:
            await substrate.close()
    finally:
        kubectl("taint", "node", "machine-2", "only-")
        kubectl("label", "node", "machine-2", "pool-")


async def test_a_pod_that_is_not_admitted_ends_with_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whatever is not looked at before, as a webhook: here by a quota, of which nothing is asked without nodes."""
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "default")
    kubectl("-n", "default", "create", "quota", "none", "--hard=pods=0")
    try:
        substrate = await opened(tmp_path)
        try:
            with pytest.raises(BadInput, match=r"pod node-.* is not admitted: FailedCreate: .* exceeded quota: none"):
                await begun(substrate)
        finally:
            await substrate.close()
    finally:
        kubectl("-n", "default", "delete", "quota", "none")
    assert objects("default") == ""


async def test_a_large_archive_is_taken_along_whole(tmp_path: Path) -> None:
    """As a backup of many warehouses, of which more arrives than the client takes at once."""
    substrate = await opened(tmp_path)
    try:
        at = await begun(substrate)
        first, second = at.home / "first", at.home / "second"
        made = f"mkdir {first} && head -c {64 << 20} /dev/urandom > {first}/file"
        done = await substrate.run(["/bin/sh", "-c", made], env=ENV, timeout=120, node="n1")
        assert done.code == 0, done.err
        with tempfile.TemporaryFile() as sent, tempfile.TemporaryFile() as back:
            await substrate.archive("n1", first, sent)
            await substrate.extract("n1", second, sent)
            await substrate.archive("n1", second, back)
            contents = []
            for packed in (sent, back):
                packed.seek(0)
                with tarfile.open(fileobj=packed) as tar:
                    file = tar.extractfile("./file")
                    assert file is not None
                    contents.append(file.read())
        assert len(contents[0]) == 64 << 20
        assert contents[0] == contents[1]
    finally:
        await substrate.close()
