"""What takes too long refutes, unless other work had the machine, or the load's own clients stood still."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from fixtures.workloads.ledger.records import Failed, GeneratorSecond, HistoryLine, Ok
from fixtures.workloads.tpcc.judge.metrics import TPCC_METRICS
from plugin.evidence.layout import LayoutSample
from plugin.judge.decide import decide
from plugin.judge.metrics import KNOWN_METRICS
from plugin.judge.model import Check, Comparison, Kind, Outcome
from plugin.judge.trial import HostSecond
from tests.plugin.judge.histories import SECOND, event, events, probe
from tests.plugin.judge.whole_trial import history, in_vain, last_read, seen, whole

END = 60
TIMES = {
    "fault_undo": 45.5, "fault_undone": 46.0, "recovered": 48.0, "writing_end": END + 0.1, "audit_begin": END + 0.2,
    "audit_end": END + 1.0, "trial_end": END + 1.1,
}  # fmt: skip
"""n1, killed at 12 s, is started again, and all is well again."""
GROWS = event(12, "scale.begin", kind="out", nodes=["n1", "n2", "n3", "n4"])
LATER = event(49, "scale.begin", kind="out", nodes=["n1", "n2", "n3", "n4"])
LATE = event(59, "not_recovered", limit_s=13.0, why="53 of 88 ranges lack replicas")


def told(*more: Any, **changes: Any) -> list[Any]:
    times = {name: {"at": at} for name, at in TIMES.items()}
    return sorted([*events(**{**times, **changes}), *more], key=lambda each: each.t)


def growing() -> list[Any]:
    """The cluster grows, and nothing is hurt."""
    faults = ("fault_begin", "fault_bit", "fault_undo", "fault_undone", "recovered")
    return told(GROWS, **dict.fromkeys(faults))


RETURNED = told(fault_begin={"blocks": True}, fault_undo={"at": 13.5}, fault_undone={"at": 14})
"""The fault took a majority, which is back at 14 s."""


def unanswered() -> list[HistoryLine]:
    """Every read fails."""
    return [
        Failed(line.t, line.op, "XX000") if isinstance(line, Ok) and line.seen else line for line in history(until=END)
    ]


FOUR = ["n1", "n2", "n3", "n4"]


def resized(kind: str, nodes: list[str], *more: Any) -> list[Any]:
    """The cluster changes its size at 12 s, under clients whose node was killed just before."""
    return told(event(12, "scale.begin", kind=kind, nodes=nodes, quiet_s=20, stall_s=24, hold_s=4), *more)


def lying(replicas: Mapping[str, int], *, until: int = END, moved: int = 0, **fields: Any) -> list[LayoutSample]:
    """Where the replicas lie every 2 s from 12 s on; so many are traded meanwhile."""
    return [
        LayoutSample(t=t * SECOND, replicas=replicas, ranges=60, moves=moved * (t // 2), unavailable=0, **fields)
        for t in range(12, until + 2, 2)
    ]


SWAP = event(50, "fault.begin", fault="swap", nodes=["n2"])
STOPPED = event(58, "fault.bit", node="n2")
"""n2 is to get another version, for which it is stopped."""


LASTING: Mapping[str, tuple[Comparison, float, dict[str, Any]]] = {
    "gap_s": (Comparison.LE, 30, {"probe": probe(lambda r, tenth: r != "n2/1" or not 120 < tenth < 440, until=END)}),
    "gap_undisturbed_s": (Comparison.LE, 5, {"probe": probe(lambda _, tenth: not 510 < tenth < 580, until=END)}),
    "unrecovered": (Comparison.EQ, 0, {"events": told(LATE, recovered=None)}),
    "failed_undisturbed": (Comparison.LE, 1, {"history": unanswered()}),
    "unreadable": (Comparison.EQ, 0, {"final": last_read(history(until=END), unreadable=[1])}),
    "inserts_shortfall": (Comparison.EQ, 0, {"parameters": {"inserts": "100000"}}),
    "degraded_s": (Comparison.LE, 30, {"history": history(until=END, quiet=range(12, 44))}),
    "throughput_buckets_kept": (Comparison.GE, 0.95, {"history": history(until=END, quiet=range(12, 44))}),
    "resumed_s": (Comparison.LE, 3, {"history": history(until=END, quiet=range(12, 52))}),
    "unresumed": (Comparison.EQ, 0, {"history": history(until=END, quiet=range(12, END))}),
    "errors_not_retryable": (Comparison.EQ, 0, {"history": in_vain(history(until=END), 20, 20.1, detail="XXUUU")}),
    "errors_undisturbed": (Comparison.EQ, 0, {"history": in_vain(history(until=END), 50, 50.1, detail="XXUUU")}),
    "served_after": (Comparison.GE, 50, {"history": history(until=END, quiet=range(49, 58))}),
    "client_wait_s": (Comparison.LE, 30, {"history": in_vain(history(until=END), 12, 44, "r1"), "events": told(GROWS)}),
    "failed_scaling": (
        Comparison.LE, 5, {"history": in_vain(history(until=END), 51, 57), "events": told(LATER)},
    ),
    "client_wait_undisturbed_s": (Comparison.LE, 5, {"history": in_vain(history(until=END), 50, 57, "r1")}),
    "gap_resuming_s": (
        Comparison.LE, 30,
        {"probe": probe(lambda r, tenth: r != "n2/1" or not 120 < tenth < 460, until=END), "events": RETURNED},
    ),
    "client_wait_resuming_s": (
        Comparison.LE, 30, {"history": in_vain(history(until=END), 12, 46, "r1"), "events": RETURNED},
    ),
    "failed_resuming": (Comparison.LE, 5, {"history": in_vain(history(until=END), 45, 48), "events": RETURNED}),
    "failed_disturbed": (Comparison.LE, 5, {"history": in_vain(history(until=END), 20, 30)}),
    "gap_scaling_s": (
        Comparison.LE, 30,
        {"probe": probe(lambda r, tenth: r != "n2/1" or not 120 < tenth < 440, until=END), "events": growing()},
    ),
    "away_again_scaling": (
        Comparison.LE, 10,
        {
            "probe": probe(lambda r, tenth: r != "n2/1" or tenth < 120 or tenth % 150 < 20, until=END),
            "events": growing(),
        },
    ),
    "throughput_kept_scaling": (
        Comparison.GE, 0.95, {"history": history(until=END, quiet=range(12, 44)), "events": told(GROWS)},
    ),
    "balanced": (
        Comparison.EQ, 1, {"events": resized("out", FOUR), "layout": lying(dict.fromkeys(FOUR[:3], 60))},
    ),
    "ranges_underreplicated_at_end": (
        Comparison.EQ, 0,
        {"events": resized("out", FOUR), "layout": lying(dict.fromkeys(FOUR, 45), underreplicated=3)},
    ),
    "replicas_traded": (
        Comparison.LE, 5,
        {
            "events": resized("out", FOUR, event(60.3, "quiet.begin"), event(100, "quiet.end")),
            "layout": lying(dict.fromkeys(FOUR, 45), until=100, moved=3),
        },
    ),
    "decommissioned": (
        Comparison.EQ, 1,
        {
            "events": resized("in", FOUR[:3], event(58, "remove.failed", node="n4", why="12 replicas left")),
            "layout": lying({**dict.fromkeys(FOUR[:3], 56), "n4": 12}),
        },
    ),
    "drained": (
        Comparison.EQ, 1,
        {
            "events": resized("in", FOUR[:3], event(58, "node.removed", node="n4", code=-9)),
            "layout": [*lying(dict.fromkeys(FOUR, 45), until=20), *lying(dict.fromkeys(FOUR[:3], 60))[5:]],
        },
    ),
    "nodes_late": (
        Comparison.EQ, 0,
        {"events": told(SWAP, event(57.9, "node.stopped", node="n2", code=-9, late=True), STOPPED)},
    ),
    "undrained": (
        Comparison.EQ, 0, {"events": told(SWAP, event(57.9, "drain.failed", node="n2", why="refused"), STOPPED)},
    ),
    "not_final": (
        Comparison.EQ, 0,
        {
            "events": told(
                event(50, "step.begin", number=1, kind="finalise"), event(58, "not_final", limit_s=8, why="n3 is not")
            ),
        },
    ),
}  # fmt: skip
"""What lasts too long, by the metric that says so, and the check that it exceeds."""

WITHOUT_CLIENTS = {
    "gap_s", "gap_undisturbed_s", "gap_resuming_s", "gap_scaling_s", "away_again_scaling", "unrecovered", "unreadable",
    "errors_not_retryable", "errors_undisturbed", "balanced", "ranges_underreplicated_at_end", "replicas_traded",
    "decommissioned", "drained", "nodes_late", "undrained", "not_final",
}  # fmt: skip
"""What is seen by others than the load's own clients, or said by the server."""

