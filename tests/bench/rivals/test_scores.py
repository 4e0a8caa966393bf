"""The rivals: their policies are what their papers say, they learn, and they guarantee nothing."""

import numpy as np
import pytest
from bench.rivals.scores import RandomCutoff, logistic, random_cutoff, semi_logistic

from bench.rivals import ExploreExploit, SemiLogistic
from evenhand import FalsePositiveRate, Prices, simulate
from evenhand.policies import Mixture
from evenhand.simulation.record import guarantees

RATE = FalsePositiveRate()


def test_a_random_cutoff_is_the_mixture_of_its_rules():
    policy = random_cutoff(np.array([1.0, -2.0]), 0.5, logistic)
    rows = np.random.default_rng(0).normal(size=(300, 2))
    plain = Mixture(policy.hypotheses, policy.weights).acceptance(rows)
    np.testing.assert_allclose(policy.acceptance(rows), plain, atol=1e-12)
    np.testing.assert_allclose(
        policy.acceptance(rows), logistic(rows @ [1.0, -2.0] + 0.5), atol=0.02
    )
    assert isinstance(policy, RandomCutoff)
    assert "grows with a score" in policy.describe()


def test_semi_logistic_accepts_from_zero_on_and_explores_below():
    np.testing.assert_allclose(
        semi_logistic(np.array([-1.0, 0.0, 3.0])), [1 / (1 + np.e), 1.0, 1.0]
    )
    policy = random_cutoff(np.array([1.0]), 0.0, semi_logistic)
    np.testing.assert_allclose(
        policy.acceptance(np.array([[-2.0], [0.1]])),
        [logistic(np.array([-2.0]))[0], 1.0],
        atol=0.02,
    )


@pytest.mark.parametrize("make", [SemiLogistic, ExploreExploit], ids=lambda kind: kind.__name__)
def test_they_learn_and_are_deterministic(world, make):
    runs = [simulate(make(RATE, 0.05), world, 4_000, 3, 0.05) for _ in range(2)]
    assert runs[0].losses[-1] < 0.8 * world.loss(
        Mixture(runs[0].policies[0].hypotheses, runs[0].policies[0].weights)
    )
    np.testing.assert_array_equal(runs[0].gaps, runs[1].gaps)
    assert not guarantees(runs[0].learner, 0.05)
    for policy in runs[0].policies:
        acceptance = policy.acceptance(world.population_sample().features)
        assert acceptance.min() >= 0
        assert acceptance.max() <= 1


def test_nobody_is_rejected_for_sure(world):
    run = simulate(SemiLogistic(RATE), world, 3_000, 0, 0.05)
    assert run.policies[-1].acceptance(world.population_sample().features).min() > 0


def test_a_larger_penalty_asks_for_a_smaller_gap(world):
    gaps = [
        simulate(SemiLogistic(RATE, penalty=p), world, 6_000, 1, 0.05).gaps[-1]
        for p in (0.0, 100.0)
    ]
    assert gaps[1] < gaps[0]


def test_dear_false_accepts_shrink_what_is_accepted(world):
    shares = [
        simulate(
            ExploreExploit(RATE, prices=Prices(price, 1.0)), world, 3_000, 0, 0.05
        ).accepted.sum()
        for price in (1.0, 8.0)
    ]
    assert shares[1] < shares[0]


def test_one_group_and_one_label_do_not_break_them():
    features = np.random.default_rng(0).normal(size=(50, 1))
    learner = SemiLogistic(RATE, seed=0)
    learner.decide(features, np.array(["a"] * 50))
    learner.observe(np.arange(50), np.ones(50, dtype=int))
    learner.decide(np.zeros((300, 1)), np.array(["a", "b"] * 150))
    assert learner.epoch.phase == "explore"


@pytest.mark.parametrize("kind", [SemiLogistic, ExploreExploit])
def test_they_are_made_again_from_their_settings(kind):
    learner = kind(RATE, prices=Prices(2.0, 1.0), seed=3)
    again = learner.restarted(4)
    assert {**again.params, "seed": 3} == dict(learner.params)
    assert again.seed == 4
