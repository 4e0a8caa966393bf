"""A loaded learner tosses fresh coins; with `same_coins=True` it continues bit for bit.

Whoever keeps a copy of a file would otherwise know the coins to come, and could try an epoch again
until they please. That fresh coins make 200 decisions alike has a probability below 2^-20 here, so
nothing fails by chance.
"""

import numpy as np
import pytest
from tests.play import FPR, WORLD, play

import evenhand as eh
from evenhand.learners import CertifiedLearner, TwoPhaseLearner, Uniform

SETTINGS = (WORLD.hypotheses, FPR, 0.4, 0.1)


def learners():
    return {
        "uniform": Uniform(seed=5),
        "two-phase": TwoPhaseLearner(*SETTINGS, 3000, exploration_rounds=400, seed=5),
        "certified": CertifiedLearner(*SETTINGS, audit_rate=0.3, seed=5),
    }


@pytest.fixture(params=learners())
def saved(request, tmp_path):
    """A learner that has played 700 rounds, and its file."""
    learner = learners()[request.param]
    play(learner, 700, seed=1)
    learner.save(tmp_path / "learner")
    return learner, tmp_path / "learner"


def decided(learner):
    """200 decisions that are left to the coin alone, and what follows from them."""
    return play(learner, 200, seed=2)


def test_a_loaded_learner_tosses_fresh_coins(saved):
    learner, file = saved
    one, other = eh.load(file), eh.load(file)
    assert one.round == other.round == 700
    ways = [decided(each) for each in (learner, one, other)]
    assert ways[1] != ways[0]
    assert ways[2] != ways[0]
    assert ways[1] != ways[2]


def test_with_the_same_coins_it_continues_bit_for_bit(saved):
    learner, file = saved
    copies = [eh.load(file, same_coins=True) for _ in range(2)]
    ways = [decided(each) for each in (learner, *copies)]
    assert ways[0] == ways[1] == ways[2]
    assert copies[0].report == learner.report


def test_fresh_coins_forget_nothing_else(saved):
    learner, file = saved
    loaded = eh.load(file)
    assert loaded.report == learner.report
    assert loaded.params == learner.params
    people = WORLD.draw(50, np.random.default_rng(3))
    assert (
        loaded.acceptance(people.features).tolist() == learner.acceptance(people.features).tolist()
    )


def test_audit_coins_are_fresh_as_well(tmp_path):
    """Which of the accepted people are audits is a coin of its own."""
    learner = CertifiedLearner(*SETTINGS, audit_rate=0.5, seed=5)
    play(learner, 700, seed=1)
    learner.save(tmp_path / "learner")
    copies = [eh.load(tmp_path / "learner") for _ in range(2)]
    people = WORLD.draw(400, np.random.default_rng(4))
    audits = [each.decide(people.features, people.group).audit.tolist() for each in copies]
    assert audits[0] != audits[1]


def test_what_is_saved_again_before_anybody_came_has_coins_of_its_own(tmp_path):
    """Loading and saving is no way to keep the coins that will come."""
    learner = Uniform(seed=5)
    learner.save(tmp_path / "learner")
    loaded = eh.load(tmp_path / "learner")
    loaded.save(tmp_path / "again")
    again = eh.load(tmp_path / "again")
    assert decided(again) != decided(learner)
