"""The ends of a share: exact against a bisection on the definition, and they hold at all times at
once.
"""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

from evenhand.bounds.accepted_share import TILTS, largest_shares, smallest_shares


def log_wealth(s, accepted, people):
    """ln W_n(s), straight from the definition."""
    terms = [
        -d * accepted - people * np.log(1 - s * (1 - np.exp(-d))) - np.log(len(TILTS))
        for d in TILTS
    ]
    return logsumexp(terms)


def by_bisection(accepted, people, alpha):
    if log_wealth(1.0, accepted, people) <= np.log(1 / alpha):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (
            (low, middle)
            if log_wealth(middle, accepted, people) > np.log(1 / alpha)
            else (middle, high)
        )
    return high


@pytest.mark.parametrize("people", [1, 10, 100, 10_000, 1_000_000])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.2, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-5])
def test_the_ends_are_those_of_the_definition(people, share, alpha):
    accepted = float(round(share * people))
    found = largest_shares(np.array([accepted]), np.array([float(people)]), np.array([alpha]))[0]
    exact = by_bisection(accepted, people, alpha)
    # Newton's method comes from the right: it may stop early, never too low
    assert exact - 1e-12 <= found <= exact + 1e-6
    other = smallest_shares(np.array([accepted]), np.array([float(people)]), np.array([alpha]))[0]
    assert other == pytest.approx(1 - by_bisection(people - accepted, people, alpha), abs=1e-6)


def test_the_wealth_is_a_martingale_at_the_truth():
    """E[W_n(s)] = 1, summed over all outcomes: exact."""
    for s in (0.03, 0.4, 0.9):
        for n in (1, 5, 40):
            S = np.arange(n + 1)
            wealth = np.exp([log_wealth(s, one, n) for one in S])
            assert binom.pmf(S, n, s) @ wealth == pytest.approx(1.0, abs=1e-9)


def crossed(ends, runs, people, s, alpha, seed):
    """In how many runs the end is ever below the truth, looked at after every person."""
    draws = np.random.default_rng(seed).random((runs, people)) < s
    accepted = np.cumsum(draws, axis=1).astype(float)
    n = np.arange(1.0, people + 1)
    return sum(bool((ends(row, n, np.full(people, alpha)) < s - 1e-9).any()) for row in accepted)


@pytest.mark.parametrize("s", [0.05, 0.2, 0.7])
def test_the_upper_end_holds_at_all_times_at_once(s):
    """200 runs at alpha = .2: more than 70 misses have probability 1e-6."""
    assert crossed(largest_shares, 200, 400, s, 0.2, 1) <= 70


def test_control_the_empirical_share_does_not():
    """What "check the cap on the share so far" amounts to."""

    def empirical(accepted, n, alpha):
        return accepted / n

    assert crossed(empirical, 200, 400, 0.2, 0.2, 1) > 150


def test_control_a_fixed_count_bound_looked_at_after_every_person_does_not():
    def hoeffding(accepted, n, alpha):
        return accepted / n + np.sqrt(np.log(1 / alpha) / (2 * n))

    assert crossed(hoeffding, 200, 4000, 0.5, 0.2, 1) > 70


def test_nothing_is_claimed_without_people_or_without_a_share_of_delta():
    ends = largest_shares(np.zeros(2), np.array([0.0, 100.0]), np.array([0.05, 0.0]))
    assert ends.tolist() == [1.0, 1.0]


def test_it_is_sharper_than_a_union_over_the_tilts():
    n = np.array([3000.0])
    S = np.array([600.0])
    alpha = 1e-4
    c = 1 - np.exp(-TILTS)
    union = ((1 - np.exp(-(np.log(len(TILTS) / alpha) + TILTS * S) / n)) / c).min()
    assert largest_shares(S, n, np.array([alpha]))[0] < union
