"""The audit of a TPC-C run: healthy ones pass however short, wrong ones are caught."""

from collections.abc import Mapping
from dataclasses import replace
from math import comb
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.workloads.tpcc.evidence import TYPES, TpccAudit, TpccRun
from fixtures.workloads.tpcc.judge.audit import (
    audited,
    audited_together,
    binomial_tail,
    incomplete,
    lines_broken,
    starved,
)
from fixtures.workloads.tpcc.judge.figures import Figures, figures
from tests.plugin.judge.loads import PACK, audit_of, load


def told(run: TpccRun, **options: Any) -> tuple[str, ...]:
    return audited(run, figures(run), **options)


@given(st.integers(1, 40), st.integers(0, 40), st.floats(0.01, 0.99))
def test_the_binomial_tail_above_the_mean_is_the_sum(of: int, count: int, p: float) -> None:
    found = binomial_tail(count, of, p)
    exact = sum(comb(of, k) * p**k * (1 - p) ** (of - k) for k in range(count, of + 1))
    assert found == (pytest.approx(exact, rel=1e-6) if count > of * p else 1.0)


def test_the_binomial_tail_of_many() -> None:
    assert binomial_tail(10_300, 1_000_000, 0.01) == pytest.approx(0.00133, rel=0.05)
    assert binomial_tail(1_000_000, 1_000_000, 0.9) == 0
    assert (binomial_tail(0, 0, 0.5), binomial_tail(3, 10, 1.0), binomial_tail(1, 10, 0.0)) == (1, 1, 0)


@pytest.mark.parametrize("warehouses", [1, 10, 1000])
def test_a_run_as_it_should_be_is_within_all_bounds(warehouses: int) -> None:
    run = load(warehouses=warehouses)
    assert told(run) == ()
    assert audited_together([(run, figures(run))]) == ()
    assert incomplete(run, figures(run)) == ()
    assert starved(figures(run)) == ()


def dealt(random: Random, transactions: int) -> tuple[dict[str, int], TpccAudit]:
    """What so many cards come to: shuffled packs, every choice by the specification's odds."""
    pack = [kind for kind, cards in PACK.items() for _ in range(cards)]
    cards: list[str] = []
    while len(cards) < transactions:
        cards += random.sample(pack, len(pack))
    counts = {kind: cards[:transactions].count(kind) for kind in TYPES}

    def chosen(of: int, odds: float) -> int:
        return sum(random.random() < odds for _ in range(of))

    lines = sum(random.randint(5, 15) for _ in range(counts["new_order"]))
    return counts, TpccAudit(
        new_orders=counts["new_order"],
        rolled_back=chosen(counts["new_order"], 0.01),
        order_lines=lines,
        remote_lines=chosen(lines, 0.01),
        payments=counts["payment"],
        remote_payments=chosen(counts["payment"], 0.15),
        payments_by_name=chosen(counts["payment"], 0.6),
        order_statuses=counts["order_status"],
        order_statuses_by_name=chosen(counts["order_status"], 0.6),
        deliveries=counts["delivery"],
        stock_levels=counts["stock_level"],
    )


@pytest.mark.parametrize("transactions", [5, 23, 100, 300, 3000])
def test_healthy_runs_pass_however_short(transactions: int) -> None:
    random = Random(transactions)
    for _ in range(200 if transactions < 1000 else 20):
        counts, audit = dealt(random, transactions)
        run = replace(load(), audit=audit)
        assert audited(run, Figures(header=run.header, seconds=60, tpmc=1.0, finished=counts)) == ()


WRONG_MIX: Mapping[str, Mapping[str, float]] = {
    "no order-status": {**PACK, "order_status": 0},
    "next to no deliveries": {**PACK, "delivery": 0.001},
    "mostly new-orders": {**PACK, "new_order": 20},
    "mostly payments": {**PACK, "payment": 20},
    "all alike": dict.fromkeys(TYPES, 1),
}


@pytest.mark.parametrize("mix", WRONG_MIX.values(), ids=WRONG_MIX)
def test_a_wrong_mix_is_caught_in_a_minute_of_ten_warehouses_and_named_with_both_bounds(
    mix: Mapping[str, float],
) -> None:
    problems = "; ".join(told(load(mix=mix)))
    assert "by the specification" in problems
    assert "by the pack 10/10/1/1/1" in problems


def test_the_specification_allows_what_the_pack_does_not_deal() -> None:
    problems = told(load(warehouses=10_000, mix={**PACK, "payment": 10.7}))
    assert problems
    assert all("by the pack 10/10/1/1/1" in problem for problem in problems)


