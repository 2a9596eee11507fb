"""What a pod is, read of the client's own objects."""

import asyncio
import queue
import threading
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clusters.errors import BadInput, HarnessError, TimedOut
from clusters.model import ProcessState
from clusters.substrates.kubernetes.history import History
from clusters.substrates.kubernetes.manifests import COMPONENT, CONTAINER, CUTTER, GENERATOR, Settings, Template
from clusters.substrates.kubernetes.pods import _OUTSIDE, RUNS, Pod, Pods, UnfitImage
from clusters.substrates.kubernetes.substrate import Kubernetes

RUNNING = client.V1ContainerState(running=client.V1ContainerStateRunning())


def waiting(reason: str, message: str | None = None) -> Any:
    return client.V1ContainerState(waiting=client.V1ContainerStateWaiting(reason=reason, message=message))


def status(name: str, state: Any) -> Any:
    return client.V1ContainerStatus(
        name=name, state=state, image="db:1", image_id="", ready=True, restart_count=0, container_id=""
    )


def watched(watch: Any, logs: Iterable[str] = (), on: Any = lambda *_: None, admitted: Any = lambda _: None) -> Pods:
    """All pods of a cluster of which the watch says this, and each log."""
    api: Any = SimpleNamespace(
        core=SimpleNamespace(list_namespaced_pod=None), watch=lambda *_, **__: watch, follow_log=lambda *_: logs
    )
    history: Any = SimpleNamespace(write=lambda line: None, warnings=lambda name: "", admitted=admitted)
    return Pods(api, Settings(namespace="space", cluster="c"), history, on)


def has(cpu: str, container_id: str) -> Any:
    """What a container of a node has, by the word of its machine."""
    told = status(CONTAINER, RUNNING)
    told.container_id, told.resources = container_id, client.V1ResourceRequirements(limits={"cpu": cpu})
    return told


def of_node(cutter: Any = None, *, labels: Any = None, machine: str | None = None, **limited: str) -> Any:
    """A node's pod with two addresses, and what it says of its container that cuts links."""
    limits = client.V1ResourceRequirements(limits=limited or None)
    container = client.V1Container(name=CONTAINER, image="db:1", resources=limits)
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name="node-0", uid="u", labels=labels),
        spec=client.V1PodSpec(containers=[container], node_name=machine),
        status=client.V1PodStatus(
            phase="Running",
            pod_ips=[client.V1PodIP(ip="10.0.0.1"), client.V1PodIP(ip="fd00::1")],
            container_statuses=[status(CONTAINER, RUNNING)],
            ephemeral_container_statuses=cutter and [status("other", RUNNING), status(CUTTER, cutter)],
        ),
    )


async def seen(cutter: Any, **limited: str) -> Pod:
    """Such a pod, as it was seen."""
    pods = watched([("ADDED", of_node(cutter, **limited))])
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
    ("reason", "message", "stuck"),
    [
        ("ErrImagePull", "unexpected status code 503 Service Unavailable", False),
        ("ErrImagePull", "dial tcp 10.0.0.9:443: i/o timeout", False),
        ("ImagePullBackOff", 'Back-off pulling image "db:1"', False),
        ("ErrImagePull", "docker.io/library/db:1: not found", True),
        ("ErrImagePull", "pull access denied, repository does not exist or may require authorization", True),
        ("ErrImagePull", "dial tcp: lookup nowhere.invalid on 10.0.0.10:53: no such host", True),
        ("InvalidImageName", "", True),
    ],
)
async def test_an_image_that_is_not_pulled_is_tried_again_unless_it_never_will_be(
    reason: str, message: str, stuck: bool
) -> None:
    """The kubelet does that, and a registry that is busy for a moment ended a run."""
    there = of_node()
    there.status.container_statuses = [status(CONTAINER, waiting(reason, message))]
    pods = watched([("ADDED", there)])
    pods._watching.join()
    pod = pods["node-0"]
    assert bool(pod.stuck) == stuck
    secret = "or a secret to pull it with (ROACHPROOF_KUBERNETES_PODS)"
    assert pod.stuck.endswith(secret) is ("denied" in message)
    said = "" if stuck else ".*; so for 0 s; name an image that the cluster can pull"
    with pytest.raises(UnfitImage, match=rf"pod node-0: {reason}{said}"):
        await pods.until("it", pod, lambda: False, timeout=60 if stuck else 0)


