"""Pods that get other limits in place, without a Kubernetes: what is asked, what proves it, what has another made."""

import asyncio
import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from clusters.errors import BadInput, HarnessError
from clusters.substrates.kubernetes import resizing
from clusters.substrates.kubernetes.api import Api
from clusters.substrates.kubernetes.manifests import CONTAINER, Template
from clusters.substrates.kubernetes.pods import Pod
from clusters.substrates.kubernetes.resizing import resize

OLD = Template(image="db:1", cpus=0.5, memory_mib=64)
NEW = Template(image="db:1", cpus=0.25, memory_mib=96)
HAS_OLD, HAS_NEW = "50000 100000 67108864", "25000 100000 100663296"
ASKED = {"cpu": "250m", "memory": "96Mi"}


def refusal(status: int, words: str) -> ApiException:
    error = ApiException(status=status, reason="refused")
    error.body = json.dumps({"message": words})
    return error


class Server:
    """An API server and the machine of one pod, as they are asked to resize that, and its container's control group.

    ``then``: what becomes of the pod, a step each time that the group is asked or a moment passes.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *then: Callable[[Pod], object], refuses: Any = None) -> None:
        self.pod = Pod("node-0", uid="u", template=OLD, told=OLD, ready=True)
        self.group, self.refuses = HAS_OLD, refuses
        self.asked, self.wrote, self.closed = list[Any](), list[str](), 0
        self._then: Iterator[Callable[[Pod], object]] = iter(then)
        self._shell: Any = SimpleNamespace(ask=self._ask, close=self._close)
        self._pods: Any = SimpleNamespace(refuse_unwatched=lambda: None)
        self._history: Any = SimpleNamespace(write=self.wrote.append)
        self._now = 0.0
        self.api: Any = Api.__new__(Api)
        self.api.where, self.api._configuration = "context lab", SimpleNamespace(host="here")
        self.api.core = SimpleNamespace(patch_namespaced_pod_resize=self._patch)
        monkeypatch.setattr(resizing, "time", SimpleNamespace(monotonic=lambda: self._now))
        waits = SimpleNamespace(sleep=self._sleep, gather=asyncio.gather, to_thread=asyncio.to_thread)
        monkeypatch.setattr(resizing, "asyncio", waits)

    def _patch(self, pod: str, namespace: str, body: Any, **_: object) -> None:
        self.asked.append((pod, namespace, body))
        if self.refuses:
            raise self.refuses

    def _ask(self, question: str) -> tuple[int, str]:
        assert question == "limits"
        if not self.group:
            raise HarnessError("pod node-0 does not answer `limits`: the connection was closed")
        return 0, self.group

    def _close(self) -> None:
        self.closed += 1

    async def _sleep(self, seconds: float) -> None:
        self._now += seconds
        next(self._then, lambda _: None)(self.pod)

    async def resize(self, template: Template = NEW) -> str:
        return await resize(self.api, "team", self._pods, self._history, self.pod, [self._shell] * 2, template)


def sets(server: list[Server] | None = None, group: str = "", **changed: Any) -> Callable[[Pod], None]:
    def change(pod: Pod) -> None:
        for name, value in changed.items():
            setattr(pod, name, value)
        for one in server or ():
            one.group = group

    return change


async def test_a_pod_has_other_limits_once_its_control_group_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when the API server takes it, nor when its machine says so: a container that is made anew says nothing."""
    of = list[Server]()
    server = Server(
        monkeypatch,
        sets(template=NEW),  # the API server
        sets(resizing="PodResizeInProgress"),
        sets(told=NEW),  # the machine
        sets(of, "", ready=False),  # another container
        sets(of, "", ready=True),
        sets(of, HAS_NEW),  # the control group
        sets(resizing=""),
    )
    of.append(server)
    assert await server.resize() == ""
    assert server.pod.resizing == ""
    limits = {"limits": ASKED, "requests": ASKED}
    assert server.asked == [
        ("node-0", "team", {"spec": {"containers": [{"name": CONTAINER, "resources": limits}]}}),
    ]
    assert server.wrote == ["pod node-0: given cpu 250m, memory 96Mi in place, by its control group"]
    assert server.closed == 2


async def test_a_machine_that_says_the_former_limits_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its runtime may be too old to tell them: the control group is the kernel's own."""
    of = list[Server]()
    server = Server(monkeypatch, sets(of, HAS_NEW, template=NEW))
    of.append(server)
    assert await server.resize() == ""
    (said,) = server.wrote
    assert said.endswith("by its control group; its machine says cpu 500m, memory 64Mi")


