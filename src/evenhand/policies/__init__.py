"""Policies: probability distributions over hypotheses, and weights over policies."""

from evenhand.policies.mixture import (
    DeployedPolicy,
    Mixture,
    PolicyWeights,
    models_apart,
    models_inside,
)

__all__ = ["DeployedPolicy", "Mixture", "PolicyWeights", "models_apart", "models_inside"]
