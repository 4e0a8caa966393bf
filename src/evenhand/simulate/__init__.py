"""The protocol of the paper, played: runs, and what they are compared by."""

from evenhand.simulate.diagnostics import PolicySet, policy_set, regret_in_set
from evenhand.simulate.run import Engine, Run, simulate

__all__ = ["Engine", "PolicySet", "Run", "policy_set", "regret_in_set", "simulate"]