class Crashing:
    """What an API server says of a node's pod whose container crashes again and again; it is asked for its log."""

    core = SimpleNamespace(list_namespaced_pod=None)

    def __init__(self, log: str | Exception) -> None:
        self.told, self.asked, self._log = list[str](), list[Any](), log

    def watch(self, *_: object, **__: object) -> Iterator[tuple[str, Any]]:
        for message in ("back-off 10s", "back-off 10s restarting", None, "back-off 20s"):
            there = of_node()
            if message:
                there.status.container_statuses = [status(CONTAINER, waiting("CrashLoopBackOff", message))]
            yield "MODIFIED", there

    def follow_log(self, *_: object) -> Iterable[str]:
        return ()

    def log(self, namespace: str, pod: str, container: str, **options: int) -> str:
        self.asked.append((namespace, pod, container, options))
        if isinstance(self._log, Exception):
            raise self._log
        return self._log

    def pods(self) -> Pods:
        api: Any = self
        history: Any = SimpleNamespace(write=self.told.append, warnings=lambda name: "", admitted=lambda _: None)
        return Pods(api, Settings(namespace="space", cluster="c"), history)


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("no certificate\nit cannot\n", "no certificate\nit cannot"),
        ("", "nothing"),
        (OSError("connection reset"), "what is not known (connection reset)"),
        (ApiException(status=400, reason="Bad Request"), "its log cannot be read ("),
    ],
)
async def test_what_a_container_said_that_crashes_again_and_again_is_kept(log: str | Exception, words: str) -> None:
    """Its log goes with its pod, and so before anybody could ask for it."""
    crashing = Crashing(log)
    pods = crashing.pods()
    pods._watching.join()
    lines = {"previous": True, "tail_lines": 20}
    assert crashing.asked == [("space", "node-0", CONTAINER, lines)] * 2, "once for each time that it is seen to wait"
    with pytest.raises(HarnessError) as stuck:
        await pods.until("it", pods["node-0"], lambda: False, timeout=60)
    assert "pod node-0: CrashLoopBackOff: back-off 20s; see what it said last: " in str(stuck.value)
    assert words in str(stuck.value)
    kept = [line for line in crashing.told if line.startswith("pod node-0: its container said last: ")]
    assert [line for line in words.splitlines() if not any(line in one for one in kept)] == []


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


@pytest.mark.parametrize(
    ("conditions", "not_resized", "resizing"),
    [
        ([], "", ""),
        ([("PodResizePending", "True", "Infeasible", "no capacity")], "Infeasible: no capacity", ""),
        ([("PodResizePending", "True", "Deferred", None)], "Deferred", ""),
        ([("PodResizePending", "False", "Deferred", "no room")], "", ""),
        ([("PodResizeInProgress", "True", None, None)], "", "PodResizeInProgress"),
        (
            [("PodResizeInProgress", "True", "Error", "it failed"), ("Ready", "True", None, None)],
            "",
            "Error: it failed",
        ),
    ],
)
async def test_what_a_machine_says_of_other_limits(
    conditions: list[tuple[str, str, str | None, str | None]], not_resized: str, resizing: str
) -> None:
    seen = of_node(cpu="500m")
    seen.status.container_statuses = [has("250m", "one")]
    seen.status.conditions = [
        client.V1PodCondition(type=kind, status=now, reason=reason, message=message)
        for kind, now, reason, message in conditions
    ]
    pods = watched([])
    wrote = list[str]()
    pods._history.write = wrote.append  # type: ignore[method-assign, assignment]
    pods._seen(seen)
    pod = pods["node-0"]
    assert (pod.not_resized, pod.resizing) == (not_resized, resizing)
    assert pod.template == Template(image="db:1", cpus=0.5)
    assert pod.told == Template(image="db:1", cpus=0.25)
    assert ("not resized" in wrote[0]) == bool(not_resized)
    pods._gone(pod, None)
    assert pod.told is None


async def test_the_machine_of_each_nodes_pod_is_told() -> None:
    """By which it is known whether it was lost under it. A load generator that is lost is known by its silence."""
    heard = list[tuple[str, str]]()
    there, gone = of_node(machine="m1"), of_node(machine="m1")
    generator = of_node(labels={COMPONENT: GENERATOR}, machine="m2")
    generator.metadata.name = "generator-0"
    said = [("ADDED", of_node()), ("ADDED", generator), ("MODIFIED", there), ("DELETED", gone)]
    watched(said, on=lambda *told: heard.append(told))._watching.join()
    assert heard == [("node-0", ""), ("node-0", "m1"), ("node-0", "")]


