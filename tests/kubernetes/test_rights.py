"""The manifest of rights on a real Kubernetes: with them a run comes to its end, with one less it says which."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clusters.errors import BadInput
from clusters.generators import WantedGenerators
from clusters.model import Capability, NodeResources, NodeSpec, ProcessSpec, ProcessState
from clusters.substrates import SUBSTRATES
from clusters.substrates.adopted.capabilities import CHANGES
from clusters.substrates.kubernetes.rights import (
    ADOPTED,
    ADOPTED_CHANGES,
    CUTTING,
    FORWARDS,
    GENERATORS,
    IN_A_NAMESPACE,
    MACHINES,
    MANIFEST,
    NAMESPACES,
    ROOM,
    Right,
    granted,
)
from tests.kubernetes.at_hand import (
    AT_HAND,
    HANGS,
    apply,
    as_account,
    begun,
    eventually,
    kubectl,
    namespaces,
    objects,
    opened,
    pod_of,
    spec,
)
from tests.kubernetes.lab.images import SHELL
from tests.kubernetes.release import secret, stateful

pytestmark = AT_HAND
ROOT = Path(__file__).resolve().parents[2]
OTHERS = (ADOPTED, ADOPTED_CHANGES)
ROLES = (IN_A_NAMESPACE, NAMESPACES, MACHINES, GENERATORS, CUTTING, FORWARDS, *OTHERS)
RIGHTS = [(role, right) for role in ROLES for right in granted(role)]
WHOLE = "whole"
"""The account with all rights, those to make namespaces too."""
OF_OTHERS = "of-others"
"""The account with the rights to a cluster that is there already, and to change that one."""
THERE = "there"
"""What stands for such a cluster: a shell, by its command one of the subject."""


def named(role: str, right: Right) -> str:
    return re.sub("[^a-z]+", "-", f"without-{role}-{right.verb}-{right.resource}")


def rules(role: str, less: Right | None) -> list[dict[str, Any]]:
    return [
        {"apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb]}
        for right in granted(role)
        if right != less
    ]


def account(name: str, lacks: tuple[str, Right] | None, roles: Sequence[str] = ROLES) -> list[dict[str, Any]]:
    """An account that has these roles in the whole cluster, but for one right."""
    group = "rbac.authorization.k8s.io"
    has = [rule for role in roles for rule in rules(role, lacks[1] if lacks else None)]
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "roachproof"}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "roachproof"}},
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": has},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [subject],
        },
    ]


@pytest.fixture(scope="module", autouse=True)
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """That of the manifest, one with all of its rights, and for each right one without it."""
    file = tmp_path_factory.mktemp("rights") / "accounts.json"
    made = account(WHOLE, None) + account(OF_OTHERS, None, OTHERS)
    made += [one for role, right in RIGHTS for one in account(named(role, right), (role, right))]
    kubectl("apply", "-f", str(MANIFEST))
    container = {"image": SHELL, "command": ["/bin/sh", "-c", f": /cockroach/cockroach start; trap exit TERM; {HANGS}"]}
    made.append(stateful(THERE, container=container, replicas=1, namespace="roachproof"))
    headless = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"app": THERE}}
    called = {"name": THERE, "namespace": "roachproof"}
    made.append({"apiVersion": "v1", "kind": "Service", "metadata": called, "spec": headless})
    root = secret(f"{THERE}-client-secret", dict.fromkeys(("ca.crt", "tls.crt", "tls.key"), b"no certificate"))
    made.append({**root, "metadata": {"name": f"{THERE}-client-secret", "namespace": "roachproof"}})
    apply(file, *made)
    kubectl("-n", "roachproof", "rollout", "status", f"statefulset/{THERE}", "--timeout=60s")
    try:
        yield
    finally:
        kubectl("delete", "--wait=false", "-f", str(file), "-f", str(MANIFEST))


def become(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = kubectl("-n", "roachproof", "create", "token", name).strip()
    as_account(tmp_path / "kubeconfig", token, monkeypatch)


@pytest.mark.parametrize("own", [False, True], ids=["in a namespace that is there", "in its own"])
async def test_exactly_these_rights_are_enough(own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node is made, hurt, made anew with limits and given others in place, looked at and cleared away.

    Its logs are kept.

    Another is added, and taken away.

    A link of it is cut where the account has the right to that, too.
    """
    become(WHOLE if own else "roachproof", tmp_path, monkeypatch)
    if not own:
        monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "roachproof")
    substrate = await opened(tmp_path, needed={Capability.CUT_LINKS} if own else frozenset())
    try:
        at = await begun(substrate, f"echo some words; {HANGS}")
        # Killed before its shell has read the order it would end by itself, as the order is gone.
        await eventually("its words", lambda: substrate.log_tail("n1") == "some words")
        await substrate.kill("n1")
        assert substrate.exit_code("n1") == -signal.SIGKILL
        await substrate.start(spec(at, HANGS, NodeResources(cache_mib=1, sql_memory_mib=1, cpus=0.5, memory_mib=64)))
        assert substrate.limits("n1") == {"cpus": 0.5, "memory_mib": 64.0}
        pod = substrate._pods[pod_of(at)[0]]
        former = pod.uid
        await substrate.kill("n1")
        await substrate.start(spec(at, HANGS, NodeResources(cache_mib=1, sql_memory_mib=1, cpus=0.25, memory_mib=96)))
        assert (pod.uid, substrate.limits("n1")) == (former, {"cpus": 0.25, "memory_mib": 96.0})
        assert substrate.state("n1") is ProcessState.RUNNING
        (more,) = await substrate.place([NodeSpec(name="n0")])
        await substrate.start(spec(more, HANGS))
        await substrate.kill("n0")
        await substrate.take_away("n0")
        if own:
            await substrate.place([NodeSpec(name="n2")])
            assert await substrate.cut("n1", "n2")
    finally:
        await substrate.close()
    assert (tmp_path / "kept" / "n1" / "out").read_text() == "some words\n"


