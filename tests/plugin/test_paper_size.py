"""Evidence of the papers' size is judged in minutes and in less than 1 GiB; its page stays small and opens in a second.

Twelve hours, fifteen nodes, twenty million rows of the ledger, TPC-C and the machine by the second, where the replicas
lie every two, fifty faults: ``tox -e quiet``. Elsewhere a small one goes the same way.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import structs

from fixtures.workloads.tpcc.evidence import TpccEnd, encode, new_histogram, tpcc_line
from plugin.catalogue import load as catalogue
from plugin.evidence.layout import LAYOUT, LayoutSample, layout_line
from plugin.evidence.load import describe_trial, load_trial
from plugin.evidence.store import seal
from plugin.reports.stored_run import stored_run
from tests.fixtures.workloads.tpcc.judge.runs import PACK, load
from tests.plugin.reports.browser import opening_cpu_s
from tests.plugin.reports.samples import SECOND, trial_of
from tests.slow import slow

ROOT = Path(__file__).resolve().parents[2]
MIB = 2**20
MOST_CPU_S, MOST_MEMORY, MOST_PAGE = 300, 1024 * MIB, 5_000_000
"""What it takes on two cores stands in tests/benchmarks/README.md."""
MOST_OPENING_S = 1.0
REPLICAS = 390
"""Of each node at the beginning."""


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
    _tpcc(trial, seconds)
    _host(trial, seconds)
    _layout(trial, seconds, nodes, kills)
    seal(trial)
    return trial


def _tpcc(trial: Path, seconds: int) -> None:
    """A run with latencies in each second, as real ones have them: no two seconds of a minute are alike."""
    run, random = load(warehouses=100, seconds=seconds - 30, begin=5), Random(1)
    drawn = {kind: [_latencies(count, random) for _ in range(60)] for kind, count in PACK.items()}
    with (trial / "tpcc-r01.jsonl").open("w") as file:
        file.write(tpcc_line(run.header))
        for number, second in enumerate(run.seconds):
            types = {
                kind: structs.replace(one, histogram=drawn[kind][number % 60] if one.finished else "")
                for kind, one in second.types.items()
            }
            file.write(tpcc_line(replace(second, types=types)))
        file.write(tpcc_line(TpccEnd(why="duration", audit=run.audit)))


def _latencies(count: int, random: Random) -> str:
    found = new_histogram()
    for _ in range(2 * count):
        found.record_value(round(random.lognormvariate(10.3, 0.6)))
    return encode(found)


def _host(trial: Path, seconds: int) -> None:
    """A machine that has something to spare, by the second, with all that is recorded of one."""
    random = Random(2)
    with (trial / "host.jsonl").open("w") as file:
        for second in range(1, seconds):
            used = {"cpu_percent": round(random.uniform(40, 70), 1), "others_percent": round(random.uniform(0, 5), 1)}
            disks = {"disk_stalled_percent": round(random.uniform(0, 9), 1), "disk_others_percent": 3.0}
            network = {"network_bytes": 12_500_000, "network_percent": 1.0}
            memory = {"load_1m": 9.5, "memory_available_mib": 48_000}
            file.write(json.dumps({"t": second * SECOND, **used, **disks, **network, **memory}) + "\n")


def _layout(trial: Path, seconds: int, nodes: int, kills: Sequence[tuple[str, str, int]]) -> None:
    """Some hundred replicas a node: each that is killed loses a third of its own to the others, and gets them back."""
    names, random = [f"n{number + 1}" for number in range(nodes)], Random(3)
    replicas, moves = dict.fromkeys(names, REPLICAS), 0
    lost = {begin // 2: node for _, node, begin in kills} if nodes > 3 else {}
    back = dict[int, str]()
    with (trial / LAYOUT).open("w") as file:
        for number in range(1, seconds // 2):
            if (victim := lost.get(number)) is not None:
                back[number + 6] = victim
            for node, sign in ((victim, -1), (back.pop(number, None), 1)):
                if node is not None:
                    for other in random.sample([name for name in names if name != node], REPLICAS // 30):
                        replicas[node] += sign
                        replicas[other] -= sign
                        moves += 2
            gauges = number % 5 == 0
            sample = LayoutSample(
                t=2 * number * SECOND,
                replicas=replicas,
                ranges=REPLICAS * nodes // 3,
                moves=moves,
                homeless=0,
                leases={node: count // 3 for node, count in replicas.items()} if gauges else None,
                unavailable=0 if gauges else None,
                underreplicated=0 if gauges else None,
            )
            file.write(layout_line(sample))


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


def test_nothing_that_a_real_run_records_is_left_out(small: Judged) -> None:
    trial = small.page.with_suffix("")
    (drawn,) = stored_run(trial, catalogue()).trials
    assert drawn.series is not None
    assert drawn.series.layout is not None, "where the replicas lay is drawn"
    of = load_trial(trial, describe_trial(trial))
    assert not of.host_problems
    assert all(None not in second for second in of.host)
    assert len(of.host) == 239
    assert len(of.layout) == 119
    (run,) = of.workloads["tpcc"].values()
    orders = [second.types["new_order"] for second in run.seconds if second.measured]
    assert len({one.histogram for one in orders if one.finished}) > 1, "latencies of their own in each second"
    assert all(bool(one.histogram) == bool(one.finished) for one in orders)


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
