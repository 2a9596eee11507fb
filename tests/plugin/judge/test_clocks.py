"""Times of different clocks are told apart no better than their offsets are known."""

import math

import pytest

from plugin.evidence.events import Event
from plugin.judge.clocks import uncertainty_s
from plugin.judge.decide import decide
from plugin.judge.model import Check, Comparison, Kind, Measurement, Outcome, Verdict
from plugin.judge.trial import TrialEvidence
from tests.plugin.recorded import recorded

OWN = "boot 1"
"""The harness's clock."""


def compared(unread: str = "", clock: str = "", **sources: tuple[float, float]) -> Event:
    """``clock``: which one all sources have; by default each its own."""
    found = {
        name: {"clock": clock or name, "offset_s": offset, "uncertainty_s": width}
        for name, (offset, width) in sources.items()
    }
    silent = {"unread": {unread: "silent"}} if unread else {}
    return recorded(0, "clocks", {"own": OWN, "sources": found, **silent})


@pytest.mark.parametrize(
    ("events", "known_to"),
    [
        ([], 0.0),
        ([compared(n1=(0.0, 0.0)), compared(n1=(0.0, 0.0))], 0.0),
        ([compared(n1=(5.0, 0.02)), compared(n1=(5.0, 0.01))], 0.02),
        ([compared(n1=(5.0, 0.02)), compared(n1=(5.5, 0.01))], 0.52),
        ([compared(n1=(5.0, 0.1), n2=(-3.0, 0.2)), compared(n2=(-3.0, 0.1))], 0.2),
        ([recorded(0, "clocks", {})], 0.0),
        ([compared(n1=(5.0, 0.02), unread="n2")], math.inf),
        ([compared(n1=(5.0, 0.02)), compared(unread="n1")], math.inf),
        ([compared(n1=(0.0, 0.0), clock=OWN), compared(unread="n1")], 0.0),
    ],
)
def test_drift_between_two_comparisons_counts(events: list[Event], known_to: float) -> None:
    assert uncertainty_s(events) == pytest.approx(known_to)


def judged(measured: float, unit: str, *events: Event) -> Verdict:
    """Of a measurement that must be at most 30."""
    check = Check(
        metric="away",
        comparison=Comparison.LE,
        limit=30,
        kind=Kind.ABSOLUTE,
        mark="R",
        source="the test's own",
        unit=unit,
    )
    evidence = TrialEvidence(
        claim="c",
        profile="laptop",
        seed=1,
        buckets=0,
        events=events,
        measurements=[Measurement(metric="away", value=measured, unit=unit)],
    )
    return decide(evidence, [check])


@pytest.mark.parametrize(
    ("measured", "unit", "outcome"),
    [
        (29.0, "s", Outcome.PASS),
        (29.9, "s", Outcome.INCONCLUSIVE),
        (30.1, "s", Outcome.INCONCLUSIVE),
        (31.0, "s", Outcome.REFUTED),
        (30.1, "rows", Outcome.REFUTED),
        (29.992, "min", Outcome.INCONCLUSIVE),
        (30.008, "min", Outcome.INCONCLUSIVE),
        (29.991, "min", Outcome.PASS),
        (30.009, "min", Outcome.REFUTED),
    ],
)
def test_what_is_nearer_to_its_limit_than_the_clocks_are_known_is_not_decided(
    measured: float, unit: str, outcome: Outcome
) -> None:
    (result,) = judged(measured, unit, compared(n1=(5.0, 0.1)), compared(n1=(5.4, 0.1))).results
    assert result.outcome is outcome
    assert ("known to 0.5 s" in result.why) == (outcome is Outcome.INCONCLUSIVE)


@pytest.mark.parametrize("unit", ["s", "min"])
@pytest.mark.parametrize("measured", [1.0, 1000.0])
def test_a_time_is_not_decided_where_a_clock_could_not_be_read(measured: float, unit: str) -> None:
    """A source that is not read is not taken for exact: it may be any time away."""
    verdict = judged(measured, unit, compared(n1=(5.0, 0.1), unread="n2"))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    (unmet,) = (condition for condition in verdict.conditions if not condition.met)
    assert unmet.name == "clocks_read"
    assert "n2" in unmet.why
    assert judged(measured, "rows", compared(unread="n2")).outcome is not Outcome.INCONCLUSIVE


def test_a_time_is_decided_where_all_have_the_clock_of_the_harness() -> None:
    """As local processes do; then the verdict says nothing of clocks."""
    verdict = judged(29.999, "s", compared(n1=(0.0, 0.0), clock=OWN))
    assert "clocks_read" not in {condition.name for condition in verdict.conditions}
    assert judged(29.999, "s", compared(n1=(0.0, 0.0), clock=OWN)).results[0].outcome is Outcome.PASS
    assert judged(30.001, "s", compared(n1=(0.0, 0.0), clock=OWN)).results[0].outcome is Outcome.REFUTED


def generators(*apart: tuple[float, float]) -> list[Event]:
    """Readings of one generator's clock: how far ahead it was then, and how well that was known."""
    told = [{"clock": "another", "offset_s": offset, "uncertainty_s": width} for offset, width in apart]
    return [recorded(0, "generator.clocks", {"own": OWN, "sources": {"generator 1": each}}) for each in told]


@pytest.mark.parametrize(
    ("apart", "known_to"),
    [
        ([(0.0, 0.02), (0.01, 0.03)], 0.04),
        ([(0.0, 0.1)], 0.1),
        ([(0.0, 0.101)], math.inf),
        ([(0.0, 0.001), (0.3, 0.001)], math.inf),
    ],
    ids=["exact", "just exact enough", "read too slowly", "drifted"],
)
def test_the_clock_of_a_load_generator_must_be_known_exactly(apart: list[tuple[float, float]], known_to: float) -> None:
    assert uncertainty_s(generators(*apart)) == pytest.approx(known_to)


def test_a_clock_of_a_load_generator_that_is_known_too_badly_is_named() -> None:
    verdict = judged(29.0, "s", *generators((0.0, 0.25)))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    (condition,) = [one for one in verdict.conditions if one.name == "clocks_read"]
    assert "generator 1 could not be read: it is known to 0.25 s only, a generator's must be to 0.1 s" in condition.why
    assert judged(29.0, "rows", *generators((0.0, 0.01))).outcome is Outcome.PASS
