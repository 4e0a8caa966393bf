"""Interval processes: for a list of hypotheses, intervals for their true gaps that hold at all times at once.

One contract, two kinds. Betting (here) uses every round, whatever the policy did, and hypotheses may join later with their own share of
delta. A fixed-count bound (`audit_process`) uses audit rounds alone, at preset counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from evenhand.contracts import Hypothesis
from evenhand.estimation.outcomes import ConstantOutcome, LogisticOutcome, OutcomeRegression, TabularOutcome
from evenhand.fairness.bounds.betting import BettingBound, GroupJoin
from evenhand.fairness.bounds.betting_records import BettingState, Cohort, EpochPlan, Forecast
from evenhand.learners.codec import storable
from evenhand.learners.cohorts import ClosedCohort, group_codes
from evenhand.words import BoolArray, FloatArray, GroupArray

STEPS = 64.0
TILE = 2048
"""People asked about at a time: few enough for scores to stay in the cache."""


def acceptance_table(members: tuple[Hypothesis, ...], features: FloatArray, group: GroupArray | None) -> BoolArray:
    """(members, rows): who accepts whom."""
    if not members:
        return np.zeros((0, len(features)), dtype=bool)
    together = getattr(type(members[0]), "together", None)
    batch = together(members) if together and len({type(member) for member in members}) == 1 else None
    if batch is not None and batch.columns in (None, features.shape[1]):
        tiles = [batch(features[start : start + TILE].T) for start in range(0, len(features), TILE)]
        return np.concatenate(tiles, axis=1) if tiles else np.zeros((len(members), 0), dtype=bool)
    return np.stack([member.accepts(features, group) for member in members])


@dataclass(eq=False)
class MemberTables:
    """acceptance_table with a memory: on a discrete population every cohort has the same contexts."""

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


@dataclass(frozen=True, eq=False)
class Outlook:
    """What is known before a cohort is looked at: past people, with the cohort's acceptance and the regression on them."""

    features: FloatArray
    group: GroupArray
    weight: FloatArray
    acceptance: FloatArray
    regression: OutcomeRegression


@storable
@dataclass(frozen=True, eq=False)
class Prepared:
    """What is fixed before the cohorts of an epoch are looked at, from cohorts before them: the bets, and the regression.

    It is made again whenever a cohort has closed, and stored: who is erased later changes neither. labelled (G,): the groups in which the
    epoch's policy, known before its coins, lets labels be looked at.
    """

    plan: EpochPlan | None
    regression: OutcomeRegression
    labelled: BoolArray


for _record in (BettingBound, BettingState, GroupJoin, EpochPlan, ConstantOutcome, TabularOutcome, LogisticOutcome):
    storable(_record)

LEAST_FORESEEN = 1e-6
"""Forecasts of the variance take smaller probabilities of being accepted for this one; no bound does."""
LARGEST_KEY, MOST_TABLES = 4096, 8
"""Tables are remembered for at most so many numbers as key, and so many at a time."""


class GapProcess(Protocol):
    """Laws: with probability at least 1 - (its share of delta) every interval ever returned contains the true gap; none ever widens."""

    members: tuple[Hypothesis, ...]

    def table(self, features: FloatArray, group: GroupArray | None) -> BoolArray:
        """(members, rows): who accepts whom."""
        ...

    @property
    def name(self) -> str:
        """The bound's name in certificates."""
        ...

    @property
    def params(self) -> Mapping[str, Any]:
        """Its constants."""
        ...

    def plan(self, outlook: Outlook) -> EpochPlan | None:
        """What has to be fixed before the next cohort is looked at."""
        ...

    def update(self, cohort: ClosedCohort, prepared: Prepared) -> None:
        """Look at one closed cohort, with what was prepared before it."""
        ...

    def intervals(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """lo, hi (gaps, members), and which members' evidence contradicts itself."""
        ...

    def thresholds(self) -> FloatArray:
        """L (gaps, members): the logarithm that the evidence against a gap must reach; forecasts of widths need it."""
        ...

    @property
    def rounds(self) -> FloatArray:
        """(members,): how many rounds each one's process has looked at; 0 where nobody counts them."""
        ...


@storable
@dataclass(eq=False)
class BettingProcess:
    """Betting cell by cell over `members`; with `nominated` it starts empty and hypotheses join one by one."""

    bound: BettingBound
    members: tuple[Hypothesis, ...]
    state: BettingState
    group_decides: bool = False

    name = "betting cell by cell"

    def __post_init__(self) -> None:
        self._tables = MemberTables(self.members)

    def table(self, features: FloatArray, group: GroupArray | None) -> BoolArray:
        """(members, rows): who accepts whom."""
        return self._tables.on(features, group)

    @property
    def params(self) -> Mapping[str, Any]:
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
        rates, groups, bets = len(joined.rates), len(joined.groups), len(joined.horizons)
        self.state = self.state.joined(BettingState.empty(1, rates, groups, bets, len(joined.joins)))
        self.bound = joined
        self.members = (*self.members, member)
        self._tables = MemberTables(self.members)

    def join_group(self, group: Any, share: float) -> None:
        """One more group; its processes see later cohorts only."""
        self.bound = self.bound.joined_by_group(group, share)
        self.state = self.state.with_group()

    def plan(self, outlook: Outlook) -> EpochPlan | None:
        """The bets, from people of earlier cohorts."""
        if not self.members:
            return None
        codes, forecast = group_codes(outlook.group, self.bound.groups), None
        past = codes >= 0
        if past.any():
            features, group = outlook.features[past], outlook.group[past]
            forecast = Forecast.of(
                self.table(features, group if self.group_decides else None),
                codes[past],
                weight=outlook.weight[past],
                acceptance=np.maximum(outlook.acceptance[past], LEAST_FORESEEN),
                regression=_coarse(outlook.regression.negative_probability(features)),
            )
        return self.bound.plan(self.state, forecast)

    def update(self, cohort: ClosedCohort, prepared: Prepared) -> None:
        """Everybody of the certificate's groups counts; who was erased raises the thresholds instead."""
        if prepared.plan is None:
            return
        codes = cohort.codes(self.bound.groups[: len(prepared.labelled)])
        used = codes >= 0
        lost, chance = np.concatenate([cohort.lost_rejected, cohort.lost_accepted]), cohort.lost_acceptance
        chance, gone = np.where(cohort.lost_accepted > 0, chance, 1.0), lost > 0
        seen = Cohort.of(
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
        plan = prepared.plan.grown_to(len(self.members), len(self.bound.groups))
        self.state, _ = self.bound.update(self.state, seen, plan)

    def intervals(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """The gaps' intervals."""
        found = self.bound.intervals(self.state)
        shape = (len(self.members), len(self.bound.rates) * len(self.bound.pairs))
        return found.lower.reshape(shape).T, found.upper.reshape(shape).T, found.contradiction

    def thresholds(self) -> FloatArray:
        """L of each pair of groups, alike for all rates."""
        return np.tile(self.bound.pair_thresholds.T, (len(self.bound.rates), 1))

    @property
    def rounds(self) -> FloatArray:
        """All since it joined."""
        return self.state.rounds


def _coarse(regression: FloatArray) -> FloatArray:
    """m in 64 steps: as valid as m, hardly wider, and people who look alike to the bound can be counted together."""
    return np.round(regression * STEPS) / STEPS
