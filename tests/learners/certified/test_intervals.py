"""Interval processes: tables of members are remembered, looks are preset, and nothing widens."""

import numpy as np
from tests.learners.certified.test_evidence import some
from tests.learners.play import FPR, WORLD

from evenhand.bounds import AuditHoeffding, BettingBound, PresetLooks
from evenhand.estimation.outcomes import ConstantOutcome
from evenhand.hypotheses.constants import ACCEPT_ALL
from evenhand.learners.certified.evidence import PastPeople, from_block
from evenhand.learners.certified.intervals import (
    AuditProcess,
    BettingProcess,
    MemberTables,
    Prepared,
    acceptance_table,
)
from evenhand.policies import Mixture
from evenhand.randomness import stream

GROUPS = ("a", "b")
ROWS = WORLD.hypotheses.bind(WORLD.features, None)
MEMBERS = tuple(ROWS.hypothesis(i) for i in range(2, 8))
EVERYBODY = np.ones(2, bool)


def test_a_table_is_remembered_and_equal_to_the_members_answers():
    tables = MemberTables(MEMBERS)
    first = tables.on(WORLD.features, None)
    assert tables.on(WORLD.features.copy(), None) is first
    one_by_one = np.stack([member.accepts(WORLD.features) for member in MEMBERS])
    np.testing.assert_array_equal(first, one_by_one)
    assert acceptance_table((), WORLD.features, None).shape == (0, len(WORLD.features))


def test_betting_intervals_never_widen():
    bound = BettingBound(GROUPS, (FPR,), len(MEMBERS), 0.05)
    process, past = BettingProcess(bound, MEMBERS, bound.start()), PastPeople()
    lower, upper, _ = process.intervals()
    for epoch in range(4):
        cohort = from_block(some(2000, Mixture((ACCEPT_ALL,), (1.0,)), first=2000 * epoch))
        acceptance = np.ones(len(past.weight))
        plan = process.plan(past, acceptance, ConstantOutcome())
        assert process.update(cohort, Prepared(plan, ConstantOutcome(), EVERYBODY)) == 0
        past.add(cohort.features, cohort.group, cohort.rounds)
        now = process.intervals()
        assert (now[0] >= lower).all()
        assert (now[1] <= upper).all()
        lower, upper, _ = now
    assert (upper - lower).max() < 1.0
    assert process.rounds.tolist() == [8000.0] * len(MEMBERS)


def test_audits_are_looked_at_when_a_preset_number_of_them_has_closed():
    process = AuditProcess(
        bound=AuditHoeffding(),
        members=MEMBERS,
        groups=GROUPS,
        rates=(FPR,),
        failure_probability=0.05,
        columns=1,
        log_size=float(np.log(len(MEMBERS))),
        generator=stream(1, "looks"),
        looks=PresetLooks(first=100, growth=2.0),
    )
    cohort = from_block(some(900, Mixture((ACCEPT_ALL,), (1.0,))))
    audits = int((cohort.audited_positive + cohort.audited_negative).sum())
    process.update(cohort, Prepared(None, ConstantOutcome(), EVERYBODY))
    assert process.audits == audits
    assert process.totals.look == process.looks.reached(audits) == 1
    width = np.subtract(*process.intervals()[1::-1])
    assert (width <= 2.0).all()
    assert (process.thresholds() > 0).all()
