"""The protocol of the paper, played: runs, and what they are compared by."""

from evenhand.simulate.compare import Comparison, LearnerRuns, Summary, compare
from evenhand.simulate.diagnostics import PolicySet, policy_set, regret_in_set
from evenhand.simulate.record import RunRecord
from evenhand.simulate.run import Engine, Run, simulate
from evenhand.simulate.tradeoff import Tradeoff, tradeoff

__all__ = [
    "Comparison",
    "Engine",
    "LearnerRuns",
    "PolicySet",
    "Run",
    "RunRecord",
    "Summary",
    "Tradeoff",
    "compare",
    "policy_set",
    "regret_in_set",
    "simulate",
    "tradeoff",
]
