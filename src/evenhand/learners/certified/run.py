"""One run of a certificate: what is promised, what was seen, and the interval process between the
first rounds and the alarm that may end it.

Run r has its own share delta_r of delta; what it learned ends with it, and the next one starts on
later people only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log
from typing import Any

import numpy as np

from evenhand.bounds import (
    AuditBinomial,
    AuditDkw,
    AuditHoeffding,
    AuditKl,
    BettingBound,
    FixedCountBound,
)
from evenhand.contracts import Enumeration, GroupUse, Hypothesis, HypothesisClass
from evenhand.errors import InvalidInput, ProtocolError
from evenhand.estimation import RoundLog
from evenhand.estimation.log import find_contexts, numbered
from evenhand.estimation.outcomes import fit_outcomes
from evenhand.fairness.delta_ledger import Booking, DeltaLedger, inverse_square_share, life_share
from evenhand.fairness.drift import ConstancyTest, DriftMonitor
from evenhand.fairness.rates import Rate
from evenhand.hypotheses import Stumps
from evenhand.hypotheses.constants import Constant, GroupClassifier
from evenhand.learners.certified.cohorts import ClosedCohort, GroupCounts, labelled_groups
from evenhand.learners.certified.intervals import (
    AuditProcess,
    BettingProcess,
    GapProcess,
    Outlook,
    Prepared,
    acceptance_table,
)
from evenhand.learners.certified.rule_drift import WatchedRules
from evenhand.learners.codec import storable
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.words import BoolArray, FloatArray, GroupArray, LabelledSample

RESERVE = 0.1
"""The share of delta (and of the false alarms) kept for lives after a suspension; see
docs/decisions/0004.
"""


@storable
@dataclass(frozen=True)
class Promise:
    """|gap| <= limit for all `rates` and pairs of groups, with probability at least 1 -
    failure_probability, judged by `bound`.
    """

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
        return [
            (rate, j, k) for rate in self.rates for j in range(size) for k in range(j + 1, size)
        ]


FIRST_PEOPLE = 10
"""How many people a group needs to be one, and each denominator of each group before a life starts.
"""
MOST_PAST = 4000
"""Past rows that a forecast looks at."""


@storable
@dataclass(eq=False)
class Past:
    """People seen so far, rows of equal features and group counted together; a sample of them once
    they are many.
    """

    features: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    group: GroupArray = field(default_factory=lambda: np.zeros(0, dtype=object))
    weight: FloatArray = field(default_factory=lambda: np.zeros(0))

    def add(self, features: FloatArray, group: GroupArray, weight: FloatArray) -> None:
        """Add rows."""
        known = len(self.weight)
        both = np.concatenate([self.group, group.astype(object)])
        contexts = find_contexts(features, both, before=self.features if known else None)
        total = contexts.total(np.concatenate([self.weight, weight]))
        chosen = np.arange(len(contexts))
        if len(contexts) > MOST_PAST:
            chosen = np.linspace(0, len(contexts) - 1, MOST_PAST).astype(int)
        keep = contexts.first[chosen]
        old, new = (
            keep[keep < known],
            keep[keep >= known] - known,
        )  # in the order of first appearance, so the old ones come first
        rows = np.concatenate([self.features[old], features[new]]) if len(old) else features[new]
        self.features, self.group, self.weight = rows, both[keep], total[chosen]


@storable
@dataclass(eq=False)
class Tally:
    """Counts of closed rounds.

    counts: labels seen per (group, label); judged: the same of the people whom the intervals have
    looked at; seen: people per group, whatever group that is; unknown: people without one.
    late_groups, overruled: by (group, drawn accept). erased: people of whom nothing is known any
    more, each at its worst.
    audited_negatives: the bill of bad accepts that audits have cost since the first life started.
    """

    past: Past = field(default_factory=Past)
    audits: list[LabelledSample] = field(default_factory=list)
    counts: dict[tuple[Any, int], float] = field(default_factory=dict)
    judged: dict[tuple[Any, int], float] = field(default_factory=dict)
    seen: dict[Any, float] = field(default_factory=dict)
    late_groups: GroupCounts = field(default_factory=dict)
    overruled: GroupCounts = field(default_factory=dict)
    unknown: float = 0.0
    people: float = 0.0
    erased: float = 0.0
    accepted: float = 0.0
    negatives: float = 0.0
    unresolved: float = 0.0
    audited_negatives: float = 0.0

    def add(
        self,
        cohort: ClosedCohort,
        groups: tuple[Any, ...] | None,
        *,
        billed: bool,
        judged: bool,
        keep_audits: bool,
    ) -> None:
        """Count a closed cohort; groups: those of the certificate, None before they are fixed;
        judged: whether the intervals looked at it."""
        self.people += float(cohort.rounds.sum()) + cohort.lost
        self.erased += cohort.lost
        self.accepted += float((cohort.positive + cohort.negative).sum())
        self.negatives += float(cohort.negative.sum())
        self.unresolved += float(cohort.unresolved.sum())
        self.audited_negatives += float(cohort.audited_negative.sum()) if billed else 0.0
        for total, more in (
            (self.late_groups, cohort.late_groups),
            (self.overruled, cohort.overruled),
        ):
            for key, number in more.items():
                total[key] = total.get(key, 0.0) + number
        inside = np.zeros(len(cohort.features), dtype=bool)
        values, codes = numbered(cohort.group)
        for code, value in enumerate(values):
            rows = codes == code
            people = float(cohort.rounds[rows].sum())
            if people == 0:
                continue
            if value is None:
                self.unknown += people
                continue
            self.seen[value] = self.seen.get(value, 0.0) + people
            if groups is not None and value not in groups:
                continue
            inside |= rows
            for label, column in ((1, cohort.positive), (-1, cohort.negative)):
                for counts in (self.counts, self.judged) if judged else (self.counts,):
                    counts[value, label] = counts.get((value, label), 0.0) + float(
                        column[rows].sum()
                    )
        self.remember(cohort, inside, keep_audits=keep_audits)

    def remember(self, cohort: ClosedCohort, inside: BoolArray, *, keep_audits: bool) -> None:
        """Keep people for forecasts, and audited ones for nominating; this is all of a tally that
        is about single people.
        """
        if len(cohort.features):
            self.past.add(cohort.features, cohort.group, cohort.rounds)
        if keep_audits:
            self._keep_audits(cohort, inside)

    def forget(self, features: FloatArray, group: Any, label: int) -> None:
        """Take one person out of those who are kept for forecasts and for nominating; the counts
        stay.
        """
        past = self.past
        rows = (past.features == features).all(axis=1) & np.array(
            [g == group for g in past.group.tolist()], bool
        )
        if rows.any():
            past.weight[int(np.argmax(rows))] -= 1.0
            left = past.weight > 0
            past.features, past.group, past.weight = (
                past.features[left],
                past.group[left],
                past.weight[left],
            )
        for place, audits in enumerate(self.audits):
            rows = (audits.features == features).all(axis=1) & (audits.label == label)
            rows &= np.array([g == group for g in audits.group.tolist()], bool)
            if rows.any():
                weight = audits.weight.copy()
                weight[int(np.argmax(rows))] -= 1.0
                kept = weight > 0
                self.audits[place : place + 1] = []
                if kept.any():
                    left_over = (audits.group[kept], audits.label[kept], weight[kept])
                    self.audits.insert(place, LabelledSample(audits.features[kept], *left_over))
                return

    def _keep_audits(self, cohort: ClosedCohort, inside: BoolArray) -> None:
        """Audited people are labelled draws of the population."""
        count = np.concatenate([cohort.audited_positive, cohort.audited_negative]) * np.tile(
            inside, 2
        )
        seen = count > 0
        if seen.any():
            label, rows = np.divmod(np.flatnonzero(seen), len(inside))
            features, group = cohort.features[rows], cohort.group[rows]
            self.audits.append(LabelledSample(features, group, 1 - 2 * label, count[seen]))

    @property
    def negative_share(self) -> float:
        """The share of bad outcomes among the accepted."""
        return self.negatives / self.accepted if self.accepted else 0.5

    @property
    def groups(self) -> tuple[Any, ...]:
        """The groups that have a few people, in order; a value with fewer may be a typing error."""
        seen = {value for value, people in self.seen.items() if people >= FIRST_PEOPLE}
        try:
            return tuple(sorted(seen))
        except TypeError:
            return tuple(sorted(seen, key=str))

    def denominator(self, group: Any, rate: Rate) -> float:
        """How many people of a group are known to be in a rate's denominator."""
        return sum(
            n
            for (value, y), n in self.counts.items()
            if value == group and rate.in_denominator(np.array([y]))[0]
        )

    def missing(
        self, rates: tuple[Rate, ...], wanted: tuple[Any, ...] | None
    ) -> list[tuple[Any, Rate, float]]:
        """(group, rate, people so far) of the denominators that are too small to begin: of the
        listed groups, or of those seen.
        """
        groups = wanted if wanted is not None else self.groups
        if len(groups) < 2:
            return [(groups[0] if groups else None, rates[0], 0.0)]
        sizes = [(group, rate, self.denominator(group, rate)) for group in groups for rate in rates]
        return [entry for entry in sizes if entry[2] < FIRST_PEOPLE]


