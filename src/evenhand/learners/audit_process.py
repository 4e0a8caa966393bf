"""A fixed-count bound as an interval process: audit rounds alone, looked at when exactly N_1 < N_2 < ... of them have closed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.contracts import Hypothesis
from evenhand.fairness.bounds.betting_records import EpochPlan
from evenhand.fairness.bounds.fixed_count import AuditCounts, FixedCountBound, PresetLooks
from evenhand.fairness.rates import Rate
from evenhand.learners.codec import storable
from evenhand.learners.cohorts import OUTSIDE, ClosedCohort
from evenhand.learners.processes import MemberTables, Outlook, Prepared
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray

storable(PresetLooks)


@storable
@dataclass(eq=False)
class AuditTotals:
    """Sums over the audits taken so far: accepted, doubtful_accepted (members, rates * groups) and people, doubtful (rates, groups);
    "doubtful" are people whose label has not come, `lost` people who were erased. lo, hi (gaps, members): the intersection of all looks."""

    accepted: FloatArray
    doubtful_accepted: FloatArray
    people: FloatArray
    doubtful: FloatArray
    lo: FloatArray
    hi: FloatArray
    audits: int = 0
    look: int = 0
    lost: float = 0.0

    @classmethod
    def none(cls, members: int, rates: int, groups: int) -> "AuditTotals":
        """Before the first audit."""
        per_member, per_cell, gaps = (members, rates * groups), (rates, groups), rates * groups * (groups - 1) // 2
        sums = (np.zeros(per_member), np.zeros(per_member), np.zeros(per_cell), np.zeros(per_cell))
        return cls(*sums, np.full((gaps, members), -1.0), np.full((gaps, members), 1.0))


@storable
@dataclass(eq=False)
class AuditProcess:
    """Intervals from the first N_k audits. Rounds of a cohort are exchangeable given the coin, so where a look ends inside a cohort, a
    random part of its audits is taken."""

    bound: FixedCountBound
    members: tuple[Hypothesis, ...]
    groups: tuple[Any, ...]
    rates: tuple[Rate, ...]
    failure_probability: float
    columns: int
    log_size: float
    generator: np.random.Generator
    group_decides: bool = False
    looks: PresetLooks = field(default_factory=PresetLooks)
    totals: AuditTotals | None = None

    def __post_init__(self) -> None:
        self._tables = MemberTables(self.members)
        self._sums = self.totals or AuditTotals.none(len(self.members), len(self.rates), len(self.groups))
        self.totals = self._sums

    def table(self, features: FloatArray, group: GroupArray | None) -> BoolArray:
        """(members, rows): who accepts whom."""
        return self._tables.on(features, group)

    @property
    def name(self) -> str:
        """The bound's name."""
        return f"{self.bound.name} on audit rounds"

    @property
    def params(self) -> Mapping[str, Any]:
        """Its constants."""
        looks = {"first_look": self.looks.first, "growth": self.looks.growth}
        return {**self.bound.params, "hypotheses": len(self.members), **looks}

    @property
    def audits(self) -> int:
        """Audits taken so far."""
        return self._sums.audits

    def plan(self, outlook: Outlook) -> EpochPlan | None:
        """Nothing is to be fixed: looks and shares are preset."""
        return None

    def update(self, cohort: ClosedCohort, prepared: Prepared) -> None:
        """Take the cohort's audits, look by look. Erased ones keep their places among them, in a column of their own at the end."""
        codes = np.append(cohort.codes(self.groups), OUTSIDE)
        kinds = np.stack([cohort.audited_positive, cohort.audited_negative, cohort.audited_unresolved])
        left = np.zeros((3, len(codes)), dtype=np.int64)
        left[:, :-1] = np.where(codes[:-1] >= 0, kinds, 0.0)
        left[2, -1] = cohort.lost_audited
        accepts = self.table(cohort.features, cohort.group if self.group_decides else None).astype(np.float64)
        accepts = np.concatenate([accepts, np.zeros((len(accepts), 1))], axis=1)
        while left.sum() > 0:
            room = self.looks.count(self._sums.look + 1) - self._sums.audits
            taken = left if left.sum() <= room else self._part(left, room)
            self._add(accepts, codes, taken)
            left = left - taken
            if self._sums.audits == self.looks.count(self._sums.look + 1):
                self._look()

    def _part(self, left: IntArray, room: int) -> IntArray:
        """A random part of the audits, `room` of them."""
        return self.generator.multivariate_hypergeometric(left.ravel(), room, method="marginals").reshape(left.shape)

    def _add(self, accepts: FloatArray, codes: IntArray, taken: IntArray) -> None:
        sums = self._sums
        sums.audits += int(taken.sum())
        sums.lost += float(taken[2, -1])
        for r, rate in enumerate(self.rates):
            positive, negative = rate.in_denominator(np.array([1, -1]))
            sure = taken[0] * positive + taken[1] * negative + taken[2] * (positive and negative)
            doubt = taken[2] * (not (positive and negative))
            for j in range(len(self.groups)):
                cell, here = r * len(self.groups) + j, codes == j
                sums.accepted[:, cell] += accepts @ np.where(here, sure, 0.0)
                sums.doubtful_accepted[:, cell] += accepts @ np.where(here, doubt, 0.0)
                sums.people[r, j] += sure[here].sum()
                sums.doubtful[r, j] += doubt[here].sum()

    def _look(self) -> None:
        sums = self._sums
        sums.look += 1
        counts = AuditCounts.of(
            sums.accepted,
            sums.people,
            signs=np.array([rate.sign for rate in self.rates]),
            unresolved_accepted=sums.doubtful_accepted + sums.lost,
            unresolved=sums.doubtful + 2.0 * sums.lost,
        )  # an erased person may be in any denominator, and accepted or rejected there: the worst of both, in every group
        delta = self.looks.share(sums.look, self.failure_probability)
        found = self.bound.intervals(counts, failure_probability=delta, log_size=self.log_size, columns=self.columns)
        sums.lo, sums.hi = np.maximum(sums.lo, found.low.T), np.minimum(sums.hi, found.high.T)

    def intervals(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """The intersection over looks."""
        return self._sums.lo, self._sums.hi, np.asarray((self._sums.lo > self._sums.hi).any(axis=0))

    def thresholds(self) -> FloatArray:
        """ln(2 M / delta) with delta of the next look: what a joint Hoeffding bound would need."""
        delta = self.looks.share(self._sums.look + 1, self.failure_probability)
        return np.full(self._sums.lo.shape, self.log_size + np.log(2.0 / delta))

    @property
    def rounds(self) -> FloatArray:
        """Audits are counted, rounds are not."""
        return np.zeros(len(self.members))
