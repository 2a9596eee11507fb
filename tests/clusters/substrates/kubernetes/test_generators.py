"""Lines to and from a command in a pod, on the real client."""

import queue
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.stream.ws_client import ERROR_CHANNEL, STDERR_CHANNEL, STDIN_CHANNEL, STDOUT_CHANNEL

from clusters.errors import BadInput, HarnessError
from clusters.generators import WantedGenerators
from clusters.substrates.kubernetes import generators
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
    with pytest.raises(HarnessError, match="pods are not watched any more"):
        await Generators.begin(
            api, Settings(namespace="team", cluster="c"), pods, WantedGenerators(number=1, image="suite:1")
        )


async def test_an_image_that_is_not_pulled_in_time_is_not_taken_for_a_lack_of_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(generators, "_START_S", 0.0)

    async def make(*_: object) -> None:
        """Done."""

    api: Any = SimpleNamespace(make=make, batch=SimpleNamespace(create_namespaced_job=None), where="context lab")
    late = Pod("roachproof-generators-0-x", waiting="ErrImagePull: i/o timeout")
    pods: Any = SimpleNamespace(refuse_unwatched=lambda: None, generators=lambda: {0: late})
    with pytest.raises(BadInput, match=r"^--generator-image suite:1: .*ErrImagePull: i/o timeout.*; name one that the"):
        await Generators.begin(
            api, Settings(namespace="team", cluster="c"), pods, WantedGenerators(number=1, image="suite:1")
        )
