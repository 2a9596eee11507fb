"""How likely so many of so many are."""

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin.judge.binomial import binomial_tail


@given(st.integers(1, 40), st.integers(0, 40), st.floats(0.01, 0.99))
def test_the_binomial_tail_above_the_mean_is_the_sum(of: int, count: int, p: float) -> None:
    found = binomial_tail(count, of, p)
    exact = sum(comb(of, k) * p**k * (1 - p) ** (of - k) for k in range(count, of + 1))
    assert found == (pytest.approx(exact, rel=1e-6) if count > of * p else 1.0)


def test_the_binomial_tail_of_many() -> None:
    assert binomial_tail(10_300, 1_000_000, 0.01) == pytest.approx(0.00133, rel=0.05)
    assert binomial_tail(1_000_000, 1_000_000, 0.9) == 0
    assert binomial_tail(10**12 // 2, 10**12, 0.01) == 0, "of terms that are all too small, not one after the other"
    assert (binomial_tail(0, 0, 0.5), binomial_tail(3, 10, 1.0), binomial_tail(1, 10, 0.0)) == (1, 1, 0)
