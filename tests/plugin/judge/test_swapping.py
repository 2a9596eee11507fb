"""Nodes that get another version one after another, as events tell it."""

from collections.abc import Iterable
from typing import Any

import pytest

from plugin.catalogue import load
from plugin.evidence.events import Event
from plugin.judge.conditions import condition
from plugin.judge.decide import decide
from plugin.judge.metrics import measure
from plugin.judge.model import Check, Comparison, Kind, Outcome
from plugin.judge.trial import HostSecond
from tests.plugin.judge.histories import trial
from tests.plugin.recorded import recorded

S = 1_000_000
OLD, NEW = "v1.0.0", "v1.1.0"


def event(t: float, name: str, **data: Any) -> Event:
    return recorded(round(t * S), name, data)


def swapped(t: float, node: str, *, build: str = NEW, active: str = "1.0", whole: float | None = 7) -> Iterable[Event]:
    """One node drained at ``t``, back on the new version 5 s later, and the cluster whole at ``whole`` seconds."""
    yield event(t, "fault.begin", fault="swap", nodes=[node])
    yield event(t + 0.5, "node.drained", node=node)
    yield event(t + 1, "fault.bit", node=node)
    yield event(t + 2, "fault.undo", nodes=[node])
    yield event(t + 5, "node.swapped", node=node, wanted=NEW, build=build, able="1.1", active=active)
    yield event(t + 5, "fault.undone", nodes=[node])
    if whole is not None:
        yield event(t + whole, "recovered")


def found(name: str, *events: Event) -> tuple[float | None, str]:
    measured = measure(trial(events=sorted(events, key=lambda e: e.t)), name)
    return measured.value, measured.note


def met(name: str, *events: Event) -> tuple[bool, str]:
    answer = condition(trial(events=sorted(events, key=lambda e: e.t)), name)
    return answer.met, answer.why


ROLLED = [*swapped(10, "n1"), *swapped(20, "n2"), *swapped(30, "n3")]


FAILED_UPDATE = [
    event(1, "plan.drawn", path="failed-update", seed=1, steps=7, builds={"v1": OLD, "v2": NEW}),
    event(2, "provisioned", nodes=["n1", "n2", "n3"]),
    event(9, "step.begin", number=3, kind="swap"),
    *swapped(10, "n1"),
    event(19, "step.begin", number=4, kind="fail"),
    event(20, "fault.begin", fault="swap", nodes=["n2"]),
    event(20.5, "node.drained", node="n2"),
    event(21, "fault.bit", node="n2"),
    event(23, "swap.failed", node="n2", wanted=NEW, former=OLD, why="exit code 3", meant="dies", as_meant=True),
    event(25, "node.swapped", node="n2", wanted=OLD, build=OLD, able="1.0", active="1.0"),
    event(25, "fault.undone", nodes=["n2"]),
    event(27, "recovered"),
    event(29, "step.begin", number=5, kind="look"),
    event(30, "versions.seen", active={}, builds={"n1": NEW, "n2": OLD, "n3": OLD}),
]
"""One node is changed and well, and the update of the next one fails as it is to."""


def test_each_node_runs_what_it_was_given() -> None:
    assert found("nodes_on_other_build", *ROLLED) == (0, f"all as asked for; at last n1 {NEW}, n2 {NEW}, n3 {NEW}")
    wrong, told = found("nodes_on_other_build", *swapped(10, "n1"), *swapped(20, "n2", build=OLD))
    assert (wrong, told) == (1, f"n2 was given {NEW} and calls itself {OLD}")
    assert found("nodes_on_other_build")[0] is None


def test_a_new_node_runs_what_it_was_given() -> None:
    right = event(40, "node.joined", node="n4", build=NEW, wanted=NEW)
    assert found("nodes_on_other_build", *ROLLED, right)[1].endswith(f"n3 {NEW}, n4 {NEW}")
    wrong = event(40, "node.joined", node="n4", build=OLD, wanted=NEW)
    told = f"n4, which is new, was given {NEW} and calls itself {OLD}"
    assert found("nodes_on_other_build", *ROLLED, wrong) == (1, told)
    assert found("nodes_on_other_build", *ROLLED, event(40, "node.joined", node="n4"))[0] == 0, "of earlier releases"