OF_NODES = [
    "balanced", "ranges_underreplicated_at_end", "decommissioned", "drained", "nodes_late", "undrained", "not_final",
]  # fmt: skip
"""What was waited for and did not come, of nodes and their replicas: from 12 s on, or later."""

OTHERS_ONLY = {"replicas_traded"}
"""What the run itself may use the machine for."""


SPENT_FROM = {"throughput_buckets_kept": 90.0}
"""Percent of the CPU in use from which on it tells nothing, where that is less than leaves nothing over: a pace."""


def outcome(metric: str, *, cpu: float = 92.0, others: float = 1.0, **changes: Any) -> Outcome:
    comparison, limit, fields = LASTING[metric]
    lines = changes.get("history", fields.get("history", history(until=END)))
    check = Check(
        metric=metric, comparison=comparison, limit=limit, kind=Kind.ABSOLUTE, mark="R", source="us",
        unit=KNOWN_METRICS[metric].unit,
    )  # fmt: skip
    evidence = whole(
        **{
            "events": told(),
            "history": lines,
            "final": last_read(lines),
            "probe": probe(seen, until=END),
            "host": [HostSecond(t=second * SECOND, cpu=cpu, others=others) for second in range(1, END + 42)],
            **fields,
            **changes,
        }
    )
    return decide(evidence, [check]).outcome


