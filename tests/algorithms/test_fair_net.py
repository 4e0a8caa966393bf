"""The net of fair policies against its members written down one by one, and against the linear
program whose optimum it must contain.
"""

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.algorithms.enumerated_net import cost_of, mean_member, members

from evenhand.algorithms import fair_net
from evenhand.algorithms.fair_net import FairNet, fair_weights
from evenhand.errors import InvalidInput


def problem(seed):
    """Costs, gaps, limit, grid and rate of some scale; every third has a second rule without a
    gap, every fourth a limit of 0.
    """
    draw = np.random.default_rng(seed)
    rules = int(draw.integers(2, 9))
    gaps = draw.normal(0, 0.3, (int(draw.integers(1, 3)), rules))
    gaps[:, 0] = 0.0  # a constant is always among the rules
    if seed % 3 == 0:
        gaps[:, 1] = 0.0
    costs = draw.normal(size=rules) * 10 ** draw.uniform(-3, 3)
    if seed % 5 == 0:
        costs[:] = costs[0]
    limit = (0.0, 0.05, 0.3, 1.0)[seed % 4]
    grid = int(draw.integers(1, 40))
    return costs, gaps, limit, grid, float(10 ** draw.uniform(-4, 2))


@pytest.mark.parametrize("block", [fair_net.BLOCK, 3])
def test_it_is_the_net_that_is_written_down(block, monkeypatch):
    """Size and mean of 80 nets; blocks of any size give the same."""
    monkeypatch.setattr(fair_net, "BLOCK", block)
    for seed in range(80):
        costs, gaps, limit, grid, rate = problem(seed)
        net = FairNet(costs, gaps, limit, grid)
        written = members(gaps, limit, grid)
        assert net.size == len(written)
        for eta in (0.0, rate):
            np.testing.assert_allclose(
                net.mean(eta), mean_member(written, costs, eta), rtol=0, atol=1e-12
            )


@pytest.mark.parametrize("rate", [1e-14, 1e-9, 1e-5, 1e-3, 1.0, 1e6])
def test_the_geometric_series_keeps_its_digits(rate):
    """A grid of 5,000 steps between two fair rules, n s from 1e-14 to 1e9."""
    costs, gaps = np.array([0.0, 1.0]), np.array([[0.0, 0.01]])
    k = np.arange(5001) / 5000
    chance = np.exp(-rate * (1 - k))
    mean = (chance @ k) / chance.sum()
    assert FairNet(costs, gaps, 0.1, 5000).mean(rate)[0] == pytest.approx(mean, abs=1e-12)


def cheapest(costs, gaps, limit):
    """The linear program over all mixtures."""
    both = np.vstack([gaps, -gaps])
    found = linprog(
        costs, both, np.full(len(both), limit), np.ones((1, len(costs))), [1.0], bounds=(0, 1)
    )
    return found.fun


def largest_miss(keep):
    """By how much the best kept member misses the optimum, over 100 problems with one gap."""
    worst = 0.0
    for seed in range(100):
        draw = np.random.default_rng(seed)
        gaps = draw.normal(0, 0.4, (1, 6))
        gaps[:, 0] = 0.0
        costs = draw.normal(size=6)
        limit = float(draw.choice([0.0, 0.01, 0.1]))
        net = [member for member in members(gaps, limit, 8) if keep(member)]
        best = min(cost_of(member, costs) for member in net)
        worst = max(worst, best - cheapest(costs, gaps, limit))
    return worst


def test_the_optimum_of_the_linear_program_is_in_the_net():
    assert largest_miss(lambda member: True) <= 1e-9


def test_a_grid_without_the_ends_misses_it():
    """The negative control: the eight weights that the baseline once had."""
    assert largest_miss(lambda member: member[2] * 8 == round(member[2] * 8)) > 0.1


def test_at_a_small_rate_all_members_count_alike_and_at_a_large_one_the_best():
    costs, gaps = np.array([0.0, -1.0, 3.0]), np.array([[0.0, 0.4, -0.2]])
    net = FairNet(costs, gaps, 0.1, 10)
    written = members(gaps, 0.1, 10)
    even = mean_member(written, np.zeros(3), 1.0)
    np.testing.assert_allclose(net.mean(1e-12), even, atol=1e-9)
    np.testing.assert_allclose(net.mean(1e6), [0.75, 0.25, 0.0], atol=1e-9)  # .25 * .4 = .1


def test_fair_weights_where_two_gaps_are_equal():
    low, high = fair_weights(np.array([[0.1, 0.5]]), np.array([[0.1, 0.5]]), 0.2)
    assert low[0] == 0
    assert high[0] == 1
    assert low[1] > high[1]


def test_a_class_whose_net_is_too_large_is_named():
    with pytest.raises(InvalidInput) as caught:
        FairNet(np.zeros(6000), np.zeros((1, 6000)), 0.1, 1000)
    assert caught.value.argument == "hypotheses"
    assert "exponential" in str(caught.value)
    assert "TwoPhaseLearner" in str(caught.value)