def test_a_node_runs_what_it_was_given_whenever_the_plan_looks() -> None:
    drawn = event(1, "plan.drawn", path="final", seed=1, steps=9, builds={"v1": OLD, "v2": NEW})
    there = event(2, "provisioned", nodes=["n1", "n2", "n3"])

    def looked(t: float, **builds: str) -> Event:
        return event(t, "versions.seen", active={}, builds=builds)

    mixed = [drawn, there, looked(5, n1=OLD, n2=OLD, n3=OLD), *swapped(10, "n1")]
    assert found("nodes_on_other_build", *mixed, looked(20, n1=NEW, n2=OLD, n3=OLD))[0] == 0
    value, told = found("nodes_on_other_build", *mixed, looked(20, n1=OLD, n2=OLD, n3=NEW))
    assert value == 2
    assert told == f"n1 called itself {NEW}, and {OLD} at 18.0 s; n3 called itself {OLD}, and {NEW} at 18.0 s"


def test_a_node_that_does_not_tell_its_build_is_not_taken_for_right() -> None:
    there = event(5, "versions.seen", active={}, builds={"n1": NEW, "n2": NEW, "n3": NEW})
    silent = event(40, "versions.seen", active={}, builds={"n1": NEW, "n2": NEW}, silent={"n3": "no answer"})
    later = event(50, "versions.seen", active={}, builds={"n1": NEW, "n2": NEW, "n3": NEW})
    assert found("nodes_on_other_build", *ROLLED, there)[0] == 0
    unknown = "not told which build runs: n3 at 40.0 s: no answer"
    assert found("nodes_on_other_build", *ROLLED, silent) == (None, unknown)
    assert found("nodes_on_other_build", *ROLLED, silent, later)[0] == 0, "it told so when it was asked again"
    assert found("nodes_on_other_build", *ROLLED, silent, *swapped(50, "n3"))[0] == 0
    assert found("nodes_on_other_build", *ROLLED, *swapped(35, "n2", build=OLD), silent)[0] == 1
    every = event(40, "versions.seen", active={}, builds={}, silent={"n1": "no answer"})
    assert found("nodes_on_other_build", *ROLLED, every)[0] is None
    older = event(40, "versions.seen", active={"n1": "1.0"}, silent={"n2": "no answer"})
    assert found("nodes_on_other_build", *ROLLED, older)[0] == 0, "earlier releases asked for no build"


def test_a_node_that_did_not_come_up_is_not_on_the_build_it_was_given() -> None:
    failed = [
        event(30, "fault.begin", fault="swap", nodes=["n3"]),
        event(33, "swap.failed", node="n3", wanted=NEW, why="it ended with exit code 1"),
        event(35, "fault.undone", nodes=["n3"]),
    ]
    assert found("nodes_on_other_build", *swapped(10, "n1"), *failed)[0] == 1


def test_a_version_that_was_meant_to_fail_is_no_other_build() -> None:
    assert found("nodes_on_other_build", *FAILED_UPDATE)[0] == 0
    assert found("nodes_on_other_build", *FAILED_UPDATE, *swapped(50, "n3", build=OLD))[0] == 1


def checked(metric: str, *events: Event, others: float) -> Outcome:
    """What a check that this metric is 0 comes to while other work takes this much of the machine's CPU, in percent."""
    check = Check(metric=metric, comparison=Comparison.EQ, limit=0, kind=Kind.ABSOLUTE, mark="R", source="our own")
    host = [HostSecond(t * S, 95.0, others) for t in range(1, 60)]
    (result,) = decide(trial(events=sorted(events, key=lambda e: e.t), host=host), [check]).results
    return result.outcome


