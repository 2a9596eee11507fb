"""States and versions of nodes, and what was done of a plan, from events as a test records them."""

import csv
import io

import pytest

from plugin.evidence.plan import PlannedStep, StoredPlan
from plugin.judge.metrics import measure
from plugin.judge.mixed import Ended
from plugin.judge.trial import TrialEvidence
from plugin.reports.swapping_charts import shortened
from plugin.reports.swapping_series import SwappingSeries, swapping_series
from plugin.reports.swapping_tables import done_of, facts, rolls
from plugin.reports.timeline import as_csv, timeline_of
from tests.plugin.reports.swaps import NEW, OLD, PLAN, STEPS, begun, done, drawn, event, heard, swapped


def of(*events: object, plan: StoredPlan | None = PLAN, **evidence: object) -> SwappingSeries:
    found = heard(events, plan=plan, **evidence).swapping  # type: ignore[arg-type]
    assert found is not None
    return found


def states(found: SwappingSeries, node: str) -> list[tuple[str, float, float]]:
    return [(band.name, band.begin, band.end) for band in found.lanes[node]]


def test_a_lane_has_every_state_with_the_version_that_runs() -> None:
    found = of(*done())
    assert states(found, "n3") == [
        ("starting", 0.1, 2.0),
        (OLD, 2.0, 18.0),
        ("draining", 18.0, 19.0),
        ("down", 19.0, 20.0),
        ("not ready", 20.0, 21.0),
        (NEW, 21.0, 43.0),
        ("draining", 43.0, 44.0),
        ("down", 44.0, 45.0),
        ("not ready", 45.0, 46.0),
        (OLD, 46.0, 53.6),
    ]
    assert states(found, "n4") == [("starting", 48.0, 49.0), (NEW, 49.0, 53.6)]
    assert states(found, "n5") == [("starting", 53.0, 53.5)], "it was kept out"
    assert found.versions == (OLD, NEW)
    assert found.running == {"n1": OLD, "n2": OLD, "n3": OLD, "n4": NEW}
    assert found.active == {"n1": "1.1", "n2": "1.1", "n3": "1.0"}
    assert found.back == "1.1 was made final: there is no way back"


def test_a_new_node_is_told_by_what_it_calls_itself() -> None:
    events = [one for one in done() if one.name != "node.joined"]
    found = of(*events, event(49, "node.joined", node="n4", build=OLD, wanted=NEW))
    assert states(found, "n4") == [("starting", 48.0, 49.0), (OLD, 49.0, 53.6)]
    assert found.running["n4"] == OLD
    assert found.steps[7].came == (f"n4 was taken in, and calls itself {OLD}",)


def test_without_a_look_at_processes_a_node_is_down_until_it_takes_clients() -> None:
    blind = [one for one in swapped(18, "n3", NEW) if one.name != "processes.seen"]
    assert states(of(drawn(), *blind), "n3")[2:4] == [("draining", 18.0, 19.1), ("down", 19.1, 21.0)]


def test_each_swap_is_what_the_node_was_given_and_calls_itself() -> None:
    first, *_, last = of(*done()).swaps
    assert (first.node, first.before, first.wanted, first.build, first.active) == ("n3", OLD, NEW, NEW, "1.0")
    assert (first.begin, first.down, first.up, first.whole) == (18.0, 19.0, 21.0, 22.0)
    assert (first.ended, first.gap_s, first.others_gap_s) == (None, None, None)
    assert (last.before, last.wanted) == (NEW, OLD)


def test_connections_are_those_of_the_node_s_own_swap() -> None:
    trial = TrialEvidence(
        claim="hot-swap", profile="laptop", seed=7, buckets=0, events=sorted(done(), key=lambda e: e.t)
    )
    counted = {
        (node, begin): Ended(node=node, begin=begin, at="", held=9, drained=drained, dropped=dropped)
        for node, begin, drained, dropped in (
            ("n3", 18_000_000, 2, 1),
            ("n3", 43_000_000, 0, 4),
            ("n1", 18_000_000, 9, 9),
        )
    }
    found = swapping_series(trial, 60_000_000, [(1.5, 0.5)], counted)
    assert found is not None
    assert [swap.ended for swap in found.swaps] == [
        counted["n3", 18_000_000], None, None, None, None, counted["n3", 43_000_000],
    ]  # fmt: skip
    assert [(swap.gap_s, swap.others_gap_s) for swap in found.swaps[:2]] == [(1.5, 0.5), (None, None)]
    told = dict(facts(found))
    assert told["connections"].text == "2 drained, 5 dropped, of the loads' clients"


