"""One life of a certificate: from the first rounds, through the interval process it starts, to the alarm that may end it.

Life r has delta_r = 6 delta / (pi^2 r^2); what it learned ends with it, and the next one starts on later people only.
"""

from dataclasses import dataclass, field
from math import log
from typing import Any

import numpy as np

from evenhand.contracts import Enumeration, Hypothesis, HypothesisClass
from evenhand.errors import CannotCertify, InvalidInput
from evenhand.estimation import RoundLog
from evenhand.estimation.contexts import find_contexts
from evenhand.estimation.outcomes import fit_outcomes
from evenhand.fairness.bounds.betting import BettingBound
from evenhand.fairness.bounds.chernoff import AuditBinomial, AuditKl
from evenhand.fairness.bounds.dkw import AuditDkw
from evenhand.fairness.bounds.fixed_count import FixedCountBound
from evenhand.fairness.bounds.hoeffding import AuditHoeffding
from evenhand.fairness.certificate import CellCount, Certificate, GapInterval, policy_hash, standard_assumptions
from evenhand.fairness.delta_ledger import DeltaLedger, inverse_square_share, life_share
from evenhand.fairness.drift import DriftMonitor
from evenhand.fairness.rates import Rate
from evenhand.hypotheses import Stumps
from evenhand.hypotheses.constants import Constant, GroupClassifier
from evenhand.learners.audits import evidence_rate
from evenhand.learners.certified_set import CertifiedSet
from evenhand.learners.cohorts import ClosedCohort
from evenhand.learners.epochs import Epoch
from evenhand.learners.processes import AuditProcess, BettingProcess, GapProcess, Outlook, acceptance_table
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.words import BoolArray, FloatArray, GroupArray, LabelledSample

FIRST_PEOPLE = 10
"""How many people each denominator of each group must have before a life starts."""
MOST_LOG_SIZE = 12.0
"""The union over a class is paid up to this ln|H|."""
CUTS = 64
"""Cuts per column, for stumps."""
MOST_PAST = 4000
"""Past rows that a forecast looks at."""
AUDIT_BOUNDS: dict[str, FixedCountBound] = {
    "hoeffding": AuditHoeffding(),
    "kl": AuditKl(),
    "binomial": AuditBinomial(),
    "dkw": AuditDkw(),
}


@dataclass(eq=False)
class Past:
    """People seen so far, rows of equal features and group counted together; a sample of them once they are many."""

    features: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    group: GroupArray = field(default_factory=lambda: np.zeros(0, dtype=object))
    weight: FloatArray = field(default_factory=lambda: np.zeros(0))

    def add(self, features: FloatArray, group: GroupArray, weight: FloatArray) -> None:
        """Add rows."""
        rows = features if len(self.weight) == 0 else np.concatenate([self.features, features])
        both = np.concatenate([self.group, group.astype(object)])
        total = np.concatenate([self.weight, weight])
        contexts = find_contexts(rows, both)
        keep = contexts.first
        self.features, self.group, self.weight = rows[keep], both[keep], contexts.total(total)
        if len(keep) > MOST_PAST:
            chosen = np.linspace(0, len(keep) - 1, MOST_PAST).astype(int)
            self.features, self.group, self.weight = self.features[chosen], self.group[chosen], self.weight[chosen]


