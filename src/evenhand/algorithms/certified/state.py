"""What the certified algorithm knows beside the table of rounds: one frozen record, without people
(but for a sample where counts alone are kept of them).

A *run* of certification has its own part delta_r of delta. It ends with a suspension; what it
learned ends with it, and the next run starts on later people only.
"""

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from evenhand.algorithms.certified.accepted_shares import AcceptedShares
from evenhand.algorithms.certified.drift import DriftWatch
from evenhand.algorithms.certified.evidence import Evidence
from evenhand.algorithms.certified.intervals import BettingProcess, EpochRecord
from evenhand.algorithms.certified.rule_tables import acceptance_table
from evenhand.algorithms.certified.sample import KeptCounts
from evenhand.contracts import GroupUse, Hypothesis
from evenhand.errors import InvalidInput
from evenhand.fairness.certificate import Certificate, Suspension
from evenhand.fairness.delta_ledger import DeltaLedger, inverse_square_share, run_share
from evenhand.fairness.rates import Rate
from evenhand.hypotheses.constants import GroupClassifier, Unread
from evenhand.rounds import Epoch, Span
from evenhand.words import BoolArray, FloatArray, Group, GroupArray

RESERVE = 0.1
"""The part of delta (and of the false alarms) kept for runs after a suspension; see
docs/decisions/0004.
"""
LATER_GROUPS = 0.05
"""The part of delta_r that is reserved for groups that join after the start, where none were
listed.
"""
FOR_ACCEPTANCE = 0.1
"""The part of delta_r that the accepted shares, of a cap or a floor, may be wrong with; nothing
without one.
"""
AcceptedShareEnds = tuple[float, float]
"""(lower, upper): between which values the accepted share of a policy lies."""
GapEnds = tuple[FloatArray, FloatArray]
"""(lower, upper): between which values the gaps of a policy lie, one entry per rate and pair."""


@dataclass(frozen=True)
class Guarantee:
    """|gap| <= limit for all `rates` and pairs of groups, with probability at least 1 - delta."""

    rates: tuple[Rate, ...]
    limit: float
    delta: float
    nominates: bool
    """Whether hypotheses are nominated one by one instead of all at once."""
    group_use: GroupUse
    maturity: float | None
    drift_false_alarm: float
    seed: int
    groups: tuple[Group, ...] | None = None
    """Those that were listed; None if they are taken from the first rounds."""
    accept_at_most: float | None = None
    accept_at_least: float | None = None
    """Between which accepted shares of the population every policy stays; None where there is no
    bound.
    """

    budgeted: bool = False
    has_quota: bool = False
    """Whether there is an audit budget, and a quota."""

    @property
    def most(self) -> float:
        """The largest accepted share that is permitted."""
        return 1.0 if self.accept_at_most is None else self.accept_at_most

    @property
    def least(self) -> float:
        """The smallest accepted share that is permitted."""
        return 0.0 if self.accept_at_least is None else self.accept_at_least

    @property
    def limits_acceptance(self) -> bool:
        """Whether there is a cap or a floor."""
        return self.accept_at_most is not None or self.accept_at_least is not None

    @property
    def group_decides(self) -> bool:
        """Whether hypotheses see the group."""
        return self.group_use == "decide"

    def run_delta(self, run: int) -> float:
        """delta_r of run r, with what is reserved for groups that join later."""
        return run_share(self.delta, run, reserve=RESERVE)

    def reserved(self, run: int) -> float:
        """What is kept of it for groups that join later: nothing if they were listed."""
        return LATER_GROUPS * self._for_gaps(run) if self.groups is None else 0.0

    def own_delta(self, run: int) -> float:
        """delta_r without that, and without what is kept for the accepted shares."""
        return self._for_gaps(run) - self.reserved(run)

    def acceptance_delta(self, run: int) -> float:
        """What is kept of delta_r for the accepted shares of rules; 0 without cap and floor."""
        return FOR_ACCEPTANCE * self.run_delta(run) if self.limits_acceptance else 0.0

    def _for_gaps(self, run: int) -> float:
        return self.run_delta(run) - self.acceptance_delta(run)

    def false_alarm(self, run: int) -> float:
        """The false-alarm probability of the drift tests in run r."""
        return run_share(self.drift_false_alarm, run, reserve=RESERVE)

    def gaps(self, groups: tuple[object, ...]) -> list[tuple[Rate, int, int]]:
        """(rate, earlier, later) of each gap, in the order of all intervals."""
        return gaps_between(self.rates, len(groups))