@pytest.mark.parametrize("metric", LASTING)
def test_it_refutes_unless_other_work_had_the_machine(metric: str) -> None:
    assert outcome(metric, cpu=SPENT_FROM.get(metric, 93.0) - 1) is Outcome.REFUTED
    assert outcome(metric, others=60.0) is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("metric", LASTING)
def test_what_lasts_is_excused_by_a_machine_that_had_nothing_left(metric: str) -> None:
    """Whoever used it: where the run itself exhausts the machine, it is too small for the profile."""
    spent_from = SPENT_FROM.get(metric, 97.0)
    assert outcome(metric, cpu=spent_from - 1) is Outcome.REFUTED
    assert outcome(metric, cpu=spent_from + 1) is (Outcome.REFUTED if metric in OTHERS_ONLY else Outcome.INCONCLUSIVE)


@pytest.mark.parametrize("metric", OF_NODES)
@pytest.mark.parametrize("kind", ["CPU", "disks", "network"])
def test_only_the_time_in_which_it_was_waited_for_excuses_what_did_not_come(metric: str, kind: str) -> None:
    full = {"CPU": {"cpu": 99.0}, "disks": {"stalled": 90.0}, "network": {"network": 90.0}}[kind]
    full = {"cpu": 20.0, "others": 1.0, "disk_others": 1.0, **full}
    quiet = {"cpu": 50.0, "others": 1.0}
    for taken, is_ in ((range(1, 21), Outcome.REFUTED), (range(22, END + 1), Outcome.INCONCLUSIVE)):
        host = [HostSecond(t=s * SECOND, **(full if s in taken else quiet)) for s in range(1, END + 42)]
        assert outcome(metric, host=host) is is_, taken


def test_of_several_that_did_not_come_each_must_be_excused() -> None:
    """Two nodes were late one after the other: a machine that was full for one excuses the other nothing."""
    first = [
        event(40, "fault.begin", fault="swap", nodes=["n3"]),
        event(47.9, "node.stopped", node="n3", code=-9, late=True),
        event(48, "fault.bit", node="n3"),
    ]
    both = told(*first, SWAP, event(57.9, "node.stopped", node="n2", code=-9, late=True), STOPPED)
    for since, is_ in ((50, Outcome.REFUTED), (40, Outcome.INCONCLUSIVE)):
        host = [HostSecond(t=s * SECOND, cpu=99.0 if since < s < 59 else 50.0, others=1.0) for s in range(1, END + 42)]
        assert outcome("nodes_late", events=both, host=host) is is_


