"""Every class of the package crossed with every requirement of its contract."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand.hypotheses import (
    ACCEPT_ALL,
    REJECT_ALL,
    Estimator,
    FiniteClass,
    GroupClassifier,
    Linear,
    ScoreThresholds,
    Stumps,
)
from evenhand.testing import (
    ClassCase,
    check_hypothesis_class,
    draw_features,
    hypothesis_class_requirements,
)

TABLE = np.vstack(
    [np.ones(4, bool), np.zeros(4, bool), np.random.default_rng(0).random((20, 4)) < 0.5]
)

CLASSES = {
    "table": FiniteClass.from_table(TABLE),
    "table without constants": FiniteClass.from_table(TABLE[2:]),
    "callables": FiniteClass(
        [lambda x, g: x[:, 1] > 0, lambda x, g: x[:, 2] < 1, ACCEPT_ALL, REJECT_ALL]
    ),
    "callables that see the group": FiniteClass(
        [lambda x, g: g == "a", GroupClassifier("b")], uses_group=True
    ),
    "thresholds": ScoreThresholds(),
    "thresholds with ties": ScoreThresholds(column=2),
    "thresholds per group": ScoreThresholds(column=1, per_group=True),
    "stumps": Stumps(),
    "binned stumps": Stumps(max_bins=5),
    "linear": Linear(),
    "strongly penalised linear": Linear(penalty=1.0),
    "tree": Estimator(DecisionTreeClassifier(max_depth=4)),
    "full tree": Estimator(DecisionTreeClassifier()),
    "naive Bayes": Estimator(GaussianNB()),
}
SLOW = {
    "logistic": Estimator(LogisticRegression()),
    "pipeline": Estimator(make_pipeline(StandardScaler(), LogisticRegression())),
    "forest": Estimator(RandomForestClassifier(3)),
    "boosting": Estimator(GradientBoostingClassifier(n_estimators=3)),
}


def crossed():
    for seed in (0, 1):
        features = draw_features(seed)
        group = np.random.default_rng(seed).choice(["a", "b"], size=len(features))
        for name, hypotheses in CLASSES.items():
            case = ClassCase(hypotheses, features, group, seed)
            for law_name, requirement in hypothesis_class_requirements(case):
                yield pytest.param(requirement, case, id=f"{name} {law_name} {seed}")


@pytest.mark.parametrize(("requirement", "case"), list(crossed()))
def test_requirement_holds(requirement, case):
    requirement(case)


@pytest.mark.parametrize("name", SLOW)
def test_heavier_classes_keep_all_requirements(name):
    features = draw_features(3, rows=24)
    assert len(check_hypothesis_class(SLOW[name], features=features, seed=3)) == 10


@pytest.mark.parametrize(
    "name", ["stumps", "binned stumps", "thresholds", "thresholds per group", "linear"]
)
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_requirements_hold_on_tiny_tables(name, rows):
    check_hypothesis_class(CLASSES[name], features=draw_features(rows, rows=rows))


def test_requirements_hold_on_columns_without_information():
    features = np.column_stack([np.full(12, 0.1), np.tile([1.0, 2.0, 3.0], 4), np.full(12, -7.0)])
    for hypotheses in (Stumps(), Linear(), ScoreThresholds(), Estimator(DecisionTreeClassifier())):
        check_hypothesis_class(hypotheses, features=features)


def test_exact_enumerable_classes_are_under_all_thirteen_requirements():
    assert len(check_hypothesis_class(Stumps())) == 13
    assert len(check_hypothesis_class(ScoreThresholds(per_group=True))) == 10
