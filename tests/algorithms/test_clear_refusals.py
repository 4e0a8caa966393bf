"""Settings that once ended in an IndexError or an AssertionError: a clear error, or the right
answer.
"""

import numpy as np
import pytest
from tests.play import FPR, WORLD, play

from evenhand.errors import InvalidInput
from evenhand.learners import Exp4, ExploreThenCommit, PairedRounds, TwoPhaseLearner

H = WORLD.hypotheses
LEARNERS = [TwoPhaseLearner, ExploreThenCommit, Exp4, PairedRounds]


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_missing_horizon_is_named(learner):
    with pytest.raises((InvalidInput, TypeError), match="horizon"):
        learner(H, "fpr", 0.1, 0.05)


@pytest.mark.parametrize("horizon", [None, 0, 1, "long", 1.5])
@pytest.mark.parametrize("learner", LEARNERS)
def test_a_horizon_that_is_none_is_named(learner, horizon):
    with pytest.raises(InvalidInput, match="horizon"):
        learner(H, "fpr", 0.1, 0.05, horizon)


@pytest.mark.parametrize("learner", LEARNERS)
def test_two_sided_plays(learner):
    """The error once came with the first epoch after the exploration."""
    settings = dict(exploration_rounds=900, estimator="two-sided", seed=5)
    made = learner(H, FPR, 0.4, 0.1, 3000, **settings)
    play(made, 1500, seed=1)
    assert {epoch.phase for epoch in made.report.epochs} > {"explore"}
    for epoch in made.report.epochs:
        assert float(np.abs(WORLD.gaps(epoch.policy, (FPR,))).max()) <= 0.4


@pytest.mark.parametrize("learner", LEARNERS)
def test_an_unknown_estimator_is_named(learner):
    with pytest.raises(InvalidInput, match="estimator"):
        learner(H, FPR, 0.4, 0.1, 3000, estimator="three-sided")
