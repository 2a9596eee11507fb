"""A fault that hits one node more than it was told to."""

from collections.abc import Sequence

import pytest

from clusters.faults.disturbance import Fault
from fixtures.fault import Faults


def goes_too(fault: Faults, monkeypatch: pytest.MonkeyPatch) -> None:
    """With each node that a fault is injected into its neighbour goes as well: n2, or n3 with n2."""
    one = fault.inject

    def two(what: Fault, nodes: Sequence[str], **facts: bool) -> object:
        return one(what, [*nodes, "n2" if nodes[0] != "n2" else "n3"], **facts)

    monkeypatch.setattr(fault, "inject", two)
