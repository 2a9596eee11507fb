"""What ended a node of somebody's cluster: its own end is told from that of its pod, its machine and its memory."""

import json
import socket
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes import client

from clusters.errors import BadInput, HarnessError, TimedOut
from clusters.model import ProcessState, Tells
from clusters.substrates.adopted import substrate
from clusters.substrates.adopted.pods import MEMORY, OUTSIDE, Pods
from clusters.substrates.adopted.substrate import Adopted
from clusters.substrates.kubernetes import dns
from clusters.substrates.kubernetes.pods import UnfitImage
from tests.clusters.substrates.adopted.test_changes import STRATEGY, Server, changes
from tests.clusters.substrates.adopted.test_finding import RELEASE, found

RUNS = client.V1ContainerState(running=client.V1ContainerStateRunning())


def pod(now: Any, former: Any = None, *, phase: str = "Running", to_go: bool = False) -> Any:
    """A pod whose first container is or was ``one``."""
    status = client.V1ContainerStatus(
        name="db", state=now, last_state=former, image="db:1", image_id="", ready=False, restart_count=0,
        container_id="two" if former else "one",
    )  # fmt: skip
    since = datetime.now(UTC) if to_go else None
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name="shop-cockroachdb-0", uid="u", deletion_timestamp=since),
        spec=client.V1PodSpec(containers=[client.V1Container(name="db", image="db:1")]),
        status=client.V1PodStatus(phase=phase, container_statuses=[status], pod_ips=[client.V1PodIP(ip="10.0.0.1")]),
    )


def ended(code: int, reason: str | None = "Error") -> Any:
    return client.V1ContainerState(
        terminated=client.V1ContainerStateTerminated(exit_code=code, reason=reason, container_id="one")
    )


def told(*told: tuple[str, Any], log: Any = None) -> Adopted:
    """A cluster that is told this of its first node, which ran."""
    core = SimpleNamespace(list_namespaced_pod=None)
    api: Any = SimpleNamespace(core=core, watch=lambda *_, **__: [("ADDED", pod(RUNS)), *told], log=log)
    place: Any = Adopted.__new__(Adopted)
    place._names, place._runs, place._ours = {"n1": "shop-cockroachdb-0"}, {"n1": "one"}, set()
    place._pods = Pods(api, found("shop", [RELEASE]))
    place._pods._watching.join()
    place._history = SimpleNamespace(probed=lambda _: "")
    place._guard, place._beside = SimpleNamespace(poll=lambda: None), None
    place._images, place._rewritten = {}, {}
    cluster: Adopted = place
    return cluster


@pytest.mark.parametrize(
    ("seen", "code", "by"),
    [
        (pod(ended(0, "Completed"), to_go=True), 0, OUTSIDE),
        (pod(ended(0, "Completed"), phase="Failed"), 0, OUTSIDE),
        (pod(RUNS, ended(255, "Unknown")), -127, OUTSIDE),
        (pod(RUNS, ended(137, "ContainerStatusUnknown")), -9, OUTSIDE),
        (pod(RUNS, ended(137, "OOMKilled")), -9, MEMORY),
        (pod(ended(0, "Completed")), 0, ""),
        (pod(RUNS, ended(2)), 2, ""),
        (pod(ended(2, None)), 2, ""),
    ],
    ids=["deleted", "evicted", "machine made anew", "machine lost", "memory", "its own good end", "crash", "no word"],
)
def test_what_ended_it_is_known_as_soon_as_it_is_seen_to_have_ended(seen: Any, code: int, by: str) -> None:
    place = told(("MODIFIED", seen))
    assert place.state("n1") is ProcessState.EXITED
    assert (place.exit_code("n1"), place.ended_by("n1")) == (code, by)


