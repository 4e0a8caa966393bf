"""From logged rounds to the estimated loss of every policy."""

from evenhand.estimation.log import RoundLog
from evenhand.estimation.loss import (
    PAPER_LOSS,
    EstimatedLoss,
    TransformedLoss,
    doubly_robust,
    one_sided,
    two_sided,
    with_more_rounds,
)

__all__ = [
    "PAPER_LOSS",
    "EstimatedLoss",
    "RoundLog",
    "TransformedLoss",
    "doubly_robust",
    "one_sided",
    "two_sided",
    "with_more_rounds",
]
