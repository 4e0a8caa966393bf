import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand.errors import InvalidInput, NotFinite, UnsuitableEstimator
from evenhand.hypotheses import (
    ACCEPT_ALL,
    REJECT_ALL,
    Estimator,
    Fitted,
    LinearRule,
    Tree,
    hypothesis_from_json,
)
from evenhand.hypotheses.estimator import linear_of, normalised, tree_of
from evenhand.schema import Column, Schema
from evenhand.testing import through_text


def problem(seed=0, rows=300):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, 3))
    return x, np.where(x[:, 0] + draw.normal(size=rows) > 0, -1.0, 1.0) * draw.integers(0, 3, rows)


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers what it was fitted to."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        self.seen.append((X, y, sample_weight))
        return self

    def predict(self, X):
        return np.ones(len(X), int)


def test_the_reduction_to_weighted_classification():
    x, cost = np.array([[2.0], [1.0], [0.0], [3.0]]), np.array([-4.0, 2.0, 0.0, 6.0])
    Recorder.seen.clear()
    answer = Estimator(Recorder()).bind(x, None).best(cost)
    ((rows, label, weight),) = Recorder.seen
    assert rows[:, 0].tolist() == [1.0, 2.0, 3.0]
    assert label.tolist() == [0, 1, 0]
    np.testing.assert_allclose(weight / weight.sum(), np.array([2, 4, 6]) / 12)
    assert isinstance(answer, Fitted)
    assert answer.accepts(x).all()


def test_the_classifier_that_was_given_stays_unfitted():
    classifier = DecisionTreeClassifier()
    x, cost = problem()
    Estimator(classifier).bind(x, None).best(cost)
    assert not hasattr(classifier, "tree_")
    assert classifier.random_state is None


def test_tree_and_logistic_regression_become_plain():
    x, cost = problem()
    fresh = np.random.default_rng(9).normal(size=(500, 3))
    accept, weight = (cost < 0)[cost != 0], normalised(np.abs(cost))[cost != 0]
    for classifier, kind in (
        (DecisionTreeClassifier(max_depth=4, random_state=0), Tree),
        (LogisticRegression(), LinearRule),
    ):
        answer = Estimator(classifier).bind(x, None).best(cost)
        assert isinstance(answer, kind)
        other = classifier.fit(x[cost != 0], accept, sample_weight=weight).predict(fresh)
        assert np.mean(answer.accepts(fresh) == other) > 0.99


def test_logistic_regression_rejects_on_the_boundary_as_scikit_learn_does():
    class Zero:
        coef_, intercept_ = np.zeros((1, 2)), np.zeros(1)

    assert not linear_of(Zero()).accepts(np.ones((3, 2))).any()


def test_pipelines_stay_opaque_but_are_weighted():
    x, cost = problem()
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    answer = Estimator(pipeline).bind(x, None).best(cost)
    assert isinstance(answer, Fitted)
    plain = Estimator(LogisticRegression()).bind(x, None).best(cost)
    assert np.mean(answer.accepts(x) == plain.accepts(x)) > 0.97
    assert answer.accepts(x[:0]).shape == (0,)
    read = hypothesis_from_json(through_text(answer.to_json()))
    assert np.array_equal(read.accepts(x), answer.accepts(x))
    assert read.to_json() == answer.to_json()
    with pytest.raises(InvalidInput, match=r"2 columns.*3 columns"):
        answer.accepts(x[:, :2])


def test_one_sided_costs_are_answered_by_constants():
    bound = Estimator(DecisionTreeClassifier()).bind(np.eye(3), None)
    assert bound.best(np.array([-1.0, 0.0, -2.0])) == ACCEPT_ALL
    assert bound.best(np.array([1.0, 0.0, 2.0])) == REJECT_ALL
    assert bound.best(np.zeros(3)) == ACCEPT_ALL


def test_unset_random_state_does_not_make_answers_random():
    x, cost = problem()
    bound = Estimator(RandomForestClassifier(3)).bind(x, None)
    assert np.array_equal(bound.best(cost).accepts(x), bound.best(cost).accepts(x))


def test_tree_is_bit_for_bit_the_same_after_permuting_and_scaling():
    x, cost = problem(4)
    cost = cost * np.random.default_rng(1).random(len(cost))
    x = np.round(x, 1)
    best = Estimator(DecisionTreeClassifier()).bind(x, None).best(cost)
    order = np.random.default_rng(0).permutation(len(x))
    assert Estimator(DecisionTreeClassifier()).bind(x[order], None).best(cost[order]) == best
    assert all(
        Estimator(DecisionTreeClassifier()).bind(x, None).best(cost * s) == best
        for s in (1e-12, 3.7, 1e12)
    )


@pytest.mark.parametrize(
    ("classifier", "words"),
    [
        (KNeighborsClassifier(), "sample_weight.*LogisticRegression"),
        (make_pipeline(StandardScaler(), KNeighborsClassifier()), "sample_weight"),
        (DecisionTreeClassifier, r"DecisionTreeClassifier\(\)"),
        (object(), "fit, predict"),
        (LinearRegression(), "regressor"),
    ],
)
def test_unsuitable_estimators(classifier, words):
    with pytest.raises(UnsuitableEstimator, match=words):
        Estimator(classifier)


def test_params_are_plain_and_bounds_are_infinite():
    hypotheses = Estimator(make_pipeline(StandardScaler(), GaussianNB()))
    assert hypotheses.params["classifier"] == "Pipeline"
    assert all(
        v is None or isinstance(v, bool | int | float | str)
        for v in hypotheses.params["classifier_params"].values()
    )
    assert hypotheses.log_size == hypotheses.log_growth(10, 2) == math.inf
    with pytest.raises(NotFinite):
        hypotheses.bind(np.array([[np.nan]]), None)


