"""Logs in, logs out: what selectively labelled logs say about another policy, and the formats that
other tools read and write.
"""

from evenhand.evaluation.candidate import Candidate
from evenhand.evaluation.decision_log import DecisionLog
from evenhand.evaluation.evaluate import evaluate
from evenhand.evaluation.figures import Evaluation
from evenhand.evaluation.formats import from_obp, read_log, to_obp, write_log

__all__ = [
    "Candidate",
    "DecisionLog",
    "Evaluation",
    "evaluate",
    "from_obp",
    "read_log",
    "to_obp",
    "write_log",
]