def gaps_between(rates: tuple[Rate, ...], groups: int) -> list[tuple[Rate, int, int]]:
    """(rate, earlier, later) of each gap, in the order of all intervals."""
    pairs = list(combinations(range(groups), 2))
    return [(rate, earlier, later) for rate in rates for earlier, later in pairs]


@dataclass(frozen=True, eq=False)
class PlannedEpoch:
    """An epoch as it was planned, with all that is claimed about it: the policy to come back to
    when the audit budget or the quota lets it. record: what its people are judged by; gaps,
    accepted: between which values its gaps and its accepted share lie. None: nothing is certified
    yet.
    """

    epoch: Epoch
    record: EpochRecord | None = None
    gaps: Any = None
    accepted: AcceptedShareEnds | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class CertifiedState:
    """One run of certification: its evidence, intervals, bookings and drift tests.

    Attributes
    ----------
    guarantee : Guarantee
        What is guaranteed.
    ledger : DeltaLedger
        What has been booked of delta, over all runs.
    run : int
        The number of the run, from 1.
    began : int
        The round at which the run began.
    suspensions : tuple of Suspension
        What ended each run before it, and when.
    groups : tuple or None
        The groups of the certificate, fixed when intervals start; later ones may join.
    covered_from : dict
        The first round of this run from which each of them is covered.
    evidence : Evidence
        Sums over closed cohorts.
    process : BettingProcess or None
        The intervals; None before each group has a few people.
    records : dict
        What the people of each epoch are judged by, written when the epoch was opened; kept until
        its cohorts have closed.
    closed_to : int
        Rounds before this one have closed.
    spans : tuple of (epoch, first, stop)
        The closed cohorts of this run.
    drift : DriftWatch or None
        The drift tests; None before intervals start.
    contradictions : int
        Hypotheses whose evidence contradicts itself.
    nominated_at, nominated_labels : float
        The round and the number of labels at the last nomination.
    accepted_shares, group_accepted_shares : AcceptedShares or None
        How large a share of the population each hypothesis, and each group classifier, accepts;
        None without a cap or a floor, and before intervals start.
    gaps : dict
        Between which values the gaps of each epoch's policy were certified to lie.
    accepted : dict
        Between which values the accepted share of each epoch's policy lies; with a cap or a floor.
    frozen : Certificate or None
        The certificate of a policy that does not change any more.
    planned : PlannedEpoch or None
        The epoch as it was planned.
    audits_open, quota_open : bool
        Whether the audit coin is tossed, and whether anybody may be accepted, in the epoch that is
        open.
    trouble : str or None
        Why no rule could be judged, or nominated, when the last epoch closed.
    kept : KeptCounts or None
        Where rows leave once they are counted (keep="counts"): what cannot be counted again.
    """

    guarantee: Guarantee
    ledger: DeltaLedger
    run: int = 1
    began: int = 0
    suspensions: tuple[Suspension, ...] = ()
    groups: tuple[Group, ...] | None = None
    covered_from: dict[Group, int] = field(default_factory=dict)
    evidence: Evidence = field(default_factory=Evidence)
    process: BettingProcess | None = None
    records: dict[int, EpochRecord] = field(default_factory=dict)
    closed_to: int = 0
    spans: tuple[Span, ...] = ()
    drift: DriftWatch | None = None
    contradictions: int = 0
    nominated_at: float = 0.0
    nominated_labels: float = 0.0
    accepted_shares: AcceptedShares | None = None
    group_accepted_shares: AcceptedShares | None = None
    gaps: dict[int, Any] = field(default_factory=dict)
    accepted: dict[int, AcceptedShareEnds] = field(default_factory=dict)
    frozen: Certificate | None = None
    planned: PlannedEpoch | None = None
    audits_open: bool = True
    quota_open: bool = True
    trouble: str | None = None
    kept: KeptCounts | None = None

    @property
    def alarms(self) -> tuple[str, ...]:
        """What says that an assumption is broken, in words."""
        streams = () if self.drift is None else self.drift.monitor.alarms
        alarms = tuple(str(stream) for stream in streams)
        empty = self.contradictions
        empty += sum(one.contradictions for one in self._all_accepted_shares)
        if empty:
            alarms += (f"the evidence about {empty} hypotheses contradicts itself",)
        return alarms

    @property
    def _all_accepted_shares(self) -> list[AcceptedShares]:
        both = (self.accepted_shares, self.group_accepted_shares)
        return [one for one in both if one is not None]

    @property
    def ready(self) -> bool:
        """Whether every group has a few people in each denominator."""
        return not self.evidence.missing(self.guarantee.rates, self.guarantee.groups)

    @property
    def ended(self) -> tuple[str, ...]:
        """What ended the run before it."""
        return self.suspensions[-1].reasons if self.suspensions else ()

    @property
    def first_run(self) -> bool:
        """Whether nothing has been suspended yet."""
        return self.run == 1

    @property
    def running(self) -> tuple[BettingProcess, tuple[Group, ...]]:
        """The interval process and the groups of the certificate; InvalidInput before it has
        started.
        """
        if self.process is None or self.groups is None:
            raise InvalidInput(
                "nothing is certified yet; only constants are deployed.",
                hint="look at report.notes.",
            )
        return self.process, self.groups

    def next_run(self, round: int, why: tuple[str, ...] = ()) -> "CertifiedState":
        """After a suspension: the ledger goes on, and nothing that was learned counts any more.
        Groups are covered anew: an assumption was false for some of the rounds before.
        """
        return CertifiedState(
            guarantee=self.guarantee,
            ledger=self.ledger,
            run=self.run + 1,
            began=round,
            suspensions=(*self.suspensions, Suspension(round, (*self.alarms, *why))),
            closed_to=self.closed_to,
            gaps=self.gaps,
            accepted=self.accepted,
        )

    def joined_by_group(self, group: Group, round: int) -> "CertifiedState":
        """A group that has turned up since the start joins: it is covered from the next policy on.

        The N-th to join books 6 rho delta_r / (pi^2 N^2), and its processes see later epochs only.
        Until its intervals are narrow the limit for its pairs is kept by weight on constants.
        """
        process, groups = self.running
        number = len(process.bound.joins) + 1
        delta = inverse_square_share(self.guarantee.reserved(self.run), number)
        what = f"group {group} joins"
        group_accepted_shares = self.group_accepted_shares
        if group_accepted_shares is not None:
            # "accept iff group" of a group that joins late has no part of delta: nothing is
            # claimed about how many people it accepts
            group_accepted_shares = group_accepted_shares.joined_by(0.0)
        return replace(
            self,
            group_accepted_shares=group_accepted_shares,
            ledger=self.ledger.book(what, delta, at=round, run=self.run),
            process=process.joined_by_group(group, delta),
            groups=(*groups, group),
            covered_from={**self.covered_from, group: round},
        )

    # what may be deployed

    def certified(self) -> tuple[tuple[Hypothesis, ...], FloatArray, FloatArray]:
        """Hypotheses with the lower and upper ends of their intervals (gaps, members); the group
        classifiers, whose gaps are known, join where the group may decide.

        "Accept iff group" has a rate of 1 in its own group and of 0 in all others (for a false
        negative rate, the reverse).
        """
        process, groups = self.running
        lower, upper, _ = process.intervals()
        gone = self._unread
        lower = np.where(gone, 0.0, lower)
        upper = np.where(gone, 0.0, upper)
        if not self.guarantee.group_decides:
            return process.members, lower, upper
        own = np.eye(len(groups))
        gaps = self.guarantee.gaps(groups)
        exact = np.array([rate.sign * (own[k] - own[j]) for rate, j, k in gaps])
        members = (*process.members, *(GroupClassifier(group) for group in groups))
        return (
            members,
            np.concatenate([lower, exact], axis=1),
            np.concatenate([upper, exact], axis=1),
        )

    def accepted_share_ends(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(members of `certified`,) three times: the lower and upper ends of the accepted share of
        each, and its estimate.
        """
        parts = self._all_accepted_shares
        names = ("lower", "upper", "estimate")
        lower, upper, estimate = (
            np.concatenate([getattr(part, name) for part in parts]) for name in names
        )
        for column in (lower, upper, estimate):
            column[: len(self._unread)][self._unread] = 0.0
        return lower, upper, estimate

    @property
    def _unread(self) -> BoolArray:
        """(members,): places of rules that could not be read. They reject all applicants, so that
        gap and accepted share are 0, exactly.
        """
        process, _ = self.running
        return np.array([isinstance(rule, Unread) for rule in process.members], dtype=bool)

    def table(self, features: FloatArray, group: GroupArray | None) -> BoolArray:
        """(members of `certified`, rows): who accepts whom."""
        process, groups = self.running
        table = process.table(features, group)
        if not self.guarantee.group_decides:
            return table
        others = tuple(GroupClassifier(value) for value in groups)
        return np.concatenate([table, acceptance_table(others, features, group)])
