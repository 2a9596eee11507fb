"""Nodes in pods, without a Kubernetes: what is asked again, refused, and not made up."""

import asyncio
from typing import Any, cast

import pytest

from clusters.errors import BadInput, HarnessError
from clusters.model import NodeSpec, Placement
from clusters.substrates.kubernetes import places
from clusters.substrates.kubernetes.manifests import HOME, LOGS, STORE, Template
from clusters.substrates.kubernetes.places import Node
from clusters.substrates.kubernetes.pods import Pod, UnfitImage, _stuck
from clusters.substrates.kubernetes.questions import Shell
from clusters.substrates.kubernetes.settings import Given
from clusters.substrates.kubernetes.substrate import Kubernetes

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
    there._cluster, there._closing, there._locks, there._sets = "c", None, {}, {}
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
        raise _stuck(pod)

    monkeypatch.setattr(there, "_made", made)
    with pytest.raises(raised, match=f"^{said}ErrImagePull: not found; {way_out}$"):
        await there._up("n1")


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


def test_what_crashes_again_and_again_is_not_said_of_its_image() -> None:
    pod = Pod("node-0", template=Template(image="db:1"), waiting="CrashLoopBackOff: back-off", stuck="see its log")
    assert type(_stuck(pod)) is HarnessError


def test_cpu_that_was_not_told_is_not_made_up() -> None:
    """What a version costs by its CPU would be that of nothing, or of all that it ever did."""
    assert place((0, "2500000000\n")).cpu_seconds() == 2.5
    assert place(pod=Pod("node-0")).cpu_seconds() == 0.0
    with pytest.raises(HarnessError, match="does not answer"):
        place(AWAY).cpu_seconds()
    with pytest.raises(HarnessError, match=r"c: the CPU of n1 cannot be read \(1\): no such file"):
        place((1, "no such file")).cpu_seconds()
