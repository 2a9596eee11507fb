"""Evidence of the papers' size is judged in minutes and in less than 1 GiB; its page stays small and opens in a second.

Twelve hours, fifteen nodes, twenty million rows of the ledger, TPC-C by the second, fifty faults: ``tox -e quiet``.
Elsewhere a small one goes the same way.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fixtures.workloads.tpcc.evidence import TpccEnd, tpcc_line
from plugin.evidence.store import seal
from tests.fixtures.workloads.tpcc.judge.runs import load
from tests.plugin.reports.browser import opening_cpu_s
from tests.plugin.reports.samples import trial_of
from tests.slow import slow

ROOT = Path(__file__).resolve().parents[2]
MIB = 2**20
MOST_CPU_S, MOST_MEMORY, MOST_PAGE = 300, 1024 * MIB, 5_000_000
"""What it takes on two cores stands in tests/benchmarks/README.md."""
MOST_OPENING_S = 1.0


@dataclass(frozen=True)
class Judged:
    """What judging took, and what it left."""

    status: int
    said: str
    wall_s: float
    cpu_s: float
    memory: int
    page: Path


def evidence(directory: Path, *, seconds: int, rate: int, faults: int, nodes: int = 15) -> Path:
    """A trial with nodes that are killed in turns, every one long after the last has come back."""
    apart = (seconds - 40) // faults
    kills = [("kill", f"n{number % nodes + 1}", 20 + number * apart) for number in range(faults)]
    trial = trial_of(directory, seconds=seconds, nodes=nodes, rate=rate, faults=kills, judged=False)
    run = load(warehouses=100, seconds=seconds - 30, begin=5)
    with (trial / "tpcc-r01.jsonl").open("w") as file:
        file.write(tpcc_line(run.header))
        file.writelines(map(tpcc_line, run.seconds))
        file.write(tpcc_line(TpccEnd(why="duration", audit=run.audit)))
    seal(trial)
    return trial


PYTEST = """
import sys
import pytest
status = pytest.main(sys.argv[1:])
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")))
sys.exit(status)
"""
"""The kernel's count for a child that ended starts with the memory of the process that began it."""


def judged(trial: Path) -> Judged:
    """Judge it as a user does, in a process of its own."""
    began = time.monotonic()
    page = trial.parent / f"{trial.name}.html"
    process = subprocess.Popen(
        [sys.executable, "-c", PYTEST, "-c", "pyproject.toml", "--judge", str(trial)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert process.stdout
    with process.stdout as out:
        said, _, peak = out.read().partition("VmHWM:")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Judged(
        status=process.returncode,
        said=said,
        wall_s=time.monotonic() - began,
        cpu_s=usage.ru_utime + usage.ru_stime,
        memory=int(peak.split()[0]) * 1024 if peak else 0,
        page=page,
    )


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """Four minutes with five faults."""
    return judged(evidence(tmp_path_factory.mktemp("small") / "trial", seconds=240, rate=100, faults=5))


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """Twelve hours with fifty."""
    found = judged(evidence(tmp_path_factory.mktemp("papers") / "trial", seconds=43_200, rate=463, faults=50))
    size = found.page.stat().st_size
    print(f"{found.wall_s:.0f} s, {found.cpu_s:.0f} s of CPU, {found.memory / MIB:.0f} MiB, page of {size} bytes")
    return found


def test_a_small_one_is_judged_and_drawn_whole(small: Judged) -> None:
    assert small.status == 0, small.said
    assert "claims: 1 pass" in small.said
    assert 0 < small.memory < MOST_MEMORY / 4
    assert small.page.stat().st_size < MOST_PAGE / 20


def test_the_page_of_a_small_one_opens_at_once(chromium: Any, small: Judged) -> None:
    assert opening_cpu_s(chromium, small.page) < MOST_OPENING_S / 2


@slow
def test_the_papers_size_is_judged_in_minutes(papers: Judged) -> None:
    assert "claims: 1 refuted" in papers.said, "fifty faults degrade it for longer than a claim of one fault allows"
    assert [line.split()[0] for line in papers.said.splitlines() if line.endswith(" REFUTED")][1:] == ["degraded_s"]
    assert papers.memory < MOST_MEMORY
    assert papers.page.stat().st_size < MOST_PAGE
    assert papers.cpu_s < MOST_CPU_S


@slow
def test_the_page_of_the_papers_size_opens_in_a_second(chromium: Any, papers: Judged) -> None:
    taken = opening_cpu_s(chromium, papers.page)
    print(f"{taken:.2f} s of CPU until its first chart is drawn")
    assert taken < MOST_OPENING_S
