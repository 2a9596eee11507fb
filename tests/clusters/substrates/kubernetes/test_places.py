"""Nodes in pods, without a Kubernetes: what is asked again, refused, and not made up."""

import asyncio
import base64
import io
import json
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import Any, BinaryIO, cast
from unittest.mock import AsyncMock, Mock

import pytest

from clusters.errors import BadInput, CommandTimedOut, HarnessError
from clusters.model import NodeSpec, Placement, ProcessSpec, ProcessState, Tells
from clusters.substrates.kubernetes import cleanup, places, substrate
from clusters.substrates.kubernetes.api import Refused
from clusters.substrates.kubernetes.manifests import (
    CONTAINER,
    HOME,
    INSTANCE,
    LOGS,
    ORDER,
    POD,
    STORE,
    Settings,
    Template,
)
from clusters.substrates.kubernetes.places import Node
from clusters.substrates.kubernetes.pods import Pod, UnfitImage, _stuck
from clusters.substrates.kubernetes.settings import Given
from clusters.substrates.kubernetes.shell import Shell
from clusters.substrates.kubernetes.substrate import Kubernetes
from clusters.substrates.kubernetes.volumes import Files

AWAY = HarnessError("pod node-0 does not answer: the connection was lost")


class Container:
    """Answers each question with the next of these, or raises it."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)

    def ask(self, *_: str, timeout: float = 10.0) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def place(*answers: object, pod: Pod | None = None) -> Any:
    """A place with a node whose container says this."""
    there: Any = Kubernetes.__new__(Kubernetes)
    spec, container = NodeSpec(name="n1"), cast("Shell", Container(*answers))
    at = Placement(node=spec, address="node-0", client_address="node-0", home=HOME, store=STORE, logs=LOGS)
    there._nodes = {"n1": Node(placement=at, group="node", pod="node-0", shell=container, looks=container)}
    there._cluster, there._closing, there._locks, there._sets, there._removed = "c", None, {}, {}, set()
    there._groups, there._given, there._programs, there._as_said = set(), Given.read({}), {}, set()
    there._pods = {"node-0": pod or Pod("node-0", uid="u", alive=True)}
    return there


async def test_a_pod_is_asked_again_while_the_api_server_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_AGAIN_S", 0.0)
    there = place(AWAY, AWAY, (0, "yes"))
    assert await there._asked(there._nodes["n1"], "true") == "yes"
    monkeypatch.setattr(places, "AWAY_S", 0.0)
    there = place(*[AWAY] * 9)
    with pytest.raises(HarnessError, match="node-0 does not answer"):
        await there._asked(there._nodes["n1"], "true")


async def test_a_question_whose_answer_may_be_no_is_asked_again_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run ended with 7 as the API server was away for the moment in which a node's program was looked at."""
    monkeypatch.setattr(places, "_AGAIN_S", 0.0)
    there = place(AWAY, (1, ""))
    with pytest.raises(BadInput, match="/bin/db: no such file in n1"):
        await there._executable(there._nodes["n1"], "/bin/db")

    there = place((0, f"x86_64\n{base64.b64encode(b'this is none').decode()}\n"))
    with pytest.raises(BadInput, match=r"/bin/db: n1: cannot run .* no program: it begins with b'this is "):
        await there._executable(there._nodes["n1"], "/bin/db")

    (file := tmp_path / "images.json").write_text(json.dumps({"db:1": {"/db": "/db"}}))
    there = place(AWAY, (0, "v1"))
    there._given = Given.read({"ROACHPROOF_KUBERNETES_IMAGES": str(file)})
    program = there._given.program(Path("/db"))
    there._programs = {program.path: program}
    tells = Tells(argv=(str(program.path), "version"), read=str.strip, version="v1")
    await there._as_meant(there._nodes["n1"], SimpleNamespace(tells=tells))
    assert there._as_said == {("", program.path)}

    there = place(AWAY, (0, ""))
    copied = Given.read({}).program(tmp_path / "tool")
    there._programs = {copied.path: copied}
    pod = Pod("node-0", uid="u", template=Template(image="db:1"))
    await there._furnish(node := there._nodes["n1"], pod)
    assert node.furnished == {("u", copied.path)}


