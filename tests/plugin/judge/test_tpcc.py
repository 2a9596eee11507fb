"""Figures of TPC-C runs worked out by hand."""

from dataclasses import replace

import pytest

from fixtures.workloads.tpcc.evidence import TYPES, TpccSecond, TypeSecond, encode, new_histogram
from fixtures.workloads.tpcc.judge.figures import figures, share
from fixtures.workloads.tpcc.judge.metrics import TYPES as NAMES
from plugin.evidence.records import MalformedRecord
from tests.plugin.judge.histories import SECOND
from tests.plugin.judge.loads import histogram, load


def test_the_names_of_the_types_are_the_records() -> None:
    assert NAMES == TYPES


def second(t: int, orders: tuple[int, int], latency_ms: int, **fields: object) -> TpccSecond:
    types = dict.fromkeys(TYPES, TypeSecond())
    types["new_order"] = TypeSecond(
        ok=orders[0], rolled_back=orders[1], histogram=histogram(sum(orders), 1000 * latency_ms)
    )
    types["payment"] = TypeSecond(ok=1, histogram=histogram(1, 5000))
    return replace(TpccSecond(t=t * SECOND, types=types), **fields)  # type: ignore[arg-type]


def test_tpmc_counts_the_measured_seconds_only_and_what_rolled_back_too() -> None:
    run = load(
        warehouses=2,
        seconds=3,
    )
    run = replace(
        run,
        seconds=(
            second(10, (50, 0), 900, measured=False),
            second(11, (3, 0), 10, cpu_s=1.0, retries={"40001": 2}, lag_ms=1.0),
            second(12, (4, 1), 20, cpu_s=1.4, errors={"08003": 1}, lag_ms=9.0, ambiguous=1),
            second(13, (2, 0), 30, cpu_s=1.6, retries={"40001": 1, "57P01": 1}, lag_ms=4.0, reconnects=2),
            second(14, (70, 5), 900, measured=False),
            second(15, (9, 0), 900, measured=False),
        ),
    )
    found = figures(run)
    assert (found.seconds, found.tpmc) == (3, 60 * 10 / 3)
    assert found.efc == pytest.approx(100 * 200 / (12.86 * 2))
    assert found.capacity_share == pytest.approx(100 * 200 / (12.605 * 2))
    assert found.finished == {
        "new_order": 10,
        "payment": 3,
        "order_status": 0,
        "delivery": 0,
        "stock_level": 0,
    }
    assert found.just_after == 75, "one second, and what rolled back in it too"
    assert found.mix["new_order"] == pytest.approx(100 * 10 / 13)
    assert found.retries == {"40001": 3, "57P01": 1}
    assert (found.errors, found.ambiguous, found.reconnects) == ({"08003": 1}, 1, 2)
    assert found.cpu_share == pytest.approx(0.3)
    assert (found.lag_p95_ms, found.lag_max_ms) == (9.0, 9.0)


def test_latencies_by_type_and_of_all() -> None:
    one = new_histogram()
    for latency_ms in range(1, 101):
        one.record_value(1000 * latency_ms)
    types = dict.fromkeys(TYPES, TypeSecond())
    types["new_order"] = TypeSecond(ok=100, histogram=encode(one))
    types["stock_level"] = TypeSecond(ok=100, histogram=histogram(100, 1_000_000))
    run = replace(load(), seconds=(TpccSecond(t=SECOND, types=types),))
    found = figures(run).latencies
    assert set(found) == {"all", "new_order", "stock_level"}
    orders = found["new_order"]
    assert orders.count == 100
    for value, expected in (
        (orders.avg_ms, 50.5),
        (orders.p50_ms, 50),
        (orders.p90_ms, 90),
        (orders.p95_ms, 95),
        (orders.p99_ms, 99),
        (orders.max_ms, 100),
        (found["all"].p50_ms, 100),
        (found["all"].p90_ms, 1000),
        (found["all"].avg_ms, 525.25),
    ):
        assert value == pytest.approx(expected, rel=0.01)
    assert orders.avg_ms == pytest.approx(one.get_mean_value() / 1e3, rel=1e-3)
    assert figures(run).p90_s == pytest.approx({"new_order": 0.09, "stock_level": 1.0}, rel=0.01)


def test_a_run_in_which_nothing_was_measured_has_no_figures() -> None:
    found = figures(replace(load(), seconds=(second(1, (5, 0), 10, measured=False),)))
    assert (found.seconds, found.tpmc, found.efc, found.capacity_share) == (0, None, None, None)
    assert (found.latencies, found.mix, found.cpu_share) == ({}, {}, None)


def test_cpu_is_of_a_process() -> None:
    assert figures(load(cpu=0.8, processes=4)).cpu_share == pytest.approx(0.2)


def test_no_share_without_warehouses() -> None:
    assert share(100.0, 0, 12.86) is None
    assert share(None, 10, 12.86) is None
    assert share(128.6, 10, 12.86) == pytest.approx(100)


def test_a_histogram_that_is_none() -> None:
    types = dict.fromkeys(TYPES, TypeSecond(ok=1, histogram="bm90IG9uZQ=="))
    with pytest.raises(MalformedRecord, match="cannot be read"):
        figures(replace(load(), seconds=(TpccSecond(t=SECOND, types=types),)))
