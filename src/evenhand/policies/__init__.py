"""Policies: probability distributions over hypotheses, weights over policies, and why a policy
decides as it does.
"""

from evenhand.policies.explanation import Explanation, SourceColumn, explain
from evenhand.policies.mixture import (
    DeployedPolicy,
    Mixture,
    PolicyWeights,
    models_apart,
    models_inside,
)
from evenhand.policies.reason_words import ReasonWords

__all__ = [
    "DeployedPolicy",
    "Explanation",
    "Mixture",
    "PolicyWeights",
    "ReasonWords",
    "SourceColumn",
    "explain",
    "models_apart",
    "models_inside",
]
