"""From logged rounds to the estimated loss of every policy."""

from evenhand.estimation.apple_tasting import TransformedLoss
from evenhand.estimation.doubly_robust import doubly_robust
from evenhand.estimation.importance import PAPER_LOSS, EstimatedLoss, one_sided, two_sided
from evenhand.estimation.log import RoundLog
from evenhand.estimation.precision import cost_variances

__all__ = [
    "PAPER_LOSS",
    "EstimatedLoss",
    "RoundLog",
    "TransformedLoss",
    "cost_variances",
    "doubly_robust",
    "one_sided",
    "two_sided",
]
