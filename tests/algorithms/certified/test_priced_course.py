"""The expected run deploys what the learner deploys, and its evidence grows as the formulas say."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from evenhand import CertifiedLearner, FalseNegativeRate, FalsePositiveRate, simulate
from evenhand.algorithms.certified.notes import forecasts
from evenhand.algorithms.certified.priced_course import (
    _cells_of,
    _with_narrower_shares,
    expected_course,
)
from evenhand.environments import random_population
from evenhand.hypotheses import ACCEPT_ALL

WORLD = random_population(3, contexts=15, hypotheses=30)
START = 1_000


def inputs_after(rounds=START, rate=None, world=WORLD, **more):
    """What is known when the present epoch of a run begins, and the learner."""
    learner = CertifiedLearner(
        world.hypotheses, rate or FalsePositiveRate(), 0.05, 0.05, horizon=20_000, **more
    )
    learner = simulate(learner, world, rounds, 0, 0.05).learner
    algorithm = learner.algorithm
    table = learner.rounds
    people = algorithm._closed_people(learner.state, table)
    epoch = table.epoch
    return algorithm._inputs(learner.state, table, people, epoch.number, epoch.first_round), learner


def course_of(inputs, horizon=20_000.0, **more):
    return expected_course(inputs.prospect, *inputs.pooled, float(inputs.round), horizon, **more)


@pytest.mark.parametrize("rate", [FalsePositiveRate(), FalseNegativeRate()])
def test_the_first_epoch_ahead_is_the_one_that_is_deployed(rate):
    """Only the draws of costs differ. Negative control: the audits that the forecast for fitted
    classes expects are others.
    """
    inputs, learner = inputs_after(rate=rate)
    course = course_of(inputs)
    prospect = inputs.prospect
    floor = prospect.floor(inputs.round)
    audits = learner.epoch.mixture.weight_of(ACCEPT_ALL) - floor
    part = audits / (1.0 - floor - learner.learned_weight)
    assert course.weight[0] == pytest.approx(learner.learned_weight, abs=0.01)
    assert course.audit_part == pytest.approx(part, abs=0.03)
    assert abs(prospect.best(float(inputs.round), 20_000.0).audit_part - part) > 0.1


def test_the_evidence_of_an_epoch_by_sums_over_people():
    """I = l e / V(p), with V person by person, group by group."""
    inputs, _ = inputs_after()
    prospect = inputs.prospect
    length = 100.0
    course = course_of(inputs, inputs.round + length)
    p = course.final @ prospect.accepts
    for member in (2, 9, 17):
        V = 0.0
        for group in (0, 1):
            people = [i for i in range(len(p)) if prospect.group[i] == group]
            mass = sum(prospect.weight[i] * prospect.negative[i] for i in people)
            counted = [prospect.weight[i] * prospect.negative[i] for i in people]
            accepts = [prospect.accepts[member, i] for i in people]
            f = sum(w * h for w, h in zip(counted, accepts, strict=True)) / mass
            f = min(max(f, 0.01), 0.99)
            for i in people:
                m = prospect.negative[i]
                square = m * m + m * (1 - m) / p[i]
                V += prospect.weight[i] * (prospect.accepts[member, i] - f) ** 2 * square / mass**2
        gained = course.information[0, member] - prospect.present[0][0, member]
        assert gained == pytest.approx(length * prospect.efficiency[0, member] / V, rel=1e-9)


def test_intervals_stay_around_what_is_known_and_end_at_the_expected_gap():
    inputs, _ = inputs_after()
    prospect = inputs.prospect
    now = prospect.intervals(*prospect.present)
    for known, said in zip((prospect.lower, prospect.upper), now, strict=True):
        assert said == pytest.approx(known, abs=1e-3)
    information, skewness = prospect.present
    lower, upper = prospect.intervals(1e9 * information, skewness)
    sure = information > 0
    assert 0.5 * (lower + upper)[sure] == pytest.approx(prospect.gap[sure], abs=1e-3)


def test_weight_grows_and_nothing_is_left_out_up_to_the_horizon():
    inputs, _ = inputs_after()
    course = course_of(inputs)
    assert course.rounds[-1] == 20_000.0
    assert (np.diff(course.rounds) > 0).all()
    assert course.weight[-1] > course.weight[0]
    assert ((course.weight >= 0) & (course.weight <= 1)).all()
    assert 0 <= course.audit_part <= 1
    again = course_of(inputs)
    assert (course.weight == again.weight).all()


def test_a_budget_that_is_spent_leaves_the_floor():
    inputs, _ = inputs_after(rate=FalseNegativeRate())
    free, none = (course_of(inputs, budget=budget) for budget in (inf, 0.0))
    assert free.audit_part > 0.5
    assert none.audit_part == pytest.approx(0.0, abs=1e-9)
    assert none.weight[-1] < free.weight[-1]


def test_a_coin_that_is_fixed_is_not_raised():
    inputs, _ = inputs_after(rate=FalseNegativeRate(), audit_rate=0.1)
    raised, fixed = (course_of(inputs, more_audits=more) for more in (True, False))
    assert fixed.audit_part < raised.audit_part


def test_a_cap_holds_in_every_epoch_ahead():
    inputs, _ = inputs_after(accept_at_most=0.3)
    for horizon in (inputs.round + 100.0, 5_000.0):
        course = course_of(inputs, horizon)
        accepted = inputs.pooled[1].accepted_shares[2]
        assert course.final @ accepted <= 0.3 + 1e-6
    shares = inputs.pooled[1].accepted_shares
    narrower = _with_narrower_shares(inputs.pooled[1], 0.5).accepted_shares
    assert narrower[1] - narrower[2] == pytest.approx(0.5 * (shares[1] - shares[2]))
    assert (narrower[2] == shares[2]).all()


def test_the_cell_of_a_person_is_the_one_that_the_same_members_accept():
    rng = np.random.default_rng(0)
    cells = np.unique(rng.integers(0, 2, (9, 40)), axis=1).astype(float)
    people = rng.integers(0, cells.shape[1], 100)
    assert (_cells_of(cells, cells[:, people]) == people).all()


def test_nothing_is_expected_before_people_have_come():
    inputs, _ = inputs_after()
    nobody = replace(
        inputs.past,
        **{name: getattr(inputs.past, name)[:0] for name in ("features", "group", "weight")},
    )
    assert forecasts(replace(inputs, past=nobody)) == ()
