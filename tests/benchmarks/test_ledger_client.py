"""What the ledger's client process costs: it must leave the machine to what it measures."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clusters.cluster import Cluster
from clusters.engines import Engine
from clusters.engines.cockroach.engine import Cockroach
from clusters.engines.postgres.engine import find
from clusters.errors import HarnessError
from clusters.model import NodeResources
from clusters.substrates.processes import Processes
from clusters.topology import of as topology_of
from fixtures.workloads.client_process import Client
from fixtures.workloads.ledger import table
from fixtures.workloads.ledger.records import GeneratorSecond, Invoke, Ok, Op, read_evidence
from fixtures.workloads.ledger.spec import LedgerSpec
from tests.benchmarks.measuring import Figure, spread

INSERTS_PER_S = 500.0
MOST_OF_A_CORE = 0.25
RATE = 565.0
"""Writers' operations a second. 84 % insert a row, 5 % two, the others change and delete: 531 rows a second."""
LEAST_OF_RATE = 0.5
"""A server that takes no more than this of the rate lets the client be idle: nothing was measured. In between the cost
of a row counts, which is the higher the fewer there are: what the process does once a second is shared by fewer."""
WARM_S, MEASURED_S = 4.0, 15.0
BUCKETS = 9
RESOURCES = NodeResources(cache_mib=384, sql_memory_mib=256)


@asynccontextmanager
async def single_node(engine: Engine, home: Path) -> AsyncIterator[Cluster]:
    """One node with an empty ledger."""
    substrate = await Processes.open(name="bench", workdir=home, capacity=0, say=print)
    try:
        cluster = await Cluster.provision(
            engine=engine,
            substrate=substrate,
            topology=topology_of(nodes=1),
            resources=RESOURCES,
            tuned=True,
        )
        async with await cluster.deployment.connect() as connection:
            await connection.execute(table.create_table())
        await cluster.deployment.spread(table.TABLE, "bucket", table.split_points(BUCKETS))
        yield cluster
    finally:
        await substrate.close()


def cost(history: Path) -> tuple[float, float, list[float]]:
    """Of the seconds after the warm-up: inserted rows and operations a second, and CPU seconds for 500 inserted rows.

    Raises ``HarnessError`` when there are too few to tell.
    """
    rows = {Op.INSERT: 1, Op.PAIR: 2}
    open_: dict[int, int] = {}
    inserted = operations = 0
    last: GeneratorSecond | None = None
    begin: int | None = None
    totals = [0, 0]
    elapsed, costs = 0, []
    read = read_evidence(history.parent).history
    for record in read() if read else ():
        begin = record.t if begin is None else begin
        match record:
            case Invoke():
                open_[record.op] = rows.get(record.kind, 0)
            case Ok():
                inserted += open_.pop(record.op)
                operations += 1
            case GeneratorSecond():
                if last is not None and last.t - begin >= WARM_S * 1e6 and inserted:
                    elapsed += record.t - last.t
                    totals = [totals[0] + inserted, totals[1] + operations]
                    costs.append(record.cpu_us / 1e6 * INSERTS_PER_S / inserted)
                inserted, operations, last = 0, 0, record
    if len(costs) < MEASURED_S - 2:
        raise HarnessError(f"the client recorded {len(costs)} s of its {MEASURED_S:.0f} s: nothing was measured")
    return totals[0] / elapsed * 1e6, totals[1] / elapsed * 1e6, costs


@pytest.mark.parametrize("name", ["postgres", "cockroach"])
async def test_client_leaves_the_machine_alone(
    name: str, request: pytest.FixtureRequest, tmp_path: Path, figures: list[Figure]
) -> None:
    """500 inserts a second cost no more than a quarter of one core."""
    engine: Engine
    if name == "cockroach":
        found: Cockroach = request.getfixturevalue("cockroach")
        engine = found
    else:
        engine = find()
    async with single_node(engine, tmp_path) as cluster:
        spec = LedgerSpec(
            origin_ns=time.monotonic_ns(),
            seed=7,
            endpoints=cluster.endpoints,
            credentials=cluster.credentials,
            buckets=BUCKETS,
            output=tmp_path / "ledger.tsv",
            writers=24,
            readers=12,
            rate_per_s=RATE,
        )
        async with await Client.start(spec, log=tmp_path / "ledger.log") as client:
            await asyncio.sleep(WARM_S + MEASURED_S)
            client.check()
            await client.stop()
    inserts, operations, costs = cost(spec.output)
    if inserts < INSERTS_PER_S * LEAST_OF_RATE:
        raise HarnessError(
            f"{engine.kind.name} took {inserts:.0f} inserts a second, not {INSERTS_PER_S:.0f}: nothing was measured"
        )
    share = sum(costs) / len(costs)
    figures.append(
        Figure(
            what=f"ledger client against one node of {engine.kind.name} {engine.version}",
            promised=f"≤ {MOST_OF_A_CORE:.0%} of a core at {INSERTS_PER_S:.0f} inserts/s",
            measured=f"{share:.1%} of a core (seconds: {spread([100 * c for c in costs], 0)} %)",
            kept=share <= MOST_OF_A_CORE,
            raw=f"of a core, each second: {[round(c, 3) for c in costs]}",
            how=f"the process's CPU time by its own record, second by second over {len(costs)} s, for 500 inserted "
            f"rows; it had {inserts:.0f} rows/s, {operations:.0f} operations/s with reads, updates and deletes, "
            "36 clients",
        )
    )
    assert share <= MOST_OF_A_CORE
