"""How fast clusters are on Kubernetes, and what looking at them costs its API server.

In the tests' own: ``python -m tests.kubernetes.lab pytest tests/benchmarks/test_kubernetes.py``.
"""

import asyncio
import json
import os
import ssl
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from clusters.cluster import Cluster
from clusters.engines.cockroach.engine import Cockroach
from clusters.faults.disturbance import disturb
from clusters.faults.node import KILL
from clusters.model import NodeResources
from clusters.topology import of as topology_of
from clusters.waiting import hold
from plugin.reports.result_files import RESULT_FILE
from plugin.status import Status
from tests.benchmarks import requests
from tests.benchmarks.measuring import ROOT, Figure, in_turns, spread
from tests.benchmarks.test_startup import answers
from tests.kubernetes import release
from tests.kubernetes.at_hand import AT_HAND, kubectl, opened

pytestmark = AT_HAND
MOST_TIMES, MOST_A_SECOND, MOST_OF_A_CLAIM = 1.5, 5.0, 1.25
PAIRS = 3
LOOKED_S = 20.0
RESOURCES = NodeResources(cache_mib=128, sql_memory_mib=128)


async def provisioned(engine: Cockroach, substrate: Any) -> Cluster:
    three = topology_of(nodes=3)
    return await Cluster.provision(engine=engine, substrate=substrate, topology=three, resources=RESOURCES, tuned=False)


async def by_harness(engine: Cockroach, home: Path) -> float:
    """Seconds from nothing until every node answers, namespace and certificates included."""
    began = time.monotonic()
    substrate = await opened(home)
    try:
        await provisioned(engine, substrate)
        return time.monotonic() - began
    finally:
        await substrate.close()


async def by_apply(engine: Cockroach, home: Path) -> float:
    """The same by ``kubectl apply`` of a StatefulSet, and ``cockroach init``."""
    image, program = release.image_of(str(engine.program))
    flags = [f"--cache={RESOURCES.cache_mib}MiB", f"--max-sql-memory={RESOURCES.sql_memory_mib}MiB"]
    began = time.monotonic()
    try:
        certs = await asyncio.to_thread(release.begin, home, program, image, flags=flags)
        tls = ssl.create_default_context(cafile=str(certs / "ca.crt"))
        tls.load_cert_chain(certs / "client.root.crt", certs / "client.root.key")
        async with asyncio.TaskGroup() as group:
            for address in release.ADDRESSES:
                group.create_task(answers(address, tls))
        return time.monotonic() - began
    finally:
        everything = ("-n", release.NAMESPACE, "delete", "statefulset,pod", "--all", "--force", "--grace-period=0")
        await asyncio.to_thread(kubectl, *everything)
        await asyncio.to_thread(kubectl, "delete", "namespace", release.NAMESPACE)


async def test_three_nodes_in_pods_are_ready_as_soon_as_by_apply(
    cockroach: Cockroach, tmp_path: Path, figures: list[Figure]
) -> None:
    if not release.image_of(str(cockroach.program))[0]:
        pytest.skip(f"the Kubernetes at hand has no image of {cockroach.program}")
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(PAIRS):
        for apply in (True, False) if number % 2 else (False, True):
            start, into = (by_apply, theirs) if apply else (by_harness, ours)
            (home := tmp_path / f"{start.__name__}-{number}").mkdir()
            into.append(await start(cockroach, home))
    ratios = [our / their for our, their in zip(ours, theirs, strict=True)]
    figures.append(
        Figure(
            what="three CockroachDB nodes in pods ready for SQL, against `kubectl apply` and `cockroach init`",
            promised=f"≤ {MOST_TIMES} ×",
            measured=f"{spread(ratios)} ×; {spread(ours, 1)} s against {spread(theirs, 1)} s",
            kept=median(ratios) <= MOST_TIMES,
            raw=f"ours {[round(s, 3) for s in ours]}, by apply {[round(s, 3) for s in theirs]}",
            how=f"{PAIRS} pairs, in turns, on three kubelets of this machine; from no namespace and no certificate "
            "until `SELECT 1` came back from all three over TLS",
        )
    )
    assert median(ratios) <= MOST_TIMES


