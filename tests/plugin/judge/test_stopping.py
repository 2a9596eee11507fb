"""When a test has seen enough, and that a fixture asks nothing else of the judge while the test runs."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from math import log
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as changed

from plugin.judge.comparison import compare, equivalence, looks
from plugin.judge.conditions import TAKEN_S
from plugin.judge.stopping import (
    LATELY_S,
    TOLD_AFTER,
    comparison_decided,
    replicas_at_rest,
    replicas_balanced_or_still,
    too_late_for_the_machine,
)
from plugin.judge.trial import HostSecond, TrialEvidence
from tests.plugin.judge.histories import SECOND, event, trial
from tests.plugin.judge.test_growth import SIX, THREE, grown, phase

FIXTURES = Path(__file__).parents[3] / "fixtures"
VERDICT = FIXTURES / "judge.py"
"""Asks for the verdict, at the end."""


def imported(path: Path, package: str) -> Iterator[str]:
    """What a module imports of a package, also inside of functions."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.startswith(f"{package}."))


def of_a_workload(path: Path) -> bool:
    """Whether it is a workload's own part of the judge, or of the reports: both come when the test is over."""
    return bool({"judge", "reports"} & set(path.relative_to(FIXTURES).parent.parts))


def test_fixtures_ask_the_judge_only_whether_to_stop() -> None:
    paths = [path for path in FIXTURES.rglob("*.py") if path != VERDICT and not of_a_workload(path)]
    asked = {str(path.relative_to(FIXTURES)): set(imported(path, "plugin.judge")) for path in paths}
    asked = {name: found for name, found in asked.items() if found}
    for name, found in asked.items():
        allowed = {one for one in found if one.startswith("plugin.judge.stopping.")} | {
            "plugin.judge.trial.TrialEvidence",
            "plugin.judge.trial.HostSecond",
        }
        assert not found - allowed, name
    assert any("plugin.judge.stopping" in one for found in asked.values() for one in found), (
        "the rule looks at something"
    )


def test_a_workloads_fixtures_ask_its_judge_only_how_to_go_on() -> None:
    """``KIND`` registers the judge; everything else in a workload's package asks its rules of stopping and plans."""
    paths = [path for path in (FIXTURES / "workloads").rglob("*.py") if not of_a_workload(path)]
    asked = {
        (path.relative_to(FIXTURES).as_posix(), one)
        for path in paths
        for one in imported(path, "fixtures.workloads")
        if ".judge." in one and not path.name.endswith("workload.py")
    }
    assert asked, "the rule looks at something"
    assert [found for found in asked if ".judge.stopping." not in found[1]] == []


def test_the_judge_knows_workloads_through_the_registry_alone() -> None:
    paths = [path for room in ("judge", "evidence") for path in (FIXTURES.parent / "plugin" / room).glob("*.py")]
    assert paths
    assert [str(path) for path in paths if [*imported(path, "fixtures")]] == []


@pytest.mark.parametrize(
    ("ratios", "enough"),
    [([1.0, 1.001, 0.999], True), ([1.5, 1.501, 1.499], True), ([1.0, 1.3, 0.8], False), ([1.0], False)],
)
def test_a_comparison_is_decided_when_every_one_of_it_is(ratios: list[float], enough: bool) -> None:
    sure = compare({"a/b": [log(1.001), log(0.999), log(1.0)]}, equivalence(2), looks(3))
    other = compare({"a/b": [log(ratio) for ratio in ratios]}, equivalence(2), looks(3))
    assert comparison_decided([sure, other]) is enough


def test_one_that_is_refuted_is_enough() -> None:
    refuted = compare({"a/b": [log(1.5), log(1.501), log(1.499)]}, equivalence(2), looks(3))
    open_ = compare({"a/b": [log(1.0), log(1.3), log(0.8)]}, equivalence(2), looks(3))
    assert comparison_decided([refuted, open_])


def test_nothing_compared_decides_nothing() -> None:
    assert not comparison_decided([])


def until(evidence: TrialEvidence, second: int) -> TrialEvidence:
    """What was recorded by then."""
    return replace(
        evidence,
        events=[event for event in evidence.events if event.t <= second * SECOND],
        layout=[sample for sample in evidence.layout if sample.t <= second * SECOND],
    )


def test_replicas_must_lie_evenly_for_as_long_as_was_declared() -> None:
    evidence = grown(hold_s=10)
    enough = [second for second in range(10, 60, 2) if replicas_balanced_or_still(until(evidence, second), 10)]
    assert enough
    assert enough == list(range(enough[0], 60, 2)), "and from then on it is enough"
    sooner = [second for second in range(10, 60, 2) if replicas_balanced_or_still(until(grown(), second), 10)]
    assert enough[0] - sooner[0] == 10


def test_where_nothing_moves_nobody_waits_for_longer_than_was_declared() -> None:
    still = [changed(sample, replicas=phase(10, THREE, SIX)[0].replicas, moves=0) for sample in phase(10, THREE, SIX)]
    evidence = grown(layout=still, quiet=None)
    assert not replicas_balanced_or_still(until(evidence, 20), 10), "24 s were declared"
    assert replicas_balanced_or_still(until(evidence, 58), 10)
    assert not replicas_balanced_or_still(until(evidence, 58), 40), "it is waited since 40 s only"


