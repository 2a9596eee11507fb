"""SQLSTATEs that say what became of an operation, for who sends statements and for who judges their errors."""

RETRYABLE_STATES = frozenset({"40001", "40P01", "53300", "57P03"})
"""Serialization failure, deadlock, too many connections, cannot connect now.

Not 40003 (result is ambiguous), 57014 (cancelled, perhaps while committing), 57P01 and 57P02 (shut down in flight).
"""

LOST_STATES = frozenset({"57P01", "57P02"})
"""The server ends the connection: it shuts down, or another of its processes crashed."""
