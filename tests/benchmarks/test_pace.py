"""How long replicas take to spread over added nodes at the server's own pace, and at the one that the gate asks for."""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from clusters.cluster import Cluster
from clusters.engines.cockroach.engine import Cockroach
from clusters.substrates.processes import Processes
from clusters.topology import of as topology_of
from fixtures.growth import fill
from fixtures.sampler import sampled
from plugin.evidence.layout import LayoutSample, read_layout
from plugin.judge.convergence import Convergence, Spread, converge
from plugin.profiles import profile_named
from tests.benchmarks.measuring import Figure

LONGEST_S = 900.0
BEFORE, AFTER = 3, 6
LAPTOP = profile_named("laptop")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """What one growth took, in seconds from its first action."""

    whole_s: float
    """Until the ranges of the first three nodes had all their replicas."""
    found: Convergence
    samples: int


async def grow(engine: Cockroach, home: Path, *, tuned: bool) -> Pace:
    """Three nodes become six, without traffic, until the replicas lie evenly and none moved for the quiet period."""
    substrate = await Processes.open(name="pace", workdir=home, capacity=0, say=print)
    try:
        topology = topology_of(nodes=AFTER)
        cluster = await Cluster.provision(
            engine=engine,
            substrate=substrate,
            topology=topology_of(nodes=BEFORE),
            resources=LAPTOP.node,
            tuned=tuned,
        )
        begun = time.monotonic()
        await cluster.replicated()
        whole_s = time.monotonic() - begun
        await fill(cluster, LAPTOP.rebalance)
        path, origin = home / "layout.jsonl", time.monotonic_ns()
        async with sampled(
            cluster,
            path,
            every_s=LAPTOP.rebalance.sample_s,
            now=lambda: (time.monotonic_ns() - origin) // 1000,
        ):
            for node in topology.nodes[BEFORE:]:
                await cluster.add(node)
            samples, found = await _rest(path, topology.names)
        return Pace(whole_s=whole_s, found=found, samples=len(samples))
    finally:
        await substrate.close()


async def _rest(path: Path, nodes: tuple[str, ...]) -> tuple[list[LayoutSample], Convergence]:
    sizes = LAPTOP.rebalance
    until = time.monotonic() + LONGEST_S
    while True:
        await asyncio.sleep(sizes.sample_s)
        with path.open() as lines:
            samples = [sample for sample in read_layout(lines) if not sample.lost]
        series = [Spread(t=s.t / 1e6, replicas=s.replicas, moves=s.moves) for s in samples]
        found = converge(series, nodes, quiet_s=sizes.quiet_s, quiet_from=0.0, stall_s=LONGEST_S)
        if (found.balanced is not None and found.settled is not None) or time.monotonic() > until:
            return samples, found


async def test_the_servers_own_pace(cockroach: Cockroach, tmp_path: Path, figures: list[Figure]) -> None:
    """The promise is that it ends; how long it takes is the server's, and reported."""
    for name in ("fast", "default"):
        (tmp_path / name).mkdir()
    fast = await grow(cockroach, tmp_path / "fast", tuned=True)
    default = await grow(cockroach, tmp_path / "default", tuned=False)
    kept = None not in (fast.found.balanced, default.found.balanced)
    figures.append(
        Figure(
            what=f"replicas of {cockroach.kind.name} {cockroach.version} spread over {AFTER} nodes instead of "
            f"{BEFORE}, at the server's own pace",
            promised="they do",
            measured=f"{_told(default)}; at the pace of the profile {LAPTOP.name} {_told(fast)}",
            kept=kept,
            how=f"once each; {LAPTOP.rebalance.ranges} ranges of {LAPTOP.rebalance.range_kib} KiB beside the system's, "
            f"no traffic, {default.samples} and {fast.samples} samples, one every {LAPTOP.rebalance.sample_s:g} s",
            raw=f"default {default}, fast {fast}",
        )
    )
    assert kept, (default, fast)


def _told(pace: Pace) -> str:
    def seconds(value: float | None) -> str:
        return "not" if value is None else f"after {value:.0f} s"

    told = f"even {seconds(pace.found.balanced)}, at rest {seconds(pace.found.settled)}"
    return f"{told} (three fresh nodes whole after {pace.whole_s:.0f} s)"
