"""FairClassifier keeps scikit-learn's contract and evenhand's limit."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import evenhand as eh

RANDOM = "predictions are draws from a mixture"


class Grouped(eh.FairClassifier):
    """For scikit-learn's own checks, which know no groups: every second row is of the other one."""

    def fit(self, X, y, sample_weight=None):
        rows = np.asarray(y).shape[0] if y is not None else 0
        return super().fit(X, y, sensitive_features=np.arange(rows) % 2, sample_weight=sample_weight)


def table(seed=0, rows=1200):
    r = np.random.default_rng(seed)
    features = r.normal(size=(rows, 3))
    group = np.where(r.random(rows) < 0.4, "b", "a")
    outcome = np.where(features[:, 0] - 0.6 * (group == "b") + r.normal(size=rows) > 0, "repaid", "default")
    return features, group, outcome


def fpr_gap(accepted, group, outcome):
    bad = outcome == "default"
    return accepted[bad & (group == "b")].mean() - accepted[bad & (group == "a")].mean()


@pytest.mark.parametrize(
    "estimator", [None, eh.Stumps(), LogisticRegression(), DecisionTreeClassifier(max_depth=3, random_state=0)]
)
def test_the_limit_holds_on_the_training_table(estimator):
    features, group, outcome = table()
    model = eh.FairClassifier(estimator, "fpr", 0.03).fit(features, outcome, sensitive_features=group)
    chances = model.predict_proba(features)
    assert list(model.classes_) == ["default", "repaid"]
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert abs(fpr_gap(chances[:, 1], group, outcome)) <= 0.03 + 1e-9
    assert sum(part.weight for part in model.components_) == pytest.approx(1)
    assert len(model.components_) <= 3
    assert model.gaps_["FPR b - a"] == pytest.approx(fpr_gap(chances[:, 1], group, outcome))
    assert "accept" in model.describe()


def test_predictions_are_draws_that_a_seed_repeats():
    features, group, outcome = table()
    model = eh.FairClassifier(eh.Stumps(), "fpr", 0.01).fit(features, outcome, sensitive_features=group)
    one, two = model.predict(features, random_state=3), model.predict(features, random_state=3)
    assert (one == two).all()
    share = np.mean([model.predict(features, random_state=s) == "repaid" for s in range(200)], axis=0)
    assert np.abs(share - model.predict_proba(features)[:, 1]).max() < 6 * 0.5 / np.sqrt(200)


def test_prices_weights_and_odds():
    features, group, outcome = table()
    dear = eh.FairClassifier(prices=eh.Prices(false_accept=10.0)).fit(features, outcome, sensitive_features=group)
    even = eh.FairClassifier().fit(features, outcome, sensitive_features=group)
    assert dear.predict_proba(features)[:, 1].mean() < even.predict_proba(features)[:, 1].mean()
    odds = eh.FairClassifier(rate="equalised-odds", allowed_gap=0.04).fit(features, outcome, sensitive_features=group)
    assert max(abs(gap) for gap in odds.gaps_.values()) <= 0.04 + 1e-9
    twice = np.r_[features, features], np.r_[outcome, outcome], np.r_[group, group]
    doubled = eh.FairClassifier(eh.Stumps()).fit(twice[0], twice[1], sensitive_features=twice[2])
    weighted = eh.FairClassifier(eh.Stumps()).fit(
        features, outcome, sensitive_features=group, sample_weight=np.full(len(group), 2.0)
    )
    np.testing.assert_allclose(doubled.predict_proba(features), weighted.predict_proba(features))


def test_works_in_a_pipeline_and_is_cloned():
    features, group, outcome = table()
    pipeline = make_pipeline(StandardScaler(), eh.FairClassifier(LogisticRegression(), allowed_gap=0.02))
    pipeline.fit(features, outcome, fairclassifier__sensitive_features=group)
    assert abs(fpr_gap(pipeline.predict_proba(features)[:, 1], group, outcome)) <= 0.02 + 1e-9
    assert clone(pipeline[-1]).allowed_gap == 0.02


def test_frames_are_welcome():
    pandas = pytest.importorskip("pandas")
    features, group, outcome = table()
    frame = pandas.DataFrame(features, columns=["income", "debt", "age"])
    model = eh.FairClassifier(eh.Stumps()).fit(frame, pandas.Series(outcome), sensitive_features=pandas.Series(group))
    assert "income" in model.describe()
    np.testing.assert_array_equal(model.predict_proba(frame), model.predict_proba(frame.copy()))


def test_refusals():
    features, group, outcome = table()
    with pytest.raises(eh.InvalidInput, match="sensitive_features is None"):
        eh.FairClassifier().fit(features, outcome)
    with pytest.raises(eh.InvalidInput, match="rate is 'tpr'"):
        eh.FairClassifier(rate="tpr").fit(features, outcome, sensitive_features=group)
    with pytest.raises(eh.BadLabel, match="3 classes"):
        eh.FairClassifier().fit(features, np.arange(len(group)) % 3, sensitive_features=group)


def test_scikit_learns_own_checks():
    """Everything in check_estimator that applies: draws cannot be invariant to order or subsets."""
    draws = (
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_fit_idempotent",
        "check_fit2d_1sample",
    )
    random = dict.fromkeys(draws, RANDOM) | {
        "check_sample_weight_equivalence_on_dense_data": "repeated rows fall into other groups here"
    }
    results = check_estimator(
        Grouped(eh.Stumps(), "selection", random_state=0), expected_failed_checks=random, on_fail=None, on_skip=None
    )
    failed = [r["check_name"] for r in results if r["status"] == "failed"]
    assert failed == []
