"""Every metric on a whole trial, worked out by hand, and on a trial without evidence."""

import dataclasses
import itertools
import re
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from fixtures.workloads.ledger.judge.rows import SAFETY
from fixtures.workloads.ledger.records import (
    Failed,
    GeneratorSecond,
    HistoryLine,
    Invoke,
    Ok,
    Op,
    RowCount,
    numbers,
)
from fixtures.workloads.tenants.judge.growth import GROWTH_METRICS as TENANT_GROWTH_METRICS
from fixtures.workloads.tenants.judge.load_metrics import LOAD_METRICS
from fixtures.workloads.tenants.judge.metrics import TENANTS_METRICS
from fixtures.workloads.tpcc.judge.beside import BESIDE_METRICS
from fixtures.workloads.tpcc.judge.metrics import TPCC_METRICS
from plugin.evidence.events import Event
from plugin.judge.conditions import KNOWN_CONDITIONS
from plugin.judge.decide import decide
from plugin.judge.growth_metrics import GROWTH_METRICS
from plugin.judge.metrics import KNOWN_METRICS, measure
from plugin.judge.mixed import MIXED_METRICS
from plugin.judge.model import Check, Comparison, Kind, Measurement, Outcome
from plugin.judge.objects import OBJECTS_METRICS
from plugin.judge.swapping import SWAPPING_METRICS
from tests.plugin.judge.histories import SECOND, event, events, probe, trial
from tests.plugin.judge.whole_trial import OFTEN, RATE, history, last_read, whole

ROWS = 27 * RATE
EXPECTED = {
    **dict.fromkeys(SAFETY, 0.0),
    "rows_missing": 0,
    "rows_counted": 27 * OFTEN,
    "sampled_row_mismatch": 0,
    "acknowledged": 27 * OFTEN,
    "indeterminate": 0,
    "inserts_shortfall": 0,
    "failed_undisturbed": 0,
    "gap_s": 3.0,
    "gap_undisturbed_s": 0.1,
    "victim_gap_s": 5.0,
    "degraded_s": 2.0,
    "throughput_buckets_kept": 6 / 8,
    "throughput_before": OFTEN,
    "throughput_during": OFTEN,
    "throughput_after": OFTEN,
    "served_after": 3000 / (10.1 * OFTEN) * 100,
    "latency_p50_before_ms": 2,
    "latency_p50_during_ms": 2,
    "latency_p50_after_ms": 2,
    "latency_p99_before_ms": 2,
    "latency_p99_during_ms": 2,
    "latency_p99_after_ms": 2,
    "unrecovered": 0,
    "recovery_s": 5.0,
    "repair_s": 8.0,
    "acknowledged_without_quorum": None,
    "unresumed": 0,
    "nodes_died": 0,
    "resumed_s": 0.0,
    "inconsistent": None,
    "nodes_down_at_once": 1,
    "nodes_with_old_resources": None,
    "throughput_kept_scaling": None,
    "client_wait_s": 0.0,
    "client_wait_undisturbed_s": 0.0,
    "failed_scaling": None,
    "failed_disturbed": 0,
    "gap_scaling_s": None,
    "gap_resuming_s": None,
    "client_wait_resuming_s": None,
    "failed_resuming": None,
    "gap_unscaled_s": None,
    "away_again_scaling": None,
    "errors_undisturbed": 0,
    "latency_p99_scaling_ms": None,
    "errors_not_retryable": 0,
    "read_back_wrong": None,
    **dict.fromkeys(SWAPPING_METRICS),
    **dict.fromkeys(MIXED_METRICS),
    **dict.fromkeys(OBJECTS_METRICS),
    **dict.fromkeys(BESIDE_METRICS),
    **dict.fromkeys(LOAD_METRICS),
    **dict.fromkeys(TENANTS_METRICS),
    **dict.fromkeys(TENANT_GROWTH_METRICS),
}


@pytest.mark.parametrize("metric", [name for name in KNOWN_METRICS if name not in {*TPCC_METRICS, *GROWTH_METRICS}])
def test_a_whole_trial(metric: str) -> None:
    found = measure(whole(history=history(rate=OFTEN)), metric)
    assert found.metric == metric
    assert found.unit == KNOWN_METRICS[metric].unit
    if EXPECTED[metric] is None:
        assert found.value is None
    else:
        assert found.value == pytest.approx(EXPECTED[metric], abs=0.0021)


