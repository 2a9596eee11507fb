"""What is shown while tests run: on a terminal a live view that leaves no trace, in CI and in a pipe plain lines."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import pytest

from fixtures.workloads.ledger.progress import last_second
from plugin.reports.live import Terminal
from plugin.reports.progress import Ticker, clock
from tests.clusters.substrates.processes.process_nodes import PATIENCE_S
from tests.plugin.conftest import Gate
from tests.plugin.reports.samples import trial_of

COLUMNS = 80
LEFT = r"left: claim +(\S+) run +(\S+)"
TESTS = """
import asyncio, os
from pathlib import Path

import pytest


@pytest.mark.claim("answer")
@pytest.mark.parametrize("number", [1, 2])
async def test_it(trial, judge, number):
    trial.say("thinking", 30)
    ledger = trial.store.directory / "ledger.tsv"
    with ledger.open("a") as file:
        file.write("# roachproof ledger history 1\\n")
        for second in range(1, 4):
            file.write(f"S\\t{second}000000\\t1\\t1\\n")
            for operation in range(40):
                file.write(f"O\\t{second}000500\\t{operation}\\t\\nO\\t{second}000500\\t{operation}\\t1\\n")
    while not Path("seen").exists():
        os.utime(ledger)
        await asyncio.sleep(0.05)
    ledger.unlink()
    judge.measure("answer", 42)
    assert judge.decide()


def test_ordinary():
    assert True
