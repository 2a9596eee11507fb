"""Every metric on a whole trial, worked out by hand, and on a trial without evidence."""

import itertools
from collections.abc import Iterable, Mapping, Sequence

import pytest
from msgspec.structs import replace

from fixtures.workloads.ledger.judge.metrics import SAFETY
from fixtures.workloads.ledger.records import (
    Failed,
    GeneratorSecond,
    HistoryLine,
    Invoke,
    Ok,
    Op,
    Refused,
    RowCount,
    Unknown,
    answered,
    numbers,
)
from fixtures.workloads.tenants.judge.growth import GROWTH_METRICS as TENANT_GROWTH_METRICS
from fixtures.workloads.tenants.judge.load_metrics import LOAD_METRICS
from fixtures.workloads.tenants.judge.metrics import TENANTS_METRICS
from fixtures.workloads.tpcc.judge.beside import BESIDE_METRICS
from fixtures.workloads.tpcc.judge.metrics import TPCC_METRICS
from plugin.catalogue import load
from plugin.evidence.events import Event
from plugin.judge.conditions import KNOWN_CONDITIONS
from plugin.judge.decide import decide
from plugin.judge.growth_metrics import GROWTH_METRICS
from plugin.judge.metrics import KNOWN_METRICS, measure
from plugin.judge.mixed import MIXED_METRICS
from plugin.judge.model import Check, Comparison, Kind, Measurement, Outcome
from plugin.judge.objects import OBJECTS_METRICS
from plugin.judge.swapping import SWAPPING_METRICS
from plugin.judge.trial import HostSecond
from tests.plugin.judge.histories import SECOND, event, events, probe, trial
from tests.plugin.judge.whole_trial import RATE, history, in_vain, last_read, whole

