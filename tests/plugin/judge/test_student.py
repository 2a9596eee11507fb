"""Student's t against published tables, and the chance of a decision against simulation."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin.judge.student import chances, normal_below, student_quantile, student_tail

TABLE = {
    # df: t at 0.90, 0.95, 0.975, 0.99, 0.995, 0.9995, as printed in statistical tables
    1: (3.078, 6.314, 12.706, 31.821, 63.657, 636.619),
    2: (1.886, 2.920, 4.303, 6.965, 9.925, 31.599),
    3: (1.638, 2.353, 3.182, 4.541, 5.841, 12.924),
    4: (1.533, 2.132, 2.776, 3.747, 4.604, 8.610),
    5: (1.476, 2.015, 2.571, 3.365, 4.032, 6.869),
    7: (1.415, 1.895, 2.365, 2.998, 3.499, 5.408),
    10: (1.372, 1.812, 2.228, 2.764, 3.169, 4.587),
    11: (1.363, 1.796, 2.201, 2.718, 3.106, 4.437),
    19: (1.328, 1.729, 2.093, 2.539, 2.861, 3.883),
    30: (1.310, 1.697, 2.042, 2.457, 2.750, 3.646),
    60: (1.296, 1.671, 2.000, 2.390, 2.660, 3.460),
    120: (1.289, 1.658, 1.980, 2.358, 2.617, 3.373),
}
LEVELS = (0.90, 0.95, 0.975, 0.99, 0.995, 0.9995)


@pytest.mark.parametrize("df", TABLE)
def test_quantiles_are_those_of_the_tables(df: int) -> None:
    for p, printed in zip(LEVELS, TABLE[df], strict=True):
        assert student_quantile(p, df) == pytest.approx(printed, abs=0.00051)
        assert student_quantile(1 - p, df) == pytest.approx(-printed, abs=0.00051)


@given(st.floats(-50, 50), st.integers(1, 200))
def test_the_tail_falls_is_symmetric_and_heavier_than_the_normal(t: float, df: int) -> None:
    tail = student_tail(t, df)
    assert 0 <= tail <= 1
    assert tail + student_tail(-t, df) == pytest.approx(1)
    assert student_tail(t + 0.01, df) <= tail + 1e-15
    if t > 2:
        assert tail >= 1 - normal_below(t) - 1e-15


def test_many_degrees_of_freedom_are_the_normal_distribution() -> None:
    assert student_tail(1.96, 5000) == pytest.approx(1 - normal_below(1.96), abs=1e-4)
    assert student_tail(math.inf, 3) == 0


@pytest.mark.parametrize(("p", "df"), [(0.0, 5), (1.0, 5), (-1.0, 5), (0.95, 0)])
def test_what_has_no_quantile(p: float, df: int) -> None:
    with pytest.raises(ValueError, match=r"needed|needs"):
        student_quantile(p, df)


@pytest.mark.parametrize(
    ("n", "sd", "shift"), [(2, 0.2, 0.0), (3, 0.5, 1.3), (5, 0.5, 0.3), (8, 2 / 3, 0.0), (12, 1.0, 0.25)]
)
def test_the_chance_of_a_decision_is_what_a_simulation_finds(n: int, sd: float, shift: float) -> None:
    random, quantile, settled, trials = Random(n), student_quantile(0.95, n - 1), 0, 8000
    for _ in range(trials):
        values = [random.gauss(shift, sd) for _ in range(n)]
        mean = sum(values) / n
        half = quantile * math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)
        settled += (mean - half >= -1 and mean + half <= 1) or mean - half > 1 or mean + half < -1
    chance = sum(chances(n, df=n - 1, sd=sd, shift=shift, lower=-1, upper=1, alpha=0.05))
    assert chance == pytest.approx(settled / trials, abs=4 * math.sqrt(0.25 / trials))
