"""Before anything is certified: constants, at the share that is permitted."""

import numpy as np
import pytest
from tests.play import WORLD

import evenhand as eh
from evenhand.algorithms.certified.start import constant_epoch, lottery

PEOPLE = np.linspace(0, 1, 5)[:, np.newaxis]


def first_state(**settings):
    learner = eh.CertifiedLearner(WORLD.hypotheses, "fpr", 0.1, 0.05, seed=0, **settings)
    return learner.state


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_lottery_ignores_the_person(share):
    assert lottery(share, "certify_only").acceptance(PEOPLE) == pytest.approx(np.full(5, share))


@pytest.mark.parametrize(
    ("settings", "aim", "share"),
    [
        ({}, 1.0, 1.0),
        ({"accept_at_most": 0.4}, 1.0, 0.4),
        ({"accept_at_most": 0.4}, 0.1, 0.1),
        ({"accept_at_least": 0.2}, 0.1, 0.1),  # the quota outranks the floor
    ],
)
def test_a_constant_accepts_the_nearest_share_that_is_permitted(settings, aim, share):
    epoch = constant_epoch(first_state(**settings), 1, 0, 100, fallback="accept", aim=aim)
    assert epoch.audit == share
    assert epoch.mixture.acceptance(PEOPLE) == pytest.approx(np.full(5, share))
