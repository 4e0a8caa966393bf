"""Nominating: on later people only, few at a time, none twice; and the doubly robust loss behind
it.
"""

import numpy as np
import pytest

from evenhand import CertifiedLearner, FalsePositiveRate, LabelledSample, Linear, Prices, simulate
from evenhand.environments import Replay
from evenhand.estimation import RoundLog, doubly_robust, one_sided
from evenhand.estimation.outcomes import ConstantOutcome, LogisticOutcome
from evenhand.hypotheses import linear
from evenhand.learners.certified import nomination
from evenhand.learners.certified.nomination import _thinned, logit_shift, shifted


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(1)
    group = rng.choice(["a", "b"], 3000)
    quality = rng.normal(size=3000)
    features = np.c_[
        quality + 0.7 * rng.normal(size=3000) + 0.3 * (group == "a"), rng.normal(size=(3000, 3))
    ]
    label = np.where(quality + 0.5 * rng.normal(size=3000) > 0.2, 1, -1)
    return Replay(LabelledSample(features, group, label), hypotheses=Linear())


@pytest.fixture(scope="module")
def run(world):
    return simulate(
        CertifiedLearner(Linear(), FalsePositiveRate(), 0.1, 0.05, horizon=20_000),
        world,
        20_000,
        0,
        0.1,
    )


def test_it_learns_and_keeps_the_limit(run, world):
    assert run.worst_gap <= 0.1
    assert run.losses[-1] < 0.75 * run.losses[0]


def test_few_are_nominated_and_none_decides_like_another(run, world):
    members = run.learner.state.run.process.members
    assert 1 <= len(members) <= 40
    table = np.array([member.accepts(world.population_sample().features) for member in members])
    alike = (table[:, np.newaxis] == table).mean(axis=2) - np.eye(len(members))
    assert alike.max() < 1.0


def test_a_nomination_is_judged_by_later_people_only(run):
    process = run.learner.state.run.process
    assert (process.state.rounds <= run.learner.round).all()
    assert (np.diff(process.state.rounds) <= 0).all()
    booked = [entry for entry in run.learner.bookings if "nominated" in str(entry)]
    assert len(booked) == len(process.members)


@pytest.mark.parametrize(("prices", "towards"), [(Prices(4.0, 1.0), 0.0), (Prices(1.0, 4.0), 1.0)])
def test_the_first_nominee_leans_towards_the_better_constant(world, prices, towards, monkeypatch):
    """Negative control: without the tilt it accepts as many as the others do."""

    def acceptance(tilt):
        monkeypatch.setattr(nomination, "TILT", tilt)
        learner = CertifiedLearner(
            Linear(), FalsePositiveRate(), 0.1, 0.05, horizon=100_000, prices=prices
        )
        members = simulate(learner, world, 1_500, 0, 0.1).learner.state.run.process.members
        return members[0].accepts(world.population_sample().features).mean()

    assert abs(acceptance(3.0) - towards) < abs(acceptance(1.0) - towards) - 0.03


def test_a_nomination_takes_few_fits(world, monkeypatch):
    """Two limits share what was fitted for either: 12 fits and a few, not 12 and 12."""
    fits, binds, fit, bind = [], [], linear.fit_logistic, nomination.bind_fair
    monkeypatch.setattr(linear, "fit_logistic", lambda *rows: fits.append(1) or fit(*rows))
    monkeypatch.setattr(
        nomination, "bind_fair", lambda *given, **more: binds.append(1) or bind(*given, **more)
    )
    simulate(
        CertifiedLearner(Linear(), FalsePositiveRate(), 0.1, 0.05, horizon=10_000),
        world,
        10_000,
        1,
        0.1,
    )
    assert len(binds) >= 3
    assert len(fits) <= 15 * len(binds)


def test_nothing_is_nominated_from_a_handful_of_labels(world):
    learner = CertifiedLearner(Linear(), FalsePositiveRate(), 0.1, 0.05, horizon=1_000)
    short = simulate(learner, world, 150, 0, 0.1)
    assert short.learner.state.run.process is None or not short.learner.state.run.process.members


