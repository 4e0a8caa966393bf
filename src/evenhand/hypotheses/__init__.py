"""Hypothesis classes, each a CSC oracle, and the hypotheses they answer with."""

from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL, Constant, GroupClassifier
from evenhand.hypotheses.estimator import Estimator, Fitted, Tree
from evenhand.hypotheses.finite import Called, FiniteClass, TableRow
from evenhand.hypotheses.linear import Linear, LinearRule
from evenhand.hypotheses.named import CLASSES, ClassLike, as_class
from evenhand.hypotheses.per_group import PerGroupCuts
from evenhand.hypotheses.serialise import (
    class_from_json,
    class_to_json,
    hypothesis_from_json,
    policy_from_json,
)
from evenhand.hypotheses.thresholds import PerGroup, ScoreThresholds, Stumps, Threshold

__all__ = [
    "ACCEPT_ALL",
    "CLASSES",
    "REJECT_ALL",
    "Called",
    "ClassLike",
    "Constant",
    "Estimator",
    "FiniteClass",
    "Fitted",
    "GroupClassifier",
    "Linear",
    "LinearRule",
    "PerGroup",
    "PerGroupCuts",
    "ScoreThresholds",
    "Stumps",
    "TableRow",
    "Threshold",
    "Tree",
    "as_class",
    "class_from_json",
    "class_to_json",
    "hypothesis_from_json",
    "policy_from_json",
]
