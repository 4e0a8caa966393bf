"""Every learner of the package crossed with every law of learners, and learners that were made to break them."""

from dataclasses import replace

import numpy as np
import pytest
from tests.learners.play import FPR, WORLD, everybody

from evenhand.environments import LowerBound, Scores
from evenhand.errors import ProtocolError
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, GroupClassifier, ScoreThresholds
from evenhand.learners import CertifiedLearner, TwoPhaseLearner, Uniform
from evenhand.policies import Mixture
from evenhand.testing import LEARNER_LAWS, LawBroken, LearnerCase, check_learner

LEARNERS = everybody() | {
    "certified": CertifiedLearner(WORLD.hypotheses, FPR, 0.3, 0.1, seed=1),
    "certified, group decides": CertifiedLearner(WORLD.hypotheses, FPR, 0.3, 0.1, group_use="decide", seed=1),
}


@pytest.mark.parametrize("law", LEARNER_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", LEARNERS)
def test_law_holds(name, law):
    law(LearnerCase(LEARNERS[name], WORLD, rounds=1100))


@pytest.mark.parametrize("environment", [LowerBound(1, 0.05), Scores()], ids=repr)
def test_laws_hold_on_other_populations(environment):
    hypotheses = ScoreThresholds() if isinstance(environment, Scores) else environment.hypotheses
    learner = TwoPhaseLearner(hypotheses, FPR, 0.7, 0.1, 2000, comparator_gap=0.1)
    assert len(check_learner(learner, environment, rounds=700)) == len(LEARNER_LAWS)


class Skipping(Uniform):
    def observe(self, round, label):
        super().observe(round, label)
        self._round += 1


class Nosy(Uniform):
    @property
    def policy(self):
        self._coins.random()
        return super().policy


class Sharing(Uniform):
    def _decide_block(self, rows, group, prices):
        block = super()._decide_block(rows, group, prices)
        block.accept[:] = block.accept[0]
        return block


class Boasting(Uniform):
    def decide(self, *args, **named):
        decisions = super().decide(*args, **named)
        return replace(decisions, propensity=np.ones(len(decisions)))


class Gullible(Uniform):
    def observe(self, round, label):
        try:
            super().observe(round, label)
        except ProtocolError:
            return


class Careless(Uniform):
    def _decide_block(self, rows, group, prices):
        self._coins = np.random.default_rng()
        return super()._decide_block(rows, group, prices)


class Global(Uniform):
    def _decide_block(self, rows, group, prices):
        self._coins = np.random.default_rng(np.random.randint(100))  # noqa: NPY002
        return super()._decide_block(rows, group, prices)


class Peeping(Uniform):
    def _policy(self):
        return Mixture((GroupClassifier("a"), ACCEPT_ALL, REJECT_ALL), (0.2, 0.4, 0.4), "decide")


class Secretive(Uniform):
    @property
    def params(self):
        return {"learner": object()}


class Forgetful(Uniform):
    def _state(self):
        return super()._state() | {"_coins": np.random.default_rng(0)}


@pytest.mark.parametrize(
    ("learner", "law"),
    [
        (Skipping, "each_person_is_one_round"),
        (Nosy, "looking_changes_nothing"),
        (Sharing, "one_by_one_equals_blocks"),
        (Boasting, "propensity_is_the_policy_s"),
        (Gullible, "labels_of_the_accepted_alone"),
        (Careless, "the_same_seed_is_the_same_run"),
        (Global, "the_same_seed_is_the_same_run"),
        (Peeping, "the_group_only_certifies"),
        (Secretive, "learner_describes_itself"),
        (Forgetful, "continues_after_storage"),
    ],
)
def test_each_law_catches_its_own_defect(learner, law):
    chosen = next(found for found in LEARNER_LAWS if found.__name__ == law)
    chosen(LearnerCase(Uniform(), WORLD, rounds=200))
    with pytest.raises(LawBroken) as broken:
        chosen(LearnerCase(learner(), WORLD, rounds=200))
    assert broken.value.law == law


def test_all_laws_have_a_control():
    assert len(LEARNER_LAWS) == 9
    with pytest.raises(LawBroken):
        check_learner(Boasting(), WORLD, rounds=100)
