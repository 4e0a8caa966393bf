"""From logged rounds to the estimated loss of every policy."""

from evenhand.estimation.apple_tasting import TransformedLoss
from evenhand.estimation.doubly_robust import doubly_robust
from evenhand.estimation.importance import PAPER_LOSS, EstimatedLoss, one_sided, two_sided
from evenhand.estimation.log import RoundLog

__all__ = [
    "PAPER_LOSS",
    "EstimatedLoss",
    "RoundLog",
    "TransformedLoss",
    "doubly_robust",
    "one_sided",
    "two_sided",
]
