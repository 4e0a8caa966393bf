"""One life of a certificate: from the first rounds, through the interval process it starts, to the alarm that may end it.

Life r has its own share delta_r of delta; what it learned ends with it, and the next one starts on later people only.
"""

from dataclasses import dataclass, field
from math import log
from typing import Any

import numpy as np

from evenhand.contracts import Enumeration, Hypothesis, HypothesisClass
from evenhand.errors import InvalidInput
from evenhand.estimation import RoundLog
from evenhand.estimation.outcomes import fit_outcomes
from evenhand.fairness.bounds.betting import BettingBound
from evenhand.fairness.bounds.chernoff import AuditBinomial, AuditKl
from evenhand.fairness.bounds.dkw import AuditDkw
from evenhand.fairness.bounds.fixed_count import FixedCountBound
from evenhand.fairness.bounds.hoeffding import AuditHoeffding
from evenhand.fairness.delta_ledger import Booking, DeltaLedger, inverse_square_share
from evenhand.fairness.drift import ConstancyTest, DriftMonitor
from evenhand.hypotheses import Stumps
from evenhand.hypotheses.constants import Constant, GroupClassifier
from evenhand.learners.audit_process import AuditProcess
from evenhand.learners.codec import storable
from evenhand.learners.cohorts import ClosedCohort
from evenhand.learners.processes import BettingProcess, GapProcess, Outlook, acceptance_table
from evenhand.learners.promise import Promise
from evenhand.learners.tally import FIRST_PEOPLE, Tally
from evenhand.learners.watching import WatchedRules
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.words import BoolArray, FloatArray, GroupArray

MOST_LOG_SIZE = 12.0
"""The union over a class is paid up to this ln|H|."""
CUTS = 64
"""Cuts per column, for stumps."""
AUDIT_BOUNDS: dict[str, FixedCountBound] = {
    "hoeffding": AuditHoeffding(),
    "kl": AuditKl(),
    "binomial": AuditBinomial(),
    "dkw": AuditDkw(),
}

for _record in (DeltaLedger, Booking, DriftMonitor, ConstancyTest, AuditHoeffding, AuditKl, AuditBinomial, AuditDkw):
    storable(_record)


