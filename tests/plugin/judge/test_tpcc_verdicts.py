"""The verdicts on arms of TPC-C runs made by hand, the looks that lead to them, and the way from the files."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.workloads.tpcc.evidence import TpccRun, tpcc_end_line, tpcc_header_line, tpcc_second_line
from fixtures.workloads.tpcc.judge.loads import look
from fixtures.workloads.tpcc.judge.metrics import TPCC_METRICS
from fixtures.workloads.tpcc.judge.table import table
from plugin.catalogue import load as load_catalogue
from plugin.evidence.load import describe_arm, load_arm
from plugin.evidence.records import event_line
from plugin.evidence.store import ArmStore
from plugin.judge.arm import ArmEvidence
from plugin.judge.comparison import Decision
from plugin.judge.conditions import condition
from plugin.judge.decide import decide
from plugin.judge.metrics import measure
from plugin.judge.model import Check, Comparison, Kind, Outcome, Verdict
from tests.plugin.judge.histories import arm, event
from tests.plugin.judge.loads import PACK, begin, evidence, load, pairs, ramp

RATIO, LOSS = "tpmc_ratio_interval", "tpmc_loss_interval"
EQUAL = {"3 nodes": 97.0, "6 nodes": 97.0, "9 nodes": 97.0, "3 nodes (A/A)": 97.0}
VERSIONS = {"v1 #1": 97.0, "v2 #1": 97.0, "v1 #1 (A/A)": 97.0}
DECLARED = {"looks": [5, 8, 12], "alpha": 0.022, "arms": ["v1 #1", "v2 #1"]}
STEPS = [(100, 97.0), (200, 96.5), (400, 96.0), (480, 90.0), (560, 60.0)]


def whole_pairs(**options: Any) -> ArmEvidence:
    return pairs(EQUAL, **{"limits": {RATIO: 10.0}, **options})


def check(metric: str, limit: float, comparison: Comparison = Comparison.LE) -> Check:
    return Check(metric=metric, comparison=comparison, limit=limit, kind=Kind.RELATIVE, mark="R", source="")


def judged(of: ArmEvidence, metric: str = RATIO, limit: float = 10.0) -> Verdict:
    return decide(replace(of, limits={}), [check(metric, limit)])


def test_equal_arms_pass_and_different_ones_are_refuted() -> None:
    assert judged(whole_pairs()).outcome is Outcome.PASS
    slower = {**EQUAL, "9 nodes": 70.0}
    verdict = judged(pairs(slower, waits=False))
    assert verdict.outcome is Outcome.FAIL
    assert RATIO in verdict.why
    verdict = judged(pairs(slower))
    assert verdict.outcome is Outcome.INCONCLUSIVE, "with think times the arm is saturated, not slower"
    assert "every cell is saturated: 9 nodes at 100 warehouses" in verdict.why


def test_the_margin_is_the_checks_limit() -> None:
    near = pairs({**EQUAL, "9 nodes": 95.0}, waits=False, wiggle=0.3, warehouses=1000)
    assert judged(near, limit=3.0).outcome is Outcome.PASS
    assert judged(near, limit=2.1).outcome is Outcome.INCONCLUSIVE
    assert judged(near, limit=1.0).outcome is Outcome.FAIL


@pytest.mark.parametrize("metric", [RATIO, LOSS])
@pytest.mark.parametrize("limit", [0.0, -5.0])
def test_a_limit_that_is_no_margin_decides_nothing(metric: str, limit: float) -> None:
    verdict = judged(pairs(VERSIONS, declared=DECLARED, warehouses=1000), metric, limit)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "is no margin" in verdict.results[0].why


def test_an_undecided_comparison_is_inconclusive_and_says_how_many_pairs_it_takes() -> None:
    verdict = judged(pairs({**EQUAL, "9 nodes": 90.0}, waits=False, wiggle=5))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "pairs would settle it" in verdict.why
    assert "run as many pairs as the reason says" in verdict.why


def test_a_block_without_one_of_the_arms_is_named() -> None:
    """Five pairs were declared; of one the run of an arm is missing, so that only four are there."""
    whole = pairs(EQUAL)
    runs = {name: run for name, run in whole.workloads["tpcc"].items() if name != "b2a1"}
    events = [e for e in whole.events if e.data.get("run") != "b2a1"]
    verdict = judged(replace(whole, workloads={"tpcc": runs}, events=events))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "100 warehouses, block 2: no run of 6 nodes" in verdict.why


@pytest.mark.parametrize("new", [100.0, 97.0, 91.0, 80.0, 60.0])
def test_the_gate_of_a_new_version(new: float) -> None:
    """Faster or as fast passes, slower by more than the margin is refuted, saturated by it or not."""
    verdict = judged(pairs({**VERSIONS, "v2 #1": new}, declared=DECLARED, warehouses=1000), LOSS, 10.0)
    assert verdict.outcome is (Outcome.PASS if new > 90 else Outcome.FAIL)


def test_a_gate_on_old_versions_that_is_saturated_itself_says_nothing() -> None:
    verdict = judged(pairs({"v1 #1": 60.0, "v2 #1": 50.0}, declared=DECLARED, warehouses=1000), LOSS)
    assert verdict.outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("condition_name", "change"),
    [
        ("tpcc_audited", {"mix": {**PACK, "payment": 20}}),
        ("generator_not_starved", {"cpu": 0.97}),
        ("generator_not_starved", {"lag_ms": 900.0}),
        ("tpcc_complete", {"end": None}),
    ],
)
@pytest.mark.parametrize("efc", [97.0, 70.0])
def test_poor_evidence_neither_passes_nor_refutes(
    condition_name: str, change: Mapping[str, Any], efc: float
) -> None:
    of = pairs({**EQUAL, "9 nodes": efc}, waits=False, change={"9 nodes": change})
    verdict = judged(of)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert condition_name in verdict.why


def test_an_arm_that_differs_from_itself_makes_it_inconclusive() -> None:
    for other in (97.0, 70.0):
        of = pairs({"a": 97.0, "b": other, "a (A/A)": 80.0}, waits=False)
        verdict = judged(of)
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert "an arm differs from itself" in verdict.why


def test_the_planned_claims_checks_are_judged() -> None:
    catalogue = load_catalogue()
    parity = [c for c in catalogue.claim("parity").checks_for("laptop") if c.metric in TPCC_METRICS]
    verdict = decide(replace(whole_pairs(), limits={}), parity)
    assert verdict.outcome is Outcome.PASS
    unknown = {
        "cpu",
        "headroom",
        "headroom_lost",
        "saturated_tpmc_ratio_interval",
        "driver_difference",
        "past_saturation",
    }
    assert all(r.measurement.value is not None for r in verdict.results if r.check.metric not in unknown)
    stress = [c for c in catalogue.claim("stress").checks_for("small") if c.metric in TPCC_METRICS]
    good = ramp([(400, 97.0), (600, 92.0), (700, 60.0)])
    assert decide(good, stress).outcome is Outcome.PASS
    assert decide(ramp([(200, 97.0), (400, 92.0), (450, 60.0)]), stress).outcome is Outcome.FAIL
    assert decide(ramp([(200, 97.0), (400, 92.0), (600, 60.0)]), stress).outcome is Outcome.INCONCLUSIVE
    assert decide(ramp([(400, 90.0), (600, 91.0), (700, 60.0)]), stress).outcome is Outcome.FAIL


def test_an_event_that_names_no_run_is_told() -> None:
    of = arm(events=[event(1, "run.begin", cell="x", arm="a", block="first")])
    assert condition(of, "tpcc_complete").why == "run None left no evidence"


def test_a_test_runs_on_only_while_a_look_is_open() -> None:
    checks = [check(RATIO, 10.0)]
    assert look(whole_pairs(blocks=5), []) == ()
    assert look(pairs({"a": 97.0, "b": 50.0}), checks) == (), "no comparable cell"
    (short,) = look(whole_pairs(blocks=4), checks)
    assert (short.decision, short.look) == (Decision.UNDECIDED, 0)
    (early,) = look(whole_pairs(blocks=5), checks)
    assert (early.decision, early.look, early.n) == (Decision.HOLDS, 1, 5)
    noisy = {"waits": False, "wiggle": 30}
    (five,) = look(whole_pairs(blocks=5, **noisy), checks)
    (eight,) = look(whole_pairs(blocks=8, **noisy), checks)
    assert (five.decision, five.look) == (Decision.UNDECIDED, 1)
    assert (eight.look, eight.n) == (2, 8)


def test_latencies_can_be_compared_too() -> None:
    of = pairs({"a": 97.0, "b": 97.0, "a (A/A)": 97.0}, change={"b": {"latency_ms": 45.0}})
    assert measure(of, "latency_p90_ratio_interval").value == pytest.approx(50, abs=1)
    assert measure(of, "latency_p99_ratio_interval").value == pytest.approx(50, abs=1)
    assert judged(of, "latency_p90_ratio_interval", 20).outcome is Outcome.FAIL
    assert judged(of, "efc_ratio_interval", 5).outcome is Outcome.PASS
    assert judged(of, "latency_p90_ratio_interval", 60).outcome is Outcome.PASS


def test_the_table_has_a_line_for_each_arm() -> None:
    of = whole_pairs(blocks=2, second={"retries": {"40001": 1}, "errors": {"08003": 2}, "ambiguous": 1})
    lines = table(of)
    assert [(line.arm, line.runs, line.repeats) for line in lines] == [
        ("3 nodes", 2, False), ("6 nodes", 2, False), ("9 nodes", 2, False), ("3 nodes (A/A)", 2, True),
    ]  # fmt: skip
    one = lines[0]
    assert (one.cell, one.driver, one.warehouses, one.comparable, one.passes) == (
        "100 warehouses",
        "native",
        100,
        True,
        True,
    )
    assert (one.retries, one.errors, one.ambiguous, one.cpu) == (120, {"08003": 240}, 120, None)
    assert one.skipped == 0
    assert one.efc == pytest.approx(97, abs=0.5)
    assert one.latency is not None
    assert one.latency.p90_ms == pytest.approx(30, rel=0.01)
    steps = table(ramp([(200, 60.0), (100, 97.0)]))
    assert [(line.warehouses, line.passes) for line in steps] == [(100, True), (200, False)]
    assert table(arm()) == ()
    empty = load(audit={"deliveries": 30, "skipped_deliveries": 6})
    assert [line.skipped for line in table(evidence([begin(empty, "a cell", "a", 0)]))] == [2.0]
    mixed = [
        begin(load(f"w{size}", warehouses=size), "one cell", "a", index)
        for index, size in enumerate((10, 20))
    ]
    assert [line.warehouses for line in table(evidence(mixed))] == [10, 20]


# ---- the way from the files


def written(run: TpccRun, directory: Path, *, whole: bool = True, name: str | None = None) -> None:
    assert run.audit is not None
    lines = [
        tpcc_header_line(run.header),
        *map(tpcc_second_line, run.seconds),
        tpcc_end_line("duration", run.audit),
    ]
    text = "".join(lines if whole else lines[:30])
    (directory / (name or f"tpcc-{run.header.run}.jsonl")).write_text(text)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """An arm of parity as a test leaves it: its events, a file for each run, and the host's load."""
    of = whole_pairs()
    description = {
        "claim": "parity",
        "parameters": {},
        "profile": "laptop",
        "seed": 1,
        "context": {},
        "checks": [],
        "needs": [],
        "tuned": [],
    }
    store = ArmStore(tmp_path / "arm", description)
    store.close()
    told = [*of.events, event(9999, "arm.end")]
    (store.directory / "events.jsonl").write_text("".join(map(event_line, told)))
    for run in of.workloads["tpcc"].values():
        written(run, store.directory)
    (store.directory / "host.jsonl").write_text(
        "".join(f'{{"t": {t * 10**6}, "cpu_percent": 42.0, "load_1m": 1.0}}\n' for t in range(2500))
        + '{"t": 1, "cpu'
    )
    return store.directory


