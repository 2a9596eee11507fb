"""Gaps against series worked out by hand."""

from plugin.evidence.records import ProbeSecond
from plugin.judge.availability import Gap, availability, holes, late
from tests.plugin.judge.histories import SECOND, probe

WINDOW = (12 * SECOND, 20 * SECOND)
HEALTHY = 0.1


def seconds_of(gap: Gap | None) -> float:
    assert gap is not None
    return round(gap.seconds, 6)


def test_a_healthy_probe_has_gaps_of_its_own_interval_only() -> None:
    header, lines = probe(lambda route, tenth: True)
    found = availability(lines, header["routes"], window=WINDOW, victims=["n1"])
    assert seconds_of(found.worst) == seconds_of(found.victims) == HEALTHY


def test_the_worst_route_counts_and_the_victims_own_does_not() -> None:
    """n1's client is away from 12.0 to 25.0 s, bucket 1 from 12.0 to 15.0 s, everything else never."""

    def ok(route: str, tenth: int) -> bool:
        return not (route == "n1/0" and 120 < tenth < 250) and not (route == "n2/1" and 120 < tenth < 150)

    header, lines = probe(ok)
    found = availability(lines, header["routes"], window=WINDOW, victims=["n1"])
    assert (found.worst.route, seconds_of(found.worst)) == ("n2/1", 3.0)  # type: ignore[union-attr]
    assert (found.worst.begin, found.worst.end) == (12 * SECOND, 15 * SECOND)  # type: ignore[union-attr]
    assert seconds_of(found.victims) == 13.0


def test_a_stretch_counts_whole_where_it_overlaps_an_edge_of_the_window() -> None:
    header, lines = probe(lambda route, tenth: not (route == "n2/1" and 110 <= tenth < 130))
    assert seconds_of(availability(lines, header["routes"], window=WINDOW).worst) == 2.1
    header, lines = probe(lambda route, tenth: not (route == "n2/1" and 190 <= tenth < 280))
    assert seconds_of(availability(lines, header["routes"], window=WINDOW).worst) == 9.1


def test_a_stretch_outside_the_window_does_not_count() -> None:
    header, lines = probe(lambda route, tenth: not (50 <= tenth < 100 or 210 <= tenth < 260))
    assert seconds_of(availability(lines, header["routes"], window=WINDOW).worst) == HEALTHY


def test_a_route_that_never_comes_back_counts_to_the_end_of_the_probe() -> None:
    header, lines = probe(lambda route, tenth: route != "n2/1" or tenth <= 130)
    assert seconds_of(availability(lines, header["routes"], window=WINDOW).worst) == 30.9 - 13.0


def test_a_route_that_never_succeeded_counts_from_the_begin_of_the_probe() -> None:
    header, lines = probe(lambda route, tenth: True)
    found = availability(lines, [*header["routes"], "n3/1"], window=WINDOW)
    assert (found.worst.route, seconds_of(found.worst)) == ("n3/1", 30.9)  # type: ignore[union-attr]


def test_the_one_endpoint_of_a_primary_is_never_left_out() -> None:
    header, lines = probe(lambda route, tenth: not 121 <= tenth < 180, routes=("primary/0",))
    found = availability(lines, header["routes"], window=WINDOW, victims=["n1"])
    assert seconds_of(found.worst) == 6.0
    assert found.victims is None


def test_no_lines_no_gap() -> None:
    found = availability([], ["n1/0"], window=WINDOW)
    assert (found.worst, found.victims, found.routes) == (None, None, {})


def test_holes() -> None:
    _, lines = probe(lambda route, tenth: True)
    assert holes(lines, WINDOW) == ()
    assert holes([], WINDOW)
    assert "between 15.0 s and 17.0 s" in holes([s for s in lines if s.t not in (15 * SECOND, 16 * SECOND)], WINDOW)[0]
    assert holes([s for s in lines if s.t not in (3 * SECOND, 4 * SECOND, 25 * SECOND, 26 * SECOND)], WINDOW) == ()
    assert len(holes(lines[::2], WINDOW)) == 4, "every second line is gone"
    assert "begins at 15.0 s" in holes(lines[15:], WINDOW)[0]
    assert holes(lines[14:], WINDOW) == (), "writers may be started beside the probe"
    assert "ends at 17.0 s" in holes(lines[:18], WINDOW)[0]


def test_lateness() -> None:
    _, lines = probe(lambda route, tenth: True)
    lines[14] = ProbeSecond(lines[14].t, 700_000, lines[14].routes)
    lines[3] = ProbeSecond(lines[3].t, 900_000, lines[3].routes)
    assert late(lines, WINDOW) == (1, 700_000)