@storable
@dataclass(eq=False)
class Life:
    """The tally, the interval process, the delta ledger and the drift monitor of one life. groups: fixed when it starts; ended: what
    ended the life before it."""

    number: int
    promise: Promise
    ledger: DeltaLedger
    began: int
    wanted: tuple[Any, ...] | None = None
    groups: tuple[Any, ...] | None = None
    tally: Tally = field(default_factory=Tally)
    process: GapProcess | None = None
    monitor: DriftMonitor | None = None
    watched: WatchedRules | None = None
    broken: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    nominated_at: float = 0.0
    nominated_labels: float = 0.0

    @classmethod
    def first(cls, promise: Promise, groups: tuple[Any, ...] | None) -> "Life":
        """The first life."""
        return cls(1, promise, DeltaLedger(promise.failure_probability), 0, wanted=groups)

    def next(self, round: int) -> "Life":
        """After a suspension: the ledger goes on, everything else is forgotten; bad accepts stay on the bill."""
        bill = Tally(audited_negatives=self.tally.audited_negatives)
        return Life(
            self.number + 1, self.promise, self.ledger, round, wanted=self.groups, tally=bill, ended=self.alarms
        )

    @property
    def started(self) -> bool:
        """Whether intervals exist."""
        return self.process is not None

    @property
    def ready(self) -> bool:
        """Whether every group has a few people in each denominator."""
        return not self.tally.missing(self.promise.rates, self.wanted)

    @property
    def alarms(self) -> tuple[str, ...]:
        """What says that an assumption is broken."""
        return (*(self.monitor.alarms if self.monitor is not None else ()), *self.broken)

    # looking at cohorts

    def look(self, cohort: ClosedCohort, policy: Mixture, before: RoundLog | None) -> None:
        """Look at a closed cohort once; `policy` was deployed in it, `before` are the rounds closed earlier."""
        if self.process is not None:
            self._narrow(self.process, cohort, policy, before)
            self._watch(cohort, policy)
        inside = np.array([value is not None for value in cohort.group.tolist()], dtype=bool)
        if self.groups is not None:
            inside &= cohort.codes(self.groups) >= 0
        self.tally.add(cohort, inside, billed=self.started, keep_audits=self.promise.nominates)

    def _narrow(self, process: GapProcess, cohort: ClosedCohort, policy: Mixture, before: RoundLog | None) -> None:
        past, shown = self.tally.past, self.promise.group_decides
        acceptance = policy.acceptance(past.features, past.group if shown else None)
        process.update(cohort, Outlook(past.features, past.group, past.weight, acceptance, fit_outcomes(before)))
        contradiction = process.intervals()[2]
        if contradiction.any():
            self.broken = (f"the evidence about {int(contradiction.sum())} hypotheses contradicts itself",)

    def _watch(self, cohort: ClosedCohort, policy: Mixture) -> None:
        """Group mix of everybody; labels (good, bad, not come) of the audited, who are draws of the population; and a deployed rule.

        Without a maturity window "not come" only says how quickly labels were told, so cohorts that lack some are passed over.
        """
        groups, monitor = self.groups or (), self.monitor
        if monitor is None:
            return
        codes = cohort.codes(groups)
        monitor = monitor.watch("group mix", [float(cohort.rounds[codes == j].sum()) for j in range(len(groups))])
        complete = self.promise.maturity is not None or not cohort.audited_unresolved.any()
        for j, group in enumerate(groups if complete else ()):
            columns = (cohort.audited_positive, cohort.audited_negative, cohort.audited_unresolved)[: self._label_kinds]
            monitor = monitor.watch(f"labels of {group}", [float(column[codes == j].sum()) for column in columns])
        if self.watched is not None:
            monitor = self.watched.watch(monitor, cohort, policy, groups, group_decides=self.promise.group_decides)
        self.monitor = monitor

    @property
    def _label_kinds(self) -> int:
        """Good and bad; and not come, where there is a window within which labels should."""
        return 2 if self.promise.maturity is None else 3

    # starting

    def start(self, hypotheses: HypothesisClass, columns: int, round: int) -> None:
        """Fix groups and hypotheses, book delta_r, and begin."""
        self.groups = self.wanted or self.tally.groups
        streams = {"group mix": len(self.groups), **{f"labels of {group}": self._label_kinds for group in self.groups}}
        self.monitor = DriftMonitor.start(streams, self.promise.false_alarm(self.number))
        self.watched = WatchedRules(stream(self.promise.seed, "watched", self.number), self._label_kinds)
        share = self.promise.share(self.number)
        if self.promise.nominates:
            bound = BettingBound(self.groups, self.promise.rates, 0, share, shares=())
            self.process = BettingProcess(bound, (), bound.start(), self.promise.group_decides)
            return
        members = self._members(hypotheses)
        self.ledger = self.ledger.book(
            f"life {self.number}: {self.promise.bound} over {len(members)} hypotheses", share, at=round
        )
        self.process = self._process_of(members, self.groups, columns, share)

    def _process_of(
        self, members: tuple[Hypothesis, ...], groups: tuple[Any, ...], columns: int, share: float
    ) -> GapProcess:
        promise = self.promise
        if promise.bound == "betting":
            bound = BettingBound(groups, promise.rates, len(members), share)
            return BettingProcess(bound, members, bound.start(), promise.group_decides)
        return AuditProcess(
            bound=AUDIT_BOUNDS[promise.bound],
            members=members,
            groups=groups,
            rates=promise.rates,
            failure_probability=share,
            columns=columns,
            log_size=log(max(len(members), 1)),
            generator=stream(promise.seed, "looks", self.number),
            group_decides=promise.group_decides,
        )

    def _members(self, hypotheses: HypothesisClass) -> tuple[Hypothesis, ...]:
        """The finite class that all later rounds are judged by: H itself, or its cuts at the first people's values."""
        past = self.tally.past
        source = Stumps(max_bins=CUTS) if isinstance(hypotheses, Stumps) and hypotheses.max_bins is None else hypotheses
        bound = source.bind(past.features, past.group if self.promise.group_decides else None)
        if not isinstance(bound, Enumeration):
            raise InvalidInput(
                f"{type(hypotheses).__name__} cannot be enumerated, so no union over it can be paid.",
                hint='use bound="nominate".',
            )
        size = bound.totals(np.zeros((1, len(past.features)))).shape[1]
        if log(size) > MOST_LOG_SIZE:
            raise InvalidInput(
                f"the class has {size} members; a union over them is too wide.", hint='use bound="nominate".'
            )
        return tuple(h for h in (bound.hypothesis(i) for i in range(size)) if not _is_constant(h))

    def nominate(self, hypothesis: Hypothesis, round: int) -> bool:
        """The N-th nominated hypothesis books 6 delta_r / (pi^2 N^2) and is judged by later cohorts only."""
        if (
            not isinstance(self.process, BettingProcess)
            or _is_constant(hypothesis)
            or hypothesis in self.process.members
        ):
            return False
        number = len(self.process.members) + 1
        share = inverse_square_share(self.promise.share(self.number), number)
        self.ledger = self.ledger.book(f"life {self.number}: nominated hypothesis {number}", share, at=round)
        self.process.join(hypothesis, share)
        return True

    # what is certified

    def certified(self) -> tuple[tuple[Hypothesis, ...], FloatArray, FloatArray]:
        """Hypotheses with their intervals; the group classifiers, whose gaps are known, join where the group may decide."""
        process, groups = self._running()
        lo, hi, _ = process.intervals()
        if not self.promise.group_decides:
            return process.members, lo, hi
        exact = np.stack([self._group_gaps(group, groups) for group in groups], axis=1)
        members = (*process.members, *(GroupClassifier(group) for group in groups))
        return members, np.concatenate([lo, exact], axis=1), np.concatenate([hi, exact], axis=1)

    def table(self, features: FloatArray, group: GroupArray | None) -> BoolArray:
        """(members of `certified`, rows): who accepts whom."""
        process, groups = self._running()
        table = process.table(features, group)
        if not self.promise.group_decides:
            return table
        return np.concatenate(
            [table, acceptance_table(tuple(GroupClassifier(value) for value in groups), features, group)]
        )

    def _running(self) -> tuple[GapProcess, tuple[Any, ...]]:
        if self.process is None or self.groups is None:
            raise InvalidInput("nothing is certified yet; only constants are deployed.", hint="look at report.notes.")
        return self.process, self.groups

    def _group_gaps(self, group: Any, groups: tuple[Any, ...]) -> FloatArray:
        """The gaps of "accept iff group": its own rate is 1, all others 0 (for a false negative rate, the reverse)."""
        is_it = [float(value == group) for value in groups]
        return np.array([rate.sign * (is_it[k] - is_it[j]) for rate, j, k in self.promise.pairs(groups)])

    @property
    def notes(self) -> list[str]:
        """What is missing, in words."""
        found = (
            [f"suspended at round {self.began} ({'; '.join(self.ended)}); this is life {self.number}."]
            if self.ended
            else []
        )
        for group, rate, have in [] if self.started else self.tally.missing(self.promise.rates, self.wanted):
            need = f"{have:g} {rate.denominator_name}, {FIRST_PEOPLE} are needed to begin"
            found.append(f"only constants are deployed: group {group!r} has {need}.")
        if self.tally.unresolved:
            found.append(
                f"{self.tally.unresolved:g} labels had not come when their cohort closed; they count as the worst case."
            )
        return found


def _is_constant(hypothesis: Hypothesis) -> bool:
    contexts = getattr(hypothesis, "contexts", None)
    return isinstance(hypothesis, Constant) or (contexts is not None and len(set(contexts)) == 1)
