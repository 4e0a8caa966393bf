"""Rich models inside both learners: fitted on earlier people, judged on later ones."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from evenhand import (
    CertifiedLearner,
    Estimator,
    FalsePositiveRate,
    LabelledSample,
    Linear,
    Stumps,
    TwoPhaseLearner,
    simulate,
)
from evenhand.environments import Replay
from evenhand.errors import InvalidInput
from evenhand.learners.fitted import candidates, score_cuts
from evenhand.tables import read_table

RATE = FalsePositiveRate()


@pytest.fixture(scope="module")
def world():
    return Replay.of_table(read_table("lending").encoded(), Linear())


@pytest.fixture(scope="module")
def audits(world):
    return world.draw(1_500, np.random.default_rng(0))


def tree():
    return Estimator(DecisionTreeClassifier(max_depth=3, min_samples_leaf=20, random_state=0))


def test_cuts_of_a_fitted_score_are_ordered(audits):
    cuts = score_cuts(audits, 16)
    shares = [rule.accepts(audits.features).mean() for rule in cuts.listed]
    assert len(cuts) == 16
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("kind", [Linear, tree, Stumps], ids=["linear", "tree", "stumps"])
def test_candidates_are_few_and_different(audits, kind):
    found = candidates(audits, kind(), RATE)
    table = np.array([rule.accepts(audits.features) for rule in found.listed])
    assert 1 <= len(found) <= 24
    assert len(np.unique(table, axis=0)) == len(found)


@pytest.mark.parametrize(
    "make", [lambda s: score_cuts(s), lambda s: candidates(s, tree(), RATE)], ids=["score", "tree"]
)
def test_both_learners_keep_their_promise_with_them(world, audits, make):
    rules = make(audits)
    for learner in (
        CertifiedLearner(rules, RATE, 0.1, 0.05),
        TwoPhaseLearner(rules, RATE, 0.25, 0.05, 12_000, comparator_gap=0.05),
    ):
        run = simulate(learner, world, 12_000, 0, 0.05)
        assert run.worst_gap <= (0.1 if isinstance(learner, CertifiedLearner) else 0.25)
        assert run.losses[-1] < run.losses[0]


@pytest.mark.parametrize("kind", [Linear, tree], ids=["linear", "tree"])
def test_the_certified_learner_fits_by_itself(world, kind):
    run = simulate(CertifiedLearner(kind(), RATE, 0.1, 0.05), world, 8_000, 0, 0.1)
    assert run.worst_gap <= 0.1
    assert run.learner.state.run.process.members


def test_lightgbm_inside_the_certified_learner(world):
    pytest.importorskip("lightgbm")
    from evenhand.hypotheses.boosting import lightgbm_class

    run = simulate(
        CertifiedLearner(lightgbm_class(n_estimators=10), RATE, 0.1, 0.05), world, 4_000, 0, 0.1
    )
    assert run.worst_gap <= 0.1
    assert run.learner.state.run.process.members


def test_nothing_to_fit_is_said():
    blank = LabelledSample(np.zeros((40, 1)), ["a", "b"] * 20, [1, 1, -1, -1] * 10)
    with pytest.raises(InvalidInput, match="nothing to cut"):
        score_cuts(blank)
    with pytest.raises(InvalidInput, match="no rule of the class"):
        candidates(blank, Linear(), RATE)