MOST_LOG_SIZE = 12.0
"""The union over a class is paid up to this ln|H|."""
CUTS = 64
"""Cuts per column, for stumps."""
LATER_GROUPS = 0.05
"""The part of delta_r that is reserved for groups that join after the start, where none were
listed.
"""
MOST_NAMED = 20
"""So many values outside of the certificate are named in a note."""
AUDIT_BOUNDS: dict[str, FixedCountBound] = {
    "hoeffding": AuditHoeffding(),
    "kl": AuditKl(),
    "binomial": AuditBinomial(),
    "dkw": AuditDkw(),
}

for _record in (
    DeltaLedger,
    Booking,
    DriftMonitor,
    ConstancyTest,
    AuditHoeffding,
    AuditKl,
    AuditBinomial,
    AuditDkw,
):
    storable(_record)


@storable
@dataclass(eq=False)
class Life:
    """The tally, the interval process, the delta ledger and the drift monitor of one life.

    groups: those of the certificate, fixed when it starts; where none were listed (`wanted`), later
    ones may join. next_round: where the next cohort must begin. prepared: what is fixed for the
    cohorts of each epoch before they are looked at. awaiting: (epoch, first, stop) of the cohorts
    whose labels the drift tests have not seen. closed: the same of all cohorts of this life.
    frozen: the policy does not change any more, and nothing but the drift tests looks at people.
    ended: what ended the life before it.
    """

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
    next_round: int = 0
    joined: int = 0
    prepared: dict[int, Prepared] = field(default_factory=dict)
    awaiting: list[tuple[int, int, int]] = field(default_factory=list)
    closed: list[tuple[int, int, int]] = field(default_factory=list)
    frozen: bool = False

    @classmethod
    def first(cls, promise: Promise, groups: tuple[Any, ...] | None) -> "Life":
        """The first life."""
        return cls(1, promise, DeltaLedger(promise.failure_probability), 0, wanted=groups)

    def next(self, round: int) -> "Life":
        """After a suspension: the ledger goes on, everything else is forgotten; bad accepts stay on
        the bill.
        """
        return Life(
            self.number + 1,
            self.promise,
            self.ledger,
            round,
            wanted=self.wanted,
            tally=Tally(audited_negatives=self.tally.audited_negatives),
            ended=self.alarms,
            next_round=self.next_round,
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

    def look(self, cohort: ClosedCohort, policy: Mixture) -> None:
        """Look at a closed cohort once; `policy` was deployed in it."""
        if cohort.first != self.next_round:
            raise ProtocolError(
                f"a cohort begins with round {cohort.first}, but round {self.next_round} is the next to be looked at; "
                "a certificate looks at everybody, in the order of arrival.",
                hint="hand over every decided round once, overruled and erased people included.",
            )
        self.next_round = cohort.stop
        self._watch(cohort, policy)
        if self.frozen:
            return
        self.closed.append((cohort.epoch, cohort.first, cohort.stop))
        judged = self.process is not None and cohort.epoch in self.prepared
        if self.process is not None and judged:
            self.process.update(cohort, self.prepared[cohort.epoch])
            contradiction = self.process.intervals()[2]
            if contradiction.any():
                self.broken = (
                    f"the evidence about {int(contradiction.sum())} hypotheses contradicts itself",
                )
        keep = self.promise.nominates
        self.tally.add(cohort, self.groups, billed=self.started, judged=judged, keep_audits=keep)

    def prepare(self, policies: Mapping[int, Mixture], before: RoundLog | None) -> None:
        """Fix bets and regression for the next cohorts of these epochs, by their policies, from the
        rounds `before`, which have closed.
        """
        process, past = self.process, self.tally.past
        self.prepared = {}
        if process is None or self.frozen:
            return
        regression = fit_outcomes(before)
        for epoch, policy in policies.items():
            acceptance = policy.acceptance(
                past.features, past.group if self.promise.group_decides else None
            )
            plan = process.plan(
                Outlook(past.features, past.group, past.weight, acceptance, regression)
            )
            self.prepared[epoch] = Prepared(
                plan, regression, labelled_groups(policy, self.groups or ())
            )

    def _watch(self, cohort: ClosedCohort, policy: Mixture) -> None:
        """Group mix of everybody whose group is known, and whom the deployed rules accept; labels
        as soon as they may be looked at.

        With a maturity window a label's category is settled at the end of the person's own window,
        whenever the cohort closes. Without one, labels are looked at cohort by cohort, in the order
        of arrival, once a cohort has all of them: to pass over a cohort that lacks some would
        select by the labels.
        """
        if self.monitor is None or self.watched is None or self.groups is None:
            return
        groups = self.groups
        founders = groups[: len(groups) - self.joined]
        codes = cohort.codes(founders)
        known = np.array([value is not None for value in cohort.group.tolist()], dtype=bool)
        counts = [float(cohort.rounds[codes == j].sum()) for j in range(len(founders))]
        self.monitor = self.monitor.watch(
            "group mix", [*counts, float(cohort.rounds[known & (codes < 0)].sum())]
        )
        decides = self.promise.group_decides
        self.monitor = self.watched.watch_shares(
            self.monitor, cohort, policy, groups, group_decides=decides
        )
        if self.promise.maturity is None and (self.awaiting or not cohort.complete):
            self.awaiting.append((cohort.epoch, cohort.first, cohort.stop))
        else:
            self.watch_labels(cohort, policy)

    def watch_labels(self, cohort: ClosedCohort, policy: Mixture) -> None:
        """Labels (good, bad, not come) of the audited, who are draws of the population, and of
        those whom the deployed rules accepted.
        """
        if self.monitor is None or self.watched is None or self.groups is None:
            return
        codes = cohort.codes(self.groups)
        for j, group in enumerate(self.groups):
            counts = cohort.settled_audited[:, codes == j].sum(axis=1)
            self.monitor = self.monitor.watch(f"labels of {group}", counts)
        decides = self.promise.group_decides
        self.monitor = self.watched.watch_labels(
            self.monitor, cohort, policy, self.groups, group_decides=decides
        )

    # starting

    def start(self, hypotheses: HypothesisClass, columns: int, round: int) -> None:
        """Fix groups and hypotheses, book delta_r, and begin."""
        groups = self.wanted or self.tally.groups
        self.groups = groups
        streams = {"group mix": len(groups) + 1, **{f"labels of {group}": 3 for group in groups}}
        self.monitor = DriftMonitor.start(streams, self.promise.false_alarm(self.number))
        self.watched = WatchedRules(stream(self.promise.seed, "watched", self.number))
        if self.promise.nominates:
            bound = BettingBound(groups, self.promise.rates, 0, self._share, shares=())
            self.process = BettingProcess(bound, (), bound.start(), self.promise.group_decides)
            return
        members = self._members(hypotheses)
        self.ledger = self.ledger.book(
            f"life {self.number}: {self.promise.bound} over {len(members)} hypotheses",
            self._share,
            at=round,
        )
        self.process = self._process_of(members, groups, columns, self._share)

    @property
    def _reserved(self) -> float:
        """What is kept for groups that join later: nothing if they were listed, or if the bound
        looks at preset counts.
        """
        later = self.wanted is None and self.promise.bound in ("betting", "nominate")
        return LATER_GROUPS * self.promise.share(self.number) if later else 0.0

    @property
    def _share(self) -> float:
        """delta_r, but for that."""
        return self.promise.share(self.number) - self._reserved

    def join_groups(self, round: int) -> None:
        """A group that has turned up since, and has a few people, joins: from here on the
        certificate covers it.

        The N-th books 6 rho delta_r / (pi^2 N^2), and its processes see later cohorts only. Until
        its intervals are narrow the limit for its pairs is kept by weight on constants.
        """
        if (
            not isinstance(self.process, BettingProcess)
            or self.groups is None
            or not self._reserved
        ):
            return
        for group in self.tally.groups:
            if group not in self.groups:
                self.joined += 1
                share = inverse_square_share(self._reserved, self.joined)
                self.ledger = self.ledger.book(
                    f"life {self.number}: group {group} joins", share, at=round
                )
                self.process.join_group(group, share)
                self.groups = (*self.groups, group)

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
        """The finite class that all later rounds are judged by: H itself, or its cuts at the first
        people's values.
        """
        past = self.tally.past
        source = (
            Stumps(max_bins=CUTS)
            if isinstance(hypotheses, Stumps) and hypotheses.max_bins is None
            else hypotheses
        )
        bound = source.bind(past.features, past.group if self.promise.group_decides else None)
        if not isinstance(bound, Enumeration):
            raise InvalidInput(
                f"{type(hypotheses).__name__} cannot be enumerated, so no union over it can be paid.",
                hint='use bound="nominate".',
            )
        size = bound.totals(np.zeros((1, len(past.features)))).shape[1]
        if log(size) > MOST_LOG_SIZE:
            raise InvalidInput(
                f"the class has {size} members; a union over them is too wide.",
                hint='use bound="nominate".',
            )
        return tuple(h for h in (bound.hypothesis(i) for i in range(size)) if not _is_constant(h))

    def nominate(self, hypothesis: Hypothesis, round: int) -> bool:
        """The N-th nominated hypothesis books 6 delta_r / (pi^2 N^2) and is judged by later cohorts
        only.
        """
        if (
            not isinstance(self.process, BettingProcess)
            or _is_constant(hypothesis)
            or hypothesis in self.process.members
        ):
            return False
        number = len(self.process.members) + 1
        share = inverse_square_share(self._share, number)
        self.ledger = self.ledger.book(
            f"life {self.number}: nominated hypothesis {number}", share, at=round
        )
        self.process.join(hypothesis, share)
        return True

    # what is certified

    def certified(self) -> tuple[tuple[Hypothesis, ...], FloatArray, FloatArray]:
        """Hypotheses with their intervals; the group classifiers, whose gaps are known, join where
        the group may decide.
        """
        process, groups = self.running
        lo, hi, _ = process.intervals()
        if not self.promise.group_decides:
            return process.members, lo, hi
        exact = np.stack([self._group_gaps(group, groups) for group in groups], axis=1)
        members = (*process.members, *(GroupClassifier(group) for group in groups))
        return members, np.concatenate([lo, exact], axis=1), np.concatenate([hi, exact], axis=1)

    def table(self, features: FloatArray, group: GroupArray | None) -> BoolArray:
        """(members of `certified`, rows): who accepts whom."""
        process, groups = self.running
        table = process.table(features, group)
        if not self.promise.group_decides:
            return table
        return np.concatenate(
            [
                table,
                acceptance_table(
                    tuple(GroupClassifier(value) for value in groups), features, group
                ),
            ]
        )

    @property
    def running(self) -> tuple[GapProcess, tuple[Any, ...]]:
        """The interval process and the groups of the certificate; InvalidInput before it has
        started.
        """
        if self.process is None or self.groups is None:
            raise InvalidInput(
                "nothing is certified yet; only constants are deployed.",
                hint="look at report.notes.",
            )
        return self.process, self.groups

    def _group_gaps(self, group: Any, groups: tuple[Any, ...]) -> FloatArray:
        """The gaps of "accept iff group": its own rate is 1, all others 0 (for a false negative
        rate, the reverse).
        """
        is_it = [float(value == group) for value in groups]
        return np.array(
            [rate.sign * (is_it[k] - is_it[j]) for rate, j, k in self.promise.pairs(groups)]
        )

    @property
    def uncovered(self) -> dict[Any, float]:
        """People of groups that the certificate does not cover, by group; None is the unknown one."""
        found = {
            value: n
            for value, n in self.tally.seen.items()
            if self.groups and value not in self.groups
        }
        return found | ({None: self.tally.unknown} if self.tally.unknown else {})

    @property
    def notes(self) -> list[str]:
        """What is missing, in words."""
        found = (
            [
                f"suspended at round {self.began} ({'; '.join(self.ended)}); this is life {self.number}."
            ]
            if self.ended
            else []
        )
        for group, rate, have in (
            [] if self.started else self.tally.missing(self.promise.rates, self.wanted)
        ):
            need = f"{have:g} {rate.denominator_name}, {FIRST_PEOPLE} are needed to begin"
            found.append(f"only constants are deployed: group {group!r} has {need}.")
        if self.tally.unresolved:
            found.append(
                f"{self.tally.unresolved:g} labels had not come when their cohort closed; they count as the worst case."
            )
        rare = {value: people for value, people in self.uncovered.items() if value is not None}
        if rare and self.started:
            named = ", ".join(
                f"{value!r} ({people:g})" for value, people in list(rare.items())[:MOST_NAMED]
            )
            law = "they are not among the groups of the promise"
            if self._reserved:
                law = f"a group joins once it has {FIRST_PEOPLE} people; a value with fewer may be a typing error"
            found.append(f"outside the certificate: people of {named}; {law}.")
        if self.awaiting:
            found.append(
                f"the drift tests wait for labels from round {self.awaiting[0][1]} on; without a maturity window "
                "nobody can say when they are complete."
            )
        return found


def _is_constant(hypothesis: Hypothesis) -> bool:
    contexts = getattr(hypothesis, "contexts", None)
    return isinstance(hypothesis, Constant) or (contexts is not None and len(set(contexts)) == 1)