def test_a_saturated_runs_mix_is_not_judged_but_its_choices_are() -> None:
    run = load(mix=WRONG_MIX["mostly payments"], audit={"rolled_back": 100})
    assert [problem.split()[0] for problem in told(run, saturated=True)] == ["new-orders"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"rolled_back": 0}, "new-orders rolled back 0.00 %"),
        ({"rolled_back": 250}, "new-orders rolled back"),
        ({"remote_lines": 0}, "remote lines 0.00 %"),
        ({"remote_lines": 2500}, "remote lines"),
        ({"remote_payments": 0}, "remote payments 0.00 %"),
        ({"payments_by_name": 6200}, "customers of payment by last name"),
        ({"order_statuses_by_name": 100}, "customers of order-status by last name"),
        ({"order_lines": 12 * 12474, "remote_lines": 12 * 125}, "12.00 lines an order"),
        ({"new_orders": 11000}, "the audit counted 11000 new-orders, the timeline shows 12474"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_bound_is_held(change: Mapping[str, int], named: str) -> None:
    assert any(named in problem for problem in told(load(warehouses=1000, audit=change)))


def test_one_warehouse_has_no_remote_ones() -> None:
    assert told(load(warehouses=1, seconds=6000)) == ()
    assert told(load(warehouses=2, seconds=6000, audit={"remote_payments": 0}))


def test_what_is_too_little_for_one_run_shows_in_many() -> None:
    """Rollbacks of 2 %: 25 runs of 250 new-orders see what one cannot, unless they were all dealt the same cards."""
    runs = [load(f"r{seed}", warehouses=20, seed=seed, audit={"rolled_back": 5}) for seed in range(25)]
    assert all(told(run) == () for run in runs)
    (problem,) = audited_together([(run, figures(run)) for run in runs])
    assert problem.startswith("new-orders rolled back 2.01 % of 6225")
    assert problem.endswith("(25 runs together)")
    same = [(replace(run, header=replace(run.header, seed=1)), figures(run)) for run in runs]
    assert audited_together(same) == ()


def test_drivers_are_audited_apart() -> None:
    own = [load(f"r{seed}", warehouses=1000, seed=seed) for seed in range(3)]
    other = load("builtin", warehouses=1000, driver="builtin", mix=WRONG_MIX["mostly payments"])
    problems = audited_together([(run, figures(run)) for run in (*own, other)])
    assert problems
    assert all("(1 runs together)" in problem for problem in problems)


def test_a_run_without_an_audit() -> None:
    assert told(replace(load(), audit=None)) == ("there is no audit",)
    builtin = load(driver="builtin")
    assert told(replace(builtin, audit=None)) == told(replace(builtin, audit=TpccAudit())) == ()
    assert told(replace(load(), audit=TpccAudit())) == (
        "the audit counted 0 new-orders, the timeline shows 125",
    )


def test_a_run_in_which_nothing_finished() -> None:
    assert told(load(efc=0)) == ("no transaction finished",)
    assert lines_broken(TpccAudit()) is None


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (load(problems=("tpcc-r01.jsonl: was cut off at 33 s",)), "was cut off at 33 s"),
        (load(end=None), "it has no end"),
        (load(end="stopped"), "it ended by 'stopped'"),
        (load(duration_s=62.0), "60 s were measured of 62 s"),
    ],
)
def test_what_is_missing_of_a_run(run: TpccRun, why: str) -> None:
    assert any(why in problem for problem in incomplete(run, figures(run)))


def test_a_duration_that_does_not_begin_with_a_second_is_complete() -> None:
    assert incomplete(load(duration_s=61.7), figures(load(duration_s=61.7))) == ()


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (load(cpu=0.95), "it used 95% of a core a process"),
        (load(cpu=3.8, processes=4), "it used 95% of a core a process"),
        (load(lag_ms=300.0), "it was 300 ms late in one second of twenty"),
        (load(seconds=1), "it used"),
        (replace(load(), seconds=()), "no second was measured"),
    ],
)
def test_a_starved_generator(run: TpccRun, why: str) -> None:
    problems = starved(figures(run))
    if why == "it used":
        assert problems == ("no second was measured",)
    else:
        assert any(why in problem for problem in problems)


def test_the_built_in_driver_has_several_threads() -> None:
    assert starved(figures(load(cpu=1.5, driver="builtin"))) == ()


def test_a_single_late_second_starves_nobody() -> None:
    run = load()
    late = [
        replace(second, lag_ms=900.0) if index == 30 else second for index, second in enumerate(run.seconds)
    ]
    assert starved(figures(replace(run, seconds=tuple(late)))) == ()


def test_audits_as_they_should_be_are_those_of_the_specification() -> None:
    counts = {kind: 1000 * cards for kind, cards in PACK.items()}
    audit = audit_of(counts, 10)
    assert audit.rolled_back / audit.new_orders == 0.01
    assert audit.remote_lines / audit.order_lines == 0.01


@pytest.mark.parametrize(
    ("due", "change", "wrong"),
    [
        (126, {}, ""),
        (110, {}, ""),
        (63, {}, "63 new-orders came due (asked: 126"),
        (252, {}, "252 new-orders came due"),
        (126, {"terminals": 50}, "50 terminals at 10 warehouses (asked: 10 each)"),
        (63, {"waits": False}, ""),
    ],
)
def test_a_schedule_that_asks_for_too_little_is_no_tpcc(due: int, change: dict[str, Any], wrong: str) -> None:
    """Half the terminals, or twice the think times: any server would serve all of it."""
    run = replace(
        load("r", warehouses=10, seconds=60, **change), due={**dict.fromkeys(PACK, 0), "new_order": due}
    )
    assert "; ".join(audited(run, figures(run))).startswith(wrong)
    assert bool(audited(run, figures(run))) is bool(wrong)
