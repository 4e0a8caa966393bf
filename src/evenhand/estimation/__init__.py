"""From logged rounds to the estimated loss of every policy."""

from evenhand.estimation.apple_tasting import TransformedLoss
from evenhand.estimation.importance import PAPER_LOSS, EstimatedLoss, one_sided, two_sided
from evenhand.estimation.log import RoundLog

__all__ = ["PAPER_LOSS", "EstimatedLoss", "RoundLog", "TransformedLoss", "one_sided", "two_sided"]
