"""What reports say of TPC-C runs: comparisons, the papers' table, sentences, seconds, and the source's tables beside it."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.workloads.tpcc.progress import last_tpmc
from fixtures.workloads.tpcc.reports.charts import forest, ramps
from fixtures.workloads.tpcc.reports.found import Tpcc
from fixtures.workloads.tpcc.reports.tables import seconds_csv, table_csv
from fixtures.workloads.tpcc.reports.words import HEAD, arm_in_words, rows, sentences, told
from plugin.judge.comparison import equivalence
from plugin.reports.said import decided
from plugin.reports.stored import StoredArm
from plugin.reports.terminal import WIDTH, section_lines
from tests.plugin.reports.samples import run_of
from tests.plugin.reports.tpcc_samples import arm_of, found_in, parity, seconds_in, stress


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tpcc")


@pytest.fixture(scope="module")
def equal(home: Path) -> StoredArm:
    return arm_of(parity(home / "equal"))


@pytest.fixture(scope="module")
def both(home: Path) -> StoredArm:
    """Both drivers ran, and tell different things."""
    return arm_of(parity(home / "both", builtin=80.0))


@pytest.fixture(scope="module")
def capped(home: Path) -> StoredArm:
    """Without think times six nodes reach less: no cell is saturated, and the claim is refuted."""
    arms = {"3 nodes": 300.0, "6 nodes": 240.0}
    return arm_of(parity(home / "capped", arms=arms, run={"waits": False, "mix": MIX}))


@pytest.fixture(scope="module")
def ramped(home: Path) -> StoredArm:
    return arm_of(stress(home / "ramped"))


MIX = {"new_order": 10, "payment": 10, "order_status": 1, "delivery": 1, "stock_level": 1}


def column(found: Tpcc, name: str) -> list[str]:
    return [row.cells[HEAD.index(name)] for row in rows(found)]


# ---- comparisons


def test_a_comparison_is_what_the_judge_saw(equal: StoredArm) -> None:
    (of,) = found_in(equal).comparisons
    assert (of.metric, of.figure, of.percent) == ("tpmc_ratio_interval", "tpmC", 10)
    assert of.lower == pytest.approx(math.exp(equivalence(10).lower))
    ratio, noise = of.ratios
    assert (ratio.second, ratio.first, ratio.cell, ratio.n, ratio.noise) == ("6 nodes", "3 nodes", "20 warehouses", 3, False)  # fmt: skip
    assert (noise.second, noise.noise, noise.n, noise.low) == ("3 nodes (A/A)", True, 1, None)
    assert equal.verdict is not None
    note = next(
        r["measurement"]["note"] for r in equal.verdict["results"] if r["check"]["metric"] == of.metric
    )
    assert f"{ratio.mean:.3f} ({ratio.low:.3f} to {ratio.high:.3f}, n = 3)" in note
    assert f"smallest difference it could have seen {of.visible:.1f} %" in note
    assert of.look == "look 1 of 1 (at 3 pairs), with 90 % intervals"


def test_the_verdict_is_a_sentence(equal: StoredArm, capped: StoredArm) -> None:
    why, points = decided(equal)
    assert why.startswith("Six nodes reached 0.9")
    assert "of the tpmC of three nodes at 20 warehouses (0." in why
    assert why.endswith("n = 3), within ±10 %; all 3 judged checks hold; 7 more only reported")
    assert points == ()
    assert capped.result.outcome == "fail"
    why, points = decided(capped)
    assert why.startswith("Six nodes reached 0.799 of ")
    assert why.endswith("n = 3), outside ±10 %")
    assert [point.name for point in points] == ["tpmc_ratio_interval"]
    assert (points[0].text, points[0].meaning != "") == ("", True), "the sentence has said it"


def test_a_sabotage_that_turned_red_says_so(home: Path) -> None:
    run = parity(
        home / "sabotage", arms={"3 nodes": 300.0, "6 nodes": 240.0}, run={"waits": False, "mix": MIX},
        described={"sabotage": True, "about": "six nodes get less CPU"},
    )  # fmt: skip
    arm = arm_of(run)
    assert arm.result.expected == "refuted"
    assert decided(arm)[0].startswith(
        "refuted, as it must be: Six nodes reached 0.799 of the tpmC of three nodes"
    )


def test_every_decision_has_its_words(equal: StoredArm) -> None:
    (of,) = found_in(equal).comparisons
    one = replace(of.ratios[0], mean=0.998, low=0.985, high=1.011)
    assert told(one, of) == "six nodes reached 0.998 of the tpmC of three nodes at 20 warehouses (0.985 to 1.011, n = 3), within ±10 %"  # fmt: skip
    crossing = replace(one, decision="undecided")
    assert told(crossing, of).endswith("the interval crosses the margin of ±10 %")
    assert told(replace(one, low=None, high=None, n=1), of).count("(one pair has no interval, n = 1)") == 1
    assert told(one, replace(of, percent=None)).endswith("(0.985 to 1.011, n = 3)")
    loss = replace(of, upper=None, percent=2.0)
    assert told(one, loss).endswith("a loss of less than 2 %")
    assert told(replace(one, decision="refuted"), loss).endswith("a loss of more than 2 %")
    assert told(crossing, loss).endswith("a loss of 2 % can be neither shown nor ruled out")
    versions = replace(one, first="v20.2", second="v21.1")
    assert told(versions, loss).startswith("v21.1 reached 0.998 of the tpmC of v20.2 at ")


@pytest.mark.parametrize(
    ("name", "words"),
    [("6 nodes", "six nodes"), ("12 nodes", "twelve nodes"), ("15 nodes", "15 nodes"), ("1 node", "one node"),
     ("3 nodes with 70 % of the CPU", "three nodes with 70 % of the CPU"), ("small", "small")],
)  # fmt: skip
def test_arms_in_words(name: str, words: str) -> None:
    assert arm_in_words(name) == words


def test_before_the_first_look_nothing_is_said_for_good(home: Path) -> None:
    arm = arm_of(parity(home / "short", blocks=2))
    said = sentences(found_in(arm))
    assert said[0].endswith("n = 2), so far within ±10 %")
    assert any(line.startswith("Open: the first look asks for 3 pairs") for line in said)
    assert found_in(arm).comparisons[0].look == "before the first look (at 3 pairs), with 90 % intervals"


def test_an_old_and_a_new_version(home: Path) -> None:
    checks = [{"metric": "tpmc_loss_interval", "comparison": "<=", "limit": 5, "kind": "relative", "mark": "R", "source": "", "unit": "%", "needs": []}]  # fmt: skip
    run = parity(
        home / "versions", arms={"v20.2": 97.0, "v21.1": 96.5}, versions=("v20.2", "v21.1"),
        described={"claim": "one-of-ours", "checks": checks, "needs": []},
    )  # fmt: skip
    found = found_in(arm_of(run))
    (of,) = found.comparisons
    assert (of.metric, of.percent, of.upper) == ("tpmc_loss_interval", 5, None)
    assert of.lower == pytest.approx(0.95)
    assert sentences(found)[0].startswith("v21.1 reached 0.99")
    assert sentences(found)[0].endswith("a loss of less than 5 %")
    drawn = forest(of)
    assert drawn["margin"] == "a loss of less than 5 %"
    assert drawn["left"] + drawn["wide"] == 100


# ---- the papers' table


def test_the_table_has_a_line_for_each_arm(equal: StoredArm) -> None:
    found = found_in(equal)
    assert column(found, "arm") == ["3 nodes", "3 nodes (A/A)", "6 nodes"]
    assert column(found, "runs") == ["3", "1", "3"]
    assert column(found, "WH") == ["20"] * 3
    assert column(found, "remarks") == ["", "A/A: the same arm again", ""]
    assert [row.repeats for row in rows(found)] == [False, True, False]
    assert column(found, "CPU % (headroom)")[1] == "42.0 (58.0)"
    for line, tpmc, efc in zip(found.lines, column(found, "tpmC"), column(found, "efc %"), strict=True):
        assert (tpmc, efc) == (f"{line.tpmc:.1f}", f"{line.efc:.1f}")
    text = table_csv(found).splitlines()
    assert text[0].startswith("cell,arm,driver,remarks,runs,WH,tpmC,efc %,of 12.605 %,avg ms,p50 ms,p90 ms")
    assert len(text) == 4
    shares = (1.0, 1.2, 0.0)
    skipped = tuple(replace(line, skipped=each) for line, each in zip(found.lines, shares, strict=True))
    assert column(replace(found, lines=skipped), "remarks") == [
        "",
        "A/A: the same arm again; 1.2 % of the districts had no order to deliver",
        "",
    ]


def test_a_saturated_arm_is_named_and_the_other_one_is_not_blamed(home: Path) -> None:
    found = found_in(arm_of(parity(home / "saturated", arms={"3 nodes": 96.9, "6 nodes": 83.0})))
    assert column(found, "remarks") == [
        "not compared: another arm is saturated",
        "A/A: the same arm again; not compared: another arm is saturated",
        "saturated: not compared",
    ]
    assert [value.startswith("! ") for value in column(found, "efc %")] == [False, False, True]
    assert [row.saturated for row in rows(found)] == [False, False, True]
    assert found.comparisons == ()
    (line,) = sentences(found)
    assert line.startswith("Saturated, left out of the comparison: 6 nodes at 20 warehouses: efc 83.")


def test_a_ramp_names_its_capacity_and_marks_what_breaks_a_limit(ramped: StoredArm) -> None:
    found = found_in(ramped)
    remarks = dict(zip(column(found, "WH"), column(found, "remarks"), strict=True))
    assert remarks["120"] == "passes"
    assert remarks["160"] == "saturated; passes: capacity"
    assert remarks["200"] == "saturated; does not pass"
    by_size = dict(zip(column(found, "WH"), rows(found), strict=True))
    assert by_size["160"].over == {"efc %"}
    assert {"of 12.605 %", "new-order p90 s (≤ 5)"} <= by_size["240"].over
    assert by_size["240"].cells[HEAD.index("stock-level p90 s (≤ 20)")].startswith("! ")
    (line,) = sentences(found)
    assert line == decided(ramped)[0].rpartition("; all ")[0]
    assert line.startswith(
        "The cluster carried 160 warehouses by efficiency and p90 by type; 200 do not pass: 6"
    )
    assert line.endswith("past saturation tpmC falls, from 1868 at 160 to 1266 at 240")


def test_what_no_load_passes_is_said(home: Path) -> None:
    found = found_in(arm_of(stress(home / "none", steps=[(20, 60.0, 9000), (10, 70.0, 30)])))
    assert sentences(found)[0].startswith("The cluster carried no load that was tried: 10 do not pass: 7")
    (drawn,) = ramps(found)
    assert drawn["marks"] == [{"arm": "3 nodes", "capacity": 0, "open": False}]


def test_drivers_that_disagree_are_a_finding(both: StoredArm, home: Path) -> None:
    (drivers,) = found_in(both).drivers
    assert drivers.cell == "3 nodes, 20 warehouses"
    assert len(drivers.disagreements) == 1
    assert drivers.disagreements[0].startswith("tpmC: the native driver found 249.7, the built-in one 206")
    assert sentences(found_in(both))[-1].startswith(
        "The two drivers disagree at 3 nodes, 20 warehouses (249.8 tpmC"
    )
    assert column(found_in(both), "driver") == ["native", "native", "native", "builtin"]
    agreeing = found_in(arm_of(parity(home / "agreeing", builtin=97.0)))
    assert agreeing.drivers[0].disagreements == ()
    assert sentences(agreeing)[-1].startswith("The two drivers agree at 3 nodes, 20 warehouses, within noise")


def test_the_terminal_s_short_form_fits(both: StoredArm, ramped: StoredArm) -> None:
    lines = section_lines(both.sections["tpcc"])
    assert max(map(len, lines)) <= WIDTH
    assert any(line.split() == ["20", "3", "nodes,", "builtin", "3", "206.0", "80.1", *line.split()[7:]] for line in lines)  # fmt: skip
    assert any("A/A: the same arm again" in line for line in lines)
    assert any(line.strip().startswith("The two drivers disagree") for line in lines)
    lines = section_lines(ramped.sections["tpcc"])
    assert max(map(len, lines)) <= WIDTH
    assert sum("does not pass" in line for line in lines) == 2


# ---- seconds


def test_every_second_of_a_run_and_the_gap_after_it(equal: StoredArm) -> None:
    series = seconds_in(equal)
    assert series.every == 1, "4 new-orders a second are enough to be shown one by one"
    first, second = found_in(equal).runs[:2]
    assert (first.name, first.ramp, first.measured, first.until) == ("r01", 14, 19, 59)
    measured = [value for value in series.tpmc[19:59] if value is not None]
    assert sum(measured) / 40 == pytest.approx(first.tpmc, rel=0.01)
    assert set(series.run[14:59]) == {"r01"}
    assert second.ramp == 72
    assert set(series.tpmc[60:72]) == {None}
    assert all(low is None or low <= high for low, high in zip(series.latency["p50"], series.latency["p99"], strict=True) if high)  # fmt: skip
    assert list(series.lanes) == ["3 nodes", "3 nodes (A/A)", "6 nodes"]
    assert [(band.begin, band.end, band.name) for band in series.lanes["3 nodes"][:3]] == [
        (6, 14, "r01 loading"), (14, 19, "r01 ramp"), (19, 59, "r01 measured"),
    ]  # fmt: skip
    text = seconds_csv(series, found_in(equal)).splitlines()
    assert (
        text[0] == "second,run,arm,cell,doing,tpmC,p50 ms,p90 ms,p99 ms,failed a second,made again a second"
    )
    assert text[31].startswith("30,r01,3 nodes,20 warehouses,r01 measured,2")
    assert text[62].startswith("61,,,,,,,,")


def test_few_new_orders_are_shown_as_means(home: Path) -> None:
    series = seconds_in(arm_of(parity(home / "few", warehouses=2)))
    assert series.every == 10
    assert len(set(series.tpmc[19:29])) == 1


def test_the_tpmc_of_the_last_seconds(equal: StoredArm, tmp_path: Path) -> None:
    lines = (equal.directory / "tpcc-r01.jsonl").read_text().splitlines(keepends=True)
    assert last_tpmc(tmp_path) is None
    running = tmp_path / "tpcc-r01.jsonl"
    running.write_text("".join(lines[:30]) + '{"t": 5')
    orders = sum(_orders(lines[20:30]))
    assert last_tpmc(tmp_path) == pytest.approx(60 * orders / 10)
    (tmp_path / "tpcc-r01-1.jsonl").write_text("".join(lines[:30]))
    assert last_tpmc(tmp_path) == pytest.approx(120 * orders / 10)


def _orders(lines: list[str]) -> list[int]:
    return [json.loads(line)["types"]["new_order"]["ok"] for line in lines]


# ---- what a run may leave


def test_a_run_that_was_cut_off_is_shown_up_to_there(home: Path) -> None:
    run = parity(home / "cut", end=False, judged=False)
    arm = next(run.rglob("arm.json")).parent
    lines = (arm / "tpcc-r03.jsonl").read_text().splitlines(keepends=True)
    (arm / "tpcc-r03.jsonl").write_text("".join(lines[:20]))
    (arm / "tpcc-r04.jsonl").write_text("")
    events = (arm / "events.jsonl").read_text().splitlines(keepends=True)
    (arm / "events.jsonl").write_text("".join(line for line in events if '"r05"' not in line or "run.end" not in line))  # fmt: skip
    found = found_in(arm_of(run))
    assert [line.partition(" left")[0] for line in sentences(found) if "left no evidence" in line] == [
        "Run r04"
    ]
    assert "Run r05 did not end" in sentences(found)
    assert next(run.until for run in found.runs if run.name == "r03") is not None


def test_nothing_of_tpcc_is_said_of_an_arm_without_it(tmp_path: Path) -> None:
    arm = arm_of(run_of(tmp_path / "ledger"))
    assert arm.series is not None
    assert arm.sections == {}


def test_secrets_in_the_names_of_arms_are_not_shown(home: Path) -> None:
    secret = "postgresql://root:hunter2@localhost/db"
    found = found_in(arm_of(parity(home / "secret", arms={"3 nodes": 97.0, f"{secret} 6": 96.8})))
    assert "hunter2" not in repr(found)
    assert len(found.lines) == 3
