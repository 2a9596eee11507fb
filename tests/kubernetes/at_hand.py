"""What the tests of the substrate share: a place in the Kubernetes at hand, a node in it, and what ``kubectl`` says."""

import asyncio
import json
import os
import subprocess
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import pytest

from clusters.model import Capability, Health, NodeResources, NodeSpec, ProcessSpec
from clusters.substrates import SUBSTRATES
from clusters.waiting import wait_until
from tests.kubernetes.lab.lab import why_not

LAB = "ROACHPROOF_LAB"
"""The kubeconfig of the lab that a test runs in: these tests delete namespaces and drain machines, so that no other
Kubernetes is theirs, whatever else a user's environment names."""


def none_at_hand() -> str:
    """Why no Kubernetes is, and what would make one; nothing where one is."""
    if os.environ.get(LAB, "") == os.environ.get("KUBECONFIG") != "":
        return ""
    if missing := why_not():
        return f"no Kubernetes is at hand, and none can be made here: {missing}"
    return "no Kubernetes is at hand: `tox -e k8s` makes one, and runs this in it"


AT_HAND = pytest.mark.skipif(bool(none_at_hand()), reason=none_at_hand())
ENV = {"PATH": "/usr/bin:/bin"}
ADMIN = os.environ.get("KUBECONFIG", "")
HANGS = "while :; do sleep 0.05; done"


def kubectl(*arguments: str) -> str:
    """What it says, to whoever may do everything."""
    env = {**os.environ, "KUBECONFIG": ADMIN}
    line = ["kubectl", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120, env=env)
    return done.stdout + done.stderr


def as_account(file: Path, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the rest of the test be the account that the token is of, by a kubeconfig of its own."""
    whole = json.loads(Path(ADMIN).read_text())
    file.write_text(json.dumps({**whole, "users": [{"name": "admin", "user": {"token": token}}]}))
    monkeypatch.setenv("KUBECONFIG", str(file))


def objects(namespace: str) -> str:
    """All that is of ours in a namespace."""
    kinds = "statefulsets,jobs,pods,pvc,configmaps,services,pdb"
    return kubectl("-n", namespace, "get", kinds, "-l", "app.kubernetes.io/managed-by=roachproof", "-o", "name")


def namespaces() -> str:
    return kubectl("get", "namespaces", "-l", "app.kubernetes.io/managed-by=roachproof", "-o", "name")


def apply(file: Path, *objects: Mapping[str, Any]) -> None:
    """Have the cluster have these objects; ``file`` keeps them."""
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    said = kubectl("apply", "-f", str(file))
    assert "error" not in said.lower(), said


async def opened(
    tmp_path: Path,
    *,
    keep: bool = False,
    nodes: Sequence[NodeSpec] = (),
    resources: NodeResources | None = None,
    needed: Set[Capability] = frozenset(),
    **options: Any,
) -> Any:
    return await SUBSTRATES["kubernetes"].open(
        name="test",
        workdir=tmp_path,
        needed=needed,
        capacity=1,
        nodes=nodes,
        resources=resources,
        say=print,
        keep=keep,
        keep_logs=tmp_path / "kept",
        **options,
    )


async def begun(place: Any, script: str = HANGS, limits: NodeResources | None = None) -> Any:
    (at,) = await place.place([NodeSpec(name="n1")])
    await place.start(spec(at, script, limits))
    return at


def spec(at: Any, script: str, limits: NodeResources | None = None) -> ProcessSpec:
    argv = ("/bin/sh", "-c", script)
    return ProcessSpec(name=at.node.name, argv=argv, env=ENV, cwd=at.home, output=at.logs / "out", resources=limits)


def pod_of(at: Any) -> tuple[str, str]:
    """A node's pod and namespace, as ``kubectl`` takes them."""
    pod, _, namespace, *_ = at.address.split(".")
    return pod, namespace


def history(tmp_path: Path) -> str:
    """What was kept of the pods' events and states."""
    return (tmp_path / "kept" / "kubernetes" / "pods.log").read_text()


async def eventually(what: str, check: Any) -> None:
    async def attempt() -> Health:
        return Health(ok=bool(await asyncio.to_thread(check)))

    await wait_until(what, attempt, timeout=120, interval=0.2)


async def machines_take_pods() -> None:
    """Wait until all do: each was heard of since now, is ready, and has no taint.

    One that could not reach the API server for half a minute may be given up some seconds after it can.
    """
    heard = ("-n", "kube-node-lease", "get", "leases", "-o", "jsonpath={.items[*].spec.renewTime}")
    state = '{range .items[*]}{.spec.taints}{.status.conditions[?(@.type=="Ready")].status} {end}'
    before = set(kubectl(*heard).split())
    await eventually("all machines to be heard of", lambda: not before & set(kubectl(*heard).split()))
    told = ("get", "nodes", "-o", f"jsonpath={state}")
    await eventually("all machines to take pods", lambda: set(kubectl(*told).split()) == {"True"})
