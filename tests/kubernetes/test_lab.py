"""The Kubernetes that other tests run in: what they count on in it, and that nothing of it stays."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from clusters.cache import cache_dir
from fixtures.workloads.relay import ROOT
from tests.kubernetes.at_hand import none_at_hand
from tests.kubernetes.lab.images import SHELL, Image
from tests.kubernetes.lab.inside import until
from tests.kubernetes.lab.lab import Lab, why_not
from tests.kubernetes.lab.remains import sweep

NONE = none_at_hand() or why_not()
pytestmark = pytest.mark.skipif(bool(NONE), reason=NONE)

BASE = cache_dir(os.environ) / "lab"
ZONES = [("east", "a"), ("west", "b")]
WAIT = "--timeout=180s"
OWNER = """
import signal, sys
from tests.kubernetes.test_lab import fresh
lab = fresh().start()
print(lab.name, lab.pid, lab.remover.pid, flush=True)
signal.pause()
"""
"""A process that has a lab, and would have it for ever."""
WITH_A_SHELL = """
import sys
from tests.kubernetes.lab import __main__ as command
command.known_images = lambda *_: [command.Image(name=command.SHELL)]
sys.exit(command.main())
"""
"""The command line with one small image, as importing all of them would take minutes."""


def fresh() -> Lab:
    return Lab(BASE, [Image(name=SHELL)], ZONES)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with fresh() as started:
        yield started


def told(lab: Lab, *arguments: str) -> Any:
    return json.loads(lab.kubectl(*arguments, "-o", "json"))


def apply(lab: Lab, *objects: Mapping[str, Any]) -> None:
    file = lab.directory / "applied.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    lab.kubectl("apply", "-f", str(file))


def pod(name: str, script: str, *, container: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    runs = {"name": "only", "image": SHELL, "command": ["/bin/sh", "-c", script], **(container or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [runs], "terminationGracePeriodSeconds": 0, **spec},
    }


def members(namespace: str) -> list[str]:
    """The processes of a PID namespace, those of the namespaces' own zombies too."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str((process / "ns" / "pid").readlink()) == namespace:
                found.append(process.name)
        except OSError:
            continue
    return found


def left_of(name: str) -> list[Path]:
    return [*BASE.glob(name), *Path("/sys/fs/cgroup").glob(f"**/{name}")]


def test_machines_are_ready_and_have_the_zones_they_were_given(lab: Lab) -> None:
    lab.kubectl("wait", "--for=condition=Ready", "node", "--all", WAIT)
    labels = [node["metadata"]["labels"] for node in told(lab, "get", "nodes")["items"]]
    found = {(of["topology.kubernetes.io/region"], of["topology.kubernetes.io/zone"]) for of in labels}
    assert found == set(ZONES)


def test_anybody_writes_to_a_volume_of_the_default_class(lab: Lab) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "disk"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}},
    }
    writer = pod(
        "writer",
        # The provisioner's directory is opened to everybody a moment after it was made.
        "until id -un > /data/who; do sleep 0.1; done; date +%s.%N > /data/when; exec sleep infinity",
        container={
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            "readinessProbe": {"exec": {"command": ["test", "-s", "/data/when"]}, "periodSeconds": 1},
        },
        volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "disk"}}],
        securityContext={"runAsUser": 65534, "runAsGroup": 65534, "runAsNonRoot": True},
    )
    apply(lab, claim, writer)
    lab.kubectl("wait", "--for=condition=Ready", "pod/writer", WAIT)
    bound = told(lab, "get", "pvc", "disk")
    assert (bound["status"]["phase"], bound["spec"]["storageClassName"]) == ("Bound", "standard")
    who, when = lab.kubectl("exec", "writer", "--", "cat", "/data/who", "/data/when").split()
    assert who == "nobody"
    assert len(when.split(".")[1]) == 9, "nanoseconds"


def test_what_takes_more_memory_than_its_limit_is_killed(lab: Lab) -> None:
    limits = {"resources": {"limits": {"memory": "32Mi"}}}
    # It keeps all that it has read of the last line.
    apply(lab, pod("greedy", "exec tail /dev/zero", container=limits, restartPolicy="Never"))
    lab.kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/greedy", WAIT)
    (state,) = told(lab, "get", "pod", "greedy")["status"]["containerStatuses"]
    # The reason is OOMKilled, or only Error where the process' end was heard of before that of the memory.
    assert state["state"]["terminated"]["exitCode"] == 128 + signal.SIGKILL