def test_a_node_that_did_not_come_up_runs_its_former_version_again() -> None:
    events = [one for one in swapped(18, "n3", OLD, step=2) if one.name != "step.end"]
    events.append(event(20.5, "swap.failed", node="n3", wanted=NEW, why="it ended with exit code 3\nlast words"))
    found = of(drawn(), *events)
    (swap,) = found.swaps
    assert (swap.wanted, swap.build) == (NEW, OLD)
    assert swap.failed.startswith("it ended with exit code 3")
    assert found.running["n3"] == OLD
    assert done_of(found.steps[1]) == "begun, not done"
    assert found.steps[1].came[0].startswith(f"n3 did not come up with {NEW}: it ended")


def test_without_a_plan_a_swap_is_shown_all_the_same() -> None:
    found = of(*swapped(18, "n3", NEW), plan=None, context={"version": OLD})
    assert (found.swaps[0].before, found.steps, found.plan, found.beyond) == (OLD, (), None, 0)
    assert states(found, "n1") == [("starting", 0.1, 2.0), (OLD, 2.0, 22.0)]
    assert heard([event(30, "fault.begin", fault="kill", nodes=["n1"])]).swapping is None


@pytest.mark.parametrize("until", [0.2, 17.05, 18.5, 19.5, 20.5, 21.5, 50.5])
def test_a_run_that_is_cut_off_anywhere_is_told_as_far_as_it_goes(until: float) -> None:
    events = [one for one in done() if one.t <= until * 1e6]
    found = of(*events)
    assert len(found.steps) == len(STEPS)
    assert [step.number for step in found.steps] == [*range(1, len(STEPS) + 1)]
    after = [step for step in found.steps if step.begun is None]
    assert after, "not all was done"
    assert all(done_of(step) == "not done" for step in after)
    assert all(band.end <= max(until, 2.0) for bands in found.lanes.values() for band in bands)
    assert timeline_of(heard(events, plan=PLAN), ())


def test_steps_of_which_nothing_is_stored_are_counted() -> None:
    found = of(drawn(steps=10**9), begun(17, 1, "keep"), plan=None)
    assert (len(found.steps), found.beyond) == (1, 10**9 - 1)
    broken = of(drawn(), plan=StoredPlan(problem="plan.json: no plan"))
    assert (broken.steps, broken.beyond, broken.problem) == ((), 10, "plan.json: no plan")


def test_a_step_that_is_none_of_the_plan_s_is_said_to_be_one() -> None:
    odd = event(17, "step.begin", number=1, kind="swap", says="swap n9")
    assert of(drawn(), odd).steps[0].came == ("planned was: keep",)


def test_looks_at_objects_are_counted_with_their_step() -> None:
    wrong = [{"statement": "SELECT 1", "answer": "2", "wanted": "1"}]
    looks = [
        event(17.1 + at / 100, "object.looked", check=check, phase="before", node="n1", wrong=odd)
        for at, (check, odd) in enumerate([("a", []), ("b", []), ("b", wrong)])
    ]
    found = of(
        drawn(), begun(17, 1), *looks, event(17.5, "step.end", number=1), begun(18, 2), event(19, "step.end", number=2)
    )
    assert found.steps[0].came == ("3 looks at 2 objects, 1 not as they must be",)
    assert found.steps[1].came == ()


def test_what_else_hits_a_node_keeps_its_name() -> None:
    killed = [
        event(30, "fault.begin", fault="kill", nodes=["n1"]),
        event(31, "fault.bit", node="n1"),
        event(32, "fault.undo", nodes=["n1"]),
        event(33, "fault.undone", nodes=["n1"]),
    ]
    series = heard([drawn(), *swapped(18, "n3", NEW), *killed], plan=PLAN)
    assert series.swapping is not None
    assert states(series.swapping, "n1")[1:] == [
        (OLD, 2.0, 31.0), ("killed", 31.0, 32.0), ("coming back", 32.0, 33.0),
    ]  # fmt: skip
    assert [mark.name for mark in timeline_of(series, ())[1].behind] == ["n3 → v1.1", "kill n1"]