@pytest.mark.parametrize(("role", "right"), RIGHTS, ids=[named(*each) for each in RIGHTS])
async def test_with_one_right_less_it_is_named_and_nothing_is_made(
    role: str, right: Right, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    become(named(role, right), tmp_path, monkeypatch)
    in_one = role not in (NAMESPACES, MACHINES)
    if role == FORWARDS:
        monkeypatch.setenv("ROACHPROOF_KUBERNETES_REACH", "port-forward")
    if in_one:
        monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "roachproof")
    where = "namespace roachproof" if in_one else "the whole cluster"
    before = set(namespaces().split())
    lacks = re.escape(f"lacks rights in {where}: {right}; grant it the ClusterRole {role} of {MANIFEST}")
    with pytest.raises(BadInput, match=lacks):
        await (adopted(tmp_path) if role in OTHERS else needing_all(tmp_path))
    assert objects("roachproof") == ""
    assert set(namespaces().split()) <= before


async def needing_all(tmp_path: Path) -> Any:
    """A place for what needs all rights to a cluster of its own."""
    return await opened(
        tmp_path,
        ports=(26257,),
        nodes=[NodeSpec(name=f"n{zone}", zone=f"zone-{zone}") for zone in (1, 2)],
        needed={Capability.CUT_LINKS},
        generators=WantedGenerators(number=1, image="suite:1"),
    )


async def adopted(tmp_path: Path) -> Any:
    """What stands for a cluster that is there already, taken over so that it may be changed."""
    opens: Any = SUBSTRATES["adopted"].open
    return await opens(
        name="test",
        workdir=tmp_path,
        needed=CHANGES,
        capacity=1,
        nodes=(),
        resources=None,
        say=print,
        keep=False,
        keep_logs=tmp_path / "kept",
        allow_disruption=True,
    )


async def test_exactly_these_rights_are_enough_for_a_cluster_that_is_there_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is described, looked at and hurt; another pod is made, and goes with its volume. Its logs are kept."""
    become(OF_OTHERS, tmp_path, monkeypatch)
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "roachproof")
    describe = SUBSTRATES["adopted"].describe
    assert describe is not None
    assert (await describe())[0].startswith(f"adopted: StatefulSet {THERE}, namespace roachproof, ")
    volumes = ("-n", "roachproof", "get", "pvc", "-o", "name")
    before = kubectl(*volumes)
    place = await adopted(tmp_path)
    try:
        (at,) = await place.place([NodeSpec(name="n1")])
        ran = place._api.execute("roachproof", f"{THERE}-0", ("/bin/sh", "-c", ":"), container="db")
        assert ran == (0, b"", b"")
        await place.kill("n1")
        run = ProcessSpec(name="n1", argv=("/bin/sh",), env={}, cwd=at.home, output=at.logs / "out")
        await place.start(run)
        await place.place([NodeSpec(name="n2")])
        await place.start(replace(run, name="n2"))
        place.comes_back("n2", None)
        await place.kill("n2")
    finally:
        await place.close()
    assert (tmp_path / "kept" / "n1" / "output.txt").exists()
    await eventually("its volume to go", lambda: kubectl(*volumes) == before)


def test_a_run_without_a_right_ends_with_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    role, right = RIGHTS[0]
    become(named(role, right), tmp_path, monkeypatch)
    asked = ["--engine", "auto", "--substrate", "kubernetes", "--claim", "survivability"]
    asked += ["--run-dir", str(tmp_path / "run")]
    line = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-o", "testpaths=tests/claims", *asked]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 4, done.stdout
    assert f"lacks rights in the whole cluster: {right}" in done.stdout


async def test_without_a_look_at_the_cluster_it_goes_on_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A team has a namespace of a cluster, and no right outside of it."""
    become("roachproof", tmp_path, monkeypatch)
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "roachproof")
    kubectl("delete", "clusterrolebinding", MACHINES, ROOM)
    try:
        substrate = await opened(tmp_path, nodes=[NodeSpec(name="n1")])
        await substrate.close()
    finally:
        kubectl("apply", "-f", str(MANIFEST))
    assert (
        "takes: list nodes, list storageclasses (storage.k8s.io), list pods (whole cluster)" in capsys.readouterr().out
    )
