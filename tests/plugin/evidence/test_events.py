"""Events: classes in memory, names and facts on disk."""

import json
from dataclasses import is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType
from msgspec.structs import fields

from clusters.events import FaultBegin, Happened, NodeDeath
from plugin.evidence.events import Event, OwnEvent, seen, without_secrets
from plugin.evidence.records import MalformedRecord, event_line, read_events
from tests.plugin.recorded import KINDS, recorded

RECORDED = Path(__file__).with_name("recorded_events.jsonl")
"""At least one of each event, as runs wrote them; the last is a user's own."""


def read(*lines: str) -> list[Event]:
    return list(read_events(lines, KINDS))


def test_what_runs_wrote_is_read_and_written_the_same() -> None:
    lines = RECORDED.read_text(encoding="utf-8").splitlines(keepends=True)
    events = read(*lines)
    assert list(map(event_line, events)) == lines
    assert {type(event.what) for event in events} == {*KINDS.values(), OwnEvent}
    for event, line in zip(events, lines, strict=True):
        assert {"t": event.t, "event": event.name, **event.data} == json.loads(line)


TEXT = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(TEXT, each, max_size=3),
)


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field of this type."""
    plain: dict[Any, st.SearchStrategy[Any]] = {
        str: TEXT,
        bool: st.booleans(),
        int: st.integers(-(2**53), 2**53),
        float: st.floats(allow_nan=False, allow_infinity=False),
        type(None): st.none(),
        UnsetType: st.just(UNSET),
        Any: JSON,
    }
    if hint in plain:
        return plain[hint]
    if get_origin(hint) is Annotated:
        kind, bounds = get_args(hint)
        assert (kind, bounds.ge) == (int, 0), "no other is used"
        return st.integers(0, 2**53)
    if isinstance(hint, type) and is_dataclass(hint):
        hints = get_type_hints(hint, include_extras=True)
        return st.builds(hint, **{name: values(each) for name, each in hints.items()})
    inside = [values(each) for each in get_args(hint)]
    match getattr(get_origin(hint), "__name__", ""):
        case "Sequence":
            return st.lists(inside[0], max_size=3)
        case "Mapping":
            return st.dictionaries(*inside, max_size=3)
    return st.one_of(inside)


def made(kind: type[Happened]) -> st.SearchStrategy[Happened]:
    hints = get_type_hints(kind, include_extras=True)
    return st.builds(kind, **{each.name: values(hints[each.name]) for each in fields(kind)})


NAMES = TEXT.filter(lambda name: name not in KINDS)
OWN = st.builds(
    OwnEvent, name=NAMES, data=st.dictionaries(TEXT.filter(lambda name: name not in ("t", "event")), JSON, max_size=3)
)


@settings(deadline=None)
@given(t=st.integers(0, 10**12), what=st.one_of(*map(made, KINDS.values()), OWN))
def test_every_event_comes_back_as_it_was(t: int, what: Happened) -> None:
    assert read(event_line(Event(t, what))) == [Event(t, what)]


def test_an_event_has_the_facts_that_are_known() -> None:
    assert json.loads(event_line(Event(7, NodeDeath(node="n1")))) == {
        "t": 7,
        "event": "node.died",
        "node": "n1",
        "code": None,
    }
    assert Event(7, KINDS["run.end"](run="r01")).data == {"run": "r01"}
    (event,) = read('{"t": 1, "event": "recovered", "seconds": 1, "of a later release": 2}\n')
    assert event.data == {"seconds": 1}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"t": 1, "event": "fault.begin", "nodes": "n1"}', "Expected `array`, got `str`"),
        ('{"t": 1, "event": "fault.bit"}', "missing required field `node`"),
        ('{"t": 1, "event": "run.begin", "run": "r01", "block": "first"}', "Expected `int`"),
        ('{"t": "soon", "event": "trial.end"}', "Expected `int`"),
        ('{"t": 10000000000000, "event": "trial.end"}', "Expected `int` <= 8640000000000"),
        ('{"t": 1}', "'event'"),
        ("[1]", "integer"),
        ("{", "Expecting"),
    ],
)
def test_what_is_malformed_is_named_with_its_line(line: str, why: str) -> None:
    with pytest.raises(MalformedRecord, match=r"line 2: .* is not an event") as raised:
        read('{"t": 0, "event": "trial.begin"}\n', line + "\n")
    assert why in str(raised.value)


def test_a_line_that_was_cut_off_is_dropped() -> None:
    assert read('{"t": 0, "event": "trial.begin"}\n', '{"t": 1, "ev') == [recorded(0, "trial.begin")]


def test_events_of_one_kind_are_found_with_their_times() -> None:
    told = [
        recorded(1, "trial.begin"),
        recorded(2, "fault.begin", {"fault": "kill"}),
        recorded(3, "trial.end"),
    ]
    assert seen(told, FaultBegin) == [(2, FaultBegin(fault="kill"))]


def test_an_event_without_secrets_stays_what_it_is() -> None:
    for told in (recorded(1, "recovered", {"seconds": 1.0}), recorded(1, "orders", {"name": "x"})):
        assert without_secrets(told) == told


def test_a_secret_that_leaves_no_fact_of_its_type_leaves_an_event_of_no_class() -> None:
    hidden = without_secrets(recorded(1, "moves", {"reasons": {"password": 12345678}}))
    assert "12345678" not in event_line(hidden)
    assert hidden.name == "moves"
