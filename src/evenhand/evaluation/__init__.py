"""What decisions that were made show, and what their log says about another policy."""

from evenhand.evaluation.decision_log import DecisionLog
from evenhand.evaluation.evaluate import Candidate, Evaluation, evaluate
from evenhand.evaluation.gates import GateLedger, gate
from evenhand.evaluation.impact_table import ImpactRow, ImpactTable, impact
from evenhand.evaluation.log_files import read_log, write_log
from evenhand.evaluation.measurement import (
    GroupMeasure,
    Measurement,
    PairMeasure,
    RateMeasure,
    measure,
    measure_policy,
)
from evenhand.evaluation.policy_files import PolicyFile

__all__ = [
    "Candidate",
    "DecisionLog",
    "Evaluation",
    "GateLedger",
    "GroupMeasure",
    "ImpactRow",
    "ImpactTable",
    "Measurement",
    "PairMeasure",
    "PolicyFile",
    "RateMeasure",
    "evaluate",
    "gate",
    "impact",
    "measure",
    "measure_policy",
    "read_log",
    "write_log",
]