def test_a_node_that_is_late_refutes_where_the_machine_was_free_and_one_that_ended_everywhere() -> None:
    began = [event(30, "fault.begin", fault="swap", nodes=["n3"]), event(31, "fault.bit", node="n3")]
    failed = {"node": "n3", "wanted": NEW, "why": "not after 60 s"}
    late = [*began, event(33, "swap.failed", **failed, late=True)]
    assert found("nodes_on_other_build", *swapped(10, "n1"), *late)[0] == 0
    assert found("nodes_late", *swapped(10, "n1"), *late) == (1, f"n3 with {NEW}: not after 60 s")
    assert checked("nodes_late", *late, others=0) is Outcome.REFUTED
    assert checked("nodes_late", *late, others=50) is Outcome.INCONCLUSIVE
    ended = [*began, event(33, "swap.failed", **failed)]
    assert found("nodes_late", *ended)[0] == 0
    assert checked("nodes_on_other_build", *ended, others=50) is Outcome.REFUTED
    meant = [*began, event(33, "swap.failed", **failed, late=True, meant="never-ready", as_meant=True)]
    assert found("nodes_late", *meant)[0] == 0
    assert found("nodes_late")[0] is None


def stopped(t: float, node: str, code: int, **fields: Any) -> Event:
    return event(t, "node.stopped", node=node, code=code, **fields)


def test_a_drain_that_fails_refutes_and_one_that_is_late_where_the_machine_was_free() -> None:
    failed = event(11, "drain.failed", node="n1", why="ERROR: drain timeout")
    killed = [one for one in swapped(10, "n1") if one.t != 10.5 * S]
    assert found("undrained", *killed) == (1, "n1 at 11.0 s: it was not asked to")
    assert found("undrained", *ROLLED) == (0, "all handed their work over")
    assert found("undrained", *swapped(10, "n1"), failed) == (1, "n1 at 11.0 s: ERROR: drain timeout")
    assert checked("undrained", *swapped(10, "n1"), failed, others=0) is Outcome.REFUTED
    assert checked("undrained", *swapped(10, "n1"), failed, others=50) is Outcome.INCONCLUSIVE
    late = event(11, "drain.failed", node="n1", why="not within 120 s", late=True)
    assert found("undrained", *swapped(10, "n1"), late)[0] == 0
    assert found("nodes_late", *swapped(10, "n1"), late) == (1, "n1, which was drained: not within 120 s")
    assert checked("nodes_late", *swapped(10, "n1"), late, others=0) is Outcome.REFUTED
    assert checked("nodes_late", *swapped(10, "n1"), late, others=50) is Outcome.INCONCLUSIVE
    assert found("undrained")[0] is None
    undrained = met("update_failed", *swapped(10, "n1"), failed)
    assert undrained == (False, "n1 was not even drained, and so not given another version")


@pytest.mark.parametrize(("code", "crashed"), [(0, 0), (-15, 0), (2, 1), (-11, 1), (-6, 1)])
def test_a_node_that_crashes_when_it_is_to_stop_refutes(code: int, crashed: int) -> None:
    assert found("crashed_on_stop", *swapped(10, "n1"), stopped(11, "n1", code))[0] == crashed
    outcome = checked("crashed_on_stop", *swapped(10, "n1"), stopped(11, "n1", code), others=50)
    assert (outcome is Outcome.REFUTED) == bool(crashed)


def test_a_node_that_had_to_be_killed_is_late() -> None:
    killed = stopped(11, "n1", -9, late=True)
    assert found("crashed_on_stop", *swapped(10, "n1"), killed)[0] == 0
    assert found("nodes_late", *swapped(10, "n1"), killed) == (1, "n1 had not stopped when it was killed at 11.0 s")