@pytest.mark.parametrize(
    ("pod", "template", "why"),
    [
        ({}, Template(image="db:2", cpus=0.25, memory_mib=96), "its image is another one"),
        ({}, Template(image="db:1", cpus=0.25), "limits are neither added nor taken away in place"),
        ({}, Template(image="db:1"), "limits are neither added nor taken away in place"),
        ({"template": Template(image="db:1")}, NEW, "limits are neither added nor taken away in place"),
        ({"ready": False}, NEW, "its container did not run"),
        ({"template": None}, NEW, "its container did not run"),
    ],
)
async def test_what_only_another_pod_can_have_is_not_asked_for(
    pod: dict[str, Any], template: Template, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(monkeypatch)
    sets(**pod)(server.pod)
    assert await server.resize(template) == why
    assert server.asked == []
    assert server.wrote == [f"pod node-0: made anew, as {why}"]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (404, "the server could not find the requested resource"),
        (422, 'Pod "node-0" is invalid: spec: Forbidden: Pod running on node without support for resize'),
        (422, "spec: Invalid value: Guaranteed: Pod QOS Class may not change as a result of resizing"),
        (403, 'pods "node-0" is forbidden: ValidatingAdmissionPolicy "static" denied request: no pod is resized'),
    ],
    ids=["a server before 1.33", "a machine before 1.33", "another class", "a policy against it"],
)
async def test_a_server_that_does_not_do_it_has_another_pod_made(
    status: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(monkeypatch, refuses=refusal(status, words))
    why = await server.resize()
    assert why == f"the API server does not give pod node-0 cpu 250m, memory 96Mi in place: {words}"
    assert server.wrote == [f"pod node-0: made anew, as {why}"]


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        (
            'pods "node-0" is forbidden: exceeded quota: few, requested: requests.memory=32Mi, used: requests.memory='
            "128Mi, limited: requests.memory=128Mi",
            "that is a rule of the cluster, not a right",
        ),
        (
            'pods "node-0" is forbidden: maximum memory usage per Container is 80Mi, but limit is 96Mi',
            "that is a rule of the cluster, not a right",
        ),
        (
            'pods "node-0" is forbidden: memory max limit to request ratio per Pod is 1, but provided ratio is 2',
            "that is a rule of the cluster, not a right",
        ),
        (
            'pods "node-0" is forbidden: User "team" cannot patch resource "pods/resize" in API group "" in the '
            'namespace "team"',
            "grant that right to the account",
        ),
    ],
    ids=["a quota", "a limit range", "a limit range of pods", "no right"],
)
async def test_what_another_pod_would_be_refused_by_too_is_said_at_once(
    words: str, way_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the pod still there: one that is made anew would not be made."""
    server = Server(monkeypatch, refuses=refusal(403, words))
    with pytest.raises(BadInput) as refused:
        await server.resize()
    assert f"cannot give pod node-0 cpu 250m, memory 96Mi in place: {words}; {way_out}" in str(refused.value)
    assert server.wrote == []


@pytest.mark.parametrize(
    ("then", "why"),
    [
        (
            {"template": NEW, "not_resized": "Infeasible: Node didn't have enough capacity"},
            "Infeasible: Node didn't ha",
        ),
        ({"template": NEW, "not_resized": "Deferred: Node didn't have enough resource"}, "Deferred: Node didn't have"),
        ({"template": NEW, "resizing": "Error: it failed"}, "not within 60 s: Error: it failed"),
        ({"template": NEW}, r"not within 60 s: its control group has cpus 0.5, memory_mib 64.0"),
        ({"template": NEW, "ready": False}, "not within 60 s: another container is made"),
        ({}, "not within 60 s: nobody says why"),
        ({"stuck": "see", "waiting": "CreateContainerError: no room"}, "CreateContainerError: no room"),
    ],
)
async def test_a_machine_that_does_not_do_it_has_another_pod_made(
    then: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(monkeypatch, sets(**then))
    said = await server.resize()
    assert said.startswith(f"it was not given cpu 250m, memory 96Mi in place: {why}")
    assert server.wrote == [f"pod node-0: made anew, as {said}"]


async def test_a_pod_that_somebody_deletes_meanwhile_comes_back_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """As its StatefulSet was told before: no other is made, and none was given them in place."""
    of = list[Server]()
    server = Server(monkeypatch, sets(uid="", template=None), sets(of, HAS_NEW, uid="v", template=NEW))
    of.append(server)
    assert await server.resize() == ""
    assert server.wrote == ["pod node-0: ended from outside, and made anew with cpu 250m, memory 96Mi"]


async def test_a_control_group_with_one_of_both_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    for half in ("25000 100000 67108864", "50000 100000 100663296", "-1 100000 100663296", "max 100000 max", "none"):
        of = list[Server]()
        server = Server(monkeypatch, sets(of, half, template=NEW))
        of.append(server)
        assert " in place: not within 60 s: " in await server.resize()


async def test_where_pods_are_not_watched_any_more_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch)

    def unwatched() -> None:
        raise HarnessError("pods are not watched any more")

    server._pods.refuse_unwatched = unwatched
    with pytest.raises(HarnessError, match="not watched any more"):
        await server.resize()
