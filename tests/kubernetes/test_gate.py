"""The gate as a Job of the cluster that it tests: its manifest as a user applies it, killed, and to its end."""

import asyncio
import json
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from clusters.substrates.kubernetes.api import Api
from clusters.substrates.kubernetes.rights import MANIFEST
from fixtures.workloads.relay import ROOT
from tests.kubernetes.at_hand import ADMIN, AT_HAND, apply, eventually, kubectl, objects
from tests.kubernetes.lab import suite
from tests.kubernetes.release import image_of
from tests.slow import slow

pytestmark = AT_HAND
SPACE, NAME = "roachproof", "roachproof-gate"
ITS_POD = f"job-name={NAME}"
CLAIM = "survivability"
OUTCOMES = {0: "pass", 6: "inconclusive"}
"""By exit status: where the machine has other work, as that of its nodes may be, times tell nothing."""
STUCK = ("ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError")
EXIT_STATUS = "jsonpath={.items[*].status.containerStatuses[*].state.terminated.exitCode}"
"""As ``docs/kubernetes.md`` asks for it."""
UNTIL = 'until cat /evidence/run/claims/*/*/events.jsonl 2> /dev/null | grep -q "$0"; do sleep 0.2; done'


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The suite's, in a cluster with the account of the manifest of rights, whose namespace is ``restricted``."""
    found = suite.give(Path(ADMIN).parent, tmp_path_factory.mktemp("suite"))
    said = kubectl("apply", "-f", str(MANIFEST))
    assert "error" not in said.lower(), said
    kubectl("label", "namespace", SPACE, "pod-security.kubernetes.io/enforce=restricted")
    try:
        yield found
    finally:
        kubectl("delete", "-f", str(MANIFEST), "--wait=false")
        kubectl("wait", "--for=delete", f"namespace/{SPACE}", "--timeout=110s")


@pytest.fixture
def gate(image: str, tmp_path: Path) -> Path:
    """The manifest with what is a user's to fill in, and one claim; no run of it is there."""
    nodes, program = image_of()
    if not program:
        pytest.skip("no build of CockroachDB is in the cache")
    version = Path(program).parent.name
    text = MANIFEST.with_name("gate.yaml").read_text()
    for placeholder, filled in (
        ("registry.example/roachproof:7c2f", image),
        ("cockroachdb/cockroach:v24.1.3", nodes),
        ("v24.1.3", version),
        ("- --substrate=kubernetes", f"- --substrate=kubernetes\n            - --claim={CLAIM}"),
    ):
        assert placeholder in text
        text = text.replace(placeholder, filled)
    (file := tmp_path / "gate.yaml").write_text(text)
    # As before each run but the first.
    kubectl("-n", SPACE, "delete", f"job/{NAME}", f"pvc/{NAME}", "--ignore-not-found")
    volume, *_ = text.split("\n---\n")
    (tmp_path / "volume.yaml").write_text(volume)
    kubectl("apply", "-f", str(tmp_path / "volume.yaml"))
    with beside_the_volume(tmp_path, nodes) as pod:  # where nothing can be downloaded
        cached = f"/kept/cache/cockroach/{version}"
        said = kubectl(
            "-n", SPACE, "exec", pod, "--", "sh", "-c", f"mkdir -p {cached} && cp /cockroach/cockroach {cached}/"
        )
        assert said == "", said
    return file


