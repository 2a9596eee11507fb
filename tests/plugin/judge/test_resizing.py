"""Nodes that get other CPU and memory one after another, as events tell it."""

from collections.abc import Iterable
from typing import Any

import pytest

from fixtures.workloads.ledger.records import Connection
from plugin.evidence.events import Event
from plugin.judge.conditions import condition
from plugin.judge.metrics import measure
from plugin.judge.trial import timeline
from tests.plugin.judge.histories import trial
from tests.plugin.recorded import recorded

S = 1_000_000
ASKED = {"cpus": 0.5, "memory_mib": 1024, "cache_mib": 256, "sql_memory_mib": 256}


def event(t: float, name: str, **data: Any) -> Event:
    return recorded(round(t * S), name, data)


def step(t: float, node: str, shown: dict[str, float] | None = None, *, takes: float = 5) -> Iterable[Event]:
    """One node drained, started again after so many seconds, and the cluster whole 2 s later."""
    yield event(t, "fault.begin", fault="resize", nodes=[node])
    yield event(t + 1, "fault.bit", node=node)
    yield event(t + 2, "fault.undo", nodes=[node])
    yield event(t + takes, "node.resized", node=node, size="0.5/1024", shown=ASKED if shown is None else shown)
    yield event(t + takes, "fault.undone", nodes=[node])
    yield event(t + takes + 2, "recovered")


def measured(name: str, *events: Event) -> tuple[float | None, str]:
    found = measure(trial(events=sorted(events, key=lambda e: e.t)), name)
    return found.value, found.note


BEGIN = event(10, "size.begin", size="0.5/1024", nodes=["n1", "n2", "n3"], asked=ASKED)
NODES = ("n1", "n2", "n3")


def test_one_after_another_each_as_asked_for() -> None:
    events = [BEGIN, *(e for i, node in enumerate(NODES) for e in step(11 + 10 * i, node))]
    assert measured("nodes_down_at_once", *events)[0] == 1
    assert measured("nodes_with_old_resources", *events) == (0, "0.5/1024: all as asked for")


def test_two_that_overlap_are_down_at_once_and_one_that_died_counts() -> None:
    overlapping = [*step(11, "n1"), *step(14, "n2")]
    assert measured("nodes_down_at_once", *overlapping) == (2, "n1, n2 at 14.0 s")
    died = [*step(11, "n1"), event(20, "node.died", node="n3"), *step(25, "n2")]
    assert measured("nodes_down_at_once", *died) == (2, "n2, n3 at 25.0 s")


def test_a_node_that_never_came_back_is_still_down_when_the_next_goes() -> None:
    never = [e for e in step(11, "n1") if e.name != "fault.undone"]
    assert measured("nodes_down_at_once", *never, *step(60, "n2"))[0] == 2


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        (ASKED | {"cpus": 0.25}, "n2 at 0.5/1024: cpus 0.5 asked, 0.25 shown"),
        (ASKED | {"cache_mib": 384}, "n2 at 0.5/1024: cache_mib 256 asked, 384 shown"),
        (ASKED | {"sql_memory_mib": 384}, "n2 at 0.5/1024: sql_memory_mib 256 asked, 384 shown"),
        ({"cpus": 0.5, "cache_mib": 256}, "n2 at 0.5/1024: memory_mib 1024 asked, nothing shown"),
    ],
)
def test_what_differs_is_named(shown: dict[str, float], why: str) -> None:
    assert measured("nodes_with_old_resources", BEGIN, *step(11, "n1"), *step(21, "n2", shown), *step(31, "n3")) == (
        1,
        why,
    )


def test_a_node_that_was_left_out_has_its_old_size() -> None:
    value, note = measured("nodes_with_old_resources", BEGIN, *step(11, "n1"), *step(21, "n2"))
    assert (value, note.partition(":")[0]) == (1, "n3 at 0.5/1024")
    # what it showed in an earlier round of the same size does not count for this one
    again = event(50, "size.begin", size="0.5/1024", nodes=["n1"], asked=ASKED)
    assert (
        measured(
            "nodes_with_old_resources",
            event(9, "size.begin", size="0.5/1024", nodes=["n1"], asked=ASKED),
            *step(11, "n1"),
            again,
        )[0]
        == 1
    )


def test_what_an_engine_does_not_tell_is_not_asked_of_it() -> None:
    control = {name: value for name, value in ASKED.items() if name != "sql_memory_mib"}
    assert measured("nodes_with_old_resources", BEGIN, *(e for n in NODES for e in step(11, n, control)))[0] == 0


def test_nothing_recorded_is_nothing_measured() -> None:
    assert measured("nodes_down_at_once") == (None, "no node was taken down")
    assert measured("nodes_with_old_resources") == (None, "no node was given another size")


def test_disturbances_follow_each_other_or_are_one() -> None:
    apart = timeline([*step(10, "n1"), *step(20, "n2")]).disturbances
    assert [(one.window, one.victims) for one in apart] == [
        ((10 * S, 18 * S), frozenset({"n1"})),
        ((20 * S, 27 * S), frozenset({"n2"})),
    ]
    events = sorted([*step(10, "n1"), *step(14, "n2")], key=lambda e: e.t)
    (one,) = timeline(events).disturbances
    assert (one.window, one.victims) == ((10 * S, 21 * S), frozenset({"n1", "n2"}))
    assert timeline([]).disturbances == ()


def test_a_cluster_is_whole_after_a_fault_once_that_was_undone() -> None:
    early = [*step(10, "n1"), event(12.5, "recovered"), event(30, "recovered")]
    for events, whole in (
        (early, 17),
        ([e for e in early if e.name != "fault.undone"], 12.5),
        ([e for e in early if e.name != "recovered"], None),
    ):
        found = timeline(sorted(events, key=lambda e: e.t))
        assert found.whole_after(found.faults[0]) == (whole and whole * S)


def test_half_of_the_restarts_must_hit_what_serves() -> None:
    """A node whose clients left it before, and that leads nothing, need not be hit."""
    held = {"n1": {"n1": 3}, "n2": {"n2": 3}, "n3": {}}

    def of(*cut: str) -> bool:
        events = [
            recorded(e.t, e.name, {**e.data, "leases": held[node], "connections": held[node]})
            if e.name == "fault.begin"
            else e
            for i, node in enumerate(NODES)
            for e in step(11 + 10 * i, node)
        ]
        lost = [Connection((12 + 10 * i) * S, "w1", node, False) for i, node in enumerate(NODES) if node in cut]
        return condition(trial(events=events, history=lost), "fault_hit").met

    assert of("n1", "n2")
    assert of("n1")
    assert not of()
    assert not of("n3"), "that one served nothing"
