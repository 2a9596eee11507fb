"""Throughput that is wrong on purpose: too little CPU, wrong data, load generators that cannot be believed."""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from typing import Any

import pytest

from clusters import topology
from clusters.engines import Engine
from clusters.model import Capability
from clusters.substrates.processes import cannot_cut
from fixtures.judge import Judge
from fixtures.trial import Trial
from fixtures.workloads.tpcc import loaded_cluster as loading
from fixtures.workloads.tpcc.fixture import Side, Tpcc, Work
from fixtures.workloads.tpcc.judge.compared import ComparedRuns
from fixtures.workloads.tpcc.loaded_cluster import Loaded
from plugin.judge.metrics import measure
from tests.sabotage.throttle import Throttle, held_rows, late_answers, slow_link, stumbling
from tests.sabotage.wrong_mix import EasierSpec
from tests.slow import slow

pytestmark = pytest.mark.topology(nodes=3)

FREE, NINE_TENTHS, SEVEN_TENTHS = "uncapped", "capped at 90 % of its CPU", "capped at 70 % of its CPU"
SHARES = {NINE_TENTHS: 0.9, SEVEN_TENTHS: 0.7}
SIZE = 0.6
"""CPUs of the node, so that what else the machine does hardly matters: all sides are held to so much, whatever is left
over."""

HASHED = 7_000_000
"""Bytes that are hashed for each order: about half of what an order costs otherwise."""

WORSE = "the worse side"
KBIT = 256
"""What leaves the node behind the slow link in a second."""
SLOWER = tuple(f"latency_{name}_growth_interval" for name in ("p50", "p90", "p99"))

HURRIED = Work(warehouses=1, ramp_s=1, measured_s=8, workers=4)
"""Workers that do not wait."""

quiet = pytest.mark.skipif(
    not os.environ.get("ROACHPROOF_QUIET"),
    reason="compares throughput, which other work on the machine spoils: tox -e quiet runs it alone",
)


@asynccontextmanager
async def small(tpcc: Tpcc, engine: Engine, *, warehouses: int = 1, cpus: float | None = None) -> AsyncIterator[Loaded]:
    """A single node."""
    resources = replace(tpcc.resources, cpus=cpus)
    side = Side(name="small", engine=engine, topology=topology.of(nodes=1), resources=resources)
    async with tpcc.loaded(side, warehouses, name=side.name) as loaded:
        yield loaded


@quiet
@pytest.mark.sabotage("parity", engine="cockroach")
async def test_a_side_one_of_whose_nodes_has_too_little_cpu(
    tpcc: Tpcc, judge: Judge, monkeypatch: pytest.MonkeyPatch, engine: Engine, warehouses: int
) -> None:
    """On one of two sides of three nodes a node has a twelfth of a core."""

    @asynccontextmanager
    async def starved(loaded: Loaded) -> AsyncIterator[None]:
        Throttle(loaded.cluster, loaded.cluster.nodes[-1:]).limit(1 / 12)
        yield

    await with_a_side(starved, tpcc, engine, monkeypatch, warehouses)
    assert judge.refuted(either=("tpmc_ratio_interval", "fell_behind"))


@quiet
@pytest.mark.sabotage("parity", engine="cockroach")
async def test_a_side_whose_rows_are_hot(
    tpcc: Tpcc, judge: Judge, monkeypatch: pytest.MonkeyPatch, engine: Engine, warehouses: int
) -> None:
    """On one side somebody else holds the rows that every new-order needs, most of the time, and uses no CPU for it."""
    await with_a_side(lambda loaded: held_rows(loaded.cluster), tpcc, engine, monkeypatch, warehouses)
    assert judge.refuted(either=("tpmc_ratio_interval", "fell_behind"))


