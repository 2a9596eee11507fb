"""A change of version of the embedded control that is done wrongly: the same claim is refuted, without CockroachDB."""

from contextlib import AsyncExitStack
from typing import Any

import pytest
from msgspec.structs import replace

from clusters.cluster import Cluster
from clusters.engines import Engine
from clusters.errors import BadInput
from clusters.events import NodeSwapped
from clusters.faults.disturbance import Fault
from clusters.faults.swap import swap
from fixtures.fault import Faults
from fixtures.judge import Judge
from fixtures.probe import Probe
from fixtures.swapping.broken import broken
from fixtures.swapping.fixture import State, Swapping
from fixtures.swapping.plan import Look
from fixtures.trial import Trial
from fixtures.workloads.ledger.fixture import Ledger
from fixtures.workloads.tpcc.beside import Orders
from plugin.evidence.events import seen
from plugin.judge.metrics import measure
from tests.sabotage.neighbour import goes_too
from tests.sabotage.test_versions import goes_on, only_the_first, swapped
from tests.slow import slow

pytestmark = pytest.mark.topology(nodes=3)

BROKEN = (
    "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'broken by hand' USING ERRCODE = 'XX000'; END $$",
    "CREATE TRIGGER broken BEFORE INSERT ON history FOR EACH ROW EXECUTE FUNCTION broken()",
)
"""Each payment writes down what was paid."""


@pytest.fixture
def versions(trial: Trial) -> tuple[Engine, ...]:
    """Two minor versions of one major; skips the test where their wheels are not made for this Python or platform."""
    try:
        return trial.run.named("postgres", "16.2"), trial.run.named("postgres", "16.14")
    except BadInput as error:
        pytest.skip(str(error))


@pytest.fixture
def engine(versions: tuple[Engine, ...]) -> Engine:
    """The cluster begins with the old one."""
    return versions[0]


