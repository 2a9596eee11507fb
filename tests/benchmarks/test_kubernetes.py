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


def claim_takes(substrate: str, home: Path) -> float:
    """Seconds of the claim ``survivability`` on the control, by its run's own result; it may be inconclusive."""
    (home / substrate).mkdir(parents=True)
    run = home / substrate / "run"
    options = ["--engine", "postgres", "--substrate", substrate, "--claim", "survivability", "--run-dir", str(run)]
    line = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-o", "testpaths=tests/claims", *options]
    env = {**os.environ, "ROACHPROOF_STATE": str(home / "state")}  # the machine's slots are leased for benchmarks
    done = subprocess.run(line, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode in (Status.PASSED, Status.INCONCLUSIVE), done.stdout + done.stderr
    (claim,) = json.loads((run / RESULT_FILE).read_text())["claims"]
    return float(claim["seconds"])


def test_a_claim_takes_little_longer_than_on_processes(tmp_path: Path, figures: list[Figure]) -> None:
    numbers = iter(range(2 * PAIRS))

    def taking(substrate: str) -> float:
        return claim_takes(substrate, tmp_path / str(next(numbers)))

    pairs = in_turns(PAIRS, lambda: taking("processes"), lambda: taking("kubernetes"))
    ratios = [pods / processes for processes, pods in pairs]
    here, there = zip(*pairs, strict=True)
    figures.append(
        Figure(
            what="the claim `survivability` on the control in pods, against the same on processes",
            promised=f"≤ {MOST_OF_A_CLAIM} ×",
            measured=f"{spread(ratios)} ×; {spread(there, 0)} s against {spread(here, 0)} s",
            kept=median(ratios) <= MOST_OF_A_CLAIM,
            raw=f"processes {[*here]}, pods {[*there]}",
            how=f"{PAIRS} pairs, in turns; each run's own result.json, its cluster's start and end included",
        )
    )
    assert median(ratios) <= MOST_OF_A_CLAIM


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When each request was sent to the API server; a watch is one for as long as it is answered."""
    from kubernetes.client.rest import RESTClientObject
    from kubernetes.stream import ws_client

    sent: list[float] = []

    def counted(function: Any) -> Any:
        def count(*args: Any, **options: Any) -> Any:
            sent.append(time.monotonic())
            return function(*args, **options)

        return count

    monkeypatch.setattr(RESTClientObject, "request", counted(RESTClientObject.request))
    monkeypatch.setattr(ws_client, "create_websocket", counted(ws_client.create_websocket))
    return sent


async def test_a_cluster_that_is_looked_at_asks_the_api_server_little(
    cockroach: Cockroach, tmp_path: Path, figures: list[Figure], requests: list[float]
) -> None:
    substrate = await opened(tmp_path)
    try:
        cluster = await provisioned(cockroach, substrate)
        started = len(requests)

        def look() -> None:
            cluster.watch()
            cluster.substrate.cpu_seconds()
            for node in cluster.nodes:
                cluster.substrate.free_bytes(node)
                cluster.substrate.clock(node)
                cluster.substrate.log_tail(node)

        await hold(LOOKED_S, watch=look)
        looked = len(requests) - started
        async with disturb(cluster, KILL, ["n2"]):
            pass
        killed = len(requests) - started - looked
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