def test_normalised_weights_forget_their_scale():
    weight = np.random.default_rng(0).random(50)
    for scale in (1e-300, 1e-12, 1e12, 1e300):
        assert np.array_equal(normalised(weight * scale), normalised(weight))
    assert normalised(np.zeros(3)).tolist() == [0, 0, 0]
    assert normalised(weight).mean() == pytest.approx(1.0)


def leaf_of(tree, row):
    """The stupid way: one row, one node at a time, in scikit-learn's precision."""
    node = 0
    while tree.column[node] >= 0:
        node = (
            tree.left[node]
            if float(np.float32(row[tree.column[node]])) <= tree.value[node]
            else tree.right[node]
        )
    return tree.accept[node]


@pytest.mark.parametrize("depth", [1, 3, 10, None])
@pytest.mark.parametrize("seed", range(4))
def test_a_tree_equals_scikit_learn_bit_for_bit_also_next_to_the_thresholds(depth, seed):
    draw = np.random.default_rng(seed)
    x, y = draw.normal(size=(400, 4)), draw.integers(0, 2, 400)
    model = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(
        x, y, sample_weight=draw.random(400)
    )
    tree = tree_of(model)
    inner = np.flatnonzero(model.tree_.feature >= 0)
    edges = draw.choice(model.tree_.threshold[inner], size=(400, 4))
    near = np.concatenate(
        [edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), edges * (1 + 1e-8), x]
    )
    assert np.array_equal(tree.accepts(near), model.predict(near) == 1)
    assert [leaf_of(tree, row) for row in near[:200]] == tree.accepts(near[:200]).tolist()
    read = hypothesis_from_json(through_text(tree.to_json()))
    assert read == tree
    assert hash(read) == hash(tree)


def test_a_tree_in_words():
    tree = Tree(
        (0, -1, 1, -1, -1),
        (30.5, 0, 2, 0, 0),
        (1, -1, 3, -1, -1),
        (2, -1, 4, -1, -1),
        (True, True, False, False, True),
        2,
    )
    assert (
        tree.describe(["age", "income"]) == "accept if (age <= 30.5) or (age > 30.5 and income > 2)"
    )
    leaf = Tree((-1,), (0.0,), (-1,), (-1,), (True,), 2)
    assert leaf.describe() == "accept all applicants"
    assert Tree((-1,), (0.0,), (-1,), (-1,), (False,), 2).describe() == "reject all applicants"
    assert leaf.accepts(np.zeros((3, 2))).tolist() == [True] * 3


def test_deep_trees_report_how_much_they_leave_out():
    draw = np.random.default_rng(0)
    model = DecisionTreeClassifier(random_state=0).fit(
        draw.normal(size=(300, 2)), draw.integers(0, 2, 300)
    )
    assert "other paths" in tree_of(model).describe()


def test_values_beyond_float32_go_right_without_noise():
    tree = Tree((0, -1, -1), (1.0, 0, 0), (1, -1, -1), (2, -1, -1), (False, False, True), 1)
    assert tree.accepts(np.array([[1e300], [-1e300]])).tolist() == [True, False]


def test_wrong_columns_of_a_tree_name_both_numbers():
    with pytest.raises(InvalidInput, match=r"3 columns.*2 columns"):
        Tree((-1,), (0.0,), (-1,), (-1,), (True,), 2).accepts(np.zeros((1, 3)))


def fitted(classifier, features, schema=None):
    cost = np.where(features[:, 0] > np.median(features[:, 0]), -1.0, 1.0)
    return Estimator(classifier, schema).bind(features, None).best(cost)


@pytest.mark.parametrize(
    ("transformer", "used"),
    [
        (make_column_transformer((StandardScaler(), [0, 2])), (0, 2)),
        (make_column_transformer((StandardScaler(), [0]), remainder="passthrough"), (0, 1, 2)),
        (make_column_transformer((StandardScaler(), [0]), ("drop", [1])), (0,)),
        (make_column_transformer((StandardScaler(), slice(0, 1))), (0, 1, 2)),
        (make_column_transformer((StandardScaler(), [True, False, False])), (0, 1, 2)),
        (make_column_transformer((StandardScaler(), [-1, 0])), (0, 2)),
    ],
    ids=["two", "remainder", "drop", "slice", "mask", "from the end"],
)
def test_a_pipeline_uses_the_columns_that_it_lets_through(transformer, used):
    features, _ = problem()
    rule = fitted(make_pipeline(transformer, GaussianNB()), features)
    assert isinstance(rule, Fitted)
    assert rule.columns_used == used
    assert hypothesis_from_json(through_text(rule.to_json())).columns_used == used


def test_a_pipeline_on_frames_uses_all_numbers_of_a_text():
    schema = Schema((Column("age"), Column("city", "text", length=12), Column("debt")))
    people = [
        {"age": float(n), "city": "Oslo" if n % 2 else "Roma", "debt": 1.0} for n in range(40)
    ]
    rows = schema.encode(people)
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["city"]))
    cost = np.where(rows[:, 0] % 2 == 1, -1.0, 1.0)
    model = Estimator(make_pipeline(encoder, LogisticRegression()), schema)
    rule = model.bind(rows, None).best(cost)
    assert rule.columns_used == (1, 2)


def test_models_that_do_not_say_less_use_every_column():
    features, _ = problem()
    assert fitted(GaussianNB(), features).columns_used == (0, 1, 2)
    tree = fitted(DecisionTreeClassifier(max_depth=1), features)
    assert tree.columns_used == (0,)
