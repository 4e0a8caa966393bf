"""Each requirement about reports is broken by the learner that was made for it, and by no other."""

import re

import pytest
from tests.play import WORLD
from tests.requirements.learners import LEARNER_REQUIREMENTS, check_learner, learner_requirements
from tests.requirements.own_learner import BROKEN, ByShare, OwnLearner
from tests.requirements.playing import LearnerCase

from evenhand.learners import LEARNERS
from evenhand.storage import stored_name
from evenhand.testing import RequirementBroken


def test_a_learner_of_somebody_else_keeps_every_requirement():
    """On nothing but the contracts, without a file: the requirements of storage do not apply."""
    names = check_learner(OwnLearner(), WORLD, rounds=350)
    assert set(names) == {requirement.__name__ for requirement in LEARNER_REQUIREMENTS} - {
        "continues_after_storage",
        "reports_survive_storage",
    }


def test_an_algorithm_of_somebody_else_keeps_every_requirement(monkeypatch):
    """Entry points and storage are those of every learner."""
    monkeypatch.setitem(LEARNERS, stored_name(ByShare), ByShare)
    names = check_learner(ByShare(), WORLD, rounds=350)
    assert set(names) == {requirement.__name__ for requirement in LEARNER_REQUIREMENTS}


@pytest.mark.parametrize(
    ("learner", "requirement"), BROKEN.items(), ids=[learner.__name__ for learner in BROKEN]
)
def test_each_requirement_about_reports_is_broken_by_its_learner_alone(learner, requirement):
    """Exactly one requirement is broken, and says which round and what. (Which labels are late
    where threads meet is chance: there only the learner that is made for it is tried.)
    """
    broken = []
    for found in learner_requirements(learner()):
        if (
            found.__name__ == "threads_share_the_rounds"
            and requirement != "threads_share_the_rounds"
        ):
            continue
        try:
            found(LearnerCase(learner(), WORLD, rounds=350))
        except RequirementBroken as error:
            broken.append(error)
    assert [error.requirement for error in broken] == [requirement]
    assert requirement.replace("_", " ") in str(broken[0])
    assert re.search(r"round|people", str(broken[0]))
    assert re.search(r"\d", str(broken[0]))