def test_exit_codes_that_were_not_recorded_are_not_taken_for_good_ones() -> None:
    assert found("crashed_on_stop", *ROLLED)[0] is None
    assert checked("crashed_on_stop", *ROLLED, others=0) is Outcome.NOT_EVALUATED, "as of older releases"
    some = found("crashed_on_stop", *ROLLED, stopped(11, "n1", 0))
    assert some == (None, "the exit codes of 2 stopped nodes were not recorded")
    assert found("crashed_on_stop", *ROLLED, stopped(11, "n1", -11))[0] == 1


def test_each_restart_waits_until_the_cluster_is_whole() -> None:
    assert found("restarts_before_whole", *ROLLED) == (0, "the cluster was whole before each")
    hasty = [*swapped(10, "n1", whole=None), *swapped(16, "n2")]
    assert found("restarts_before_whole", *hasty) == (1, "n2 at 16.0 s, after n1")
    assert found("restarts_before_whole", *swapped(10, "n1", whole=7), *swapped(16, "n2"))[0] == 1


def test_a_restart_waits_for_a_new_node_too() -> None:
    joined = event(18, "node.joined", node="n4", build=NEW, wanted=NEW)
    assert found("restarts_before_whole", *ROLLED, joined) == (1, "n2 at 20.0 s, after n4")
    assert found("restarts_before_whole", *ROLLED, joined, event(19, "recovered"))[0] == 0


@pytest.mark.parametrize(("active", "early"), [("1.0", 0), ("1.1", 1)])
def test_a_version_that_is_kept_must_be_in_force(active: str, early: int) -> None:
    kept = event(5, "version.kept", active="1.0")
    assert found("final_early", kept, *swapped(10, "n1"), *swapped(20, "n2", active=active))[0] == early
    assert found("final_early", *swapped(10, "n1", active=active))[0] is None, "nothing was to be kept"
    finalise = event(15, "step.begin", number=4, kind="finalise", says="")
    assert found("final_early", kept, *swapped(10, "n1"), finalise, *swapped(20, "n2", active=active))[0] == 0


def test_all_nodes_are_asked_after_the_last_swap_too() -> None:
    kept = event(5, "version.kept", active="1.0")
    right = event(40, "versions.seen", active={"n1": "1.0", "n2": "1.0"})
    raised = event(40, "versions.seen", active={"n1": "1.1", "n2": "1.1"})
    silent = event(40, "versions.seen", active={"n1": "1.0"}, silent={"n2": "no answer"})
    finalise = event(41, "step.begin", number=9, kind="finalise", says="")
    after = event(50, "versions.seen", active={"n1": "1.1", "n2": "1.1"})
    assert found("final_early", kept, *ROLLED, right, finalise, after) == (0, "kept, 5 times asked")
    assert found("final_early", kept, *ROLLED, raised, finalise)[0] == 2
    unknown = "not told which version is in force: n2 at 40.0 s: no answer"
    assert found("final_early", kept, *ROLLED, silent) == (None, unknown)
    assert found("final_early", kept, *ROLLED, raised, silent)[0] == 2
    early = event(15, "versions.seen", active={"n1": "1.0"}, silent={"n2": "no answer"})
    assert found("final_early", kept, *ROLLED, early, right)[0] == 0, "it was not in force later either"
    assert found("final_early", kept, *ROLLED, silent, finalise, after)[0] is None
    again = [event(42, "version.kept", active="1.1"), after]
    assert found("final_early", kept, *ROLLED, silent, finalise, *again)[0] is None, "what it kept is over"


def test_where_no_version_is_kept_none_can_be_final_early() -> None:
    """As of the control: minor versions have nothing that could be made final."""
    events = [event(5, "version.kept", active=""), *swapped(10, "n1")]
    check = Check(
        metric="final_early", comparison=Comparison.EQ, limit=0, kind=Kind.ABSOLUTE, mark="R", source="our own"
    )
    (result,) = decide(trial(events=events), [check]).results
    assert (result.outcome, result.why) == (
        Outcome.NOT_EVALUATED,
        "this database has no version that could be kept",
    )
    (kept,) = decide(trial(events=[event(5, "version.kept", active="1.0"), *swapped(10, "n1")]), [check]).results
    assert kept.outcome is not Outcome.NOT_EVALUATED


