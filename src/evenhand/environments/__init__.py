"""Populations with a known truth: what people are drawn from, and what each policy's loss and gaps
really are.
"""

from evenhand.environments.difficult import (
    at_the_limit,
    avoided_region,
    rare_labels,
    score_ladder,
    small_group,
)
from evenhand.environments.discrete import ContextCounts, Discrete
from evenhand.environments.lower_bound import LowerBound
from evenhand.environments.named import hard, lending, random_population, threshold_population
from evenhand.environments.replay import Replay
from evenhand.environments.scores import ScoreGroup, Scores

__all__ = [
    "ContextCounts",
    "Discrete",
    "LowerBound",
    "Replay",
    "ScoreGroup",
    "Scores",
    "at_the_limit",
    "avoided_region",
    "hard",
    "lending",
    "random_population",
    "rare_labels",
    "score_ladder",
    "small_group",
    "threshold_population",
]
