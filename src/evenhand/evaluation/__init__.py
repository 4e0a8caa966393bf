"""Logs in, logs out: what selectively labelled logs say about another policy, and the formats that
other tools read and write.
"""

from evenhand.evaluation.decision_log import DecisionLog
from evenhand.evaluation.evaluate import Candidate, Evaluation, evaluate
from evenhand.evaluation.log_files import from_obp, read_log, to_obp, write_log, write_parquet
from evenhand.evaluation.measure import (
    Measurement,
    PolicyMeasurement,
    RateMeasure,
    measure_decisions,
    measure_policy,
)
from evenhand.evaluation.policy_files import PolicyFile

__all__ = [
    "Candidate",
    "DecisionLog",
    "Evaluation",
    "Measurement",
    "PolicyFile",
    "PolicyMeasurement",
    "RateMeasure",
    "evaluate",
    "from_obp",
    "measure_decisions",
    "measure_policy",
    "read_log",
    "to_obp",
    "write_log",
    "write_parquet",
]
