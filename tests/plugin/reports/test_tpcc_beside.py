"""What charts of TPC-C runs are drawn from, and the source's whole tables beside what was measured."""

from dataclasses import replace
from typing import Any

import pytest

from fixtures.workloads.tpcc.reports.charts import forest, ramps, strips
from fixtures.workloads.tpcc.reports.paper_tables import printed, printed_ramp
from fixtures.workloads.tpcc.reports.tables import ratios_csv
from plugin.catalogue import load
from plugin.reports import paper
from plugin.reports.stored import StoredArm
from plugin.reports.terminal import paper_lines
from tests.plugin.reports.tpcc_samples import arm_of, found_in, parity, stress


@pytest.fixture(scope="module")
def equal(tmp_path_factory: pytest.TempPathFactory) -> StoredArm:
    return arm_of(parity(tmp_path_factory.mktemp("beside") / "equal"))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> StoredArm:
    """Both drivers ran, and tell different things."""
    return arm_of(parity(tmp_path_factory.mktemp("beside") / "both", builtin=80.0))


@pytest.fixture(scope="module")
def ramped(tmp_path_factory: pytest.TempPathFactory) -> StoredArm:
    return arm_of(stress(tmp_path_factory.mktemp("beside") / "ramped"))


# ---- charts


def test_the_forest_s_places_are_those_of_the_figures(equal: StoredArm) -> None:
    (of,) = found_in(equal).comparisons
    drawn = forest(of)
    row = drawn["rows"][0]
    assert drawn["left"] < row["low"] < row["mean"] < row["high"] < drawn["left"] + drawn["wide"]
    assert row["mean"] < drawn["one"], "it is below 1"
    assert (row["style"], row["n"], row["name"]) == ("good", 3, "six nodes / three nodes")
    assert drawn["rows"][1]["noise"]
    scale = {tick["text"]: tick["x"] for tick in drawn["axis"]}
    assert scale["1.00"] == pytest.approx(drawn["one"], abs=0.01)
    far = replace(of, ratios=(replace(of.ratios[0], mean=40.0, low=0.001, high=90.0, decision="undecided"),))
    assert forest(far)["rows"][0]["high"] == 100
    assert forest(far)["rows"][0]["low"] == 0


def test_each_run_is_a_dot_of_its_arm(both: StoredArm) -> None:
    (strip,) = strips(found_in(both))
    assert [(row["arm"], row["n"], len(row["dots"])) for row in strip["rows"]] == [
        ("3 nodes, native", 3, 3), ("3 nodes (A/A), native", 1, 1), ("6 nodes, native", 3, 3), ("3 nodes, builtin", 3, 3),
    ]  # fmt: skip
    low, high = strip["rows"][3]["mean"], strip["rows"][0]["mean"]
    assert low < strip["bound"] < high
    assert strip["rows"][1]["dots"][0]["title"].startswith("r02, block 1: 249.0 tpmC, efc 96.8 %, p90 ")


def test_the_source_s_ramp_is_drawn_as_ours_is(ramped: StoredArm) -> None:
    (ours,) = ramps(found_in(ramped))
    assert ours["warehouses"] == [10, 20, 40, 80, 120, 160, 200, 240]
    assert ours["marks"] == [{"arm": "3 nodes", "capacity": 160, "open": False}]
    assert set(ours["latency"]) == {"p90", "p95", "p99"}
    (theirs,) = [printed_ramp(table, "thesis") for table in printed(load().claim("stress"))]
    assert (theirs["warehouses"][0], theirs["warehouses"][-1]) == (10, 2500)
    assert theirs["tpmc"]["tpmC"][:2] == [123.4, 243.6]
    assert theirs["latency"]["p96"][0] == 60.8
    assert theirs["marks"] == [{"arm": "", "capacity": 1500, "open": False}]
    (three,) = [printed_ramp(table, "thesis") for table in printed(load().claim("parity"))]
    assert list(three["tpmc"]) == ["3 nodes", "6 nodes", "9 nodes"]
    assert three["latency"]["avg 6 nodes"][0] == 56
    assert [(mark["arm"], mark["capacity"], mark["open"]) for mark in three["marks"]] == [
        ("3 nodes", 900, False), ("6 nodes", 1500, True), ("9 nodes", 1500, True),
    ]  # fmt: skip