async def test_whoever_sees_that_it_has_ended_sees_what_by() -> None:
    """At each moment in between, too: an end of which nothing is known is the database's own."""
    moments = set[str]()

    class Looked(Pod):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name != "name" and self.name and not getattr(self, "alive", True) and self.starts:
                moments.add(self.ended_by)

    pods = watched([])
    pod = Looked("node-0", uid="u", starts=1, alive=True)
    pods._gone(pod, 0)
    assert moments == {_OUTSIDE}


async def test_pods_may_be_asked_for_while_all_are_looked_through() -> None:
    """Else the watch ends, and nothing is heard any more."""

    class Asking(Pod):
        def __getattribute__(self, name: str) -> Any:
            if name == "uid" and threading.current_thread() is pods._watching:
                pods[f"another-{len(pods._pods)}"]
            return super().__getattribute__(name)

    begin = threading.Event()

    def watch() -> Iterator[tuple[str, Any]]:
        begin.wait()
        yield "LISTED", []

    pods = watched(watch())
    pods._pods.update({name: Asking(name, uid="former") for name in ("node-0", "node-1")})
    begin.set()
    pods._watching.join()
    pods.refuse_unwatched()
    assert pods["node-0"].uid == pods["node-1"].uid == ""


async def test_where_nothing_is_heard_any_more_nothing_is_known() -> None:
    """Nor is it anybody's input, which is a program's where a version is changed."""

    def watch() -> Iterator[tuple[str, Any]]:
        yield "LISTED", []
        raise BadInput("log in again")

    pods = watched(watch())
    pods._watching.join()
    place: Any = Kubernetes.__new__(Kubernetes)
    place._pods, place._nodes = pods, {}
    with pytest.raises(HarnessError, match="pods are not watched any more: BadInput log in again"):
        place.state("n1")
    with pytest.raises(HarnessError, match="log in again"):
        await pods.until("it", pods["node-0"], lambda: False, timeout=60)


async def test_an_api_server_that_nodes_are_reached_through_is_not_taken_for_them_while_it_is_away() -> None:
    pods = watched([])
    wrote = list[str]()
    nobody: Any = None
    pods._history = History(nobody, "team", None, of=bool)
    pods._history.write = wrote.append  # type: ignore[method-assign, assignment]
    pods._was_away(30)
    pods.through_it = True
    pods._was_away(0.5)
    pods.refuse_unwatched()
    pods._was_away(30)
    assert wrote == [f"the API server was away for {away} s" for away in ("30.0", "0.5", "30.0")]
    with pytest.raises(HarnessError, match="away for 30 s, and nodes are reached through it"):
        pods.refuse_unwatched()


async def test_a_pod_that_is_late_is_no_evidence_of_a_database() -> None:
    """As one that no machine takes: the claim rebalance was refuted by it."""
    pods = watched([])
    with pytest.raises(HarnessError, match="waiting for it: not after 0 s; pod node-0: ") as late:
        await pods.until("it", pods["node-0"], lambda: False, timeout=0)
    assert not isinstance(late.value, TimedOut)


async def test_of_a_container_that_is_gone_its_last_word_alone_counts() -> None:
    pods = watched([])
    pod = Pod("node-0", uid="u", container="one", starts=1, alive=True)

    def log() -> Iterator[str]:
        yield "roachproof ready"
        pods._gone(pod, None)
        yield "roachproof ready"
        yield "roachproof started 7"
        assert not pod.ready
        assert not pod.alive
        yield "roachproof exited 0 pod"

    pods._api.follow_log = lambda *told: log() if told[1:] == ("node-0", CONTAINER) else iter([])  # type: ignore[method-assign]
    pods._listen(pod, "one")
    assert (pod.starts, pod.code, pod.ended_by) == (1, 0, _OUTSIDE)


