"""One run of certification: what is guaranteed, what was seen, and the interval process between the
first rounds and the alarm that may end it.

Run r has its own share delta_r of delta; what it learned ends with it, and the next one starts on
later people only.

**Drift.** Besides its audits a run watches whom a deployed rule would accept, and the labels of
those whom it accepted: audits are few once a policy is certified. The policy is a mixture: whoever
a rule h of it accepts is accepted with probability at least q = P[h or accept-all is drawn],
whatever else is in the mixture. Keep each accepted person with h(x) = 1 by a coin of q / p(x): each
of them is kept with the same probability q, so those kept are independent draws of D given h(x) =
1. That coin looks at the person only through p(x), which was drawn with; their labels are a stream
that is i.i.d. while D is fixed, as is h(x) itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import log
from typing import TypeVar

import numpy as np

from evenhand.bounds import BettingBound
from evenhand.contracts import Enumeration, FixedCountBound, GroupUse, Hypothesis, HypothesisClass
from evenhand.errors import CannotCertify, InvalidInput, NotSerialisable, ProtocolError
from evenhand.estimation.log import History
from evenhand.estimation.outcomes import fit_outcomes
from evenhand.fairness.certificate import (
    CellCount,
    Certificate,
    DrawCount,
    GapInterval,
    OutsideCount,
    known_label,
    plain_label,
    standard_assumptions,
)
from evenhand.fairness.delta_ledger import Booking, DeltaLedger, inverse_square_share, life_share
from evenhand.fairness.drift import ConstancyTest, DriftMonitor
from evenhand.fairness.rates import Rate
from evenhand.hypotheses import Stumps
from evenhand.hypotheses.constants import ACCEPT_ALL, Constant, GroupClassifier
from evenhand.learners.certified.evidence import (
    FIRST_PEOPLE,
    ClosedCohort,
    EvidenceCounts,
    GroupCounts,
    group_codes,
)
from evenhand.learners.certified.intervals import (
    AUDIT_BOUNDS,
    AuditProcess,
    BettingProcess,
    GapProcess,
    Prepared,
    acceptance_table,
)
from evenhand.learners.storage import storable, stored_as
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.words import BoolArray, FloatArray, Group, GroupArray

Key = TypeVar("Key")
MOST_LOG_SIZE = 12.0
"""The union over a class is paid up to this ln|H|."""
RESERVE = 0.1
"""The share of delta (and of the false alarms) kept for runs after a suspension; see
docs/decisions/0004.
"""
CUTS = 64
"""Cuts per column, for stumps."""
LATER_GROUPS = 0.05
"""The part of delta_r that is reserved for groups that join after the start, where none were
listed.
"""
MOST_NAMED = 20
"""So many values outside of the certificate are named in a note."""
LEAST_WEIGHT = 0.05
"""A rule is watched from the time on at which it has this weight in the policy."""
MOST_RULES = 4
"""So many are watched at a time; a new one then takes the place of the one with the least weight.
"""
GapLimits = tuple[FloatArray, FloatArray]
"""(lower, upper): between which values the gaps of a policy lie, one entry per rate and pair."""

for _record in (
    *(DeltaLedger, Booking, DriftMonitor, ConstancyTest),
    *(Certificate, CellCount, DrawCount, GapInterval, OutsideCount),
):
    storable(_record)


@dataclass(frozen=True)
class Guarantee:
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

    def share(self, run: int) -> float:
        """delta_r of run r."""
        return life_share(self.failure_probability, run, reserve=RESERVE)

    def false_alarm(self, run: int) -> float:
        """The false-alarm probability of the drift tests in run r."""
        return life_share(self.drift_false_alarm, run, reserve=RESERVE)

    def pairs(self, groups: tuple[object, ...]) -> list[tuple[Rate, int, int]]:
        """(rate, earlier, later) of each gap, in the order of all intervals."""
        pairs = list(combinations(range(len(groups)), 2))
        return [(rate, earlier, later) for rate in self.rates for earlier, later in pairs]


storable(Guarantee, "Promise")


@storable
@dataclass(eq=False)
class WatchedRules:
    """Rules of the deployed policies, each with its streams by group: whom it accepts, and (good,
    bad, not come) of those it accepted.
    """

    coins: np.random.Generator
    rules: tuple[Hypothesis, ...] = ()
    numbers: tuple[int, ...] = ()
    since: tuple[int, ...] = ()
    """The epoch from which on each is watched: its choice may have looked at the labels of earlier
    ones.
    """
    opened: int = 0

    def watch(
        self,
        monitor: DriftMonitor,
        cohort: ClosedCohort,
        policy: Mixture,
        groups: tuple[Group, ...],
        founders: tuple[Group, ...],
        *,
        labels: bool,
    ) -> DriftMonitor:
        """The mix of groups, "other" being the last one, and whom the rules of `policy`, which was
        chosen before the cohort, accept: that needs no label. Then the labels, if they may be
        looked at.

        founders: the groups with which the run began.
        """
        rounds, codes = cohort.rounds, group_codes(cohort.group, founders)
        known = np.array([value is not None for value in cohort.group.tolist()], dtype=bool)
        counts = [float(rounds[codes == j].sum()) for j in range(len(founders))]
        monitor = monitor.watch("group mix", [*counts, float(rounds[known & (codes < 0)].sum())])
        monitor = self._open(monitor, policy, groups, cohort.epoch)
        codes = group_codes(cohort.group, groups)
        for number, accepts in zip(self.numbers, self._accepts(cohort, policy), strict=True):
            for j, group in enumerate(groups):
                here = codes == j
                chosen = float(rounds[here & accepts].sum())
                shares = [chosen, float(rounds[here].sum()) - chosen]
                monitor = monitor.watch(_stream("share", group, number), shares)
        return self.watch_labels(monitor, cohort, policy, groups) if labels else monitor

    def watch_labels(
        self,
        monitor: DriftMonitor,
        cohort: ClosedCohort,
        policy: Mixture,
        groups: tuple[Group, ...],
    ) -> DriftMonitor:
        """Labels (good, bad, not come) of the audited, who are draws of the population, and of the
        accepted with h(x) = 1, each kept with probability q / p(x).
        """
        codes, table = group_codes(cohort.group, groups), self._accepts(cohort, policy)
        for j, group in enumerate(groups):
            counts = cohort.settled_audited[:, codes == j].sum(axis=1)
            monitor = monitor.watch(f"labels of {group}", counts)
        watched = zip(self.rules, self.numbers, self.since, table, strict=True)
        for rule, number, since, accepts in watched:
            if cohort.epoch < since:
                continue
            always, p = policy.weight_of(rule) + policy.weight_of(ACCEPT_ALL), cohort.acceptance
            chance = np.divide(always, p, out=np.zeros(len(accepts)), where=p > 0)
            chance = np.where(accepts, np.minimum(chance, 1.0), 0.0)
            kept = self.coins.binomial(cohort.settled.astype(np.int64), chance).astype(np.float64)
            for j, group in enumerate(groups):
                counts = kept[:, codes == j].sum(axis=1)
                monitor = monitor.watch(_stream("labels", group, number), counts)
        return monitor

    def _accepts(self, cohort: ClosedCohort, policy: Mixture) -> BoolArray:
        """(rules, rows): whom each rule accepts."""
        shown = cohort.group if policy.group_use == "decide" else None
        return acceptance_table(self.rules, cohort.features, shown)

    def _open(
        self, monitor: DriftMonitor, policy: Mixture, groups: tuple[Group, ...], epoch: int
    ) -> DriftMonitor:
        """Watch every rule that has enough weight from now on; if they are too many, give up those
        with the least.
        """
        for rule, weight in zip(policy.hypotheses, policy.weights, strict=True):
            if weight < LEAST_WEIGHT or isinstance(rule, Constant) or rule in self.rules:
                continue
            self.opened += 1
            self.rules, self.numbers = (*self.rules, rule), (*self.numbers, self.opened)
            self.since = (*self.since, epoch)
        while len(self.rules) > MOST_RULES:
            least = int(np.argmin([policy.weight_of(rule) for rule in self.rules]))
            for group in groups:
                for what in ("labels", "share"):
                    monitor = monitor.retire(_stream(what, group, self.numbers[least]))
            self.rules = (*self.rules[:least], *self.rules[least + 1 :])
            self.numbers = (*self.numbers[:least], *self.numbers[least + 1 :])
            self.since = (*self.since[:least], *self.since[least + 1 :])
        return monitor


def _stream(what: str, group: Group, number: int) -> str:
    return f"{what} of {group} accepted by rule {number}"


@dataclass(eq=False)
class CertificationRun:
    """The evidence, the interval process, the delta ledger and the drift tests of one run.

    groups: those of the certificate, fixed when it starts; where none were listed (`wanted`), later
    ones may join. next_round: where the next cohort must begin. prepared: what is fixed for the
    cohorts of each epoch before they are looked at. awaiting: (epoch, first, stop) of the cohorts
    whose labels the drift tests have not seen. closed: the same of all cohorts of this run.
    frozen: the policy does not change any more, and nothing but the drift tests looks at people.
    ended: what ended the run before it.
    """

    number: int
    guarantee: Guarantee = field(metadata=stored_as("promise"))
    ledger: DeltaLedger
    began: int
    wanted: tuple[Group, ...] | None = None
    groups: tuple[Group, ...] | None = None
    evidence: EvidenceCounts = field(metadata=stored_as("tally"), default_factory=EvidenceCounts)
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

    def next(self, round: int) -> "CertificationRun":
        """After a suspension: the ledger goes on, everything else is forgotten; bad accepts stay on
        the bill.
        """
        return CertificationRun(
            self.number + 1,
            self.guarantee,
            self.ledger,
            round,
            wanted=self.wanted,
            evidence=EvidenceCounts(audited_negatives=self.evidence.audited_negatives),
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
        return not self.evidence.missing(self.guarantee.rates, self.wanted)

    @property
    def alarms(self) -> tuple[str, ...]:
        """What says that an assumption is broken."""
        return (*(self.monitor.alarms if self.monitor is not None else ()), *self.broken)

    # looking at cohorts

    def look_at(
        self,
        cohorts: Sequence[ClosedCohort],
        policies: Mapping[int, Mixture],
        history: History,
        round: int,
    ) -> None:
        """Look at closed cohorts in the order of arrival, each once; `policies` were deployed in
        their epochs, and `history` learns from them. Then groups may join, unless there is an
        alarm.
        """
        for number, cohort in enumerate(cohorts):
            policy = policies[cohort.epoch]
            if number > 0:  # the first one was prepared for when the last closing ended
                self.prepare({cohort.epoch: policy}, history)
            self.look(cohort, policy)
            history.learn(cohort.epoch, cohort.log, with_group=self.guarantee.group_decides)
        if not self.alarms:
            self.join_groups(round)

    def look(self, cohort: ClosedCohort, policy: Mixture) -> None:
        """Look at a closed cohort once; `policy` was deployed in it."""
        if cohort.first != self.next_round:
            raise ProtocolError(
                f"a cohort begins with round {cohort.first}, but round {self.next_round} is the "
                "next to be looked at; a certificate looks at everybody, in the order of arrival.",
                hint="hand over every decided round once, overruled and erased people included.",
            )
        self.next_round, place = cohort.stop, (cohort.epoch, cohort.first, cohort.stop)
        if self.monitor is not None and self.watched is not None and self.groups is not None:
            # With a maturity window a label's category is settled at the end of the person's own
            # window, whenever the cohort closes. Without one, labels are looked at cohort by
            # cohort, in the order of arrival, once a cohort has all of them: to pass over a cohort
            # that lacks some would select by the labels.
            settled = self.guarantee.maturity is not None
            labels = settled or (cohort.complete and not self.awaiting)
            founders = self.groups[: len(self.groups) - self.joined]
            self.monitor = self.watched.watch(
                self.monitor, cohort, policy, self.groups, founders, labels=labels
            )
            if not labels:
                self.awaiting.append(place)
        if self.frozen:
            return
        self.closed.append(place)
        prepared = self.prepared.get(cohort.epoch)
        judged = False
        if self.process is not None and prepared is not None:
            judged, contradictions = True, self.process.update(cohort, prepared)
            if contradictions:
                why = f"the evidence about {contradictions} hypotheses contradicts itself"
                self.broken = (why,)
        audits, billed = self.guarantee.nominates, self.started
        self.evidence.add(cohort, self.groups, billed=billed, judged=judged, audits=audits)

    def prepare(self, policies: Mapping[int, Mixture], history: History) -> None:
        """Fix bets and regression for the next cohorts of these epochs, by their policies, from the
        history, whose rounds have closed.
        """
        process, past, decides = self.process, self.evidence.past, self.guarantee.group_decides
        self.prepared = {}
        if process is None or self.frozen:
            return
        regression = fit_outcomes(history.of(with_group=decides))
        group = past.group if decides else None
        for epoch, policy in policies.items():
            acceptance = policy.acceptance(past.features, group)
            plan = process.plan(past, acceptance, regression)
            labelled = labelled_groups(policy, self.groups or ())
            self.prepared[epoch] = Prepared(plan, regression, labelled)

    def watch_labels(self, cohort: ClosedCohort, policy: Mixture) -> None:
        """Show the drift tests the labels of a cohort."""
        if self.monitor is not None and self.watched is not None and self.groups is not None:
            self.monitor = self.watched.watch_labels(self.monitor, cohort, policy, self.groups)

    # starting

    def start(
        self, hypotheses: HypothesisClass, bound: FixedCountBound | None, columns: int, round: int
    ) -> None:
        """Fix groups and hypotheses, book delta_r, and begin.

        bound: None for betting and nominating; columns: those of the features.
        """
        guarantee, share = self.guarantee, self._share
        self.groups = groups = self.wanted or self.evidence.groups
        streams = {"group mix": len(groups) + 1, **{f"labels of {group}": 3 for group in groups}}
        self.monitor = DriftMonitor.start(streams, guarantee.false_alarm(self.number))
        self.watched = WatchedRules(stream(guarantee.seed, "watched", self.number))
        members = () if guarantee.nominates else self._members(hypotheses)
        if not guarantee.nominates:
            what = f"life {self.number}: {guarantee.bound} over {len(members)} hypotheses"
            self.ledger = self.ledger.book(what, share, at=round)
        if guarantee.bound in ("betting", "nominate"):
            shares = () if guarantee.nominates else None
            betting = BettingBound(groups, guarantee.rates, len(members), share, shares=shares)
            decides = guarantee.group_decides
            self.process = BettingProcess(betting, members, betting.start(), decides)
            return
        self.process = AuditProcess(
            bound=bound or AUDIT_BOUNDS[guarantee.bound],
            members=members,
            groups=groups,
            rates=guarantee.rates,
            failure_probability=share,
            columns=columns,
            log_size=log(max(len(members), 1)),
            generator=stream(guarantee.seed, "looks", self.number),
            group_decides=guarantee.group_decides,
        )

    @property
    def _reserved(self) -> float:
        """What is kept for groups that join later: nothing if they were listed, or if the bound
        looks at preset counts.
        """
        later = self.wanted is None and self.guarantee.bound in ("betting", "nominate")
        return LATER_GROUPS * self.guarantee.share(self.number) if later else 0.0

    @property
    def _share(self) -> float:
        """delta_r, but for that."""
        return self.guarantee.share(self.number) - self._reserved

    def join_groups(self, round: int) -> None:
        """A group that has turned up since, and has a few people, joins: from here on the
        certificate covers it.

        The N-th books 6 rho delta_r / (pi^2 N^2), and its processes see later cohorts only. Until
        its intervals are narrow the limit for its pairs is kept by weight on constants.
        """
        if not isinstance(self.process, BettingProcess) or self.groups is None:
            return
        for group in self.evidence.groups:
            if group not in self.groups and self._reserved:
                self.joined += 1
                share = inverse_square_share(self._reserved, self.joined)
                what = f"life {self.number}: group {group} joins"
                self.ledger = self.ledger.book(what, share, at=round)
                self.process.join_group(group, share)
                self.groups = (*self.groups, group)

    def _members(self, hypotheses: HypothesisClass) -> tuple[Hypothesis, ...]:
        """The finite class that all later rounds are judged by: H itself, or its cuts at the first
        people's values.
        """
        past, source = self.evidence.past, hypotheses
        if isinstance(hypotheses, Stumps) and hypotheses.max_bins is None:
            source = Stumps(max_bins=CUTS)
        bound = source.bind(past.features, past.group if self.guarantee.group_decides else None)
        if not isinstance(bound, Enumeration):
            raise InvalidInput(
                f"{type(hypotheses).__name__} cannot be enumerated, so no union over it can be "
                "paid.",
                hint='use bound="nominate".',
            )
        size = bound.totals(np.zeros((1, len(past.features)))).shape[1]
        if log(size) > MOST_LOG_SIZE:
            raise InvalidInput(
                f"the class has {size} members; a union over them is too wide.",
                hint='use bound="nominate".',
            )
        return tuple(h for h in (bound.hypothesis(i) for i in range(size)) if not is_constant(h))

    def nominate(self, hypotheses: Sequence[Hypothesis], round: int, labels: float) -> None:
        """The N-th nominated hypothesis books 6 delta_r / (pi^2 N^2) and is judged by later cohorts
        only. labels: how many were seen by now.
        """
        if isinstance(self.process, BettingProcess):
            for hypothesis in hypotheses:
                number = len(self.process.members) + 1
                share = inverse_square_share(self._share, number)
                what = f"life {self.number}: nominated hypothesis {number}"
                self.ledger = self.ledger.book(what, share, at=round)
                self.process.join(hypothesis, share)
        self.nominated_at, self.nominated_labels = float(round), labels

    # what is certified

    def certified(self) -> tuple[tuple[Hypothesis, ...], FloatArray, FloatArray]:
        """Hypotheses with the lower and upper ends of their intervals; the group classifiers, whose
        gaps are known, join where the group may decide.

        "Accept iff group" has a rate of 1 in its own group and of 0 in all others (for a false
        negative rate, the reverse).
        """
        process, groups = self.running
        lower, upper, _ = process.intervals()
        if not self.guarantee.group_decides:
            return process.members, lower, upper
        own, pairs = np.eye(len(groups)), self.guarantee.pairs(groups)
        exact = np.array([rate.sign * (own[k] - own[j]) for rate, j, k in pairs])
        members = (*process.members, *(GroupClassifier(group) for group in groups))
        lower, upper = (np.concatenate([end, exact], axis=1) for end in (lower, upper))
        return members, lower, upper

    def table(self, features: FloatArray, group: GroupArray | None) -> BoolArray:
        """(members of `certified`, rows): who accepts whom."""
        process, groups = self.running
        table = process.table(features, group)
        if not self.guarantee.group_decides:
            return table
        others = tuple(GroupClassifier(value) for value in groups)
        return np.concatenate([table, acceptance_table(others, features, group)])

    @property
    def running(self) -> tuple[GapProcess, tuple[Group, ...]]:
        """The interval process and the groups of the certificate; InvalidInput before it has
        started.
        """
        if self.process is None or self.groups is None:
            raise InvalidInput(
                "nothing is certified yet; only constants are deployed.",
                hint="look at report.notes.",
            )
        return self.process, self.groups

    # certificates

    def certificate(self, policy: Mixture, gaps: GapLimits | None, valid_until: int) -> Certificate:
        """What is claimed about a policy whose gaps lie between these limits (None: a mixture of
        constants, whose gaps are zero).
        """
        guarantee, evidence, process = self.guarantee, self.evidence, self.process
        groups, maturity = self.groups or (), guarantee.maturity
        pairs, named = guarantee.pairs(groups), tuple(map(plain_label, groups))
        lower, upper = gaps if gaps is not None else (np.zeros(len(pairs)), np.zeros(len(pairs)))
        lower, upper = np.maximum(lower, -1.0), np.minimum(upper, 1.0)
        fingerprint, models = _fingerprint(policy)
        certificate = Certificate(
            limit=guarantee.limit,
            failure_probability=guarantee.failure_probability,
            spent=self.ledger.spent,
            bound="constants only (exact)" if process is None else process.name,
            bound_params={} if process is None else dict(process.params),
            policy=fingerprint,
            window=(self.began, int(self.began + evidence.people)),
            assumptions=standard_assumptions(
                maturity=None if maturity is None else f"{maturity:g}",
                drift_false_alarm=guarantee.drift_false_alarm,
                late_groups=bool(evidence.late_groups or evidence.unknown),
                overlapping=maturity is not None,
            ),
            counts=tuple(
                CellCount(plain_label(g), y, int(n)) for (g, y), n in _sorted(evidence.judged)
            ),
            gaps=tuple(
                GapInterval(rate.symbol, named[k], named[j], float(lower[i]), float(upper[i]))
                for i, (rate, j, k) in enumerate(pairs)
            ),
            valid_until=valid_until,
            groups=named,
            outside=tuple(OutsideCount(known_label(g), int(n)) for g, n in _sorted(self.uncovered)),
            overruled=_draws(evidence.overruled),
            late_groups=_draws(evidence.late_groups),
            erased=int(evidence.erased),
            models=models,
            schema=None if policy.schema is None else policy.schema.sha256,
            columns="" if policy.schema is None else policy.schema.describe(),
        )
        reasons = self.alarms or (() if self.started else self.ended)
        return certificate.suspend("; ".join(reasons)) if reasons else certificate

    def refusal(self, gaps: GapLimits) -> CannotCertify:
        """Which count is missing, and how many more people that is, expected: widths fall like one
        over the root of the count.
        """
        rate, evidence = self.guarantee.rates[0], self.evidence
        have = {group: evidence.denominator(group, rate) for group in evidence.groups}
        group: Group = min(have, key=lambda value: have[value]) if have else None
        count = have.get(group, 0.0)
        lower, upper = gaps
        room = self.guarantee.limit - float(np.abs(0.5 * (lower + upper)).max(initial=0.0))
        width = float((0.5 * (upper - lower)).max(initial=1.0))
        needed = count * (width / room) ** 2 if room > 0 else float("inf")
        return CannotCertify(
            group=group,
            denominator=rate.denominator_name,
            have=int(count),
            needed=max(needed, count + 1),
            people=int(evidence.people),
        )

    @property
    def uncovered(self) -> dict[Group, float]:
        """People of groups that the certificate does not cover, by group; None: the unknown one."""
        outside = {
            value: n
            for value, n in self.evidence.seen.items()
            if self.groups and value not in self.groups
        }
        return outside | ({None: self.evidence.unknown} if self.evidence.unknown else {})

    @property
    def notes(self) -> list[str]:
        """What is missing, in words."""
        sentences = []
        if self.ended:
            why = "; ".join(self.ended)
            place = f"suspended at round {self.began} ({why})"
            sentences.append(f"{place}; this is life {self.number}.")
        for group, rate, have in (
            [] if self.started else self.evidence.missing(self.guarantee.rates, self.wanted)
        ):
            need = f"{have:g} {rate.denominator_name}, {FIRST_PEOPLE} are needed to begin"
            sentences.append(f"only constants are deployed: group {group!r} has {need}.")
        if self.evidence.unresolved:
            many = f"{self.evidence.unresolved:g} labels"
            said = f"{many} had not come when their cohort closed; they count as the worst case."
            if self.guarantee.maturity is None:
                way_out = "say how long: maturity=, with at= in decide and observe."
                said += f" If outcomes take time, {way_out}"
            sentences.append(said)
        rare = {value: people for value, people in self.uncovered.items() if value is not None}
        if rare and self.started:
            some = list(rare.items())[:MOST_NAMED]
            named = ", ".join(f"{value!r} ({people:g})" for value, people in some)
            law = "they are not among the groups of the promise"
            if self._reserved:
                law = (
                    f"a group joins once it has {FIRST_PEOPLE} people; a value with fewer may be a "
                    "typing error"
                )
            sentences.append(f"outside the certificate: people of {named}; {law}.")
        if self.awaiting:
            sentences.append(
                f"the drift tests wait for labels from round {self.awaiting[0][1]} on; without a "
                "maturity window "
                "nobody can say when they are complete."
            )
        return sentences


def labelled_groups(policy: Mixture, groups: tuple[Group, ...]) -> BoolArray:
    """(G,): in which groups labels of a cohort of this policy may be looked at.

    Where nobody is accepted with probability 0 the coin shows everybody's label sooner or later.
    That is decided by the policy, before the coins, never by the rows that came: to skip a cohort
    because somebody in it had p = 0 would keep the lucky ones.
    """
    everybody = policy.weight_of(ACCEPT_ALL) > 0
    decides = policy.group_use == "decide"
    own = [decides and policy.weight_of(GroupClassifier(group)) > 0 for group in groups]
    return np.array(own, dtype=bool) | everybody


def is_constant(hypothesis: Hypothesis) -> bool:
    """Whether a hypothesis decides for everybody alike."""
    contexts = getattr(hypothesis, "contexts", None)
    return isinstance(hypothesis, Constant) or (contexts is not None and len(set(contexts)) == 1)


def _draws(counts: GroupCounts) -> tuple[DrawCount, ...]:
    return tuple(DrawCount(known_label(g), accept, int(n)) for (g, accept), n in _sorted(counts))


def _sorted(counts: Mapping[Key, float]) -> list[tuple[Key, float]]:
    return sorted(counts.items(), key=str)


def _fingerprint(policy: Mixture) -> tuple[str, tuple[str, ...]]:
    """The hash of a policy, and those of its models; a description, if it cannot be stored."""
    try:
        return policy.sha256, policy.models
    except NotSerialisable:
        return f"not serialisable: {policy.describe()}", ()


storable(CertificationRun, "Life")
