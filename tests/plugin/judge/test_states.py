"""The states that a cluster goes through while its version is changed, as events tell them."""

import pytest

from plugin.evidence.events import Event
from plugin.judge.definitions import NotRecorded
from plugin.judge.states import states
from tests.plugin.judge.histories import event, trial

BUILDS = {"1.0": "v1.0 (old)", "1.1": "v1.1 (new)"}


def swapped(t: float, node: str, build: str) -> Event:
    return event(t, "node.swapped", node=node, wanted=build, build=build)


def told(*more: Event, builds: dict[str, str] = BUILDS, without: str = "") -> list[Event]:
    events = [
        event(0, "plan.drawn", path="final", seed=1, steps=9, builds=builds),
        event(1, "provisioned", nodes=["n1", "n2"]),
        event(10, "baseline.begin"),
        event(20, "baseline.end"),
        event(100, "writing.end"),
        *more,
    ]
    return sorted((one for one in events if one.what.__struct_config__.tag != without), key=lambda one: one.t)


def found(events: list[Event]) -> list[tuple[str, float, float]]:
    return [(one.name, one.window[0] / 1e6, one.window[1] / 1e6) for one in states(trial(events=events))]


def test_there_and_back_and_for_good() -> None:
    old, new = BUILDS.values()
    there = [swapped(30, "n1", new), swapped(40, "n2", new)]
    back = [swapped(50, "n2", old), swapped(55, "n1", old)]
    again = [swapped(60, "n1", new), swapped(70, "n2", new), event(80, "step.begin", number=9, kind="finalise")]
    assert found(told(*there, *back, *again)) == [
        ("1.0", 10, 30), ("1.0 + 1.1", 30, 40), ("1.1", 40, 50), ("1.0 + 1.1", 50, 55), ("1.0", 55, 60),
        ("1.0 + 1.1", 60, 70), ("1.1", 70, 80), ("1.1, made final", 80, 100),
    ]  # fmt: skip


def test_a_rolling_restart_is_one_state() -> None:
    same = dict.fromkeys(BUILDS, "v1.0")
    assert found(told(swapped(30, "n1", "v1.0"), builds=same)) == [("1.0", 10, 100)]


def test_of_a_chain_that_ends_where_it_began_each_state_has_the_name_that_it_has_in_the_plan() -> None:
    chain = {"1.0": "v1.0", "1.1": "v1.1", "1.0#2": "v1.0"}
    there = [swapped(30, "n1", "v1.1"), swapped(40, "n2", "v1.1"), event(50, "step.begin", number=5, kind="finalise")]
    back = [swapped(60, "n1", "v1.0"), swapped(70, "n2", "v1.0"), event(80, "step.begin", number=9, kind="finalise")]
    assert [name for name, *_ in found(told(*there, *back, builds=chain))] == [
        "1.0", "1.0 + 1.1", "1.1", "1.1, made final", "1.1 + 1.0#2", "1.0#2", "1.0#2, made final",
    ]  # fmt: skip


def test_a_node_may_call_itself_what_nobody_gave_it() -> None:
    other = told(swapped(30, "n1", "v9"), swapped(40, "n2", ""))
    assert found(other) == [("1.0", 10, 30), ("1.0 + v9", 30, 40), ("an unknown build + v9", 40, 100)]


def test_nothing_counts_before_the_baseline_or_after_writing_ended() -> None:
    new = BUILDS["1.1"]
    assert found(told(swapped(5, "n1", new), swapped(110, "n2", new))) == [("1.0 + 1.1", 10, 100)]


@pytest.mark.parametrize("missing", ["plan.drawn", "baseline.begin", "writing.end"])
def test_what_was_not_recorded_is_told(missing: str) -> None:
    with pytest.raises(NotRecorded):
        states(trial(events=told(without=missing)))