def test_a_headless_service_has_names_for_pods_that_are_not_ready(lab: Lab) -> None:
    spec = {"clusterIP": "None", "selector": {"app": "shy"}, "ports": [{"port": 1}]}
    services = [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {**spec, **own}}
        for name, own in (("all", {"publishNotReadyAddresses": True}), ("ready", {}))
    ]
    never = {"readinessProbe": {"exec": {"command": ["false"]}}}
    shy = pod("shy", "exec sleep infinity", container=never, hostname="first", subdomain="all")
    apply(lab, *services, shy)
    lab.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/shy", WAIT)
    address = told(lab, "get", "pod", "shy")["status"]["podIP"]

    def resolved(name: str) -> list[str]:
        line = lab.enter(["getent", "ahostsv4", f"{name}.default.svc.cluster.local"])
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        return sorted({answer.split()[0] for answer in done.stdout.splitlines()})

    until("the service's name", lambda: resolved("all") == [address])
    assert resolved("first.all") == [address]
    assert resolved("ready") == []
    assert address in lab.kubectl("exec", "shy", "--", "nslookup", "first.all.default.svc.cluster.local")


def test_a_pod_reaches_the_api_server_as_its_environment_says(lab: Lab) -> None:
    """As a harness that runs in the cluster does, with the account's own certificates and token."""
    own = "/var/run/secrets/kubernetes.io/serviceaccount"
    apply(lab, pod("insider", f"test -s {own}/token && test -s {own}/ca.crt && exec sleep infinity"))
    lab.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/insider", WAIT)
    asks = "nc -w 10 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT < /dev/null && echo reached"
    assert lab.kubectl("exec", "insider", "--", "sh", "-c", asks).split() == ["reached"]


def test_an_isolated_machine_is_lost_until_it_is_healed(lab: Lab) -> None:
    def ready(status: str) -> None:
        lab.kubectl("wait", f"--for=condition=Ready={status}", "node/machine-2", WAIT)

    lab.isolate(2)
    try:
        ready("Unknown")
    finally:
        lab.heal()
    ready("True")


@pytest.mark.parametrize("remover_lives", [True, False], ids=["by its remover", "by the next lab"])
def test_what_its_owner_leaves_when_it_is_killed_is_removed(remover_lives: bool) -> None:
    """At once; and by the next lab where the process that does that is killed, too."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout is not None
        name, pid, remover = owner.stdout.readline().split()
        namespace = str(Path(f"/proc/{pid}/ns/pid").readlink())
        assert len(members(namespace)) > 8, "the control plane and two machines"
        if not remover_lives:
            os.kill(int(remover), signal.SIGKILL)
    finally:
        owner.kill()
        owner.communicate()
    until("its processes to be gone", lambda: not members(namespace))
    if remover_lives:
        until("the rest to be gone", lambda: not left_of(name))
        return
    assert left_of(name), "nobody was there to remove anything"
    assert name in sweep(BASE)
    assert left_of(name) == []


def test_a_command_has_kubectl_and_its_exit_code_is_the_labs() -> None:
    command = 'kubectl get nodes -o name && test -s "$ROACHPROOF_KUBERNETES_IMAGES" && exit 7'
    line = [sys.executable, "-c", WITH_A_SHELL, "--machines", "2", "sh", "-c", command]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (7, ["node/machine-1", "node/machine-2"]), done.stderr
    assert sweep(BASE) == []


def test_ended_it_ends_in_good_order(tmp_path: Path) -> None:
    """The command is asked to end, and the lab is there until it has."""
    command = f"trap 'kubectl get nodes -o name > {tmp_path}/last; exit 5' TERM; echo up; while :; do sleep 0.1; done"
    line = [sys.executable, "-c", WITH_A_SHELL, "--machines", "1", "sh", "-c", command]
    process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 5
    finally:
        process.kill()
        process.communicate()
    assert (tmp_path / "last").read_text() == "node/machine-1\n"
    assert sweep(BASE) == []