def test_a_version_that_is_made_final_is_in_force_in_time() -> None:
    asked = event(40, "step.begin", number=5, kind="finalise", says="make it final")
    final = event(42, "version.final", active={"n1": "1.1", "n2": "1.1"}, seconds=2.0)
    late = event(99, "not_final", limit_s=60, why="n1 is at 1.0")
    assert found("not_final", *ROLLED, asked, final) == (0, "1.1 after 2.0 s")
    assert found("not_final", *ROLLED, asked, late) == (1, "not within 60 s: n1 is at 1.0")
    assert found("not_final", *ROLLED, asked)[0] is None
    assert found("not_final", *ROLLED)[0] is None


def test_a_former_version_that_is_late_is_late_and_back_once_the_node_says_so() -> None:
    late = [one for one in FAILED_UPDATE if not (one.name == "node.swapped" and one.t == 25 * S)]
    late += [event(24, "fault.undo", nodes=["n2"]), event(25, "undo.slow", node="n2", why="not after 60 s")]
    assert found("nodes_not_back", *late) == (0, "all run their former build")
    assert found("nodes_late", *late) == (1, "n2 with its former version: not after 60 s")
    assert checked("nodes_late", *late, others=0) is Outcome.REFUTED
    assert checked("nodes_late", *late, others=50) is Outcome.INCONCLUSIVE
    other = [one for one in late if one.name != "versions.seen"]
    assert found("nodes_not_back", *other)[0] is None, "nobody asked it"
    other.append(event(30, "versions.seen", active={}, builds={"n1": NEW, "n2": NEW, "n3": OLD}))
    assert found("nodes_not_back", *other) == (1, f"n2 calls itself {NEW}, and ran {OLD} before")


def test_of_a_database_that_keeps_no_version_nothing_can_be_made_final() -> None:
    asked = event(40, "step.begin", number=5, kind="finalise", says="make it final")
    final = event(41, "version.final", active={"n1": "16"}, seconds=0.0)
    none = (None, "this database has no version that could be kept")
    assert found("not_final", event(5, "version.kept", active=""), *ROLLED, asked, final) == none


def test_of_a_patch_release_nothing_can_be_made_final() -> None:
    """Its builds run at the same version of data: neither check could be refuted."""
    asked = event(40, "step.begin", number=5, kind="finalise", says="make it final")
    final = event(42, "version.final", active={"n1": "1.0", "n2": "1.0"}, seconds=0.1)
    patched = event(30, "node.swapped", node="n1", wanted="v2", build="v2", able="1.0", active="1.0", seconds=1.0)
    kept, major = event(5, "version.kept", active="1.0"), event(31, "versions.seen", active={"n1": "1.1"})
    none = (None, "all builds run at 1.0: there is nothing that could be made final")
    for metric in ("final_early", "not_final"):
        assert found(metric, kept, *ROLLED[:1], patched, asked, final)[:2] == none
        assert found(metric, kept, *ROLLED[:1], patched, major, asked, final)[0] is not None
    late = event(99, "not_final", limit_s=60, why="n1 is at 0.9")
    assert found("not_final", kept, *ROLLED[:1], patched, asked, late)[0] == 1


def looks(*moments: tuple[float, list[str]]) -> list[Event]:
    every = ["n1", "n2", "n3"]
    return [
        event(t, "processes.seen", running=[n for n in every if n not in down], others=dict.fromkeys(down, "exited"))
        for t, down in moments
    ]


