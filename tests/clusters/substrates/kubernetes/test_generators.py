"""Lines to and from a command in a pod, on the real client."""

import queue
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.stream.ws_client import ERROR_CHANNEL, STDERR_CHANNEL, STDIN_CHANNEL, STDOUT_CHANNEL

from clusters.errors import BadInput, HarnessError
from clusters.generators import WantedGenerators
from clusters.substrates.kubernetes.generators import ExecChannel, Generators
from clusters.substrates.kubernetes.manifests import Settings
from clusters.substrates.kubernetes.pods import Pod
from tests.clusters.substrates.kubernetes.frames import END, Frames, arriving_late, opened
from tests.clusters.substrates.processes.process_nodes import PATIENCE_S, eventually


async def test_lines_are_heard_whole_and_its_end_with_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [(STDOUT_CHANNEL, b"one\ntw"), (STDERR_CHANNEL, b"it broke\n"), (STDOUT_CHANNEL, b"o\nthr"), END]
    frames, told = Frames(parts), queue.Queue[bytes | str]()
    channel = ExecChannel(opened(frames, monkeypatch), lambda line, _: told.put(line), told.put)
    channel.send(lambda: b"ask" * 100_000 + b"\n")
    await eventually(lambda: len(b"".join(part[1:] for part in frames.sent)) == 300_001)
    assert {part[0] for part in frames.sent} == {STDIN_CHANNEL}
    for _ in parts:
        frames.arrive()
    assert [told.get(timeout=PATIENCE_S) for _ in range(3)] == [b"one", b"two", "it broke"]


async def test_its_last_line_is_heard_that_comes_with_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a program that has told everything would be taken for lost."""
    frames, told = Frames([(STDOUT_CHANNEL, b"ended\n"), END]), queue.Queue[bytes | str]()
    arriving_late(run := opened(frames, monkeypatch), frames, monkeypatch)
    ExecChannel(run, lambda line, _: told.put(line), told.put)
    assert [told.get(timeout=PATIENCE_S) for _ in range(2)] == [b"ended", ""]


async def test_a_connection_that_breaks_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    frames, told = Frames([(ERROR_CHANNEL, b"")]), queue.Queue[str]()

    def broken(_: bool) -> None:
        raise ConnectionResetError("reset by peer")

    monkeypatch.setattr(frames, "recv_data_frame", broken)
    ExecChannel(opened(frames, monkeypatch), lambda *_: None, told.put)
    frames.arrive()
    assert told.get(timeout=PATIENCE_S) == "ConnectionResetError reset by peer"
    assert not frames.connected


async def test_a_channel_that_is_closed_lets_go(monkeypatch: pytest.MonkeyPatch) -> None:
    frames, told = Frames([]), queue.Queue[str]()
    channel = ExecChannel(opened(frames, monkeypatch), lambda *_: None, told.put)
    channel.close()
    assert told.get(timeout=PATIENCE_S) == ""
    assert not frames.connected


async def test_generators_of_whose_pods_nothing_is_heard_are_not_waited_for() -> None:
    """It was said after five minutes, as a lack of room."""

    def refuse() -> None:
        raise HarnessError("pods are not watched any more")

    async def make(*_: object) -> None:
        """Done."""

    api: Any = SimpleNamespace(make=make, batch=SimpleNamespace(create_namespaced_job=None), where="context lab")
    pods: Any = SimpleNamespace(refuse_unwatched=refuse)
    wanted = WantedGenerators(number=1, image="suite:1")
    with pytest.raises(HarnessError, match="pods are not watched any more"):
        await Generators.begin(api, Settings(namespace="team", cluster="c"), pods, wanted, 60.0)


async def waited_for(found: dict[int, Pod], refuse: Callable[[str, str], None] = lambda *_: None) -> None:
    """Such pods of generators, which are not waited for."""

    async def make(*_: object) -> None:
        """Done."""

    api: Any = SimpleNamespace(make=make, batch=SimpleNamespace(create_namespaced_job=None), where="context lab")
    pods: Any = SimpleNamespace(refuse_unwatched=lambda: None, generators=lambda: found, refuse_not_admitted=refuse)
    wanted = WantedGenerators(number=1, image="suite:1")
    await Generators.begin(api, Settings(namespace="team", cluster="c"), pods, wanted, 0.0)


async def test_an_image_that_is_not_pulled_in_time_is_not_taken_for_a_lack_of_room() -> None:
    late = Pod("roachproof-generators-0-x", waiting="ErrImagePull: i/o timeout")
    with pytest.raises(BadInput, match=r"^--generator-image suite:1: .*ErrImagePull: i/o timeout.*; name one that the"):
        await waited_for({0: late})


async def test_a_generator_whose_pod_has_failed_is_not_taken_for_its_image() -> None:
    evicted = Pod("roachproof-generators-0-x", described="Failed, on m1, Evicted: the machine was low on memory")
    with pytest.raises(BadInput, match=r"^context lab: generator 0: Failed, .*low on memory; see what ended its pod, "):
        await waited_for({0: evicted})


async def test_generators_that_are_not_admitted_are_not_taken_for_a_lack_of_room() -> None:
    def refuse(owner: str, what: str) -> None:
        assert owner == "roachproof-generators"
        raise BadInput(f"{what} is not admitted: violates PodSecurity")

    with pytest.raises(BadInput, match=r"^a load generator is not admitted: violates PodSecurity$"):
        await waited_for({}, refuse)
