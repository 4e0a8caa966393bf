"""A quota is a hard count, never exceeded, and spread over its period."""

from dataclasses import replace

import numpy as np
import pytest
from tests.play import WORLD

import evenhand as eh
from evenhand.algorithms.certified import hard_counts
from evenhand.algorithms.certified.quota import Quota
from evenhand.errors import InvalidInput
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL


def played(learner, people, block, per_period, seed=3):
    """Accepted people per period, by their places in it."""
    sample = WORLD.draw(people, np.random.default_rng(seed))
    period = np.arange(people) // per_period
    accept = np.zeros(people, dtype=bool)
    start = 0
    while start < people:
        stop = min(start + block, people, (start // per_period + 1) * per_period)
        rows = slice(start, stop)
        at = float(period[start])
        decisions = learner.decide(sample.features[rows], sample.group[rows], at=at)
        accept[rows] = decisions.accept
        chosen = start + np.flatnonzero(decisions.accept)
        learner.observe(chosen, sample.label[chosen], at=at)
        start = stop
    return accept, period


def certified(**settings):
    return eh.CertifiedLearner(WORLD.hypotheses, "fpr", 0.2, 0.05, **{"seed": 1, **settings})


@pytest.mark.parametrize("block", [1, 7, 1000])
@pytest.mark.parametrize("people", [None, 200])
def test_it_is_never_exceeded(block, people):
    learner = certified(quota=Quota(30, period=1.0, people=people))
    accept, period = played(learner, 1250, block, 250)
    counts = np.bincount(period, weights=accept)
    assert counts.max() <= 30
    assert counts.sum() > 100


def test_it_is_spread_over_the_period():
    """In the last fifth of the periods about a fifth of the people are accepted, and not none."""
    learner = certified(quota=Quota(50, period=1.0, people=500))
    accept, _ = played(learner, 6000, 50, 500)
    late = np.arange(6000) % 500 >= 400
    assert accept[late].sum() > 0.1 * accept.sum()


def test_control_without_an_aim_the_first_take_all():
    learner = certified(quota=Quota(50, period=1.0, people=50))
    accept, _ = played(learner, 3000, 50, 500)
    late = np.arange(3000) % 500 >= 400
    assert accept[late].sum() < 0.05 * accept.sum()


def test_blocks_give_the_same_decisions_where_labels_come_at_the_same_rounds():
    found = []
    for block in (1, 7, 250):
        learner = certified(quota=Quota(20, period=1.0, people=250), maturity=1.0)
        found.append(played(learner, 1500, block, 250)[0])
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


def test_whoever_comes_after_it_is_used_up_was_rejected_for_certain_by_a_record_of_its_own():
    learner = certified(quota=Quota(10, period=1.0, people=20))
    played(learner, 1000, 100, 500)
    rounds = learner.rounds
    spent = [e for e in learner.report.epochs if e.phase == "quota used up"]
    assert spent
    for epoch in spent:
        assert epoch.mixture.weight_of(REJECT_ALL) == 1.0
        rows = rounds["epoch"] == epoch.number
        assert (rounds["acceptance"][rows] == 0).all()
    assert any("quota" in text for text in learner.certificate.assumptions)


def test_the_quota_outranks_the_floor():
    learner = certified(quota=Quota(5, period=1.0, people=500), accept_at_least=0.3)
    accept, period = played(learner, 1500, 50, 500)
    assert np.bincount(period, weights=accept).max() <= 5
    assert "suspended: the quota outranks it" in learner.certificate.claim


def test_it_is_stored(tmp_path):
    learner = certified(quota=Quota(20, period=1.0, people=250))
    played(learner, 900, 50, 250)
    learner.save(tmp_path / "x")
    again = eh.load(tmp_path / "x", same_coins=True)
    people = WORLD.draw(100, np.random.default_rng(9))
    both = [one.decide(people.features, people.group, at=4.0) for one in (learner, again)]
    assert (both[0].accept == both[1].accept).all()
    assert again.params["quota"] == {"count": 20, "period": 1.0, "people": 250}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((0, 1.0), "count is 0"),
        ((2.5, 1.0), "count is 2.5"),
        ((5, 0.0), "period is 0.0"),
        ((5, float("nan")), "period is nan"),
        ((5, 1.0, 0), "people is 0"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(given, said):
    with pytest.raises(InvalidInput, match=said):
        Quota(*given)


def test_a_quota_that_is_none_is_refused():
    with pytest.raises(InvalidInput, match="quota is 50"):
        certified(quota=50)


def test_it_needs_the_time():
    with pytest.raises(InvalidInput, match="time"):
        certified(quota=Quota(5, 1.0)).decide(WORLD.features, WORLD.group)


def test_periods_begin_where_they_begin():
    rounds = certified(quota=Quota(5, 0.1)).rounds
    quota = Quota(5, 0.1)
    rounds.append(
        epoch=1,
        features=np.zeros((3, 1)),
        group=None,
        accept=np.ones(3, dtype=bool),
        acceptance=np.ones(3),
        at=0.3,
    )
    assert quota.left(rounds, 0.3) == 2
    assert quota.left(rounds, 0.45) == 5
    assert quota.aim(rounds, 0.45) == 1.0  # five of three


@pytest.mark.thorough
def test_variants_are_on_record_before_the_first_coin_and_accept_less_by_the_coin_alone():
    """What a service publishes at once is what `gate` would open one by one."""
    learner = eh.CertifiedLearner(
        eh.ScoreThresholds(0),
        "selection",
        0.3,
        0.05,
        audit_budget=400,
        quota=Quota(10_000, period=1.0),
        seed=2,
    )
    draw = np.random.default_rng(4)
    while learner.round < 1000:
        score = draw.random((100, 1))
        decided = learner.decide(score, np.where(draw.random(100) < 0.5, "a", "b"), at=0.5)
        rows = decided.first_round + np.flatnonzero(decided.accept)
        label = np.where(draw.random(100) < score[:, 0], 1, -1)
        learner.observe(rows, label[decided.accept])
    algorithm, state, rounds = learner.algorithm, learner.state, learner.rounds
    planned = state.planned
    assert 0.0 < planned.epoch.audit < 1.0
    number = planned.epoch.number
    after, (paused, spent, plan) = algorithm.with_variants(state, planned.epoch, rounds)
    assert [one.number for one in (paused, spent, plan)] == [number, number + 1, number + 2]
    assert plan.mixture == planned.epoch.mixture
    assert after.planned.epoch == plan
    people = np.linspace(0, 1, 50)[:, np.newaxis]
    accepted = plan.mixture.acceptance(people) - plan.mixture.weight_of(ACCEPT_ALL)
    assert paused.mixture.acceptance(people) == pytest.approx(accepted)
    assert not spent.mixture.acceptance(people).any()
    records = [after.records[one.number] for one in (paused, spent, plan)]
    assert records[2] is state.records[number]
    for one, flags in ((paused, {"audits_open": False}), (spent, {"quota_open": False})):
        gated, epoch = hard_counts.variant(replace(state, **flags), rounds, 99)
        assert epoch.mixture == one.mixture
        assert epoch.phase == one.phase
        assert np.array_equal(gated.records[99].labelled, after.records[one.number].labelled)
    assert {one.end for one in (paused, spent, plan)} == {planned.epoch.end}


def test_without_counts_an_epoch_stands_alone():
    learner = eh.CertifiedLearner(eh.ScoreThresholds(0), "selection", 0.3, 0.05)
    rounds = learner.rounds
    state, epochs = learner.algorithm.with_variants(learner.state, rounds.epoch, rounds)
    assert epochs == (rounds.epoch,)
    assert state.planned.epoch == rounds.epoch
