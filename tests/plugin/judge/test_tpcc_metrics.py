"""The metrics and conditions of TPC-C runs on arms made by hand, and the verdicts they lead to."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import exp
from typing import Any

import pytest

from fixtures.workloads.tpcc.evidence import TYPES, TpccRun, TpccSecond, TypeSecond
from fixtures.workloads.tpcc.judge.conditions import TPCC_CONDITIONS
from fixtures.workloads.tpcc.judge.loads import Loads
from fixtures.workloads.tpcc.judge.metrics import TPCC_METRICS
from plugin.catalogue import load as load_catalogue
from plugin.evidence.records import Event
from plugin.judge.arm import ArmEvidence, HostSecond
from plugin.judge.comparison import ratio
from plugin.judge.conditions import advice, condition
from plugin.judge.metrics import measure
from tests.plugin.judge.histories import SECOND, arm, event
from tests.plugin.judge.loads import PACK, begin, evidence, load, pairs, ramp

RATIO, LOSS = "tpmc_ratio_interval", "tpmc_loss_interval"
EQUAL = {"3 nodes": 97.0, "6 nodes": 97.0, "9 nodes": 97.0, "3 nodes (A/A)": 97.0}
VERSIONS = {"v1 #1": 97.0, "v2 #1": 97.0, "v1 #1 (A/A)": 97.0}
DECLARED = {"looks": [5, 8, 12], "alpha": 0.022, "arms": ["v1 #1", "v2 #1"]}
STEPS = [(100, 97.0), (200, 96.5), (400, 96.0), (480, 90.0), (560, 60.0)]


def whole_pairs(**options: Any) -> ArmEvidence:
    return pairs(EQUAL, **{"limits": {RATIO: 10.0}, **options})


def whole_ramp() -> ArmEvidence:
    return ramp(STEPS, limits={"capacity_warehouses": 400, "efc_below_knee": 94})


def value(of: ArmEvidence, metric: str) -> float:
    found = measure(of, metric)
    assert found.unit == TPCC_METRICS[metric].unit
    assert found.value is not None, found.note
    return found.value


@pytest.mark.parametrize("metric", TPCC_METRICS)
def test_what_a_planned_claim_measures_is_known(metric: str) -> None:
    assert TPCC_METRICS[metric].unit
    named = {
        c.metric: c.unit
        for claim in ("parity", "parity-resources", "stress", "regression")
        for c in load_catalogue().claim(claim).checks
    }
    assert set(named) <= {*TPCC_METRICS, "nodes_died", "inconsistent"}
    if metric in named:
        assert named[metric] == TPCC_METRICS[metric].unit


def test_the_ratio_interval_is_that_of_the_worst_pair() -> None:
    of = pairs({"a": 97.0, "b": 95.0, "c": 96.0}, limits={RATIO: 10.0}, warehouses=1000)
    found = measure(of, RATIO)
    assert found.value == pytest.approx(100 * (97 / 95 - 1), abs=0.9)
    assert "b / a, 1000 warehouses: 0.979" in found.note
    assert "holds at a margin of 10 %" in found.note
    assert "look 1 of 3 with 95.6 % intervals" in found.note
    assert "smallest difference it could have seen" in found.note
    turned = pairs({"a": 95.0, "b": 97.0, "c": 96.0}, limits={RATIO: 10.0}, warehouses=1000)
    assert value(turned, RATIO) == pytest.approx(value(of, RATIO), abs=0.6)


def test_the_loss_interval_is_its_worse_end() -> None:
    of = pairs({"v1 #1": 97.0, "v2 #1": 92.0}, declared=DECLARED, limits={LOSS: 10.0}, warehouses=1000)
    logs = of_logs(of)
    one = ratio("", logs, 0.022)
    assert one.interval is not None
    assert value(of, LOSS) == pytest.approx(100 * (1 - exp(one.interval[0])))
    assert 100 * (1 - 92 / 97) < value(of, LOSS) < 7
    gained = pairs({"v1 #1": 97.0, "v2 #1": 99.0}, declared=DECLARED, limits={LOSS: 10.0}, warehouses=1000)
    assert value(gained, LOSS) < 0
    assert measure(pairs(VERSIONS), LOSS).note.startswith("the old and the new arm were not declared")


def of_logs(of: ArmEvidence) -> list[float]:
    found = Loads(of).pairs(LOSS)
    assert found is not None
    (logs,) = found.pairs.values()
    return [*logs]


def test_figures_of_parity_are_the_worst_arms() -> None:
    of = pairs(
        {"3 nodes": 97.0, "6 nodes": 95.0},
        warehouses=1000,
        change={"3 nodes": {"latency_ms": 50.0}, "6 nodes": {"latency_ms": 40.0}},
    )
    assert value(of, "efc") == pytest.approx(95, abs=0.2)
    assert value(of, "tpmc") == pytest.approx(0.95 * 12860, rel=0.002)
    assert value(of, "latency_p90_ms") == pytest.approx(50, rel=0.01)
    assert "6 nodes, 1000 warehouses 40" in measure(of, "latency_p90_ms").note
    assert "(n = 5)" in measure(of, "efc").note
    assert 0 < value(of, "smallest_difference_seen") < 1


def test_figures_of_a_ramp_are_those_of_its_capacity() -> None:
    of = whole_ramp()
    assert value(of, "capacity_warehouses") == 480
    assert value(of, "capacity_share") == pytest.approx(90 * 12.86 / 12.605, abs=0.1)
    assert value(of, "efc") == pytest.approx(90, abs=0.1)
    assert value(of, "tpmc") == pytest.approx(0.9 * 12.86 * 480, rel=0.001)
    assert value(of, "efc_below_knee") == pytest.approx(96, abs=0.1)
    assert "at 400 warehouses" in measure(of, "efc_below_knee").note
    for kind in TYPES:
        assert value(of, f"{kind}_p90_s") == pytest.approx(0.03, rel=0.01)
    for name in ("avg", "p50", "p90", "p95", "p99", "max"):
        assert value(of, f"latency_{name}_ms") == pytest.approx(30, rel=0.01)


def test_a_ramp_judged_by_the_p90_of_one_type() -> None:
    slow = {**dict.fromkeys(TYPES, 30.0), "delivery": 5500.0}
    told = [
        begin(
            load(f"w{size}", warehouses=size, seed=size, begin=size, latency_ms=ms),
            f"{size} warehouses",
            "",
            0,
        )
        for size, ms in ((100, 30.0), (200, slow))
    ]
    of = evidence(told)
    assert value(of, "capacity_warehouses") == 100
    assert "p90 of delivery 5.5 s (at most 5 asked)" in measure(of, "capacity_warehouses").note


def test_no_load_passes() -> None:
    of = ramp([(100, 60.0), (200, 30.0)])
    assert value(of, "capacity_warehouses") == 0
    assert measure(of, "capacity_share").value is None
    assert measure(of, "efc_below_knee").value is None
    assert value(of, "efc") == pytest.approx(60, abs=0.1), "the smallest load stands for it"


def test_one_load_is_no_ramp() -> None:
    found = measure(ramp([(100, 97.0)]), "capacity_warehouses")
    assert (found.value, found.note) == (None, "only one load was tried, which is no ramp")


def test_cpu_is_of_the_servers_where_known_and_else_of_the_host() -> None:
    told, run = begin(load(), "10 warehouses", "", 0)
    host = [HostSecond(t=t * SECOND, cpu=20.0 if t < 13 else 60.0) for t in range(100)]
    of = evidence([(told, run)], host=host)
    assert value(of, "cpu") == 60.0
    ends = [replace(e, data={**e.data, "cpu_percent": 33}) if e.name == "run.end" else e for e in of.events]
    assert value(replace(of, events=ends), "cpu") == 33
    assert measure(evidence([(told, run)]), "cpu").value is None


def both_drivers(builtin_efc: float, **options: Any) -> ArmEvidence:
    told: list[tuple[Event, TpccRun]] = []
    for block in range(3):
        for name, efc in (("native", 97.0), ("builtin", builtin_efc)):
            run = load(
                f"{name}{block}",
                warehouses=100,
                driver=name,
                efc=efc,
                seed=block,
                begin=100 * len(told),
                **options,
            )
            told.append(begin(run, "100 warehouses", "3 nodes", block))
    return evidence(told)


def test_the_drivers_numbers_check_each_other_and_our_own_decides() -> None:
    assert value(both_drivers(96.5), "driver_difference") == pytest.approx(-0.5, abs=0.1)
    assert "within the noise" in measure(both_drivers(96.5), "driver_difference").note
    assert "−10.3 %, beyond the noise of 3." in measure(both_drivers(87.0), "driver_difference").note
    few = measure(both_drivers(87.0, waits=False, seconds=2), "driver_difference")
    assert "within the noise" in few.note, "without think times it is the orders that count"
    assert "beyond the noise" in measure(both_drivers(87.0, waits=False), "driver_difference").note
    assert condition(both_drivers(50.0), "tpcc_complete").met, "one driver does not take the other's place"
    assert value(both_drivers(50.0), "efc") == pytest.approx(97, abs=0.1)
    assert measure(both_drivers(50.0), RATIO).note == "no cell has two arms"
    assert measure(whole_pairs(), "driver_difference").note == "the drivers were never run in one cell"


def test_a_run_that_no_event_speaks_of_is_measured_all_the_same() -> None:
    of = arm(workloads={"tpcc": {"r01": load()}})
    assert value(of, "efc") == pytest.approx(97, abs=0.5)
    assert condition(of, "tpcc_complete").met


@pytest.mark.parametrize("name", TPCC_CONDITIONS)
def test_whole_arms_meet_every_condition(name: str) -> None:
    made = {"knee_found": whole_ramp, "efc_told_from_noise": whole_ramp, "tpcc_hit": killed}
    of = made.get(name, whole_pairs)()
    found = condition(of, name)
    assert found.met, found.why
    assert found.why
    assert advice(name)


def killed(*, clients: int = 2, reconnects: int = 1) -> ArmEvidence:
    """A run of which a node with so many clients was killed; so many connections were opened again in each later second."""
    run = load("r1", second={"reconnects": reconnects})
    at = run.seconds[5].t / SECOND
    fault = event(at, "fault.begin", fault="kill", nodes=["n1"], connections={"n1": clients, "n2": 2})
    whole = evidence([begin(run, "x", "a", 0)])
    return replace(whole, events=[*whole.events, fault, event(at + 3, "recovered")])


def undeclared(of: ArmEvidence) -> ArmEvidence:
    return replace(of, events=[e for e in of.events if e.name != "comparison.declared"])


def late(of: ArmEvidence) -> ArmEvidence:
    told = [e for e in of.events if e.name == "comparison.declared"]
    return replace(of, events=[*undeclared(of).events, *told])


def changed(of: ArmEvidence, name: str, **options: Any) -> ArmEvidence:
    return replace(
        of, workloads={"tpcc": {**of.workloads["tpcc"], name: load(name, warehouses=100, **options)}}
    )


def unreadable(of: ArmEvidence) -> ArmEvidence:
    types = dict.fromkeys(TYPES, TypeSecond(ok=1, histogram="bm9uZQ=="))
    broken = replace(load("b0a0"), seconds=(TpccSecond(t=SECOND, types=types),))
    return replace(of, workloads={"tpcc": {**of.workloads["tpcc"], "b0a0": broken}})


BROKEN: Mapping[str, tuple[str, Callable[[], ArmEvidence], str]] = {
    "cut off": ("tpcc_complete", lambda: changed(whole_pairs(), "b0a0", problems=("it was cut off at 4 s",), end=None), "run b0a0: it was cut off"),
    "a hole": ("tpcc_complete", lambda: changed(whole_pairs(), "b1a2", problems=("no record between 4 s and 9 s",)), "run b1a2: no record between"),
    "stopped": ("tpcc_complete", lambda: changed(whole_pairs(), "b1a2", end="stopped"), "ended by 'stopped'"),
    "no file": ("tpcc_complete", lambda: replace(whole_pairs(), workloads={"tpcc": {k: v for k, v in whole_pairs().workloads["tpcc"].items() if k != "b2a1"}}), "run b2a1 left no evidence"),
    "no end": ("tpcc_complete", lambda: replace(whole_pairs(), events=[e for e in whole_pairs().events if e.name != "run.end" or e.data["run"] != "b0a0"]), "its end was never recorded"),
    "unreadable": ("tpcc_complete", lambda: unreadable(whole_pairs()), "run b0a0: histogram"),
    "two in one place": ("tpcc_complete", lambda: evidence([begin(load("r1"), "x", "a", 1), begin(load("r2"), "x", "a", 1)]), "2 runs of a in x, block 1"),
    "wrong mix": ("tpcc_audited", lambda: changed(whole_pairs(), "b3a1", mix={**PACK, "payment": 20}), "run b3a1: new_order by the specification"),
    "wrong choices": ("tpcc_audited", lambda: changed(whole_pairs(), "b3a1", audit={"remote_payments": 900}), "run b3a1: remote payments"),
    "slightly wrong in every run": ("tpcc_audited", lambda: pairs({"a": 97.0}, blocks=12, audit={"rolled_back": 25}), "(12 runs together)"),
    "no fault": ("tpcc_hit", whole_pairs, "no fault was recorded"),
    "a node without clients": ("tpcc_hit", lambda: killed(clients=0), "0 connections held before"),
    "nothing lost": ("tpcc_hit", lambda: killed(reconnects=0), "the fault did not hit the run: kill of n1: 2 connections held before; 0 opened again, 0"),
    "late": ("generator_not_starved", lambda: changed(whole_pairs(), "b4a3", lag_ms=400.0), "run b4a3: it was 400 ms late"),
    "busy": ("generator_not_starved", lambda: changed(whole_pairs(), "b4a3", cpu=0.97), "run b4a3: it used 97% of a core"),
    "not declared": ("enough_pairs", lambda: undeclared(whole_pairs()), "no looks were declared"),
    "declared late": ("enough_pairs", lambda: late(whole_pairs()), "before the first run"),
    "declared nonsense": ("enough_pairs", lambda: whole_pairs(declared={"looks": [5, 5]}), "the declared looks cannot be used"),
    "declared too lax": ("enough_pairs", lambda: whole_pairs(declared={"looks": [5, 8, 12], "alpha": 0.05}), "let more than 5 % through; at most 0.022"),
    "one pair": ("enough_pairs", lambda: whole_pairs(blocks=1), "n = 1 shows no spread: the first look asks for 5 pairs"),
    "four pairs": ("enough_pairs", lambda: whole_pairs(blocks=4), "the first look asks for 5 pairs; about 5 pairs would settle it"),
    "four pairs, no margin": ("enough_pairs", lambda: whole_pairs(blocks=4, limits={}), "n = 4: the first look asks for 5 pairs"),
    "too noisy": ("enough_pairs", lambda: pairs({"a": 97.0, "b": 92.0}, wiggle=9, waits=False, limits={RATIO: 8.0}), "pairs would settle it"),
    "all saturated": ("enough_pairs", lambda: pairs({"a": 97.0, "b": 60.0}, limits={RATIO: 8.0}), "every cell is saturated: b at 100 warehouses"),
    "no versions": ("enough_pairs", lambda: pairs(VERSIONS, limits={LOSS: 8.0}), "the old and the new arm were not declared"),
    "twice, but saturated": ("aa_pair_quiet", lambda: pairs({"a": 60.0, "b": 60.0, "a (A/A)": 60.0}, limits={RATIO: 10.0}), "every cell is saturated"),
    "never twice": ("aa_pair_quiet", lambda: pairs({"a": 97.0, "b": 97.0}, limits={RATIO: 10.0}), "no arm was run twice (A/A)"),
    "loud": ("aa_pair_quiet", lambda: pairs({"a": 97.0, "b": 97.0, "a (A/A)": 80.0}, waits=False, limits={RATIO: 10.0}), "an arm differs from itself: a (A/A), 100 warehouses: 0.82"),
    "loud, no margin": ("aa_pair_quiet", lambda: pairs({"a": 97.0, "b": 97.0, "a (A/A)": 94.0}, waits=False), "an arm differs from itself"),
    "no step fails": ("knee_found", lambda: ramp(STEPS[:3], limits={"capacity_warehouses": 500}), "it may carry more"),
    "untried stretch": ("knee_found", lambda: ramp(STEPS, limits={"capacity_warehouses": 500}), "480 warehouses pass and 560 do not: the limit of 500 lies between"),
    "one step": ("knee_found", lambda: ramp(STEPS[:1]), "fewer than two loads"),
    "efficiency by chance": ("efc_told_from_noise", lambda: ramp([(5, 92.0), (10, 97.0), (20, 40.0)], limits={"efc_below_knee": 94}), "94 % is missed by less than chance explains"),
    "nothing below": ("efc_told_from_noise", lambda: ramp([(10, 60.0), (20, 40.0)]), "no load below the knee"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "made", "why"), BROKEN.values(), ids=BROKEN)
def test_what_breaks_a_condition_is_named(name: str, made: Callable[[], ArmEvidence], why: str) -> None:
    found = condition(made(), name)
    assert not found.met
    assert why in found.why


def test_a_saturated_steps_mix_is_excused_but_not_that_of_all_steps() -> None:
    skewed = {**PACK, "payment": 16}
    told = [
        begin(
            load(f"w{size}", warehouses=size, seed=size, begin=size, efc=efc, mix=mix),
            f"{size} warehouses",
            "",
            0,
        )
        for size, efc, mix in ((100, 97.0, PACK), (1000, 40.0, skewed))
    ]
    assert condition(evidence(told), "tpcc_audited").met
    only = [begin(load("w1000", warehouses=1000, efc=40.0, mix=skewed), "1000 warehouses", "", 0)]
    assert not condition(evidence(only), "tpcc_audited").met


def test_a_capacity_that_reaches_its_limit_needs_no_failing_step() -> None:
    assert condition(ramp(STEPS[:3], limits={"capacity_warehouses": 400}), "knee_found").met
    assert condition(ramp(STEPS, limits={"capacity_warehouses": 600}), "knee_found").met


def test_an_efficiency_far_below_the_limit_is_no_chance() -> None:
    of = ramp([(1000, 90.0), (2000, 97.0), (4000, 40.0)], limits={"efc_below_knee": 94})
    assert condition(of, "efc_told_from_noise").met
