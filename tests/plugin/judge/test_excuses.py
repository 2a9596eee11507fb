"""What takes too long refutes, unless other work had the machine, or the load's own clients stood still."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from fixtures.workloads.ledger.records import Failed, GeneratorSecond, HistoryLine, Ok
from fixtures.workloads.tpcc.judge.metrics import TPCC_METRICS
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
}  # fmt: skip
"""What lasts too long, by the metric that says so, and the check that it exceeds."""

WITHOUT_CLIENTS = {
    "gap_s", "gap_undisturbed_s", "gap_resuming_s", "gap_scaling_s", "away_again_scaling", "unrecovered", "unreadable",
    "errors_not_retryable", "errors_undisturbed",
}  # fmt: skip
"""What is seen by others than the load's own clients, or said by the server."""


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
            "host": [HostSecond(t=second * SECOND, cpu=cpu, others=others) for second in range(1, END + 2)],
            **fields,
            **changes,
        }
    )
    return decide(evidence, [check]).outcome


@pytest.mark.parametrize("metric", LASTING)
def test_it_refutes_unless_other_work_had_the_machine(metric: str) -> None:
    assert outcome(metric) is Outcome.REFUTED
    assert outcome(metric, others=60.0) is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("metric", LASTING)
def test_what_lasts_is_excused_by_a_machine_that_had_nothing_left(metric: str) -> None:
    """Whoever used it: where the run itself exhausts the machine, it is too small for the profile."""
    assert outcome(metric, cpu=96.0) is Outcome.REFUTED
    assert outcome(metric, cpu=98.0) is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(("seconds", "is_"), [(4, Outcome.REFUTED), (9, Outcome.INCONCLUSIVE)])
@pytest.mark.parametrize("kind", ["others", "own", "disks", "disks of nobody known"])
def test_a_burst_in_an_outage_excuses_as_much_as_it_took(kind: str, seconds: int, is_: Outcome) -> None:
    """Of an outage of 34 s, of which 30 are allowed, in ten minutes that are quiet otherwise."""
    burst = {
        "others": {"cpu": 95.0, "others": 40.0},
        "own": {"cpu": 99.0, "others": 1.0},
        "disks": {"cpu": 20.0, "others": 1.0, "stalled": 80.0, "disk_others": 70.0},
        "disks of nobody known": {"cpu": 20.0, "others": 1.0, "stalled": 80.0},
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
    assert info.timed or info.unit not in ("s", "min", "ms", "1/s", "ops/s")


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
