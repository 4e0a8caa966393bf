"""Interval processes: for a list of hypotheses, intervals for their true gaps that hold at all times at once.

One contract, two kinds. Betting uses every round, whatever the policy did, and hypotheses may join later with their own share of delta. A
fixed-count bound uses audit rounds alone, at preset counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from evenhand.contracts import Hypothesis
from evenhand.estimation.outcomes import OutcomeRegression
from evenhand.fairness.bounds.betting import BettingBound
from evenhand.fairness.bounds.betting_records import BettingState, Cohort, Forecast
from evenhand.fairness.bounds.fixed_count import AuditCounts, FixedCountBound, PresetLooks
from evenhand.fairness.rates import Rate
from evenhand.learners.cohorts import ClosedCohort
from evenhand.words import BoolArray, FloatArray, GroupArray


def acceptance_table(members: tuple[Hypothesis, ...], features: FloatArray, group: GroupArray | None) -> BoolArray:
    """(members, rows): who accepts whom."""
    if not members:
        return np.zeros((0, len(features)), dtype=bool)
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
    shown_group: bool


LARGEST_KEY, MOST_TABLES = 4096, 8
"""Tables are remembered for at most so many numbers as key, and so many at a time."""


class GapProcess(Protocol):
    """Laws: with probability at least 1 - (its share of delta) every interval ever returned contains the true gap; intervals never widen."""

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

    def update(self, cohort: ClosedCohort, outlook: Outlook) -> None:
        """Look at one closed cohort."""
        ...

    def intervals(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """lo, hi (gaps, members), and which members' evidence contradicts itself."""
        ...


