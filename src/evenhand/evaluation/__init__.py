"""Logs in, logs out: what selectively labelled logs say about another policy, and the formats that
other tools read and write.
"""

from evenhand.evaluation.decision_log import DecisionLog
from evenhand.evaluation.evaluate import Candidate, Evaluation, evaluate
from evenhand.evaluation.gates import GateLedger, GateResult, gate
from evenhand.evaluation.impact_table import ImpactRow, ImpactTable, impact
from evenhand.evaluation.log_files import (
    from_obp,
    read_log,
    to_obp,
    write_log,
    write_parquet,
)
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
    "GateResult",
    "GroupMeasure",
    "ImpactRow",
    "ImpactTable",
    "Measurement",
    "PairMeasure",
    "PolicyFile",
    "RateMeasure",
    "evaluate",
    "from_obp",
    "gate",
    "impact",
    "measure",
    "measure_policy",
    "read_log",
    "to_obp",
    "write_log",
    "write_parquet",
]
