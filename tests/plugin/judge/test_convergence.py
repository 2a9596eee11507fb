"""Convergence from series alone: the papers' tables, series of every kind, and series that hypothesis makes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin.judge.convergence import Convergence, Spread, State, band, converge, even

TABLE_5_1 = """
0 795 795 795 0 0 0
20 766 766 765 50 50 53
40 745 743 743 74 75 73
60 734 734 734 83 84 84
80 718 719 717 100 99 100
100 705 707 702 113 113 113
120 687 689 691 129 129 129
140 665 663 662 155 155 155
160 635 635 634 184 183 182
180 611 610 611 207 207 207
200 585 587 583 234 233 234
220 561 562 562 256 256 256
240 535 533 533 284 284 285
260 509 509 510 309 308 308
280 452 454 452 364 365 366
300 423 422 421 396 395 396
"""
TABLE_5_2 = """
0 413 422 420 402 401 401 0 0 0
20 404 402 404 390 389 391 29 28 27
40 383 382 382 381 381 382 57 58 58
60 370 368 369 367 365 367 86 85 86
80 349 350 349 351 354 353 119 119 120
100 336 333 333 335 336 337 151 150 151
120 321 322 322 320 320 321 178 181 180
140 305 307 305 306 306 307 209 208 210
160 290 292 288 293 293 294 237 238 237
180 279 279 278 277 278 280 265 263 263
"""
QUIET_S = 120.0


def published(table: str) -> tuple[list[Spread], list[str]]:
    """A printed table as a series; its minutes are seconds here."""
    rows = [[int(word) for word in line.split()] for line in table.split("\n") if line]
    nodes = [f"n{number}" for number in range(1, len(rows[0]))]
    return [Spread(t=row[0], replicas=dict(zip(nodes, row[1:], strict=True))) for row in rows], nodes


@pytest.mark.parametrize(("table", "minutes"), [(TABLE_5_1, 300), (TABLE_5_2, 180)])
def test_the_published_tables(table: str, minutes: int) -> None:
    """Balanced when the thesis says so; that it settled it does not show."""
    series, nodes = published(table)
    found = converge(series, nodes, quiet_s=2)
    assert (found.state, found.balanced, found.settled) == (State.BALANCED, minutes, None)
    assert found.why_not_settled == "not shown: the traffic never ended, so nobody looked"
    assert converge(series, nodes, quiet_s=2, quiet_from=0).settled is None
    earlier = converge(series[:-1], nodes, quiet_s=2)
    assert earlier.balanced is None
    assert earlier.state is State.MOVING
    assert "replicas still move" in earlier.why


def moving(target: float, steps: int, *, start: int = 100, every: float = 2.0) -> list[Spread]:
    """Three nodes give replicas to three new ones, evenly, until those have so many."""
    found, moves = [], 0
    for step in range(steps + 1):
        new = round(target * step / steps)
        moves += 6 * (new - round(target * max(0, step - 1) / steps))
        old = start - new
        counts = {"n1": old, "n2": old, "n3": old, "n4": new, "n5": new, "n6": new}
        found.append(Spread(t=every * step, replicas=counts, moves=moves))
    return found


def resting(after: list[Spread], seconds: float, every: float = 2.0) -> list[Spread]:
    """The same, and then nothing for so long."""
    last = after[-1]
    more = [
        Spread(t=last.t + every * (n + 1), replicas=last.replicas, moves=last.moves)
        for n in range(int(seconds / every))
    ]
    return [*after, *more]


NODES = [f"n{number}" for number in range(1, 7)]


def found(series: list[Spread], *, quiet_from: float | None = 0.0) -> Convergence:
    return converge(series, NODES, quiet_s=QUIET_S, quiet_from=quiet_from)


def test_balanced_and_then_settled_are_two_times() -> None:
    series = resting(moving(50, 50), 200)
    answer = found(series)
    # 50 replicas a node, 3.5 to either side: even from 47 on
    assert answer.balanced == 2.0 * 47
    assert answer.settled == 2.0 * 50
    assert answer.gained == 141, "until it was balanced, at 94 s; 9 more came later"
    assert found(series, quiet_from=150).settled == 150
    assert found(resting(moving(50, 50), 100)).settled is None


def test_counters_see_what_equal_numbers_hide() -> None:
    """Replicas that are swapped between nodes leave their numbers as they are."""
    swapping = [Spread(t=2.0 * n, replicas=dict.fromkeys(NODES, 50), moves=n // 10 * 2) for n in range(200)]
    answer = found(swapping)
    assert answer.state is State.BALANCED
    assert answer.settled is None
    assert "18 s at most" in answer.why_not_settled


def test_a_hole_in_the_samples_hides_nothing_where_servers_count() -> None:
    whole = resting(moving(50, 50), 300)
    hole = [spread for spread in whole if not 110 < spread.t < 220]
    assert found(hole).settled == 100
    blind = [Spread(t=spread.t, replicas=spread.replicas) for spread in hole]
    assert found(blind).settled == 220


def test_a_replica_that_stays_out_of_the_band_is_told_by_its_node() -> None:
    stalled = found(resting(moving(20, 20), 300))
    assert (stalled.state, stalled.balanced) == (State.STALLED, None)
    assert stalled.settled == 40, "at rest it is, though unevenly"
    assert "stalled after 40% of the way" in stalled.why
    assert "n4 20, n5 20, n6 20 (mean 50.0 ± 3.5)" in stalled.why
    uneven = found(resting(moving(46, 46), 300))
    assert uneven.state is State.UNEVEN
    assert "came to rest unevenly" in uneven.why
    still = found(resting([Spread(t=0, replicas=dict.fromkeys(NODES[:3], 100), moves=0)], 300))
    assert still.state is State.NOT_BEGUN
    assert "no replica was moved" in still.why
    assert found(moving(30, 30)).state is State.MOVING


def test_oscillation_is_called_by_its_name() -> None:
    series = resting(moving(50, 50), 20)
    t, moves = series[-1].t, series[-1].moves or 0
    for turn in range(4):
        counts = dict.fromkeys(NODES, 50)
        if turn % 2:
            counts |= {"n1": 60, "n4": 40}
        moves += 20
        series.append(Spread(t=t + 10.0 * (turn + 1), replicas=counts, moves=moves))
    answer = found(series)
    assert (answer.state, answer.left, answer.balanced) == (State.OSCILLATES, 2, None)
    # even from 94 s to 140 s, and from 150 s to 160 s
    assert "even 2 times and left it again, 85% of the time since: n1 60, n4 40" in answer.why


def trading(*, out_every: int, out_for: int, samples: int = 100) -> list[Spread]:
    """Even nodes that trade replicas at rest: one is off the band for so many samples of 2 s, again and again."""
    found = []
    for n in range(samples):
        off = n % out_every >= out_every - out_for
        found.append(
            Spread(
                t=2.0 * n,
                replicas=dict.fromkeys(NODES, 50) | {"n1": 55} if off else dict.fromkeys(NODES, 50),
                moves=4 * n,
            )
        )
    return found


def traded(series: list[Spread], hold_s: float = 4.0) -> Convergence:
    return converge(series, NODES, quiet_s=20.0, quiet_from=0.0, hold_s=hold_s)


@pytest.mark.parametrize("late", [0.0, 0.01, -0.01])
def test_an_excursion_may_last_as_many_samples_as_the_time_has(late: float) -> None:
    """Two of 2 s are 4 s, whether or not a sample comes a moment late."""
    series = trading(out_every=40, out_for=2)
    assert traded([replace(s, t=s.t + late * (s.t in (80.0, 160.0))) for s in series]).balanced == 0


def test_even_but_still_trading_is_not_uneven() -> None:
    answer = traded(trading(out_every=20, out_for=1)[:-1])
    assert (answer.state, answer.balanced, answer.left) == (State.BALANCED, 0, 4)
    assert answer.settled is None, "which is another result"


@pytest.mark.parametrize(("out_every", "out_for"), [(5, 1), (20, 3)])
def test_what_is_off_too_often_or_too_long_is_not_even(out_every: int, out_for: int) -> None:
    series = trading(out_every=out_every, out_for=out_for)
    assert traded(series).state is State.OSCILLATES, "off in its last sample"
    again = traded([*series, replace(series[0], t=200.0)])
    assert again.balanced is None
    assert "again for 0 s of 4 s asked for" in again.why
    assert traded(trading(out_every=20, out_for=1)[:-1], hold_s=0).balanced == 160, "no excursion is short enough"


def test_whether_the_end_falls_into_an_excursion_is_chance() -> None:
    """Or comes just after one: neither makes replicas uneven that were even; who waits still waits for its end."""
    even_long = trading(out_every=53, out_for=2, samples=56)
    assert [s.t for s in even_long if s.replicas["n1"] == 55] == [102, 104]
    for samples, even_s in ((51, 100.0), (52, 0.0), (53, 0.0), (54, 0.0), (55, 2.0), (56, 4.0)):
        answer = traded(even_long[:samples])
        assert (answer.balanced, answer.even_s) == (0, even_s), samples
    longer = [*even_long[:53], *(replace(even_long[52], t=t) for t in (106.0, 108.0))]
    assert traded(longer).state is State.OSCILLATES, "too long for an excursion"


@pytest.mark.parametrize(("count", "balanced"), [(56, 0), (60, 160)])
def test_an_excursion_does_not_lead_far(count: int, balanced: float) -> None:
    """The band of a mean of 51 is 3.6 replicas."""
    series = trading(out_every=40, out_for=2)[:90]
    far = [replace(s, replicas={**s.replicas, "n1": count}) if s.replicas["n1"] == 55 else s for s in series]
    assert traded(far).balanced == balanced


def test_which_way_they_drift_is_told() -> None:
    assert "coming nearer (the farthest node 33.0 off before, 24.0 of late)" in found(moving(30, 16)).why


def test_nothing_and_nonsense() -> None:
    assert found([]).state is State.UNKNOWN
    with pytest.raises(ValueError, match="at least one node"):
        converge([], [], quiet_s=1)
    with pytest.raises(ValueError, match="period above 0"):
        converge([], NODES, quiet_s=0)


def test_a_node_without_replicas_is_not_near_the_mean() -> None:
    assert not even([4, 4, 4, 3, 3, 0])
    assert even([4, 4, 4, 2, 2, 2])
    assert even([1, 1, 1])


def test_the_band_is_five_percent_or_two_replicas_and_one() -> None:
    assert band([400] * 6) == 21
    assert band([10] * 6) == 3
    assert even([10, 10, 13, 7])
    assert not even([10, 10, 14, 6])
    assert not even([795, 795, 795, 0, 0, 0])


counts = st.lists(st.integers(0, 500), min_size=3, max_size=9)


@given(counts, st.integers(1, 40), st.floats(1, 100))
def test_whatever_moves_to_the_mean_and_rests_is_balanced_and_settled(
    start: list[int], steps: int, every: float
) -> None:
    """From any start, in any number of steps, at any pace."""
    nodes = [f"n{number}" for number in range(len(start))]
    mean = sum(start) / len(start)
    series = [
        Spread(
            t=step * every,
            replicas={
                node: round(count + (mean - count) * step / steps) for node, count in zip(nodes, start, strict=True)
            },
            moves=step,
        )
        for step in range(steps + 1)
    ]
    series = resting(series, 10 * every, every)
    answer = converge(series, nodes, quiet_s=5 * every, quiet_from=0)
    assert answer.balanced is not None
    assert answer.settled is not None
    assert answer.balanced <= answer.settled == pytest.approx(steps * every)


@given(counts, st.lists(st.lists(st.integers(-30, 30), min_size=3, max_size=9), max_size=30), st.data())
def test_what_is_said_of_any_series_is_true(start: list[int], changes: list[list[int]], data: st.DataObject) -> None:
    """Balanced holds from that sample on and not before; settled is followed by as long a quiet as was asked for."""
    nodes = [f"n{number}" for number in range(len(start))]
    series, t, moves = [Spread(t=0, replicas=dict(zip(nodes, start, strict=True)), moves=0)], 0.0, 0
    for change in changes:
        t += data.draw(st.floats(0.5, 30))
        before = series[-1].replicas
        now = {node: max(0, before[node] + (change[i] if i < len(change) else 0)) for i, node in enumerate(nodes)}
        moves += sum(abs(now[node] - before[node]) for node in nodes)
        series.append(Spread(t=t, replicas=now, moves=moves))
    quiet_s = data.draw(st.floats(1, 60))
    answer = converge(series, nodes, quiet_s=quiet_s, quiet_from=0)
    inside = [even(spread.on(nodes)) for spread in series]
    if answer.balanced is None:
        assert not inside[-1]
        assert answer.why
        assert answer.state is not State.BALANCED
    else:
        at = next(i for i, spread in enumerate(series) if spread.t == answer.balanced)
        assert all(inside[at:]), "no excursion is allowed without a time for which it may last"
        assert at == 0 or not inside[at - 1]
    if answer.settled is not None:
        window = [s for s in series if answer.settled <= s.t <= answer.settled + quiet_s]
        assert len({s.moves for s in window}) == 1
        assert series[-1].t >= answer.settled + quiet_s


def test_replicas_on_a_node_that_leaves_are_not_even_yet() -> None:
    """The others are even among themselves from the first sample on."""
    leaving = [Spread(t=t, replicas={"n1": 60 + t, "n2": 60 + t, "n3": max(0, 40 - 2 * t)}, moves=t) for t in range(21)]
    found = converge(leaving, ["n1", "n2"], quiet_s=5)
    assert found.balanced == 20
    stuck = converge(leaving[:11], ["n1", "n2"], quiet_s=5, stall_s=20)
    assert stuck.balanced is None
    assert "n3 still 20" in stuck.why
