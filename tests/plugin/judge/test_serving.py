"""How clients are served apart from the gap of a fault: waits, shares that fail, errors, and ranges that are away."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as changed

from fixtures.workloads.ledger.records import (
    Failed,
    HistoryLine,
    Invoke,
    Ok,
    Op,
    Refused,
    Unknown,
    answered,
    numbers,
)
from plugin.catalogue import load
from plugin.judge.conditions import condition
from plugin.judge.decide import decide
from plugin.judge.metrics import measure
from plugin.judge.model import Outcome
from plugin.judge.trial import HostSecond
from tests.plugin.judge.histories import SECOND, event, events, probe
from tests.plugin.judge.whole_trial import RATE, history, in_vain, last_read, whole

THREE, SIX = ([f"n{number}" for number in range(1, size + 1)] for size in (3, 6))
ROWS = 27 * RATE


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
        (Op.INSERT, EACH_TENTH, Failed, 100 * 10 / (10 + RATE)),
        (Op.INSERT, EACH_TENTH, Unknown, 100 * 10 / (10 + RATE)),
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
    share = 100 * 170 / (ROWS + 170)
    assert measure(whole(history=lines, events=told), "failed_undisturbed").value == pytest.approx(share, rel=0.1)
    grows = event(12, "scale.begin", kind="out", nodes=["n1", "n2", "n3", "n4"])
    assert measure(whole(history=lines, events=[*told[:2], grows, *told[2:]]), "failed_undisturbed").value == 0


SERVE = (
    "survivability",
    "survivability-disk-lost",
    "survivability-pod-deleted",
    "survivability-pause",
    "survivability-drain",
    "rebalance",
)


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
    told = [line for line in in_vain(lines, 24, 24.03, "w2", detail=answered(answer)) if line not in lines]
    assert len(told) == 3
    of = whole(history=in_vain(lines, 24, 24.03, "w2", detail=answered(answer)))
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


def test_a_stretch_before_the_cluster_grows_counts_and_has_a_limit_of_its_own() -> None:
    """A fault that nobody made, between the baseline and the first node that is added."""
    lines = in_vain(history(until=90), 12, 48)
    told = [event(0, "trial.begin"), event(1, "baseline.begin"), event(11, "baseline.end")]
    grows = event(50, "scale.begin", kind="out", nodes=SIX, quiet_s=20, stall_s=24)
    ends = [event(90.1, "writing.end"), event(91, "trial.end")]
    stood = whole(history=lines, final=last_read(lines), events=[*told, grows, *ends], probe=None)
    found = measure(stood, "client_wait_undisturbed_s")
    assert found.value == pytest.approx(36, abs=0.5), found.note
    assert ", 12.0 s" in found.note
    lines = in_vain(history(until=90), 52, 80)
    later = whole(history=lines, final=last_read(lines), events=[*told, grows, *ends], probe=None)
    assert measure(later, "client_wait_undisturbed_s").value == 0
    assert measure(later, "client_wait_s").value == pytest.approx(28, abs=0.5)
    claim = load().claim("rebalance")
    checks = [c for c in claim.checks_for("laptop") if c.metric == "client_wait_undisturbed_s"]
    quiet = replace(stood, host=[HostSecond(t=second * SECOND, cpu=60.0, others=1.0) for second in range(1, 90)])
    assert [decide(quiet, [check]).outcome for check in checks] == [Outcome.REFUTED]


@pytest.mark.parametrize("claim", ["rebalance", "rebalance-scale-in"])
@pytest.mark.parametrize(("share", "is_"), [(0.02, Outcome.PASS), (0.5, Outcome.REFUTED)])
def test_operations_that_fail_while_the_cluster_changes_its_size_refute(claim: str, share: float, is_: Outcome) -> None:
    """Half of the writes for 29 s, too short for any gap, and nobody waits long."""
    lines = history(until=90)
    told = [event(0, "trial.begin"), event(1, "baseline.begin"), event(11, "baseline.end")]
    told += [event(20, "scale.begin", kind="out", nodes=SIX, quiet_s=20, stall_s=24)]
    told += [event(90.1, "writing.end"), event(91, "trial.end")]
    failing = {line.op for line in in_vain(lines, 30, 59) if isinstance(line, Unknown) and line.op % 100 < 100 * share}
    tried = [Unknown(x.t, x.op, "timeout") if isinstance(x, Ok) and x.op in failing else x for x in lines]
    of = whole(history=tried, final=last_read(tried), events=told, probe=watched())
    (check,) = (c for c in load().claim(claim).checks_for("laptop") if c.metric == "failed_scaling")
    assert decide(of, [check]).results[0].outcome is is_
    assert measure(of, "client_wait_s").value == pytest.approx(0.5 if share == 0.5 else 0.02, abs=0.05)


def watched(seconds: Iterable[int] = range(91), *, lag_us: int = 1000) -> Any:
    """What a probe saw in which these seconds are, all as it should be, but that it was late in second 20."""
    header, lines = probe(lambda *_: True, until=91)
    told = (changed(line, lag_us=lag_us) if line.t == 20 * SECOND else line for line in lines)
    return header, [line for line in told if line.t // SECOND in seconds]


PROBES: Mapping[str, tuple[dict[str, Any], Any, Outcome, str]] = {
    "watched": ({"probe": True}, watched(), Outcome.REFUTED, "5 routes of 3 endpoints watched without a hole"),
    "late": ({"probe": True}, watched(lag_us=600_000), Outcome.INCONCLUSIVE, "5 routes of 3 endpoints"),
    "a hole": ({"probe": True}, watched({*range(91)} - {30, 31}), Outcome.INCONCLUSIVE, "nothing is recorded between"),
    "ended": ({"probe": True}, watched(range(70)), Outcome.INCONCLUSIVE, "the probe ends at 69.0 s"),
    "gone": ({"probe": True}, None, Outcome.INCONCLUSIVE, "there was no probe"),
    "not asked for": ({"probe": False}, None, Outcome.INCONCLUSIVE, "there was no probe"),
    "of an older release": ({}, None, Outcome.REFUTED, "no probe watched a change of size"),
}
"""Trials that begin with these facts, with what the probe saw: what becomes of a stretch of 36 s without a write."""


@pytest.mark.parametrize("case", PROBES)
def test_a_stretch_without_a_write_refutes_where_a_probe_watched_throughout(case: str) -> None:
    begin, seen, outcome, why = PROBES[case]
    lines = in_vain(history(until=90), 12, 48)
    told = [
        event(0, "trial.begin", **begin), event(0.1, "provisioned", nodes=THREE),
        event(1, "baseline.begin"), event(11, "baseline.end"),
        event(50, "scale.begin", kind="out", nodes=SIX, quiet_s=20, stall_s=24), event(90.1, "writing.end"),
        event(91, "trial.end"),
    ]  # fmt: skip
    host = [HostSecond(t=second * SECOND, cpu=60.0, others=1.0) for second in range(1, 90)]
    of = whole(history=lines, final=last_read(lines), events=told, probe=seen, host=host)
    for claim in ("rebalance", "rebalance-scale-in"):
        checks = load().claim(claim).checks_for("laptop")
        (gap,) = (check for check in checks if check.metric == "client_wait_undisturbed_s")
        assert decide(of, [gap]).outcome is outcome
    assert why in condition(of, "probe_complete").why


def test_what_changes_its_size_before_anybody_writes_need_not_be_watched() -> None:
    """The cluster of a scale-in is grown first; a route must have been seen before the first change under load."""
    told = [
        event(0, "trial.begin", probe=True), event(0.1, "provisioned", nodes=THREE),
        event(10, "scale.begin", kind="out", nodes=SIX), event(31, "baseline.begin"), event(41, "baseline.end"),
        event(50, "scale.begin", kind="in", nodes=SIX[:5]), event(90.1, "writing.end"), event(91, "trial.end"),
    ]  # fmt: skip
    lines = history(first=31, until=90)
    of = whole(history=lines, events=told, probe=watched(range(30, 91)))
    assert condition(of, "probe_complete").met, condition(of, "probe_complete").why
    header, late = probe(lambda route, tenth: route != "n3/2" or tenth > 600, until=91)
    late = [line for line in late if line.t >= 30 * SECOND]
    found = condition(replace(of, probe=(header, late)), "probe_complete")
    assert found.why == "route n3/2 had no success before the first fault or change of size"


@pytest.mark.parametrize("claim", ["rebalance", "rebalance-scale-in"])
@pytest.mark.parametrize(
    ("route", "since", "until", "refuted"),
    [
        ("n2/1", 55, 80, None),
        ("n2/1", 55, 87, "gap_scaling_s"),
        ("n2/1", 20, 31, "gap_unscaled_s"),
        ("n3/2", 55, 92, None),
    ],
    ids=["short", "a range while it changes", "a range before", "a node that leaves"],
)
def test_a_range_that_is_away_at_every_gateway_refutes_though_no_client_waits(
    claim: str, route: str, since: int, until: int, refuted: str | None
) -> None:
    """And a node that is not to stay is not missed."""
    lines = history(until=92)
    told = [
        event(0, "trial.begin", probe=True), event(0.1, "provisioned", nodes=THREE), event(1, "baseline.begin"),
        event(11, "baseline.end"), event(50, "scale.begin", kind="in", nodes=["n1", "n2"], quiet_s=20, stall_s=24),
        event(92.1, "writing.end"), event(93, "trial.end"),
    ]  # fmt: skip
    seen = probe(lambda name, tenth: name != route or not 10 * since <= tenth < 10 * until, until=93)
    host = [HostSecond(t=second * SECOND, cpu=60.0, others=1.0) for second in range(1, 93)]
    of = whole(history=lines, final=last_read(lines), events=told, probe=seen, host=host)
    checks = [c for c in load().claim(claim).checks_for("laptop") if c.metric.startswith("gap_")]
    assert {c.metric for c in checks} == {"gap_scaling_s", "gap_unscaled_s"}
    found = {r.check.metric: r.outcome for r in decide(of, checks).results}
    assert {metric for metric, outcome in found.items() if outcome is not Outcome.PASS} == ({refuted} - {None})


@pytest.mark.parametrize("claim", ["rebalance", "rebalance-scale-in"])
@pytest.mark.parametrize(
    ("away", "others", "outcome"),
    [
        ([(55, 84)], 1.0, Outcome.PASS),
        ([(51, 80), (81, 110), (111, 140)], 1.0, Outcome.REFUTED),
        ([(51, 80), (81, 110), (111, 140)], 60.0, Outcome.INCONCLUSIVE),
        ([(90, 119), (121, 150)], 1.0, Outcome.PASS),
        ([(t, t + 2) for t in range(52, 140, 4)], 1.0, Outcome.REFUTED),
        ([(t, t + 2) for t in range(52, 140, 12)], 1.0, Outcome.PASS),
    ],
    ids=["once", "again and again", "while others have the machine", "once a change", "half of it", "a sixth"],
)
def test_a_range_that_is_away_again_and_again_is_not_served_however_short_each_time_is(
    claim: str, away: list[tuple[int, int]], others: float, outcome: Outcome
) -> None:
    """Three times 29 s of 90, each of which the limit of a single one allows; two changes of size, at 50 s and 120."""
    lines = history(until=152)
    told = [
        event(0, "trial.begin", probe=True), event(0.1, "provisioned", nodes=THREE), event(1, "baseline.begin"),
        event(11, "baseline.end"), event(50, "scale.begin", kind="out", nodes=SIX),
        event(120, "scale.begin", kind="out", nodes=[*SIX, "n7"]), event(152.1, "writing.end"), event(153, "trial.end"),
    ]  # fmt: skip
    seen = probe(
        lambda name, tenth: name != "n2/1" or not any(10 * since <= tenth < 10 * until for since, until in away),
        until=153,
    )
    host = [HostSecond(t=second * SECOND, cpu=92.0, others=others) for second in range(1, 153)]
    of = whole(history=lines, final=last_read(lines), events=told, probe=seen, host=host)
    names = ("gap_scaling_s", "away_again_scaling")
    gap, again = decide(of, [c for c in load().claim(claim).checks_for("laptop") if c.metric in names]).results
    assert (gap.outcome, again.outcome) == (Outcome.PASS, outcome)


@pytest.mark.parametrize(("every", "outcome"), [(1, Outcome.PASS), (4, Outcome.REFUTED), (9, Outcome.REFUTED)])
def test_what_is_whole_again_serves_all_in_all(every: int, outcome: Outcome) -> None:
    """One second of so many after recovery, each pause being short enough for every limit of a single one."""
    lines = history(until=57, quiet=frozenset([13, 14, *(second for second in range(21, 57) if second % every)]))
    trial = whole(history=lines, events=events(writing_end={"at": 57.1}, audit_begin={"at": 57.2},
                  audit_end={"at": 58}, trial_end={"at": 58.1}))  # fmt: skip
    (check,) = (one for one in load().claim("survivability").checks_for("laptop") if one.metric == "served_after")
    (found,) = decide(trial, [check]).results
    assert found.outcome is outcome
    assert found.measurement.value == pytest.approx(100 / every, abs=3)
