"""Nominating: on later people only, few at a time, none twice; and the doubly robust loss behind
it.
"""

import numpy as np
import pytest

from evenhand import CertifiedLearner, FalsePositiveRate, LabelledSample, Linear, Prices, simulate
from evenhand.algorithms.certified import nominate
from evenhand.algorithms.certified.nominate import _thinned, logit_shift, shifted
from evenhand.environments import Replay
from evenhand.estimation import RoundLog
from evenhand.hypotheses import linear


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


@pytest.mark.thorough
def test_it_learns_and_keeps_the_limit(run, world):
    assert run.worst_gap <= 0.1
    assert run.losses[-1] < 0.75 * run.losses[0]


def test_few_are_nominated_and_none_decides_like_another(run, world):
    members = run.learner.state.process.members
    assert 1 <= len(members) <= 40
    table = np.array([member.accepts(world.population_sample().features) for member in members])
    alike = (table[:, np.newaxis] == table).mean(axis=2) - np.eye(len(members))
    assert alike.max() < 1.0


def test_a_nomination_is_judged_by_later_people_only(run):
    process = run.learner.state.process
    assert (process.state.rounds <= run.learner.round).all()
    assert (np.diff(process.state.rounds) <= 0).all()
    booked = [entry for entry in run.learner.bookings if "nominated" in entry.process]
    assert len(booked) == len(process.members)


@pytest.mark.parametrize(("prices", "towards"), [(Prices(4.0, 1.0), 0.0), (Prices(1.0, 4.0), 1.0)])
def test_the_first_nominee_leans_towards_the_better_constant(world, prices, towards, monkeypatch):
    """Negative control: without the tilt it accepts as many as the others do."""

    def acceptance(tilt):
        monkeypatch.setattr(nominate, "TILT", tilt)
        learner = CertifiedLearner(
            Linear(), FalsePositiveRate(), 0.1, 0.05, horizon=100_000, prices=prices
        )
        members = simulate(learner, world, 1_500, 0, 0.1).learner.state.process.members
        return members[0].accepts(world.population_sample().features).mean()

    assert abs(acceptance(3.0) - towards) < abs(acceptance(1.0) - towards) - 0.03


def test_a_nomination_takes_few_fits(world, monkeypatch):
    """Two limits share what was fitted for either: 12 fits and a few, not 12 and 12."""
    fits, binds, fit, bind = [], [], linear.fit_logistic, nominate.bind_fair
    monkeypatch.setattr(linear, "fit_logistic", lambda *rows: fits.append(1) or fit(*rows))
    monkeypatch.setattr(
        nominate, "bind_fair", lambda *given, **more: binds.append(1) or bind(*given, **more)
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
    assert short.learner.state.process is None or not short.learner.state.process.members


def test_thinning_keeps_the_counts(monkeypatch):
    monkeypatch.setattr(nominate, "MOST_LABELLED", 50)
    monkeypatch.setattr(nominate, "MOST_OTHERS", 20)
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
