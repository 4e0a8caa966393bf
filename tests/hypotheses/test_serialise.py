import json

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.play import WORLD

from evenhand.errors import InvalidInput, NotSerialisable
from evenhand.hypotheses import (
    ACCEPT_ALL,
    REJECT_ALL,
    Constant,
    Estimator,
    FiniteClass,
    GroupClassifier,
    Linear,
    LinearRule,
    PerGroup,
    ScoreThresholds,
    Stumps,
    TableRow,
    Threshold,
    Tree,
    class_from_json,
    class_to_json,
    hypothesis_from_json,
    policy_from_json,
)
from evenhand.policies import Mixture
from evenhand.testing import through_text

EVERY_KIND = [
    Constant(True),
    GroupClassifier("b"),
    GroupClassifier(-1),
    TableRow((True, False, True)),
    Threshold(1, 0.1 + 0.2, 3, at_least=False),
    PerGroup((("a", Threshold(0, 1e-300, 1)), ("b", REJECT_ALL))),
    LinearRule((1 / 3, -2.0), 1e17),
    Tree((0, -1, -1), (1 / 7, 0.0, 0.0), (1, -1, -1), (2, -1, -1), (False, False, True), 1),
]


@pytest.mark.parametrize("hypothesis", EVERY_KIND, ids=lambda h: type(h).__name__)
def test_round_trip_is_the_identity(hypothesis):
    assert hypothesis_from_json(through_text(hypothesis.to_json())) == hypothesis


def test_mixture_round_trip_is_the_identity():
    mixture = Mixture(tuple(EVERY_KIND[:3]), (0.1, 0.2, 1 - 0.1 - 0.2), "decide")
    assert policy_from_json(through_text(mixture.to_json())) == mixture


def test_unknown_kinds_list_the_known_ones():
    for data in ({"kind": "forest"}, {}, [], "text", {"kind": None}):
        with pytest.raises(InvalidInput, match="per-group"):
            hypothesis_from_json(data)
    with pytest.raises(InvalidInput, match="mixture"):
        policy_from_json(ACCEPT_ALL.to_json())


def test_missing_and_malformed_fields_are_named():
    with pytest.raises(InvalidInput, match="'value'"):
        hypothesis_from_json({"kind": "threshold", "column": 0})
    with pytest.raises(InvalidInput, match="malformed"):
        hypothesis_from_json({"kind": "linear", "weights": 3, "threshold": 0.0})
    with pytest.raises(InvalidInput, match="probability distribution"):
        policy_from_json(
            {
                "kind": "mixture",
                "group_use": "decide",
                "parts": [{"weight": 2.0, "hypothesis": ACCEPT_ALL.to_json()}],
            }
        )


def test_decisions_are_the_same_after_a_round_trip():
    x = np.random.default_rng(0).normal(size=(50, 2))
    rule = LinearRule((0.1, 0.7), 0.3)
    assert np.array_equal(
        hypothesis_from_json(through_text(rule.to_json())).accepts(x), rule.accepts(x)
    )


# classes


@pytest.mark.parametrize(
    "hypotheses",
    [
        WORLD.hypotheses,
        Stumps(max_bins=8),
        ScoreThresholds(1),
        FiniteClass([ACCEPT_ALL, Threshold(0, 0.3, 3), Threshold(1, -0.2, 3, at_least=False)]),
        ScoreThresholds(2, per_group=True),
        Linear(0.5),
        Estimator(DecisionTreeClassifier(max_depth=3)),
        Estimator(LogisticRegression(C=0.1)),
        Estimator(make_pipeline(StandardScaler(), LogisticRegression())),
        Estimator(RandomForestClassifier(n_estimators=3)),
    ],
    ids=repr,
)
def test_classes_go_through_json(hypotheses):
    data = class_to_json(hypotheses)
    read = class_from_json(json.loads(json.dumps(data)))
    if "classifier_params" in read.params:  # a pipeline's parts are named by their addresses
        assert repr(read.classifier) == repr(hypotheses.classifier)
    else:
        assert read.params == hypotheses.params
        assert class_to_json(read) == data


@pytest.mark.parametrize(
    "hypotheses",
    [
        FiniteClass([lambda x, g: x[:, 0] < 2, ACCEPT_ALL]),
        Estimator(make_pipeline(FunctionTransformer(lambda rows: rows), LogisticRegression())),
    ],
    ids=lambda h: type(h).__name__,
)
def test_what_is_no_data_says_so(hypotheses):
    with pytest.raises(NotSerialisable):
        class_to_json(hypotheses)


def test_classes_of_one_s_own_are_handed_over_again():
    class Mine(Stumps):
        pass

    with pytest.raises(NotSerialisable):
        class_to_json(Mine())


@pytest.mark.parametrize(
    "where",
    [
        ("os", "system"),
        ("sklearn.base", "clone"),
        ("sklearn.linear_model", "Ridge"),
        ("sklearnish.evil", "X"),
    ],
)
def test_nothing_but_classifiers_of_scikit_learn_is_made_from_a_name(where):
    with pytest.raises(InvalidInput):
        class_from_json({"kind": "estimator", "module": where[0], "name": where[1], "settings": {}})
