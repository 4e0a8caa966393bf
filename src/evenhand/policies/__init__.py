"""Policies: probability distributions over hypotheses, and weights over policies."""

from evenhand.policies.mixture import DeployedPolicy, Mixture, PolicyWeights

__all__ = ["DeployedPolicy", "Mixture", "PolicyWeights"]
