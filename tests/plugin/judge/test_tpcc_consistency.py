"""Looks at the consistency conditions, as they were recorded."""

from typing import Any

from plugin.evidence.records import Event
from plugin.judge.arm import ArmEvidence
from plugin.judge.conditions import condition
from plugin.judge.decide import decide
from plugin.judge.metrics import measure
from plugin.judge.model import Check, Comparison, Kind, Outcome
from tests.plugin.judge.histories import arm, event

HOLDS = {f"3.3.2.{number}": 0 for number in range(1, 13)}
NONE = Check(
    metric="inconsistent", comparison=Comparison.EQ, limit=0, kind=Kind.ABSOLUTE, mark="S", source=""
)


def look(*after: str, **fields: Any) -> Event:
    return event(5, "tpcc.checked", **{"after": list(after), "violated": HOLDS, "unread": {}, **fields})


def of(*looks: Event) -> ArmEvidence:
    return arm(events=[event(1, "arm.begin"), event(2, "run.begin", run="r01"), *looks, event(9, "arm.end")])


def test_all_conditions_hold_after_every_run() -> None:
    found = of(look(), look("r01"))
    assert measure(found, "inconsistent").value == 0
    assert condition(found, "consistency_checked").met
    assert decide(found, [NONE]).outcome is Outcome.PASS


def test_one_violation_refutes_and_says_where() -> None:
    found = of(
        look(), look("r01", violated={**HOLDS, "3.3.2.8": 2}, examples=["warehouse 1: 3 instead of 4"])
    )
    measured = measure(found, "inconsistent")
    assert measured.value == 2
    assert measured.note == "after r01: 3.3.2.8 2 times"
    assert measured.examples == ("warehouse 1: 3 instead of 4",)
    assert decide(found, [NONE]).outcome is Outcome.FAIL
    early = of(look(violated={**HOLDS, "rows": 1}))
    assert measure(early, "inconsistent").note == "after loading: rows 1 times"
    assert decide(early, [NONE]).outcome is Outcome.FAIL, (
        "what is lost refutes, whatever was not looked at later"
    )


def test_what_was_not_looked_at_or_not_read_is_no_pass() -> None:
    short = {name: 0 for name in HOLDS if name not in ("3.3.2.11", "3.3.2.12")}
    for looks, why in (
        ((look(),), "not looked at after r01"),
        ((look("r01", violated=short, unread={"3.3.2.12": "timeout"}),), "3.3.2.12: timeout"),
        ((look("r01", violated=short),), "10 of 11"),
        ((look("r01", complaint="3.3.2.1: 1 rows"),), "the built-in check says 3.3.2.1: 1 rows"),
        ((), "were not looked at"),
    ):
        found = of(*looks)
        told = condition(found, "consistency_checked")
        assert not told.met
        assert why in told.why
        assert decide(found, [NONE]).outcome is Outcome.INCONCLUSIVE
