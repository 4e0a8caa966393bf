"""Populations with a known truth: what people are drawn from, and what each policy's loss and gaps
really are.
"""

from evenhand.environments.examples import (
    LowerBound,
    at_the_limit,
    avoided_region,
    hard,
    lending,
    random_population,
    rare_labels,
    score_ladder,
    small_group,
    threshold_population,
)
from evenhand.environments.population import (
    ContextCounts,
    Discrete,
    Population,
    Replay,
    TablePopulation,
)
from evenhand.environments.scores import ScoreGroup, Scores

__all__ = [
    "ContextCounts",
    "Discrete",
    "LowerBound",
    "Population",
    "Replay",
    "ScoreGroup",
    "Scores",
    "TablePopulation",
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