ROWS = 27 * RATE
EXPECTED = {
    **dict.fromkeys(SAFETY, 0.0),
    "rows_missing": 0,
    "rows_counted": ROWS,
    "sampled_row_mismatch": 0,
    "acknowledged": ROWS,
    "indeterminate": 0,
    "inserts_shortfall": 0,
    "failed_undisturbed": 0,
    "gap_s": 3.0,
    "gap_undisturbed_s": 0.1,
    "victim_gap_s": 5.0,
    "degraded_s": 2.0,
    "throughput_buckets_kept": 6 / 8,
    "throughput_before": RATE,
    "throughput_during": RATE,
    "throughput_after": RATE,
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
    "gap_unscaled_s": None,
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
    found = measure(whole(), metric)
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


def test_a_recorded_measurement_does_not_replace_what_the_judge_measures() -> None:
    assert measure(whole(measurements=[Measurement(metric="gap_s", value=0.0)]), "gap_s").value == pytest.approx(3.0)


@pytest.mark.parametrize(("counted", "missing"), [(ROWS - 3, 3), (ROWS, 0), (ROWS + 2, 2)])
def test_rows_missing_is_how_far_the_count_is_off(counted: int, missing: int) -> None:
    lines = history()
    final = [line for line in last_read(lines) if not isinstance(line, RowCount)]
    found = measure(whole(final=[*final, RowCount(31 * SECOND, counted)]), "rows_missing")
    assert found.value == missing
    assert measure(whole(final=final), "rows_missing").value is None


def test_inserts_shortfall() -> None:
    assert measure(whole(parameters={"inserts": str(ROWS + 7)}), "inserts_shortfall").value == 7
    assert measure(whole(parameters={}), "inserts_shortfall").value is None


def with_failures(kind: Op, at: Iterable[float], answer: type[Failed | Unknown] = Failed) -> list[HistoryLine]:
    """The whole trial's history with an operation beside that fails after a tenth of a second, at each of these times.

    None of those reads that were answered is left where reads fail.
    """
    reads = {line.op for line in history() if isinstance(line, Invoke) and line.kind is Op.READ and kind is Op.READ}
    lines = [line for line in history()[:-1] if not (isinstance(line, Invoke | Ok) and line.op in reads)]
    for number, t in enumerate(at):
        op, key = 10**9 + number, 0 if kind is Op.READ else ROWS + number
        lines.append(Invoke(round(t * SECOND), op, "w3", "n3", kind, numbers([key]), int(kind is not Op.READ)))
        lines.append(answer(round((t + 0.1) * SECOND), op, "XX000"))
    return [*sorted(lines, key=lambda line: line.t), history()[-1]]


EACH_TENTH = [second + 0.05 + tenth / 10 for second in range(1, 30) for tenth in range(10)]


@pytest.mark.parametrize(
    ("kind", "at", "answer", "share"),
    [
        (Op.INSERT, EACH_TENTH, Failed, 100 / 31),
        (Op.INSERT, EACH_TENTH, Unknown, 100 / 31),
        (Op.READ, EACH_TENTH, Failed, 100),
        (Op.INSERT, [t for t in EACH_TENTH if 12 < t < 19.9], Failed, 0),
        (Op.INSERT, [11.95, 30.05], Failed, 0),
        (Op.INSERT, [t for t in EACH_TENTH if 21 < t < 22], Failed, 100 * 10 / (10 + 21 * RATE)),
    ],
    ids=["writes", "unknown", "reads", "disturbed", "over the edge", "once recovered"],
)
def test_the_share_that_fails_while_nothing_is_disturbed(
    kind: Op, at: Sequence[float], answer: type[Failed | Unknown], share: float
) -> None:
    """The baseline, what is before and after it, and what comes once recovery was declared."""
    found = measure(whole(history=with_failures(kind, at, answer)), "failed_undisturbed")
    assert found.value == pytest.approx(share, rel=0.02)
    assert "reads" in found.note


def test_operations_that_fail_while_the_cluster_changes_its_size_are_not_undisturbed() -> None:
    lines = with_failures(Op.INSERT, [t for t in EACH_TENTH if t > 13])
    told = [event(1, "baseline.begin"), event(11, "baseline.end"), event(30.1, "writing.end")]
    assert measure(whole(history=lines, events=told), "failed_undisturbed").value == pytest.approx(2.0, rel=0.1)
    grows = event(12, "scale.begin", kind="out", nodes=["n1", "n2", "n3", "n4"])
    assert measure(whole(history=lines, events=[*told[:2], grows, *told[2:]]), "failed_undisturbed").value == 0


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


SERVE = ("survivability", "survivability-disk-lost", "survivability-pause", "survivability-drain", "rebalance")


@pytest.mark.parametrize("claim", SERVE)
@pytest.mark.parametrize("clients", [("w2",), ("r1",), ()], ids=["a writer", "a reader", "all"])
def test_a_client_that_tries_in_vain_for_long_is_an_outage_whatever_the_probe_sees(
    claim: str, clients: tuple[str, ...]
) -> None:
    """After recovery, and for longer than a fault may take."""
    lines = history(until=75)
    told = events(writing_end={"at": 75.1}, audit_begin={"at": 75.2}, audit_end={"at": 76.0}, trial_end={"at": 76.1})
    (check,) = (check for check in load().claim(claim).checks_for("laptop") if check.metric == "client_wait_s")
    for until, outcome in ((58, Outcome.PASS), (65, Outcome.REFUTED), (80, Outcome.REFUTED)):
        tried = in_vain(lines, 30, until, *clients)
        of = whole(history=tried, events=told, probe=probe(lambda *_: True, until=76))
        (found,) = decide(of, [check]).results
        assert found.outcome is outcome, found.measurement.note
        assert not clients or found.measurement.note.startswith(clients)


@pytest.mark.parametrize("claim", [*SERVE[:4], "survivability-quorum", "scale-up"])
def test_where_no_fault_explains_it_a_client_tries_in_vain_for_less(claim: str) -> None:
    """From 25 s on nothing is disturbed, and of the wait that began before only the rest counts."""
    lines = history(until=75)
    told = events(
        recovered={"at": 25}, writing_end={"at": 75.1}, audit_begin={"at": 75.2}, audit_end={"at": 76.0},
        trial_end={"at": 76.1},
    )  # fmt: skip
    checks = load().claim(claim).checks_for("laptop")
    (check,) = (each for each in checks if each.metric == "client_wait_undisturbed_s")
    for since, until, value in ((15, 34, 9), (15, 37, 12), (40, 51, 11), (5, 20, 7)):
        of = whole(
            history=in_vain(lines, since, until, "r1"), events=told, probe=probe(lambda *_: True, until=76),
            host=[HostSecond(t=t * SECOND, cpu=50.0, others=1.0) for t in range(1, 77)],
        )  # fmt: skip
        (found,) = decide(of, [check]).results
        assert found.measurement.value == pytest.approx(value, abs=0.2), found.measurement.note
        assert found.outcome is (Outcome.REFUTED if value > 10 else Outcome.PASS)


@pytest.mark.parametrize(("what", "is_"), [("reads", Outcome.REFUTED), ("few", Outcome.PASS)])
def test_what_fails_while_a_fault_and_its_recovery_last_has_a_limit(what: str, is_: Outcome) -> None:
    """Every read but a few fails, and no write; nobody waits long."""
    lines = in_vain(history(), 12, 20, *(("r1",) if what == "reads" else ()))
    if what == "few":
        lines = in_vain(history(), 12, 12.3)
    for claim in ("survivability", "hot-swap", "scale-up", "tenancy-survivability"):
        checks = load().claim(claim).checks_for("laptop")
        (check,) = (each for each in checks if each.metric == "failed_disturbed")
        assert decide(whole(history=lines, final=last_read(lines)), [check]).results[0].outcome is is_, claim


def test_a_client_that_finds_no_node_tries_in_vain_and_one_that_is_not_asked_does_not() -> None:
    refused = [Refused(second * SECOND, "r1", "n3", "refused") for second in range(20, 28)]
    none = [line for line in history() if not (isinstance(line, Invoke | Ok) and 19 * SECOND <= line.t < 28 * SECOND)]
    found = measure(whole(history=sorted([*none, *refused], key=lambda line: line.t)), "client_wait_s")
    assert found.value == pytest.approx(8.0, abs=0.1)
    assert found.note.startswith("r1, 20.0 s")
    assert measure(whole(history=none), "client_wait_s").value == 0


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
    assert measure(whole(events=told, probe=watched), "gap_undisturbed_s").value == pytest.approx(5.1)


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
    kept = measure(whole(events=looking(13.2, 14.5)), "throughput_buckets_kept")
    assert kept.value == 1.0
    assert kept.note.startswith("6 of 6 buckets of 1 s")
    assert kept.note.endswith("; 2 (2 s) in which the plan looked at the cluster do not count")
    degraded = measure(whole(events=looking(14.0, 14.5)), "degraded_s")
    assert degraded.value == 1.0
    assert degraded.note.endswith("; 1 (1 s) in which the plan looked at the cluster do not count")
    few = measure(whole(events=looking(13.2, None)), "throughput_buckets_kept")
    assert few.value is None
    assert few.note.startswith("too few buckets, at least 5 asked: 1 of 1 buckets of 1 s")
    assert measure(whole(events=looking(12.0, 30.0)), "throughput_buckets_kept").value is None


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


@pytest.mark.parametrize("state", ["XX000", "XXUUU"])
def test_errors_of_the_server_while_a_node_is_away_refute(state: str) -> None:
    """500 a second for eight seconds: nothing is lost, nothing stands still, and it is no promise kept."""
    failed: list[HistoryLine] = []
    for number in range(8 * 500):
        at, op = 13 * SECOND + number * 2000, 10**7 + number
        failed += [Invoke(at, op, "w1", "n2", Op.INSERT, numbers([10**6 + number]), 1), Failed(at + 900, op, state)]
    lines = history()
    wrong = sorted([*lines[:-1], *failed], key=lambda line: line.t) + lines[-1:]
    evidence = whole(history=wrong, final=last_read(wrong))
    for claim in ("survivability", "survivability-disk-lost", "rebalance", "tenancy-survivability", "hot-swap"):
        checks = [c for c in load().claim(claim).checks_for("laptop") if c.metric == "errors_not_retryable"]
        assert decide(evidence, checks).outcome is Outcome.REFUTED, claim
        assert decide(whole(), checks).outcome is Outcome.PASS, claim


@pytest.mark.parametrize(("answer", "is_"), [("INSERT 0 0", Outcome.REFUTED), ("ROLLBACK", Outcome.PASS)])
def test_an_answer_that_is_none_to_what_was_asked_refutes(answer: str, is_: Outcome) -> None:
    lines = history()
    told = [line for line in in_vain(lines, 24, 24.01, "w2", detail=answered(answer)) if line not in lines]
    assert len(told) == 3
    of = whole(history=in_vain(lines, 24, 24.01, "w2", detail=answered(answer)))
    (check,) = (c for c in load().claim("survivability").checks_for("laptop") if c.metric == "errors_not_retryable")
    assert decide(of, [check]).results[0].outcome is is_


@pytest.mark.parametrize(("begin", "is_"), [(12.5, Outcome.PASS), (5, Outcome.REFUTED), (24, Outcome.REFUTED)])
def test_errors_before_and_after_a_majority_was_gone_refute_as_in_any_claim(begin: float, is_: Outcome) -> None:
    """40 of 5400 are less than one in a hundred."""
    lines = in_vain(history(), begin, begin + 40 / RATE, "w2", detail="XX000")
    (check,) = (
        c for c in load().claim("survivability-quorum").checks_for("laptop") if c.metric == "errors_undisturbed"
    )
    assert decide(whole(history=lines, final=last_read(lines)), [check]).results[0].outcome is is_