def test_a_new_node_is_waited_for_from_when_it_joined() -> None:
    """What the machine had left before that is no matter of a cluster that does not get whole with it."""
    joined = event(50, "node.joined", node="n4", build="v2", wanted="v2")
    before = {"fault_undo": {"at": 13.5}, "fault_undone": {"at": 14}, "recovered": {"at": 20}}
    for more, is_ in (([joined], Outcome.INCONCLUSIVE), ([], Outcome.REFUTED)):
        host = [HostSecond(t=s * SECOND, cpu=99.0 if 50 < s < 59 else 50.0, others=1.0) for s in range(1, END + 42)]
        assert outcome("unrecovered", events=told(LATE, *more, **before), host=host) is is_


@pytest.mark.parametrize(
    ("metric", "events"),
    [
        ("drained", resized("in", FOUR[:3], event(58, "node.removed", node="n4", code=2))),
        ("undrained", told(SWAP, STOPPED)),
    ],
    ids=["it crashed", "it was not asked to"],
)
def test_what_is_no_matter_of_time_is_excused_by_no_full_machine(metric: str, events: list[Any]) -> None:
    assert outcome(metric, events=events, cpu=99.0) is Outcome.REFUTED


def test_other_work_in_half_of_the_last_quiet_period_excuses_replicas_that_were_traded_in_it() -> None:
    """In bursts that the trial as a whole does not show: the run's own use for as long excuses nothing."""
    for others, is_ in ((50.0, Outcome.INCONCLUSIVE), (5.0, Outcome.REFUTED)):
        bursts = {s for s in range(80, 101) if s % 9}
        quiet = [HostSecond(t=s * SECOND, cpu=50.0, others=1.0) for s in range(1, 500)]
        host = [s._replace(cpu=99.0, others=others) if s.t // SECOND in bursts else s for s in quiet]
        assert outcome("replicas_traded", host=host) is is_


@pytest.mark.parametrize(("seconds", "is_"), [(4, Outcome.REFUTED), (9, Outcome.INCONCLUSIVE)])
@pytest.mark.parametrize("kind", ["others", "own", "disks", "disks of nobody known", "network"])
def test_a_burst_in_an_outage_excuses_as_much_as_it_took(kind: str, seconds: int, is_: Outcome) -> None:
    """Of an outage of 34 s, of which 30 are allowed, in ten minutes that are quiet otherwise."""
    burst = {
        "others": {"cpu": 95.0, "others": 40.0},
        "own": {"cpu": 99.0, "others": 1.0},
        "disks": {"cpu": 20.0, "others": 1.0, "stalled": 80.0, "disk_others": 70.0},
        "disks of nobody known": {"cpu": 20.0, "others": 1.0, "stalled": 80.0},
        "network": {"cpu": 20.0, "others": 1.0, "network": 95.0},
    }[kind]
    quiet = {"cpu": 50.0, "others": 1.0}
    host = [HostSecond(t=s * SECOND, **(burst if 20 <= s < 20 + seconds else quiet)) for s in range(1, 600)]
    seen_ = probe(lambda r, tenth: r != "n2/1" or not 120 < tenth < 462, until=END)
    found = outcome("gap_s", probe=seen_, host=host, events=told(recovered={"at": 50}))
    assert found is is_
    twice = probe(
        lambda r, tenth: not (r == "n2/1" and 120 < tenth < 462) and not (r == "n3/2" and 130 < tenth < 470), until=END
    )
    each = [HostSecond(t=s * SECOND, **(burst if s == 12 else quiet)) for s in range(1, 600)]
    assert outcome("gap_s", probe=twice, host=each, events=told(recovered={"at": 50})) is Outcome.REFUTED
    later = [HostSecond(t=s * SECOND, **(burst if 52 <= s < 52 + seconds else quiet)) for s in range(1, 600)]
    assert outcome("gap_s", probe=seen_, host=later, events=told(recovered={"at": 50})) is Outcome.REFUTED


def test_seconds_that_were_well_served_excuse_no_degraded_ones() -> None:
    quiet, full = {"cpu": 50.0, "others": 1.0}, {"cpu": 99.0, "others": 1.0}
    for taken, is_ in ((range(45, 48), Outcome.REFUTED), (range(20, 24), Outcome.INCONCLUSIVE)):
        host = [HostSecond(t=s * SECOND, **(full if s in taken else quiet)) for s in range(1, END)]
        assert outcome("degraded_s", host=host) is is_


@pytest.mark.parametrize(
    ("taken", "is_"),
    [(range(12, 22), Outcome.REFUTED), (range(12, 34), Outcome.INCONCLUSIVE), (range(44, 60), Outcome.REFUTED)],
)
def test_half_of_the_time_of_buckets_that_are_too_low_excuses_them(taken: range, is_: Outcome) -> None:
    """As when a fourth node joins on two cores: those buckets lie after a change, where the machine has nothing left.

    They are too low from 12 s to 44 s.
    """
    quiet, full = {"cpu": 50.0, "others": 1.0}, {"cpu": 99.0, "others": 1.0}
    host = [HostSecond(t=s * SECOND, **(full if s in taken else quiet)) for s in range(1, END)]
    assert outcome("throughput_buckets_kept", host=host) is is_


@pytest.mark.parametrize(("cpu", "is_"), [(88.0, Outcome.REFUTED), (92.0, Outcome.INCONCLUSIVE)])
def test_a_machine_that_is_too_full_while_buckets_are_too_low_excuses_them(cpu: float, is_: Outcome) -> None:
    """As for TPC-C beside them: two cores that are in use to 96 % by five nodes have no second of 97 %."""
    host = [HostSecond(t=s * SECOND, cpu=cpu if 12 <= s < 44 else 50.0, others=1.0) for s in range(1, END)]
    assert outcome("throughput_buckets_kept", host=host) is is_
    elsewhere = [HostSecond(t=s * SECOND, cpu=50.0 if 12 <= s < 44 else cpu, others=1.0) for s in range(1, END)]
    assert outcome("throughput_buckets_kept", host=elsewhere) is Outcome.REFUTED


def test_other_work_in_the_other_half_of_a_trial_excuses_nothing() -> None:
    """Before the first fault nobody answered for long; after it other work had the machine."""
    limit, fields = EARLY["gap_undisturbed_s"]
    for taken, is_ in ((range(30, 50), Outcome.REFUTED), (range(1, 12), Outcome.INCONCLUSIVE)):
        host = [HostSecond(t=s * SECOND, cpu=92.0, others=60.0 if s in taken else 1.0) for s in range(1, END)]
        check = Check(
            metric="gap_undisturbed_s", comparison=Comparison.LE, limit=limit, unit="s", kind=Kind.ABSOLUTE, mark="R",
            source="us",
        )  # fmt: skip
        of = whole(**{"events": told(), "history": history(until=END), "host": host, **fields})
        assert decide(of, [check]).outcome is is_


@pytest.mark.parametrize("metric", ["gap_s", "unrecovered"])
def test_a_machine_that_has_no_time_records_late_and_each_record_counts_for_its_time(metric: str) -> None:
    late = [HostSecond(t=round(2.4 * n * SECOND), cpu=100.0, others=1.0) for n in range(1, round(END / 2.4))]
    assert outcome(metric, host=late) is Outcome.INCONCLUSIVE


EARLY: Mapping[str, tuple[float, dict[str, Any]]] = {
    "gap_undisturbed_s": (5, {"probe": probe(lambda _, tenth: not 20 < tenth < 90, until=END)}),
    "client_wait_undisturbed_s": (5, {"history": in_vain(history(until=END), 2, 9)}),
    "gap_unscaled_s": (5, {"probe": probe(lambda _, tenth: not 20 < tenth < 90, until=END), "events": growing()}),
    "failed_undisturbed": (1, {"history": unanswered()}),
    "client_wait_s": (5, {"history": in_vain(history(until=END), 2, 9)}),
}
"""What lasts too long before the first fault."""


@pytest.mark.parametrize("metric", EARLY)
@pytest.mark.parametrize(("others", "is_"), [(1.0, Outcome.REFUTED), (80.0, Outcome.INCONCLUSIVE)])
def test_what_came_before_the_first_fault_is_excused_by_what_others_took_there(
    metric: str, others: float, is_: Outcome
) -> None:
    limit, fields = EARLY[metric]
    host = [HostSecond(t=s * SECOND, cpu=92.0, others=others if s < 12 else 1.0) for s in range(1, END)]
    lines = fields.get("history", history(until=END))
    shared: dict[str, Any] = {"events": told(), "history": lines, "final": last_read(lines), "host": host}
    evidence = whole(**{**shared, "probe": probe(seen, until=END), **fields})
    unit = KNOWN_METRICS[metric].unit
    check = Check(
        metric=metric, comparison=Comparison.LE, limit=limit, kind=Kind.ABSOLUTE, mark="R", source="us", unit=unit
    )
    assert decide(evidence, [check]).outcome is is_


@pytest.mark.parametrize("metric", LASTING)
def test_clients_that_stood_still_by_their_own_record_refute_nothing(metric: str) -> None:
    """For 40 s, after which they are as late."""
    lines = LASTING[metric][2].get("history", history(until=END))
    frozen = [
        replace(line, lag_us=40 * SECOND) if isinstance(line, GeneratorSecond) and line.t == 52 * SECOND else line
        for line in lines
        if not (isinstance(line, GeneratorSecond) and 12 * SECOND <= line.t < 52 * SECOND)
    ]
    left = Outcome.REFUTED if metric in WITHOUT_CLIENTS else Outcome.INCONCLUSIVE
    assert outcome(metric, history=frozen) is left


@pytest.mark.parametrize("metric", sorted({*KNOWN_METRICS} - {*TPCC_METRICS}))
def test_whatever_is_a_time_or_a_speed_is_excused_by_a_machine_that_was_taken(metric: str) -> None:
    info = KNOWN_METRICS[metric]
    assert info.timed or info.unit not in ("s", "min", "ms", "1/s", "ops/s", "%/min")


@pytest.mark.parametrize("others", [1.0, 60.0])
def test_a_row_that_is_gone_refutes_on_any_machine(others: float) -> None:
    lines = history(until=END)
    fields = {"history": lines, "final": last_read(lines, without=(17,)), "events": told()}
    host = [HostSecond(t=second * SECOND, cpu=100.0, others=others) for second in range(1, END)]
    lost = Check(metric="lost", comparison=Comparison.EQ, limit=0, kind=Kind.ABSOLUTE, mark="R", source="us")
    assert decide(whole(**fields, host=host), [lost]).outcome is Outcome.REFUTED


@pytest.mark.parametrize(
    ("record", "crc", "time"),
    [
        ({}, "0", Outcome.REFUTED),
        ({"host": []}, "", Outcome.REFUTED),
        ({"host": []}, "0", Outcome.INCONCLUSIVE),
        ({"host_problems": ("host.jsonl: 2.0 s after 3.0 s, times run backwards",)}, "0", Outcome.INCONCLUSIVE),
        ({"host": [], "host_problems": ("host.jsonl: line 1: 'x' is no second",)}, "", Outcome.INCONCLUSIVE),
    ],
    ids=["whole", "of an older release", "missing", "backwards", "nonsense"],
)
def test_times_rest_on_the_record_of_the_machine_and_lost_rows_do_not(
    record: dict[str, Any], crc: str, time: Outcome
) -> None:
    """Only evidence of older releases may lack it."""
    end = {"lines": 1, "crc": crc, "files": {}} if crc else {}
    events = [*told(trial_end=None), event(END + 1.1, "trial.end", **end)]
    for metric in ("gap_s", "unreadable"):
        assert outcome(metric, events=events, **record) is time, metric
    lines = history(until=END)
    lost = Check(metric="lost", comparison=Comparison.EQ, limit=0, kind=Kind.ABSOLUTE, mark="R", source="us")
    of = whole(**{"history": lines, "final": last_read(lines, without=(17,)), "events": events, **record})
    assert decide(of, [lost]).outcome is Outcome.REFUTED
