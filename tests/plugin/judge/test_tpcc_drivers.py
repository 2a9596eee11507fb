"""Two drivers agree on the same truth however it scatters, and are told apart where their truths differ."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fixtures.workloads.tpcc.evidence import TYPES, TpccHeader
from fixtures.workloads.tpcc.judge.drivers import P90_PERCENT, TPMC_PERCENT, disagreements
from fixtures.workloads.tpcc.judge.figures import Figures, Latencies


def run(
    driver: str, *, new_orders: int = 5000, p90_ms: float = 20.0, waits: bool = True, warehouses: int = 10
) -> Figures:
    header = TpccHeader(
        run="r",
        driver=driver,
        warehouses=warehouses,
        terminals=10 * warehouses,
        connections=2 * warehouses,
        waits=waits,
        seed=1,
        ramp_s=10,
        duration_s=60,
    )
    latencies = Latencies(
        count=new_orders,
        avg_ms=p90_ms,
        p50_ms=p90_ms,
        p90_ms=p90_ms,
        p95_ms=p90_ms,
        p99_ms=p90_ms,
        max_ms=p90_ms,
    )
    return Figures(
        header=header,
        seconds=60,
        tpmc=float(new_orders),
        finished=dict.fromkeys(TYPES, new_orders),
        latencies=dict.fromkeys(TYPES, latencies),
    )


def figures(native: Sequence[Figures], builtin: Sequence[Figures]) -> list[str]:
    return [one.figure for one in disagreements(native, builtin)]


def test_the_same_is_no_disagreement() -> None:
    assert figures([run("native")], [run("builtin")]) == []


def test_what_scatters_is_no_disagreement() -> None:
    rng = random.Random(5)
    alarms = 0
    for _ in range(200):
        arms = [
            [run(d, new_orders=round(rng.gauss(5000, 250)), p90_ms=rng.gauss(20, 2)) for _ in range(4)]
            for d in ("native", "builtin")
        ]
        alarms += bool(disagreements(*arms))
    assert alarms <= 4


def test_less_by_a_tenth_is_told() -> None:
    (one,) = disagreements([run("native")] * 2, [run("builtin", new_orders=4500)] * 2)
    assert one.figure == "tpmC"
    assert TPMC_PERCENT < one.at_least_percent < 10
    assert str(one).startswith("tpmC: the native driver found 5000, the built-in one 4500, at least ")
    assert "% less (allowed: 3 %)" in str(one)


def test_few_transactions_tell_nothing() -> None:
    assert figures([run("native", new_orders=50)], [run("builtin", new_orders=45)]) == []


def test_runs_that_differ_among_themselves_tell_nothing() -> None:
    native = [run("native", new_orders=n) for n in (3000, 5000, 7000)]
    assert figures(native, [run("builtin", new_orders=4000)] * 3) == []


def test_latencies_of_another_kind_are_told_type_by_type() -> None:
    told = disagreements([run("native")], [run("builtin", p90_ms=40.0)])
    assert [one.figure for one in told] == [f"p90 of {kind} in ms" for kind in TYPES]
    assert all(one.at_least_percent > P90_PERCENT for one in told)


def test_a_bucket_s_width_is_no_disagreement() -> None:
    assert figures([run("native")], [run("builtin", p90_ms=22.5)]) == []


def test_latencies_without_think_times_are_not_alike_and_not_compared() -> None:
    native, builtin = run("native", waits=False), run("builtin", p90_ms=5, waits=False)
    assert figures([native], [builtin]) == []


def test_a_driver_that_counts_what_failed_is_not_compared() -> None:
    failed = replace(run("builtin", new_orders=9000), errors={"40001": 3000})
    assert figures([run("native")], [run("builtin", new_orders=9000)]) == ["tpmC"]
    assert figures([run("native")], [failed]) == []


def test_nothing_to_compare() -> None:
    assert figures([run("native")], []) == []
    assert figures([], [run("builtin", new_orders=0)]) == []


def test_different_cells_are_refused() -> None:
    with pytest.raises(ValueError, match="runs of 2 cells"):
        disagreements([run("native")], [run("builtin", warehouses=20)])