def loaded(directory: Path) -> ArmEvidence:
    from plugin.evidence.store import seal

    seal(directory)
    return load_arm(directory, describe_arm(directory))


def test_a_stored_arm_is_judged_from_its_files(stored: Path) -> None:
    of = loaded(stored)
    assert of.problems == ()
    assert len(of.workloads["tpcc"]) == 20
    verdict = judged(of)
    assert verdict.outcome is Outcome.PASS
    assert measure(of, "cpu").value == pytest.approx(42)


def test_a_run_that_was_cut_off_is_named(stored: Path) -> None:
    written(load("b0a1", warehouses=100), stored, whole=False)
    of = loaded(stored)
    assert of.problems == ()
    found = condition(of, "tpcc_complete")
    assert not found.met
    assert "run b0a1: tpcc-b0a1.jsonl: was cut off" in found.why
    assert judged(of).outcome is Outcome.INCONCLUSIVE


def test_nonsense_in_a_run_lets_nothing_be_relied_on(stored: Path) -> None:
    with (stored / "tpcc-b0a1.jsonl").open("a") as file:
        file.write("nonsense\n")
    of = loaded(stored)
    assert any(problem.startswith("run b0a1: tpcc-b0a1.jsonl: line 65") for problem in of.problems)
    assert judged(of).outcome is Outcome.INCONCLUSIVE


def test_a_run_of_several_processes_is_one(stored: Path) -> None:
    run = load("b0a1", warehouses=100, processes=2)
    (stored / "tpcc-b0a1.jsonl").unlink()
    for process in (0, 1):
        header = replace(run.header, process=process)
        written(replace(run, header=header), stored, name=f"tpcc-b0a1-{process}.jsonl")
    of = loaded(stored)
    assert len(of.workloads["tpcc"]) == 20
    assert of.workloads["tpcc"]["b0a1"].problems == ()
    (stored / "tpcc-b0a1-1.jsonl").write_text("")
    assert "b0a1-1" in loaded(stored).problems[0]
