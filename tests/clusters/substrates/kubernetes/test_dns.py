"""A node's pod was replaced, and what clients are told of its name may be of the former one for a while."""

import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from clusters.errors import HarnessError
from clusters.model import ProcessSpec
from clusters.substrates.kubernetes import dns
from clusters.substrates.kubernetes.dns import leads_to
from clusters.substrates.kubernetes.manifests import HOME, LOGS
from clusters.substrates.kubernetes.pods import Pod
from tests.clusters.substrates.kubernetes.test_places import place

GONE = socket.gaierror("Name or service not known")


class Names:
    """What this machine's resolver says of each name, once after the other; the last for ever."""

    def __init__(self, *answers: list[str] | Exception) -> None:
        self._answers, self.asked = list(answers), list[str]()

    def __call__(self, name: str, *_: object, **__: object) -> Any:
        self.asked.append(name)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in answer]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Names]:
    monkeypatch.setattr(dns, "_AGAIN_S", 0.0)

    def tell(*answers: list[str] | Exception) -> Names:
        monkeypatch.setattr(socket, "getaddrinfo", told := Names(*answers))
        return told

    return tell


@pytest.mark.parametrize(
    ("answers", "asked"),
    [([["10.0.0.2"]], 1), ([["10.0.0.1"], GONE, ["10.0.0.1"], ["10.0.0.9", "fd00::2"]], 4)],
    ids=["at once", "the former one's, and none meanwhile"],
)
async def test_a_name_is_waited_for_until_it_leads_to_the_pod(answers: Any, asked: int, names: Any) -> None:
    told, said = names(*answers), list[str]()
    assert await leads_to("node-0", lambda: ("10.0.0.2", "fd00::2"), lives=lambda: True, say=said.append)
    assert told.asked == ["node-0"] * asked
    first = "the name node-0 leads to 10.0.0.1, and the pod that has it now is at 10.0.0.2, fd00::2: waiting until"
    assert [one.startswith(first) for one in said] == [True] * (asked > 1)


async def test_a_name_that_does_not_lead_there_ends_the_run_with_the_way_out(
    names: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dns, "_NAMED_S", -1.0)
    for answer, told in ((["10.0.0.1"], "10.0.0.1"), (GONE, "nothing")):
        names(answer)
        with pytest.raises(
            HarnessError, match=rf"node-0 leads to {told}, and the pod .* at 10.0.0.2, .*\(CoreDNS: `cache 5`\)"
        ):
            await leads_to("node-0", lambda: ("10.0.0.2",), lives=lambda: True, say=lambda _: None)


async def test_a_process_that_has_ended_meanwhile_is_not_waited_for(names: Any) -> None:
    """That is the database's, and says more."""
    names(["10.0.0.1"])
    lives = iter([True, True, False])
    assert not await leads_to("node-0", lambda: ("10.0.0.2",), lives=lambda: next(lives), say=lambda _: None)


@pytest.mark.parametrize("forwards", [False, True])
async def test_a_node_that_goes_on_in_another_pod_is_started_once_clients_find_it(forwards: bool, names: Any) -> None:
    """Its own gateway, which nobody found, was taken for a gap after the fault was undone."""
    pod = Pod("node-0", uid="u", addresses=("10.0.0.1",))
    there: Any = place(pod=pod)
    node, history = there._nodes["n1"], list[str]()
    node.shell.ask = lambda *_, **__: (0, "")
    there._led, there._programs, there._forwards = {}, {}, SimpleNamespace() if forwards else None
    there._history = SimpleNamespace(write=history.append)
    there.state, there._template, there._as_meant = lambda _: None, lambda _: None, AsyncMock()
    there._up = AsyncMock(return_value=node)

    async def until(*_: object, **__: object) -> None:
        pod.alive = True

    there._pods = type("Known", (dict,), {"until": staticmethod(until)})({"node-0": pod})
    spec = ProcessSpec(name="n1", argv=("db",), env={}, cwd=HOME, output=LOGS / "out")
    told = names(["10.0.0.1"], ["10.0.0.1"], ["10.0.0.2"])
    for _ in range(2):
        await there.start(spec)
    assert told.asked == [], "it is the same pod"
    pod.uid, pod.addresses = "v", ("10.0.0.2",)
    for _ in range(2):
        await there.start(spec)
    assert told.asked == ([] if forwards else ["node-0"] * 3), "and not once more"
    assert len(history) == (0 if forwards else 1)
