"""Clocks: what is known of one that is not the harness's own."""

from dataclasses import replace

import pytest

from clusters import clocks, cluster
from clusters.clocks import Reading
from clusters.errors import HarnessError
from tests.clusters.fake import Fake


def answering(monkeypatch: pytest.MonkeyPatch, *steps: tuple[float, float]) -> list[float]:
    """Let the harness's clock go on by so much before and after each reading; the times at which it was read."""
    now = [1000.0]
    waits = iter([seconds for step in steps for seconds in (0.0, sum(step))])

    def time() -> float:
        now.append(now[-1] + next(waits))
        return now[-1]

    monkeypatch.setattr("time.time", time)
    return now


def test_another_clock_is_known_to_half_of_the_shortest_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    now = answering(monkeypatch, (0.5, 0.5), (0.01, 0.03), (0.3, 0.1), (2.0, 2.0))
    found = clocks.compare(lambda: Reading(clock="other", seconds=now[-1] + 7.0))
    assert found.uncertainty_s == pytest.approx(0.02)
    assert found.offset_s == pytest.approx(7.0, abs=found.uncertainty_s + 1e-9)


def test_the_same_clock_is_no_further_away_however_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, (5.0, 5.0))
    found = clocks.compare(lambda: Reading(clock=clocks.own(), seconds=0.0))
    assert (found.offset_s, found.uncertainty_s) == (0.0, 0.0)


async def test_all_that_runs_is_compared_and_what_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "LOST_S", 0.0)
    fake = await Fake().up()
    fake.cluster.compare_clocks()
    name, begin = fake.events[-1]
    assert name == "clocks"
    assert begin["own"] == clocks.own()
    assert {node: found["uncertainty_s"] for node, found in begin["sources"].items()} == dict.fromkeys(
        ("n1", "n2", "n3"), 0.0
    )
    await fake.cluster.kill("n1")
    fake.substrate.clocks["n2"] = Reading(clock="of n2", seconds=5.0)

    def silent(name: str) -> Reading:
        if name == "n3":
            raise HarnessError("n3 is silent")
        return fake.substrate.clocks[name]

    fake.substrate.clock = silent  # type: ignore[method-assign]
    fake.cluster.compare_clocks()
    name, end = fake.events[-1]
    assert name == "clocks"
    assert set(end["sources"]) == {"n2"}
    assert end["sources"]["n2"]["offset_s"] < -1e9
    assert end["unread"] == {"n3": "n3 is silent"}


async def test_the_machine_of_each_clock_is_recorded_where_there_are_several() -> None:
    fake = await Fake().up()
    fake.cluster.compare_clocks()
    on = {"n1": "m1", "n2": "m2", "n3": "m1"}
    fake.substrate.kind = replace(fake.substrate.kind, machine=lambda _, name: on[name])
    fake.cluster.compare_clocks()
    before, after = (data for name, data in fake.events if name == "clocks")
    assert "machines" not in before
    assert after["machines"] == on


async def test_where_a_node_falls_silent_it_is_waited_until_its_machine_is_known_to_be_lost() -> None:
    """Kubernetes says so long after it: until then the silence would be the database's, and refute it."""
    fake = await Fake().up()
    silent, looks = set[str](), list[str]()

    def clock(name: str) -> Reading:
        if name in silent:
            raise HarnessError(f"{name} is silent")
        return clocks.here()

    def lost(name: str) -> str:
        looks.append(name)
        return "its machine was not ready" if len(looks) > 5 and name == "n2" else ""

    fake.substrate.clock = clock  # type: ignore[method-assign]
    fake.cluster.compare_clocks()
    silent.add("n2")
    fake.substrate.machine_lost = lost  # type: ignore[method-assign]
    with pytest.raises(HarnessError, match="n2: its machine was not ready"):
        fake.cluster.compare_clocks()
