"""The learners of others as classes: their settings, and how they are stored."""

import numpy as np
import pytest
from tests.play import FPR, WORLD, play

import evenhand as eh
from evenhand.errors import InvalidInput, NotSerialisable
from evenhand.learners import LEARNERS
from evenhand.rivals import ExploreExploit, SemiLogistic, VwBandit
from evenhand.words import Prices

SCORED = [SemiLogistic, ExploreExploit]


@pytest.mark.parametrize("kind", [*SCORED, VwBandit])
def test_they_are_made_again_from_their_settings(kind):
    learner = kind(FPR, prices=Prices(2.0, 1.0), seed=3)
    again = learner.restarted(4)
    assert {**again.params, "seed": 3} == dict(learner.params)
    assert again.seed == 4
    assert kind.__name__ in LEARNERS


@pytest.mark.parametrize("kind", SCORED)
def test_a_loaded_one_decides_like_the_stored_one(kind, tmp_path):
    learner = kind(FPR, seed=3)
    play(learner, 1000, 0)
    assert learner.epoch.phase == "policy"
    learner.save(tmp_path / "x")
    copy = eh.load(tmp_path / "x", same_coins=True)
    chances = [one.acceptance(WORLD.features) for one in (learner, copy)]
    np.testing.assert_array_equal(*chances)
    assert play(copy, 800, 1) == play(learner, 800, 1)


def test_a_model_of_vowpal_wabbit_is_not_stored(tmp_path):
    with pytest.raises(NotSerialisable):
        VwBandit(FPR).save(tmp_path / "vw")


def test_an_unknown_exploration_is_an_error():
    with pytest.raises(InvalidInput) as caught:
        VwBandit(FPR, exploration="boltzmann")
    assert caught.value.argument == "exploration"
