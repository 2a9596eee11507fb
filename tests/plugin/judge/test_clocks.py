"""Times of different clocks are told apart no better than their offsets are known."""

import pytest

from plugin.evidence.events import Event
from plugin.judge.clocks import uncertainty_s
from plugin.judge.decide import decide
from plugin.judge.model import Check, Comparison, Kind, Measurement, Outcome
from plugin.judge.trial import TrialEvidence
from tests.plugin.recorded import recorded


def compared(**sources: tuple[float, float]) -> Event:
    found = {
        name: {"clock": name, "offset_s": offset, "uncertainty_s": width} for name, (offset, width) in sources.items()
    }
    return recorded(0, "clocks", {"own": "boot 1", "sources": found})


@pytest.mark.parametrize(
    ("events", "known_to"),
    [
        ([], 0.0),
        ([compared(n1=(0.0, 0.0)), compared(n1=(0.0, 0.0))], 0.0),
        ([compared(n1=(5.0, 0.02)), compared(n1=(5.0, 0.01))], 0.02),
        ([compared(n1=(5.0, 0.02)), compared(n1=(5.5, 0.01))], 0.52),
        ([compared(n1=(5.0, 0.1), n2=(-3.0, 0.2)), compared(n2=(-3.0, 0.1))], 0.2),
        ([recorded(0, "clocks", {})], 0.0),
    ],
)
def test_drift_between_two_comparisons_counts(events: list[Event], known_to: float) -> None:
    assert uncertainty_s(events) == pytest.approx(known_to)


@pytest.mark.parametrize(
    ("measured", "unit", "outcome"),
    [
        (29.0, "s", Outcome.PASS),
        (29.9, "s", Outcome.INCONCLUSIVE),
        (30.1, "s", Outcome.INCONCLUSIVE),
        (31.0, "s", Outcome.FAIL),
        (30.1, "rows", Outcome.FAIL),
    ],
)
def test_what_is_nearer_to_its_limit_than_the_clocks_are_known_is_not_decided(
    measured: float, unit: str, outcome: Outcome
) -> None:
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
        events=[compared(n1=(5.0, 0.1)), compared(n1=(5.4, 0.1))],
        measurements=[Measurement(metric="away", value=measured, unit=unit)],
    )
    (result,) = decide(evidence, [check]).results
    assert result.outcome is outcome
    assert ("known to 0.5 s" in result.why) == (outcome is Outcome.INCONCLUSIVE)
