"""A cluster of one CockroachDB node that fills its disk, for the tests to run where they mounted a small one.

Usage: full_disk.py BINARY WORKDIR. Prints what ``Cluster.watch`` says of the end of the node.
"""

import asyncio
import contextlib
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from clusters.cluster import Cluster
from clusters.engines import Wanted
from clusters.engines.cockroach.engine import find
from clusters.errors import HarnessError, NodeDied
from clusters.model import NodeResources, NodeSpec, Topology
from clusters.substrates.processes import Processes


async def main() -> None:
    disk = Path(sys.argv[2])
    substrate = await Processes.open(name="full", workdir=disk / "work", capacity=0)
    try:
        cluster = await Cluster.provision(
            engine=find(Wanted(path=sys.argv[1], say=print)),
            substrate=substrate,
            topology=Topology(name="one", nodes=(NodeSpec(name="n1"),)),
            resources=NodeResources(cache_mib=384, sql_memory_mib=256),
            tuned=True,
        )
        print("up", flush=True)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            cluster.watch()
            with contextlib.suppress(Exception):
                connection = await cluster.deployment.connect(timeout=1)
                await connection.execute("CREATE TABLE IF NOT EXISTS t (v STRING)", timeout=2)
                await connection.execute(
                    "INSERT INTO t SELECT repeat(gen_random_uuid()::STRING, 3000) FROM generate_series(1, 20)",
                    timeout=1,
                )
                connection.terminate()
            await asyncio.sleep(0.2)
        print("it lives on")
    except (HarnessError, NodeDied) as error:
        print(f"{type(error).__name__}: {error}")
    finally:
        await substrate.close()


asyncio.run(main())
