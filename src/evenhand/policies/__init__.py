"""Policies: probability distributions over hypotheses, and weights over policies."""

from evenhand.policies.mixture import DeployedPolicy, Mixture
from evenhand.policies.weights import PolicyWeights

__all__ = ["DeployedPolicy", "Mixture", "PolicyWeights"]