def test_a_container_beside_the_database_is_not_taken_for_it() -> None:
    """As one of a mesh, which may stand before it, and end."""
    seen, asked = pod(RUNS), list[object]()
    beside = client.V1Container(name="proxy", image="proxy:1")
    over = client.V1ContainerStatus(
        name="proxy", state=ended(2), image="proxy:1", image_id="", ready=False, restart_count=0, container_id="other"
    )
    seen.spec.containers.insert(0, beside)
    seen.status.container_statuses.insert(0, over)
    place: Any = told(("MODIFIED", seen))

    def execute(*_: object, container: str, timeout: float) -> tuple[int, bytes, bytes]:
        assert 0 < timeout <= 10
        asked.append(container)
        return 0, b"boot 1.0", b""

    def log(_namespace: str, _pod: str, container: str, **_: int) -> str:
        asked.append(container)
        return "its log"

    place._found, place._api = found("shop", [RELEASE]), SimpleNamespace(execute=execute, log=log)
    assert place.state("n1") is ProcessState.RUNNING
    assert place._pods["shop-cockroachdb-0"].image == "db:1"
    place.clock("n1")
    place.log_tail("n1")
    assert asked == ["db", "db"]
    assert place.exit_code("n9") is None
    for unknown in (place.clock, place.limits):
        with pytest.raises(HarnessError, match="n9 was never placed"):
            unknown("n9")


def test_the_machine_of_each_pod_is_told() -> None:
    """By which it is known whether it was lost under it."""
    core, heard = SimpleNamespace(list_namespaced_pod=None), list[tuple[str, str]]()
    seen = pod(RUNS)
    seen.spec.node_name = "m1"
    api: Any = SimpleNamespace(core=core, watch=lambda *_, **__: [("ADDED", seen)])
    Pods(api, found("shop", [RELEASE]), lambda *told: heard.append(told))._watching.join()
    assert heard == [("shop-cockroachdb-0", "m1")]


def test_a_guard_that_has_ended_is_noticed_while_nodes_run() -> None:
    """A killed harness would leave a key of root, or load generators."""
    place: Any = told()
    place._guard = SimpleNamespace(poll=lambda: -9, returncode=-9)
    with pytest.raises(HarnessError, match="the process that guards the administrator's certificate ended with -9"):
        place.state("n1")

    def refuse() -> None:
        raise HarnessError("the process that guards the cluster ended with 1")

    place._guard, place._beside = SimpleNamespace(poll=lambda: None), SimpleNamespace(refuse_dead=refuse)
    with pytest.raises(HarnessError, match="guards the cluster ended with 1"):
        place.state("n1")


def test_where_nothing_is_heard_any_more_nothing_is_known() -> None:
    place = told(("ADDED", None))
    with pytest.raises(HarnessError, match="pods are not watched any more: AttributeError"):
        place.state("n1")


@pytest.mark.parametrize(
    ("after", "by"),
    [
        ([("DELETED", pod(RUNS, to_go=True))], OUTSIDE),
        ([("MODIFIED", pod(ended(2))), ("MODIFIED", pod(ended(2), to_go=True)), ("DELETED", pod(ended(2)))], ""),
    ],
    ids=["without a word of it", "after it had crashed"],
)
def test_a_pod_that_is_gone(after: Sequence[tuple[str, Any]], by: str) -> None:
    place = told(*after)
    assert place.state("n1") is ProcessState.EXITED
    assert place.ended_by("n1") == by


async def test_what_kubernetes_is_late_with_or_refuses_is_no_evidence_of_a_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a node that has run: where its version is changed, bad input and what is late are its new program's."""
    monkeypatch.setattr(substrate, "_START_S", 0.0)
    place: Any = told(("MODIFIED", pod(ended(0))))
    place._found, place._images, place._ended = found("shop", [RELEASE]), {}, {"n1": "u"}
    place._changes = SimpleNamespace(replicas=3)
    spec: Any = SimpleNamespace(name="n1", program=None, tells=None)
    with pytest.raises(HarnessError, match="waiting for n1 to be made anew: not after") as late:
        await place.start(spec)
    assert not isinstance(late.value, TimedOut)

    async def refused(_: object) -> None:
        raise BadInput("its token has expired")

    monkeypatch.setattr(place, "_start", refused)
    for ran, raised in (("", BadInput), ("one", HarnessError)):
        place._runs["n1"] = ran
        with pytest.raises(raised, match="its token has expired"):
            await place.start(spec)