def test_processes_are_counted_whatever_the_test_believes() -> None:
    one = looks((10, []), (12, ["n1"]), (14, []))
    two = looks((10, []), (12, ["n1", "n3"]), (14, []))
    assert found("processes_down_at_once", *swapped(10, "n1"), *one)[0] == 1
    assert found("processes_down_at_once", *swapped(10, "n1"), *two) == (
        2,
        "n1 exited, n3 exited at 12.0 s, of 3 records",
    )
    assert found("nodes_down_at_once", *swapped(10, "n1"), *two)[0] == 1, "by what was done it was one"
    assert found("processes_down_at_once", *swapped(10, "n1"))[0] is None


@pytest.mark.parametrize(("times", "watched"), [((11, 13, 15, 16.5), True), ((11, 16.5), False), ((), False)])
def test_processes_must_be_looked_at_all_the_time(times: tuple[float, ...], watched: bool) -> None:
    down = [(t, ["n1"] if t == 11 else []) for t in times]
    assert met("processes_watched", *swapped(10, "n1"), *looks(*down))[0] is watched
    assert not met("processes_watched")[0]


def test_who_never_sees_a_stopped_node_down_watches_nothing() -> None:
    """Nor does it pass, as it did, for no more than one node down at a time."""
    blind = [*swapped(10, "n1"), *looks(*((t, []) for t in (11, 13, 15, 16.5)))]
    told = "nodes were stopped, and none was seen to be down: 4 records, 2.0 s apart at the most"
    assert met("processes_watched", *blind) == (False, told)
    check = Check(
        metric="processes_down_at_once", comparison=Comparison.LE, limit=1, kind=Kind.ABSOLUTE, mark="S", source=""
    )
    assert decide(trial(events=blind), [check]).results[0].outcome is Outcome.INCONCLUSIVE


def test_a_plan_must_be_followed_to_its_end() -> None:
    plan = event(1, "plan.drawn", path="final", seed=7, steps=2, builds={}, equal=True)
    ends = [event(t, "step.end", number=number) for number, t in ((1, 9), (2, 41))]
    followed, why = met("plan_followed", plan, *ROLLED, *ends)
    assert followed
    assert "a rolling restart" in why
    assert met("plan_followed", plan, *ends[:1]) == (False, "1 of 2 steps were done")
    assert not met("plan_followed", plan, *ends[1:], event(50, "step.end", number=1))[0]
    assert not met("plan_followed", *ends)[0]


def test_a_step_that_is_to_change_a_node_changes_one() -> None:
    plan = event(1, "plan.drawn", path="final", seed=7, steps=2, builds={})
    steps = [event(t, f"step.{what}", number=number, **({"kind": "swap"} if what == "begin" else {}))
             for number, what, t in ((1, "begin", 9), (1, "end", 18), (2, "begin", 19), (2, "end", 28))]  # fmt: skip
    assert met("plan_followed", plan, *steps, *swapped(10, "n1"), *swapped(20, "n2"))[0]
    idle = (False, "no node was given another version in step 2")
    assert met("plan_followed", plan, *steps, *swapped(10, "n1")) == idle


def test_a_stay_lasts_as_long_as_planned() -> None:
    plan = event(1, "plan.drawn", path="stay", seed=7, steps=1, builds={})
    begin = event(9, "step.begin", number=1, kind="stay", lasts_s=30)
    assert met("plan_followed", plan, *ROLLED, begin, event(39, "step.end", number=1))[0]
    short = "the cluster did not stay as it was for as long as planned: step 1: 29.0 of 30 s"
    assert met("plan_followed", plan, *ROLLED, begin, event(38, "step.end", number=1)) == (False, short)


def test_how_long_it_takes() -> None:
    ends = [event(45, "step.end", number=1)]
    assert found("minutes_a_node", *ROLLED)[0] == pytest.approx(7 / 60)
    assert found("minutes_a_node", *swapped(10, "n1", whole=None))[0] is None
    assert found("total_s", *ROLLED, *ends)[0] == 35


