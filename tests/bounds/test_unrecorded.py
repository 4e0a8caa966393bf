"""Ranges of rates without probabilities: the formula against brute force, the limit's coverage, and
mutants that must miss.

Coverage: 120 draws at alpha = .05 in the worst population that Gamma allows; a correct limit misses
more than 13 times with probability 2e-3.
"""

from itertools import product
from math import inf

import numpy as np
import pytest

from evenhand.bounds.unrecorded import (
    BAD,
    GOOD,
    UNKNOWN,
    SeenRows,
    gap_range,
    largest_rate,
    largest_root,
    largest_share,
    odds_times,
    rate_range,
    smallest_share,
)


def population(rng, strata=4, mixed=False):
    """(weights by stratum and what is seen, pi)."""
    share = rng.dirichlet(np.full(strata, 4.0))
    accepted = rng.uniform(0.3, 0.8, strata)
    bad = rng.uniform(0.1, 0.6, strata)
    seen = np.column_stack([accepted * bad, accepted * (1 - bad), 1 - accepted])
    acceptance = rng.choice([0.0, 0.3, 1.0], strata) if mixed else np.arange(strata) % 2.0
    return share[:, None] * seen, acceptance


def drawn(weight, acceptance, people, rng):
    cell = rng.choice(weight.size, size=people, p=weight.ravel())
    return SeenRows(cell // 3, cell % 3, acceptance)


@pytest.mark.parametrize("gamma", [1.0, 2.0, inf])
@pytest.mark.parametrize("mixed", [False, True])
def test_the_largest_rate_is_that_of_the_worst_rejected_people(gamma, mixed):
    """By trying the ends and the middle of each r_s: the rate is monotone in each of them."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        weight, acceptance = population(rng, strata=3, mixed=mixed)
        bad = weight[:, BAD] / (weight[:, BAD] + weight[:, GOOD])
        ends = [odds_times(bad, gamma, np.full(3, up)) for up in (False, True)]
        worst = 0.0
        for chosen in product((0.0, 0.5, 1.0), repeat=3):
            rejected = ends[0] + np.array(chosen) * (ends[1] - ends[0])
            mass = weight[:, BAD] + weight[:, UNKNOWN] * rejected
            worst = max(worst, float(mass @ acceptance / mass.sum()))
        assert largest_root(weight, acceptance, gamma) == pytest.approx(worst, abs=1e-9)


def test_without_an_assumption_a_rule_has_binomial_shares():
    rng = np.random.default_rng(4)
    rows = drawn(*population(rng), 3000, rng)
    weight = rows.counts(0, 3000) / 3000
    for share, root in (
        (largest_share(rows), largest_root(weight, rows.acceptance, inf)),
        (smallest_share(rows), 1 - largest_root(weight, 1 - rows.acceptance, inf)),
    ):
        assert share[0] / share[1] == pytest.approx(root, abs=1e-9)


def misses(gamma, assumed, draws=120, people=500, seed=0):
    rng = np.random.default_rng(seed)
    missed = 0
    for _ in range(draws):
        weight, acceptance = population(rng)
        truth = largest_root(weight, acceptance, gamma)
        missed += largest_rate(drawn(weight, acceptance, people, rng), assumed, 0.05) < truth
    return missed


@pytest.mark.thorough
@pytest.mark.parametrize("gamma", [1.0, 2.0, inf])
def test_the_limit_holds_with_its_probability(gamma):
    assert misses(gamma, gamma) <= 13


@pytest.mark.thorough
def test_too_small_a_factor_is_caught():
    assert misses(4.0, 1.0, draws=20, people=3000) > 10


def test_the_estimate_itself_is_caught():
    """The largest rate of the sample misses that of the population about every other time."""
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(60):
        weight, acceptance = population(rng)
        seen = drawn(weight, acceptance, 500, rng).counts(0, 500) / 500
        missed += largest_root(seen, acceptance, 2.0) < largest_root(weight, acceptance, 2.0)
    assert missed > 15


def test_ranges_are_ordered_and_grow_with_the_factor():
    rng = np.random.default_rng(5)
    one = drawn(*population(rng), 800, rng)
    two = drawn(*population(rng), 800, rng)
    small, large = rate_range(one, 1.0, 0.05), rate_range(one, 4.0, 0.05)
    assert 0 <= large.lower <= small.lower < small.upper <= large.upper <= 1
    there, back = gap_range(one, two, 2.0, 0.05), gap_range(two, one, 2.0, 0.05)
    assert (there.lower, there.upper) == pytest.approx((-back.upper, -back.lower))


def test_nobody_and_a_stratum_without_accepted_people():
    nobody = SeenRows(np.zeros(0, int), np.zeros(0, int), np.array([1.0]))
    assert largest_rate(nobody, 1.0, 0.05) == 1.0
    rng = np.random.default_rng(6)
    weight, acceptance = population(rng)
    weight[1] = [0.0, 0.0, weight[1].sum()]
    rows = drawn(weight, acceptance, 800, rng)
    assert largest_rate(rows, 1.0, 0.05) >= largest_root(weight, acceptance, 1.0)