async def test_of_a_pod_that_crashes_again_and_again_it_is_told_what_it_said_last() -> None:
    asked = list[object]()

    def log(*where: str, **lines: object) -> str:
        asked.append((where, lines))
        return "no such flag: --mad\n"

    waits = client.V1ContainerStateWaiting(reason="CrashLoopBackOff", message="back-off 10s")
    crashes = pod(client.V1ContainerState(waiting=waits), ended(2))
    place: Any = told(("MODIFIED", crashes), ("MODIFIED", crashes), log=log)
    place._ended, place._found = {}, replace(found("shop", [RELEASE]), image="db:1")
    with pytest.raises(
        HarnessError, match=r"^n1: pod shop-cockroachdb-0: CrashLoopBackOff: back-off 10s; .*: no such flag: --mad$"
    ):
        await place._comes("n1", "db:1")
    where = ("team", "shop-cockroachdb-0", "db")
    assert asked == [(where, {"previous": True, "tail_lines": 20})], "once"
    again = told(("MODIFIED", crashes), ("MODIFIED", pod(RUNS)), log=log)
    assert again._pods["shop-cockroachdb-0"].last_words == "", "of one that runs by now it says nothing"


@pytest.mark.parametrize("ran", [True, False], ids=["in place of another", "the first of its name"])
async def test_a_pod_in_place_of_another_is_there_once_clients_find_it(
    ran: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not taken for a gap after the fault that nobody found it."""
    place: Any = told(*[("MODIFIED", pod(RUNS, ended(0)))] * ran)
    place._ended, place._runs = {}, {"n1": "one" if ran else ""}
    place._found, wrote, begun = replace(found("shop", [RELEASE]), image="db:1"), list[str](), list[str]()
    place._history = SimpleNamespace(write=wrote.append, begins=begun.append)
    place._placements = {"n1": SimpleNamespace(client_address="shop-0")}
    answers = iter(["10.0.0.8", "10.0.0.1"])
    monkeypatch.setattr(dns, "_AGAIN_S", 0.0)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", (next(answers), 0))])
    await place._comes("n1", "db:1")
    assert begun == ["shop-cockroachdb-0"]
    assert [line.split(":")[0] for line in wrote] == [
        "the name shop-0 leads to 10.0.0.8, and the pod that has it now is at 10.0.0.1"
    ] * ran
    assert [*answers] == ([] if ran else ["10.0.0.8", "10.0.0.1"])


async def test_a_pod_that_is_deleted_is_known_by_its_uid_and_its_container(monkeypatch: pytest.MonkeyPatch) -> None:
    """The former container has ended, another pod is there, and its kubelet runs another container in it."""
    monkeypatch.setattr(substrate, "_START_S", 0.0)
    place: Any = told()
    there = replace(found("shop", [RELEASE]), image="db:1")
    place._found, place._allowed, place._next, place._ended = there, True, {}, {}
    at, asked = place._pods["shop-cockroachdb-0"], list[object]()
    made = iter([("u", ""), ("v", ""), ("v", "one"), ("u", "two"), ("v", "two")])

    async def ask(**changes: object) -> None:
        asked.append(changes)

    def delete(_what: str, _delete: object, *where: str, uid: str, grace_s: int) -> None:
        asked.append((where[0], uid, grace_s))
        at.codes["one"], (at.uid, at.container) = 0, next(made)

    place._changes = SimpleNamespace(ask=ask)
    place._api = SimpleNamespace(delete_now=delete, core=SimpleNamespace(delete_namespaced_pod=None))
    for _ in range(4):
        with pytest.raises(HarnessError, match="another pod shop-cockroachdb-0: not after"):
            await place.delete_pod("n1")
        at.container, at.codes, at.uid = "one", {}, "u"
    at.since = "12:00:00"
    assert await place.delete_pod("n1") == (
        "pod shop-cockroachdb-0 deleted: its UID was u and is v; its container was one and is two, which its kubelet "
        "runs since 12:00:00"
    )
    assert asked == [{"image": "db:1"}, ("shop-cockroachdb-0", "u", 1)] * 5
    assert (place.state("n1"), place.ended_by("n1")) == (ProcessState.EXITED, "")
    with pytest.raises(HarnessError, match="n1 has no pod that could be deleted: it is exited"):
        await place.delete_pod("n1")


@pytest.mark.parametrize("told_of", [True, False], ids=["all pods are of it", "first seen of a new version"])
async def test_an_image_that_a_webhook_gave_a_pod_changes_no_statefulset(
    told_of: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed node's StatefulSet was told of the mirror's image, and lost its strategy meanwhile."""
    place: Any = told()
    place._found, place._allowed, place._next, place._ended = found("shop", [RELEASE]), True, {}, {}
    place._changes, place._rewritten = changes(server := Server()), {"db:1": place._found.image} if told_of else {}
    at = place._pods["shop-cockroachdb-0"]

    def delete(*_: object, uid: str, **__: object) -> None:
        assert uid == "u", "once"
        at.codes["one"], at.container, at.uid = 0, "two", "v"

    place._api = SimpleNamespace(delete_now=delete, core=SimpleNamespace(delete_namespaced_pod=None))
    place._history.begins = place._history.write = lambda _: None
    place._placements = {"n1": SimpleNamespace(client_address="shop-0")}
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", ("10.0.0.1", 0))])
    await place.kill("n1")
    await place.start(SimpleNamespace(name="n1", program=None, tells=None))
    assert place.state("n1") is ProcessState.RUNNING
    assert server.told == []
    # Another version, by an image that somebody here named, is none of it.
    place._images[Path("/new")] = at.image = "db:2"
    assert place._made_of(at) == "db:2"


@pytest.mark.parametrize(
    ("left", "replicas"),
    [({}, 3), ({"codes": {"c": 1}}, 4), ({"container": "c"}, 4)],
    ids=["never ran", "crashed", "runs by now"],
)
async def test_a_pod_that_never_ran_is_not_left_in_the_statefulset(
    left: dict[str, Any], replicas: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody takes its node out, which is no node of the cluster. One that ran for a moment may be one."""
    monkeypatch.setattr(substrate, "_START_S", 0.0)
    place: Any = told()
    at = place._pods["shop-cockroachdb-3"]

    class Scaled(Server):
        def patch_namespaced_stateful_set(self, name: str, namespace: str, body: dict[str, Any]) -> Any:
            if body["spec"]["replicas"] == 4:
                self.volumes, at.uid, at.image = ["datadir-shop-cockroachdb-3"], "v", place._found.image
            else:
                at.uid = ""
            return super().patch_namespaced_stateful_set(name, namespace, body)

    server, until = Scaled(), substrate._until

    async def wait(what: str, *about: Any) -> None:
        if "to run" in what:
            for name, value in left.items():
                setattr(at, name, value)
            raise HarnessError("no machine takes it")
        await until(what, *about)

    monkeypatch.setattr(substrate, "_until", wait)
    place._found, place._changes = found("shop", [RELEASE]), changes(server)
    place._images, place._ended, place._out = {}, {}, set()
    place._names["n4"], place._runs["n4"] = "shop-cockroachdb-3", ""
    with pytest.raises(HarnessError, match="no machine takes it"):
        await place.start(SimpleNamespace(name="n4", program=None, tells=None))
    assert server.told[-1]["spec"]["replicas"] == replicas
    assert (server.volumes == [], "n4" in place._out) == (replicas == 3, replicas == 3)
    if replicas == 3:
        await place._changes.put_back()
        assert server.told[-1]["spec"]["updateStrategy"] == STRATEGY
        assert server.told[-1]["metadata"]["annotations"] == {"roachproof/found": None}


@pytest.mark.parametrize(
    ("there", "printed", "raised"),
    [("db:2", b"v3", True), ("db:2", b"v2", False), ("db:2", None, False), ("db:1", b"v3", False)],
    ids=["another version", "as was meant", "it has ended", "what ran there"],
)
async def test_an_image_of_another_version_is_not_what_the_version_does(
    there: str, printed: bytes | None, raised: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file := tmp_path / "images.json").write_text(json.dumps({there: {str(tmp_path / "new"): "/db/db"}}))
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_IMAGES", str(file))
    place: Any = told()

    def execute(
        namespace: str, pod: str, argv: Sequence[str], *, container: str, timeout: float
    ) -> tuple[int, bytes, bytes]:
        assert timeout == 60
        assert (namespace, pod, argv, container) == ("team", "shop-cockroachdb-0", ("/db/db", "version"), "db")
        if printed is None:
            raise HarnessError("its container does not run")
        return 0, printed, b""

    async def started(_: object) -> None:
        """Nothing is late."""

    place._api, place._found = SimpleNamespace(execute=execute), replace(found("shop", [RELEASE]), image="db:1")
    monkeypatch.setattr(place, "_start", started)
    tells = Tells(argv=("cockroach", "version"), read=str, version="v2")
    start = place.start(SimpleNamespace(name="n1", program=tmp_path / "new", tells=tells))
    if raised:
        with pytest.raises(UnfitImage, match=r"_IMAGES: image db:2: /db/db calls itself v3, and .*/new .* is v2"):
            await start
    else:
        await start
