"""Remark 1.3 and "analogous results hold": the paper's algorithm keeps its limit under the false
negative rate and statistical parity as it does under the false positive rate.
"""

import pytest

from evenhand.environments import lending
from evenhand.fairness import FalseNegativeRate, FalsePositiveRate, SelectionRate
from evenhand.learners import TwoPhaseLearner, Unconstrained
from evenhand.simulation import simulate

RATES = [FalsePositiveRate(), FalseNegativeRate(), SelectionRate()]
LIMIT, DELTA, HORIZON = 0.12, 0.05, 100_000


def worst_gap(learner, rate, seed):
    """The largest true gap in that rate of all policies that were deployed."""
    world = lending()
    run = simulate(learner(world.hypotheses, rate), world, HORIZON, seed, 0.02)
    return max(abs(world.gap(policy, rate)) for policy in run.policies), set(run.phases)


@pytest.mark.parametrize("estimator", ["one-sided", "two-sided"])
@pytest.mark.parametrize("rate", RATES, ids=lambda rate: rate.symbol)
@pytest.mark.thorough
def test_no_deployed_policy_exceeds_the_limit_under_any_rate(rate, estimator):
    """2 seeds of 1e5 rounds; a false alarm has a probability of at most 10%, with fresh seeds.
    Catches a rate whose gap is not limited: the next test.
    """

    def paper(hypotheses, rate):
        settings = {"comparator_gap": 0.02, "estimator": estimator}
        return TwoPhaseLearner(hypotheses, rate, LIMIT, DELTA, HORIZON, **settings)

    for seed in range(2):
        gap, phases = worst_gap(paper, rate, seed)
        assert gap <= LIMIT
        assert phases == {"explore", "bandit"}


@pytest.mark.parametrize("rate", RATES, ids=lambda rate: rate.symbol)
def test_without_a_limit_each_of_these_rates_is_above_it(rate):
    """Negative control: the bandit without a constraint."""
    assert worst_gap(Unconstrained, rate, 0)[0] > LIMIT
