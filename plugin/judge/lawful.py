"""Which errors a load's clients must expect while nodes come and go, and which no operation may end with."""

import re
from collections.abc import Mapping

from clusters.sql.states import LOST_STATES, RETRYABLE_STATES

SQLSTATE = re.compile("[0-9A-Z]{5}")

LAWFUL_STATES = ("08", "57P", "57014", "40003", "25006", *sorted(RETRYABLE_STATES | LOST_STATES))
"""SQLSTATEs, or how they begin, of what clients must expect while nodes come and go: the connection is lost, the server
shuts down or starts, has no connection left, a statement is cancelled or repeated, its result is ambiguous, the server
is no longer the primary (CockroachDB's documentation on transaction retry errors and on connection retry; PostgreSQL,
appendix A)."""


def unlawful(details: Mapping[str, int]) -> dict[str, int]:
    """Of errors, counted by SQLSTATE or a word for what became of the connection, those that nobody must expect."""
    return {d: n for d, n in details.items() if n and SQLSTATE.fullmatch(d) and not d.startswith(LAWFUL_STATES)}