@pytest.mark.parametrize("metric", KNOWN_METRICS)
def test_without_evidence_there_is_no_value_and_the_note_says_why(metric: str) -> None:
    found = measure(trial(), metric)
    assert found.value is None
    assert found.note


@pytest.mark.parametrize("metric", KNOWN_METRICS)
def test_what_a_metric_needs_exists(metric: str) -> None:
    info = KNOWN_METRICS[metric]
    assert info.description
    assert not re.match("[a-z][A-Z]", info.description), "what is called TPC-C is so at the beginning, too"
    assert not info.description.startswith("the same"), "reports sort checks by what came of them"
    assert info.needs
    assert set(info.needs) <= set(KNOWN_CONDITIONS)


def test_a_metric_nobody_knows_has_no_value() -> None:
    found = measure(whole(), "happiness")
    assert found.value is None
    assert "recorded nothing" in found.note


def test_a_metric_that_the_test_recorded() -> None:
    own = Measurement(metric="warmth_k", value=12.5, unit="s")
    assert measure(whole(measurements=[own]), "warmth_k") is own
    twice = measure(whole(measurements=[own, own]), "warmth_k")
    assert twice.value is None
    assert "2 times" in twice.note


def test_a_metric_that_was_never_recorded_names_those_that_were() -> None:
    """Else nobody sees that a name is misspelt."""
    assert measure(trial(), "warmth_k").note == "the test recorded nothing under this name"
    misspelt = trial(measurements=[Measurement(metric="warmht_k", value=12.5)])
    found = measure(misspelt, "warmth_k")
    assert (found.value, found.note) == (None, "the test recorded nothing under this name; it recorded warmht_k")


def test_a_recorded_measurement_does_not_replace_what_the_judge_measures() -> None:
    assert measure(whole(measurements=[Measurement(metric="gap_s", value=0.0)]), "gap_s").value == pytest.approx(3.0)


@pytest.mark.parametrize(("counted", "missing"), [(ROWS - 3, 3), (ROWS, 0), (ROWS + 2, 2)])
def test_rows_missing_is_how_far_the_count_is_off(counted: int, missing: int) -> None:
    lines = history()
    final = [line for line in last_read(lines) if not isinstance(line, RowCount)]
    found = measure(whole(final=[*final, RowCount(31 * SECOND, counted)]), "rows_missing")
    assert found.value == missing
    assert re.search(
        r"rows counted(, \d+ read one by one)?; \d+ were inserted and \d+ deleted, \d+ expected$", found.note
    )
    assert measure(whole(final=final), "rows_missing").value is None


def test_inserts_shortfall() -> None:
    assert measure(whole(parameters={"inserts": str(ROWS + 7)}), "inserts_shortfall").value == 7
    assert measure(whole(parameters={}), "inserts_shortfall").value is None


def blocked(
    *writes: tuple[float, float], late: Mapping[int, int] | None = None, cut: float | None = None
) -> float | None:
    """A majority is gone from 12.1 to 20 s; writes sent and acknowledged at these times.

    ``late``: the generator's lag in seconds, by the second that it recorded it in; ``cut``: where the history ends.
    """
    told = events(
        fault_begin={"nodes": ["n1"], "blocks": True}, fault_undo={"at": 20.0}, fault_undone={"at": 21.0},
        recovered={"at": 22.0},
    )  # fmt: skip
    lags = {second * SECOND: lag * SECOND for second, lag in (late or {}).items()}
    lines = [
        replace(line, lag_us=lags.get(line.t, line.lag_us)) if isinstance(line, GeneratorSecond) else line
        for line in history(quiet=range(12, 22))
    ]
    more = [
        line
        for n, (sent, done) in enumerate(writes)
        for line in (
            Invoke(int(sent * SECOND), 10**6 + n, "w1", "n3", Op.INSERT, numbers([20000 + n]), 1),
            Ok(int(done * SECOND), 10**6 + n, numbers()),
        )
    ]
    lines = sorted([*lines[:-1], *more], key=lambda line: line.t) + lines[-1:]
    lines = [line for line in lines if cut is None or line.t < cut * SECOND]
    return measure(whole(events=told, history=lines), "acknowledged_without_quorum").value


def test_acknowledged_without_quorum() -> None:
    assert blocked() == 0
    assert blocked((11.9, 12.5), (12.05, 12.5), (12.5, 20.5), (21, 22)) == 0
    assert blocked((12.5, 13), (14.9, 14.99)) == 2


