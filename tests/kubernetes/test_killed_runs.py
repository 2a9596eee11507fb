"""Runs whose harness is killed, at moments that a seed draws from what a run does: nothing that they made stays."""

import asyncio
import json
import os
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from clusters.errors import BadInput, HarnessError
from clusters.substrates.kubernetes.cleanup import _renew
from clusters.substrates.kubernetes.manifests import MANAGED, OWNER, RENEWED, SCRIPTS
from tests.kubernetes.at_hand import AT_HAND, apply, begun, eventually, kubectl, namespaces, objects, opened
from tests.kubernetes.lab.images import SHELL
from tests.kubernetes.running import Running
from tests.slow import slow

pytestmark = AT_HAND
SEED = int(os.environ.get("ROACHPROOF_MOMENTS", "17"))
"""Which moments are drawn; any other number draws others."""
OBJECTS = range(1, 10)
"""As many objects are there: while the cluster is made."""
EVENTS = (
    "provisioned", "replicated", "ledger.created", "baseline.begin", "baseline.end", "fault.begin", "fault.bit",
    "fault.undo", "fault.undone", "recovered", "writing.end", "audit.begin", "audit.end",
)  # fmt: skip
"""Of a run of ``survivability``, in their order."""
CLEARING = "clearing away"
MOMENTS = (*random.Random(SEED).sample([*(f"{number} objects" for number in OBJECTS), *EVENTS], 10), CLEARING)
KINDS = "statefulsets,pods,pvc,configmaps,services,pdb"


def ours(kinds: str = KINDS) -> list[str]:
    """All that carries the label of any run."""
    return kubectl("get", kinds, "-A", "-l", f"{MANAGED}={OWNER}", "-o", "name", "--ignore-not-found").split()


def killed_at(moment: str, tmp_path: Path) -> Running:
    """A run, and SIGKILL of its harness once the moment has come."""
    run = Running(tmp_path)

    def come() -> bool:
        if moment in EVENTS:
            return moment in run.events()
        if moment == CLEARING:
            return "audit.end" in run.events() and not ours("statefulsets")
        return len(ours()) >= int(moment.split()[0])

    try:
        run.until(moment, come)
        assert namespaces(), "there is something to be left"
        assert moment == CLEARING or run.keys(), "there are some to be left"
    finally:
        run.end()
    return run


@slow
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_run_that_is_killed_leaves_nothing(moment: str, tmp_path: Path) -> None:
    run = await asyncio.to_thread(killed_at, moment, tmp_path)
    await eventually("all that it made to go", lambda: not ours() and not namespaces())
    assert not run.keys()


async def test_all_goes_with_the_pod_that_the_harness_ran_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the gate is a Job, whose pod is deleted: nothing of the harness is left that could clear away."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "harness", "namespace": "default"}}
    container = {"name": "harness", "image": SHELL, "command": ["sleep", "infinity"]}
    apply(tmp_path / "pod.json", {**pod, "spec": {"containers": [container], "terminationGracePeriodSeconds": 0}})
    uid = kubectl("-n", "default", "get", "pod", "harness", "-o", "jsonpath={.metadata.uid}")
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "default")
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_OWNER", f"harness/{uid}")
    substrate = await opened(tmp_path)
    try:
        await begun(substrate)
        assert len(objects("default").split()) == 6
        kubectl("-n", "default", "delete", "pod", "harness", "--wait=false")
        await eventually("all that it owned to go", lambda: not objects("default"))
    finally:
        await substrate.close()


async def test_what_an_owner_left_that_said_nothing_for_long_is_cleared_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As when the machine of the harness is lost, and the process beside it, too: its lease runs out."""

    def left(name: str, said_s: float) -> dict[str, object]:
        renewed = {RENEWED: f"{time.time() - said_s:.0f}"}
        metadata = {"name": name, "labels": {MANAGED: OWNER}, "annotations": renewed}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}

    apply(tmp_path / "left.json", left("lost", 200.0), left("slow", 100.0))
    try:
        substrate = await opened(tmp_path)
        await substrate.close()
        assert "left by a lost run: namespace lost: deleted" in capsys.readouterr().out
        await eventually("it to go", lambda: "namespace/lost" not in namespaces())
        assert "namespace/slow" in namespaces()
    finally:
        kubectl("delete", "namespace", "slow", "--wait=false")


async def test_what_was_left_in_a_namespace_that_is_named_is_cleared_away_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is kept has no owner who says that it lives; here one is said to have, long ago."""
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "default")
    lost = await opened(tmp_path, keep=True)
    await begun(lost)
    await lost.close(keep=True)
    with pytest.raises(BadInput, match="namespace default has another run in it"):
        await opened(tmp_path)
    said = f"{RENEWED}={time.time() - 200:.0f}"
    kubectl("-n", "default", "annotate", "configmap", SCRIPTS, said)
    substrate = await opened(tmp_path)
    try:
        assert f"left by a lost run: {lost._settings.cluster} in namespace default: deleted" in capsys.readouterr().out
        await begun(substrate)
        assert len(objects("default").split()) == 6, "nothing of the lost one"
    finally:
        await substrate.close()
    assert objects("default") == ""


async def test_a_lease_in_a_namespace_that_is_named_is_renewed_by_its_own_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by one that was cut off, and whose cluster was cleared away meanwhile."""
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "default")
    substrate = await opened(tmp_path)

    def written() -> str:
        told = json.loads(kubectl("-n", "default", "get", "configmap", SCRIPTS, "-o", "json"))
        return str(told["metadata"]["annotations"][RENEWED])

    try:
        kubectl("-n", "default", "annotate", "--overwrite", "configmap", SCRIPTS, f"{RENEWED}=1")
        another = replace(substrate._settings, cluster="another")
        with pytest.raises(HarnessError, match="cannot renew the cluster: the server rejected"):
            await asyncio.to_thread(_renew, substrate._api, another, own=False)
        await eventually("its guard to renew it", lambda: written() != "1")
    finally:
        await substrate.close()
