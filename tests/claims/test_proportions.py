"""Exact intervals of two proportions at full size: coverage by enumeration, widths, time, power.

The miss probability of the lower end at (p_1, p_2) is the sum over x_2 of P(X_2 = x_2) times
P(X_1 >= b(x_2)), b(x_2) the fewest events of the first group whose lower end lies above the truth;
b is walked from one x_2 to the next, outside of eight standard deviations nothing is left. The
quick tier enumerates small tables whole (tests/bounds/test_proportions.py).
"""

import math
import time

import numpy as np
import pytest
import scipy.stats
from tests.bounds.test_proportions import newcombe, wald

from evenhand.bounds import proportions
from evenhand.bounds.proportions import difference_interval

ALPHA = 0.025


def miss(n1, n2, p1, p2, lower):
    """The probability that the lower end lies above the truth, by enumeration."""
    truth = p1 - p2
    spread = 8 * math.sqrt(n2 * p2 * (1 - p2)) + 8
    start = max(0, math.floor(n2 * p2 - spread))
    stop = min(n2, math.ceil(n2 * p2 + spread))
    least = 0
    total = 0.0

    def above(x1, x2):
        return lower(x1, n1, x2, n2) > truth + 1e-12

    for x2 in range(start, stop + 1):
        if x2 == start:
            low, high = -1, n1 + 1
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if above(middle, x2) else (middle, high)
            least = high
        while least <= n1 and not above(least, x2):
            least += 1
        while least > 0 and above(least - 1, x2):
            least -= 1
        chance = scipy.stats.binom.pmf(x2, n2, p2)
        total += chance * scipy.stats.binom.sf(least - 1, n1, p1)
    return float(total)


def exact(x1, n1, x2, n2):
    return proportions._lower_end(x1, n1, x2, n2, ALPHA, "difference")


def normal(x1, n1, x2, n2):
    return wald(x1, n1, x2, n2, ALPHA)[0]


def test_the_walk_equals_the_sum_over_all_tables():
    """And the normal approximation misses twice as often as it says."""
    p1, p2 = 0.35, 0.2
    chance = np.outer(
        scipy.stats.binom.pmf(range(8), 7, p1), scipy.stats.binom.pmf(range(10), 9, p2)
    )
    beyond = np.array([[exact(i, 7, j, 9) > p1 - p2 + 1e-12 for j in range(10)] for i in range(8)])
    assert miss(7, 9, p1, p2, exact) == pytest.approx(chance[beyond].sum(), abs=1e-12)
    assert miss(7, 9, 0.9, 0.97, normal) > 2 * ALPHA


GRID = {
    (5, 5): [(0.1, 0.1), (0.5, 0.35), (0.63, 0.5), (0.9, 0.02), (0.02, 0.9)],
    (5, 50): [(0.2, 0.2), (0.5, 0.5), (0.9, 0.4), (0.02, 0.05)],
    (50, 50): [(0.02, 0.02), (0.1, 0.05), (0.5, 0.5), (0.3, 0.8), (0.98, 0.9)],
    (20, 500): [(0.05, 0.05), (0.5, 0.3), (0.9, 0.95)],
    (500, 500): [(0.01, 0.01), (0.1, 0.154), (0.5, 0.5)],
    (5000, 50): [(0.02, 0.05), (0.5, 0.5)],
    (5000, 5000): [(0.01, 0.012), (0.3, 0.3)],
}
"""People of the two groups, and true shares."""


@pytest.mark.claims
def test_coverage(claims):
    worst = control = 0.0
    for (n1, n2), shares in GRID.items():
        for p1, p2 in shares:
            worst = max(worst, miss(n1, n2, p1, p2, exact))
            control = max(control, miss(n1, n2, p1, p2, normal))
    points = sum(map(len, GRID.values()))
    claims.add(
        f"exact lower end of a difference: largest miss, {points} points, 5 to 5,000 people",
        f"at most {ALPHA}; the normal approximation above it",
        f"{worst:.4f}; normal approximation {control:.4f}",
        worst <= ALPHA < control,
    )
    assert worst <= ALPHA < control


@pytest.mark.claims
def test_width_time_and_power(claims):
    rng = np.random.default_rng(0)
    ratios, seconds = [], []
    for n in (50, 200, 1000, 5000, 20_000):
        for p1, p2 in [(0.1, 0.154), (0.5, 0.5), (0.02, 0.05), (0.9, 0.6)]:
            table = (int(rng.binomial(n, p1)), n, int(rng.binomial(n, p2)), n)
            start = time.process_time()
            found = difference_interval(*table, ALPHA)
            seconds.append(time.process_time() - start)
            rough = newcombe(*table, ALPHA)
            ratios.append((found.upper - found.lower) / (rough[1] - rough[0]))
    claims.add(
        "width over Newcombe's, 50 to 20,000 people a group",
        "at most 1.07",
        f"{min(ratios):.3f} to {max(ratios):.3f}",
        max(ratios) <= 1.07,
    )
    slowest = 1000 * max(seconds)
    claims.add("time of an interval", "at most 50 ms", f"{slowest:.0f} ms", slowest <= 50)

    draws = 400
    shown = approximate = 0
    for _ in range(draws):
        table = (int(rng.binomial(1000, 0.154)), 1000, int(rng.binomial(1000, 0.1)), 1000)
        shown += difference_interval(*table, ALPHA).lower > 0
        approximate += newcombe(*table, ALPHA)[0] > 0
    claims.add(
        "a gap of .054 (.154 and .100), 1,000 people a group: shown",
        "within 6 points of Newcombe's approximate interval",
        f"{shown / draws:.3f}; Newcombe {approximate / draws:.3f}",
        shown >= approximate - 0.06 * draws,
    )
    assert max(ratios) <= 1.07
    assert shown >= approximate - 0.06 * draws