"""


class Screen:
    """As much of a terminal as is needed: lines of text, and a cursor that goes where it is told."""

    def __init__(self) -> None:
        self.lines = [""]
        self.row = self.column = 0

    def feed(self, text: str) -> None:
        for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", text):
            if part == "\r":
                self.column = 0
            elif part == "\n":  # (the terminal's line discipline adds the carriage return)
                self.row += 1
                self.lines += [""] * (self.row + 1 - len(self.lines))
            elif part.startswith("\x1b"):
                self._control(part[-1], part[2:-1])
            else:
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[: self.column] + part + line[self.column + len(part) :]
                self.column += len(part)

    def _control(self, name: str, argument: str) -> None:
        match name:
            case "A":
                self.row -= int(argument or 1)
            case "C":
                self.column += int(argument or 1)
            case "K" if argument == "2":
                self.lines[self.row] = ""
            case "m" | "h" | "l":
                pass
            case _:
                raise AssertionError(f"what is ESC [ {argument} {name}?")

    def shown(self) -> list[str]:
        return [line.rstrip() for line in self.lines]


@pytest.fixture
def slow(gate: Gate) -> Gate:
    """Two tests of a claim, each declared to take a minute and a half; they end once somebody has seen them."""
    (gate.path / "test_claims.py").write_text(TESTS)
    gate.edit("claims.toml", "seconds = 1,", "seconds = 90,")
    return gate


def watched(
    gate: Gate, *args: str, until: str, lines: int = 1, env: Mapping[str, str] = MappingProxyType({})
) -> tuple[int, list[list[str]], Screen]:
    """A run as a person sees it: its status, the screens that came one after the other, and the last one.

    Its tests go on until so many lines that hold ``until`` are shown at once.
    """
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    plain = {name: value for name, value in os.environ.items() if name not in ("CI", "COLUMNS", "NO_COLOR")}
    with subprocess.Popen(
        gate.command(*args), cwd=gate.path, stdin=subprocess.DEVNULL, stdout=follower, stderr=follower,
        env={**plain, "TERM": "xterm", **env},
    ) as process:  # fmt: skip
        os.close(follower)
        screen, screens = Screen(), []
        deadline = time.monotonic() + 2 * PATIENCE_S
        rest = b""
        while True:
            if time.monotonic() > deadline:
                process.kill()
            try:
                data = rest + os.read(leader, 65536)
            except OSError:
                break
            # An escape sequence or a character may be cut in two.
            whole = data[: data.rfind(b"\n") + 1] if b"\x1b" in data[-8:] else data
            rest = data[len(whole) :]
            screen.feed(whole.decode("utf-8", "replace"))
            screens.append(screen.shown())
            if sum(until in line for line in screens[-1]) >= lines:
                (gate.path / "seen").touch()
        screen.feed(rest.decode())
        status = process.wait(timeout=PATIENCE_S)
    os.close(leader)
    return status, screens, screen


def seconds(told: str) -> int:
    minutes, _, rest = told.partition(":")
    return 60 * int(minutes) + int(rest)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_live_view_on_a_terminal(slow: Gate, workers: tuple[str, ...]) -> None:
    arguments = ("--run-dir", "out", *workers)
    status, screens, last = watched(slow, *arguments, until="thinking, 40 wri", lines=2 if workers else 1)
    shown = "\n".join(last.shown())
    assert status == 0, shown
    live = [line for lines in screens for line in lines if "thinking" in line]
    assert all(len(line) <= COLUMNS for line in live)
    who = r"gw[01] " if workers else ""
    shape = rf"^\[ +\d+ s\] 3/4 measure {LEFT}  {who}thinking, 40 wri"
    lefts = [found.groups() for line in live if (found := re.match(shape, line))]
    assert lefts, live
    assert all(60 < seconds(claim) <= 90 for claim, _ in lefts)
    assert 150 < seconds(lefts[0][1]) <= 180, "two claims of a minute and a half, one at a time"
    if workers:
        assert any(sum("thinking" in line for line in lines) == 2 for lines in screens), "a line for each"
    # nothing is left of it, and pytest's own lines are as they are without it
    assert "thinking" not in shown
    assert "\x1b" not in shown
    if not workers:
        assert any(re.match(r"test_claims\.py \.\.\. +\[100%\]$", line) for line in last.shown()), shown
    assert re.search(r"^=+ 3 passed[^=]* in [\d.]+s =+$", shown, re.MULTILINE)
    assert re.search(r"^report: out/report.html$", shown, re.MULTILINE)
    for once in ("test session starts", "claims: 2 pass", "RUN PASSED: 1 claim"):
        assert shown.count(once) == 1
    assert shown.count("\n\n\n") == 0, "no hole where it stood"


@pytest.mark.parametrize("why", ["CI", "dumb", "no capture"])
def test_plain_lines_where_nobody_watches(slow: Gate, why: str) -> None:
    arguments = ("test_claims.py::test_it[1]", *(["-s"] if why == "no capture" else []))
    environment = {"CI": {"CI": "true"}, "dumb": {"TERM": "dumb"}}.get(why, {})
    lines = watched(slow, *arguments, until="thinking (", env=environment)[2].shown()
    shape = rf"  \[ +\d+ s\] 3/4 measure {LEFT}  thinking \(test_it\[1\]\)"
    (place,) = [number for number, line in enumerate(lines) if re.fullmatch(shape, line)]
    assert lines[place - 1] == "test_claims.py", "pytest's own line was ended, and no line is empty"
    assert re.match(r"\.( +\[100%\])?$", lines[place + 1])
    assert lines.index("") < place
    assert any(line.startswith("host: ") for line in lines[:place]), "the header comes first"


def test_what_is_said_last_is_shown_however_soon_it_ends(tmp_path: Path) -> None:
    said = {"at": 0.0, "test": "", "expect_s": None, "trial": "", "phase": "", "nodeid": "", "ends": None}
    reading, writing = os.pipe()
    ticker = Ticker(tmp_path, writing)
    for stage in ("thinking", "deciding", ""):
        ticker.hear({**said, "stage": stage})
    ticker.end()
    ticker.hear({**said, "stage": "too late"})
    ticker.close()
    text = os.read(reading, 65536).decode()
    os.close(reading)
    assert re.fullmatch(r"  \[ +\d+ s\] thinking\n  \[ +\d+ s\] deciding\n", text), text


def test_lines_that_are_said_together_are_all_shown(tmp_path: Path) -> None:
    """Also where they differ in figures alone, which else is no change worth a line of its own."""
    said = {"at": 0.0, "test": "", "expect_s": None, "trial": "", "phase": "", "nodeid": "", "ends": None}
    reading, writing = os.pipe()
    ticker = Ticker(tmp_path, writing)
    for lines in (["1. swap n1", "2. swap n2"], ["1. swap n3"]):
        ticker.hear({**said, "stage": "a plan", "lines": lines})
    ticker.close()
    text = os.read(reading, 65536).decode()
    os.close(reading)
    shown = r"  \[ +\d+ s\] a plan\n  1. swap n1\n  2. swap n2\n  \[ +\d+ s\] a plan\n  1. swap n3\n"
    assert re.fullmatch(shown, text), text


def test_on_a_terminal_they_stay_above_the_live_view(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    said = {"at": 0.0, "test": "", "expect_s": None, "trial": "", "phase": "", "nodeid": "", "ends": None}
    with os.fdopen(os.dup(follower), "w") as file:
        writer = SimpleNamespace(_file=file, _current_line="test_claims.py ")
        ticker = Ticker(tmp_path, os.dup(follower))
        ticker._writer, ticker._live = writer, Terminal(writer, follower)
        writer._file.write(writer._current_line)
        for stage, lines in (("thinking", []), ("a plan", ["1. swap n1", "2. swap n2"]), ("deciding", [])):
            ticker.hear({**said, "stage": stage, "lines": lines})
        ticker.end()
        writer._file.write(".\n")
        ticker.close()
    os.close(follower)
    screen, data = Screen(), b""
    with suppress(OSError):  # nobody has the other end
        while more := os.read(leader, 65536):
            data += more
    os.close(leader)
    screen.feed(data.decode())
    first, plan, *rest = (line for line in screen.shown() if line)
    assert first == "test_claims.py"
    assert re.fullmatch(r"  \[ +\d+ s\] a plan", plan)
    assert rest == ["  1. swap n1", "  2. swap n2", "."]


@pytest.mark.parametrize(
    ("estimated", "stage", "told"),
    [
        (60, 12, "claim    1:00 run    3:00"),
        (5, 12, "claim    0:12 run    2:12"),
        (-20, 12, "claim    0:12 run    2:12"),
        (-20, None, "claim    late run    2:00"),
        (None, 12, "claim       - run    3:05"),
    ],
)
def test_a_claim_takes_no_less_than_what_it_is_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, estimated: float | None, stage: float | None, told: str
) -> None:
    """On a busy machine what came before took longer than the claim's estimate has it."""
    at = time.monotonic()
    monkeypatch.setattr("plugin.reports.progress.time", SimpleNamespace(monotonic=lambda: at))
    said = {"at": at, "test": "", "stage": "writing", "expect_s": stage, "trial": "", "phase": "3/4 measure"}
    reading, writing = os.pipe()
    ticker = Ticker(tmp_path, writing)
    ticker.hear({"planned": {"test_now": 65.0, "test_later": 120.0}})
    ticker.hear({**said, "nodeid": "test_now", "ends": None if estimated is None else at + estimated})
    ticker.close()
    text = os.read(reading, 65536).decode()
    os.close(reading)
    assert f"3/4 measure left: {told}" in text, text


