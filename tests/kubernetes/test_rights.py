"""The manifest of rights on a real Kubernetes: with them a run comes to its end, with one less it says which."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusters.errors import BadInput
from clusters.generators import WantedGenerators
from clusters.model import Capability, NodeResources, NodeSpec, ProcessState
from clusters.substrates.kubernetes.rights import (
    CUTTING,
    GENERATORS,
    IN_A_NAMESPACE,
    MACHINES,
    MANIFEST,
    NAMESPACES,
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

pytestmark = AT_HAND
ROOT = Path(__file__).resolve().parents[2]
ROLES = (IN_A_NAMESPACE, NAMESPACES, MACHINES, GENERATORS, CUTTING)
RIGHTS = [(role, right) for role in ROLES for right in granted(role)]
WHOLE = "whole"
"""The account with all rights, those to make namespaces too."""


def named(role: str, right: Right) -> str:
    return re.sub("[^a-z]+", "-", f"without-{role}-{right.verb}-{right.resource}")


def rules(role: str, less: Right | None) -> list[dict[str, Any]]:
    return [
        {"apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb]}
        for right in granted(role)
        if right != less
    ]


def account(name: str, lacks: tuple[str, Right] | None) -> list[dict[str, Any]]:
    """An account that has all roles in the whole cluster, but for one right."""
    group = "rbac.authorization.k8s.io"
    has = [rule for role in ROLES for rule in rules(role, lacks[1] if lacks else None)]
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
    made = account(WHOLE, None) + [one for role, right in RIGHTS for one in account(named(role, right), (role, right))]
    kubectl("apply", "-f", str(MANIFEST))
    apply(file, *made)
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
    in_one = role in (IN_A_NAMESPACE, GENERATORS, CUTTING)
    if in_one:
        monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "roachproof")
    where = "namespace roachproof" if in_one else "the whole cluster"
    before = set(namespaces().split())
    lacks = re.escape(f"lacks rights in {where}: {right}; grant it the ClusterRole {role} of {MANIFEST}")
    with pytest.raises(BadInput, match=lacks):
        await opened(
            tmp_path,
            nodes=[NodeSpec(name=f"n{zone}", zone=f"zone-{zone}") for zone in (1, 2)],
            needed={Capability.CUT_LINKS},
            generators=WantedGenerators(number=1, image="suite:1"),
        )
    assert objects("roachproof") == ""
    assert set(namespaces().split()) <= before


def test_a_run_without_a_right_ends_with_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    role, right = RIGHTS[0]
    become(named(role, right), tmp_path, monkeypatch)
    asked = ["--engine", "auto", "--substrate", "kubernetes", "--claim", "survivability"]
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
    kubectl("delete", "clusterrolebinding", MACHINES)
    try:
        substrate = await opened(tmp_path, nodes=[NodeSpec(name="n1")])
        await substrate.close()
    finally:
        kubectl("apply", "-f", str(MANIFEST))
    assert (
        "takes: list nodes, list storageclasses (storage.k8s.io), list pods (whole cluster)" in capsys.readouterr().out
    )