@pytest.mark.parametrize(("nodes", "is_"), [(3, Outcome.NOT_EVALUATED), (9, Outcome.PASS), (15, Outcome.PASS)])
def test_minutes_a_node_are_held_against_a_source_of_nine_nodes_or_more_only(nodes: int, is_: Outcome) -> None:
    (check,) = (c for c in load().claim("hot-swap").checks_for("adversity-9") if c.metric == "minutes_a_node")
    there = event(1, "provisioned", nodes=[f"n{number}" for number in range(1, nodes + 1)])
    (result,) = decide(trial(events=[there, *ROLLED, event(60, "trial.end")]), [check]).results
    assert result.outcome is is_, result.why
    assert is_ is Outcome.PASS or result.why == "its source changed 9 nodes and more, and this cluster had 3"
    slow = [there, *swapped(10, "n1", whole=685), event(700, "trial.end")]
    (result,) = decide(trial(events=slow), [check]).results
    assert result.outcome is (Outcome.REFUTED if nodes >= 9 else Outcome.NOT_EVALUATED), result.why


def test_a_node_whose_update_failed_comes_back_with_its_former_build() -> None:
    failed = [
        event(10, "fault.begin", fault="swap", nodes=["n1"]),
        event(11, "fault.bit", node="n1"),
        event(13, "swap.failed", node="n1", wanted="v9 (broken)", why="it ended with exit code 3"),
    ]
    back = event(15, "node.swapped", node="n1", wanted=OLD, build=OLD, able="1.0", active="1.0")
    assert found("nodes_not_back", *failed, back)[0] == 0
    assert found("nodes_not_back", *failed) == (1, "n1 did not come up: it ended with exit code 3")
    slow = event(14, "undo.slow", node="n1", why="not after 60 s")
    assert found("nodes_not_back", *failed, slow)[0] is None, "a machine may be slow"
    assert found("nodes_not_back", *failed, slow, back)[0] == 0
    looked = event(16, "versions.seen", active={}, builds={"n1": OLD})
    assert found("nodes_not_back", *failed, slow, looked)[0] is None, "what it ran before nobody said"
    assert met("update_failed", *failed, back) == (True, "n1: it ended with exit code 3")
    assert met("update_failed", *swapped(10, "n1")) == (False, "n1 came up")


def test_a_roll_stops_where_an_update_failed() -> None:
    back = [event(39, "step.begin", number=6, kind="swap"), *swapped(40, "n1", build=OLD)]
    failed = "that of n2 failed at 21.0 s"
    untouched = (0, f"{failed}; no other node was touched")
    assert found("changed_after_failure", *FAILED_UPDATE, *back) == untouched
    assert found("changed_after_failure", *FAILED_UPDATE, *swapped(40, "n3")) == (1, f"{failed}; n3 at 38.0 s")
    again = found("changed_after_failure", *FAILED_UPDATE, *swapped(40, "n2"), *swapped(50, "n3"))
    assert again == (2, f"{failed}; n2 at 38.0 s; n3 at 48.0 s")
    assert checked("changed_after_failure", *FAILED_UPDATE, *swapped(40, "n3"), others=50) is Outcome.REFUTED
    assert found("changed_after_failure", *ROLLED) == (None, "no update failed")


def test_of_a_chain_who_had_an_earlier_version_is_touched_all_the_same() -> None:
    earlier = [
        one for at, node in ((1, "n1"), (2, "n2"), (3, "n3")) for one in swapped(at, node) if one.name == "node.swapped"
    ]
    chain = [*earlier, *FAILED_UPDATE, *swapped(40, "n3")]
    final = event(8.9, "step.begin", number=2, kind="finalise")
    assert found("changed_after_failure", final, *chain)[0] == 1


