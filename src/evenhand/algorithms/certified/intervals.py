"""Confidence sequences for the gaps of a list of hypotheses: intervals that hold at all times at
once (Ville's inequality).

One contract, two kinds. Betting uses every round, whatever the policy did, and hypotheses may join
later with their own part of delta. A fixed-count bound uses audit rounds alone, looked at when
exactly the first N_1 < N_2 < ... of them have closed.

A process is a frozen record; every method that learns something returns a new one. What an epoch's
people are judged by (`EpochRecord`) is fixed when the epoch is opened, before its first coin:
`update` takes that record and the rows, and nothing here can compute a bet when a cohort closes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Protocol, Self

import numpy as np

from evenhand.algorithms.certified.evidence import OUTSIDE, PastPeople, group_codes
from evenhand.algorithms.certified.rule_tables import MemberTables, RuleSlots
from evenhand.algorithms.certified.tally import TalliedCohort, coarse
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
    PresetLooks,
)
from evenhand.contracts import FixedCountBound, Hypothesis, Params
from evenhand.errors import LengthMismatch
from evenhand.estimation.outcomes import OutcomeRegression
from evenhand.fairness.rates import Rate
from evenhand.hypotheses.constants import ACCEPT_ALL, GroupClassifier, Unread
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.rounds import Counts, Rounds
from evenhand.words import BoolArray, FloatArray, Group, GroupArray, IntArray

AUDIT_BOUNDS: Mapping[str, FixedCountBound] = {
    "hoeffding": AuditHoeffding(),
    "kl": AuditKl(),
    "binomial": AuditBinomial(),
    "dkw": AuditDkw(),
}
"""The bounds that look at audited people alone, by name."""
LEAST_FORESEEN = 1e-6
"""Forecasts of the variance take smaller probabilities of being accepted for this one; no bound
does.
"""


# what is fixed before the coins of an epoch


@dataclass(frozen=True, eq=False)
class EpochRecord:
    """What the people of an epoch are judged by, fixed when it is opened.

    bets: how much is bet on each hypothesis; None where looks and parts of delta are preset.
    regression: m(x), fitted to people of cohorts that had closed before. labelled (G,): in which
    groups labels may be looked at (see `labelled_groups`). rules: how many hypotheses there were,
    whose accepted shares its people are counted for.
    """

    bets: EpochPlan | None
    regression: OutcomeRegression
    labelled: BoolArray
    rules: int = 0

    def __post_init__(self) -> None:
        if self.bets is not None and self.bets.inverse_share.shape[1] != len(self.labelled):
            raise LengthMismatch(
                f"the bets are for {self.bets.inverse_share.shape[1]} groups, and labels may be "
                f"looked at in {len(self.labelled)}."
            )


def labelled_groups(policy: Mixture, groups: tuple[Group, ...]) -> BoolArray:
    """(G,): in which groups labels of a cohort of this policy may be looked at.

    Where nobody is accepted with probability 0 the coin shows every label sooner or later. That is
    decided by the policy, before the coins, never by the rows that came: to skip a cohort because
    somebody in it had p = 0 would select cohorts by who came.
    """
    all_applicants = policy.weight_of(ACCEPT_ALL) > 0
    decides = policy.group_use == "decide"
    own = [decides and policy.weight_of(GroupClassifier(group)) > 0 for group in groups]
    return np.array(own, dtype=bool) | all_applicants


class GapProcess(Protocol):
    """Intervals for the gaps of some hypotheses.

    Notes
    -----
    Requirement: with probability at least 1 - (its part of delta) every interval ever returned
    contains the true gap; none ever widens.
    """

    @property
    def members(self) -> tuple[Hypothesis, ...]:
        """The hypotheses."""
        ...

    @property
    def name(self) -> str:
        """The bound's name in certificates."""
        ...

    @property
    def params(self) -> Params:
        """Its constants."""
        ...

    @property
    def rounds(self) -> FloatArray:
        """(members,): how many rounds each process has looked at; 0 where nobody counts them."""
        ...

    @property
    def slots(self) -> RuleSlots:
        """Where the rules cut: what must be counted to say how many people each accepts."""
        ...

    def table(self, features: FloatArray, group: GroupArray | None) -> BoolArray:
        """(members, rows): who accepts whom."""
        ...

    def bets(
        self, past: PastPeople, acceptance: FloatArray, regression: OutcomeRegression
    ) -> EpochPlan | None:
        """What has to be fixed before the next epoch: by past people, with the epoch's acceptance
        and the regression on them. None where looks and parts of delta are preset.
        """
        ...

    def judges(self, record: EpochRecord) -> bool:
        """Whether intervals look at people of an epoch with this record."""
        ...

    def update(self, cohort: Counts | TalliedCohort, record: EpochRecord, rounds: Rounds) -> Self:
        """After one closed cohort, judged by the record that opened its epoch."""
        ...

    def intervals(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """lower, upper (gaps, members), and which members' evidence contradicts itself."""
        ...

    def thresholds(self) -> FloatArray:
        """L (gaps, members): the logarithm that the evidence against a gap must reach; forecasts
        of widths need it.
        """
        ...

    def unsound(self, groups: tuple[Group, ...]) -> str | None:
        """What cannot be, in a process that comes from a file and is about these groups; None if
        all is well.
        """
        ...


@dataclass(frozen=True, eq=False)
class BettingProcess:
    """Betting cell by cell over `members`; hypotheses and groups may join."""

    bound: BettingBound
    members: tuple[Hypothesis, ...]
    state: BettingState
    group_decides: bool = False
    tables: MemberTables = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", MemberTables(self.members))

    @property
    def name(self) -> str:
        """In certificates."""
        return "betting cell by cell"

    @property
    def params(self) -> Params:
        """Hypotheses, groups, rates and bets."""
        return {
            "hypotheses": len(self.members),
            "groups": len(self.bound.groups),
            "rates": [rate.symbol for rate in self.bound.rates],
            "bets": len(self.bound.horizons),
        }

    @property
    def rounds(self) -> FloatArray:
        """All since it joined."""
        return self.state.rounds

    @property
    def slots(self) -> RuleSlots:
        """Where the rules cut."""
        return self.tables.slots

    def table(self, features: FloatArray, group: GroupArray | None) -> BoolArray:
        """Who accepts whom."""
        return self.tables.on(features, group)

    def joined_by(self, member: Hypothesis, delta: float) -> "BettingProcess":
        """One more hypothesis; its process sees later epochs only."""
        bound = self.bound.joined_by(delta)
        alone = BettingState.empty(
            1, len(bound.rates), len(bound.groups), len(bound.horizons), len(bound.joins)
        )
        members = (*self.members, member)
        return replace(self, bound=bound, members=members, state=self.state.joined(alone))

    def joined_by_group(self, group: Group, delta: float) -> "BettingProcess":
        """One more group; its processes see later epochs only."""
        bound = self.bound.joined_by_group(group, delta)
        return self._with(bound, self.state.with_group())

    def _with(self, bound: BettingBound, state: BettingState) -> "BettingProcess":
        """The same members; what is known of their tables stays."""
        process = replace(self, bound=bound, state=state)
        object.__setattr__(process, "tables", self.tables)
        return process

    def bets(
        self, past: PastPeople, acceptance: FloatArray, regression: OutcomeRegression
    ) -> EpochPlan | None:
        """From people of earlier cohorts."""
        if not self.members:
            return None
        codes = group_codes(past.group, self.bound.groups)
        inside = codes >= 0
        forecast = None
        if inside.any():
            features = past.features[inside]
            group = past.group[inside] if self.group_decides else None
            forecast = Forecast(
                self.table(features, group),
                codes[inside],
                weight=past.weight[inside],
                acceptance=np.maximum(acceptance[inside], LEAST_FORESEEN),
                regression=coarse(regression.negative_probability(features)),
            )
        plan = self.bound.plan(self.state, forecast)
        gone = [isinstance(member, Unread) for member in self.members]
        if any(gone):  # nothing is claimed about these places (`certified.unread`)
            plan = replace(plan, bets=np.where(np.array(gone)[:, None, None], 0.0, plan.bets))
        return plan

    def judges(self, record: EpochRecord) -> bool:
        """Where there are bets."""
        return record.bets is not None

    def update(
        self, cohort: Counts | TalliedCohort, record: EpochRecord, rounds: Rounds
    ) -> "BettingProcess":
        """All people of the certificate's groups count; who was erased raises the thresholds
        instead.
        """
        if record.bets is None:
            return self
        # a group that joined after the epoch was opened has no rows in it
        codes = group_codes(cohort.group, self.bound.groups[: len(record.labelled)])
        used = codes >= 0
        taken = None
        if isinstance(cohort, TalliedCohort):
            accepts = np.zeros((0, int(used.sum())), dtype=bool)
            regression = cohort.regression[used]
            taken = cohort.accepted.where(used)
        else:
            features = cohort.features[used]
            accepts = self.table(features, cohort.group[used] if self.group_decides else None)
            regression = coarse(record.regression.negative_probability(features))
        lost = np.concatenate([cohort.lost_rejected, cohort.lost_accepted])
        chance = np.where(cohort.lost_accepted > 0, cohort.lost_acceptance, 1.0)
        weight = np.concatenate([np.ones(len(chance)), 1.0 / chance])
        gone = lost > 0
        seen = Cohort(
            accepts,
            codes[used],
            acceptance=cohort.acceptance[used],
            regression=regression,
            rejected=cohort.rejected[used],
            positive=cohort.positive[used],
            negative=cohort.negative[used],
            unresolved=cohort.unresolved[used],
            labelled=record.labelled,
            lost_count=lost[gone],
            lost_weight=weight[gone],
            taken=taken,
        )
        return self._with(self.bound, self.bound.update(self.state, seen, record.bets))

    def intervals(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """The gaps' intervals."""
        gaps = self.bound.intervals(self.state)
        shape = (len(self.members), len(self.bound.rates) * len(self.bound.pairs))
        return gaps.lower.reshape(shape).T, gaps.upper.reshape(shape).T, gaps.contradiction

    def thresholds(self) -> FloatArray:
        """L of each pair of groups, alike for all rates."""
        return np.tile(self.bound.pair_thresholds.T, (len(self.bound.rates), 1))

    def unsound(self, groups: tuple[Group, ...]) -> str | None:
        """Other groups, or shapes that do not fit the bound."""
        if self.bound.groups != groups:
            return f"its intervals are about the groups {self.bound.groups}, not {groups}"
        if len(self.members) != self.bound.hypotheses:
            return f"it has {len(self.members)} hypotheses, and a bound for {self.bound.hypotheses}"
        return _other_shape(self.state, self.bound.start())


# audits alone


@dataclass(frozen=True, eq=False)
class AuditTotals:
    """Sums over the audits taken so far.

    accepted, doubtful_accepted (members, rates * groups) and people, doubtful (rates, groups);
    "doubtful" are people whose label has not come, `lost` people who were erased. lower, upper
    (gaps, members): the intersection of all looks.
    """

    accepted: FloatArray
    doubtful_accepted: FloatArray
    people: FloatArray
    doubtful: FloatArray
    lower: FloatArray
    upper: FloatArray
    audits: int = 0
    look: int = 0
    lost: float = 0.0

    @classmethod
    def none(cls, members: int, rates: int, groups: int) -> "AuditTotals":
        """Before the first audit."""
        gaps = rates * groups * (groups - 1) // 2
        return cls(
            accepted=np.zeros((members, rates * groups)),
            doubtful_accepted=np.zeros((members, rates * groups)),
            people=np.zeros((rates, groups)),
            doubtful=np.zeros((rates, groups)),
            lower=np.full((gaps, members), -1.0),
            upper=np.full((gaps, members), 1.0),
        )


@dataclass(frozen=True, eq=False)
class AuditProcess:
    """Intervals from exactly the first N_k audited people, by arrival."""

    bound: FixedCountBound
    members: tuple[Hypothesis, ...]
    groups: tuple[Group, ...]
    rates: tuple[Rate, ...]
    delta: float
    columns: int
    log_size: float
    seed: int
    group_decides: bool = False
    looks: PresetLooks = field(default_factory=PresetLooks)
    totals: AuditTotals | None = None
    tables: MemberTables = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", MemberTables(self.members))

    @property
    def sums(self) -> AuditTotals:
        """The totals so far."""
        if self.totals is not None:
            return self.totals
        return AuditTotals.none(len(self.members), len(self.rates), len(self.groups))

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
        return self.sums.audits

    @property
    def rounds(self) -> FloatArray:
        """Nobody counts them."""
        return np.zeros(len(self.members))

    @property
    def slots(self) -> RuleSlots:
        """Where the rules cut."""
        return self.tables.slots

    def table(self, features: FloatArray, group: GroupArray | None) -> BoolArray:
        """Who accepts whom."""
        return self.tables.on(features, group)

    def bets(
        self, past: PastPeople, acceptance: FloatArray, regression: OutcomeRegression
    ) -> EpochPlan | None:
        """Looks and parts of delta are preset."""
        return None

    def judges(self, record: EpochRecord) -> bool:
        """All audits count."""
        return True

    def update(
        self, cohort: Counts | TalliedCohort, record: EpochRecord, rounds: Rounds
    ) -> "AuditProcess":
        """Take the cohort's audits in the order of arrival, look by look."""
        assert isinstance(cohort, Counts)  # audits are taken one by one
        sums = self.sums
        for part in self._parts(cohort, rounds):
            sums = self._added(sums, *part)
            if sums.audits == self.looks.count(sums.look + 1):
                sums = self._looked(sums)
        process = replace(self, totals=sums)
        object.__setattr__(process, "tables", self.tables)
        return process

    def _parts(self, cohort: Counts, rounds: Rounds) -> list[tuple[FloatArray, IntArray, IntArray]]:
        """(accepts, codes, taken) of the audits, cut where a look ends.

        taken (3, rows + 1): good, bad and unresolved audits of each row; erased ones keep their
        places in a column of their own at the end.
        """
        parts = []
        audits = self.sums.audits
        look = self.sums.look
        first = cohort.first
        ordered = rounds.audited_rounds(cohort.first, cohort.stop, self.groups)
        if ordered is None:  # decided in aggregate: there is no order, so a random one
            return self._shuffled(cohort, audits, look)
        while True:
            room = self.looks.count(look + 1) - audits
            if len(ordered) < room:
                if first < cohort.stop:
                    parts.append(self._taken(rounds.count(first, cohort.stop)))
                return parts
            stop = int(ordered[room - 1]) + 1
            parts.append(self._taken(rounds.count(first, stop)))
            first = stop
            ordered = ordered[room:]
            audits += room
            look += 1

    def _taken(self, cohort: Counts) -> tuple[FloatArray, IntArray, IntArray]:
        codes = np.append(group_codes(cohort.group, self.groups), OUTSIDE)
        kinds = [cohort.audited_positive, cohort.audited_negative, cohort.audited_unresolved]
        taken = np.zeros((3, len(codes)), dtype=np.int64)
        taken[:, :-1] = np.where(codes[:-1] >= 0, kinds, 0.0)
        taken[2, -1] = cohort.lost_audited
        shown = cohort.group if self.group_decides else None
        accepts = self.table(cohort.features, shown).astype(np.float64)
        return np.pad(accepts, ((0, 0), (0, 1))), codes, taken

    def _shuffled(
        self, cohort: Counts, audits: int, look: int
    ) -> list[tuple[FloatArray, IntArray, IntArray]]:
        accepts, codes, left = self._taken(cohort)
        generator = stream(self.seed, "looks", cohort.first)
        parts = []
        while left.sum() > 0:
            room = self.looks.count(look + 1) - audits
            taken = left
            if left.sum() > room:
                taken = generator.multivariate_hypergeometric(
                    left.ravel(), room, method="marginals"
                ).reshape(left.shape)
            parts.append((accepts, codes, taken))
            left = left - taken
            audits += int(taken.sum())
            look += 1
        return parts

    def _added(
        self, sums: AuditTotals, accepts: FloatArray, codes: IntArray, taken: IntArray
    ) -> AuditTotals:
        accepted = sums.accepted.copy()
        doubtful_accepted = sums.doubtful_accepted.copy()
        people = sums.people.copy()
        doubtful = sums.doubtful.copy()
        for r, rate in enumerate(self.rates):
            positive, negative = rate.in_denominator(np.array([1, -1]))
            sure = taken[0] * positive + taken[1] * negative + taken[2] * (positive and negative)
            doubt = taken[2] * (not (positive and negative))
            for j in range(len(self.groups)):
                cell = r * len(self.groups) + j
                here = codes == j
                accepted[:, cell] += accepts @ np.where(here, sure, 0.0)
                doubtful_accepted[:, cell] += accepts @ np.where(here, doubt, 0.0)
                people[r, j] += sure[here].sum()
                doubtful[r, j] += doubt[here].sum()
        return replace(
            sums,
            accepted=accepted,
            doubtful_accepted=doubtful_accepted,
            people=people,
            doubtful=doubtful,
            audits=sums.audits + int(taken.sum()),
            lost=sums.lost + float(taken[2, -1]),
        )

    def _looked(self, sums: AuditTotals) -> AuditTotals:
        """The intervals of the next look, intersected with all before."""
        # an erased person may be in any denominator, and accepted or rejected there: the worst of
        # both, in every group
        counts = AuditCounts.of(
            sums.accepted,
            sums.people,
            signs=np.array([rate.sign for rate in self.rates]),
            unresolved_accepted=sums.doubtful_accepted + sums.lost,
            unresolved=sums.doubtful + 2.0 * sums.lost,
        )
        limits = self.bound.intervals(
            counts,
            delta=self.looks.delta_of(sums.look + 1, self.delta),
            log_size=self.log_size,
            columns=self.columns,
        )
        return replace(
            sums,
            look=sums.look + 1,
            lower=np.maximum(sums.lower, limits.lower.T),
            upper=np.minimum(sums.upper, limits.upper.T),
        )

    def intervals(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """The intersection over looks."""
        lower = self.sums.lower
        upper = self.sums.upper
        return lower, upper, np.asarray((lower > upper).any(axis=0))

    def thresholds(self) -> FloatArray:
        """ln(2 M / delta) with delta of the next look: what a joint Hoeffding bound would need."""
        delta = self.looks.delta_of(self.sums.look + 1, self.delta)
        return np.full(self.sums.lower.shape, self.log_size + np.log(2.0 / delta))

    def unsound(self, groups: tuple[Group, ...]) -> str | None:
        """Other groups, or shapes that do not fit the bound."""
        if self.groups != groups:
            return f"its intervals are about the groups {self.groups}, not {groups}"
        if self.totals is None:
            return None
        sizes = (len(self.members), len(self.rates), len(self.groups))
        return _other_shape(self.totals, AuditTotals.none(*sizes))


def _other_shape(kept: object, needed: BettingState | AuditTotals) -> str | None:
    for part in fields(needed):
        shape = np.shape(getattr(kept, part.name))
        right = np.shape(getattr(needed, part.name))
        if shape != right:
            return f"{part.name} has shape {shape}, and the bound needs {right}"
    return None
