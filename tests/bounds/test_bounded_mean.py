"""The bound on a mean: its misses by enumeration, and beside the wealth that it bounds."""

from itertools import product

import numpy as np
import pytest

from evenhand.bounds.bounded_mean import good_stakes, least_means


def misses(values, chances, n, stake, alpha, width):
    """P(the lower end lies above the mean), by enumeration of all n-tuples' counts."""
    mean = float(np.dot(values, chances))
    total = 0.0
    for counts in product(range(n + 1), repeat=len(values)):
        if sum(counts) != n:
            continue
        chance = 1.0
        left = n
        for k, p in zip(counts, chances, strict=True):
            ways = 1.0
            for i in range(k):
                ways = ways * (left - i) / (i + 1)
            chance *= ways * p**k
            left -= k
        s1 = np.array([np.dot(counts, values)])
        s2 = np.array([np.dot(counts, np.square(values))])
        low = least_means(s1, s2, n, width, np.array([stake]), alpha)[0]
        total += chance * (low > mean + 1e-12)
    return total


@pytest.mark.parametrize("chances", [(0.5, 0.0, 0.5), (0.05, 0.9, 0.05), (0.1, 0.3, 0.6)])
@pytest.mark.parametrize("stake", [0.05, 0.15, 0.25])
def test_it_misses_at_most_as_often_as_it_says(chances, stake):
    assert misses((-1.0, 0.0, 1.0), chances, 12, stake, 0.2, 2.0) <= 0.2


def test_a_bound_without_its_quadratic_term_misses_too_often():
    """The negative control: mean - ln(1/alpha)/(lambda n) alone."""
    rng = np.random.default_rng(0)
    draws = rng.choice([-1.0, 1.0], (4000, 100))
    short = draws.mean(axis=1) - np.log(1 / 0.2) / (0.25 * 100)
    assert (short > 0).mean() > 0.2
    full = least_means(
        draws.sum(axis=1), (draws**2).sum(axis=1), 100, 2.0, np.full(4000, 0.25), 0.2
    )
    assert (full > 0).mean() <= 0.2


def test_the_end_is_where_the_bound_on_the_wealth_reaches_its_level():
    rng = np.random.default_rng(2)
    values = rng.choice([-1.0, 0.0, 1.0], 4000, p=[0.1, 0.7, 0.2])
    stake = good_stakes(np.array([0.3]), 4000, 2.0, 0.01)
    low = least_means(np.array([values.sum()]), np.array([values @ values]), 4000, 2.0, stake, 0.01)
    wealth = np.log1p(stake[0] * (values - low[0])).sum()
    # the true wealth is at least its bound, which equals ln(1/alpha) at the end
    assert wealth >= np.log(100) - 1e-9
    assert wealth < np.log(100) + 0.8
    assert values.mean() - 4 * values.std() / 4000**0.5 < low[0] < values.mean()


def test_nobody_says_nothing():
    assert least_means(np.zeros(2), np.zeros(2), 0, 1.0, np.full(2, 0.1), 0.05).tolist() == [
        -np.inf,
        -np.inf,
    ]
    few = least_means(np.zeros(1), np.zeros(1), 2, 1.0, np.full(1, 0.5), 1e-9)
    assert few[0] == -np.inf