def test_thinning_keeps_the_counts(monkeypatch):
    monkeypatch.setattr(nomination, "MOST_LABELLED", 50)
    monkeypatch.setattr(nomination, "MOST_OTHERS", 20)
    accept = np.arange(400) % 2 == 0
    log = RoundLog.from_rounds(np.arange(400.0)[:, np.newaxis], accept, np.ones(200, int), 0.5)
    thin = _thinned(log)
    assert len(thin) == 70
    assert thin.positive.sum() == pytest.approx(200)
    assert thin.rejected.sum() == pytest.approx(200)


def test_the_shift_agrees_with_what_was_seen():
    rng = np.random.default_rng(0)
    chance = rng.uniform(0.1, 0.9, 20_000)
    happened = rng.random(20_000) < shifted(chance, 0.7)
    assert logit_shift(chance, happened, np.ones(20_000)) == pytest.approx(0.7, abs=0.05)


def test_contexts_that_the_policy_avoids_are_foretold_by_a_regression():
    """Repeated rows, labels only where x < 0, nearly all good there: a table would take the others,
    nearly all bad, for good ones.
    """
    from evenhand.estimation.outcomes import TabularOutcome, fit_outcomes

    rng = np.random.default_rng(0)
    x = rng.choice(np.linspace(-2, 2, 200), 4_000)
    accept = (x < 0) | (rng.random(4_000) < 0.01)
    label = np.where(rng.random(4_000) < 1 / (1 + np.exp(-4 * x)), -1, 1)
    log = RoundLog.from_rounds(x[:, np.newaxis], accept, label[accept], np.where(x < 0, 1.0, 0.01))
    assert not isinstance(fit_outcomes(log), TabularOutcome)
    assert fit_outcomes(log).negative_probability(np.array([[1.5]]))[0] > 0.9
    everybody = RoundLog.from_rounds(x[:, np.newaxis], np.ones(4_000, bool), label, 1.0)
    assert isinstance(fit_outcomes(everybody), TabularOutcome)


# the doubly robust loss


def log_of(rng, rows, acceptance, truth):
    features = rng.normal(size=(rows, 1))
    p = acceptance(features[:, 0])
    accept = rng.random(rows) < p
    label = np.where(rng.random(rows) < truth(features[:, 0]), -1, 1)
    return RoundLog.from_rounds(features, accept, label[accept], p)


def true_negative(x):
    return 1 / (1 + np.exp(-x))


def test_without_weights_to_cap_it_is_right_whatever_the_regression_says():
    """20,000 rounds, p between .2 and 1: standard error .006."""
    rng = np.random.default_rng(3)
    log = log_of(rng, 20_000, lambda x: np.where(x > 0, 0.2, 1.0), true_negative)
    rule = log.features[:, 0] < 0.3
    truth = float(((2 * true_negative(log.features[:, 0]) - 1) * rule).mean() / 2)
    for regression in (
        ConstantOutcome(0.9),
        LogisticOutcome(np.zeros(1), np.ones(1), np.ones(1), 0.0),
    ):
        loss, _ = doubly_robust(log, regression)
        assert loss.acceptance_cost @ rule / loss.rounds == pytest.approx(truth, abs=0.025)


def test_with_capped_weights_a_good_regression_saves_it():
    """p = .02 where x > 0: the capped one-sided estimate is far off, the doubly robust one is not."""
    rng = np.random.default_rng(4)
    log = log_of(rng, 20_000, lambda x: np.where(x > 0, 0.02, 1.0), true_negative)
    rule = np.ones(len(log))
    truth = float((2 * true_negative(log.features[:, 0]) - 1).mean() / 2)
    regression = LogisticOutcome(np.zeros(1), np.ones(1), np.ones(1), 0.0)
    robust, variance = doubly_robust(log, regression, cap=10.0)
    capped = one_sided(
        RoundLog(
            log.features,
            None,
            np.maximum(log.acceptance, 0.1),
            log.rejected,
            log.positive,
            log.negative,
        )
    )
    assert abs(robust.acceptance_cost @ rule / robust.rounds - truth) < 0.02
    assert abs(capped.acceptance_cost @ rule / capped.rounds - truth) > 0.05
    assert (variance > 0).all()


def test_labels_of_everybody_leave_no_room_for_the_regression():
    log = RoundLog.from_rounds([[0.0], [1.0]], [True, True], [1, -1], 1.0)
    with_bad, _ = doubly_robust(log, ConstantOutcome(0.99))
    np.testing.assert_allclose(with_bad.acceptance_cost, one_sided(log).acceptance_cost)