@dataclass(eq=False)
class Life:
    """Counts, past people, audits, the interval process, the delta ledger and the drift monitor of one life."""

    number: int
    setup: dict[str, Any]
    ledger: DeltaLedger
    began: int
    groups: tuple[Any, ...] | None = None
    wanted: tuple[Any, ...] | None = None
    process: GapProcess | None = None
    monitor: DriftMonitor | None = None
    past: Past = field(default_factory=Past)
    audits: list[LabelledSample] = field(default_factory=list)
    counts: dict[tuple[Any, int], float] = field(default_factory=dict)
    people: float = 0.0
    unknown: float = 0.0
    late_groups: int = 0
    accepted: float = 0.0
    negatives: float = 0.0
    unresolved: float = 0.0
    evidence: float = 0.0
    audited_negatives: float = 0.0
    broken: tuple[str, ...] = ()
    nominated_at: float = 0.0

    @classmethod
    def first(cls, setup: dict[str, Any], groups: tuple[Any, ...] | None) -> "Life":
        """The first life."""
        return cls(1, setup, DeltaLedger(setup["failure_probability"]), 0, wanted=groups)

    def next(self, round: int) -> "Life":
        """After a suspension: the ledger goes on, everything else is forgotten; bad accepts stay on the bill."""
        return Life(
            self.number + 1,
            self.setup,
            self.ledger,
            round,
            wanted=self.groups,
            audited_negatives=self.audited_negatives,
            broken=(),
        )

    @property
    def share(self) -> float:
        """delta_r."""
        return life_share(self.setup["failure_probability"], self.number)

    @property
    def started(self) -> bool:
        """Whether intervals exist."""
        return self.process is not None

    @property
    def alarms(self) -> tuple[str, ...]:
        """What says that an assumption is broken."""
        drift = () if self.monitor is None else self.monitor.alarms
        return (*drift, *self.broken)

    @property
    def negative_share(self) -> float:
        """The share of bad outcomes among the accepted."""
        return self.negatives / self.accepted if self.accepted else 0.5

    # looking at cohorts

    def look(self, cohort: ClosedCohort, policy: Mixture, before: RoundLog | None) -> None:
        """Look at a closed cohort once; `policy` was deployed in it, `before` are the rounds closed earlier."""
        acceptance = policy.acceptance(cohort.features, cohort.group if self.setup["group_use"] == "decide" else None)
        if self.process is not None and self.groups is not None:
            self._narrow(cohort, policy, before)
            self._watch(cohort)
        rounds = cohort.rounds
        if acceptance.min(initial=1.0) > 0 and rounds.sum() > 0:
            self.evidence += float(rounds.sum() * evidence_rate(acceptance, rounds / rounds.sum()))
        self._count(cohort)

    def _narrow(self, cohort: ClosedCohort, policy: Mixture, before: RoundLog | None) -> None:
        assert self.process is not None
        decides = self.setup["group_use"] == "decide"
        outlook = Outlook(
            self.past.features,
            self.past.group,
            self.past.weight,
            policy.acceptance(self.past.features, self.past.group if decides else None),
            fit_outcomes(before),
            decides,
        )
        self.process.update(cohort, outlook)
        contradiction = self.process.intervals()[2]
        if contradiction.any():
            self.broken = (f"the evidence about {int(contradiction.sum())} hypotheses contradicts itself",)

    def _watch(self, cohort: ClosedCohort) -> None:
        assert self.monitor is not None and self.groups is not None
        codes = cohort.codes(self.groups)
        monitor = self.monitor.watch(
            "group mix", [float(cohort.rounds[codes == j].sum()) for j in range(len(self.groups))]
        )
        for j, group in enumerate(self.groups):
            rows = codes == j
            labels = [float(cohort.audited_positive[rows].sum()), float(cohort.audited_negative[rows].sum())]
            if sum(labels):
                monitor = monitor.watch(f"labels of {group}", labels)
        self.monitor = monitor

    def _count(self, cohort: ClosedCohort) -> None:
        known = np.array([value is not None for value in cohort.group.tolist()])
        if self.groups is not None:
            known &= cohort.codes(self.groups) >= 0
        self.people += float(cohort.rounds.sum())
        self.unknown += float(cohort.rounds[~known].sum())
        self.accepted += float((cohort.positive + cohort.negative).sum())
        self.negatives += float(cohort.negative.sum())
        self.unresolved += float(cohort.unresolved.sum())
        self.audited_negatives += float(cohort.audited_negative.sum()) if self.started else 0.0
        for value in set(cohort.group[known].tolist()):
            rows = known & (cohort.group == value)
            for label, column in ((1, cohort.positive), (-1, cohort.negative)):
                self.counts[value, label] = self.counts.get((value, label), 0.0) + float(column[rows].sum())
        if len(cohort.features):
            self.past.add(cohort.features, cohort.group, cohort.rounds)
        self._keep_audits(cohort, known)

    def _keep_audits(self, cohort: ClosedCohort, known: Any) -> None:
        """Labelled draws of the population, for nominating."""
        features = np.concatenate([cohort.features, cohort.features])
        group = np.concatenate([cohort.group, cohort.group])
        label = np.repeat([1, -1], len(cohort.features))
        count = np.concatenate([cohort.audited_positive, cohort.audited_negative]) * np.tile(known, 2)
        seen = count > 0
        if self.setup["bound"] == "nominate" and seen.any():
            self.audits.append(LabelledSample(features[seen], group[seen], label[seen], count[seen]))

    # starting

    def ready(self, rates: tuple[Rate, ...]) -> bool:
        """Whether every group has FIRST_PEOPLE people in each denominator."""
        return not self._missing(rates)

    def _missing(self, rates: tuple[Rate, ...]) -> list[tuple[Any, Rate, float]]:
        groups = self.wanted if self.wanted is not None else tuple(dict.fromkeys(value for value, _ in self.counts))
        if len(groups) < 2:
            return [(groups[0] if groups else None, rates[0], 0.0)]
        found = []
        for group in groups:
            for rate in rates:
                have = sum(self.counts.get((group, y), 0.0) for y in (1, -1) if rate.in_denominator(np.array([y]))[0])
                if have < FIRST_PEOPLE:
                    found.append((group, rate, have))
        return found

    def start(self, hypotheses: HypothesisClass, columns: int, round: int) -> None:
        """Fix groups and hypotheses, book delta_r, and begin."""
        chosen = self.wanted or _ordered({value for value, _ in self.counts})
        self.groups = chosen
        streams = {"group mix": len(chosen), **{f"labels of {group}": 2 for group in chosen}}
        self.monitor = DriftMonitor.start(streams, life_share(self.setup["drift_false_alarm"], self.number))
        if self.setup["bound"] == "nominate":
            bound = BettingBound(chosen, self.setup["rates"], 0, self.share, shares=())
            self.process = BettingProcess(bound, (), bound.start(), self.setup["group_use"] == "decide")
            return
        members = self._members(hypotheses)
        self.ledger = self.ledger.book(
            f"life {self.number}: {self.setup['bound']} over {len(members)} hypotheses", self.share, at=round
        )
        self.process = self._process_of(members, chosen, columns)

    def _process_of(self, members: tuple[Hypothesis, ...], groups: tuple[Any, ...], columns: int) -> GapProcess:
        decides, rates = self.setup["group_use"] == "decide", self.setup["rates"]
        if self.setup["bound"] == "betting":
            bound = BettingBound(groups, rates, len(members), self.share)
            return BettingProcess(bound, members, bound.start(), decides)
        if self.setup["bound"] not in AUDIT_BOUNDS:
            raise InvalidInput(f"bound is {self.setup['bound']!r}; it is betting, nominate, {', '.join(AUDIT_BOUNDS)}.")
        return AuditProcess(
            AUDIT_BOUNDS[self.setup["bound"]],
            members,
            groups,
            rates,
            self.share,
            columns,
            log(max(len(members), 1)),
            stream(self.setup["seed"], "looks", self.number),
            decides,
        )

    def _members(self, hypotheses: HypothesisClass) -> tuple[Hypothesis, ...]:
        """The finite class that all later rounds are judged by: H itself, or its cuts at the first people's values."""
        decides = self.setup["group_use"] == "decide"
        source = Stumps(max_bins=CUTS) if isinstance(hypotheses, Stumps) and hypotheses.max_bins is None else hypotheses
        bound = source.bind(self.past.features, self.past.group if decides else None)
        if not isinstance(bound, Enumeration):
            raise InvalidInput(
                f"{type(hypotheses).__name__} cannot be enumerated, so no union over it can be paid.",
                hint='use bound="nominate".',
            )
        size = bound.totals(np.zeros((1, len(self.past.features)))).shape[1]
        if log(size) > MOST_LOG_SIZE:
            raise InvalidInput(
                f"the class has {size} members; a union over them is too wide.", hint='use bound="nominate".'
            )
        return tuple(h for h in (bound.hypothesis(i) for i in range(size)) if not _is_constant(h))

    def nominate(self, hypothesis: Hypothesis, round: int) -> bool:
        """The N-th nominated hypothesis books 6 delta_r / (pi^2 N^2) and is judged by later cohorts only."""
        assert isinstance(self.process, BettingProcess)
        if _is_constant(hypothesis) or hypothesis in self.process.members:
            return False
        number = len(self.process.members) + 1
        share = inverse_square_share(self.share, number)
        self.ledger = self.ledger.book(f"life {self.number}: nominated hypothesis {number}", share, at=round)
        self.process.join(hypothesis, share)
        return True

    # what is certified

    def certified(self) -> tuple[tuple[Hypothesis, ...], FloatArray, FloatArray]:
        """Hypotheses with their intervals; the group classifiers, whose gaps are known, join where the group may decide."""
        assert self.process is not None and self.groups is not None
        lo, hi, _ = self.process.intervals()
        members = self.process.members
        if self.setup["group_use"] != "decide":
            return members, lo, hi
        exact = np.stack([self._group_gaps(group) for group in self.groups], axis=1)
        classifiers = tuple(GroupClassifier(group) for group in self.groups)
        return (*members, *classifiers), np.concatenate([lo, exact], axis=1), np.concatenate([hi, exact], axis=1)

    def table(self, features: FloatArray, group: GroupArray | None) -> BoolArray:
        """(members of `certified`, rows): who accepts whom."""
        assert self.process is not None and self.groups is not None
        table = self.process.table(features, group)
        if self.setup["group_use"] != "decide":
            return table
        classifiers = tuple(GroupClassifier(value) for value in self.groups)
        return np.concatenate([table, acceptance_table(classifiers, features, group)])

    def _group_gaps(self, group: Any) -> FloatArray:
        """The gaps of "accept iff group": its own rate is 1, all others 0 (for a false negative rate, the reverse)."""
        assert self.groups is not None
        size = len(self.groups)
        pairs = [(j, k) for j in range(size) for k in range(j + 1, size)]
        gaps = [
            rate.sign * ((self.groups[k] == group) - float(self.groups[j] == group))
            for rate in self.setup["rates"]
            for j, k in pairs
        ]
        return np.array(gaps, dtype=np.float64)

    def estimated_gaps(self, deployable: CertifiedSet) -> FloatArray:
        """Point estimates: the middle of each interval, for planning alone."""
        return 0.5 * (deployable.lo + deployable.hi)

    def certificate(
        self, policy: Mixture, lo: FloatArray | None, hi: FloatArray | None, epoch: Epoch, limit: float
    ) -> Certificate:
        """The record for a policy whose gaps lie in [lo, hi] (None: a mixture of constants)."""
        rates = self.setup["rates"]
        groups = self.groups or ()
        pairs = [
            (rate.symbol, groups[k], groups[j])
            for rate in rates
            for j in range(len(groups))
            for k in range(j + 1, len(groups))
        ]
        ends = zip(
            lo if lo is not None else np.zeros(len(pairs)), hi if hi is not None else np.zeros(len(pairs)), strict=True
        )
        gaps = tuple(
            GapInterval(name, group, reference, float(max(low, -1.0)), float(min(high, 1.0)))
            for (name, group, reference), (low, high) in zip(pairs, ends, strict=False)
        )
        name = "constants only (exact)" if self.process is None else self.process.name
        certificate = Certificate(
            limit=limit,
            failure_probability=self.setup["failure_probability"],
            spent=self.ledger.spent,
            bound=name,
            bound_params={} if self.process is None else dict(self.process.params),
            policy=_hash(policy),
            window=(self.began, int(self.began + self.people)),
            assumptions=self._assumptions(),
            counts=tuple(CellCount(g, y, int(n)) for (g, y), n in sorted(self.counts.items(), key=str)),
            gaps=gaps,
            valid_until=epoch.first_round + epoch.rounds,
            unknown_group=int(self.unknown),
        )
        return certificate.suspend("; ".join(self.alarms)) if self.alarms else certificate

    def _assumptions(self) -> tuple[str, ...]:
        maturity = self.setup["maturity"]
        outside = {"people of unknown or other groups": int(self.unknown)}
        late = (
            ("whether a person's group is known does not depend on the decision",)
            if self.unknown or self.late_groups
            else ()
        )
        return late + standard_assumptions(
            maturity=None if maturity is None else f"{maturity:g}",
            excluded=outside,
            drift_false_alarm=self.setup["drift_false_alarm"],
        )

    def cannot_certify(self, lo: FloatArray, hi: FloatArray, limit: float) -> CannotCertify:
        """Which count is missing, and how many more people that is, expected."""
        rate: Rate = self.setup["rates"][0]
        have = {
            g: sum(n for (v, y), n in self.counts.items() if v == g and rate.in_denominator(np.array([y]))[0])
            for g in dict.fromkeys(v for v, _ in self.counts)
        }
        group = min(have, key=lambda g: have[g]) if have else None
        count = have.get(group, 0.0)
        middle = float(np.abs(0.5 * (lo + hi)).max(initial=0.0))
        width = float((0.5 * (hi - lo)).max(initial=1.0))
        room = limit - middle
        needed = count * (width / room) ** 2 if room > 0 else float("inf")
        return CannotCertify(
            group=group,
            denominator=rate.denominator_name,
            have=int(count),
            needed=max(needed, count + 1),
            people=int(self.people),
        )

    def notes(self, rates: tuple[Rate, ...]) -> list[str]:
        """What is missing, in words."""
        found = [f"suspended before round {self.began}: this is life {self.number}."] if self.number > 1 else []
        if not self.started:
            for group, rate, have in self._missing(rates):
                found.append(
                    f"only constants are deployed: group {group!r} has {have:g} {rate.denominator_name}, {FIRST_PEOPLE} are needed to begin."
                )
        if self.unresolved:
            found.append(
                f"{self.unresolved:g} labels had not come when their cohort closed; they count as the worst case."
            )
        return found


def _is_constant(hypothesis: Hypothesis) -> bool:
    contexts = getattr(hypothesis, "contexts", None)
    return isinstance(hypothesis, Constant) or (contexts is not None and len(set(contexts)) == 1)


def _ordered(groups: set[Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(groups))
    except TypeError:
        return tuple(sorted(groups, key=str))


def _hash(policy: Mixture) -> str:
    from evenhand.errors import NotSerialisable

    try:
        return policy_hash(policy.to_json())
    except NotSerialisable:
        return f"not serialisable: {policy.describe()}"
