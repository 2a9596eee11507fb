"""How likely so many of so many are, where each comes with the same probability."""

from math import exp, lgamma, log


def binomial_tail(count: int, of: int, p: float) -> float:
    """The probability of ``count`` or more out of ``of``, each with probability ``p``."""
    if count <= 0 or p >= 1:
        return 1.0
    if p <= 0 or count > of:
        return 0.0
    if count <= of * p:
        return 1.0  # not above its mean: no evidence against p, and no need of its exact value
    term = exp(lgamma(of + 1) - lgamma(count + 1) - lgamma(of - count + 1) + count * log(p) + (of - count) * log(1 - p))
    total, odds = 0.0, p / (1 - p)
    for k in range(count, of + 1):
        total += term
        term *= (of - k) / (k + 1) * odds
        if term <= total * 1e-12:  # both are 0 where the first term is too small for a float
            break
    return min(1.0, total)
