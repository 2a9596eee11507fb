"""The suites: choices of claims."""

from enum import StrEnum


class Suite(StrEnum):
    """A named choice of claims with a time budget."""

    GATE = "gate"
    NIGHTLY = "nightly"
    PAPER = "paper"
    CURVE = "curve"
    """What goes as far as the machine carries; chosen by name alone."""


EVERY = (Suite.GATE, Suite.NIGHTLY, Suite.PAPER)
"""The suites of a claim that names none."""
