"""Sabotages that are the same on several engines."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.slow import slow

Test = Callable[..., Any]


def on_both(claim: str, *, in_ci: str = "") -> Callable[[Test], Test]:
    """A sabotage of this claim on each of the two, whose name it is given as ``on``; in CI on this one at the most."""
    each = [
        pytest.param(one, marks=[pytest.mark.sabotage(claim, engine=one), *([] if one == in_ci else [slow])])
        for one in ("postgres", "cockroach")
    ]

    def marked(test: Test) -> Test:
        return pytest.mark.sabotage(claim)(pytest.mark.parametrize("on", each)(test))

    return marked
