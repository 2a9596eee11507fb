"""What arms can do without think times, beside what they do with them: capacity lost that tpmC does not show."""

from collections.abc import Mapping
from dataclasses import replace
from math import exp
from typing import Any

import pytest

from fixtures.workloads.tpcc.judge.loads import COMPARISONS, Loads
from plugin.judge.arm import ArmEvidence
from plugin.judge.comparison import Logs, ratio
from plugin.judge.decide import decide
from plugin.judge.metrics import measure
from plugin.judge.model import Check, Comparison, Kind, Outcome
from tests.plugin.judge.loads import WIGGLE, begin, evidence, load

CELL, RUSHED = "10 warehouses", "10 warehouses, 8 workers that do not wait"
RATIO, LOSS, P90 = (f"saturated_{name}_interval" for name in ("tpmc_ratio", "tpmc_loss", "p90_ratio"))


def both(
    could: Mapping[str, float],
    *,
    blocks: int = 5,
    wiggle: float = 1.0,
    declared: Mapping[str, Any] | None = None,
    limits: Mapping[str, float] | None = None,
    reached: Mapping[str, float] | None = None,
) -> ArmEvidence:
    """Arms that all reach 97 % with think times, or what they are said to have ``reached``; without they could do so many percent of that, and take the longer the less it is."""
    told = []
    for block in range(blocks):
        for index, (arm, most) in enumerate(could.items()):
            at, name = 10 + 200 * (block * len(could) + index), f"b{block}a{index}"
            moved = most * (1 + wiggle * WIGGLE[(block + 2 * index) % 12] / 100)
            options: dict[str, Any] = {"warehouses": 10, "seed": block}
            paced = {**options, "efc": (reached or {}).get(arm, 97.0)}
            told.append(begin(load(name, begin=at, **paced), CELL, arm, block))
            rushed = load(
                f"{name}s", begin=at + 90, efc=moved, latency_ms=9000 / moved, waits=False, **options
            )
            told.append(begin(rushed, RUSHED, arm, block))
    return evidence(told, declared=declared or {"looks": [5]}, limits=limits or {})


def test_a_loss_of_capacity_shows_only_without_think_times() -> None:
    found = both({"free": 300.0, "capped": 270.0, "free (A/A)": 300.0})
    assert abs(measure(found, "tpmc_ratio_interval").value or 99) < 1
    lost = measure(found, "headroom_lost")
    assert lost.value == pytest.approx(10, abs=1)
    assert "tpmC of capped / free, 10 warehouses, 8 workers that do not wait: 0.9" in lost.note
    assert "p90 of capped / free" in lost.note
    assert measure(found, P90).value == pytest.approx(11, abs=1)
    left = measure(found, "headroom")
    assert left.value == pytest.approx(100 * (1 - 97 / 270), abs=0.5)
    assert "free 67.6; capped 64.0" in left.note


def test_whichever_arm_can_do_less() -> None:
    assert measure(both({"slow": 270.0, "fast": 300.0}), "headroom_lost").value == pytest.approx(10, abs=1)
    assert measure(both({"a": 300.0, "b": 300.0}), "headroom_lost").value == 0
    assert measure(both({"a": 300.0, "b": 270.0}, blocks=1), "headroom_lost").value is None


def test_without_runs_of_either_kind_there_is_no_headroom() -> None:
    for waits in (True, False):
        run = load("r", waits=waits)
        found = evidence([begin(run, CELL, "a", 0)])
        assert measure(found, "headroom").value is None


def test_what_comes_past_saturation() -> None:
    """Eight workers reach the most; thirty-two get in each other's way."""
    runs = [
        begin(
            load(f"r{n}", warehouses=2, waits=False, efc=efc, begin=10 + 100 * n, terminals=workers),
            f"{workers} workers",
            "a",
            0,
        )
        for n, (workers, efc) in enumerate(((8, 300.0), (16, 240.0), (32, 150.0)))
    ]
    found = measure(evidence(runs), "past_saturation")
    assert found.value == pytest.approx(50, abs=1)
    assert found.note.startswith("8 workers 77")
    assert measure(evidence(runs[:1]), "past_saturation").value is None


def test_old_and_new_by_what_they_could_do() -> None:
    arms = {"old": 300.0, "new": 270.0, "old (A/A)": 300.0}
    declared = {"looks": [5], "arms": ["old", "new"]}
    checks = [
        Check(
            metric=metric,
            comparison=Comparison.LE,
            limit=5,
            kind=Kind.RELATIVE,
            unit="%",
            mark="R",
            source="",
        )
        for metric in ("tpmc_loss_interval", LOSS)
    ]
    verdict = decide(replace(both(arms, declared=declared)), checks)
    assert [result.outcome for result in verdict.results] == [Outcome.PASS, Outcome.FAIL]
    even = decide(both({**arms, "new": 300.0}, declared=declared), checks)
    assert even.outcome is Outcome.PASS
    noisy = decide(both({**arms, "new": 300.0}, declared=declared, wiggle=60), checks)
    assert noisy.outcome is Outcome.INCONCLUSIVE, "what is too noisy to tell is no pass"
    slow = both({**arms, "new": 300.0}, declared=declared, wiggle=60, reached={"new": 70.0})
    refuted = decide(slow, checks)
    assert refuted.outcome is Outcome.FAIL, "and hides no loss that is certain"
    assert [result.outcome for result in refuted.results] == [Outcome.FAIL, Outcome.INCONCLUSIVE]


def test_saturated_runs_are_no_part_of_a_comparison_with_think_times() -> None:
    loads = Loads(both({"a": 300.0, "b": 150.0}))
    assert {name for metric in COMPARISONS if (p := loads.pairs(metric)) for name in p.pairs} == {
        f"b / a, {CELL}",
        f"b / a, {RUSHED}",
    }
    assert [*loads.parity.pairs] == [f"b / a, {CELL}"]
    assert {load.cell for load in loads.about} == {CELL}


def test_counts_are_whole_numbers_and_never_without_any_spread() -> None:
    """Two arms that were dealt the same cards finish the same number of orders: that says less of 15 than of 1500."""
    for orders, half in ((15, 0.0575), (1500, 0.000575)):
        least = (2 / 12) ** 0.5 / orders
        same = ratio("b / a", [0.0, 0.0, 0.0], 0.05, Logs([], least).least_sd)
        assert same.interval is not None
        assert same.interval[1] == pytest.approx(2.92 * least / 3**0.5, rel=0.01)
        assert exp(same.interval[1]) - 1 < half + 0.02
    short, long = (
        Loads(
            evidence([begin(load(f"{a}{b}", warehouses=w), "c", a, b) for a in "ab" for b in range(3)])
        ).parity.ratios(None)[0]
        for w in (1, 100)
    )
    assert short.sd is not None
    assert long.sd is not None
    assert short.sd == pytest.approx(100 * long.sd, rel=0.1)
    assert short.sd > 0.02