def test_nodes_that_are_given_the_same_version_are_a_roll() -> None:
    up, down = rolls(of(*done()))
    assert (up.before, up.to, up.nodes, up.begin, up.whole) == (OLD, NEW, ("n3", "n2", "n1"), 18.0, 32.0)
    assert (down.before, down.to, down.nodes) == (NEW, OLD, ("n1", "n2", "n3"))
    again = rolls(of(drawn(), *swapped(18, "n3", NEW), *swapped(23, "n3", NEW)))
    assert [roll.nodes for roll in again] == [("n3",), ("n3",)], "a restart of the same node begins another"


def test_a_build_that_is_given_twice_goes_back_all_the_same() -> None:
    """The gate's order: a node forward and back, then all. By builds alone its second and third roll were one."""
    names = ("new", "old", "new", "new", "new")
    plan = StoredPlan(steps=tuple(PlannedStep(kind="swap", facts={"to": name}) for name in names))
    turns = enumerate(("n3", "n3", "n1", "n2", "n3"))
    events = [event for at, node in turns for event in swapped(18 + 5 * at, node, OLD, step=1 + at)]
    found = of(drawn(steps=5, equal=True, builds={"old": OLD, "new": OLD}), *events, plan=plan)
    assert [roll.nodes for roll in rolls(found)] == [("n3",), ("n3",), ("n1", "n2", "n3")]


def test_minutes_a_node_are_those_of_the_judge() -> None:
    events = [*done(), event(60, "trial.end")]
    found = rolls(of(*events))
    minutes = [each for roll in found for each in roll.minutes]
    trial = TrialEvidence(
        claim="hot-swap", profile="laptop", seed=7, buckets=0, events=sorted(events, key=lambda e: e.t)
    )
    assert measure(trial, "minutes_a_node").value == pytest.approx(sum(minutes) / len(minutes))


def test_lanes_stand_above_the_traffic_with_what_was_done_to_the_cluster() -> None:
    series = heard(done(), plan=PLAN)
    assert series.swapping is not None
    lanes, writes, *_ = timeline_of(series, ())
    assert [lane.name for lane in lanes.lanes] == ["test", "plan", "n1", "n2", "n3", "n4", "n5"]
    colours = {mark.name: mark.colour for mark in lanes.lanes[4].states}
    assert colours == {
        "starting": "wait", OLD: "up", "draining": "back", "down": "hit", "not ready": "wait", NEW: "new",
    }  # fmt: skip
    assert [mark.short for mark in lanes.lanes[4].states if mark.name == NEW] == ["v1.1"]
    assert [mark.name for mark in lanes.lanes[1].states][:2] == ["1. keep", "2. swap"]
    marks = {mark.name: (mark.begin, mark.end) for mark in writes.behind}
    assert marks["version kept"] == (17.1, 17.1)
    assert marks["n3 → v1.1"] == (18.0, 21.0)
    assert (marks["n4 joined"], marks["version final"], marks["n5 kept out"]) == ((48, 49), (50, 52), (53, 53.5))
    rows = list(csv.DictReader(io.StringIO(as_csv(series))))
    assert [rows[second]["node n3"] for second in (17, 18, 19, 20, 21)] == [OLD, "draining", "down", "not ready", NEW]


@pytest.mark.parametrize(
    ("versions", "short"),
    [
        (["v20.2.0-dev.20201130", "v21.1.0-alpha.20210228"], ["v20.2", "v21.1"]),
        (["v26.1.0-alpha.1", "v26.1.0-alpha.2"], ["v26.1.0-alpha.1", "v26.1.0-alpha.2"]),
        (["v24.1.3", "v24.1.4"], ["v24.1.3", "v24.1.4"]),
        (["16.2", "16.14", "18.4"], ["16.2", "16.14", "18.4"]),
        (["", "…"], ["", "…"]),
        ([], []),
    ],
)
def test_short_names_tell_versions_apart(versions: list[str], short: list[str]) -> None:
    assert [shortened(versions)[version] for version in versions] == short
