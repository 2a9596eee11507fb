"""The exit status as a pure function: what goes before what, and that nothing turns green by itself."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin.status import Status, exit_status

QUIET: dict[str, Any] = {
    "bad_input": False,
    "refuted": False,
    "harness": False,
    "inconclusive": False,
    "undecided": (),
    "claims_collected": True,
    "gate": False,
}
SEEN = st.fixed_dictionaries(
    {
        "bad_input": st.booleans(),
        "refuted": st.booleans(),
        "harness": st.booleans(),
        "inconclusive": st.booleans(),
        "undecided": st.lists(st.sampled_from(["survivability", "rebalance"]), max_size=2),
        "claims_collected": st.booleans(),
        "gate": st.booleans(),
    }
)


@pytest.mark.parametrize(
    ("pytest_status", "seen", "expected"),
    [
        (0, {}, 0),
        (1, {"refuted": True}, 1),
        (1, {"refuted": True, "harness": True, "inconclusive": True}, 1),
        (1, {"harness": True, "inconclusive": True, "undecided": ["rebalance"]}, 7),
        (1, {"inconclusive": True}, 6),
        (0, {"undecided": ["rebalance"]}, 6),
        (0, {"claims_collected": False}, 0),
        (0, {"claims_collected": False, "gate": True}, 6),
        (5, {"claims_collected": False}, 5),
        (5, {"claims_collected": False, "gate": True}, 6),
        (1, {"bad_input": True, "refuted": True, "harness": True}, 4),
        (2, {"refuted": True}, 2),
        (3, {"harness": True}, 3),
        (4, {}, 4),
    ],
)
def test_by_hand(pytest_status: int, seen: dict[str, Any], expected: int) -> None:
    assert exit_status(pytest_status, **{**QUIET, **seen}) == expected


@given(pytest_status=st.integers(0, 5), seen=SEEN)
def test_precedence(pytest_status: int, seen: dict[str, Any]) -> None:
    """1 before 7 before 6, after bad input and what pytest itself ended with."""
    status = exit_status(pytest_status, **seen)
    if seen["bad_input"]:
        assert status == Status.BAD_INPUT
    elif pytest_status in (2, 3, 4):
        assert status == pytest_status
    elif seen["refuted"]:
        assert status == Status.REFUTED
    elif seen["harness"]:
        assert status == Status.HARNESS
    elif seen["inconclusive"] or seen["undecided"]:
        assert status == Status.INCONCLUSIVE


@given(pytest_status=st.integers(0, 5), seen=SEEN)
def test_green_only_when_nothing_is_wrong(pytest_status: int, seen: dict[str, Any]) -> None:
    if exit_status(pytest_status, **seen) == Status.PASSED:
        assert pytest_status == 0
        assert not any(seen[name] for name in ("bad_input", "refuted", "harness", "inconclusive", "undecided"))
        assert seen["claims_collected"] or not seen["gate"]


@given(pytest_status=st.integers(0, 1), seen=SEEN, worse=st.sampled_from(["refuted", "harness", "inconclusive"]))
def test_bad_news_never_turns_it_green(pytest_status: int, seen: dict[str, Any], worse: str) -> None:
    assert exit_status(pytest_status, **{**seen, worse: True}) != Status.PASSED