def test_replicas_rest_when_none_moved_for_as_long_as_was_declared() -> None:
    evidence = grown()
    resting = [second for second in range(62, 110, 2) if replicas_at_rest(until(evidence, second))]
    assert min(resting) >= 75 + 20, "traffic ended at 75 s, 20 s were declared"
    assert not replicas_at_rest(grown(quiet=None))


def test_before_anything_was_recorded_nothing_is_over() -> None:
    assert not replicas_at_rest(trial())
    assert not replicas_balanced_or_still(trial(), 0)
    assert not replicas_balanced_or_still(grown(layout=[]), 0)


def seconds(*others: float, cpu: float = 96.0) -> list[HostSecond]:
    return [HostSecond(t=t * SECOND, cpu=cpu, others=part) for t, part in enumerate(others)]


@pytest.mark.parametrize(
    ("host", "why"),
    [
        (seconds(*[1.0] * 600, *[60.0] * LATELY_S), "other work took 60 % of the machine's CPU, and in 60 of 60 s"),
        (seconds(*[60.0] * 600, *[1.0] * LATELY_S), ""),
        (seconds(*[60.0] * TOLD_AFTER), "other work took 60 % of the machine's CPU, and in 30 of 30 s"),
        (seconds(*[60.0] * (TOLD_AFTER - 1)), ""),
        (seconds(*[60.0] * (LATELY_S - TAKEN_S), *[1.0] * TAKEN_S), ""),
        ([], ""),
    ],
    ids=["of late", "long ago", "from the start", "too short to tell", "over again", "not recorded"],
)
def test_what_comes_too_late_is_explained_by_what_others_took_just_before(host: list[HostSecond], why: str) -> None:
    """Whatever was disturbed then: here something is in the last second."""
    disturbed = event(len(host), "fault.begin", fault="kill", nodes=["n1"])
    told = too_late_for_the_machine(trial(host=host, events=[disturbed]))
    assert told.startswith(why)
    assert bool(told) is bool(why)


def test_a_record_of_the_machine_that_cannot_be_relied_on_explains_nothing() -> None:
    idle = [HostSecond(t=t * SECOND, cpu=5.0, others=0.0) for t in range(LATELY_S)]
    assert not too_late_for_the_machine(trial(host=idle, host_problems=("host.jsonl: line 7: 'x' is no second",)))


def used(*runs: tuple[int, dict[str, float]]) -> list[HostSecond]:
    """So many seconds of each kind one after another, in which other work has a hundredth of the machine."""
    kinds = [kind for count, kind in runs for _ in range(count)]
    return [HostSecond(t * SECOND, **{"cpu": 40.0, **kind}, others=1.0) for t, kind in enumerate(kinds)]


ROOM: dict[str, float] = {}
FULL = {"cpu": 97.0}


@pytest.mark.parametrize(
    ("host", "figures"),
    [
        (used((600, ROOM), (60, FULL)), "for 60 of the last 60 s the machine had no CPU, disk or network left (97 %"),
        (used((600, ROOM), (60, {"stalled": 50.0, "disk_others": 0.0})), "for 60 of the last 60 s"),
        (used((600, ROOM), (60, {"network": 90.0})), "for 60 of the last 60 s"),
        (used((600, ROOM), (60, {"cpu": 96.9})), ""),
        (used((600, ROOM), (20, FULL), (25, ROOM), (15, FULL)), "for 35 of the last 60 s"),
        (used((600, ROOM), (29, FULL)), ""),
        (used((600, FULL), (6, ROOM)), ""),
        (used((29, FULL)), ""),
        (used((31, FULL)), "for 31 of the last 31 s"),
    ],
    ids=["CPU", "disks", "network", "almost", "half", "less", "over again", "too short to tell", "from the start"],
)
def test_what_comes_too_late_is_explained_by_a_machine_that_the_run_itself_exhausted(
    host: list[HostSecond], figures: str
) -> None:
    told = too_late_for_the_machine(trial(host=host))
    assert told.startswith(figures)
    assert bool(told) is bool(figures)


def test_a_machine_without_time_records_late_and_each_record_counts_for_its_time() -> None:
    late = [HostSecond(t=round(2.4 * n * SECOND), cpu=100.0, others=1.0) for n in range(1, 30)]
    assert too_late_for_the_machine(trial(host=late)).startswith("for 60 of the last 60 s")


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=TOLD_AFTER - 2, max_size=2 * LATELY_S))
def test_a_machine_with_room_for_more_than_half_of_the_time_explains_nothing(full: list[bool]) -> None:
    """Neither of the last minute nor of the last seconds."""
    told = too_late_for_the_machine(trial(host=used(*((1, FULL if each else ROOM) for each in full))))
    half = all(2 * sum(full[-last:]) >= len(full[-last:]) for last in (LATELY_S, TAKEN_S))
    assert bool(told) is (half and len(full) >= TOLD_AFTER)