@quiet
@pytest.mark.sabotage("parity", engine="cockroach")
async def test_a_side_one_of_whose_links_is_slow(
    tpcc: Tpcc, trial: Trial, judge: Judge, engine: Engine, monkeypatch: pytest.MonkeyPatch, warehouses: int
) -> None:
    """On one side all that a node sends to clients and nodes leaves at 256 kbit/s; there is CPU to spare."""
    if (why := cannot_cut()) is not None:
        pytest.skip(f"no network of the cluster's own can be made here: {why}")
    links = replace(trial.claim, capabilities=trial.claim.capabilities | {Capability.CUT_LINKS})
    monkeypatch.setattr(trial, "claim", links)

    def slow_one(loaded: Loaded) -> AbstractAsyncContextManager[None]:
        return slow_link(loaded.cluster, loaded.cluster.nodes[-1], KBIT)

    await with_a_side(slow_one, tpcc, engine, monkeypatch, warehouses)
    assert judge.refuted(either=("tpmc_ratio_interval", "fell_behind"))


@quiet
@pytest.mark.sabotage("regression", engine="cockroach")
async def test_a_new_version_that_needs_more_cpu(
    tpcc: Tpcc, judge: Judge, monkeypatch: pytest.MonkeyPatch, engine: Engine, warehouses: int
) -> None:
    """What stands for the new version hashes megabytes for every order.

    An order takes about half as much CPU again: the new version could serve a third fewer.
    """

    @asynccontextmanager
    async def hashing(loaded: Loaded) -> AsyncIterator[None]:
        check = f"length(md5(repeat(o_d_id::STRING, {HASHED}))) > 0"
        async with await loaded.cluster.deployment.connect() as connection:
            await connection.execute(f'ALTER TABLE "order" ADD CONSTRAINT costly CHECK ({check}) NOT VALID')
        yield

    await with_a_version(hashing, tpcc, engine, monkeypatch, warehouses)
    assert judge.refuted(either=("cpu_per_order_growth_interval", "tpmc_loss_interval", *SLOWER))


@quiet
@pytest.mark.sabotage("regression", engine="cockroach")
async def test_a_new_version_that_answers_late(
    trial: Trial, tpcc: Tpcc, judge: Judge, monkeypatch: pytest.MonkeyPatch, engine: Engine, warehouses: int
) -> None:
    """Each answer of what stands for the new version comes 15 ms later; it serves every order all the same."""
    await with_a_version(lambda loaded: late_answers(loaded, 0.015), tpcc, engine, monkeypatch, warehouses)
    found = measure(trial.evidence, "tpmc_loss_interval")
    assert found.value is not None
    assert found.value < 10, "an open schedule hides it from tpmC"
    assert judge.refuted("latency_p50_growth_interval")


Meanwhile = Callable[[Loaded], AbstractAsyncContextManager[None]]
"""What is wrong with a loaded cluster while it runs."""


async def with_a_side(
    meanwhile: Meanwhile, tpcc: Tpcc, engine: Engine, monkeypatch: pytest.MonkeyPatch, warehouses: int
) -> None:
    """Compare two sides of three nodes as parity does, one of them with that ``meanwhile`` it runs."""
    whole = replace(tpcc.resources, cpus=float(tpcc.host.cores))
    sides = [Side(name=name, engine=engine, topology=topology.of(nodes=3), resources=whole) for name in (FREE, WORSE)]
    disturb(WORSE, meanwhile, tpcc, monkeypatch)
    await tpcc.compare(*sides, warehouses=warehouses)


async def with_a_version(
    meanwhile: Meanwhile, tpcc: Tpcc, engine: Engine, monkeypatch: pytest.MonkeyPatch, warehouses: int
) -> None:
    """Compare a version with itself as regression does, the new one with that ``meanwhile`` it runs."""
    old, new = tpcc.of_versions(engine, engine, nodes=3)
    disturb(new.name, meanwhile, tpcc, monkeypatch)
    await tpcc.compare(old, new, warehouses=warehouses, old_and_new=True)


