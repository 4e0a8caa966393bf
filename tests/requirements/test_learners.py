"""Every learner of the package crossed with every requirement of learners, and learners that were
made to break them.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.play import FPR, WORLD, every_learner
from tests.requirements.learners import (
    CAPABLE_LEARNERS,
    EVERY_LEARNER,
    LEARNER_REQUIREMENTS,
    check_learner,
    learner_requirements,
)
from tests.requirements.own_learner import BROKEN, OwnLearner
from tests.requirements.playing import LearnerCase

from evenhand.environments import LowerBound, Scores
from evenhand.errors import ProtocolError
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, GroupClassifier, Linear, ScoreThresholds
from evenhand.learners import LEARNERS as LOADED
from evenhand.learners import CertifiedLearner, TwoPhaseLearner, Uniform
from evenhand.policies import Mixture
from evenhand.rounds import Rounds
from evenhand.storage import stored_name
from evenhand.testing import RequirementBroken
from evenhand.words import Decisions

LEARNERS = every_learner() | {
    "certified": CertifiedLearner(WORLD.hypotheses, FPR, 0.3, 0.1, seed=1),
    "certified, group decides": CertifiedLearner(
        WORLD.hypotheses, FPR, 0.3, 0.1, group_use="decide", seed=1
    ),
    "certified, with a window": CertifiedLearner(
        WORLD.hypotheses, FPR, 0.3, 0.1, maturity=40.0, seed=1
    ),
    "certified, nominated": CertifiedLearner(Linear(), FPR, 0.3, 0.1, horizon=5000, seed=1),
}


PAPERS = ("two-phase", "explore-then-commit", "EXP4")
"""The paper's learners explore for 650 rounds, so they are played for longer."""
VARIANTS = [name for name in LEARNERS if name.startswith(("two-phase, ", "certified, "))]
"""Other settings of a learner that is tried under every requirement."""


def crossed():
    """Each learner with each requirement; of a variant's, the quick tier takes every third, another
    third for each variant, so that both learners meet each requirement under some setting.
    """
    for name, learner in LEARNERS.items():
        for place, requirement in enumerate(learner_requirements(learner)):
            quick = name not in VARIANTS or (place + VARIANTS.index(name)) % 3 == 0
            marks = () if quick else pytest.mark.slow
            yield pytest.param(name, requirement, marks=marks, id=f"{name}-{requirement.__name__}")


@pytest.mark.parametrize(("name", "requirement"), list(crossed()))
def test_requirement_holds(name, requirement):
    requirement(LearnerCase(LEARNERS[name], WORLD, rounds=1100 if name.startswith(PAPERS) else 600))


@pytest.mark.parametrize("environment", [LowerBound(1, 0.05), Scores()], ids=repr)
def test_requirements_hold_on_other_populations(environment):
    hypotheses = ScoreThresholds() if isinstance(environment, Scores) else environment.hypotheses
    learner = TwoPhaseLearner(hypotheses, FPR, 0.7, 0.1, 2000, comparator_gap=0.1)
    assert check_learner(learner, environment, rounds=700) == tuple(
        requirement.__name__ for requirement in learner_requirements(learner)
    )


class Skipping(Uniform):
    def observe(self, round, label):
        super().observe(round, label)
        self.rounds.decided += 1


class Nosy(Uniform):
    @property
    def policy(self):
        self.coins.random()
        return super().policy


class OneCoin:
    """All people of a call share one coin."""

    def __init__(self, coins):
        self.coins = coins

    def random(self, size=None):
        coin = self.coins.random()
        return coin if size is None else np.full(size, coin)


class Sharing(Uniform):
    def __init__(self, **settings):
        super().__init__(**settings)
        self.coins = OneCoin(self.coins)


class Boasting(Uniform):
    def decide(self, *args, **named):
        found = super().decide(*args, **named)
        sure = np.ones(len(found))
        return Decisions(found.accept, sure, found.first_round, found.epoch, found.audit)


class Gullible(Uniform):
    def observe(self, round, label):
        try:
            super().observe(round, label)
        except ProtocolError:
            return


class Careless(Uniform):
    def decide(self, *args, **named):
        self.coins = np.random.default_rng()
        return super().decide(*args, **named)


class Global(Uniform):
    def decide(self, *args, **named):
        self.coins = np.random.default_rng(np.random.randint(100))  # noqa: NPY002
        return super().decide(*args, **named)


class Peeping(Uniform):
    def __init__(self, **settings):
        super().__init__(**settings)
        rules = (GroupClassifier("a"), ACCEPT_ALL, REJECT_ALL)
        policy = Mixture(rules, (0.2, 0.4, 0.4), "decide")
        self.rounds.epochs[0] = replace(self.epoch, policy=policy)


class Secretive(Uniform):
    @property
    def params(self):
        return {"learner": object()}


class Forgetful(Uniform):
    """Its file begins with other coins."""

    def save(self, path):
        coins = self.coins
        self.coins = np.random.default_rng(0)
        super().save(path)
        self.coins = coins


class Absent(Uniform):
    """Its file forgets who was there."""

    def save(self, path):
        rounds = self.rounds
        self.rounds = Rounds()
        self.rounds.open(self.restarted(0).epoch)
        super().save(path)
        self.rounds = rounds


class Hoarding(Uniform):
    """Decides as if it had forgotten, and stores what it should have."""

    def erase(self, round):
        kept = self.rounds.features_of(np.array([int(round)]))[0].tolist()
        self.settings["kept"] = [*self.settings.get("kept", []), kept]
        super().erase(round)


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


@pytest.mark.parametrize(("learner", "requirement"), SPOILT.items())
def test_each_requirement_catches_its_own_defect(learner, requirement, monkeypatch):
    monkeypatch.setitem(LOADED, stored_name(learner), learner)
    chosen = next(found for found in LEARNER_REQUIREMENTS if found.__name__ == requirement)
    chosen(LearnerCase(Uniform(), WORLD, rounds=200))
    with pytest.raises(RequirementBroken) as broken:
        chosen(LearnerCase(learner(), WORLD, rounds=200))
    assert broken.value.requirement == requirement


def test_a_requirement_of_a_capability_applies_to_those_who_have_the_method():
    bare = type("Bare", (), {name: getattr(OwnLearner, name) for name in ("decide", "observe")})
    assert learner_requirements(bare()) == EVERY_LEARNER
    for capability, requirements in CAPABLE_LEARNERS.items():
        has_it = isinstance(OwnLearner(), capability)
        assert [
            requirement in learner_requirements(OwnLearner()) for requirement in requirements
        ] == [has_it] * len(requirements)


def test_all_requirements_have_a_control():
    assert {*SPOILT.values(), *BROKEN.values()} == {
        requirement.__name__ for requirement in LEARNER_REQUIREMENTS
    }
    with pytest.raises(RequirementBroken):
        check_learner(Boasting(), WORLD, rounds=100)
