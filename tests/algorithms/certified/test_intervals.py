"""Interval processes: tables of members are remembered, and nothing widens."""

import numpy as np
import pytest
from tests.play import FPR, WORLD, decide_people, report_all

from evenhand.algorithms.certified.evidence import PastPeople
from evenhand.algorithms.certified.intervals import (
    BettingProcess,
    EpochRecord,
    labelled_groups,
)
from evenhand.bounds import BettingBound
from evenhand.errors import LengthMismatch
from evenhand.estimation.outcomes import ConstantOutcome
from evenhand.hypotheses.constants import ACCEPT_ALL, GroupClassifier
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.rounds import Rounds, counting

GROUPS = ("a", "b")
ROWS = WORLD.hypotheses.bind(WORLD.features, None)
MEMBERS = tuple(ROWS.hypothesis(i) for i in range(2, 8))
RULE = MEMBERS[0]
ACCEPTING = Mixture((ACCEPT_ALL,), (1.0,))
BOTH = np.ones(2, bool)


def more_people(rounds, people, seed):
    """People of the next epoch, all accepted, with their labels: the cohort."""
    first = rounds.decided
    sample = WORLD.draw(people, stream(seed, "people"))
    decide_people(rounds, sample, ACCEPTING, stream(seed, "coins"))
    report_all(rounds, sample, first)
    return counting.count(rounds, first, rounds.decided)


def betting(members=MEMBERS):
    bound = BettingBound(GROUPS, (FPR,), len(members), 0.05)
    return BettingProcess(bound, members, bound.start())


def test_the_policy_decides_whose_labels_count_before_the_coins():
    everybody = Mixture((ACCEPT_ALL, RULE), (0.01, 0.99))
    assert labelled_groups(everybody, GROUPS).tolist() == [True, True]
    assert labelled_groups(Mixture((RULE,), (1.0,)), GROUPS).tolist() == [False, False]
    by_group = Mixture((GroupClassifier("a"), RULE), (0.1, 0.9), "decide")
    assert labelled_groups(by_group, GROUPS).tolist() == [True, False]


def test_betting_intervals_never_widen():
    rounds, process, past = Rounds(), betting(), PastPeople.nobody()
    lower, upper, _ = process.intervals()
    for epoch in range(4):
        bets = process.bets(past, np.ones(len(past.weight)), ConstantOutcome())
        cohort = more_people(rounds, 2000, epoch)
        before = process
        process = process.update(cohort, EpochRecord(bets, ConstantOutcome(), BOTH))
        past = past.add(cohort.features, cohort.group, cohort.rounds)
        now = process.intervals()
        assert not now[2].any()
        assert (now[0] >= lower).all()
        assert (now[1] <= upper).all()
        # a process is a frozen record: the one before has not changed
        np.testing.assert_array_equal(before.intervals()[0], lower)
        lower, upper, _ = now
    assert (upper - lower).max() < 1.0
    assert process.rounds.tolist() == [8000.0] * len(MEMBERS)


def test_without_bets_nothing_is_looked_at():
    rounds, process = Rounds(), betting()
    record = EpochRecord(None, ConstantOutcome(), BOTH)
    assert process.update(more_people(rounds, 500, 1), record) is process


def test_a_hypothesis_and_a_group_that_join_see_later_epochs_only():
    rounds = Rounds()
    bound = BettingBound(GROUPS, (FPR,), 0, 0.05, delta_parts=())
    process = BettingProcess(bound, (), bound.start()).joined_by(MEMBERS[0], 0.02)
    bets = process.bets(PastPeople.nobody(), np.ones(0), ConstantOutcome())
    record = EpochRecord(bets, ConstantOutcome(), BOTH)
    cohort = more_people(rounds, 1000, 1)
    grown = process.joined_by(MEMBERS[1], 0.01).joined_by_group("c", 1e-3)
    after = grown.update(cohort, record)
    lower, upper, _ = after.intervals()
    assert lower.shape == (3, 2)  # the pairs (a, b), (a, c) and (b, c)
    assert (lower[:, 1] == -1).all()
    assert (upper[:, 1] == 1).all()
    # of the rate in c nothing is known but that it lies between 0 and 1
    known = process.update(cohort, record)
    assert upper[0, 0] - lower[0, 0] < 1
    assert (upper[1:, 0] - lower[1:, 0] >= 1).all()
    assert lower[0, 0] <= known.intervals()[0][0, 0]


def test_a_record_is_for_the_groups_of_its_bets():
    bets = betting().bets(PastPeople.nobody(), np.ones(0), ConstantOutcome())
    with pytest.raises(LengthMismatch):
        EpochRecord(bets, ConstantOutcome(), np.ones(3, bool))


def test_what_cannot_be_in_a_file_is_found():
    process = betting()
    assert process.unsound(GROUPS) is None
    assert "groups" in process.unsound(("a", "c"))
    assert "hypotheses" in betting(MEMBERS[:3])._with(process.bound, process.state).unsound(GROUPS)
