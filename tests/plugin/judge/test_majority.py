"""A majority that was taken on purpose and came back: from then on the cluster serves, however late it is whole."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from fixtures.workloads.ledger.records import Failed, HistoryLine, Invoke, Ok, Op, Unknown, numbers
from plugin.catalogue import load
from plugin.judge.decide import decide
from plugin.judge.metrics import measure
from plugin.judge.model import Outcome
from plugin.judge.trial import HostSecond, TrialEvidence
from tests.plugin.judge.histories import SECOND, event, events, probe
from tests.plugin.judge.whole_trial import history, in_vain, last_read, whole

UNTIL = 80
BLOCKED = (12, 13, 14, 15)
"""The seconds without a majority: it is back at 16 s."""
ASKED = 10**5
"""The row that a client tried to insert meanwhile."""


def trial(
    *,
    quiet: Iterable[int] = (),
    vain: tuple[int, int] = (0, 0),
    recovered: float = 20,
    wrong: tuple[float, float] = (0, 0),
    cut: tuple[float, float, int] = (0, 0, 1),
    away: tuple[str, float, float] = ("", 0, 0),
    **fields: Any,
) -> TrialEvidence:
    """Nobody asks in the ``quiet`` seconds, and nobody is served in the ``vain`` ones, however often he asks.

    What is sent from the one to the other moment of ``wrong`` ends with XX000, and each so-manieth operation of those
    of ``cut`` with an error that clients must expect; the route ``away`` has no success from the one to the other.
    """
    silent = {*BLOCKED, *range(*vain)}
    *lines, end = history(quiet=frozenset({*BLOCKED, *quiet}), until=UNTIL)
    sent = Invoke(13 * SECOND, 10**9, "w2", "n2", Op.INSERT, numbers([ASKED]), 1)
    written: list[HistoryLine] = [*lines, sent, Unknown(14 * SECOND, 10**9, "timeout")]
    asked = in_vain(sorted(written, key=lambda line: line.t), *vain)
    told = [*partly(in_vain(asked, *wrong, detail="XX000"), *cut), end]
    route, since, until = away
    return whole(
        history=told,
        final=last_read(told, without=(ASKED,)),
        events=events(
            fault_begin={"blocks": True}, recovered={"at": recovered}, writing_end={"at": UNTIL + 0.1},
            audit_begin={"at": UNTIL + 0.2}, audit_end={"at": UNTIL + 1}, trial_end={"at": UNTIL + 1.1},
        ),
        probe=probe(
            lambda name, tenth: tenth // 10 not in silent and not (name == route and since <= tenth / 10 < until),
            until=UNTIL + 1,
        ),
        host=[HostSecond(t=second * SECOND, cpu=50.0, others=1.0) for second in range(1, UNTIL + 2)],
        **fields,
    )  # fmt: skip


def partly(lines: list[HistoryLine], begin: float, end: float, every: int) -> list[HistoryLine]:
    """The same, but each so-manieth operation that is answered meanwhile, in seconds, is cut off."""
    reads = {line.op for line in lines if isinstance(line, Invoke) and line.kind is Op.READ}
    return [
        (Failed if line.op in reads else Unknown)(line.t, line.op, "57P01")
        if isinstance(line, Ok) and begin <= line.t / SECOND < end and line.op % every == 0
        else line
        for line in lines
    ]


def judged(of: TrialEvidence) -> tuple[Outcome, set[str]]:
    """By everything that the claim asks; and what refutes it."""
    claim = load().claim("survivability-quorum")
    verdict = decide(of, claim.checks_for("laptop"), needs=claim.needs)
    return verdict.outcome, {r.check.metric for r in verdict.results if r.outcome is Outcome.REFUTED}


GAP, WAIT, FAILED = "gap_resuming_s", "client_wait_resuming_s", "failed_resuming"


@pytest.mark.parametrize(
    ("case", "refuted"),
    [
        ({}, set()),
        ({"recovered": 65}, set()),
        ({"vain": (17, 46), "recovered": 50}, set()),
        ({"vain": (17, 48), "recovered": 50}, {GAP, WAIT, FAILED}),
        ({"vain": (17, 52), "recovered": 45}, {GAP, WAIT, "failed_undisturbed"}),
        ({"away": ("n3/2", 12, 60), "recovered": 62}, {GAP}),
        ({"away": ("n1/0", 12, 60), "recovered": 62}, {GAP}),
        ({"away": ("n3/2", 5, 45), "recovered": 45}, set()),
        ({"wrong": (17, 19)}, set()),
        ({"wrong": (17, 60), "recovered": 62}, {WAIT, FAILED, "errors_undisturbed"}),
        ({"wrong": (47, 48), "recovered": 65}, {"errors_undisturbed"}),
        ({"cut": (17, 46, 2), "recovered": 65}, set()),
        ({"cut": (46, 65, 2), "recovered": 65}, {FAILED}),
        ({"cut": (46, 65, 20), "recovered": 65}, set()),
        ({"quiet": [second for second in range(20, UNTIL) if second % 10]}, {"served_after"}),
    ],
    ids=[
        "as it should be", "whole late", "29 s", "31 s", "open when recovery is declared", "one range",
        "a victim's own clients", "before the majority was back", "errors at once", "errors for ever", "late errors",
        "half fails at once", "half fails late", "some fails late", "a tenth of the load",
    ],
)  # fmt: skip
def test_once_a_majority_is_back_nothing_excuses_for_ever_that_nobody_is_served(
    case: dict[str, Any], refuted: set[str]
) -> None:
    assert judged(trial(**case)) == (Outcome.REFUTED if refuted else Outcome.PASS, refuted)


def test_other_work_excuses_what_takes_long_then() -> None:
    of = trial(vain=(17, 60), recovered=62)
    busy = [HostSecond(t=second * SECOND, cpu=95.0, others=60.0) for second in range(1, UNTIL + 2)]
    assert judged(replace(of, host=busy)) == (Outcome.INCONCLUSIVE, set())


def test_of_a_second_fault_only_what_follows_its_own_majority_counts() -> None:
    """The majority goes twice; between the two the cluster is whole, and what another fault explains counts nowhere."""
    second = {"fault": "kill", "nodes": ["n2"], "leases": {"n2": 3}, "connections": {"n2": 2}}
    of = trial(vain=(60, 70))
    for blocks, value in ((True, 5.0), (False, 0.2)):
        again = [
            event(60, "fault.begin", **second, blocks=blocks), event(60.1, "fault.bit", node="n2", proof="gone"),
            event(64, "fault.undo", nodes=["n2"]), event(65, "fault.undone", nodes=["n2"]), event(75, "recovered"),
        ]  # fmt: skip
        twice = replace(of, events=sorted([*of.events, *again], key=lambda each: each.t))
        assert measure(twice, GAP).value == pytest.approx(value, abs=0.2)
        assert measure(twice, WAIT).value == pytest.approx(value, abs=0.2)


def test_few_operations_that_fail_by_chance_just_before_recovery_decide_nothing() -> None:
    """Recovery comes 30.05 s after the majority: of 15 writes that are sent between, so many fail."""
    for every, outcome in ((1, Outcome.REFUTED), (5, Outcome.INCONCLUSIVE)):
        assert judged(trial(cut=(46.0, 46.05, every), recovered=46.05))[0] is outcome, every
    found = measure(trial(), FAILED)
    assert (found.value, found.note) == (0, "it was whole by then")


def test_where_no_majority_was_taken_or_none_came_back_there_is_nothing_to_measure() -> None:
    for of in (whole(), replace(trial(), events=events(fault_begin={"blocks": True}, fault_undone=None))):
        for metric in (GAP, WAIT, FAILED):
            found = measure(of, metric)
            assert (found.value, found.note) == (None, "no fault took a majority and gave it back")
