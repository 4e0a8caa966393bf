"""What people are told about budgets; the other notes are in `test_certificates.py`."""

from dataclasses import replace
from math import isinf

import pytest
from tests.play import WORLD

import evenhand as eh
from evenhand.algorithms.certified.evidence import FIRST_PEOPLE, Evidence
from evenhand.algorithms.certified.notes import budget_for_start, notes


def state_and_rounds(**settings):
    learner = eh.CertifiedLearner(WORLD.hypotheses, "fpr", 0.1, 0.05, seed=0, **settings)
    return learner.state, learner.rounds


def test_the_budget_of_the_start_follows_the_rarest_denominator():
    state, _ = state_and_rounds()
    assert isinf(budget_for_start(state))
    counts = {("a", -1): 8.0, ("b", -1): 2.0}
    evidence = Evidence(counts=counts, seen={"a": 30.0, "b": 9.0}, negatives=10.0)
    needed = budget_for_start(replace(state, evidence=evidence))
    assert needed == pytest.approx(1.2 * FIRST_PEOPLE * 10.5 / 2.5)


def test_a_used_up_quota_and_paused_audits_are_told():
    state, rounds = state_and_rounds(audit_budget=5)
    before = notes(state, rounds, 5)
    assert [note.kind for note in before] == ["waiting for people"]
    told = notes(replace(state, audits_open=False, quota_open=False), rounds, 5)
    assert [note.kind for note in told[1:]] == ["audits paused", "quota used up"]
