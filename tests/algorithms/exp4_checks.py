"""What exponential weights over the fair net must do, as functions: tests call them on the code as
it is, and mutants must fall over them.
"""

import numpy as np
from tests.algorithms.enumerated_net import (
    expected_policy,
)
from tests.play import FPR, WORLD, play

from evenhand.learners import Exp4
from evenhand.simulation import regret_in_set, simulate


def played_exp4(kind=Exp4, rounds=560, **settings):
    """A learner some epochs after its exploration, with a grid of 12."""
    common = dict(comparator_gap=0.02, exploration_rounds=300, grid=12, seed=5)
    learner = kind(WORLD.hypotheses, FPR, 0.4, 0.1, 3000, **{**common, **settings})
    play(learner, rounds, 0, block=1)  # so that every label is known when the weights are renewed
    return learner


def check_exp4_is_the_formula(estimator="one-sided", group_use="certify_only"):
    """The deployed policy is that of the members written down one by one."""
    learner = played_exp4(estimator=estimator, group_use=group_use)
    assert learner.epoch.phase == "exp4"
    expected, floor = expected_policy(learner, WORLD, 12)
    np.testing.assert_allclose(
        learner.acceptance(WORLD.features, WORLD.group), expected, rtol=0, atol=1e-9
    )
    assert abs(learner.epoch.exploration_floor - floor) < 1e-15


def check_exp4_two_sided_is_the_formula():
    check_exp4_is_the_formula("two-sided")


def regret(kind, **settings):
    """Mean regret of two runs of 20,000 rounds to the best policy of the learner's set.

    Over 20 fresh seeds a single run has 266 +- 16 (Exp4), 518 +- 50 (two-sided) and 330 +- 13
    (EXP4.AT); with the members of each pair swapped 545 +- 47, 880 +- 55 and 613 +- 44, with a rate
    that is 100 times too small 2,585 or more. So the limits below have false-alarm rates below
    1e-6, and miss the weakest of these defects with a probability below 1e-4.
    """
    learner = kind(
        WORLD.hypotheses, FPR, 0.4, 0.1, 20_000, exploration_rounds=700, grid=12, **settings
    )
    runs = [simulate(learner, WORLD, 20_000, seed) for seed in range(2)]
    return float(np.mean([regret_in_set(run, WORLD)[-1] for run in runs]))


def check_exp4_learns():
    assert regret(Exp4) <= 400


def check_exp4_two_sided_learns():
    assert regret(Exp4, estimator="two-sided") <= 730
