"""Vowpal Wabbit as a learner: it learns, its policies are no mixtures, and it stores nothing."""

import numpy as np
import pytest

from evenhand import FalsePositiveRate, simulate
from evenhand.algorithms.rivals.vw import VwPolicy
from evenhand.errors import NotSerialisable
from evenhand.policies import Mixture
from evenhand.rivals import VwBandit
from evenhand.simulation.record import audit_weight, learned_weight

RATE = FalsePositiveRate()


@pytest.mark.thorough
@pytest.mark.parametrize("exploration", ["epsilon-greedy", "squarecb"])
def test_vowpal_wabbit_learns(world, exploration):
    pytest.importorskip("vowpalwabbit")
    run = simulate(VwBandit(RATE, exploration=exploration), world, 1_500, 0, 0.05)
    assert run.losses[-1] < run.losses[0]
    again = run.policies[-1].acceptance(world.population_sample().features)
    np.testing.assert_array_equal(
        again, run.policies[-1].acceptance(world.population_sample().features)
    )


def test_what_it_deploys_claims_to_be_no_mixture():
    policy = VwPolicy("--cb_explore_adf")
    assert not isinstance(policy, Mixture)
    assert (audit_weight(policy), learned_weight(policy)) == (0.0, 1.0)
    assert "Vowpal Wabbit" in policy.describe()
    with pytest.raises(NotSerialisable):
        policy.to_json()