def test_what_was_sent_while_a_majority_lived_counts_by_its_acknowledgement() -> None:
    """But for answers that were on their way, or that the clients' process was late to read just then."""
    assert blocked((11.999, 14.9), (12.05, 13.2)) == 2
    assert blocked((11.999, 14.9), late={15: 2}) == blocked((11.999, 14.9), late={14: 2}) == 0
    assert blocked((11.999, 14.9), late={15: 1}) == 1
    assert blocked((11.999, 14.9), late={15: 2}, cut=14.95) == 0, "the lag was recorded after the cut"
    assert blocked((12.5, 14.9), cut=14.95) == 1


def test_a_generator_that_is_late_once_excuses_no_write_of_another_second() -> None:
    """Twenty that were acknowledged nine seconds after the majority was gone passed for a lag of a later second."""
    twenty = [(11.999, 16.5 + n / 1000) for n in range(20)]
    assert blocked(*twenty, late={19: 9}) == blocked(*twenty, late={13: 9}) == 20
    assert blocked(*twenty, late={17: 9}) == 0


@pytest.mark.parametrize(
    ("away", "gap"),
    [(range(30, 70), 4.1), (range(240, 291), 5.2), (range(105, 200), 1.6), (range(121, 240), 4.0)],
    ids=["before the fault", "after recovery", "into the fault", "out of the recovery"],
)
@pytest.mark.parametrize("whose", ["", "n1/"], ids=["everybody's", "the victim's"])
def test_an_outage_as_far_as_no_fault_explains_it(away: range, gap: float, whose: str) -> None:
    """The fault begins at 12 s and recovery is declared at 20 s: from then on the victim's gateway counts, too."""
    watched = probe(lambda route, tenth: tenth not in away or not route.startswith(whose))
    found = measure(whole(probe=watched), "gap_undisturbed_s")
    assert found.value == pytest.approx(gap)
    assert measure(whole(probe=None), "gap_undisturbed_s").value is None


def test_the_gateway_of_a_node_that_nobody_brought_back_is_not_missed() -> None:
    dead = probe(lambda route, tenth: not (route.startswith("n1/") and tenth > 120))
    gone = events(fault_undo=None, fault_undone=None)
    assert measure(whole(probe=dead), "gap_undisturbed_s").value == pytest.approx(10.9)
    assert measure(whole(probe=dead, events=gone), "gap_undisturbed_s").value == pytest.approx(0.1)


@pytest.mark.parametrize("victim", ["n1/", "n2/"])
def test_between_two_faults_an_outage_is_explained_by_neither(victim: str) -> None:
    """Of both nodes' gateways: each was back when recovery was declared."""
    second = [
        event(26, "fault.begin", fault="kill", nodes=["n2"]),
        event(26.1, "fault.bit", node="n2", proof="gone"),
        event(27, "fault.undo", nodes=["n2"]),
        event(27.5, "fault.undone", nodes=["n2"]),
        event(28, "recovered"),
    ]
    told = sorted([*events(), *second], key=lambda e: e.t)
    watched = probe(lambda route, tenth: not (route.startswith(victim) and 205 <= tenth < 255))
    found = measure(whole(events=told, probe=watched), "gap_undisturbed_s")
    assert found.value == pytest.approx(5.1)
    assert re.match(rf"bucket \d through {victim[:2]}, 2\d\.\d s to 2\d\.\d s$", found.note)


def test_an_outage_counts_from_the_first_write_on() -> None:
    """Which comes before the baseline: rows must be acknowledged until that begins."""
    late = events(baseline_begin={"at": 6.0})
    watched = probe(lambda route, tenth: not 15 <= tenth < 55)
    found = measure(whole(events=late, probe=watched), "gap_undisturbed_s")
    assert found.value == pytest.approx(4.1)
    assert found.note.endswith("1.4 s to 5.5 s")


def test_rows_are_counted_as_they_were_read_one_by_one() -> None:
    """A write that is indeterminate leaves room between the least and the most rows, but not between two readings."""
    lines = history()
    unsure = [Invoke(29 * SECOND, 10**6, "w1", "n3", Op.INSERT, numbers([ROWS]), 1)]
    lines = sorted([*lines[:-1], *unsure], key=lambda line: line.t) + lines[-1:]
    read = [line for line in last_read(lines, without=(ROWS,)) if not isinstance(line, RowCount)]
    for counted, missing in ((ROWS, 0), (ROWS + 1, 1), (ROWS - 1, 1)):
        told = [*read, RowCount(31 * SECOND, counted)]
        assert measure(whole(history=lines, final=told), "rows_missing").value == missing


