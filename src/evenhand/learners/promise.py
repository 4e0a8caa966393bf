"""What is promised: the constants that every part of a certified life refers to."""

from dataclasses import dataclass

from evenhand.contracts import GroupUse
from evenhand.fairness.delta_ledger import life_share
from evenhand.fairness.rates import Rate
from evenhand.learners.codec import storable

RESERVE = 0.1
"""The share of delta (and of the false alarms) kept for lives after a suspension; see docs/decisions/0004."""


@storable
@dataclass(frozen=True)
class Promise:
    """|gap| <= limit for all `rates` and pairs of groups, with probability at least 1 - failure_probability, judged by `bound`."""

    rates: tuple[Rate, ...]
    limit: float
    failure_probability: float
    bound: str
    group_use: GroupUse
    maturity: float | None
    drift_false_alarm: float
    seed: int

    @property
    def group_decides(self) -> bool:
        """Whether hypotheses see the group."""
        return self.group_use == "decide"

    @property
    def nominates(self) -> bool:
        """Whether hypotheses are nominated one by one instead of all at once."""
        return self.bound == "nominate"

    def share(self, life: int) -> float:
        """delta_r of life r."""
        return life_share(self.failure_probability, life, reserve=RESERVE)

    def false_alarm(self, life: int) -> float:
        """The drift monitor's false-alarm probability in life r."""
        return life_share(self.drift_false_alarm, life, reserve=RESERVE)

    def pairs(self, groups: tuple[object, ...]) -> list[tuple[Rate, int, int]]:
        """(rate, earlier, later) of each gap, in the order of all intervals."""
        size = len(groups)
        return [(rate, j, k) for rate in self.rates for j in range(size) for k in range(j + 1, size)]
