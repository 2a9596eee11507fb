"""Which arguments the test of a claim is given, and whose cluster can be left running."""

import re
from types import SimpleNamespace
from typing import Any

import pytest

from clusters.errors import BadInput
from plugin import selection
from plugin.catalogue import load
from tests.plugin.test_evaluable import Run


def shown_values(*marks: pytest.MarkDecorator) -> dict[str, object]:
    """With which values the test of a function with these marks is given its claim's parameters, in the suite gate."""
    run: Any = Run(suite="gate")
    run.catalogue, run.seen = load(), set()
    found: dict[str, object] = {}
    metafunc: Any = SimpleNamespace(
        definition=Marked(*marks), fixturenames=["path", "nodes"], parametrize=found.__setitem__
    )
    selection.parametrize(metafunc, run)
    return found


class Marked:
    """A test's function with marks."""

    def __init__(self, *marks: pytest.MarkDecorator) -> None:
        self.marks = [decorator.mark for decorator in marks]
        self.nodeid = "test"

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return [mark for mark in self.marks if mark.name == name]

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next(iter(self.iter_markers(name)), None)


def test_a_sabotage_may_say_by_which_value_it_bites() -> None:
    back = pytest.mark.parametrize("path", ["back-from-all"])
    assert shown_values(pytest.mark.claim("hot-swap")) == {"path": ("back-then-final",), "nodes": (3,)}
    assert shown_values(pytest.mark.sabotage("hot-swap")) == {"path": ("back-then-final",), "nodes": (3,)}
    assert shown_values(pytest.mark.sabotage("hot-swap"), back) == {"nodes": (3,)}


def collected(name: str, *, claim: bool = True, skipped: str = "", cluster: bool = True) -> Any:
    """A test as pytest collects it."""
    marks = {"claim": pytest.mark.claim("answer").mark} if claim else {}
    if skipped:
        marks["skip"] = pytest.mark.skip(reason=skipped).mark
    fixtures = ["cluster", "judge"] if cluster else ["judge"]
    return SimpleNamespace(name=name, nodeid=name, fixturenames=fixtures, get_closest_marker=marks.get)


ONE = collected("test_one")
AWAY = "not evaluated: profile laptop needs two cores"


@pytest.mark.parametrize(("items", "says"), [
    ([], "no test of a claim was found here; choose one by its node id, or with --claim"),
    ([collected("test_plain", claim=False)], "no test of a claim was found here; choose one"),
    ([collected("test_away", skipped=AWAY)], f"none will run here ({AWAY}); make one run that can"),
    ([ONE, ONE, collected("test_away", skipped=AWAY)], "2 will run here; choose one by its node id, or with --claim"),
    ([collected("test_bare", cluster=False)], "the one that will run here, test_bare, has no cluster of its own;"),
])  # fmt: skip
def test_why_no_cluster_can_be_left_running(items: list[Any], says: str) -> None:
    with pytest.raises(BadInput, match=re.escape(f"--keep running: leaves the cluster of one test up, and {says}")):
        selection._check_left_running(items)


def test_the_cluster_of_a_single_test_can_be_left_running() -> None:
    selection._check_left_running([ONE, collected("test_away", skipped=AWAY), collected("test_plain", claim=False)])
