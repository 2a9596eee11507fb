"""What it costs the servers to be asked again and again where their replicas lie."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median

import pytest

from clusters.cluster import Cluster
from clusters.engines import ENGINES
from clusters.engines.cockroach.engine import Cockroach
from clusters.model import NodeResources
from clusters.substrates.processes import Processes
from clusters.topology import of as topology_of
from fixtures import sampler
from fixtures.growth import fill
from fixtures.sampler import sampled
from fixtures.workloads.tpcc.evidence import read_tpcc
from fixtures.workloads.tpcc.load import load
from fixtures.workloads.tpcc.run_processes import TpccLoad
from fixtures.workloads.tpcc.spec import TpccSpec
from plugin.evidence.layout import read_layout
from plugin.profiles import profile_named
from tests.benchmarks.measuring import Figure, spread

MOST_SHARE = 0.02
PAIRS, QUIET_S = 6, 10.0
RAMP_S, MEASURED_S = 2, 10
OFTEN = 10
"""So many times as often as the profile asks, so that the cost stands out of the noise; it is divided by how many
samples there really were."""
SAMPLE_S = profile_named("laptop").rebalance.sample_s
RESOURCES = NodeResources(cache_mib=384, sql_memory_mib=256)


class Bench:
    """Three nodes with the ranges of the profile ``laptop``, and a warehouse of TPC-C."""

    def __init__(self, cluster: Cluster, home: Path, cores: int) -> None:
        self._cluster, self._home, self._cores = cluster, home, cores
        self._runs = self.samples = 0
        self._sampled_s = 0.0

    @property
    def often(self) -> float:
        """How many times as often samples were taken as the profile asks."""
        return self.samples * SAMPLE_S / self._sampled_s

    @contextlib.asynccontextmanager
    async def _sampling(self, *, on: bool) -> AsyncIterator[None]:
        if not on:
            yield
            return
        path, begun = self._home / f"layout{self._runs}.jsonl", time.monotonic_ns()
        async with sampled(
            self._cluster, path, every_s=SAMPLE_S / OFTEN, now=lambda: (time.monotonic_ns() - begun) // 1000
        ):
            yield
        self._sampled_s += (time.monotonic_ns() - begun) / 1e9
        with path.open() as lines:
            taken = list(read_layout(lines))
        assert not any(sample.lost for sample in taken), "what is lost costs nothing"
        self.samples += len(taken)

    async def idle(self, *, on: bool) -> float:
        """The share of the machine that the servers used, without traffic."""
        self._runs += 1
        async with self._sampling(on=on):
            begun, used = time.monotonic(), self._cluster.substrate.cpu_seconds()
            await asyncio.sleep(QUIET_S)
            used = self._cluster.substrate.cpu_seconds() - used
        return used / (time.monotonic() - begun) / self._cores

    async def saturated(self, *, on: bool) -> float:
        """New-orders a minute of workers that do not wait."""
        self._runs += 1
        spec = TpccSpec(
            origin_ns=time.monotonic_ns(),
            seed=1,
            endpoints=self._cluster.endpoints,
            credentials=self._cluster.credentials,
            sql=ENGINES["cockroach"].sql,
            warehouses=1,
            directory=self._home,
            run=f"sampling{self._runs}",
            waits=False,
            workers=8,
            ramp_s=RAMP_S,
            duration_s=MEASURED_S,
        )
        async with self._sampling(on=on), await TpccLoad.start(spec) as running:
            await running.finished()
        measured = [second for second in read_tpcc([spec.output]).seconds if second.measured]
        return sum(second.types["new_order"].ok for second in measured) * 60 / len(measured)


@contextlib.asynccontextmanager
async def three_nodes(engine: Cockroach, home: Path) -> AsyncIterator[Cluster]:
    """A cluster with everything that is to be sampled."""
    substrate = await Processes.open(name="bench", workdir=home, capacity=0, say=print)
    try:
        cluster = await Cluster.provision(
            engine=engine, substrate=substrate, topology=topology_of(nodes=3), resources=RESOURCES, tuned=True
        )
        await fill(cluster, profile_named("laptop").rebalance)
        await load(
            endpoints=cluster.endpoints,
            credentials=cluster.credentials,
            sql=ENGINES["cockroach"].sql,
            warehouses=1,
            log=home / "load.log",
            timeout=300,
        )
        await cluster.replicated()
        yield cluster
    finally:
        await substrate.close()


async def test_sampling_costs_little(
    cockroach: Cockroach, tmp_path: Path, figures: list[Figure], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Less than a fiftieth of the servers' throughput without think times, and of the CPU where it is idle."""
    monkeypatch.setattr(sampler, "GAUGES_S", sampler.GAUGES_S / OFTEN)
    cores = len(os.sched_getaffinity(0))
    async with three_nodes(cockroach, tmp_path) as cluster:
        bench = Bench(cluster, tmp_path, cores)
        await asyncio.sleep(QUIET_S)
        idle, busy = [], []
        for number in range(PAIRS):
            first = bool(number % 2)
            a, b = await bench.idle(on=first), await bench.idle(on=not first)
            idle.append((a, b) if first else (b, a))
            a, b = await bench.saturated(on=first), await bench.saturated(on=not first)
            busy.append((a, b) if first else (b, a))
    used = [(on - off) / bench.often for on, off in idle]
    lost = [(1 - on / off) / bench.often for on, off in busy]
    kept = median(used) <= MOST_SHARE and median(lost) <= MOST_SHARE
    figures.append(
        Figure(
            what=f"asking three nodes of {cockroach.kind.name} {cockroach.version} where their replicas lie",
            promised=f"≤ {MOST_SHARE:.0%} of their throughput, and of the machine",
            measured=f"{spread([100 * share for share in lost])} % of tpmC without think times; "
            f"{spread([100 * share for share in used])} % of {cores} cores without traffic",
            kept=kept,
            how=f"{PAIRS} pairs in turns, {QUIET_S:g} s without traffic and {MEASURED_S} s of TPC-C each, "
            f"sampled {bench.often:.1f} times as often as every {SAMPLE_S:g} s and the difference divided by that; "
            "CPU time of the servers",
            raw=f"idle {idle}, saturated {busy}, {bench.samples} samples",
        )
    )
    assert kept, figures[-1]
