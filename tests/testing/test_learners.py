"""Every learner of the package crossed with every law of learners, and learners that were made to
break them.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.learners.play import FPR, WORLD, everybody
from tests.testing.own_learner import BROKEN, OwnLearner

from evenhand.environments import LowerBound, Scores
from evenhand.errors import ProtocolError
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, GroupClassifier, ScoreThresholds
from evenhand.learners import CertifiedLearner, TwoPhaseLearner, Uniform
from evenhand.learners.rivals import ExploreExploit, SemiLogistic
from evenhand.learners.rounds import RoundBook
from evenhand.policies import Mixture
from evenhand.testing import (
    CAPABLE_LEARNERS,
    EVERY_LEARNER,
    LEARNER_LAWS,
    LawBroken,
    LearnerCase,
    check_learner,
    learner_laws,
)

LEARNERS = everybody() | {
    "certified": CertifiedLearner(WORLD.hypotheses, FPR, 0.3, 0.1, seed=1),
    "certified, group decides": CertifiedLearner(
        WORLD.hypotheses, FPR, 0.3, 0.1, group_use="decide", seed=1
    ),
    "certified, with a window": CertifiedLearner(
        WORLD.hypotheses, FPR, 0.3, 0.1, maturity=40.0, seed=1
    ),
    "certified, nominated": CertifiedLearner(
        WORLD.hypotheses, FPR, 0.3, 0.1, bound="nominate", horizon=5000, seed=1
    ),
    "certified, audits alone": CertifiedLearner(
        WORLD.hypotheses, FPR, 0.3, 0.1, bound="kl", seed=1
    ),
    "explore, exploit": ExploreExploit(FPR, seed=1),
    "semi-logistic": SemiLogistic(FPR, seed=1),
}


PAPERS = ("two-phase", "explore-then-commit", "EXP4")
"""The paper's learners explore for 650 rounds, so they are played for longer."""
CASES = [(name, law) for name, learner in LEARNERS.items() for law in learner_laws(learner)]


@pytest.mark.parametrize(
    ("name", "law"), CASES, ids=[f"{name}-{law.__name__}" for name, law in CASES]
)
def test_law_holds(name, law):
    law(LearnerCase(LEARNERS[name], WORLD, rounds=1100 if name.startswith(PAPERS) else 600))


@pytest.mark.parametrize("environment", [LowerBound(1, 0.05), Scores()], ids=repr)
def test_laws_hold_on_other_populations(environment):
    hypotheses = ScoreThresholds() if isinstance(environment, Scores) else environment.hypotheses
    learner = TwoPhaseLearner(hypotheses, FPR, 0.7, 0.1, 2000, comparator_gap=0.1)
    assert check_learner(learner, environment, rounds=700) == tuple(
        law.__name__ for law in learner_laws(learner)
    )


class Skipping(Uniform):
    def observe(self, round, label):
        super().observe(round, label)
        self.state.round += 1


class Nosy(Uniform):
    @property
    def policy(self):
        self.state.coins.random()
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
        self.state.coins = np.random.default_rng()
        return super()._decide_block(rows, group, prices)


class Global(Uniform):
    def _decide_block(self, rows, group, prices):
        self.state.coins = np.random.default_rng(np.random.randint(100))  # noqa: NPY002
        return super()._decide_block(rows, group, prices)


class Peeping(Uniform):
    _fixed = Mixture((GroupClassifier("a"), ACCEPT_ALL, REJECT_ALL), (0.2, 0.4, 0.4), "decide")


class Secretive(Uniform):
    @property
    def params(self):
        return {"learner": object()}


class Forgetful(Uniform):
    def _state(self):
        return super()._state() | {"_coins": np.random.default_rng(0)}


class Absent(Uniform):
    """Its file forgets who was there."""

    def _state(self):
        return super()._state() | {"_book": RoundBook()}


class Hoarding(Uniform):
    """Decides as if it had forgotten, and stores what it should have."""

    kept = ()

    def erase(self, round):
        block, row = self.state.book._find(int(round))
        self.kept = (*self.kept, block.features[row].tolist())
        super().erase(round)

    def _state(self):
        return super()._state() | {"kept": self.kept}


SPOILT = {
    Skipping: "each_person_is_one_round",
    Nosy: "looking_changes_nothing",
    Sharing: "one_by_one_equals_blocks",
    Boasting: "propensity_is_the_policy_s",
    Gullible: "labels_of_the_accepted_alone",
    Careless: "the_same_seed_is_the_same_run",
    Global: "the_same_seed_is_the_same_run",
    Peeping: "the_group_only_certifies",
    Secretive: "learner_describes_itself",
    Forgetful: "continues_after_storage",
    Absent: "reports_survive_storage",
    Hoarding: "erased_people_leave_no_trace",
}


@pytest.mark.parametrize(("learner", "law"), SPOILT.items())
def test_each_law_catches_its_own_defect(learner, law):
    chosen = next(found for found in LEARNER_LAWS if found.__name__ == law)
    chosen(LearnerCase(Uniform(), WORLD, rounds=200))
    with pytest.raises(LawBroken) as broken:
        chosen(LearnerCase(learner(), WORLD, rounds=200))
    assert broken.value.law == law


def test_a_law_of_a_capability_applies_to_those_who_have_the_method():
    bare = type("Bare", (), {name: getattr(OwnLearner, name) for name in ("decide", "observe")})
    assert learner_laws(bare()) == EVERY_LEARNER
    for capability, laws in CAPABLE_LEARNERS.items():
        has_it = isinstance(OwnLearner(), capability)
        assert [law in learner_laws(OwnLearner()) for law in laws] == [has_it] * len(laws)


def test_all_laws_have_a_control():
    assert {*SPOILT.values(), *BROKEN.values()} == {law.__name__ for law in LEARNER_LAWS}
    with pytest.raises(LawBroken):
        check_learner(Boasting(), WORLD, rounds=100)
