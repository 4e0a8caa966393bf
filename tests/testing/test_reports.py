"""Each law about reports is broken by the learner that was made for it, and by no other."""

import re

import pytest
from tests.learners.play import WORLD
from tests.testing.own_learner import BROKEN, OwnLearner

from evenhand.testing import (
    LEARNER_LAWS,
    LawBroken,
    LearnerCase,
    check_learner,
    learner_laws,
)


def test_a_learner_of_somebody_else_keeps_every_law():
    """On nothing but the contracts, without a file: the laws of storage do not apply."""
    names = check_learner(OwnLearner(), WORLD, rounds=350)
    assert set(names) == {law.__name__ for law in LEARNER_LAWS} - {
        "continues_after_storage",
        "reports_survive_storage",
    }


@pytest.mark.parametrize(
    ("learner", "law"), BROKEN.items(), ids=[learner.__name__ for learner in BROKEN]
)
def test_each_law_about_reports_is_broken_by_its_learner_alone(learner, law):
    """Exactly one law is broken, and says which round and what. (Which labels are late where
    threads meet is chance: there only the learner that is made for it is tried.)"""
    broken = []
    for found in learner_laws(learner()):
        if found.__name__ == "threads_share_the_rounds" and law != "threads_share_the_rounds":
            continue
        try:
            found(LearnerCase(learner(), WORLD, rounds=350))
        except LawBroken as error:
            broken.append(error)
    assert [error.law for error in broken] == [law]
    assert law.replace("_", " ") in str(broken[0])
    assert re.search(r"round|people", str(broken[0]))
    assert re.search(r"\d", str(broken[0]))
