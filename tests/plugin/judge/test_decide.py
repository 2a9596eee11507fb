"""The table of decisions: what passes, what refutes, and what is left open."""

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.workloads.ledger.judge.rows import SAFETY
from fixtures.workloads.ledger.records import Ok
from plugin.judge import decide as of_decide
from plugin.judge.decide import decide
from plugin.judge.model import Check, Comparison, Kind, Measurement, Outcome
from tests.plugin.judge.histories import event, events, trial
from tests.plugin.judge.whole_trial import history, host, last_read, whole


def check(
    metric: str = "lost", comparison: Comparison | None = Comparison.EQ, limit: float | None = 0, **more: Any
) -> Check:
    return Check(
        **{
            "metric": metric,
            "comparison": comparison,
            "limit": limit,
            "kind": Kind.ABSOLUTE,
            "mark": "R",
            "source": "us",
            **more,
        }
    )


GAP = check("gap_s", Comparison.LE, 30)
REPORT = check("degraded_s", None, None, kind=Kind.REPORT)
ELSEWHERE = check("gap_s", Comparison.LE, None, kind=Kind.PROFILE)
NEEDS = ("fault_bit", "fault_hit", "written_past_recovery")


def recorded(value: float | None) -> Any:
    return trial(measurements=[Measurement(metric="own", value=value)])


def test_a_whole_trial_passes() -> None:
    verdict = decide(whole(), [check(), GAP, REPORT, ELSEWHERE], needs=NEEDS, tuned=["a faster pace"])
    assert verdict.outcome is Outcome.PASS, verdict.why
    assert verdict
    assert [r.outcome for r in verdict.results] == [
        Outcome.PASS,
        Outcome.PASS,
        Outcome.REPORTED,
        Outcome.NOT_EVALUATED,
    ]
    assert verdict.why == "1 of 4 checks was not evaluated; all 2 judged checks hold; 1 more only reported"
    assert decide(whole(), [check(), GAP]).why == "all 2 judged checks hold"
    assert verdict.tuned == ("a faster pace",)
    assert verdict.context == {"engine": "cockroach", "nodes": "3", "profile": "laptop", "inserts": "2000"}
    assert all(condition.met for condition in verdict.conditions)
    assert {*NEEDS, "integrity", "no_errors"} <= {condition.name for condition in verdict.conditions}


def test_a_broken_limit_refutes() -> None:
    verdict = decide(whole(), [check(), check("gap_s", Comparison.LE, 2, unit="s")], needs=NEEDS)
    assert verdict.outcome is Outcome.REFUTED
    assert not verdict
    assert "gap_s: 3 s, must be <= 2" in verdict.why


UNRECOVERED = check("unrecovered", Comparison.EQ, 0)
LATE = [event(27, "not_recovered", limit_s=60.0, why="53 of 88 ranges lack replicas")]


@pytest.mark.parametrize(
    ("others", "outcome"),
    [(1.0, Outcome.REFUTED), (None, Outcome.REFUTED), (40.0, Outcome.INCONCLUSIVE)],
    ids=["free", "not recorded", "crowded"],
)
def test_a_limit_of_time_refutes_only_where_other_work_left_the_cpu(others: float | None, outcome: Outcome) -> None:
    late = whole(events=[*events(recovered=None), *LATE], host=host(others=others))
    verdict = decide(late, [check(), UNRECOVERED])
    assert verdict.outcome is outcome
    assert ("machine_free" in verdict.why) == (outcome is Outcome.INCONCLUSIVE)


def test_other_work_is_told_before_what_may_follow_from_it() -> None:
    crowded = whole(
        events=[*events(recovered=None), *LATE], host=host(others=40.0), final=last_read(history(), unread=[1])
    )
    why = decide(crowded, [check(), UNRECOVERED], needs=("audit_complete", "recovered")).why
    assert "audit_complete is not met" in why
    assert why.startswith("machine_free is not met: other work took 40 %")


def test_a_way_out_is_told_once() -> None:
    crowded = whole(history=history(rate=80), host=host(others=40.0))
    why = decide(crowded, [check()], needs=("baseline_steady", "machine_free")).why
    assert "baseline_steady is not met" in why
    assert "machine_free is not met" in why
    assert why.count("run it again while nothing else uses the machine") == 1


