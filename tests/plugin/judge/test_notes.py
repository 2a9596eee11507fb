"""What is noted of a trial whatever its verdict is."""

from typing import Any

import pytest

from plugin.judge.conditions import condition
from plugin.judge.notes import notes
from plugin.judge.trial import HostSecond
from tests.plugin.judge.histories import SECOND, event, events
from tests.plugin.judge.whole_trial import host, whole


def test_other_work_that_had_the_machine_while_it_counted_is_noted_with_figures() -> None:
    assert notes(whole(host=host(others=40.0))) == (
        "other work had the machine for 19 of 19 s (40 % of its CPU): times are a busy machine's",
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"host": host(others=40.0, cpu=80.0)},
        {"host": host(others=9.0)},
        {"host": host(others=None)},
        {"host": []},
        {"host": [*host(others=40.0)[:11], *host(others=1.0)[11:]]},
        {"host": host(others=40.0), "host_problems": ("times run backwards",)},
        {"host": host(others=40.0)[:20]},
    ],
    ids=["room left", "a little", "not told", "no record", "before the fault", "not reliable", "too short"],
)
def test_nothing_is_noted_of_a_machine_that_was_free_or_that_nobody_knows_of(fields: dict[str, Any]) -> None:
    assert notes(whole(**fields)) == ()


@pytest.mark.parametrize(
    ("looks", "told"),
    [
        ([{}], None),
        ([{"n1": "m1", "n2": "m2", "n3": "m3"}], None),
        ([{"n1": "", "n2": ""}], None),
        ([{"n1": "m1", "n2": "m2", "n3": "m1"}], "n1, n3 on m1"),
        ([{"n1": "m1", "n2": "m2"}, {"n1": "m1", "n2": "m2", "n3": "m1", "n4": "m2"}], "n1, n3 on m1; n2, n4 on m2"),
        ([{"n1": "m1", "n2": "m1"}, {"n1": "m1", "n2": "m2"}], "n1, n2 on m1"),
    ],
    ids=["nobody tells", "each its own", "on none", "two on one", "as it grew", "for a while"],
)
def test_nodes_that_shared_a_machine_are_named(looks: list[dict[str, str]], told: str | None) -> None:
    """Each is to be on its own: else they have less than was declared, and one machine's loss is that of two nodes."""
    found = [event(20 + number, "clocks", **({"machines": each} if each else {})) for number, each in enumerate(looks)]
    expected = () if told is None else (f"nodes shared a machine, its CPU and its fate: {told}",)
    assert notes(whole(events=[*events(), *found])) == expected


@pytest.mark.parametrize("crowd", range(0, 20, 3))
def test_it_is_noted_exactly_where_a_limit_of_time_could_not_refute(crowd: int) -> None:
    seconds = [
        HostSecond(t=s * SECOND, cpu=95.0, others=60.0 if 12 <= s < 12 + crowd else 1.0, stalled=0.0, disk_others=0.0)
        for s in range(1, 31)
    ]
    evidence = whole(host=seconds)
    assert bool(notes(evidence)) is not condition(evidence, "machine_free").met
