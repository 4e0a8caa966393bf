"""A model with a cut-off of its own in each group: what it offers, and that it is no worse than the
post-processing that the field knows.
"""

from itertools import product

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import evenhand as eh
from evenhand.errors import InvalidInput
from evenhand.hypotheses import PerGroupCuts, class_from_json, class_to_json, hypothesis_from_json
from evenhand.testing import check_hypothesis_class

MODELS = {
    "linear": eh.Linear(),
    "logistic": eh.Estimator(LogisticRegression()),
    "tree": eh.Estimator(DecisionTreeClassifier(max_depth=3)),
    "boosting": eh.Estimator(GradientBoostingClassifier(n_estimators=5)),
    "pipeline": eh.Estimator(make_pipeline(StandardScaler(), LogisticRegression())),
    "decision function": eh.Estimator(make_pipeline(StandardScaler(), RidgeClassifier())),
    "stumps": eh.Stumps(),
}


def people(rows=600, seed=0):
    r = np.random.default_rng(seed)
    features = r.normal(size=(rows, 3))
    group = np.where(r.random(rows) < 0.4, "b", "a")
    noise = 0.7 * r.normal(size=rows)
    good = features[:, 0] - 1.2 * (group == "b") + 0.5 * features[:, 1] + noise > 0
    return features, group, good.astype(int)


@pytest.mark.parametrize(
    "name",
    ["linear", "logistic", "tree", pytest.param("pipeline", marks=pytest.mark.thorough), "stumps"],
)
def test_it_keeps_what_a_class_owes(name):
    check_hypothesis_class(PerGroupCuts(MODELS[name]))


@pytest.mark.parametrize("name", MODELS)
def test_the_best_is_the_cheapest_of_all_cuts(name):
    """By trying every pair of cut-offs, one for each group."""
    features, group, _ = people(rows=40)
    cost = np.random.default_rng(3).normal(size=40)
    bound = PerGroupCuts(MODELS[name]).bind(features, group)
    found = bound.partition(cost)
    length = found.cells // found.chains
    if found.ordered:
        cuts = [np.arange(length) >= first for first in range(length + 1)]
        choices = [np.concatenate(pair) for pair in product(cuts, cuts)]
        least = min(cost[choice[found.cell]].sum() for choice in choices)
    else:
        least = np.minimum(np.bincount(found.cell, cost, found.cells), 0).sum()
    best = bound.best(cost).accepts(features, group)
    assert cost[best].sum() == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_rules_accept_their_cells_wherever_a_row_stands(name):
    """A cut of a score lies between two people: alone, reversed or among all, a person is decided
    about in the same way.
    """
    features, group, _ = people(rows=60)
    cost = np.random.default_rng(4).normal(size=60)
    bound = PerGroupCuts(MODELS[name]).bind(features, group)
    found = bound.partition(cost)
    length = found.cells // found.chains
    choice = np.concatenate([np.arange(length) >= length // 3, np.arange(length) >= length // 2])
    rule = found.hypothesis(choice)
    expected = choice[found.cell]
    np.testing.assert_array_equal(rule.accepts(features, group), expected)
    np.testing.assert_array_equal(rule.accepts(features[::-1], group[::-1]), expected[::-1])
    alone = [bool(rule.accepts(features[i : i + 1], group[i : i + 1])[0]) for i in range(60)]
    assert alone == expected.tolist()
    again = hypothesis_from_json(rule.to_json())
    np.testing.assert_array_equal(again.accepts(features, group), expected)


@pytest.mark.parametrize(
    ("rate", "constraint"),
    [
        ("fpr", "false_positive_rate_parity"),
        ("demographic_parity", "demographic_parity"),
        pytest.param("equalized_odds", "equalized_odds", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.parametrize("model", ["logistic", "tree", "boosting"])
def test_no_less_accurate_than_fairlearns_threshold_optimizer(model, rate, constraint):
    """The same model, gap 0, on the training table. The mixture is the best of all pairs of
    cut-offs of the model's score, ThresholdOptimizer's the best that its grid holds.
    """
    post = pytest.importorskip("fairlearn.postprocessing")
    features, group, outcome = people()
    inner = MODELS[model].classifier
    fair = eh.FairClassifier(inner, rate, 0.0, group_use="decide")
    fair.fit(features, outcome, sensitive_features=group)
    assert max(map(abs, fair.gaps_.values())) <= 1e-9
    theirs = post.ThresholdOptimizer(
        estimator=inner, constraints=constraint, grid_size=600, predict_method="auto"
    ).fit(features, outcome, sensitive_features=group)
    right = theirs._pmf_predict(features, sensitive_features=group)[np.arange(600), outcome]
    assert fair.score(features, outcome, sensitive_features=group) >= right.mean() - 1e-3
    # What the model can do with one cut-off for all and group classifiers: less.
    single = eh.solve_fair(
        eh.Prices().problem(features, group, np.where(outcome == 1, 1, -1)),
        MODELS[model],
        eh.fairness.rates.as_rates(rate),
        eh.LabelledSample(features, group, np.where(outcome == 1, 1, -1)),
        0.0,
        group_use="decide",
    )
    assert fair.cost_ < single.cost - 0.5


def test_it_needs_the_group():
    features, group, outcome = people(rows=60)
    label = np.where(outcome == 1, 1, -1)
    with pytest.raises(InvalidInput, match="group"):
        PerGroupCuts(eh.Linear()).bind(features, None)
    with pytest.raises(InvalidInput, match="decide"):
        eh.solve_fair(
            eh.Prices().problem(features, group, label),
            PerGroupCuts(eh.Linear()),
            "fpr",
            eh.LabelledSample(features, group, label),
            0.1,
        )


def test_it_survives_json():
    for rules in (eh.Linear(), eh.Stumps(), eh.Estimator(LogisticRegression(C=0.5))):
        written = class_to_json(PerGroupCuts(rules))
        assert class_to_json(class_from_json(written)) == written
