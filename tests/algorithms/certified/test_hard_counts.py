"""Hard counts hold for every outcome; `test_quota.py` plays them through the learner."""

from math import inf
from types import SimpleNamespace

import numpy as np
import pytest
from tests.play import WORLD

from evenhand import CertifiedLearner, storage
from evenhand.algorithms.certified.hard_counts import (
    budget_left,
    budget_spent,
    remaining,
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
    assert remaining(10, None, table(7, pending=7), None) == (3, inf)
    assert remaining(10, None, table(12), None) == (0, inf)
    assert remaining(None, None, table(12), None) == (inf, inf)


def test_a_budget_is_spent_when_no_label_can_free_it():
    assert budget_left(10, table(10, pending=1)) == 0
    assert not budget_spent(10, table(10, pending=1))
    assert budget_spent(10, table(10, pending=0))
    assert not budget_spent(None, table(1000))


def test_an_entry_replaces_that_of_its_epoch():
    assert with_entry({1: "a", 2: "b"}, 2, "c") == {1: "a", 2: "c"}
    assert with_entry({1: "a", 2: "b"}, 2, None) == {1: "a"}


def audits_that_were_bad(reported, budget=20, calls=40):
    """Bad audits whose label was reported, where each accepted person is then overruled; and the
    bill. reported: the order of the two reports.
    """
    learner = CertifiedLearner(
        WORLD.hypotheses, "fpr", 0.2, 0.05, audit_budget=budget, audit_rate=0.5, seed=1
    )
    generator = np.random.default_rng(2)
    bad = 0
    for _ in range(calls):
        people = WORLD.draw(50, generator)
        decisions = learner.decide(people.features, people.group)
        accepted = decisions.round[decisions.accept]
        if reported:
            learner.observe(accepted, np.full(len(accepted), -1))
            bad += int(decisions.audit.sum())
        learner.overrule(accepted, False)
    return bad, learner.rounds


def test_a_bad_label_that_has_come_stays_in_the_bill_when_a_human_overrules():
    """Else the budget would be free again, and again."""
    bad, rounds = audits_that_were_bad(reported=True)
    assert bad == rounds.audit_bill == 20
    assert rounds.audits_pending == 0
    rounds.recount_bill()
    assert rounds.audit_bill == 20
    encoder = storage.Encoder()
    again = storage.Decoder(encoder.arrays).decode(encoder.encode(rounds))
    assert again.audit_bill == 20


def test_whom_a_human_rejects_before_a_label_comes_is_not_in_the_bill():
    _, rounds = audits_that_were_bad(reported=False)
    assert rounds.audit_bill == rounds.audits_pending == 0
    assert rounds["audit"].sum() > 100
