"""A claim that asks for links to be cut is evaluated exactly where the machine lets us make networks."""

from types import SimpleNamespace
from typing import Any

import pytest

from clusters.model import Capability
from clusters.substrates import processes
from plugin import selection


def claim(*capabilities: Capability) -> Any:
    return SimpleNamespace(status="ready", capabilities=frozenset(capabilities), compares_versions=False)


def run() -> Any:
    settings = SimpleNamespace(engine="cockroach", substrate="processes")
    return SimpleNamespace(settings=settings, profile=None, host=None)


@pytest.fixture(autouse=True)
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "carries", lambda *_: None)


def test_where_links_can_be_cut_the_claim_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "cannot_cut", lambda: None)
    asking = claim(Capability.KILL, Capability.CUT_LINKS)
    assert selection.reason_not_evaluated(asking, 3, run()) is None


def test_where_they_cannot_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "cannot_cut", lambda: "CAP_NET_ADMIN is missing")
    asking = claim(Capability.KILL, Capability.CUT_LINKS)
    assert (
        selection.reason_not_evaluated(asking, 3, run())
        == "cockroach on processes cannot cut_links (CAP_NET_ADMIN is missing)"
    )


def test_it_is_not_tried_for_a_claim_that_does_not_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "cannot_cut", lambda: pytest.fail("was tried"))
    assert selection.reason_not_evaluated(claim(Capability.KILL), 3, run()) is None
