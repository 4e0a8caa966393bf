"""The protocol of the paper, played: runs, and what they are compared by."""

from evenhand.simulate.compare import Comparison, LearnerRuns, Summary, compare
from evenhand.simulate.delays import LabelDelays, simulate_late
from evenhand.simulate.diagnostics import PolicySet, policy_set, regret_in_set
from evenhand.simulate.promise import PromiseCost, promise_cost
from evenhand.simulate.record import RunRecord
from evenhand.simulate.run import Engine, Run, simulate
from evenhand.simulate.tradeoff import Tradeoff, tradeoff
from evenhand.simulate.trail import Trail, trail

__all__ = [
    "Comparison",
    "Engine",
    "LabelDelays",
    "LearnerRuns",
    "PolicySet",
    "PromiseCost",
    "Run",
    "RunRecord",
    "Summary",
    "Tradeoff",
    "Trail",
    "compare",
    "policy_set",
    "promise_cost",
    "regret_in_set",
    "simulate",
    "simulate_late",
    "tradeoff",
    "trail",
]
