"""Each evidence condition: met by a whole trial, and not met when what it asks for is missing."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace as changed

from fixtures.workloads.ledger.records import (
    Connection,
    Failed,
    GeneratorSecond,
    HistoryEnd,
    HistoryLine,
    Invoke,
    LedgerEvidence,
    Ok,
    Op,
    Refused,
    Unknown,
    numbers,
)
from fixtures.workloads.tenants.judge.growth import GROWTH_CONDITIONS as TENANT_GROWTH_CONDITIONS
from fixtures.workloads.tenants.judge.load_conditions import LOAD_CONDITIONS
from fixtures.workloads.tenants.judge.metrics import TENANTS_CONDITIONS
from fixtures.workloads.tpcc.judge.beside import BESIDE_CONDITIONS
from fixtures.workloads.tpcc.judge.conditions import TPCC_CONDITIONS
from fixtures.workloads.tpcc.judge.consistency import CONSISTENCY_CONDITIONS
from plugin.evidence.events import Event
from plugin.evidence.records import MalformedRecord, ProbeSecond
from plugin.judge.conditions import KNOWN_CONDITIONS, advice, condition
from plugin.judge.growth_conditions import GROWTH_CONDITIONS
from plugin.judge.objects import OBJECTS_CONDITIONS
from plugin.judge.swapping_conditions import SWAPPING_CONDITIONS
from plugin.judge.trial import HostSecond
from tests.plugin.judge.histories import SECOND, event, events, probe, trial
from tests.plugin.judge.whole_trial import OFTEN, history, host, last_read, seen, whole


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in KNOWN_CONDITIONS
        if name
        not in {
            *TPCC_CONDITIONS,
            *BESIDE_CONDITIONS,
            *CONSISTENCY_CONDITIONS,
            *GROWTH_CONDITIONS,
            *SWAPPING_CONDITIONS,
            *OBJECTS_CONDITIONS,
            *LOAD_CONDITIONS,
            *TENANTS_CONDITIONS,
            *TENANT_GROWTH_CONDITIONS,
        }
    ],
)
def test_a_whole_trial_meets_every_condition(name: str) -> None:
    found = condition(whole(), name)
    assert found.met, found.why
    assert found.why
    assert advice(name)


@pytest.mark.parametrize(
    "name", [name for name in KNOWN_CONDITIONS if name not in ("integrity", "no_errors", "clocks_read")]
)
def test_a_trial_without_evidence_meets_none(name: str) -> None:
    found = condition(trial(), name)
    assert not found.met
    assert found.why


def test_an_unknown_condition_is_never_met() -> None:
    found = condition(whole(), "all_is_well")
    assert not found.met
    assert "no condition of this name" in found.why


def malformed() -> Any:
    yield from history()[:100]
    raise MalformedRecord("line 101: 'x' is not a ledger record")


NO_LEASE = {"leases": {"n1": 0, "n2": 5}}


def reached_nobody() -> list[HistoryLine]:
    return [line for line in history() if not isinstance(line, Connection)]


def away(*, until: int | None = None) -> list[HistoryLine]:
    """A writer without a connection from 12 s on."""
    lost = Connection(12 * SECOND, "w9", "n1", False, "connection lost")
    return [lost, *([Connection(until * SECOND, "w9", "n2", True, "n2")] if until else [])]


def late_once() -> list[HistoryLine]:
    """The generator was late by 3 s in second 20."""
    at = next(i for i, line in enumerate(history()) if isinstance(line, GeneratorSecond) and line.t == 20 * SECOND)
    return [changed(line, lag_us=3_000_000) if i == at else line for i, line in enumerate(history())]


def late_probe() -> Any:
    header, lines = probe(seen)
    lines[14] = ProbeSecond(lines[14].t, 600_000, lines[14].routes)
    return header, lines


def without(second: range) -> Any:
    header, lines = probe(seen)
    return header, [line for line in lines if line.t // SECOND not in second]


BROKEN: dict[str, tuple[str, Callable[[], dict[str, Any]], str]] = {
    "edited": ("integrity", lambda: {"problems": ("ledger.tsv was changed after the run",)}, "was changed"),
    "contradictory": ("integrity", lambda: {"history": [Ok(1, 5, numbers()), *history()]}, "never invoked"),
    "error": (
        "no_errors",
        lambda: {"events": [*events(), event(31, "error", what="the prober died")]},
        "the prober died",
    ),
    "clock unread": (
        "clocks_read",
        lambda: {"events": [*events(), event(1, "clocks", own="boot 1", unread={"n2": "n2 is silent"})]},
        "the clock of n2 could not be read: n2 is silent",
    ),
    "cut off": ("history_complete", lambda: {"history": history()[:-1]}, "no end"),
    "empty": ("history_complete", lambda: {"history": [HistoryEnd(1)]}, "empty"),
    "no final read": ("audit_complete", lambda: {"final": None}, "no final read"),
    "a bucket left out": (
        "audit_complete",
        lambda: {"final": last_read(history(), unread=[1])},
        "buckets never read: 1;",
    ),
    "hardly a read": (
        "reads_answered",
        lambda: {"history": history(until=22)},
        "80 reads answered from 12.0 s on, at least 100 asked",
    ),
    "no proof": ("fault_bit", lambda: {"events": events(fault_bit=None)}, "kill of n1"),
    "proof of another": ("fault_bit", lambda: {"events": events(fault_bit={"node": "n2"})}, "kill of n1"),
    "one of two proven": ("fault_bit", lambda: {"events": events(fault_begin={"nodes": ["n1", "n2"]})}, "kill of n2"),
    "aimed at nobody": ("fault_bit", lambda: {"events": events(fault_begin={"nodes": []})}, "of no node"),
    "not brought back": (
        "brought_back",
        lambda: {"events": events(fault_undo=None, fault_undone=None)},
        "n1, hit at 12.0 s",
    ),
    "no lease": ("fault_hit", lambda: {"events": events(fault_begin=NO_LEASE)}, "0 leases and"),
    "no connection": (
        "fault_hit",
        lambda: {"history": reached_nobody()},
        "0 connections of writers cut, 0 writes broken",
    ),
    "not recovered": ("recovered", lambda: {"events": events(recovered=None)}, "no recovery"),
    "recovered before": ("recovered", lambda: {"events": events(recovered={"at": 15.5})}, "no recovery"),
    "replicated late": (
        "replicated_before",
        lambda: {"events": events(replicated={"at": 13})},
        "after the first fault",
    ),
    "never replicated": ("replicated_before", lambda: {"events": events(replicated=None)}, "never seen"),
    "a bare node": (
        "spread_before",
        lambda: {"events": events(ledger_created={"leases": {"n1": 9, "n2": 0, "n3": 1}})},
        "n2: 0",
    ),
    "a node unseen": (
        "spread_before",
        lambda: {"events": events(ledger_created={"leases": {"n1": 4, "n2": 5}})},
        "3 nodes",
    ),
    "few ranges": ("spread_before", lambda: {"events": events(ledger_created={"ranges": 8})}, "8 ranges on 3 nodes"),
    "probe with a hole": ("probe_complete", lambda: {"probe": without(range(14, 17))}, "nothing is recorded between"),
    "probe without a bucket": (
        "probe_complete",
        lambda: {"probe": probe(seen, routes=("n2/0", "n2/1"))},
        "bucket 2 has no route",
    ),
    "probe of a dead route": (
        "probe_complete",
        lambda: {"probe": probe(lambda c, t: c != "n3/2")},
        "route n3/2 had no success",
    ),
    "probe without a node": (
        "probe_complete",
        lambda: {"events": events(provisioned={"nodes": ["n1", "n2", "n3", "n4"]})},
        "node n4 has no route",
    ),
    "probe begins after the first write": (
        "probe_complete",
        lambda: {"probe": without(range(4)), "events": events(baseline_begin={"at": 5.0})},
        "the probe begins at 4.0 s, the window at 1.0 s",
    ),
    "probe ends early": ("probe_complete", lambda: {"probe": probe(seen, until=15)}, "the probe ends at 14.0 s"),
    "probe late": ("probe_on_time", lambda: {"probe": late_probe()}, "late in 1 second, largest lag 0.60 s"),
    "stopped at recovery": (
        "written_past_recovery",
        lambda: {"history": history(until=22)},
        "2.0 s after recovery, 10 s",
    ),
    "past recovery undeclared": (
        "written_past_recovery",
        lambda: {"events": events(trial_begin={"past_recovery_s": None})},
        "not declared",
    ),
    "idle under the fault": (
        "writes_in_window",
        lambda: {"history": history(quiet=range(12, 17))},
        "no write was attempted",
    ),
    "generator that stood still": (
        "writers_on_time",
        lambda: {"history": [line for line in history() if line.t > 25 * SECOND or line.t < 20 * SECOND]},
        "6.00 s at the most",
    ),
    "generator that was late once": (
        "writers_on_time",
        lambda: {"history": late_once()},
        "3.00 s at the most",
    ),
    "a client that came back late": (
        "clients_tried_again",
        lambda: {"history": [*history(), *away(until=25)]},
        "tried nothing again: w9 for 13.0 s",
    ),
    "a client that never came back": (
        "clients_tried_again",
        lambda: {"history": [*history(), *away()]},
        "tried nothing again: w9 for ",
    ),
    "inserts that still came when they were given up": (
        "time_enough_to_insert",
        lambda: {"events": [*events(), event(29, "inserts_short", why="8000 of 9000 rows after 60 s")]},
        "8000 of 9000 rows after 60 s; the last write was acknowledged 0.1 s before writing ended",
    ),
    "late generator": ("generator_on_schedule", lambda: {"history": history(lag_us=260_000)}, "260 ms"),
    "generator at its limit": ("generator_on_schedule", lambda: {"history": history(cpu_us=950_000)}, "95 % of a core"),
    "generator with holes": (
        "generator_on_schedule",
        lambda: {
            "history": [line for line in history() if not (isinstance(line, GeneratorSecond) and line.t // SECOND % 2)]
        },
        "s of the baseline, at least",
    ),
    "a crowded machine": (
        "machine_free",
        lambda: {"host": host(others=40.0)},
        "other work took 40 % of the machine's CPU, and in 19 of 19 s",
    ),
    "others not recorded": ("machine_free", lambda: {"host": host(others=None)}, "nobody recorded"),
    "unsteady baseline": (
        "baseline_steady",
        lambda: {"history": history(quiet=range(5, 6), rate=OFTEN)},
        "10.0% of them",
    ),
    "unsteady baseline on a full machine": (
        "baseline_steady",
        lambda: {"history": history(quiet=range(5, 6), rate=OFTEN), "host": host(others=1.0)},
        "10.0% of them below 80% of it (limit 1%); 92 % of the machine's CPU was in use, limit 90 %: it is asked for",
    ),
    "short baseline": (
        "baseline_steady",
        lambda: {"history": history(rate=OFTEN), "events": events(baseline_end={"at": 5.0})},
        "4 buckets of 1 s (at least 5 asked, which take 5 s, and it had 4.0 s)",
    ),
    "slow baseline": (
        "baseline_steady",
        lambda: {"history": history(rate=80)},
        "3 buckets of 3 s (at least 5 asked, which in 10 s take 100 operations a second, and it had 80)",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_missing_is_noticed_and_said(case: str) -> None:
    name, fields, said = BROKEN[case]
    found = condition(whole(**fields()), name)
    assert not found.met
    assert said in found.why


ALL = ["n1", "n2", "n3"]
EACH = {"nodes": {node: [node] for node in ALL}}
ONE = {"nodes": {"in": ALL}}
SPREAD, TOGETHER = {"n1": 2, "n2": 3, "n3": 1}, {"n1": 6, "n2": 0, "n3": 0}
WATCHED: dict[str, tuple[dict[str, Any], bool, dict[str, int], list[str]]] = {
    "every node": (EACH, False, SPREAD, []),
    "one way in": (ONE, True, TOGETHER, []),
    "a balancer before nodes that all serve": (ONE, True, SPREAD, ALL),
    "routes renamed": (EACH, True, SPREAD, ALL),
    "routes renamed, nobody hit": (EACH, True, TOGETHER, ALL),
    "no nodes behind it": ({"nodes": {"in": 5}}, True, TOGETHER, ALL),
    "an older probe of every node": ({}, False, SPREAD, []),
    "an older probe of one way in": ({}, True, TOGETHER, []),
    "an older probe, its routes renamed": ({}, True, SPREAD, ALL),
}
"""What a probe says, whether its routes go through ``in``, at which nodes clients were; and which are unwatched."""


@pytest.mark.parametrize("case", WATCHED)
def test_every_node_that_serves_clients_is_watched_whatever_its_routes_are_called(case: str) -> None:
    said, renamed, connections, unwatched = WATCHED[case]
    through = ("in/0", "in/1", "in/2") if renamed else ("n1/0", "n2/1", "n3/2")
    header, lines = probe(lambda *_: True, routes=through)
    told = events(provisioned={"nodes": ALL}, fault_begin={"connections": connections})
    found = condition(whole(events=told, probe=({**header, **said}, lines)), "probe_complete")
    assert found.met is not bool(unwatched)
    assert [node for node in ALL if f"node {node} has no route" in found.why] == unwatched


def test_a_malformed_history_is_neither_complete_nor_sound() -> None:
    evidence = trial(workloads={"ledger": LedgerEvidence(history=malformed)})
    for name in ("history_complete", "integrity"):
        found = condition(evidence, name)
        assert not found.met
        assert "line 101" in found.why


@pytest.mark.parametrize("load", [{"others": 40.0, "cpu": 80.0}, {"others": 9.0}], ids=["room left", "a little"])
def test_other_work_that_left_room_makes_no_crowd(load: dict[str, float]) -> None:
    found = condition(whole(host=host(**load)), "machine_free")
    assert found.met, found.why


@pytest.mark.parametrize(
    ("stalled", "disk_others", "free"),
    [(60.0, 40.0, False), (60.0, 10.0, True), (40.0, 90.0, True), (60.0, None, False), (None, 90.0, True)],
    ids=["others' work", "own work", "room left", "nobody knows whose", "waits not recorded"],
)
def test_disks_that_other_work_keeps_busy_are_a_crowd(
    stalled: float | None, disk_others: float | None, free: bool
) -> None:
    """The CPU has room: everything waits."""
    seconds = [HostSecond(s * SECOND, 20.0, 1.0, stalled, disk_others) for s in range(1, 31)]
    found = condition(whole(host=seconds), "machine_free")
    assert found.met is free
    assert ("in 19 s everything waited for disks" in found.why) is not free
    assert ("nobody could see whose it was" in found.why) is (not free and disk_others is None)


def test_inserts_that_came_no_more_had_time_enough() -> None:
    short = [*events(), event(29, "inserts_short", why="5000 of 9000 rows after 60 s")]
    found = condition(whole(history=history(quiet=range(19, 30)), events=short), "time_enough_to_insert")
    assert found.met
    assert "the last write was acknowledged 11.1 s before writing ended" in found.why


@pytest.mark.parametrize(("taken", "free"), [(9, True), (10, False)])
def test_a_machine_that_was_taken_for_as_long_as_an_outage_may_last_explains_it_in_a_long_trial(
    taken: int, free: bool
) -> None:
    """Of ten minutes these are less than a tenth."""
    crowd = range(100, 100 + taken)
    seconds = [HostSecond(t=s * SECOND, cpu=100.0, others=60.0 if s in crowd else 1.0) for s in range(1, 600)]
    found = condition(whole(host=seconds), "machine_free")
    assert found.met is free
    assert f"for {taken} s at a stretch" in found.why


def test_a_crowd_before_the_fault_is_none_of_its_own() -> None:
    early, late = host(others=40.0)[:11], host(others=1.0)[11:]
    evidence = whole(host=[*early, *late])
    assert condition(evidence, "machine_free").met
    before = condition(evidence, "machine_free_before")
    assert not before.met
    assert "11 of 11 s" in before.why
    assert condition(whole(host=[*host(others=1.0)[:11], *host(others=40.0)[11:]]), "machine_free_before").met


def test_an_unreadable_bucket_is_declared_and_completes_the_audit() -> None:
    found = condition(whole(final=last_read(history(), unreadable=[1])), "audit_complete")
    assert found.met
    assert "1 declared unreadable" in found.why


@pytest.mark.parametrize("answer", [Failed, Unknown])
def test_an_operation_broken_on_the_victim_is_a_hit(answer: Any) -> None:
    insert = Invoke(13 * SECOND, 10**6, "w1", "n1", Op.INSERT, numbers([20000]), 1)
    broken = [insert, answer(14 * SECOND, 10**6, "timeout")]
    found = condition(whole(history=[*reached_nobody()[:-1], *broken, history()[-1]]), "fault_hit")
    assert found.met, found.why


def test_what_only_readers_lost_is_no_hit() -> None:
    read = Invoke(13 * SECOND, 10**6, "r1", "n1", Op.READ, numbers([2]), 0)
    broken = [
        read,
        Failed(14 * SECOND, 10**6, "timeout"),
        Connection(14 * SECOND, "r1", "n1", False, "reset"),
    ]
    assert not condition(whole(history=[*reached_nobody()[:-1], *broken, history()[-1]]), "fault_hit").met


@pytest.mark.parametrize(("client", "at", "met"), [("w3", 13, True), ("r1", 13, False), ("w3", 16, False)])
def test_a_writer_whom_no_node_took_attempted_to_write(client: str, at: int, met: bool) -> None:
    """While the fault was proven and not yet being undone."""
    lines = history(quiet=range(12, 15))
    refused = Refused(at * SECOND, client, "primary", "refused")
    assert condition(whole(history=[*lines[:-1], refused, lines[-1]]), "writes_in_window").met is met


def test_what_broke_before_the_fault_or_after_recovery_is_no_hit() -> None:
    cuts = [Connection(t * SECOND, "w1", "n1", False) for t in (11, 21)]
    assert not condition(whole(history=[*reached_nobody()[:-1], *cuts, history()[-1]]), "fault_hit").met


def test_an_engine_without_ranges_need_not_spread_them() -> None:
    created: Event = event(0.5, "ledger.created", table="ledger", buckets=3, reports_ranges=False, ranges=0, leases={})
    assert condition(whole(events=[*events(ledger_created=None), created]), "spread_before").met


def test_an_engine_that_reports_no_leases_is_hit_by_its_connections() -> None:
    found = condition(whole(events=events(fault_begin={"leases": {}})), "fault_hit")
    assert found.met
    assert "not reported" in found.why
