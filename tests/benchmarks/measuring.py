"""How the benchmarks measure: programs timed by what the kernel says they used, pairs taken in turns, figures kept."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

from clusters.errors import HarnessError

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One line of the table: what was measured, what is promised, what came out, whether that is kept, and how.

    ``raw``: the single measurements, printed below the table, so that a doubtful figure can be looked into.
    """

    what: str
    promised: str
    measured: str
    kept: bool
    how: str
    raw: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Used:
    """What a program used, in seconds. ``cpu_s`` is its own time and the system's, its children's included."""

    wall_s: float
    cpu_s: float
    out: str


def used_by(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float) -> Used:
    """Run a program to its end. Raises ``HarnessError`` when it fails or takes longer: then nothing was measured."""
    began = time.monotonic()
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    said, ended = bytearray(), False
    try:
        while not ended:
            if time.monotonic() - began > timeout_s:
                raise HarnessError(f"{' '.join(argv)} took longer than {timeout_s:.0f} s: nothing was measured")
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            ended = pid != 0
            said += process.stdout.read() or b""
            if not ended:
                time.sleep(0.002)
        wall = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        if process.returncode is None:
            process.wait()
        process.stdout.close()
    out = said.decode(errors="replace")
    if process.returncode:
        raise HarnessError(f"{' '.join(argv)} ended with {process.returncode}: nothing was measured\n{out[-2000:]}")
    return Used(wall_s=wall, cpu_s=usage.ru_utime + usage.ru_stime, out=out)


def in_turns(pairs: int, a: Callable[[], T], b: Callable[[], T]) -> list[tuple[T, T]]:
    """Measure A B, B A, A B …: whatever else the machine does meanwhile meets both alike."""
    results: list[tuple[T, T]] = []
    for number in range(pairs):
        if number % 2:
            second = b()
            results.append((a(), second))
        else:
            first = a()
            results.append((first, b()))
    return results


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The median with the least and the most of them."""
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"
