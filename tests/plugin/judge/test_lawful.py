"""Errors that clients must expect while nodes come and go."""

import pytest

from clusters.sql.states import LOST_STATES, RETRYABLE_STATES
from plugin.judge.lawful import unlawful


@pytest.mark.parametrize("state", sorted(RETRYABLE_STATES | LOST_STATES | {"08006", "40003", "57014", "25006"}))
def test_what_may_be_tried_again_is_lawful(state: str) -> None:
    """By the same table as the harness has: too many connections, 53300, was retried and held against the database."""
    assert unlawful({state: 3, "connection lost": 2}) == {}


@pytest.mark.parametrize("state", ["XX000", "53200", "22012", "42P01"])
def test_what_the_server_must_not_say_is_not(state: str) -> None:
    assert unlawful({state: 3, "40001": 1}) == {state: 3}