async def test_the_time_of_a_command_begins_once_its_program_was_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """An API server that is away would else be a command that takes too long, which is the database's doing."""
    monkeypatch.setattr(places, "_AGAIN_S", 0.0)
    there = place(AWAY, AWAY, (0, ""))
    there._forwards = None
    there._up, there._run_in = AsyncMock(return_value=there._nodes["n1"]), AsyncMock(return_value="its end")
    assert await there.run(["/bin/db"], env={}, timeout=0.0, node="n1") == "its end"
    assert there._nodes["n1"].shell.answers == [], "it was looked at"


class Silent(Container):
    """Says nothing to whoever asks whether it answers, before ``answers_again`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.answers_again, self.asked = threading.Event(), threading.Event()

    def ask(self, *question: str, timeout: float = 10.0) -> Any:
        if question == ("eval", ":"):
            self.asked.set()
            self.answers_again.wait()
        return 0, ""


@pytest.mark.parametrize("back", [False, True], ids=["to the end", "and back before that"])
async def test_a_command_that_nobody_could_hear_of_is_not_taken_for_late(
    back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that did not say in time which it is was refuted, while the API server was silent."""
    monkeypatch.setattr(substrate, "HARMLESS_S", 0.01)
    container = Silent()

    def execute(*_: object, stop: threading.Event, **__: object) -> Any:
        if back:
            container.asked.wait()
            time.sleep(0.05)  # longer than is harmless
            container.answers_again.set()
        stop.wait()
        return -1, b"", b""

    there = hearing(container, execute)
    try:
        with pytest.raises(HarnessError, match=r"postgres --version did not end .* nothing in n1 answered") as failed:
            await there.run(("postgres", "--version"), env={}, timeout=0.5, node="n1")
    finally:
        container.answers_again.set()
    assert not isinstance(failed.value, CommandTimedOut)


async def test_a_command_is_late_in_a_container_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(substrate, "HARMLESS_S", 3600.0)  # a busy machine is silent for moments, too

    def execute(*_: object, stop: threading.Event, **__: object) -> Any:
        stop.wait()
        return -1, b"", b""

    container = Silent()
    container.answers_again.set()
    with pytest.raises(CommandTimedOut, match=r"postgres --version did not end within 0\.1 s$"):
        await hearing(container, execute).run(("postgres", "--version"), env={}, timeout=0.1, node="n1")


def hearing(container: Silent, execute: Callable[..., Any]) -> Any:
    """A place with a node that is up, in whose container commands run so."""
    there = place()
    node = there._nodes["n1"]
    node.shell = node.looks = container
    there._up, there._forwards = AsyncMock(return_value=node), None
    there._settings, there._api = SimpleNamespace(namespace="team"), SimpleNamespace(execute=execute)
    return there


async def test_nothing_is_made_any_more_once_all_is_cleared_away() -> None:
    """A node that waited for another of its zone to be made would be left, in a namespace that is not ours."""
    there, declared = place(), list[object]()

    async def declare(*told: object) -> None:
        declared.append(told)

    there._declared = declare
    there._locks["node"] = asyncio.Lock()
    async with there._locks["node"]:
        starting = asyncio.create_task(there._up("n1"))
        await asyncio.sleep(0)  # it waits
        there._closing = asyncio.create_task(asyncio.sleep(0))
    with pytest.raises(HarnessError, match="the cluster is closed"):
        await starting
    assert declared == []


