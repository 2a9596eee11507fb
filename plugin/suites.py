"""The suites: choices of claims."""

from enum import StrEnum


class Suite(StrEnum):
    """A named choice of claims with a time budget."""

    GATE = "gate"
    NIGHTLY = "nightly"
    PAPER = "paper"
    CURVE = "curve"
    """What goes as far as the machine carries; chosen by name alone."""


AS_TAKEN = (Suite.GATE, Suite.NIGHTLY, Suite.CURVE, Suite.PAPER)
"""The suites in the order in which they are taken where nobody names one: what takes longest last."""

EVERY = (Suite.GATE, Suite.NIGHTLY, Suite.PAPER)
"""The suites of a claim that names none."""
