"""A cohort is closed once; bets at closings are watched in `test_step.py`."""

import numpy as np
from tests.play import WORLD

import evenhand as eh
from evenhand.algorithms.certified.closing import NO_RULES, close, join_groups, matured, rule_slots


def explored():
    learner = eh.CertifiedLearner(WORLD.hypotheses, "fpr", 0.1, 0.05, seed=0)
    people = WORLD.draw(100, np.random.default_rng(0))
    decisions = learner.decide(people.features, people.group)
    learner.observe(decisions.first_round + np.arange(100), people.label)
    return learner.state, learner.rounds


def test_a_cohort_without_a_record_only_counts_towards_the_start():
    state, rounds = explored()
    (cohort,) = matured(state, rounds, None)
    closed = close(state, cohort, rounds)
    assert closed.closed_to == 100
    assert closed.evidence.people == 100
    assert closed.process is None
    assert not closed.evidence.judged
    assert list(matured(closed, rounds, None)) == []


def test_before_the_start_there_are_no_rules_and_nobody_joins():
    state, rounds = explored()
    assert rule_slots(state) is NO_RULES
    assert join_groups(state, rounds.decided) is state