def test_ratios_as_a_table(equal: StoredArm) -> None:
    head, one, noise = ratios_csv(found_in(equal)).splitlines()
    assert head == "figure,second,first,cell,n,ratio,from,to,margin %,visible %,decision"
    assert one.startswith("tpmC,6 nodes,3 nodes,20 warehouses,3,0.99")
    assert one.endswith(",holds")
    assert noise.endswith(",1,1.0000,,,10,,A/A")


# ---- the source's tables


def beside(arm: StoredArm, claim: str | None = None) -> Any:
    assert arm.verdict is not None
    (table,) = paper.beside(load().claim(claim or str(arm.described["claim"])), arm.verdict, machine="2 cores", sections=arm.sections.values())  # fmt: skip
    return table


def test_table_5_3_stands_beside_the_ramp(ramped: StoredArm) -> None:
    table = beside(ramped)
    assert (table.title, table.long) == ("table 5.3", True)
    assert table.head == ("", "warehouses", "tpmc", "efc", "avg ms", "p50 ms", "p90 ms", "p96 ms", "p99 ms", "max ms", "judged")  # fmt: skip
    assert len(table.rows) == 25 + 8 + 5
    assert table.rows[0] == ("thesis printed", "10", "123.4", "96.0", "26.9", "22.0", "46.1", "60.8", "96.5", "142.6", "passes")  # fmt: skip
    assert table.rows[1][:4] == ("measured here", "10", "124.0", "96.4")
    assert table.rows[1][7].endswith(" (p95)")
    assert table.rows[2][:4] == ("ratio", "-", "1.00", "1.00")
    judged = {(row[0], row[1]): row[-1] for row in table.rows}
    assert judged["thesis printed", "1500"] == "passes: capacity"
    assert judged["thesis printed", "1600"] == "does not pass"
    assert judged["measured here", "160"] == "passes: capacity"
    (reading,) = table.reading
    assert reading.startswith("From table 5.3 of the thesis alone the judge finds a capacity of 1500 warehouses by efficiency alone (p90: all types)")  # fmt: skip
    setups = dict(table.setups)
    assert setups["runs here"] == "8 runs (native driver), 30 s measured after a ramp of 5 s"


def test_table_5_5_is_read_by_the_judge_and_stays_inconclusive(equal: StoredArm) -> None:
    table = beside(equal)
    assert table.rows[0][:4] == ("measured here", "20", "3", f"{found_in(equal).lines[0].tpmc:.1f}")
    assert table.rows[2] == ("thesis printed", "100", "3", "1218", "94.7", "64", "comparable")
    assert (
        table.reading[0]
        == "From table 5.5 of the thesis alone the judge says: inconclusive: n = 1, no p90 by type"
    )
    assert (
        table.reading[1]
        == "Comparable there: 100 to 900 warehouses; the 15 ratios lie between −0.4 % and +0.6 %"
    )
    assert table.reading[2].startswith("Not comparable there: 3 nodes at 1100 warehouses: efc 80.2 %, −15.7 % against 6 nodes")  # fmt: skip
    assert "3 nodes 900, 6 nodes 1500 or more" in table.reading[3]
    judged = {row[1:3]: row[-1] for row in table.rows}
    assert judged["1300", "3"] == "saturated"
    assert judged["1300", "6"] == "not comparable: another arm is saturated"


def test_table_5_4_names_small_at_500(equal: StoredArm) -> None:
    table = beside(equal, "parity-resources")
    assert "small at 500 warehouses: efc 92.9 %, −2.1 % against large" in table.reading[2]
    judged = {row[1:3]: row[-1] for row in table.rows}
    assert judged["500", "small"] == "saturated"


def test_the_terminal_has_the_reading_and_the_rows_that_have_an_answer(
    ramped: StoredArm, equal: StoredArm
) -> None:
    assert ramped.verdict is not None
    assert equal.verdict is not None
    lines = paper_lines(load().claim("stress"), ramped.verdict, ramped.sections.values())
    assert sum(line.startswith("  table 5.3, ") for line in lines) == 5
    assert (
        "  table 5.3, 10 warehouses: tpmc 123.4 printed, 124.0 here (1.00); efc 96.0 printed, 96.4 here"
        in lines
    )
    lines = paper_lines(load().claim("parity"), equal.verdict, equal.sections.values())
    assert not any("1218" in line for line in lines)
