"""Confidence bounds on the gaps of hypotheses, each with its theorem and its proof.

`betting` uses every round and holds at all times at once; `joint_binomial` looks once at a fixed
sample, as does `slack`, which is one number for all hypotheses.
"""

from evenhand.bounds.betting import (
    BettingBound,
    BettingState,
    EpochPlan,
    Forecast,
    GapIntervals,
    GroupJoin,
)
from evenhand.bounds.betting_wealth import AcceptedRounds, Cohort
from evenhand.bounds.slack import (
    ClopperPearson,
    Dkw,
    JointHoeffding,
    Shortfall,
    SlackBound,
    people_needed,
)

__all__ = [
    "AcceptedRounds",
    "BettingBound",
    "BettingState",
    "ClopperPearson",
    "Cohort",
    "Dkw",
    "EpochPlan",
    "Forecast",
    "GapIntervals",
    "GroupJoin",
    "JointHoeffding",
    "Shortfall",
    "SlackBound",
    "people_needed",
]
