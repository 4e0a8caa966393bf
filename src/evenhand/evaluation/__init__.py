"""Logs in, logs out: what selectively labelled logs say about another policy, and the formats that
other tools read and write.
"""

from evenhand.evaluation.decision_log import DecisionLog
from evenhand.evaluation.estimates import Evaluation
from evenhand.evaluation.evaluate import Candidate, evaluate
from evenhand.evaluation.log_files import from_obp, read_log, to_obp, write_log, write_parquet

__all__ = [
    "Candidate",
    "DecisionLog",
    "Evaluation",
    "evaluate",
    "from_obp",
    "read_log",
    "to_obp",
    "write_log",
    "write_parquet",
]
