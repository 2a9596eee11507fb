"""Objects looked at across versions, as events tell it."""

from typing import Any

import pytest

from plugin.catalogue import load
from plugin.evidence.events import Event
from plugin.judge.conditions import condition
from plugin.judge.decide import decide
from plugin.judge.metrics import measure
from plugin.judge.model import Check, Comparison, Kind, Outcome
from tests.plugin.judge.histories import trial
from tests.plugin.recorded import recorded

CHECK = Check(
    metric="objects_differing", comparison=Comparison.EQ, limit=0, kind=Kind.ABSOLUTE, mark="R", source="our own"
)
WRONG = [{"statement": "SELECT count(*) = 2 FROM v", "answer": "False", "wanted": "true"}]


def event(name: str, **data: Any) -> Event:
    return recorded(0, name, data)


def looked(check: str, phase: str, node: str, **data: Any) -> Event:
    return event("object.looked", check=check, phase=phase, node=node, n=1, **data)


MADE = event("objects.made", checks=["view", "index"])
BEFORE = event("objects.phase", phase="before", nodes=["n1", "n2", "n3"])
MIXED = event("objects.phase", phase="mixed", nodes=["n1", "n2", "n3"], old=["n1", "n2"], new=["n3"])
SEEN_BEFORE = [looked(check, "before", node) for check in ("view", "index") for node in ("n1", "n3")]
SEEN_MIXED = [looked(check, "mixed", node) for check in ("view", "index") for node in ("n2", "n3")]
WHOLE = [MADE, BEFORE, *SEEN_BEFORE, MIXED, *SEEN_MIXED]


def outcome(*events: Event) -> Outcome:
    return decide(trial(events=[*events, event("trial.end")]), [CHECK]).outcome


def asked(*events: Event) -> tuple[bool, str]:
    found = condition(trial(events=events), "objects_asked")
    return found.met, found.why


def test_what_holds_through_every_node_passes() -> None:
    assert measure(trial(events=WHOLE), "objects_differing").value == 0
    assert asked(*WHOLE) == (True, "2 checks in 2 phases")
    assert outcome(*WHOLE) is Outcome.PASS
    found = measure(trial(events=WHOLE), "objects_looked")
    assert (found.value, found.note) == (2, "8 looks in 2 phases (before, mixed)")


def test_checks_are_counted_and_the_first_difference_of_each_is_shown() -> None:
    wrong = [
        looked("view", "mixed", "n3", build="v2", wrong=WRONG * 2),
        looked("view", "mixed", "n2", wrong=WRONG),
        looked("index", "mixed", "n2", wrong=WRONG),
    ]
    found = measure(trial(events=[*WHOLE, *wrong]), "objects_differing")
    assert (found.value, found.note) == (2, "index; view")
    assert found.examples == (
        "view, mixed, through n3 (v2): `SELECT count(*) = 2 FROM v` answered False, wanted true",
        "index, mixed, through n2: `SELECT count(*) = 2 FROM v` answered False, wanted true",
    )
    assert outcome(*WHOLE, *wrong) is Outcome.REFUTED


def test_a_difference_refutes_though_something_else_was_not_asked() -> None:
    unasked = event("object.unasked", check="index", phase="mixed", node="n2", what="SELECT 1", why="timeout")
    assert outcome(*WHOLE, unasked) is Outcome.INCONCLUSIVE
    assert asked(*WHOLE, unasked) == (False, "index, mixed, through n2: SELECT 1: timeout")
    assert outcome(*WHOLE, looked("view", "mixed", "n3", wrong=WRONG), unasked) is Outcome.REFUTED


def test_answers_about_what_changes_are_compared_within_a_phase_only() -> None:
    def through(phase: str, node: str, answer: str, statement: str = "SELECT v") -> Event:
        return looked("view", phase, node, answers={statement: answer})

    before = [MADE, BEFORE, *SEEN_BEFORE, through("before", "n1", "1 rows: a"), through("before", "n2", "1 rows: a")]
    mixed = [MIXED, *SEEN_MIXED, through("mixed", "n1", "1 rows: b")]
    assert outcome(*before, *mixed, through("mixed", "n3", "1 rows: b")) is Outcome.PASS
    assert outcome(*before, *mixed, through("mixed", "n3", "1 rows: c", "SELECT w")) is Outcome.PASS
    different = [*before, *mixed, through("mixed", "n3", "1 rows: c")]
    assert outcome(*different) is Outcome.REFUTED
    (example,) = measure(trial(events=different), "objects_differing").examples
    assert example == "view, mixed, through n3: `SELECT v` answered 1 rows: c, and through n1 1 rows: b"


