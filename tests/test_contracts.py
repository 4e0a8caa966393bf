"""What the contracts bring along, and which classes keep them."""

import inspect
from typing import Protocol

import numpy as np
import pytest

from evenhand import (
    CertifiedLearner,
    CostSensitiveProblem,
    FalsePositiveRate,
    FiniteClass,
    LabelledSample,
    Linear,
    ScoreThresholds,
    Stumps,
    TwoPhaseLearner,
    contracts,
)
from evenhand.contracts import (
    Enumeration,
    Hypothesis,
    HypothesisClass,
    Partitioning,
    Rate,
    RowOracle,
    SupportsErasure,
    SupportsLateGroups,
    SupportsOverrule,
    SupportsStorage,
)
from evenhand.errors import CannotEstimateRate
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, Threshold
from evenhand.policies import Mixture

PROTOCOLS = [
    kind
    for _, kind in inspect.getmembers(contracts, inspect.isclass)
    if kind is not Protocol and getattr(kind, "_is_protocol", False)
]
ROWS = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0]])


@pytest.mark.parametrize("kind", PROTOCOLS, ids=lambda kind: kind.__name__)
def test_every_contract_has_an_example_and_every_member_says_what_it_is(kind):
    assert ">>>" in kind.__doc__
    for name, member in vars(kind).items():
        if name.startswith("_") or not (callable(member) or isinstance(member, property)):
            continue
        documented = inspect.getdoc(member)
        assert documented, name
        takes = inspect.isfunction(member) and len(inspect.signature(member).parameters) > 1
        assert not takes or "Parameters\n----------" in documented, name


@pytest.mark.parametrize("rule", [ACCEPT_ALL, REJECT_ALL, Threshold(0, 2.0, 2)])
def test_rules_of_ours_are_hypotheses(rule):
    assert isinstance(rule, Hypothesis)
    assert not isinstance(rule.accepts, Hypothesis)


@pytest.mark.parametrize(
    ("hypotheses", "kinds"),
    [
        (Stumps(), {Enumeration}),
        (ScoreThresholds(), {Enumeration}),
        (Linear(), {Partitioning}),
        (FiniteClass([lambda features, group: features[:, 0] > 2]), {Enumeration}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_bound_classes_are_what_they_say(hypotheses, kinds):
    bound = hypotheses.bind(ROWS, None)
    assert isinstance(bound, RowOracle)
    assert {kind for kind in (Enumeration, Partitioning) if isinstance(bound, kind)} == kinds


def test_a_class_that_can_only_bind_answers_a_problem():
    class OnlyBinds(HypothesisClass):
        exact, uses_group = True, False

        def bind(self, features, group):
            return Stumps().bind(features, group)

    problem = CostSensitiveProblem(ROWS, None, [0, 0, 1, 1], [1, 1, 0, 0])
    rule = OnlyBinds().best(problem)
    assert rule.accepts(ROWS).tolist() == [False, False, True, True]
    assert problem.cost(rule.accepts(ROWS).astype(float)) == 0.0


class Spared(Rate):
    """P(rejected | group, y = -1): what a stranger writes."""

    name, symbol, denominator_name = "true negative rate", "TNR", "negatives (label -1)"
    sign, offset = -1, 1.0

    @staticmethod
    def in_denominator(label):
        return label == -1


def test_a_rate_needs_no_more_than_who_counts_and_the_sign():
    sample = LabelledSample(ROWS, ["a", "a", "b", "b"], [-1, -1, -1, 1], [1, 3, 2, 5])
    weights = Spared().group_weights(sample)
    np.testing.assert_allclose(weights, [[-0.25, -0.75, 0, 0], [0, 0, -1, 0]])
    np.testing.assert_allclose(weights, -FalsePositiveRate().group_weights(sample))
    assert isinstance(Spared(), Rate)


def test_a_rate_that_cannot_be_estimated_says_who_is_missing():
    nobody = LabelledSample(ROWS, ["a", "a", "b", "b"], [-1, -1, 1, 1])
    with pytest.raises(CannotEstimateRate, match=r"'b' .* 0 negatives"):
        Spared().group_weights(nobody)
    with pytest.raises(CannotEstimateRate, match="groups"):
        Spared().group_weights(LabelledSample(ROWS, ["a"] * 4, [-1, -1, 1, 1]))


def test_a_learner_has_a_capability_by_having_its_method():
    every = {SupportsOverrule, SupportsErasure, SupportsLateGroups, SupportsStorage}
    has = {
        kind: {capability for capability in every if issubclass(kind, capability)}
        for kind in (CertifiedLearner, TwoPhaseLearner, Mixture)
    }
    assert has == {
        CertifiedLearner: every,
        TwoPhaseLearner: every,
        Mixture: set(),
    }
