"""Confidence sequences for the gaps of a list of hypotheses: intervals that hold at all times at
once (Ville's inequality). With probability at least 1 - (their part of delta) every interval ever
returned contains the true gap, and none ever widens.

They use every round, whatever the policy did, and hypotheses may join later with their own part of
delta. A process is a frozen record; every method that learns something returns a new one. What an
epoch's people are judged by (`EpochRecord`) is fixed when the epoch is opened, before its first
coin: `update` takes that record and the rows, and nothing here can compute a bet when a cohort
closes.
"""

from dataclasses import dataclass, field, fields, replace

import numpy as np

from evenhand.algorithms.certified.evidence import PastPeople, group_codes
from evenhand.algorithms.certified.rule_tables import MemberTables, RuleSlots
from evenhand.algorithms.certified.tally import TalliedCohort, coarse
from evenhand.bounds import BettingBound, BettingState, Cohort, EpochPlan, Forecast
from evenhand.contracts import Hypothesis, Params
from evenhand.errors import LengthMismatch
from evenhand.estimation.outcomes import OutcomeRegression
from evenhand.hypotheses.constants import ACCEPT_ALL, GroupClassifier, Unread
from evenhand.policies import Mixture
from evenhand.rounds import Counts
from evenhand.words import BoolArray, FloatArray, Group, GroupArray

LEAST_FORESEEN = 1e-6
"""Forecasts of the variance take smaller probabilities of being accepted for this one; no bound
does.
"""


# what is fixed before the coins of an epoch


@dataclass(frozen=True, eq=False)
class EpochRecord:
    """What the people of an epoch are judged by, fixed when it is opened.

    bets: how much is bet on each hypothesis; None where there are none. regression:
    m(x), fitted to people of cohorts that had closed before. labelled (G,): in which groups labels
    may be looked at (see `labelled_groups`). n_members: how many members there were, whose accepted
    shares its people are counted for.
    """

    bets: EpochPlan | None
    regression: OutcomeRegression
    labelled: BoolArray
    n_members: int = 0

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
        """The bound's name in certificates."""
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
        """(members,): how many rounds each process has looked at, all since it joined."""
        return self.state.rounds

    @property
    def slots(self) -> RuleSlots:
        """Where the rules cut: what must be counted to say how many people each accepts."""
        return self.tables.slots

    def table(self, features: FloatArray, group: GroupArray | None) -> BoolArray:
        """(members, rows): who accepts whom."""
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
        """What has to be fixed before the next epoch: by past people, with the epoch's acceptance
        and the regression on them. None without hypotheses.
        """
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

    def update(self, cohort: Counts | TalliedCohort, record: EpochRecord) -> "BettingProcess":
        """After one closed cohort, judged by the record that opened its epoch. All people of the
        certificate's groups count; who was erased raises the thresholds instead.
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
        """lower, upper (gaps, members), and which members' evidence contradicts itself."""
        gaps = self.bound.intervals(self.state)
        shape = (len(self.members), len(self.bound.rates) * len(self.bound.pairs))
        return gaps.lower.reshape(shape).T, gaps.upper.reshape(shape).T, gaps.contradiction

    def thresholds(self) -> FloatArray:
        """L (gaps, members): the logarithm that the evidence against a gap must reach, alike for
        all rates. Forecasts of widths need it.
        """
        return np.tile(self.bound.pair_thresholds.T, (len(self.bound.rates), 1))

    def unsound(self, groups: tuple[Group, ...]) -> str | None:
        """What cannot be, in a process that comes from a file and is about these groups: others, or
        shapes that do not fit the bound. None if all is well.
        """
        if self.bound.groups != groups:
            return f"its intervals are about the groups {self.bound.groups}, not {groups}"
        if len(self.members) != self.bound.hypotheses:
            return f"it has {len(self.members)} hypotheses, and a bound for {self.bound.hypotheses}"
        needed = self.bound.start()
        for part in fields(needed):
            shape = np.shape(getattr(self.state, part.name))
            right = np.shape(getattr(needed, part.name))
            if shape != right:
                return f"{part.name} has shape {shape}, and the bound needs {right}"
        return None