def test_answers_about_what_nothing_changes_are_held_against_the_first_of_the_same_build() -> None:
    def through(phase: str, node: str, build: str, answer: str) -> Event:
        return looked("view", phase, node, build=build, still=True, answers={"SELECT v": answer})

    back = event("objects.phase", phase="back", nodes=["n1", "n2", "n3"])
    before = [MADE, BEFORE, *SEEN_BEFORE, through("before", "n1", "v1", "1 rows: a"), MIXED, *SEEN_MIXED]
    other_words = through("mixed", "n3", "v2", "1 rows: A")
    same = [
        *before,
        other_words,
        back,
        through("back", "n1", "v1", "1 rows: a"),
        through("back", "n3", "v2", "1 rows: A"),
    ]
    told = "view, back, through n1 (v1): `SELECT v` answered 0 rows: , and 1 rows: a in the phase before"
    assert measure(trial(events=same[:-1]), "objects_differing").value == 0
    gone = [
        *before,
        other_words,
        back,
        through("back", "n1", "v1", "0 rows: "),
        through("back", "n3", "v1", "0 rows: "),
    ]
    found = measure(trial(events=gone), "objects_differing")
    assert (found.value, found.examples) == (1, (told,))
    gone_new = [*before, other_words, back, through("back", "n3", "v2", "0 rows: ")]
    assert measure(trial(events=gone_new), "objects_differing").value == 1


@pytest.mark.parametrize(
    ("left_out", "why"),
    [
        ({("view", "mixed", "n3")}, "view, mixed: looked at through n2"),
        ({("index", "mixed", "n2"), ("index", "mixed", "n3")}, "index, mixed: looked at through no node"),
        ({("view", "before", "n1")}, "view, before: looked at through n3"),
    ],
)
def test_a_version_that_was_not_looked_through_is_missed(left_out: set[tuple[str, str, str]], why: str) -> None:
    events = [
        each
        for each in WHOLE
        if each.name != "object.looked" or (each.data["check"], each.data["phase"], each.data["node"]) not in left_out
    ]
    assert asked(*events) == (False, why)
    assert outcome(*events) is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    "told",
    [
        [MIXED, event("objects.made", checks=["late"], phase="mixed")],
        [event("objects.made", checks=["late"]), MIXED],
    ],
)
def test_what_is_made_in_a_phase_is_to_be_looked_at_in_it(told: list[Event]) -> None:
    """Evidence of older releases tells of it before the phase begins."""
    events = [MADE, BEFORE, *SEEN_BEFORE, *told, *SEEN_MIXED]
    assert asked(*events) == (False, "late, mixed: looked at through no node")
    events += [looked("late", "mixed", node) for node in ("n1", "n3")]
    assert asked(*events) == (True, "3 checks in 2 phases")
    assert measure(trial(events=events), "objects_looked").note.endswith("1 of them made in the phase mixed")


def test_looks_count_for_the_phase_that_they_were_made_in() -> None:
    again = event("objects.phase", phase="mixed", nodes=["n1", "n2", "n3"], old=["n1"], new=["n3"])
    assert asked(*WHOLE, again)[0] is False


@pytest.mark.parametrize("side", ["old", "new"])
def test_where_one_version_alone_is_named_two_nodes_are_to_be_looked_through(side: str) -> None:
    one = event("objects.phase", phase="one", nodes=["n1", "n2", "n3"], **{side: ["n1", "n2", "n3"]})
    events = [*WHOLE, one, *(looked(check, "one", "n2") for check in ("view", "index"))]
    assert asked(*events) == (False, "view, one: looked at through n2; index, one: looked at through n2")
    events += [looked(check, "one", "n3") for check in ("view", "index")]
    assert asked(*events)[0]