def test_a_crowded_machine_keeps_nothing_from_passing_and_excuses_no_lost_row() -> None:
    crowded = host(others=40.0)
    assert decide(whole(host=crowded), [check(), GAP, UNRECOVERED]).outcome is Outcome.PASS
    lost = whole(host=crowded, final=last_read(history(), without=(7,)))
    assert decide(lost, [check(), GAP, UNRECOVERED]).outcome is Outcome.REFUTED


@pytest.mark.parametrize("checks", [[], [REPORT], [ELSEWHERE], [REPORT, ELSEWHERE]])
def test_a_claim_of_which_nothing_is_judged_never_passes(checks: list[Check]) -> None:
    for evidence in (whole(), trial()):
        verdict = decide(evidence, checks)
        assert verdict.outcome is Outcome.NOT_EVALUATED
        assert not verdict


def test_a_test_that_was_broken_off_is_not_excused_as_one_of_which_nothing_is_judged() -> None:
    """What is not evaluated lets the others pass."""
    broken_off = decide(trial(events=[event(5, "error", what="no node answered in time", taken=True)]), [REPORT])
    assert broken_off.outcome is Outcome.INCONCLUSIVE
    assert "no node answered in time" in broken_off.why


def test_what_was_not_measured_is_inconclusive() -> None:
    verdict = decide(whole(), [check(), check("own", Comparison.LE, 1)])
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "own: not measured" in verdict.why


@pytest.mark.parametrize("metric", SAFETY)
def test_without_evidence_no_check_passes(metric: str) -> None:
    assert decide(trial(), [check(metric)]).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("value", [nan, inf, -inf])
@pytest.mark.parametrize("comparison", Comparison)
def test_what_is_no_number_never_passes(value: float, comparison: Comparison) -> None:
    assert decide(recorded(value), [check("own", comparison, 0)]).outcome is Outcome.INCONCLUSIVE
    assert decide(recorded(0), [check("own", comparison, value)]).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("comparison", "passing", "failing"),
    [
        (Comparison.EQ, [5], [4, 6]),
        (Comparison.LE, [5, 4], [6]),
        (Comparison.LT, [4], [5, 6]),
        (Comparison.GE, [5, 6], [4]),
        (Comparison.GT, [6], [5, 4]),
    ],
)
def test_comparisons(comparison: Comparison, passing: list[float], failing: list[float]) -> None:
    for value in passing:
        assert decide(recorded(value), [check("own", comparison, 5)]).outcome is Outcome.PASS
    for value in failing:
        assert decide(recorded(value), [check("own", comparison, 5)]).outcome is Outcome.REFUTED


POOR: dict[str, Callable[[], dict[str, Any]]] = {
    "fault_bit": lambda: {"events": events(fault_bit=None)},
    "fault_hit": lambda: {"events": events(fault_begin={"leases": {"n1": 0}})},
    "written_past_recovery": lambda: {"history": history(until=22)},
}


@pytest.mark.parametrize("unmet", POOR)
def test_an_unmet_condition_of_the_claim_leaves_it_open_and_says_what_to_change(unmet: str) -> None:
    verdict = decide(whole(**POOR[unmet]()), [check()], needs=NEEDS)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert unmet in verdict.why
    assert "To change:" in verdict.why


@pytest.mark.parametrize("unmet", POOR)
def test_a_lost_row_is_not_hidden_by_poor_evidence(unmet: str) -> None:
    lines = POOR[unmet]().get("history", history())
    verdict = decide(whole(**POOR[unmet](), final=last_read(lines, without=(17,))), [check()], needs=NEEDS)
    assert verdict.outcome is Outcome.REFUTED


def test_a_row_that_is_missing_may_have_been_deleted_after_a_history_was_cut_off() -> None:
    cut = history()[:-1]
    for final in (last_read(cut, without=(3,)), last_read(cut)):
        verdict = decide(whole(history=cut, final=final), [check()])
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert "not measured: the history has no end" in verdict.results[0].why