def disturb(side: str, meanwhile: Meanwhile, tpcc: Tpcc, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run of this side goes on inside of that."""
    run = tpcc.run

    async def disturbed(loaded: Loaded, work: Work, **options: Any) -> None:
        async with meanwhile(loaded) if options["side"] == side else nullcontext():
            await run(loaded, work, **options)

    monkeypatch.setattr(tpcc, "run", disturbed)


@quiet
@pytest.mark.sabotage("parity", engine="cockroach")
async def test_nodes_with_a_little_less_cpu(trial: Trial, tpcc: Tpcc, judge: Judge, engine: Engine) -> None:
    """Nodes are capped at 90 % of the CPU that they used uncapped, for the verdict at 70 %; the load does not think."""
    await capped(tpcc, engine, FREE, NINE_TENTHS, SEVEN_TENTHS, looks=(8,))
    found = ComparedRuns(trial.evidence)
    (slower,) = ratios(found, "saturated_tpmc_ratio_interval", f"{NINE_TENTHS} / {FREE}")
    (waits,) = ratios(found, "saturated_p90_ratio_interval", f"{NINE_TENTHS} / {FREE}")
    assert slower[1] < 0, f"a tenth of the CPU less does not show in tpmC: {slower}"
    assert waits[0] > 0, f"a tenth of the CPU less does not show in p90: {waits}"
    lost = measure(trial.evidence, "headroom_lost")
    assert lost.value is not None
    assert lost.value > 0
    assert f"p90 of {NINE_TENTHS} / {FREE}" in lost.note
    assert judge.refuted("tpmc_ratio_interval")


async def capped(tpcc: Tpcc, engine: Engine, *names: str, looks: Sequence[int]) -> None:
    """The sides in turns on one small cluster, whose CPU is changed: shares of what a warm-up used of ``SIZE``."""
    async with small(tpcc, engine, cpus=float(tpcc.host.cores)) as loaded:
        throttle, used = Throttle(loaded.cluster), 0.0
        sides = [Side(name=name, engine=engine, topology=loaded.cluster.topology) for name in names]
        async for block, name, side in tpcc.order(*sides, warehouses=1, looks=looks):
            if not used:
                throttle.limit(SIZE)
                await tpcc.run(loaded, replace(HURRIED, workers=8, named="warm-up"), side="warm-up")
                await tpcc.run(loaded, replace(HURRIED, named="warm-up"), side="warm-up", block=1)
                used = loaded.cores
            throttle.limit(SIZE if side.name == FREE else SHARES[side.name] * used)
            await tpcc.run(loaded, HURRIED, side=name, block=block)
        throttle.limit(None)
        await loaded.check()


def ratios(found: ComparedRuns, metric: str, names: str) -> Sequence[tuple[float, float]]:
    """The intervals of the log ratio of these sides."""
    pairs = found.pairs(metric)
    assert pairs is not None
    every = pairs.ratios(found.declared[0])
    return [each.interval for each in every if each.name.startswith(names) and each.interval]


@slow
@pytest.mark.sabotage("stress", engine="postgres")
async def test_a_generator_that_is_held_back(tpcc: Tpcc, judge: Judge, engine: Engine) -> None:
    """The load's processes are stopped four fifths of the time: what they measure is themselves."""
    async with small(tpcc, engine) as loaded, stumbling("fixtures.workloads.tpcc.terminals"):
        await short_ramp(tpcc, loaded)
    assert judge.inconclusive("generator_not_starved", may=SHORT)


@slow
@pytest.mark.sabotage("stress", engine="postgres")
async def test_a_wrong_mix(tpcc: Tpcc, judge: Judge, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator deals itself four new-orders and sixteen payments of 23 cards, instead of ten and ten."""
    monkeypatch.setattr(loading, "TpccSpec", EasierSpec)
    async with small(tpcc, engine) as loaded:
        await short_ramp(tpcc, loaded)
    assert judge.inconclusive("tpcc_audited", may=SHORT)


SHORT = ["efc_told_from_noise", "knee_found"]
"""Conditions that so short a ramp may leave open, too."""


async def short_ramp(tpcc: Tpcc, loaded: Loaded) -> None:
    """A load with think times, which the cluster carries, and workers that do not wait, to have many transactions."""
    await tpcc.run(loaded, Work(warehouses=loaded.warehouses, ramp_s=2, measured_s=10), side="small")
    await tpcc.run(loaded, Work(warehouses=loaded.warehouses, ramp_s=1, measured_s=5, workers=4), side="small")
    await loaded.check()


@slow
@pytest.mark.sabotage("stress", engine="postgres")
async def test_rows_that_the_load_does_not_find(tpcc: Tpcc, judge: Judge, engine: Engine) -> None:
    """One item of fifty has no stock in any warehouse: new-orders of it find a row missing that must be there."""
    async with small(tpcc, engine, warehouses=2) as loaded:
        async with await loaded.cluster.deployment.connect() as connection:
            for number in (1, 2):
                await connection.execute(f"ALTER TABLE order_line DROP CONSTRAINT IF EXISTS order_line_fk_{number}")
            await connection.execute("DELETE FROM stock WHERE s_i_id % 50 = 0")
        await short_ramp(tpcc, loaded)
    assert judge.refuted("inconsistent_answers")


@slow
@pytest.mark.sabotage("stress", engine="postgres")
async def test_payments_that_end_with_an_error_of_the_server_s_own(tpcc: Tpcc, judge: Judge, engine: Engine) -> None:
    """One payment in twenty ends with XX000, under a load that the cluster carries and beyond it."""
    async with small(tpcc, engine, warehouses=2) as loaded:
        await payments_end_with(loaded, "XX000", one_in=20, when="BEFORE INSERT ON history")
        await short_ramp(tpcc, loaded)
    assert judge.refuted("failed_share")


@slow
@pytest.mark.sabotage("stress", engine="postgres")
async def test_payments_of_which_nobody_knows_whether_they_were_made(tpcc: Tpcc, judge: Judge, engine: Engine) -> None:
    """COMMIT of one payment in four is answered with 40003, the result is ambiguous, under a load that is carried."""
    async with small(tpcc, engine, warehouses=2) as loaded:
        await payments_end_with(loaded, "40003", one_in=4, when="AFTER INSERT ON history DEFERRABLE INITIALLY DEFERRED")
        await tpcc.run(loaded, Work(warehouses=2, ramp_s=2, measured_s=10, wait_scale=0.02), side="small")
        await loaded.check()
    assert judge.refuted("failed_share")


async def payments_end_with(loaded: Loaded, state: str, *, one_in: int, when: str) -> None:
    """One in so many ends with this SQLSTATE, by a trigger that is called then: deferred, in answer to COMMIT."""
    constraint = "CONSTRAINT" if "DEFERRED" in when else ""
    async with await loaded.cluster.deployment.connect() as connection:
        await connection.execute(
            "CREATE FUNCTION by_hand() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'by hand' USING ERRCODE = '{state}'; END $$"
        )
        await connection.execute(
            f"CREATE {constraint} TRIGGER by_hand {when} FOR EACH ROW "
            f"WHEN (new.h_c_id % {one_in} = 0) EXECUTE FUNCTION by_hand()"
        )


@slow
@pytest.mark.sabotage("stress", engine="cockroach")
async def test_an_order_line_that_is_gone(tpcc: Tpcc, judge: Judge, engine: Engine) -> None:
    """One order line is deleted after the load, and nothing else is done."""
    await execute(
        tpcc,
        engine,
        "DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 17 AND ol_number = 1",
    )
    assert judge.refuted("inconsistent")


@pytest.mark.sabotage("parity-resources", engine="postgres")
async def test_a_district_whose_total_is_off_by_a_cent(tpcc: Tpcc, judge: Judge, engine: Engine) -> None:
    """A cent is added to a district's year-to-date total after the load, and nothing else is done."""
    await execute(tpcc, engine, "UPDATE district SET d_ytd = d_ytd + 0.01 WHERE d_w_id = 1 AND d_id = 5")
    assert judge.refuted("inconsistent")


async def execute(tpcc: Tpcc, engine: Engine, statement: str) -> None:
    """Change what was loaded, and look at it."""
    async with small(tpcc, engine) as loaded:
        async with await loaded.cluster.deployment.connect() as connection:
            await connection.execute(statement)
        await loaded.check()