def test_an_update_that_is_to_fail_is_the_plan_s() -> None:
    """The node that was changed before it came up, as it should; so does it when it goes back."""
    assert met("update_failed", *FAILED_UPDATE, *swapped(40, "n1", build=OLD)) == (True, "n2: exit code 3")
    came_up = [one for one in FAILED_UPDATE if one.name != "swap.failed"]
    assert met("update_failed", *came_up) == (False, "n2 came up")
    before = [one for one in FAILED_UPDATE if one.t < 19 * S]
    assert met("update_failed", *before) == (False, "no update was tried that was to fail by the plan")
    not_back = event(45, "swap.failed", node="n1", wanted=OLD, former=NEW, why="exit code 1")
    assert met("update_failed", *FAILED_UPDATE, *swapped(40, "n1", build=OLD), not_back)[0], "that is another's failure"


def test_a_node_that_comes_back_on_a_third_version_is_not_back() -> None:
    begun = [event(10, "fault.begin", fault="swap", nodes=["n1"]), event(11, "fault.bit", node="n1")]
    failed = event(13, "swap.failed", node="n1", wanted="v9", former=OLD, why="it ended with exit code 3")

    def back(build: str) -> tuple[float | None, str]:
        swap = event(15, "node.swapped", node="n1", wanted=build, build=build, able="1.1", active="1.0", seconds=5.0)
        return found("nodes_not_back", *begun, failed, swap)

    assert back(OLD) == (0, "all run their former build")
    assert back(NEW) == (1, f"n1 calls itself {NEW}, and ran {OLD} before")


@pytest.mark.parametrize(
    ("fields", "met_", "says"),
    [
        ({"meant": "dies", "as_meant": True}, True, "n1: it ended with exit code 3"),
        ({"meant": "dies", "as_meant": False}, False, "n1: it was to fail as dies, but it ended with exit code 3"),
        ({"meant": "never-ready", "as_meant": True}, False, "nobody recorded whether n1 failed as dies"),
        ({}, False, "nobody recorded whether n1 failed as dies"),
    ],
)
def test_an_update_must_fail_as_the_trial_declares(fields: dict[str, object], met_: bool, says: str) -> None:
    failed = [
        event(10, "fault.begin", fault="swap", nodes=["n1"]),
        event(13, "swap.failed", node="n1", wanted="v9", why="it ended with exit code 3", **fields),
    ]
    found = condition(trial(events=failed, parameters={"failure": "dies"}), "update_failed")
    assert found.met is met_
    assert says in found.why


def joining(t: float, node: str, *, refused: bool) -> Event:
    return event(t, "step.begin", number=1, kind="join", says=f"{node} joins", refused=refused)


def test_who_joins_and_who_must_not() -> None:
    plan = [
        event(1, "plan.drawn", path="joined-while-mixed", seed=7, steps=1, builds={}),
        event(99, "step.end", number=1),
    ]
    new, old = joining(40, "n4", refused=False), joining(60, "n5", refused=True)
    right = [new, event(45, "node.joined", node="n4"), old, event(65, "join.refused", node="n5", how="it ended")]
    assert found("joined_wrongly", *plan, *right) == (0, "n4 was taken in; n5 was kept out: it ended")
    taken = [old, event(65, "node.joined", node="n5")]
    assert found("joined_wrongly", *plan, *taken) == (1, "n5 was taken in")
    failed = [new, event(50, "join.failed", node="n4", why="it takes no clients")]
    assert found("joined_wrongly", *plan, *failed) == (1, "n4 was not taken in: it takes no clients")
    late = [new, event(50, "join.failed", node="n4", why="not after 60 s", late=True)]
    assert found("joined_wrongly", *plan, *late) == (None, "n4 did not come in time: not after 60 s")
    assert found("nodes_late", *late) == (1, "n4, which is new: not after 60 s")
    assert found("nodes_late", *swapped(10, "n1"), *failed)[0] == 0
    unclear = [old, event(65, "join.unclear", node="n5", how="not after 60 s")]
    said = "n5 did not come, and not for its version as far as anybody said: not after 60 s"
    assert found("joined_wrongly", *plan, *unclear) == (None, said)
    assert found("joined_wrongly", *plan, *failed, *unclear)[0] == 1
    assert found("joined_wrongly", *plan)[0] is None
