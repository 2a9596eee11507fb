"""What the claims about growing need: an engine with ranges, and a host that has what its nodes are to get."""

from dataclasses import replace
from typing import Any

import pytest

from plugin import selection
from plugin.catalogue import load
from plugin.profiles import profile_named
from tests.plugin.test_host import PLENTY


class Run:
    """What is asked of a run: its engine, its suite and its host."""

    def __init__(self, engine: str = "cockroach", suite: str = "nightly", cores: float = 2.0) -> None:
        self.settings: Any = self
        self.engine, self.suite, self.substrate = engine, suite, "processes"
        self.profile = profile_named("laptop")
        self.host = replace(PLENTY, cores=cores)
        self.targets = ("v21.1.0",)


def why_not(claim: str, **asked: Any) -> str | None:
    return selection.reason_not_evaluated(load().claim(claim), 3, Run(**asked))  # type: ignore[arg-type]


@pytest.mark.parametrize("claim", ["rebalance", "rebalance-scale-in"])
def test_the_control_has_no_ranges_to_move(claim: str) -> None:
    reason = why_not(claim, engine="postgres")
    assert reason is not None
    assert reason.startswith("postgres on processes cannot")
    assert "rebalance" in reason
    assert why_not(claim) is None


@pytest.mark.parametrize("claim", ["scale-up", "parity-resources"])
def test_nodes_get_no_more_cores_than_the_host_has(claim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "offered", lambda *_: frozenset(load().claim(claim).capabilities))
    assert why_not(claim) is None
    assert why_not(claim, suite="paper", cores=40) is None
    assert "cannot carry 3 nodes of profile medium" in (why_not(claim, suite="paper", cores=20) or "")


def test_a_number_of_cores_is_held_against_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "offered", lambda *_: frozenset(load().claim("scale-up").capabilities))
    run: Any = Run()
    run.host = replace(PLENTY, cores=0.7)
    monkeypatch.setattr(selection, "carries", lambda *_: None)
    reason = selection.reason_not_evaluated(load().claim("scale-up"), 3, run)
    assert reason == "this host has 0.7 cores, and a node of size 0.75/1536 is to get 0.75"
