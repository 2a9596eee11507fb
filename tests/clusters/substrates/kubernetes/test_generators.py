"""Lines to and from a command in a pod, on the real client."""

import queue

import pytest
from kubernetes.stream.ws_client import ERROR_CHANNEL, STDERR_CHANNEL, STDIN_CHANNEL, STDOUT_CHANNEL

from clusters.substrates.kubernetes.generators import ExecChannel
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
