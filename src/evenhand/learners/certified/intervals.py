"""Interval processes: for a list of hypotheses, intervals for their true gaps that hold at all
times at once.

One contract, two kinds. Betting uses every round, whatever the policy did, and hypotheses may join
later with their own share of delta. A fixed-count bound uses audit rounds alone, looked at when
exactly N_1 < N_2 < ... of them have closed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from evenhand.bounds import (
    AuditBinomial,
    AuditCounts,
    AuditDkw,
    AuditHoeffding,
    AuditKl,
    BettingBound,
    BettingState,
    Cohort,
    EpochPlan,
    Forecast,
    GroupJoin,
    PresetLooks,
)
from evenhand.contracts import FixedCountBound, Hypothesis, Params
from evenhand.estimation.outcomes import (
    ConstantOutcome,
    LogisticOutcome,
    OutcomeRegression,
    TabularOutcome,
)
from evenhand.fairness.rates import Rate
from evenhand.learners.certified.evidence import OUTSIDE, ClosedCohort, PastPeople, group_codes
from evenhand.learners.storage import COUNT, GAP, PROBABILITY, storable, stored_as
from evenhand.words import BoolArray, FloatArray, Group, GroupArray, IntArray

AUDIT_BOUNDS: Mapping[str, FixedCountBound] = {
    "hoeffding": AuditHoeffding(),
    "kl": AuditKl(),
    "binomial": AuditBinomial(),
    "dkw": AuditDkw(),
}
"""The bounds that look at audited people alone, by name."""
STEPS = 64.0
TILE = 2048
"""People asked about at a time: few enough for scores to stay in the cache."""


def acceptance_table(
    members: tuple[Hypothesis, ...], features: FloatArray, group: GroupArray | None
) -> BoolArray:
    """(members, rows): who accepts whom."""
    if not members:
        return np.zeros((0, len(features)), dtype=bool)
    together = getattr(type(members[0]), "together", None)
    alike = len({type(member) for member in members}) == 1
    batch = together(members) if together and alike else None
    if batch is not None and batch.columns in (None, features.shape[1]):
        tiles = [batch(features[start : start + TILE].T) for start in range(0, len(features), TILE)]
        return np.concatenate(tiles, axis=1) if tiles else np.zeros((len(members), 0), dtype=bool)
    return np.stack([member.accepts(features, group) for member in members])


@dataclass(eq=False)
class MemberTables:
    """acceptance_table with a memory: discrete populations have the same contexts often."""

    members: tuple[Hypothesis, ...]
    known: dict[bytes, BoolArray] = field(default_factory=dict)

    def on(self, features: FloatArray, group: GroupArray | None) -> BoolArray:
        """The table on these rows."""
        if group is not None or features.size > LARGEST_KEY:
            return acceptance_table(self.members, features, group)
        key = features.tobytes()
        if key not in self.known:
            if len(self.known) >= MOST_TABLES:
                self.known.clear()
            self.known[key] = acceptance_table(self.members, features, None)
        return self.known[key]


@storable
@dataclass(frozen=True, eq=False)
class Prepared:
    """What is fixed before the cohorts of an epoch are looked at, from cohorts before them: the
    bets, and the regression.

    It is made again whenever a cohort has closed, and stored: who is erased later changes neither.
    labelled (G,): the groups in which the epoch's policy, known before its coins, lets labels be
    looked at.
    """

    plan: EpochPlan | None
    regression: OutcomeRegression
    labelled: BoolArray


for _record in (
    *(AuditHoeffding, AuditKl, AuditBinomial, AuditDkw),
    BettingBound,
    GroupJoin,
    EpochPlan,
    ConstantOutcome,
    TabularOutcome,
    LogisticOutcome,
):
    storable(_record)

storable(
    BettingState, lower=PROBABILITY, upper=PROBABILITY, gap_lower=GAP, gap_upper=GAP, rounds=COUNT
)

LEAST_FORESEEN = 1e-6
"""Forecasts of the variance take smaller probabilities of being accepted for this one; no bound
does.
"""
LARGEST_KEY, MOST_TABLES = 4096, 8
"""Tables are remembered for at most so many numbers as key, and so many at a time."""


class GapProcess(Protocol):
    """Laws: with probability at least 1 - (its share of delta) every interval ever returned
    contains the true gap; none ever widens.
    """

    members: tuple[Hypothesis, ...]
    _tables: MemberTables

    def table(self, features: FloatArray, group: GroupArray | None) -> BoolArray:
        """(members, rows): who accepts whom."""
        return self._tables.on(features, group)

    @property
    def name(self) -> str:
        """The bound's name in certificates."""
        ...

    @property
    def params(self) -> Params:
        """Its constants."""
        ...

    def plan(
        self, past: PastPeople, acceptance: FloatArray, regression: OutcomeRegression
    ) -> EpochPlan | None:
        """What has to be fixed before the next cohort is looked at: by past people, with the
        cohort's acceptance and the regression on them. Nothing where looks and shares are preset.
        """
        return None

    def update(self, cohort: ClosedCohort, prepared: Prepared) -> int:
        """Look at one closed cohort, with what was prepared before it; about how many members the
        evidence contradicts itself now.
        """
        ...

    def intervals(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """lower, upper (gaps, members), and which members' evidence contradicts itself."""
        ...

    def thresholds(self) -> FloatArray:
        """L (gaps, members): the logarithm that the evidence against a gap must reach; forecasts of
        widths need it.
        """
        ...

    @property
    def rounds(self) -> FloatArray:
        """(members,): how many rounds each process has looked at; 0 where nobody counts them."""
        return np.zeros(len(self.members))


@storable
@dataclass(eq=False)
class BettingProcess(GapProcess):
    """Betting cell by cell over `members`; with `nominated` it starts empty and hypotheses join one
    by one.
    """

    bound: BettingBound
    members: tuple[Hypothesis, ...]
    state: BettingState
    group_decides: bool = False

    name = "betting cell by cell"

    def __post_init__(self) -> None:
        self._tables = MemberTables(self.members)

    @property
    def params(self) -> Params:
        """Hypotheses, groups, rates and bets."""
        return {
            "hypotheses": len(self.members),
            "groups": len(self.bound.groups),
            "rates": [rate.symbol for rate in self.bound.rates],
            "bets": len(self.bound.horizons),
        }

    def join(self, member: Hypothesis, share: float) -> None:
        """Nominate one more hypothesis; its process sees later cohorts only."""
        joined = self.bound.joined_by(share)
        sizes = len(joined.rates), len(joined.groups), len(joined.horizons), len(joined.joins)
        self.state = self.state.joined(BettingState.empty(1, *sizes))
        self.bound = joined
        self.members = (*self.members, member)
        self._tables = MemberTables(self.members)

    def join_group(self, group: Group, share: float) -> None:
        """One more group; its processes see later cohorts only."""
        self.bound = self.bound.joined_by_group(group, share)
        self.state = self.state.with_group()

    def plan(
        self, past: PastPeople, acceptance: FloatArray, regression: OutcomeRegression
    ) -> EpochPlan | None:
        """The bets, from people of earlier cohorts."""
        if not self.members:
            return None
        codes, forecast = group_codes(past.group, self.bound.groups), None
        inside = codes >= 0
        if inside.any():
            features, group = past.features[inside], past.group[inside]
            forecast = Forecast(
                self.table(features, group if self.group_decides else None),
                codes[inside],
                weight=past.weight[inside],
                acceptance=np.maximum(acceptance[inside], LEAST_FORESEEN),
                regression=_coarse(regression.negative_probability(features)),
            )
        return self.bound.plan(self.state, forecast)

    def update(self, cohort: ClosedCohort, prepared: Prepared) -> int:
        """Everybody of the certificate's groups counts; who was erased raises the thresholds
        instead.
        """
        if prepared.plan is None:
            return 0
        codes = group_codes(cohort.group, self.bound.groups[: len(prepared.labelled)])
        used = codes >= 0
        lost = np.concatenate([cohort.lost_rejected, cohort.lost_accepted])
        chance = np.where(cohort.lost_accepted > 0, cohort.lost_acceptance, 1.0)
        gone = lost > 0
        seen = Cohort(
            self.table(cohort.features[used], cohort.group[used] if self.group_decides else None),
            codes[used],
            acceptance=cohort.acceptance[used],
            regression=_coarse(prepared.regression.negative_probability(cohort.features[used])),
            rejected=cohort.rejected[used],
            positive=cohort.positive[used],
            negative=cohort.negative[used],
            unresolved=cohort.unresolved[used],
            labelled=prepared.labelled,
            lost_count=lost[gone],
            lost_weight=np.concatenate([np.ones(len(chance)), 1.0 / chance])[gone],
        )
        self.state = self.bound.update(self.state, seen, prepared.plan)
        return int(self.state.contradiction.sum())

    def intervals(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """The gaps' intervals."""
        gaps = self.bound.intervals(self.state)
        shape = (len(self.members), len(self.bound.rates) * len(self.bound.pairs))
        return gaps.lower.reshape(shape).T, gaps.upper.reshape(shape).T, gaps.contradiction

    def thresholds(self) -> FloatArray:
        """L of each pair of groups, alike for all rates."""
        return np.tile(self.bound.pair_thresholds.T, (len(self.bound.rates), 1))

    @property
    def rounds(self) -> FloatArray:
        """All since it joined."""
        return self.state.rounds


def _coarse(regression: FloatArray) -> FloatArray:
    """m in 64 steps: as valid as m, hardly wider, and people who look alike to the bound can be
    counted together.
    """
    return np.round(regression * STEPS) / STEPS


storable(PresetLooks)


@dataclass(eq=False)
class AuditTotals:
    """Sums over the audits taken so far: accepted, doubtful_accepted (members, rates * groups) and
    people, doubtful (rates, groups); "doubtful" are people whose label has not come, `lost` people
    who were erased. lower, upper (gaps, members): the intersection of all looks."""

    accepted: FloatArray
    doubtful_accepted: FloatArray
    people: FloatArray
    doubtful: FloatArray
    lower: FloatArray = field(metadata=stored_as("lo"))
    upper: FloatArray = field(metadata=stored_as("hi"))
    audits: int = 0
    look: int = 0
    lost: float = 0.0

    @classmethod
    def none(cls, members: int, rates: int, groups: int) -> "AuditTotals":
        """Before the first audit."""
        per_member, per_cell = (members, rates * groups), (rates, groups)
        gaps = rates * groups * (groups - 1) // 2
        sums = (np.zeros(per_member), np.zeros(per_member), np.zeros(per_cell), np.zeros(per_cell))
        return cls(*sums, np.full((gaps, members), -1.0), np.full((gaps, members), 1.0))


storable(
    AuditTotals,
    lo=GAP,
    hi=GAP,
    **dict.fromkeys(
        ("accepted", "doubtful_accepted", "people", "doubtful", "audits", "look"), COUNT
    ),
)


@storable
@dataclass(eq=False)
class AuditProcess(GapProcess):
    """Intervals from the first N_k audits. Rounds of a cohort are exchangeable given the coin, so
    where a look ends inside a cohort, a random part of its audits is taken."""

    bound: FixedCountBound
    members: tuple[Hypothesis, ...]
    groups: tuple[Group, ...]
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
        sizes = len(self.members), len(self.rates), len(self.groups)
        self.totals = self._sums = self.totals or AuditTotals.none(*sizes)

    @property
    def name(self) -> str:
        """The bound's name."""
        return f"{self.bound.name} on audit rounds"

    @property
    def params(self) -> Params:
        """Its constants."""
        looks = {"first_look": self.looks.first, "growth": self.looks.growth}
        return {**self.bound.params, "hypotheses": len(self.members), **looks}

    @property
    def audits(self) -> int:
        """Audits taken so far."""
        return self._sums.audits

    def update(self, cohort: ClosedCohort, prepared: Prepared) -> int:
        """Take the cohort's audits, look by look.

        Erased ones keep their places among them, in a column of their own at the end.
        """
        codes = np.append(group_codes(cohort.group, self.groups), OUTSIDE)
        kinds = [cohort.audited_positive, cohort.audited_negative, cohort.audited_unresolved]
        left = np.zeros((3, len(codes)), dtype=np.int64)
        left[:, :-1] = np.where(codes[:-1] >= 0, kinds, 0.0)
        left[2, -1] = cohort.lost_audited
        shown = cohort.group if self.group_decides else None
        accepts = np.pad(self.table(cohort.features, shown).astype(np.float64), ((0, 0), (0, 1)))
        sums = self._sums
        while left.sum() > 0:
            room = self.looks.count(sums.look + 1) - sums.audits
            taken = left
            if left.sum() > room:  # a random part of the audits, `room` of them
                taken = self.generator.multivariate_hypergeometric(
                    left.ravel(), room, method="marginals"
                ).reshape(left.shape)
            self._add(accepts, codes, taken)
            left = left - taken
            if sums.audits == self.looks.count(sums.look + 1):
                self._look()
        return int((sums.lower > sums.upper).any(axis=0).sum())

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
        # an erased person may be in any denominator, and accepted or rejected there: the worst of
        # both, in every group
        counts = AuditCounts.of(
            sums.accepted,
            sums.people,
            signs=np.array([rate.sign for rate in self.rates]),
            unresolved_accepted=sums.doubtful_accepted + sums.lost,
            unresolved=sums.doubtful + 2.0 * sums.lost,
        )
        delta = self.looks.share(sums.look, self.failure_probability)
        limits = self.bound.intervals(
            counts, failure_probability=delta, log_size=self.log_size, columns=self.columns
        )
        sums.lower = np.maximum(sums.lower, limits.lower.T)
        sums.upper = np.minimum(sums.upper, limits.upper.T)

    def intervals(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """The intersection over looks."""
        lower, upper = self._sums.lower, self._sums.upper
        return lower, upper, np.asarray((lower > upper).any(axis=0))

    def thresholds(self) -> FloatArray:
        """ln(2 M / delta) with delta of the next look: what a joint Hoeffding bound would need."""
        delta = self.looks.share(self._sums.look + 1, self.failure_probability)
        return np.full(self._sums.lower.shape, self.log_size + np.log(2.0 / delta))
