"""The protocol of the paper, played: runs, and what they are compared by."""

from evenhand.simulate.compare import (
    Comparison,
    LearnerRuns,
    PromiseCost,
    Summary,
    Tradeoff,
    compare,
    promise_cost,
    tradeoff,
)
from evenhand.simulate.named import (
    LEARNERS,
    POPULATIONS,
    Entry,
    Setting,
    make_environment,
    make_learner,
)
from evenhand.simulate.record import (
    PolicySet,
    RunRecord,
    Trail,
    policy_set,
    promises,
    record,
    regret_in_set,
    trail,
)
from evenhand.simulate.run import Engine, LabelDelays, Run, simulate, simulate_late

__all__ = [
    "LEARNERS",
    "POPULATIONS",
    "Comparison",
    "Engine",
    "Entry",
    "LabelDelays",
    "LearnerRuns",
    "PolicySet",
    "PromiseCost",
    "Run",
    "RunRecord",
    "Setting",
    "Summary",
    "Tradeoff",
    "Trail",
    "compare",
    "make_environment",
    "make_learner",
    "policy_set",
    "promise_cost",
    "promises",
    "record",
    "regret_in_set",
    "simulate",
    "simulate_late",
    "tradeoff",
    "trail",
]