@pytest.mark.parametrize(
    ("image", "starts", "raised", "said"),
    [
        ("db:1", 0, BadInput, "ROACHPROOF_KUBERNETES_IMAGE=db:1: pod node-0: "),
        ("another", 0, UnfitImage, "pod node-0: "),
        ("db:1", 1, UnfitImage, "pod node-0: "),
    ],
    ids=["that the user named", "that somebody else gave the pod", "of a node that has run"],
)
async def test_an_image_that_cannot_be_pulled(
    image: str, starts: int, raised: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    way_out = "name an image that the cluster can pull"
    pod = Pod("node-0", template=Template(image=image), waiting="ErrImagePull: not found", stuck=way_out, starts=starts)
    there = place(pod=pod)
    there._given = Given.read({"ROACHPROOF_KUBERNETES_IMAGE": "db:1"})

    async def made(*_: object) -> None:
        raise _stuck(pod, pod.stuck)

    monkeypatch.setattr(there, "_made", made)
    with pytest.raises(raised, match=f"^{said}ErrImagePull: not found; {way_out}$"):
        await there._up("n1")


async def test_an_image_of_another_version_is_not_what_the_version_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim of a changed version was refuted by a wrong line of the file, though that version never ran."""
    (file := tmp_path / "images.json").write_text(json.dumps({"db:2": {str(tmp_path / "new"): "/db/db"}}))
    given = Given.read({"ROACHPROOF_KUBERNETES_IMAGES": str(file)})
    program = given.program(tmp_path / "new")
    tells = Tells(argv=(str(program.path), "version"), read=str.strip, version="v2")
    for starts, raised in ((0, BadInput), (1, UnfitImage)):
        there = place((0, ""), (0, "v3\n"), pod=Pod("node-0", starts=starts))
        there._given, there._programs = given, {program.path: program}
        monkeypatch.setattr(there, "_up", AsyncMock(return_value=there._nodes["n1"]))
        spec = ProcessSpec(name="n1", argv=tells.argv[:1], env={}, cwd=HOME, output=LOGS / "out", tells=tells)
        monkeypatch.setattr(there, "state", lambda _: ProcessState.EXITED)
        with pytest.raises(raised, match=r"_IMAGES: image db:2: /db/db calls itself v3, and .*/new .* is v2"):
            await there.start(spec)
    there = place((0, "v2\n"), (0, "v3\n"))
    there._given, there._programs = given, {program.path: program}
    for _ in range(2):  # it is asked once
        await there._as_meant(there._nodes["n1"], spec)
    # A tag that moved is of another image on another machine.
    there._pods["node-0"].image_id = "db@sha256:2"
    with pytest.raises(BadInput, match="/db/db calls itself v3"):
        await there._as_meant(there._nodes["n1"], spec)


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([(1, "")], "no such file in n1, or not executable"),
        ([(0, f"x86_64\n{base64.b64encode(b'MZ').decode()}\n")], r"n1: cannot run on this machine .*for Windows"),
        ([(0, ""), (127, "no libc")], r"cannot be run in n1 \(exit code 127: no libc\)"),
    ],
)
async def test_an_image_without_the_program_is_not_what_the_version_does(
    answers: list[object], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file := tmp_path / "images.json").write_text(json.dumps({"db:2": {str(tmp_path / "new"): "/db/db"}}))
    given = Given.read({"ROACHPROOF_KUBERNETES_IMAGES": str(file)})
    program = given.program(tmp_path / "new")
    tells = Tells(argv=(str(program.path), "version"), read=str.strip, version="v2")
    spec = ProcessSpec(name="n1", argv=tells.argv[:1], env={}, cwd=HOME, output=LOGS / "out", tells=tells)
    for starts, raised in ((0, BadInput), (1, UnfitImage)):
        there = place(*answers, pod=Pod("node-0", starts=starts, template=Template(image="db:2")))
        there._given, there._programs = given, {program.path: program}
        monkeypatch.setattr(there, "_up", AsyncMock(return_value=there._nodes["n1"]))
        monkeypatch.setattr(there, "state", lambda _: ProcessState.EXITED)
        with pytest.raises(raised, match=f"_IMAGES: image db:2: /db/db: {why}; correct that line of the file"):
            await there.start(spec)


async def test_a_token_that_runs_out_is_not_what_keeps_a_node_from_its_new_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where a version is changed, bad input is the new program's: the claim was refuted by it."""
    for starts, raised in ((0, BadInput), (1, HarnessError)):
        there = place(pod=Pod("node-0", starts=starts))

        async def made(*_: object) -> None:
            raise BadInput("its token has expired; log in again")

        monkeypatch.setattr(there, "_made", made)
        with pytest.raises(raised, match="its token has expired; log in again"):
            await there._up("n1")


async def test_nor_is_it_bad_input_where_a_pod_is_to_be_deleted() -> None:
    pod = Pod("node-0", uid="u", template=Template(image="db:1"), alive=True, ready=True, starts=1)
    there = place(pod=pod)
    Remade(there, pod)
    there._declared = AsyncMock(side_effect=BadInput("its token has expired; log in again"))
    with pytest.raises(HarnessError, match="its token has expired; log in again"):
        await there.delete_pod("n1")


class Remade:
    """A StatefulSet's pod, which is made anew as soon as it is deleted; what is done to it, in words."""

    def __init__(self, there: Any, pod: Pod, *, anew: bool = True) -> None:
        self.did, self.says = list[str](), ""
        there._settings, there._api = SimpleNamespace(namespace="team"), SimpleNamespace(delete_now=self.delete)
        there._api.core = SimpleNamespace(delete_namespaced_pod=None)
        self._pod, self._anew = pod, anew
        for shell in (there._nodes["n1"].shell, there._nodes["n1"].looks):
            shell.close = lambda: None
        there._declared, there._asked = self.declared, self.asked
        there._pods = Watched({"node-0": pod})

    async def asked(self, _: object, *question: str) -> str:
        self.did.append(question[-1])
        return f"{self.says or self._pod.uid}\n" if question == ("cat", str(POD)) else ""

    async def declared(self, _: object, template: Template) -> None:
        self.did.append(f"declared {template.image}")

    def delete(self, _what: str, _delete: object, name: str, _namespace: str, *, uid: str, grace_s: int) -> None:
        self.did.append(f"deleted {name} {uid} {grace_s}")
        self._pod.uid, self._pod.alive = "v" if self._anew else "", False


class Watched(dict[str, Pod]):
    """Pods that do not wait."""

    async def until(self, what: str, pod: Pod, check: Callable[[], bool], *, timeout: float, of: str = "") -> None:
        if not check():
            raise HarnessError(f"waiting for {what}: not after {timeout:g} s")


async def test_a_pod_that_is_deleted_comes_back_as_it_was_without_its_process() -> None:
    """Of the template that its StatefulSet was told last it might be another version's; with an order it would run."""
    pod = Pod("node-0", uid="u", template=Template(image="db:1"), alive=True, ready=True, starts=1)
    there = place(pod=pod)
    remade = Remade(there, pod)
    assert await there.delete_pod("n1") == "pod node-0 deleted: its UID was u and is v, as its container says, too"
    assert remade.did == [f"rm -f {ORDER}", "declared db:1", "deleted node-0 u 1", str(POD)]
    assert there._nodes["n1"].pod == "node-0"


async def test_that_a_pod_is_another_is_not_the_api_servers_word_alone() -> None:
    """Its container says whose it is; one that is of the former pod was not deleted."""
    pod = Pod("node-0", uid="u", template=Template(image="db:1"), alive=True, ready=True, starts=1)
    there = place(pod=pod)
    Remade(there, pod).says = "u"
    with pytest.raises(HarnessError, match="its UID v; its container says that the volume of n1 is with u"):
        await there.delete_pod("n1")


async def test_a_pod_that_is_not_made_anew_is_no_fault_that_bit() -> None:
    pod = Pod("node-0", uid="u", template=Template(image="db:1"), alive=True, starts=1)
    there = place(pod=pod)
    remade = Remade(there, pod, anew=False)
    with pytest.raises(HarnessError, match="another pod node-0: not after"):
        await there.delete_pod("n1")
    pod.template = None
    remade.did.clear()
    with pytest.raises(HarnessError, match="n1 has no pod that could be deleted"):
        await there.delete_pod("n1")
    assert remade.did == []


OLD, NEW = (Template(image="db:1", cpus=cpus, memory_mib=64) for cpus in (0.5, 1.0))


@pytest.mark.parametrize("why", ["", "it was not given cpu 1000m, memory 64Mi in place: Infeasible: no capacity"])
async def test_a_pod_is_made_anew_for_other_limits_only_where_it_does_not_get_them_in_place(
    why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What pods are made of is said before: one that somebody deletes meanwhile, or later, has these, too."""
    pod = Pod("node-0", uid="u", template=OLD, ready=True, starts=1)
    there = place(pod=pod)
    remade = Remade(there, pod)
    there._history, there._programs = None, {}

    async def resize(*told: Any) -> str:
        assert told[4:] == (pod, (there._nodes["n1"].shell, there._nodes["n1"].looks), NEW)
        remade.did.append("asked")
        pod.template = NEW
        return why

    monkeypatch.setattr(places, "resize", resize)
    await there._up("n1", NEW)
    assert remade.did == ["declared db:1", "asked", *(["deleted node-0 u None"] if why else [])]
    assert pod.uid == ("v" if why else "u")
    remade.did.clear()
    await there._up("n1", NEW)
    assert remade.did == ["declared db:1"], "it has them"


async def test_one_that_is_made_anew_and_runs_nowhere_is_said_with_why_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    pod = Pod("node-0", uid="u", template=OLD, ready=True, starts=1)
    there = place(pod=pod)
    remade = Remade(there, pod)
    there._history = None

    async def resize(*_: object) -> str:
        pod.ready = False
        return "it was not given cpu 1000m in place: Infeasible: no capacity"

    monkeypatch.setattr(places, "resize", resize)
    said = "pod node-0 to run db:1, made anew as it was not given cpu 1000m in place: Infeasible: no capacity,: not"
    with pytest.raises(HarnessError, match=said):
        await there._up("n1", NEW)
    assert remade.did == ["declared db:1", "deleted node-0 u None"]


def test_what_crashes_again_and_again_is_not_said_of_its_image() -> None:
    pod = Pod("node-0", template=Template(image="db:1"), waiting="CrashLoopBackOff: back-off", stuck="see its log")
    assert type(_stuck(pod, pod.stuck)) is HarnessError


def test_cpu_that_was_not_told_is_not_made_up() -> None:
    """What a version costs by its CPU would be that of nothing, or of all that it ever did."""
    assert place((0, "2500000000\n")).cpu_seconds() == 2.5
    assert place(pod=Pod("node-0")).cpu_seconds() == 0.0
    with pytest.raises(HarnessError, match="does not answer"):
        place(AWAY).cpu_seconds()
    with pytest.raises(HarnessError, match=r"c: the CPU of n1 cannot be read \(1\): no such file"):
        place((1, "no such file")).cpu_seconds()


async def test_a_zone_that_comes_later_is_placed_and_services_are_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once some zones were placed a node of another one went anywhere."""
    there, asked = place(), list[tuple[list[str], dict[str, Any]]]()

    async def zones(_: object, nodes: list[NodeSpec], *, known: dict[str, Any], pods: Any) -> dict[str, Any]:
        asked.append(([node.name for node in nodes], dict(known)))
        return {f"node-eu-{node.zone}": {"zone": node.zone} for node in nodes}

    monkeypatch.setattr(places, "zones", zones)
    there._nodes, there._forwards, there._where, there._services = {}, None, {}, set()
    there._api, there._settings = None, SimpleNamespace(namespace="s", pods={})
    named = {
        name: NodeSpec(name=name, region="eu", zone=zone) for name, zone in (("n1", "a"), ("n2", "b"), ("n3", "a"))
    }
    await there.place([named["n1"]])
    await there.beside("etcd")
    await there.place([named["n2"]])
    await there.place([named["n3"]])
    a, b = {"node-eu-a": {"zone": "a"}}, {"node-eu-b": {"zone": "b"}}
    assert asked == [(["n1"], {}), (["n1", "n2"], a)]
    assert there._where == {**a, **b}


async def test_a_container_that_others_put_beside_a_node_is_not_taken_for_it(tmp_path: Path) -> None:
    """As one of a mesh: of several the API server takes the first, and of logs none, where it is not told which."""
    there, asked = place((0, ""), pod=Pod("node-0", uid="u", ready=True)), list[object]()

    def execute(*_: object, container: str, **__: object) -> tuple[int, bytes, bytes]:
        asked.append(container)
        return 0, b"", b""

    def open_exec(*_: object, container: str, **__: object) -> Any:
        asked.append(container)
        raise HarnessError("that is all")

    there._api, there._settings = (
        SimpleNamespace(execute=execute, open_exec=open_exec),
        SimpleNamespace(namespace="s", pods={}),
    )
    there._nodes, there._forwards, there._where = {}, None, {"node": {}}
    (at,) = await there.place([NodeSpec(name="n2")])
    with pytest.raises(HarnessError, match="that is all"):
        there._nodes["n2"].looks.ask("true")
    with pytest.raises(HarnessError, match="cut off after 0 bytes"):
        await Files(there._api, "s").archive(at.address, LOGS, io.BytesIO())
    there._nodes["n2"].shell.ask = lambda *_: (0, "")
    await there._run_in(there._nodes["n2"], ["/bin/true"], {}, HOME)
    assert set(asked) == {CONTAINER}
    assert len(asked) == 4, "a shell is opened twice"


@pytest.mark.parametrize("cut", [0, 1, 512, 1024, 4000])
async def test_an_archive_that_was_cut_off_is_none_whatever_its_exit_code(cut: int) -> None:
    head, content, end = tarfile.TarInfo("f"), b"x" * 9 * tarfile.BLOCKSIZE, bytes(2 * tarfile.BLOCKSIZE)
    head.size = len(content)
    whole = head.tobuf() + content + end
    sent = whole[: len(whole) - cut]

    def execute(*_: object, into: BinaryIO, **__: object) -> tuple[int, bytes, bytes]:
        into.write(sent)
        return 0, b"", b""

    files, into = Files(cast("Any", SimpleNamespace(execute=execute)), "s"), io.BytesIO()
    if cut:
        with pytest.raises(HarnessError, match=f"cannot pack /d of node-0: the archive was cut off after {len(sent)} "):
            await files.archive("node-0", Path("/d"), into)
    else:
        await files.archive("node-0", Path("/d"), into)
        assert into.getvalue() == sent


async def test_a_program_that_runs_another_is_where_that_is(tmp_path: Path) -> None:
    """A server that was to be killed once it was open did not find the program that it stood for: exit code 127."""
    (file := tmp_path / "images.json").write_text(json.dumps({"db:1": {"/1/db": "/db"}, "db:2": {"/2/db": "/db"}}))
    there = place(pod=Pod("node-0", uid="u", template=Template(image="db:1")))
    there._given, there._programs = Given.read({"ROACHPROOF_KUBERNETES_IMAGES": str(file)}), {}

    def image(path: PurePath) -> str:
        asked = ProcessSpec(name="n1", argv=(str(path),), env={}, cwd=HOME, output=LOGS / "out")
        return str(there._template(asked).image)

    path = await there.present(tmp_path / "broken", runs=Path("/2/db"))
    assert await there.present(tmp_path / "broken") == path, "whoever installs it knows nothing of the other"
    assert image(path) == "db:2"
    assert image(await there.present(Path("/1/db"))) == "db:1"
    assert image(await there.present(tmp_path / "alone")) == "db:1"


THERE, NO_SUCH = Refused("configmaps already exists", 409), Refused('namespaces "team" not found', 404)


@pytest.mark.parametrize(
    ("answers", "is_in", "left", "becomes"),
    [
        ([None], "", "", ""),
        ([THERE], "c", "", ""),
        ([THERE, None], "lost-one", "lost-one", "left by a lost run: lost-one in namespace team: deleted"),
        ([THERE, THERE], "quicker", "lost-one", "context lab: namespace team has another run in it"),
        ([THERE, THERE], "another", "", "context lab: namespace team has another run in it"),
        ([NO_SUCH], "", "", "context lab: namespace team is not there; make it"),
    ],
    ids=["nobody", "answer-lost", "lost", "lost-and-another-was-quicker", "lives", "no-namespace"],
)
async def test_a_namespace_that_is_named_has_one_run_at_a_time(
    answers: list[Exception | None], is_in: str, left: str, becomes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = place()
    there._settings = Settings(namespace="team", cluster="c")
    found = SimpleNamespace(metadata=SimpleNamespace(labels={INSTANCE: is_in}, annotations={}))
    call = AsyncMock(side_effect=answers)
    there._api = SimpleNamespace(where="context lab", core=Mock(), call=call, call_now=lambda *_: found)
    monkeypatch.setattr(places, "lacking", AsyncMock(return_value=[]))
    monkeypatch.setattr(cleanup, "sweep_named", lambda *_: left)
    said = list[str]()
    try:
        await there._make_first("keep the script", {}, said.append)
    except BadInput as error:
        said = [str(error)]
    assert call.await_count == len(answers)
    assert "".join(said).startswith(becomes)
    assert bool(said) == bool(becomes)