@dataclass(eq=False)
class BettingProcess:
    """Joint clamped betting over `members`; with `nominated` it starts empty and hypotheses join one by one."""

    bound: BettingBound
    members: tuple[Hypothesis, ...]
    state: BettingState
    group_decides: bool = False

    name = "joint clamped betting"

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
        one = BettingBound(
            self.bound.groups,
            self.bound.rates,
            1,
            share,
            horizons=self.bound.horizons,
            joint_part=self.bound.joint_part,
        )
        self.state = self.state.joined(one.start())
        self.bound = joined
        self.members = (*self.members, member)
        self._tables = MemberTables(self.members)

    def update(self, cohort: ClosedCohort, outlook: Outlook) -> None:
        """Plan from the past, then look at the cohort."""
        if not self.members:
            return
        groups = self.bound.groups
        past = (
            np.isin(outlook.group, np.array(groups, dtype=outlook.group.dtype))
            if len(outlook.group)
            else np.zeros(0, bool)
        )
        forecast = None
        if past.any():
            features, group = outlook.features[past], outlook.group[past]
            forecast = Forecast.of(
                self.table(features, group if self.group_decides else None),
                _codes(group, groups),
                weight=outlook.weight[past],
                acceptance=np.maximum(outlook.acceptance[past], 1e-6),
                regression=outlook.regression.negative_probability(features),
            )
        plan = self.bound.plan(self.state, forecast)
        codes = cohort.codes(groups)
        used = (codes >= 0) & (cohort.acceptance > 0)
        seen = Cohort.of(
            self.table(cohort.features[used], cohort.group[used] if self.group_decides else None),
            codes[used],
            acceptance=cohort.acceptance[used],
            regression=outlook.regression.negative_probability(cohort.features[used]),
            rejected=cohort.rejected[used],
            positive=cohort.positive[used],
            negative=cohort.negative[used],
            unresolved=cohort.unresolved[used],
        )
        self.state, _ = self.bound.update(self.state, seen, plan)

    def intervals(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """The gaps' intervals."""
        found = self.bound.intervals(self.state)
        members = len(self.members)
        return found.lower.reshape(members, -1).T, found.upper.reshape(members, -1).T, found.contradiction


def _codes(group: GroupArray, groups: tuple[Any, ...]) -> Any:
    codes = np.full(len(group), -1, dtype=np.int64)
    for code, value in enumerate(groups):
        codes[group == value] = code
    return codes


@dataclass(eq=False)
class AuditProcess:
    """A fixed-count bound on audit rounds: it looks at exactly the first N_1 < N_2 < ... of them.

    Rounds of a cohort are exchangeable given the coin, so where a look ends inside a cohort, a random part of its audits is taken.
    """

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
    audits: int = 0
    look: int = 0
    accepted: FloatArray = field(init=False)
    people: FloatArray = field(init=False)
    doubtful_accepted: FloatArray = field(init=False)
    doubtful: FloatArray = field(init=False)
    lo: FloatArray = field(init=False)
    hi: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self._tables = MemberTables(self.members)
        cells = len(self.rates) * len(self.groups)
        gaps = len(self.rates) * len(self.groups) * (len(self.groups) - 1) // 2
        self.accepted, self.doubtful_accepted = (
            np.zeros((len(self.members), cells)),
            np.zeros((len(self.members), cells)),
        )
        self.people, self.doubtful = (
            np.zeros((len(self.rates), len(self.groups))),
            np.zeros((len(self.rates), len(self.groups))),
        )
        self.lo, self.hi = np.full((gaps, len(self.members)), -1.0), np.full((gaps, len(self.members)), 1.0)

    def table(self, features: FloatArray, group: GroupArray | None) -> BoolArray:
        """(members, rows): who accepts whom."""
        return self._tables.on(features, group)

    @property
    def name(self) -> str:
        """The bound's name."""
        return f"{self.bound.name} on audit rounds"

    @property
    def params(self) -> Mapping[str, Any]:
        """Its constants and where it stands."""
        return {
            **self.bound.params,
            "hypotheses": len(self.members),
            "first_look": self.looks.first,
            "growth": self.looks.growth,
        }

    def update(self, cohort: ClosedCohort, outlook: Outlook) -> None:
        """Take the cohort's audits, look by look."""
        codes = cohort.codes(self.groups)
        left = np.stack([cohort.audited_positive, cohort.audited_negative, cohort.audited_unresolved])
        left = np.where(codes >= 0, left, 0.0).astype(np.int64)
        accepts = self.table(cohort.features, cohort.group if self.group_decides else None).astype(np.float64)
        while left.sum() > 0:
            room = self.looks.count(self.look + 1) - self.audits
            taken = left if left.sum() <= room else self._part(left, room)
            self._add(accepts, codes, taken)
            left = left - taken
            if self.audits == self.looks.count(self.look + 1):
                self._look()

    def _part(self, left: Any, room: int) -> Any:
        flat = self.generator.multivariate_hypergeometric(left.ravel(), room, method="marginals")
        return flat.reshape(left.shape)

    def _add(self, accepts: FloatArray, codes: Any, taken: Any) -> None:
        self.audits += int(taken.sum())
        for r, rate in enumerate(self.rates):
            counted = rate.in_denominator(np.array([1, -1]))
            sure = taken[0] * counted[0] + taken[1] * counted[1] + taken[2] * counted.all()
            doubt = taken[2] * (not counted.all())
            for j in range(len(self.groups)):
                cell = r * len(self.groups) + j
                inside = np.where(codes == j, sure, 0).astype(np.float64)
                unsure = np.where(codes == j, doubt, 0).astype(np.float64)
                self.accepted[:, cell] += accepts @ inside
                self.doubtful_accepted[:, cell] += accepts @ unsure
                self.people[r, j] += inside.sum()
                self.doubtful[r, j] += unsure.sum()

    def _look(self) -> None:
        self.look += 1
        counts = AuditCounts.of(
            self.accepted,
            self.people,
            signs=np.array([rate.sign for rate in self.rates]),
            unresolved_accepted=self.doubtful_accepted,
            unresolved=self.doubtful,
        )
        delta = self.looks.share(self.look, self.failure_probability)
        found = self.bound.intervals(counts, failure_probability=delta, log_size=self.log_size, columns=self.columns)
        self.lo, self.hi = np.maximum(self.lo, found.low.T), np.minimum(self.hi, found.high.T)

    def intervals(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """The intersection over looks."""
        return self.lo, self.hi, np.asarray((self.lo > self.hi).any(axis=0))
