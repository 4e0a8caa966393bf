"""Simulated runs of learners, and comparisons of many runs."""

from evenhand.simulation.comparison import (
    Comparison,
    LearnerRuns,
    Summary,
    compare,
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
from evenhand.simulation.run import Engine, Run, simulate

__all__ = [
    "LEARNERS",
    "POPULATIONS",
    "Comparison",
    "Engine",
    "Entry",
    "LearnerRuns",
    "PolicySet",
    "Run",
    "RunRecord",
    "Setting",
    "Summary",
    "compare",
    "guarantees",
    "make_environment",
    "make_learner",
    "policy_set",
    "record",
    "regret_in_set",
    "simulate",
]
