"""A machine that is lost or drained, with volumes that only it has: a node waits for it, and has all that it wrote."""

import asyncio
import json
import secrets
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from clusters.model import NodeSpec, ProcessState
from clusters.substrates.kubernetes.rights import MACHINES, MANIFEST
from tests.kubernetes.at_hand import (
    ADMIN,
    AT_HAND,
    apply,
    as_account,
    begun,
    eventually,
    history,
    kubectl,
    machines_take_pods,
    namespaces,
    opened,
    pod_of,
    spec,
)
from tests.kubernetes.running import Running
from tests.slow import slow

pytestmark = AT_HAND
WRITES = "trap 'exit 0' TERM; i=$(cat store/last 2>/dev/null || echo 0); while :; do i=$((i + 1)); " \
    "echo $i > store/new; mv store/new store/last; sleep 0.05; done"  # fmt: skip
DRAIN = ("--ignore-daemonsets", "--delete-emptydir-data", "--force")
_TRIES = 300
CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "local"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def machines() -> list[str]:
    return kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}").split()


def volume(machine: str, directory: Path) -> dict[str, Any]:
    """A disk that one machine has."""
    (disk := directory / machine).mkdir()
    disk.chmod(0o777)
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [machine]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"disk-{secrets.token_hex(4)}", "labels": {"roachproof-test": "lost-machine"}},
        "spec": {
            "capacity": {"storage": "16Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": str(disk)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


@pytest.fixture
async def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Any]:
    """Three nodes that write numbers, each on a machine of its own, with a volume that only that has."""
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_STORAGE_CLASS", "local")
    # Beside the cluster's own files: machines see those of the lab, not those that tests have mounted.
    disks = Path(ADMIN).parent / f"disks-{tmp_path.name}"
    disks.mkdir()
    apply(tmp_path / "disks.json", CLASS, *(volume(machine, disks) for machine in machines()))
    substrate = await opened(tmp_path)
    try:
        for at in await substrate.place([NodeSpec(name=f"n{number}") for number in (1, 2, 3)]):
            await substrate.start(spec(at, WRITES))
        yield substrate
    finally:
        await substrate.close()
        kubectl("delete", "pv", "-l", "roachproof-test=lost-machine", "--wait=false")
        kubectl("delete", "storageclass", "local")


def told(place: Any, node: str) -> Any:
    pod, namespace = pod_of(place._nodes[node].placement)
    answer = kubectl("-n", namespace, "get", "pod", pod, "-o", "json", "--ignore-not-found")
    return json.loads(answer or "{}")


def machine_of(place: Any, node: str) -> str:
    return str(told(place, node)["spec"]["nodeName"])


async def said(place: Any, node: str, line: str) -> str:
    """What a shell says in a node's store."""
    at = place._nodes[node].placement
    shell = ["/bin/sh", "-c", line]
    return str((await place.run(shell, env={"PATH": "/bin"}, timeout=20, node=node, cwd=at.store)).out).strip()


async def last(place: Any, node: str) -> int:
    """The number that a node wrote last."""
    return int(await said(place, node, "cat last"))


async def marked(place: Any, node: str) -> str:
    """What is in a node's store from now on, and in no other: it is found again only if that is kept."""
    mark = secrets.token_hex(8)
    await said(place, node, f"echo {mark} > mark")
    return mark


async def goes_on(place: Any, node: str) -> None:
    """Wait until a node writes a higher number than it has."""
    before = await last(place, node)
    for _ in range(_TRIES):
        if await last(place, node) > before:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{node} writes nothing more than {before}")


@contextmanager
def isolated(machine: str) -> Iterator[None]:
    """Nothing passes to and from a machine; the control plane's side of its link is named after its number."""
    link = f"up{machine.rpartition('-')[2]}"
    rules = ["add table inet lost"]
    for hook, match in (("input", "iifname"), ("output", "oifname"), ("forward", "iifname")):
        rules.append(f"add chain inet lost {hook} {{ type filter hook {hook} priority -10; }}")
        rules.append(f"add rule inet lost {hook} {match} {link} drop")
    rules.append(f"add rule inet lost forward oifname {link} drop")
    subprocess.run(["nft", "; ".join(rules)], check=True)
    try:
        yield
    finally:
        subprocess.run(["nft", "delete table inet lost"], check=True)


async def test_a_machine_that_is_lost_and_comes_back(place: Any, tmp_path: Path) -> None:
    """Its pod is evicted and made nowhere else; the others go on; it comes back where its volume is."""
    machine, former = machine_of(place, "n2"), told(place, "n2")["metadata"]["uid"]
    assert len({machine_of(place, node) for node in ("n1", "n2", "n3")}) == 3
    mark, wrote = await marked(place, "n2"), await last(place, "n2")
    with isolated(machine):
        kubectl("wait", "--for=condition=Ready=Unknown", f"node/{machine}", "--timeout=120s")
        await eventually("its eviction", lambda: "deletionTimestamp" in told(place, "n2")["metadata"])
        assert told(place, "n2")["metadata"]["uid"] == former, "nobody else may have its volume"
        for node in ("n1", "n3"):
            await goes_on(place, node)
        assert place.state("n1") is place.state("n3") is ProcessState.RUNNING
        lost = place.machine_lost("n2")
        assert lost.startswith(f"its machine {machine} was not ready since 20"), "so that no claim is refuted by it"
        assert "(Ready Unknown: NodeStatusUnknown Kubelet stopped posting node status.)" in lost
        assert place.machine_lost("n1") == place.machine_lost("n3") == ""
    await machines_take_pods()
    await eventually("another pod", lambda: told(place, "n2").get("metadata", {"uid": former})["uid"] != former)
    await eventually("it to go on", lambda: place.state("n2") is ProcessState.RUNNING)
    assert machine_of(place, "n2") == machine
    assert await said(place, "n2", "cat mark") == mark, "the volume is the same"
    assert await last(place, "n2") >= wrote
    await goes_on(place, "n2")
    assert place.machine_lost("n2") == lost, "it was silent all the same"
    assert place.machine_lost("n1") == place.machine_lost("n3") == ""
    for kept in ("to be deleted", f"machine {machine} was not ready since", f"machine {machine} is ready again"):
        assert kept in history(tmp_path)


async def test_a_machine_that_is_lost_is_known_to_an_account_of_a_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may not look at machines: what Kubernetes says of the pods is enough."""
    kubectl("apply", "-f", str(MANIFEST))
    kubectl("delete", "clusterrolebinding", MACHINES)
    token = kubectl("-n", "roachproof", "create", "token", "roachproof").strip()
    as_account(tmp_path / "kubeconfig", token, monkeypatch)
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "roachproof")
    substrate = await opened(tmp_path)
    try:
        await begun(substrate)
        machine = machine_of(substrate, "n1")
        # Of another Kubernetes tells no event.
        kubectl("-n", "roachproof", "wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s")
        with isolated(machine):
            await eventually("Kubernetes' word", lambda: substrate.machine_lost("n1"))
        assert f"its machine {machine} was not ready (NodeNotReady: Node is not ready, since 20" in (
            substrate.machine_lost("n1")
        )
        await machines_take_pods()
    finally:
        await substrate.close()
        kubectl("delete", "--wait=false", "-f", str(MANIFEST))
    assert "by events of its pods alone; to see why takes: list nodes, watch nodes" in capsys.readouterr().out


@slow
async def test_a_machine_that_is_lost_refutes_no_claim(tmp_path: Path) -> None:
    """In the middle of one, whose silence would be an outage: the harness has failed, and the machine is named."""
    run = Running(tmp_path)
    try:
        await asyncio.to_thread(run.until, "the baseline", lambda: "baseline.begin" in run.events())
        (namespace,) = namespaces().split()
        of = ("-n", namespace.partition("/")[2], "get", "pods", "-o", "jsonpath={.items[0].spec.nodeName}")
        machine = kubectl(*of).strip()
        with isolated(machine):
            status = await asyncio.to_thread(run.process.wait)
    finally:
        run.end()
    assert status == 7, run.said
    assert "REFUTED" not in run.said
    assert f"its machine {machine} was not ready since 20" in " ".join(run.said.split())
    await machines_take_pods()
    await eventually("all that it made to go", lambda: not namespaces())


async def test_a_machine_that_is_drained(place: Any, tmp_path: Path) -> None:
    """Its pod waits for it; a second machine is not drained meanwhile, as the budget is one; then all goes on."""
    machine, other = machine_of(place, "n2"), machine_of(place, "n3")
    mark, wrote = await marked(place, "n2"), await last(place, "n2")
    try:
        answer = kubectl("drain", machine, *DRAIN, "--timeout=100s")
        assert "drained" in answer, answer
        await eventually("the end of its process", lambda: place.state("n2") is ProcessState.EXITED)
        assert "its pod was ended from outside" in place.ended_by("n2"), "so that no claim is refuted by it"
        await eventually("the scheduler's word", lambda: "affinity" in json.dumps(told(place, "n2").get("status")))
        assert "disruption budget" in kubectl("drain", other, *DRAIN, "--timeout=5s")
        assert place.state("n1") is place.state("n3") is ProcessState.RUNNING
    finally:
        kubectl("uncordon", machine)
        kubectl("uncordon", other)
    await eventually("it to go on", lambda: place.state("n2") is ProcessState.RUNNING)
    assert machine_of(place, "n2") == machine
    assert await said(place, "n2", "cat mark") == mark, "the volume is the same"
    assert await last(place, "n2") >= wrote
    await goes_on(place, "n2")
    assert "FailedScheduling" in history(tmp_path)


async def test_no_node_is_evicted_while_another_is_down(place: Any) -> None:
    """Its pod is there, and nothing runs in it: what evicts pods must know that, or two are down at once."""
    at = place._nodes["n2"].placement
    budget = ("-n", pod_of(at)[1], "get", "pdb", "nodes", "-o", "jsonpath={.status.disruptionsAllowed}")
    await eventually("all to be ready", lambda: kubectl(*budget) == "1")
    await place.kill("n2")
    await eventually("it to be seen down", lambda: kubectl(*budget) == "0")
    other = machine_of(place, "n3")
    try:
        assert "disruption budget" in kubectl("drain", other, *DRAIN, "--timeout=5s")
    finally:
        kubectl("uncordon", other)
    assert place.state("n3") is ProcessState.RUNNING
    await place.start(spec(at, WRITES))
    await eventually("it to be seen up", lambda: kubectl(*budget) == "1")