@pytest.mark.parametrize("kind", ["look", "stay"])
def test_a_state_that_the_plan_looked_at_and_nobody_looked_at_objects_in_is_missed(kind: str) -> None:
    first, second, third = (event("step.begin", number=n, kind=kind, says="") for n in (1, 5, 9))
    assert asked(first, *WHOLE[: WHOLE.index(MIXED)], second, *WHOLE[WHOLE.index(MIXED) :])[0]
    met, why = asked(first, *WHOLE[: WHOLE.index(MIXED)], second, *WHOLE[WHOLE.index(MIXED) :], third)
    assert met is (kind != "look")
    assert met or why == "objects were looked at in 2 of the 3 states that the plan looked at"


def test_one_node_alone_is_looked_through_once() -> None:
    alone = event("objects.phase", phase="before", nodes=["n1"])
    events = [MADE, alone, looked("view", "before", "n1"), looked("index", "before", "n1")]
    assert asked(*events)[0]


def test_what_is_not_evaluated_is_told_and_decides_nothing() -> None:
    left_out = event("object.not_evaluated", check="vector", why="it is there since v25.2, and this is v21.1")
    ended = [
        event("object.ended", check="index", phase="mixed", begun="before", node="n1", under_way=under_way, seconds=9.5)
        for under_way in (True, False)
    ]
    found = measure(trial(events=[*WHOLE, left_out, *ended]), "objects_looked")
    assert found.note.endswith(
        "; 1 of 2 changes of schema were under way from one phase into the next; 1 not evaluated"
    )
    assert found.examples == ("not evaluated: vector: it is there since v25.2, and this is v21.1",)
    assert outcome(*WHOLE, left_out) is Outcome.PASS


def test_nothing_made_is_nothing_measured() -> None:
    for metric in ("objects_differing", "objects_looked"):
        assert measure(trial(events=[]), metric).value is None
    assert outcome() is Outcome.INCONCLUSIVE
    none = [event("objects.made", checks=[]), BEFORE]
    assert asked(*none) == (False, "no check of objects could be made")
    assert outcome(*none) is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("facts", "crossed"),
    [
        ({"under_way": True}, True),  # as earlier releases tell it, too
        ({"under_way": False, "answered_s": 4.0}, True),  # in the node's drain, or with its connection
        ({"under_way": False, "answered_s": 0.5}, False),
        ({"under_way": False}, False),
    ],
)
def test_a_change_of_schema_is_under_way_while_a_node_is_changed(facts: dict[str, Any], crossed: bool) -> None:
    """Begun at 10 s and ended at 30 s; the node is drained from 12 s on."""
    drained = recorded(12_000_000, "fault.begin", {"fault": "swap", "nodes": ["n1"]})
    told = {"check": "index", "phase": "mixed", "begun": "before", "node": "n1", "seconds": 20.0, **facts}
    ended = recorded(30_000_000, "object.ended", told)
    assert condition(trial(events=[drained, ended]), "schema_change_crossed").met is crossed
    note = measure(trial(events=[MADE, BEFORE, drained, ended]), "objects_looked").note
    assert note.endswith(f"; {int(crossed)} of 1 change of schema were under way while a node was changed"), (
        "as the condition says"
    )
    late = recorded(31_000_000, "fault.begin", {"fault": "swap", "nodes": ["n1"]})
    assert not condition(trial(events=[ended, late]), "schema_change_crossed").met


def test_where_none_was_under_way_the_claim_is_not_passed() -> None:
    (check,) = (one for one in load().claim("hot-swap").checks_for("laptop") if one.metric == "objects_differing")
    told = {"check": "index", "phase": "mixed", "begun": "before", "node": "n1", "seconds": 20.0}
    swap = recorded(12_000_000, "fault.begin", {"fault": "swap", "nodes": ["n1"]})
    for under_way, is_ in ((True, Outcome.PASS), (False, Outcome.INCONCLUSIVE)):
        ended = recorded(30_000_000, "object.ended", {**told, "under_way": under_way})
        verdict = decide(trial(events=[*WHOLE, swap, ended, recorded(40_000_000, "trial.end", {})]), [check])
        assert verdict.results[0].outcome is is_
    verdict = decide(trial(events=[*WHOLE, event("trial.end")]), [check])
    assert verdict.results[0].outcome is Outcome.INCONCLUSIVE