def test_edited_evidence_neither_passes_nor_refutes() -> None:
    for final in (last_read(history()), last_read(history(), without=(3,))):
        verdict = decide(whole(final=final, problems=("ledger-final.tsv was changed after the run",)), [check()])
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert "was changed" in verdict.why


def test_rows_that_stay_unreadable_refute() -> None:
    verdict = decide(whole(final=last_read(history(), unreadable=[1])), [check("lost"), check("unreadable")])
    assert verdict.outcome is Outcome.REFUTED
    assert [r.outcome for r in verdict.results] == [Outcome.PASS, Outcome.REFUTED]


def test_rows_that_were_never_read_leave_the_claim_open() -> None:
    verdict = decide(whole(final=last_read(history(), unread=[1])), [check("lost"), check("unreadable")])
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "audit_complete is not met: buckets never read: 1; 900 acknowledged rows in them" in verdict.why


def test_a_gap_beyond_its_limit_is_open_where_the_fault_did_not_hit() -> None:
    evidence = whole(events=events(fault_begin={"leases": {"n1": 0}}))
    verdict = decide(evidence, [check("gap_s", Comparison.LE, 1)])
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "did not hit" in verdict.why


@pytest.mark.parametrize("metric", ["stale", "torn"])
def test_what_only_reads_show_is_not_known_without_them(metric: str) -> None:
    """None of the reads was answered, and none of those was stale."""
    unread = [line for line in history() if not (isinstance(line, Ok) and line.seen)]
    verdict = decide(whole(history=unread), [check(metric)])
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "0 reads answered from 12.0 s on" in verdict.why


def test_an_error_of_the_harness_stands_in_the_way_of_a_pass_but_not_of_a_refutation() -> None:
    told = [*events(), event(31, "error", what="the prober died")]
    assert decide(whole(events=told), [check()]).outcome is Outcome.INCONCLUSIVE
    assert decide(whole(events=told, final=last_read(history(), without=(3,))), [check()]).outcome is Outcome.REFUTED


def test_an_error_after_the_trial_s_end_stands_in_the_way_of_a_pass_alone() -> None:
    """Where no row is wronged, either; one that came before leaves the claim open."""
    slow = check("gap_s", Comparison.LE, 1)
    for at, refuted in ((31.05, Outcome.INCONCLUSIVE), (32, Outcome.REFUTED)):
        told = sorted([*events(), event(at, "error", what="OSError: cannot clear away")], key=lambda each: each.t)
        assert decide(whole(events=told), [slow]).outcome is refuted
        assert decide(whole(events=told), [GAP]).outcome is Outcome.INCONCLUSIVE
    assert decide(whole(events=[e for e in told if e.name != "trial.end"]), [slow]).outcome is Outcome.INCONCLUSIVE


def test_a_condition_that_only_a_check_needs() -> None:
    evidence = whole(events=events(replicated=None))
    assert decide(evidence, [check()]).outcome is Outcome.PASS
    verdict = decide(evidence, [check(needs=("replicated_before",)), GAP])
    assert [r.outcome for r in verdict.results] == [Outcome.INCONCLUSIVE, Outcome.PASS]
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_a_condition_of_another_name_is_never_met() -> None:
    assert decide(whole(), [check(needs=("fault_bites",))]).outcome is Outcome.INCONCLUSIVE


def test_a_report_decides_nothing_and_says_what_it_is_worth() -> None:
    evidence = whole(events=events(fault_bit=None))
    verdict = decide(evidence, [check(), REPORT])
    assert verdict.outcome is Outcome.PASS
    assert "fault_bit is not met" in verdict.results[1].why


VALUES = st.one_of(st.floats(-100, 100), st.sampled_from([nan, inf, -inf]), st.none())
CHECKS = st.lists(
    st.builds(
        check,
        st.just("own"),
        st.sampled_from([*Comparison]),
        st.one_of(st.none(), st.floats(-100, 100)),
        kind=st.sampled_from([*Kind]),
    ),
    max_size=4,
)
RANK = {Outcome.REFUTED: 0, Outcome.INCONCLUSIVE: 1, Outcome.NOT_EVALUATED: 1, Outcome.PASS: 2}
STRICTER = {Comparison.LE: -1, Comparison.LT: -1, Comparison.GE: 1, Comparison.GT: 1}