@slow
@pytest.mark.sabotage("hot-swap", engine="postgres")
async def test_two_nodes_of_the_control_are_changed_at_once(
    trial: Trial,
    swapping: Swapping,
    ledger: Ledger,
    probe: Probe,
    fault: Faults,
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the first node its neighbour goes as well. That is enough: the rest of the plan is left out."""
    only_the_first(swapping)
    goes_too(fault, monkeypatch, seen_by=trial)
    async with probe.watching(ledger), ledger.writing(at_least=0):
        await swapping.follow(ledger)
    await ledger.audit()
    assert judge.refuted("processes_down_at_once")


@slow
@pytest.mark.sabotage("hot-swap", engine="postgres")
async def test_the_new_version_of_the_control_does_not_come_up(
    trial: Trial,
    versions: tuple[Engine, ...],
    swapping: Swapping,
    ledger: Ledger,
    probe: Probe,
    cluster: Cluster,
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first node that is given it refutes the claim and gets its former one back; no other is touched."""

    dies = await broken(versions[-1], "dies", cluster.substrate.scratch, cluster.substrate)

    def failing(new: Engine, old: Engine, **limits: Any) -> Fault:
        return swap(dies, old, **limits)

    monkeypatch.setattr("fixtures.swapping.fixture.swap", failing)
    async with probe.watching(ledger), ledger.writing(at_least=0):
        await swapping.follow(ledger)
    await ledger.audit()
    swapped = [event.node for _, event in seen(trial.evidence.events, NodeSwapped)]
    assert len(swapped) == 1, "the roll stops"
    assert set(swapping.running.values()) == {swapping.plan.versions[0]}
    assert judge.refuted("nodes_on_other_build")


@slow
@pytest.mark.sabotage("hot-swap-failed-node", engine="postgres")
async def test_a_node_of_the_control_comes_back_on_another_version(
    versions: tuple[Engine, ...],
    swapping: Swapping,
    ledger: Ledger,
    probe: Probe,
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
    failure: str,
) -> None:
    """Its update fails, and instead of its former version it is given one that works, too."""

    def forward(new: Engine, old: Engine, **limits: Any) -> Fault:
        return swap(new, versions[1] if limits["meant"] else old, **limits)

    monkeypatch.setattr("fixtures.swapping.fixture.swap", forward)
    async with probe.watching(ledger), ledger.writing(at_least=0):
        await swapping.follow(ledger)
    await ledger.audit()
    assert judge.refuted("nodes_not_back")


@slow
@pytest.mark.sabotage("hot-swap-failed-node", engine="postgres")
async def test_the_roll_of_the_control_goes_on_after_an_update_failed(
    swapping: Swapping, ledger: Ledger, probe: Probe, judge: Judge, failure: str
) -> None:
    """As on CockroachDB."""
    goes_on(swapping)
    async with probe.watching(ledger), ledger.writing(at_least=0):
        await swapping.follow(ledger)
    await ledger.audit()
    assert judge.refuted("changed_after_failure")


def only_the_first_look(swapping: Swapping) -> None:
    """Nothing is changed: what is done by hand then is enough."""
    plan = swapping.plan
    assert isinstance(plan.steps[0], Look)
    swapping.plan = replace(plan, steps=plan.steps[:1])


@pytest.mark.sabotage("hot-swap", engine="postgres")
async def test_a_row_is_away_while_the_plan_looks(
    swapping: Swapping, ledger: Ledger, probe: Probe, cluster: Cluster, judge: Judge
) -> None:
    """It is taken away by hand before all rows are read back, and put back then: at the end no row is missing."""
    only_the_first_look(swapping)
    table = ledger.table

    async def without_a_row(state: State) -> None:
        async with await cluster.deployment.connect() as connection:
            first = f"key = (SELECT min(key) FROM {table} WHERE key >= 0)"
            await connection.execute(f"CREATE TABLE away AS SELECT * FROM {table} WHERE {first}")
            await connection.execute(f"DELETE FROM {table} WHERE key IN (SELECT key FROM away)")
            await ledger.read_back()
            await connection.execute(f"INSERT INTO {table} SELECT * FROM away")

    await swapped(swapping, ledger, probe, look=[without_a_row])
    assert judge.refuted("read_back_wrong")


@slow
@pytest.mark.sabotage("hot-swap", engine="postgres")
async def test_tpcc_s_payments_end_with_an_error_of_the_server_s_own(
    swapping: Swapping, ledger: Ledger, orders: Orders, probe: Probe, cluster: Cluster, judge: Judge
) -> None:
    """The ledger is served as before, and TPC-C's data stays consistent; a trigger made by hand says XX000."""
    only_the_first_look(swapping)

    async def made_fail(state: State) -> None:
        async with await cluster.deployment.connect() as connection:
            for statement in BROKEN:
                await connection.execute(statement)

    async with orders.running():
        await swapped(swapping, ledger, probe, look=[made_fail, orders.check])
    await orders.check()
    assert judge.refuted("tpcc_errors_not_retryable")


@slow
@pytest.mark.sabotage("hot-swap", engine="postgres")
async def test_tpcc_s_rows_are_held_once_the_version_is_back(
    trial: Trial, swapping: Swapping, ledger: Ledger, orders: Orders, probe: Probe, cluster: Cluster, judge: Judge
) -> None:
    """Nothing fails but TPC-C's transactions, which wait for a lock until they are given up; reads go on."""
    last = swapping.plan.steps[-1]
    assert isinstance(last, Look)
    async with AsyncExitStack() as stack:

        async def held(state: State) -> None:
            if state.name == last.state:
                holder = await stack.enter_async_context(await cluster.deployment.connect())
                await holder.execute("BEGIN")
                await holder.execute("SELECT d_id FROM district FOR UPDATE")

        async with orders.running():
            await swapped(swapping, ledger, probe, look=[orders.check, ledger.read_back, held])
    await orders.check()
    for metric in ("tpcc_slow_states", "tpcc_failed_undisturbed"):
        assert measure(trial.evidence, metric).value, metric
    assert measure(trial.evidence, "tpcc_idle_states").value == 0, "nothing stands still"
    assert judge.refuted("tpcc_slow_states")
