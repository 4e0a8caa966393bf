"""Confidence bounds on the gaps of hypotheses, each with its theorem and its proof.

`betting` uses every round and holds at all times at once; `fixed_count` uses audit rounds alone, at
preset counts; `slack` is one number for all hypotheses of a fixed sample.
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
from evenhand.bounds.fixed_count import (
    AuditBinomial,
    AuditCounts,
    AuditDkw,
    AuditHoeffding,
    AuditIntervals,
    AuditKl,
    PresetLooks,
)
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
    "AuditBinomial",
    "AuditCounts",
    "AuditDkw",
    "AuditHoeffding",
    "AuditIntervals",
    "AuditKl",
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
    "PresetLooks",
    "Shortfall",
    "SlackBound",
    "people_needed",
]
