"""Simulated runs of learners, and comparisons of many runs."""

from evenhand.simulation.comparison import (
    Comparison,
    GuaranteeCost,
    LearnerRuns,
    Summary,
    Tradeoff,
    compare,
    guarantee_cost,
    tradeoff,
)
from evenhand.simulation.named import (
    LEARNERS,
    POPULATIONS,
    Entry,
    Setting,
    make_environment,
    make_learner,
)
from evenhand.simulation.record import (
    PolicySet,
    RunRecord,
    guarantees,
    policy_set,
    record,
    regret_in_set,
)
from evenhand.simulation.run import Engine, LabelDelays, Run, simulate, simulate_late

__all__ = [
    "LEARNERS",
    "POPULATIONS",
    "Comparison",
    "Engine",
    "Entry",
    "GuaranteeCost",
    "LabelDelays",
    "LearnerRuns",
    "PolicySet",
    "Run",
    "RunRecord",
    "Setting",
    "Summary",
    "Tradeoff",
    "compare",
    "guarantee_cost",
    "guarantees",
    "make_environment",
    "make_learner",
    "policy_set",
    "record",
    "regret_in_set",
    "simulate",
    "simulate_late",
    "tradeoff",
]