def claim_takes(substrate: str, home: Path) -> tuple[float, int]:
    """Seconds of the claim ``survivability`` on the control, by its run's own result; it may be inconclusive.

    And the requests that were sent to an API server.
    """
    (home / substrate).mkdir(parents=True)
    run, counted = home / substrate / "run", home / "requests"
    options = ["--engine", "postgres", "--substrate", substrate, "--claim", "survivability", "--run-dir", str(run)]
    line = [sys.executable, "-m", "pytest", "-p", requests.__name__, "-c", "pyproject.toml"]
    # The machine's slots are leased for benchmarks.
    env = {**os.environ, "ROACHPROOF_STATE": str(home / "state"), requests.FILE: str(counted)}
    line += ["-o", "testpaths=tests/claims", *options]
    done = subprocess.run(line, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode in (Status.PASSED, Status.INCONCLUSIVE), done.stdout + done.stderr
    (claim,) = json.loads((run / RESULT_FILE).read_text())["claims"]
    return float(claim["seconds"]), int(counted.read_text())


def test_a_claim_takes_little_longer_than_on_processes(tmp_path: Path, figures: list[Figure]) -> None:
    numbers = iter(range(2 * PAIRS))

    def taking(substrate: str) -> tuple[float, int]:
        return claim_takes(substrate, tmp_path / str(next(numbers)))

    pairs = in_turns(PAIRS, lambda: taking("processes"), lambda: taking("kubernetes"))
    here, there = [seconds for (seconds, _), _ in pairs], [seconds for _, (seconds, _) in pairs]
    ratios = [pods / processes for processes, pods in zip(here, there, strict=True)]
    figures.append(
        Figure(
            what="the claim `survivability` on the control in pods, against the same on processes",
            promised=f"≤ {MOST_OF_A_CLAIM} ×",
            measured=f"{spread(ratios)} ×; {spread(there, 0)} s against {spread(here, 0)} s",
            kept=median(ratios) <= MOST_OF_A_CLAIM,
            raw=f"processes {here}, pods {there}",
            how=f"{PAIRS} pairs, in turns; each run's own result.json, its cluster's start and end included",
        )
    )
    sent = [number for _, (_, number) in pairs]
    rates = [number / seconds for number, seconds in zip(sent, there, strict=True)]
    figures.append(
        Figure(
            what="requests that the API server is sent in those runs in pods",
            promised=f"< {MOST_A_SECOND:g} a second",
            measured=f"{spread(rates)} a second",
            kept=max(rates) < MOST_A_SECOND,
            raw=f"{sent} requests",
            how="counted in the client, from the start of pytest to its end, over the seconds of the claim",
        )
    )
    assert not any(number for (_, number), _ in pairs), "processes ask no API server"
    assert max(rates) < MOST_A_SECOND
    assert median(ratios) <= MOST_OF_A_CLAIM


async def test_a_cluster_that_is_looked_at_asks_the_api_server_little(
    cockroach: Cockroach, tmp_path: Path, figures: list[Figure], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = list[float]()
    requests.count(sent, monkeypatch.setattr)
    substrate = await opened(tmp_path)
    try:
        cluster = await provisioned(cockroach, substrate)
        started = len(sent)

        def look() -> None:
            cluster.watch()
            cluster.substrate.cpu_seconds()
            for node in cluster.nodes:
                cluster.substrate.free_bytes(node)
                cluster.substrate.clock(node)
                cluster.substrate.log_tail(node)

        await hold(LOOKED_S, watch=look)
        looked = len(sent) - started
        async with disturb(cluster, KILL, ["n2"]):
            pass
        killed = len(sent) - started - looked
    finally:
        await substrate.close()
    figures.append(
        Figure(
            what="requests that the API server is sent while a cluster of three is looked at several times a second",
            promised=f"< {MOST_A_SECOND:g} a second",
            measured=f"{looked / LOOKED_S:.2f} a second; {started} for the start, {killed} for a kill and a restart",
            kept=looked / LOOKED_S < MOST_A_SECOND,
            raw=f"{looked} in {LOOKED_S:g} s",
            how="counted in the client, watches and commands in containers included; states, logs, clocks, disks and "
            "CPU of all nodes asked for four times a second. The process beside it renews the namespace every 20 s",
        )
    )
    assert looked / LOOKED_S < MOST_A_SECOND
