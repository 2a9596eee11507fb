"""What a pod is, read of the client's own objects."""

from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes import client

from clusters.substrates.kubernetes.manifests import CONTAINER, CUTTER, Settings, Template
from clusters.substrates.kubernetes.pods import RUNS, Pod, Pods

RUNNING = client.V1ContainerState(running=client.V1ContainerStateRunning())


def waiting(reason: str, message: str | None = None) -> Any:
    return client.V1ContainerState(waiting=client.V1ContainerStateWaiting(reason=reason, message=message))


def status(name: str, state: Any) -> Any:
    return client.V1ContainerStatus(
        name=name, state=state, image="db:1", image_id="", ready=True, restart_count=0, container_id=""
    )


async def seen(cutter: Any, **limited: str) -> Pod:
    """A node's pod with two addresses, and what it says of its container that cuts links."""
    limits = client.V1ResourceRequirements(limits=limited or None)
    pod = client.V1Pod(
        metadata=client.V1ObjectMeta(name="node-0", uid="u"),
        spec=client.V1PodSpec(containers=[client.V1Container(name=CONTAINER, image="db:1", resources=limits)]),
        status=client.V1PodStatus(
            phase="Running",
            pod_ips=[client.V1PodIP(ip="10.0.0.1"), client.V1PodIP(ip="fd00::1")],
            container_statuses=[status(CONTAINER, RUNNING)],
            ephemeral_container_statuses=cutter and [status("other", RUNNING), status(CUTTER, cutter)],
        ),
    )
    core = SimpleNamespace(list_namespaced_pod=None)
    api: Any = SimpleNamespace(core=core, watch=lambda *_, **__: [("ADDED", pod)])
    history: Any = SimpleNamespace(write=lambda line: None, warnings=lambda name: "")
    pods = Pods(api, Settings(namespace="space", cluster="c"), history)
    found = pods["node-0"]
    await pods.until("it to be seen", found, lambda: bool(found.described), timeout=60)
    pods.close()
    return found


@pytest.mark.parametrize(
    ("state", "cutter", "stuck"),
    [
        (None, "", ""),
        (RUNNING, RUNS, ""),
        (client.V1ContainerState(), "", ""),
        (waiting("ContainerCreating"), "ContainerCreating", ""),
        (waiting("ErrImagePull", "not found"), "ErrImagePull: not found", "name an image that the cluster can pull"),
        (
            client.V1ContainerState(
                terminated=client.V1ContainerStateTerminated(exit_code=128, reason="StartError", message="no python")
            ),
            "StartError, exit code 128: no python",
            "name an image that has python",
        ),
    ],
    ids=["none", "runs", "nothing is said", "begins", "no image", "no python"],
)
async def test_what_the_container_that_cuts_links_does(state: Any, cutter: str, stuck: str) -> None:
    pod = await seen(state)
    assert pod.addresses == ("10.0.0.1", "fd00::1")
    assert (pod.cutter, pod.cutter_stuck) == (cutter, stuck)


@pytest.mark.parametrize(
    ("limits", "cpus", "memory_mib"),
    [
        ({}, None, None),
        ({"cpu": "500m", "memory": "64Mi"}, 0.5, 64),
        ({"cpu": "2", "memory": "2Gi"}, 2.0, 2048),
        ({"memory": "134217728"}, None, 128),
    ],
)
async def test_what_a_pod_was_made_of(limits: dict[str, str], cpus: float | None, memory_mib: int | None) -> None:
    assert (await seen(None, **limits)).template == Template(image="db:1", cpus=cpus, memory_mib=memory_mib)
