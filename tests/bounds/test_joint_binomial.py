"""Joint intervals for the gaps of many rules: exact coverage by enumeration, and rules of which
only the least and the most people that they accept are known, by brute force.
"""

import math
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtri_exp
from scipy.stats import binom

from evenhand.bounds import joint_binomial
from evenhand.bounds.joint_binomial import Staircase, gap_ends, staircase
from evenhand.errors import InvalidInput
from evenhand.randomness import stream

RATES = (0.0, 0.01, 0.05, 0.2, 0.37, 0.5, 0.8, 0.97, 1.0)


def look(accepted, people, delta=0.05, *, most=None, signs=None):
    """Both ends, (rules, gaps) each; a row of `people` is one rate."""
    denominators = np.array(people, dtype=np.float64)
    shape = (-1, *denominators.shape)
    least = np.array(accepted, dtype=np.float64).reshape(shape)
    most = least if most is None else np.array(most, dtype=np.float64).reshape(shape)
    signs = np.ones(len(denominators)) if signs is None else np.array(signs, dtype=np.float64)
    return gap_ends(least, most, denominators, signs, delta)


def worst_miss(n, m, delta):
    """The largest probability, over a grid of true rates, that the gap f_2 - f_1 of one rule is
    outside of its interval.
    """
    pairs = product(range(n + 1), range(m + 1))
    ends = np.array([look([pair], [[n, m]], delta) for pair in pairs])[:, :, 0, 0]
    lower, upper = ends.T
    worst = 0.0
    for p, q in product(RATES, RATES):
        first = binom.pmf(np.arange(n + 1), n, p)
        second = binom.pmf(np.arange(m + 1), m, q)
        mass = np.outer(first, second).ravel()
        out = (lower > q - p + 1e-12) | (upper < q - p - 1e-12)
        worst = max(worst, float(mass[out].sum()))
    return worst


@pytest.mark.parametrize(("n", "m"), [(4, 7), (12, 5), (20, 20)])
@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-3])
def test_coverage_is_exact_for_two_binomials(n, m, delta):
    assert worst_miss(n, m, delta) <= delta


@pytest.mark.thorough
@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-3])
def test_coverage_is_exact_for_unequal_groups(delta):
    assert worst_miss(60, 15, delta) <= delta


def test_the_enumeration_catches_a_radius_off_by_sqrt_two(monkeypatch):
    """Negative control: the staircase shrunk by sqrt 2 misses more than delta."""

    def shrunk(log_alpha):
        radius = -float(ndtri_exp(staircase(log_alpha).log_first[0]))
        return Staircase.at_radius(radius / math.sqrt(2))

    monkeypatch.setattr(joint_binomial, "staircase", shrunk)
    assert worst_miss(20, 20, 0.05) > 0.05


@pytest.mark.thorough
def test_it_is_not_needlessly_wide():
    """Sharpness at n = 60: its worst miss is over a fifth of delta; a disc of two dimensions pays
    for what a half-plane would not.
    """
    assert worst_miss(60, 60, 0.05) > 0.2 * 0.05


@pytest.mark.parametrize("log_alpha", [math.log(0.3), math.log(1e-3), -20.0, -300.0, -680.0])
def test_the_staircase_has_the_stated_probability(log_alpha):
    miss = staircase(log_alpha).miss()
    assert math.log(miss) == pytest.approx(log_alpha, abs=1e-5)
    assert miss <= math.exp(log_alpha)


def test_the_staircase_formula_agrees_with_uniform_draws():
    stairs = staircase(math.log(0.1))
    u = stream(5, "stairs").random((200_000, 2))
    inside = np.zeros(len(u), dtype=bool)
    for s, t in zip(np.exp(stairs.log_first), np.exp(stairs.log_second), strict=True):
        inside |= (u[:, 0] > s) & (u[:, 1] > t)
    assert 1 - inside.mean() == pytest.approx(0.1, abs=4 * math.sqrt(0.09 / 200_000))


def test_a_share_too_small_for_floating_point_says_nothing():
    lower, upper = look([[3, 4]], [[10, 10]], 1e-305)
    assert (lower[0, 0], upper[0, 0]) == (-1.0, 1.0)


def test_ends_lie_in_range_mirror_each_other_and_know_nothing_of_nobody():
    counts = np.array([[5, 20, 3], [0, 0, 0], [50, 80, 30]])
    lower, upper = look(counts, [[50, 80, 30]])
    assert lower.shape == upper.shape == (3, 3)
    assert ((lower >= -1) & (lower <= upper) & (upper <= 1)).all()
    exchanged, _ = look(counts[:, [1, 0, 2]], [[80, 50, 30]])
    assert upper[:, 0] == pytest.approx(-exchanged[:, 0], abs=1e-9)
    lower, upper = look([[0, 7]], [[0, 10]])
    assert upper[0, 0] > 0.7
    assert lower[0, 0] < -0.3


def test_the_false_negative_rate_has_the_mirrored_gap():
    lower, upper = look([[5, 20, 5, 20]], [[50, 80], [50, 80]], signs=[1, -1])
    assert upper[0, 0] == pytest.approx(-lower[0, 1], abs=1e-12)
    assert lower[0, 0] == pytest.approx(-upper[0, 1], abs=1e-12)


def test_a_row_covers_every_rule_between_its_least_and_its_most():
    lower, upper = look([[3, 5]], [[12, 11]], most=[[6, 7]])
    for first, second in product(range(3, 7), range(5, 8)):
        low, high = look([[first, second]], [[12, 11]])
        assert lower[0, 0] <= low[0, 0] + 1e-12
        assert upper[0, 0] >= high[0, 0] - 1e-12
    low, high = look([[6, 5]], [[12, 11]])
    assert lower[0, 0] == pytest.approx(low[0, 0])  # and no more than these
    _, high = look([[3, 7]], [[12, 11]])
    assert upper[0, 0] == pytest.approx(high[0, 0])


def test_all_rules_hold_at_once_only_because_the_union_is_paid(monkeypatch):
    """300 unrelated rules with rate .2, 200 samples: <= 24 samples with a miss (false alarm 1e-4 at
    delta = .05).

    Negative control, delta not split: a miss in nearly every sample.
    """
    counts = stream(12, "union").binomial([400, 250], 0.2, size=(200, 300, 2))

    def samples_missed():
        found = [look(sample, [[400, 250]]) for sample in counts]
        return sum(bool(((lower > 0) | (upper < 0)).any()) for lower, upper in found)

    assert samples_missed() <= 24
    unpaid = staircase(math.log(0.05 / 2))
    monkeypatch.setattr(joint_binomial, "staircase", lambda _: unpaid)
    assert samples_missed() > 150


def test_a_delta_that_is_none_is_refused():
    with pytest.raises(InvalidInput):
        look([[1, 2]], [[5, 5]], 0.0)