def test_a_run_takes_no_less_than_each_line_says_of_its_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of the first of two that are read at once."""
    at = time.monotonic()
    monkeypatch.setattr("plugin.reports.progress.time", SimpleNamespace(monotonic=lambda: at))
    said = {"at": at, "test": "", "trial": "", "phase": "3/4 measure", "nodeid": "test_now", "ends": at + 1}
    reading, writing = os.pipe()
    ticker = Ticker(tmp_path, writing)
    ticker.hear({**said, "stage": "step", "expect_s": 20})
    ticker.hear({**said, "stage": "looking", "expect_s": 1})
    ticker.close()
    text = os.read(reading, 65536).decode()
    os.close(reading)
    assert "left: claim    0:20 run    0:20  step" in text, text


def test_what_goes_on_is_said_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ticker, "INTERVAL_S", 0.5)
    said = {"at": time.monotonic(), "test": "test_it", "stage": "thinking", "expect_s": 30, "trial": "", "phase": ""}
    reading, writing = os.pipe()
    ticker = Ticker(tmp_path, writing)
    ticker.hear({"planned": {"a": 60.0, "b": 4000.0, "c": 500.0}})
    ticker.over("c")
    ticker.hear({**said, "phase": "1/4 start", "nodeid": "a", "ends": time.monotonic() - 1, "expect_s": None})
    ticker.hear({**said, "nodeid": "", "ends": None, "test": ""}, worker="gw1")
    os.set_blocking(reading, False)
    text, deadline = "", time.monotonic() + PATIENCE_S
    while text.count("gw1 thinking") < 2:
        assert time.monotonic() < deadline, text
        time.sleep(0.05)
        with suppress(BlockingIOError):
            text += os.read(reading, 65536).decode()
    ticker.close()
    os.close(reading)
    assert text.endswith("\n")
    times = rf"  \[ +\d+ s\] 1/4 start   {LEFT}  thinking \(test_it\)"
    lefts = [found.groups() for line in text.splitlines() if (found := re.fullmatch(times, line))]
    assert len(lefts) >= 2
    assert set(lefts) == {("late", "1:06:40")}, "what is late is not waited for, a test that has not begun is"
    assert len(re.findall(r"^  \[ +\d+ s\] gw1 thinking, about \d+ s left$", text, re.MULTILINE)) >= 2


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(None, "-"), (-0.1, "late"), (0, "0:00"), (59.6, "1:00"), (3599.4, "59:59"), (3600, "1:00:00")],
)
def test_how_a_time_that_is_left_is_told(seconds: float | None, told: str) -> None:
    assert clock(seconds) == told


def changed(change: Callable[[str], str]) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        path.write_text(change(path.read_text()))

    return apply


def old(path: Path) -> None:
    os.utime(path, (0, 0))


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (changed(lambda text: text.rsplit("E\t", 1)[0]), 100.0),
        (changed(lambda text: text), None),  # it has its end
        (changed(lambda text: text[:200]), None),
        (changed(lambda text: re.sub(r"\nS\t\d+", "\nS\tx", text.rsplit("E\t", 1)[0])), None),
        (old, None),
        (Path.unlink, None),
    ],
    ids=["running", "ended", "just begun", "garbled", "stalled", "none"],
)
def test_the_last_seconds_throughput(tmp_path: Path, what: Callable[[Path], None], expected: float | None) -> None:
    trial = trial_of(tmp_path / "trial", seconds=20, faults=[], judged=False)
    what(trial / "ledger.tsv")
    began = time.process_time()
    assert last_second(trial) == expected
    assert time.process_time() - began < 0.1