@settings(deadline=None)
@given(
    value=VALUES,
    others=CHECKS,
    comparison=st.sampled_from([*STRICTER]),
    limit=st.floats(-100, 100),
    by=st.floats(0, 50),
)
def test_a_stricter_limit_never_helps(
    value: float | None, others: list[Check], comparison: Comparison, limit: float, by: float
) -> None:
    before = decide(recorded(value), [*others, check("own", comparison, limit)])
    after = decide(recorded(value), [*others, check("own", comparison, limit + by * STRICTER[comparison])])
    assert RANK[after.outcome] <= RANK[before.outcome]


@settings(deadline=None)
@given(value=VALUES, checks=CHECKS)
def test_a_pass_means_that_something_was_measured_and_holds(value: float | None, checks: list[Check]) -> None:
    verdict = decide(recorded(value), checks)
    outcomes = [r.outcome for r in verdict.results]
    if verdict:
        assert value is not None
        assert Outcome.PASS in outcomes
    assert bool(verdict) == (Outcome.PASS in outcomes and not {Outcome.REFUTED, Outcome.INCONCLUSIVE} & set(outcomes))
    assert (verdict.outcome is Outcome.REFUTED) == (Outcome.REFUTED in outcomes)


@pytest.mark.parametrize("problem", ["recovered", "fault_bit", "trial_begin"])
def test_losing_a_condition_of_the_claim_turns_a_pass_into_nothing_better(problem: str) -> None:
    for checks in ([check()], [GAP], [check(), GAP, REPORT]):
        assert decide(whole(events=events(**{problem: None})), checks, needs=NEEDS).outcome is Outcome.INCONCLUSIVE


def test_the_same_evidence_gives_the_same_verdict() -> None:
    assert decide(whole(), [check(), GAP], needs=NEEDS) == decide(whole(), [check(), GAP], needs=NEEDS)


def defect(monkeypatch: pytest.MonkeyPatch, what: str, name: str) -> None:
    """What is asked for this metric or condition fails as nobody foresaw."""
    real: Callable[..., Any] = getattr(of_decide, what)

    def broken(evidence: Any, asked: str) -> Any:
        return 1 / 0 if asked == name else real(evidence, asked)

    monkeypatch.setattr(of_decide, what, broken)


LOST = {"final": last_read(history(), without=(17,))}


@pytest.mark.parametrize(
    ("what", "name", "of", "outcome"),
    [
        ("measure", "gap_s", {}, Outcome.INCONCLUSIVE),
        ("measure", "gap_s", LOST, Outcome.REFUTED),
        ("measure", "degraded_s", {}, Outcome.INCONCLUSIVE),
        ("measure", "degraded_s", LOST, Outcome.REFUTED),
        ("condition", "recovered", {}, Outcome.INCONCLUSIVE),
        ("condition", "recovered", LOST, Outcome.REFUTED),
        ("condition", "integrity", LOST, Outcome.INCONCLUSIVE),
    ],
    ids=str,
)
def test_a_defect_of_the_judge_hides_no_refutation_and_passes_nothing(
    monkeypatch: pytest.MonkeyPatch, what: str, name: str, of: dict[str, Any], outcome: Outcome
) -> None:
    defect(monkeypatch, what, name)
    verdict = decide(whole(**of), [GAP, REPORT, check()], needs=NEEDS)
    assert verdict.outcome is outcome, verdict.why
    (failure,) = verdict.failures
    assert failure.what == f"{'metric' if what == 'measure' else 'condition'} {name}"
    assert failure.error == "ZeroDivisionError: division by zero"
    assert "in broken" in failure.traceback
    if outcome is Outcome.INCONCLUSIVE:
        assert verdict.why == f"the judge failed at {failure.what} (ZeroDivisionError: division by zero)"
    else:
        assert verdict.why == "lost: 1, must be == 0"
    assert [result.check.metric for result in verdict.results] == ["gap_s", "degraded_s", "lost"]