@contextmanager
def beside_the_volume(tmp_path: Path, image: str) -> Iterator[str]:
    """The name of a pod that has the volume at ``/kept``, and is the user of the gate's."""
    nobody = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    user = {"runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000}
    container = {
        "name": "only",
        "image": image,
        "command": ["sleep", "infinity"],
        "securityContext": nobody,
        "volumeMounts": [{"name": "kept", "mountPath": "/kept"}],
    }
    spec = {
        "containers": [container],
        "terminationGracePeriodSeconds": 0,
        "securityContext": {**user, "seccompProfile": {"type": "RuntimeDefault"}},
        "volumes": [{"name": "kept", "persistentVolumeClaim": {"claimName": NAME}}],
    }
    name = "beside"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": SPACE}, "spec": spec}
    apply(tmp_path / "beside.json", pod)
    try:
        said = kubectl("-n", SPACE, "wait", "--for=condition=Ready", f"pod/{name}", "--timeout=100s")
        assert "condition met" in said, said
        yield name
    finally:
        kubectl("-n", SPACE, "delete", "pod", name)


def brought(tmp_path: Path) -> Path:
    """What the volume keeps of the evidence, copied from it."""
    with beside_the_volume(tmp_path, image_of()[0]) as pod:
        said = kubectl("-n", SPACE, "cp", f"{pod}:/kept/evidence", str(tmp_path / "evidence"))
        assert "error" not in said.lower(), said
    return tmp_path / "evidence"


def seen(listing: Callable[[Api], Callable[..., Any]], **selected: Any) -> Iterator[Any]:
    """What is there, and then each change of it, by a watch."""
    api, ended = Api(None), threading.Event()
    try:
        for kind, found in api.watch("watch the gate", listing(api), SPACE, ended, **selected):
            yield from found if kind == "LISTED" else [found]
    finally:
        ended.set()
        api.close()


def state(of: str) -> tuple[str, Any]:
    """The gate's pod and the state of its container, once that is ``running`` or ``terminated``.

    Where it cannot begin, or is gone before, that fails the test.
    """
    for pod in seen(lambda api: api.core.list_namespaced_pod, label_selector=ITS_POD):
        for container in pod.status.container_statuses or ():
            waiting, there = container.state.waiting, getattr(container.state, of)
            assert waiting is None or waiting.reason not in STUCK, waiting
            if there is not None:
                return str(pod.metadata.name), there
            assert container.state.terminated is None, container.state.terminated
    raise AssertionError("it was not watched any more")


def job_ended() -> str:
    """How the Job came to its end, as its condition says."""
    for job in seen(lambda api: api.batch.list_namespaced_job, field_selector=f"metadata.name={NAME}"):
        for condition in job.status.conditions or ():
            if condition.status == "True" and condition.type in ("Complete", "Failed"):
                return str(condition.type)
    raise AssertionError("it was not watched any more")


def judged(run: Path) -> subprocess.CompletedProcess[str]:
    """The copied run, judged again on this machine."""
    line = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-o", "testpaths=tests/claims"]
    return subprocess.run([*line, "--judge", str(run)], cwd=ROOT, capture_output=True, text=True, check=False)


def events(run: Path) -> list[str]:
    """Those of the one trial."""
    (file,) = run.glob("claims/*/*/events.jsonl")
    return [json.loads(line)["event"] for line in file.read_text().splitlines()]


@slow
@pytest.mark.parametrize("in_order", [False, True], ids=["at once", "in order"])
def test_one_whose_pod_is_deleted_leaves_its_evidence_and_nothing_else(
    in_order: bool, gate: Path, tmp_path: Path
) -> None:
    """In the middle of its claim: it clears away, or what it made goes with the pod that owned it.

    With no grace the pod is gone for Kubernetes at once, and what it owned with it; its kubelet still gives it all the
    time that its manifest says, to end over nothing. What comes after it in this module is the next run.
    """
    kubectl("apply", "-f", str(gate))
    pod, _ = state("running")
    line = ["kubectl", "-n", SPACE, "exec", pod, "--", "sh", "-c", UNTIL, '"baseline.begin"']
    reached = subprocess.run(line, capture_output=True, text=True, check=False)
    assert reached.returncode == 0, reached.stderr + kubectl("-n", SPACE, "logs", pod)
    assert len(objects(SPACE).split()) > 9, "there is something to be left"
    kubectl("-n", SPACE, "delete", "pod", pod, *(["--wait=false"] if in_order else ["--grace-period=0", "--force"]))
    assert job_ended() == "Failed"
    kubectl("-n", SPACE, "wait", "--for=delete", f"pod/{pod}", "--timeout=110s")
    asyncio.run(eventually("all that it owned to go", lambda: not objects(SPACE)))
    run = brought(tmp_path) / "run"
    assert "baseline.begin" in events(run)
    if in_order or (run / "result.json").exists():
        assert json.loads((run / "result.json").read_text())["status"] == 2, "as Ctrl-C ends one"
    again = judged(run)
    assert again.returncode == 6, again.stdout


def test_it_comes_to_the_verdict_that_the_volume_has(gate: Path, tmp_path: Path) -> None:
    """With the account's own rights, from within the cluster: Job, pod, terminal and evidence say the same."""
    kubectl("apply", "-f", str(gate))
    status = state("terminated")[1].exit_code
    said = kubectl("-n", SPACE, "logs", f"job/{NAME}")
    print(said)
    assert status in OUTCOMES
    assert objects(SPACE) == "", "it cleared away itself, before anything could go with its pod"
    assert job_ended() == ("Failed" if status else "Complete")
    assert kubectl("-n", SPACE, "get", "pods", f"--selector={ITS_POD}", f"--output={EXIT_STATUS}") == str(status)
    evidence = brought(tmp_path)
    run = evidence / "run"
    result: Mapping[str, Any] = json.loads((run / "result.json").read_text())
    (claim,) = result["claims"]
    assert (result["status"], result["substrate"], result["undecided"]) == (status, "kubernetes", [])
    assert (claim["claim"], claim["outcome"]) == (CLAIM, OUTCOMES[status])
    assert result["conclusion"] in " ".join(said.split())
    assert all(check["outcome"] == "pass" for check in claim["checks"] if check["metric"] in ("lost", "doubled"))
    assert {"baseline.begin", "fault.bit", "audit.end"} <= {*events(run)}
    assert result["conclusion"] in (run / "summary.md").read_text()
    assert claim["sentence"].split(".")[0] in " ".join((run / "report.html").read_text().split())
    (suite_of,) = ET.parse(evidence / "junit.xml").getroot().iter("testsuite")
    assert suite_of.attrib["tests"] == "1"
    assert (suite_of.attrib["failures"] != "0", suite_of.attrib["errors"]) == (status != 0, "0")
    again = judged(run)
    assert again.returncode == status, again.stdout
