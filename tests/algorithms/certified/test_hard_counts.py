"""Hard counts hold for every outcome; `test_quota.py` plays them through the learner."""

from math import inf
from types import SimpleNamespace

import numpy as np
import pytest

from evenhand.algorithms.certified.hard_counts import (
    budget_left,
    budget_spent,
    room,
    with_entry,
    without_coin,
)
from evenhand.hypotheses import ScoreThresholds
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture

PEOPLE = np.linspace(0, 1, 20)[:, np.newaxis]
RULE = ScoreThresholds(0).bind(PEOPLE, None).hypothesis(7)


def table(bill, pending=0):
    """What the counts read of a table of rounds."""
    return SimpleNamespace(audit_bill=bill, audits_pending=pending)


def test_the_weight_of_the_coin_moves_between_constants_so_differences_stay():
    policy = Mixture((RULE, ACCEPT_ALL, REJECT_ALL), (0.5, 0.2, 0.3))
    before = policy.acceptance(PEOPLE)
    after = without_coin(policy).acceptance(PEOPLE)
    assert before - after == pytest.approx(np.full(len(PEOPLE), 0.2))
    assert len(np.unique(after)) == 2


def test_a_label_that_has_not_come_is_on_the_bill():
    assert room(10, None, table(7, pending=7), None) == (3, inf)
    assert room(10, None, table(12), None) == (0, inf)
    assert room(None, None, table(12), None) == (inf, inf)


def test_a_budget_is_spent_when_no_label_can_free_it():
    assert budget_left(10, table(10, pending=1)) == 0
    assert not budget_spent(10, table(10, pending=1))
    assert budget_spent(10, table(10, pending=0))
    assert not budget_spent(None, table(1000))


def test_an_entry_replaces_that_of_its_epoch():
    assert with_entry({1: "a", 2: "b"}, 2, "c") == {1: "a", 2: "c"}
    assert with_entry({1: "a", 2: "b"}, 2, None) == {1: "a"}