async def test_one_that_comes_back_by_itself_is_not_forgotten_to_have_been_away() -> None:
    """Whoever looks later sees that it runs, and a cluster that was down with it would be refuted."""
    pods, forgotten = watched([]), list[str]()

    class Looked(Pod):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "ended_by" and not value:
                forgotten.append(self.went_on)

    pods._pods["node-0"] = pod = Looked("node-0", asked=1)
    for line in ("roachproof ready", "roachproof started 7"):
        pods._said(pod, line)
    assert (pod.alive, pod.went_on) == (True, "")
    pods._said(pod, "roachproof exited 0 pod")
    assert (pod.ended_by, pod.went_on) == (_OUTSIDE, "")
    for line in ("roachproof ready", "roachproof started 7"):
        pods._said(pod, line)
    assert (pod.state, pod.ended_by) == (ProcessState.RUNNING, "")
    assert pod.went_on.startswith(_OUTSIDE)
    assert forgotten[-1] == pod.went_on, "there is no moment at which nothing is said"
    there: Any = Kubernetes.__new__(Kubernetes)
    there._pods, there._machines = pods, SimpleNamespace(lost=lambda _: "")
    there._nodes = {"n1": SimpleNamespace(pod="node-0"), "n2": SimpleNamespace(pod="node-1")}
    assert [there.machine_lost(name) for name in ("n1", "n2", "n3")] == [pod.went_on, "", ""]


async def test_a_log_of_which_nothing_is_to_be_had_is_seldom_asked_for() -> None:
    """As that of a pod on a machine that is lost: fewer than five requests a second, however many there are."""
    pods = watched([])
    pod, pauses = Pod("node-0", container="one"), list[float]()

    def wait(pause: float) -> None:
        pauses.append(pause)
        if len(pauses) == 9:
            pod.container = "another"

    pods._ended.wait = wait  # type: ignore[method-assign, assignment]
    pods._api.follow_log = lambda *_: iter(["roachproof ready"][: len(pauses) == 6])  # type: ignore[method-assign]
    pods._listen(pod, "one")
    assert pauses == [0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 0.1, 0.2, 0.4]


async def test_a_pod_has_the_image_that_was_asked_for_whatever_a_webhook_gave_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the name of a mirror or a digest: it was made anew at each start, and its program was not looked for."""
    rewritten, of_next, told = of_node(), of_node(), queue.SimpleQueue[Any]()
    rewritten.spec.containers[0].image = "mirror/db@sha256:1"
    of_next.spec.containers[0].image = "mirror/db@sha256:2"
    pods = watched(iter(told.get, None))
    pod = pods["node-0"]
    pods.expect("node", "db:1")
    told.put(("ADDED", rewritten))
    await pods.until("it to be seen", pod, lambda: bool(pod.described), timeout=60)
    assert pod.template == Template(image="db:1")
    pods.expect("node", "db:2")
    seen = list[Any]()
    monkeypatch.setattr(pods, "_describe", lambda pod, _: seen.append(pod.template))
    for event in (("MODIFIED", of_next), ("MODIFIED", rewritten), None):
        told.put(event)
    await asyncio.to_thread(pods._watching.join)
    assert seen == [Template(image="db:2"), Template(image="db:1")], "of each what it was made of"


async def test_who_waits_for_a_pod_finds_what_it_was_made_of_and_its_statefulset_is_refused_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fresh pod was made anew where it was looked at between the two. Events that say so can be dropped."""
    admitted, known = list[str](), list[tuple[str, Template | None]]()
    pods = watched(iter(()), admitted=admitted.append)
    pods._watching.join()
    had = Pods._as_meant

    def as_meant(self: Pods, pod: str, template: Template) -> Template:
        known.append((pods["node-0"].uid, pods["node-0"].template))
        return had(self, pod, template)

    monkeypatch.setattr(Pods, "_as_meant", as_meant)
    pods._seen(of_node())
    assert known == [("", None)], "nobody is told that it is there before its template is known"
    pods._seen(of_node())
    assert pods["node-0"].template == Template(image="db:1")
    assert admitted == ["node"], "once for each pod"


async def test_a_pod_that_is_not_admitted_is_bad_input() -> None:
    """Nobody makes another: a policy of the namespace, or a quota, stays."""
    pods = watched([])
    words = 'FailedCreate: pods "node-0" is forbidden: violates PodSecurity "restricted"'
    pods._api.where = "context lab"
    pods._history = SimpleNamespace(refused=lambda group, _: words if group == "node" else "")  # type: ignore[assignment]
    pod = pods["node-0"]
    with pytest.raises(BadInput, match=r"pod node-0 is not admitted: FailedCreate: .*; have namespace space admit it"):
        await pods.until("pod node-0", pod, lambda: bool(pod.uid), timeout=60, of="node")