def deleting() -> list[HistoryLine]:
    """A healthy history in whose second half every tenth row is deleted again, and some are overwritten."""
    lines, op = history(), itertools.count(10**9)
    for key in range(0, ROWS // 3, 10):
        for kind, at, version in ((Op.UPDATE, 21, 2), (Op.DELETE, 24, 2)):
            t, number = at * SECOND + 100 * key, next(op)
            lines[-1:-1] = [
                Invoke(t, number, "w2", "n2", kind, numbers([key]), version), Ok(t + 50, number, numbers())
            ]  # fmt: skip
    return sorted(lines, key=lambda line: line.t)


WRONG = (*SAFETY, "rows_missing", "sampled_row_mismatch", "read_back_wrong", "unresumed")


def test_no_cut_of_a_healthy_history_refutes_anything() -> None:
    """Deletes and updates came after the cut, and inserts, too. All of it is told by a whole history alone."""
    lines = deleting()
    gone = {line.keys[0] for line in lines if isinstance(line, Invoke) and line.kind is Op.DELETE}
    final = last_read(lines, without=tuple(gone))
    checks = [
        Check(metric=name, comparison=Comparison.EQ, limit=0, kind=Kind.ABSOLUTE, mark="R", source="") for name in WRONG
    ]
    assert decide(whole(history=lines, final=final), checks).outcome is Outcome.PASS
    for at in (1, *range(500, len(lines), 1500), len(lines) - 1):
        cut = whole(history=lines[:at], final=final)
        verdict = decide(cut, checks)
        assert verdict.outcome is Outcome.INCONCLUSIVE, (at, verdict.why)
        lost = measure(cut, "lost")
        assert lost.value is None
        assert "no end" in lost.note


def test_without_an_operation_nothing_is_a_phantom() -> None:
    for name in ("phantom", "rows_missing", "sampled_row_mismatch"):
        found = measure(whole(history=history()[-1:], final=last_read(history())), name)
        assert found.value is None
        assert "tells of no operation" in found.note
    cut = [*(line for line in history() if line.t < 20 * SECOND), history()[-1]]
    assert measure(whole(history=cut, final=last_read(history())), "phantom").value == 10 * RATE


def test_what_reads_saw_before_a_history_was_cut_off_counts() -> None:
    """And that a row was there twice in the final read, or altered."""
    lines = [
        replace(line, seen_text=numbers([2])) if isinstance(line, Ok) and line.seen else line for line in history()
    ]
    cut = whole(history=[line for line in lines if line.t < 20 * SECOND], final=last_read(history()))
    assert measure(cut, "phantom").value == 17, "a row a second"
    doubled = [*last_read(history())]
    doubled.insert(1, doubled[0])
    cut = whole(history=[line for line in history() if line.t < 20 * SECOND], final=doubled)
    assert measure(cut, "duplicated").value == 1


def test_without_proof_of_the_fault_nothing_is_said_about_the_quorum() -> None:
    told = events(fault_begin={"blocks": True}, fault_bit=None)
    assert measure(whole(events=told), "acknowledged_without_quorum").value is None


def test_resumed() -> None:
    assert measure(whole(history=history(quiet=range(12, 18))), "resumed_s").value == pytest.approx(2.002)
    assert measure(whole(history=history(until=14)), "resumed_s").value is None


def test_nothing_is_acknowledged_any_more() -> None:
    lines = history(quiet=range(14, 30))
    found = measure(whole(history=lines), "unresumed")
    assert found.value == 1
    assert "0 writes acknowledged in the" in found.note
    assert measure(whole(history=lines, events=events(writing_end=None)), "unresumed").value is None
    stopped = measure(whole(history=history(until=14)), "unresumed")
    assert (stopped.value, stopped.note) == (None, "the clients stood still themselves, for 16.1 s")


def test_a_node_that_ended_by_itself() -> None:
    found = measure(whole(events=[*events(), event(25, "node.died", node="n2", code=-6)]), "nodes_died")
    assert found.value == 1
    assert found.examples == ("n2 ended by itself at 25.0 s, exit code -6",)


def test_a_node_of_an_old_version_that_ended_by_itself_is_no_fault_of_the_new_one() -> None:
    """Which cluster it was of is told by the one that was provisioned last."""

    def died(*at: float) -> Measurement:
        clusters = [event(t, "provision.begin", nodes=["n1"], **old) for t, old in ((1, {"old": True}), (5, {}))]
        deaths = [event(t, "node.died", node="n1", code=-6) for t in at]
        told = sorted([*clusters, *deaths], key=lambda each: each.t)
        return measure(trial(events=[event(0, "trial.begin"), *told]), "nodes_died")

    assert died().value == 0
    assert died(6).value == 1
    old = died(3)
    assert (old.value, old.note) == (
        None, "of the old version alone: n1 ended by itself at 3.0 s, exit code -6"
    )  # fmt: skip
    assert died(3, 6).value == 1


def test_recovery_counts_from_the_last_undoing() -> None:
    second = [
        event(16.5, "fault.begin", fault="kill", nodes=["n2"]),
        event(17, "fault.bit", node="n2", proof="gone"),
        event(18, "fault.undo", nodes=["n2"]),
        event(19, "fault.undone", nodes=["n2"]),
    ]
    told = sorted([*events(), *second], key=lambda e: e.t)
    assert measure(whole(events=told), "recovery_s").value == 2.0
    assert measure(whole(events=told), "repair_s").value == 8.0


def test_a_cluster_that_does_not_recover_in_time() -> None:
    told = [*events(recovered=None), event(25, "not_recovered", limit_s=9, why="n1 is down")]
    found = measure(whole(events=told), "unrecovered")
    assert found.value == 1
    assert "n1 is down" in found.note
    assert measure(whole(events=events(recovered=None)), "unrecovered").value is None


def test_a_gap_without_recovery_says_so() -> None:
    assert "never declared" in measure(whole(events=events(recovered=None)), "gap_s").note


def looking(begin: float, end: float | None) -> list[Event]:
    """The whole trial's events, and a step of a plan that looks at the cluster."""
    steps = [event(begin, "step.begin", number=7, kind="look", says="look")]
    steps += [] if end is None else [event(end, "step.end", number=7)]
    return sorted([*events(), event(11.5, "step.begin", number=6, kind="swap"), *steps], key=lambda told: told.t)


def test_how_fast_the_load_is_served_is_not_judged_while_a_plan_looks_at_the_cluster() -> None:
    lines = history(rate=OFTEN)
    kept = measure(whole(history=lines, events=looking(13.2, 14.5)), "throughput_buckets_kept")
    assert kept.value == 1.0
    assert kept.note.startswith("6 of 6 buckets of 1 s")
    assert kept.note.endswith("; 2 (2 s) in which the plan looked at the cluster do not count")
    degraded = measure(whole(history=lines, events=looking(14.0, 14.5)), "degraded_s")
    assert degraded.value == 1.0
    assert degraded.note.endswith("; 1 (1 s) in which the plan looked at the cluster do not count")
    few = measure(whole(history=lines, events=looking(13.2, None)), "throughput_buckets_kept")
    assert few.value is None
    assert few.note.startswith("too few buckets, at least 5 asked: 1 of 1 bucket of 1 s")
    assert measure(whole(history=lines, events=looking(12.0, 30.0)), "throughput_buckets_kept").value is None


def test_a_single_bucket_of_few_refutes_nothing() -> None:
    """A node that joined a healthy cluster was once refuted by 17 of 18 buckets."""
    lines, limits = history(rate=OFTEN), {"throughput_buckets_kept": 0.95}
    one = measure(
        dataclasses.replace(whole(history=lines, events=looking(14.0, 14.5)), limits=limits), "throughput_buckets_kept"
    )
    assert one.value is None
    assert one.note.startswith("undecided at 0.95: a single bucket of so few is no finding: 6 of 7 buckets of 1 s")
    two = measure(dataclasses.replace(whole(history=lines), limits=limits), "throughput_buckets_kept")
    assert (two.value, two.note[:11]) == (6 / 8, "6 of 8 buck")


def test_whatever_goes_wrong_while_a_plan_looks_at_the_cluster_counts() -> None:
    lines = history()
    found = whole(events=looking(12.0, 30.0), history=lines, final=last_read(lines, without=(ROWS // 2,)))
    assert measure(found, "lost").value == 1
    assert measure(found, "gap_s").value == pytest.approx(3.0)
    assert measure(found, "victim_gap_s").value == pytest.approx(5.0)
    failed: list[HistoryLine] = [
        Invoke(13 * SECOND, 10**7, "w1", "n2", Op.INSERT, numbers([9]), 1),
        Failed(13 * SECOND + 9, 10**7, "XX000"),
    ]
    wrong = sorted([*lines[:-1], *failed], key=lambda line: line.t) + lines[-1:]
    assert measure(whole(events=looking(12.0, 30.0), history=wrong), "errors_not_retryable").value == 1
