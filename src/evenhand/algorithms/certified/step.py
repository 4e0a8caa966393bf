"""The certified algorithm: one limit that is never exceeded, from the first person on (beyond the
paper).

    1. Accept all applicants until every group has ten people in the denominator of each rate; under
       a cap hold a lottery instead, which is as even-handed.
    2. Per epoch: close the cohorts whose labels have matured, narrow the interval of every
       hypothesis, and choose among the mixtures whose gap is below the limit for all values that
       the intervals still allow (`choose`). Constants are exactly fair, so there always are some.
    3. An audit coin that ignores the person keeps every probability of being accepted above a
       floor.

Uncertainty costs regret, never fairness: with probability at least 1 - delta, every policy ever
deployed keeps the limit, and the cap.

**The same however people arrive.** Where epochs end, and the cuts of thresholds and stumps, depend
on the number of people who have arrived and on nothing else: an epoch whose labels have not come
ends where it ends, and the next one has the same policy; cuts are values of exactly the first N_0
arrivals. So a call of decide() may bring one person or thousands.
"""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from math import ceil, floor, inf, isfinite, log
from typing import Literal, TypeVar

import numpy as np

from evenhand.algorithms.base import GroupNeeded, Note
from evenhand.algorithms.certified import certificates
from evenhand.algorithms.certified.candidates import as_candidates, reading, require_readable
from evenhand.algorithms.certified.choose import SCHEDULE, Choice, PlanningInputs, PooledCosts
from evenhand.algorithms.certified.drift import DriftWatch, next_look
from evenhand.algorithms.certified.evidence import (
    FIRST_PEOPLE,
    PastPeople,
    first_arrivals,
    group_codes,
    past_people,
)
from evenhand.algorithms.certified.forecast import RateForecast, epoch_length
from evenhand.algorithms.certified.intervals import (
    AUDIT_BOUNDS,
    AuditProcess,
    BettingProcess,
    EpochRecord,
    GapProcess,
    labelled_groups,
)
from evenhand.algorithms.certified.nominate import PredictedOutcomes, due, nominees
from evenhand.algorithms.certified.prior import likely_shares
from evenhand.algorithms.certified.quota import Quota
from evenhand.algorithms.certified.rule_tables import RuleSlots, acceptance_table
from evenhand.algorithms.certified.sample import (
    ClosedSample,
    audited_people,
    closed_sample,
    remember_closed,
    still_needed,
)
from evenhand.algorithms.certified.shares import AcceptedShares
from evenhand.algorithms.certified.state import CertifiedState, GapEnds, Guarantee, PlannedEpoch
from evenhand.algorithms.certified.tally import OPEN, OpenCohorts, TalliedCohort
from evenhand.algorithms.settings import (
    as_groups,
    require_choice,
    require_delta,
    require_group_use,
    require_horizon,
    require_limit,
    require_number,
    require_prices,
)
from evenhand.bounds import BettingBound
from evenhand.contracts import (
    Enumeration,
    FixedCountBound,
    GroupUse,
    Hypothesis,
    HypothesisClass,
    Rate,
    class_reading,
)
from evenhand.errors import InvalidInput
from evenhand.estimation import RoundLog, TransformedLoss
from evenhand.estimation.outcomes import fit_outcomes
from evenhand.fairness.certificate import Certificate
from evenhand.fairness.delta_ledger import DeltaLedger, inverse_square_share
from evenhand.fairness.rates import RateLike, as_rates, require_certifiable
from evenhand.hypotheses import Stumps
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL, is_constant
from evenhand.hypotheses.estimator import Estimator, as_class
from evenhand.hypotheses.models import require_skops
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.rounds import FOREVER, NEVER, Counts, Epoch, Keep, Rounds
from evenhand.schema import Schema
from evenhand.words import BoolArray, FloatArray, Group, GroupArray, LabelledSample, Prices

Kept = TypeVar("Kept")
BoundName = Literal["betting", "nominate", "hoeffding", "kl", "binomial", "dkw"]
FIRST_ROUNDS = 100
FIRST_FITTED = 1000
"""Rounds of the first epoch; a class that is fitted needs more labels than one that is judged as it
is."""
MOST_LOG_SIZE = 12.0
"""A union bound is taken over classes up to this ln|H|."""
CUTS = 64
"""Cuts per column, for stumps."""


@dataclass(frozen=True, eq=False)
class ClosedPeople:
    """What planning may look at: sample, the resolved rounds of closed cohorts or some of them
    (None if there are none), and past, the people whom forecasts are made for.
    """

    sample: ClosedSample | None
    past: PastPeople


@dataclass(frozen=True, eq=False)
class Certified:
    """The settings of the certified algorithm, and its step; see `evenhand.CertifiedLearner`."""

    hypotheses: HypothesisClass
    rate: RateLike
    limit: float
    delta: float
    _: KW_ONLY
    horizon: int | None = None
    bound: BoundName | FixedCountBound | None = None
    prices: Prices = field(default_factory=Prices)
    group_use: GroupUse = "certify_only"
    audit_rate: float | Literal["auto"] = "auto"
    audit_budget: float | None = None
    maturity: float | None = None
    fallback: Literal["accept", "reject"] = "accept"
    groups: Sequence[Group] | None = None
    drift_false_alarm: float = 1e-3
    accept_at_most: float | None = None
    accept_at_least: float | None = None
    quota: Quota | None = None
    candidates: Sequence[object] | None = None
    keep: Keep = "rows"
    needs_group: GroupNeeded = field(default="never", init=False)

    # one epoch after the other

    def init(self, seed: int) -> tuple[CertifiedState, Epoch]:
        """Nobody has been seen: accept all applicants, or as many as the cap allows, for a first
        epoch.
        """
        guarantee = self.guarantee(seed)
        state = CertifiedState(guarantee=guarantee, ledger=DeltaLedger(guarantee.delta))
        aim = 1.0 if self.quota is None else self.quota.aim(Rounds(), None)
        first = self._constant(state, number=1, round=0, length=self._first_length, aim=aim)
        return _planned(state, first), first

    def step(
        self, state: CertifiedState, rounds: Rounds, now: float | None
    ) -> tuple[CertifiedState, Epoch | None]:
        """Close the cohorts whose labels have matured, then open the next epoch."""
        # The drift tests look at preset counts of people, so a long epoch cannot hide a change.
        state = self._watch_drift(state, rounds, now)
        if state.alarms:
            return self._suspend(state, rounds)
        if not rounds.epoch_is_over or state.frozen is not None:
            if state.frozen is None:
                self._count_open(state, rounds, now)
            return state, self._goes_on(state, rounds)

        # Every row is judged by the record that was written before its coin was tossed: p, m and
        # the bets are predictable, so each factor is one step of a martingale (Ville's inequality
        # gives the intervals). Nothing is fitted here, so nobody can choose the bets after seeing
        # the outcome.
        cohorts = list(self._matured(state, rounds, now))
        if not cohorts and not self._may_start(state, rounds):
            return self._again(state, rounds)
        for cohort in cohorts:
            state = close(state, cohort, rounds)
        if state.alarms:
            # An empty interval: some assumption does not hold, so no earlier interval counts.
            return self._suspend(state, rounds)
        state = join_groups(state, rounds.decided)

        # Gaps are linear in the mixture. The next policy stays within the limit for every value
        # that the intervals allow, so how it is chosen costs regret, never fairness.
        people = self._closed_people(state, rounds)
        state, epoch = self._choose(state, rounds, people, now)
        # The bets of the new epoch are fixed now, before its first coin.
        return self._opened(state, epoch, rounds, people)

    # hard counts: the audit budget and the quota

    @property
    def gated(self) -> bool:
        """Whether there is an audit budget or a quota."""
        return self.audit_budget is not None or self.quota is not None

    def room(self, rounds: Rounds, now: float | None) -> tuple[float, float]:
        """How many people the audit coin may accept, and how many may be accepted at all, before
        anything more is known.

        A label that has not come counts as bad: bad + pending + 1 <= budget, or the coin is not
        tossed. So the budget holds for every outcome.
        """
        audits = inf if self.audit_budget is None else floor(self.audit_budget - rounds.audit_bill)
        quota = inf if self.quota is None else self.quota.left(rounds, now)
        return max(audits, 0), quota

    def gate(
        self, state: CertifiedState, rounds: Rounds, now: float | None
    ) -> tuple[CertifiedState, Epoch | None]:
        """Before a coin is tossed: the policy without its audit coin if the next audit could exceed
        the budget, and "reject all applicants" if the quota of the period is used up; the planned
        policy as soon as neither is so. Each is an epoch with a record of its own, written before
        its first coin, so that which rows are looked at is settled by earlier people alone.

        The share of an audit coin that is not tossed goes to reject-all, never to the rest of the
        policy. Once paused, audits go on when half of what is left of the budget is free, so that
        late labels do not make an epoch of each person.
        """
        audits, quota = self.room(rounds, now)
        sure = rounds.audit_bill - rounds.audits_pending
        wanted = 1.0
        if not state.audits_open and self.audit_budget is not None:
            wanted = max(1.0, 0.5 * (self.audit_budget - sure))
        audits_open = audits >= wanted
        quota_open = quota >= 1
        if (audits_open, quota_open) == (state.audits_open, state.quota_open):
            return state, None
        state = replace(state, audits_open=audits_open, quota_open=quota_open)
        last = rounds.epoch
        number = last.number + (last.first_round < rounds.decided)
        state, epoch = self._variant(state, rounds, number)
        return state, replace(epoch, closed=last.closed, look_at=last.look_at)

    def with_variants(
        self, state: CertifiedState, epoch: Epoch, rounds: Rounds
    ) -> tuple[CertifiedState, tuple[Epoch, ...]]:
        """The planned epoch, and before it in number what takes its place while a count is used up:
        the policy without its audit coin, and "reject all applicants".

        For whoever counts person by person, in a transaction of its own, and has no time to open an
        epoch there: all of them are on record before the first coin, and which of them a row is
        drawn by is settled by earlier rows alone. So each row is judged by a predictable record, as
        after `gate`. An epoch whose counts cannot be used up stands alone.
        """
        coin = epoch.mixture.weight_of(ACCEPT_ALL)
        used_up = []  # (audits open, quota open)
        if self.audit_budget is not None and coin > 0:
            used_up.append((False, True))
        if self.quota is not None:
            used_up.append((True, False))
        first = epoch.number
        epoch = replace(epoch, number=first + len(used_up))
        state = replace(
            state,
            records=_moved(state.records, first, epoch.number),
            gaps=_moved(state.gaps, first, epoch.number),
            accepted=_moved(state.accepted, first, epoch.number),
        )
        state = _planned(state, epoch)
        epochs = []
        for number, (audits_open, quota_open) in enumerate(used_up, first):
            state = replace(state, audits_open=audits_open, quota_open=quota_open)
            state, variant = self._variant(state, rounds, number)
            state = replace(state, audits_open=True, quota_open=True)
            epochs.append(
                replace(
                    variant,
                    first_round=epoch.first_round,
                    rounds=epoch.rounds,
                    closed=epoch.closed,
                    look_at=epoch.look_at,
                )
            )
        return state, (*epochs, epoch)

    def _variant(
        self, state: CertifiedState, rounds: Rounds, number: int
    ) -> tuple[CertifiedState, Epoch]:
        """The planned epoch from here to its end, as far as the counts allow it."""
        planned = state.planned
        assert planned is not None
        epoch = planned.epoch
        policy = epoch.mixture
        coin = policy.weight_of(ACCEPT_ALL)
        gaps = planned.gaps
        accepted = planned.accepted
        phase = epoch.phase
        if not state.quota_open:
            policy = lottery(0.0, self.group_use)
            gaps, accepted = None, None
            phase = "quota used up"
        elif not state.audits_open and coin > 0:
            policy = without_coin(policy)
            accepted = None if accepted is None else (accepted[0] - coin, accepted[1] - coin)
            phase = epoch.phase if state.frozen is not None else "audits paused"
        record = planned.record
        if record is not None:
            labelled = labelled_groups(policy, (state.groups or ())[: len(record.labelled)])
            record = replace(record, labelled=labelled)
        state = replace(
            state,
            records=_with(state.records, number, record),
            gaps=_with(state.gaps, number, gaps),
            accepted=_with(state.accepted, number, accepted),
        )
        return state, replace(
            epoch,
            number=number,
            first_round=rounds.decided,
            rounds=epoch.end - rounds.decided,
            policy=replace(policy, schema=rounds.schema),
            phase=phase,
            audit=policy.weight_of(ACCEPT_ALL),
        )

    def _goes_on(self, state: CertifiedState, rounds: Rounds) -> Epoch:
        """Nothing to close: the open epoch (the same number), with its next look set."""
        look = NEVER if state.drift is None else next_look(rounds.decided)
        return replace(rounds.epoch, look_at=look)

    def _again(self, state: CertifiedState, rounds: Rounds) -> tuple[CertifiedState, Epoch]:
        """Nothing new is known: the same policy, judged by the same record, as a new epoch. Where
        epochs end must not depend on when labels come.
        """
        planned = state.planned
        assert planned is not None
        number = rounds.epoch.number + 1
        state = replace(
            state,
            records=_with(state.records, number, planned.record),
            gaps=_with(state.gaps, number, planned.gaps),
            accepted=_with(state.accepted, number, planned.accepted),
        )
        epoch = replace(
            planned.epoch,
            number=number,
            first_round=rounds.decided,
            rounds=self._length(state, rounds.decided),
            look_at=NEVER if state.drift is None else next_look(rounds.decided),
            closed=state.closed_to,
        )
        return _planned(state, epoch), epoch

    def _length(self, state: CertifiedState, round: int) -> int:
        """Rounds of the epoch that begins at a round: a quarter of all before it; until intervals
        start, of those of the run.
        """
        return epoch_length(round if state.process is not None else round - state.began)

    def _may_start(self, state: CertifiedState, rounds: Rounds) -> bool:
        """Whether intervals may start: every group has its first people, and the people whose
        values are the cuts have all arrived.
        """
        waiting = state.process is None and state.ready
        return waiting and rounds.decided - state.began >= self._first_arrivals

    def _watch_drift(
        self, state: CertifiedState, rounds: Rounds, now: float | None
    ) -> CertifiedState:
        if state.drift is None:
            return state
        groups = state.groups or ()
        return replace(state, drift=state.drift.feed(rounds, groups, now, self.maturity))

    def _count_open(self, state: CertifiedState, rounds: Rounds, now: float | None) -> OpenCohorts:
        """Sums over the rounds that have matured and are not closed, with those since the last
        look: all of them will close together. They stay in the table's memory, as what can be
        counted anew from its rows.
        """
        process = state.process
        slots = rule_slots(state)
        cohorts: OpenCohorts | None
        _, cohorts = rounds.so_far(OPEN)
        other_rules = cohorts is not None and cohorts.slots not in (None, slots)
        if cohorts is None or cohorts.since != state.closed_to or other_rules:
            cohorts = OpenCohorts(state.closed_to, state.closed_to)
        judged = {}
        if isinstance(process, BettingProcess):
            records = state.records.items()
            judged = {
                number: record.regression for number, record in records if record.bets is not None
            }
        stop = rounds.matured(now, self.maturity)
        cohorts.feed(rounds, stop, slots, judged, group_decides=state.guarantee.group_decides)
        rounds.keep_so_far(OPEN, cohorts.fed_to, cohorts)
        return cohorts

    def _matured(
        self, state: CertifiedState, rounds: Rounds, now: float | None
    ) -> Iterator[Counts | TalliedCohort]:
        """The prefix of rounds whose window has passed, cut by epoch.

        A prefix, because closing whoever is ready would select people with quick labels.
        """
        cohorts = self._count_open(state, rounds, now)
        slots = rule_slots(state)
        for span in cohorts.spans:
            _, first, stop = span
            tally = cohorts.tallies.get(first)
            yield rounds.count(first, stop) if tally is None else tally.closed(rounds, span, slots)

    def _suspend(self, state: CertifiedState, rounds: Rounds) -> tuple[CertifiedState, Epoch]:
        """An assumption is broken: the fallback is deployed, and a new run begins with the next
        person. Nobody who has been decided by now counts in it.
        """
        state = replace(state.next_run(rounds.decided), closed_to=rounds.decided)
        number = rounds.epoch.number + 1
        epoch = self._constant(state, number, rounds.decided, epoch_length(0))
        epoch = replace(epoch, closed=state.closed_to)
        return _planned(state, epoch), epoch

    def _opened(
        self, state: CertifiedState, epoch: Epoch, rounds: Rounds, people: ClosedPeople
    ) -> tuple[CertifiedState, Epoch]:
        """Write the record by which the people of the new epoch will be judged."""
        # Keep the records of epochs whose people have not all closed, and of the last one: replicas
        # of a service decide by its policy until they hear of the next. Epochs that begin at the
        # same round (`with_variants`) end together.
        begins = [one.first_round for one in rounds.epochs]
        borders = sorted({*begins, rounds.decided})
        ends = dict(pairwise([*borders, rounds.decided]))
        records = {
            number: record
            for number, record in state.records.items()
            if ends[begins[number - 1]] > state.closed_to or begins[number - 1] == begins[-1]
        }
        if state.process is not None and state.frozen is None:
            records[epoch.number] = self._record(state, epoch.mixture, people)
        state = replace(state, records=records)
        look = NEVER if state.drift is None else next_look(rounds.decided)
        epoch = replace(epoch, closed=state.closed_to, look_at=look)
        return _planned(state, epoch), epoch

    def _record(self, state: CertifiedState, policy: Mixture, people: ClosedPeople) -> EpochRecord:
        """Bets and regression from closed cohorts, and the groups whose labels will count."""
        process, groups = state.running
        past = people.past
        regression = fit_outcomes(None if people.sample is None else people.sample.observed)
        group = past.group if state.guarantee.group_decides else None
        acceptance = policy.acceptance(past.features, group)
        bets = process.bets(past, acceptance, regression)
        labelled = labelled_groups(policy, groups)
        return EpochRecord(bets, regression, labelled, len(process.members))

    # the next policy

    def _choose(
        self, state: CertifiedState, rounds: Rounds, people: ClosedPeople, now: float | None
    ) -> tuple[CertifiedState, Epoch]:
        """Constants, until every group has its first people; then a certified mixture."""
        number = rounds.epoch.number + 1
        round = rounds.decided
        length = self._length(state, round)
        aim = 1.0 if self.quota is None else self.quota.aim(rounds, now)
        if state.process is None or people.sample is None:
            if self.budget_spent(rounds):  # nothing can be learned any more
                return state, self._constant(state, number, round, length, 0.0)
            if not self._may_start(state, rounds) or people.sample is None:
                return state, self._constant(state, number, round, length, aim)
            state = self._start(state, rounds, people)
        inputs = replace(self._inputs(state, rounds, people, number, round), aim=aim)
        if self.budget_spent(rounds):
            return self._freeze(state, inputs, rounds.schema)
        length = self._length(state, round)
        state, choice = self._cheapest(state, inputs, length)
        state = replace(state, gaps={**state.gaps, number: choice.gaps})
        if choice.accepted is not None:
            state = replace(state, accepted={**state.accepted, number: choice.accepted})
        epoch = Epoch(
            number,
            "certified",
            round,
            length,
            choice.policy,
            audit=choice.policy.weight_of(ACCEPT_ALL),
            exploration_floor=choice.floor,
            iterations=choice.steps,
            oracle_calls=choice.oracle_calls,
            halted=choice.halted,
        )
        return state, epoch

    def _constant(
        self, state: CertifiedState, number: int, round: int, length: int, aim: float = 1.0
    ) -> Epoch:
        """Before anything is certified: accept all applicants; after a suspension: the fallback,
        audited. Under a cap or a floor: the lottery at the nearest share that is permitted, which
        has no gap and accepts exactly that share. aim: the share that spreads a quota, which
        outranks the floor.
        """
        guarantee = state.guarantee
        share = 1.0
        if state.run > 1 and self.fallback == "reject":
            share = max(0.05, SCHEDULE.exploration_floor(round))
        share = min(max(share, guarantee.least), guarantee.most, aim)
        return Epoch(
            number,
            "explore",
            round,
            length,
            lottery(share, self.group_use),
            audit=share,
            exploration_floor=share,
        )

    def _cheapest(
        self, state: CertifiedState, inputs: PlanningInputs, length: int
    ) -> tuple[CertifiedState, Choice]:
        """Fitted classes nominate and are explored by Algorithm 1, all others by the price of what
        is not known yet.
        """
        if not self.fitted:
            return state, inputs.by_price(length)
        if due(state, inputs.log, inputs.audits, inputs.round):
            _, groups = state.running
            people = PredictedOutcomes.of(groups, inputs.past, inputs.audits, inputs.regression)
            chosen = nominees(
                state, self.hypotheses, inputs.log, people, inputs.regression, self.loss
            )
            labels = float(inputs.log.accepted.sum())
            state = nominate(state, chosen, inputs.round, labels)
            inputs = replace(inputs, state=state)
        return state, inputs.by_descent(length)

    def _freeze(
        self, state: CertifiedState, inputs: PlanningInputs, schema: Schema | None
    ) -> tuple[CertifiedState, Epoch]:
        """The audit budget is spent: the best certified policy, without audits, for good."""
        policy, gaps, accepted = inputs.without_audits()
        policy = replace(policy, schema=schema)
        state = replace(
            state,
            gaps={**state.gaps, inputs.number: gaps},
            frozen=certificates.certificate(state, policy, gaps, None, accepted),
        )
        if accepted is not None:
            state = replace(state, accepted={**state.accepted, inputs.number: accepted})
        audit = policy.weight_of(ACCEPT_ALL)
        return state, Epoch(inputs.number, "frozen", inputs.round, FOREVER, policy, audit=audit)

    # starting a run of certification

    def _start(self, state: CertifiedState, rounds: Rounds, people: ClosedPeople) -> CertifiedState:
        """Fix groups and hypotheses, book delta_r, and begin: people of later epochs are judged,
        those who wait for their labels are not.
        """
        guarantee = state.guarantee
        groups = guarantee.groups or state.evidence.groups
        members = () if guarantee.nominates else self._members(state, rounds)
        candidates = self.rules if guarantee.nominates else ()
        ledger = state.ledger
        shares, group_shares = _first_shares(guarantee, state.run, members, groups)
        for number, part in enumerate(() if shares is None else (shares, group_shares)):
            if part is not None and part.deltas.any():
                what = f"accepted shares of {len(part)} {('hypotheses', 'groups')[number]}"
                booked = float(part.deltas.sum())
                ledger = ledger.book(what, booked, at=rounds.decided, run=state.run)
        if not guarantee.nominates:
            what = f"{guarantee.bound} over {len(members)} hypotheses"
            share = guarantee.own_share(state.run)
            ledger = ledger.book(what, share, at=rounds.decided, run=state.run)
        drift = DriftWatch.start(
            groups,
            guarantee.false_alarm(state.run),
            state.closed_to,
            seed=guarantee.seed,
            run=state.run,
        )
        state = replace(
            state,
            groups=groups,
            # constants treat all groups alike, so a group is covered since the run began
            covered_from={group: state.covered_from.get(group, state.began) for group in groups},
            ledger=ledger,
            process=self._process(state, groups, members, rounds, people),
            shares=shares,
            group_shares=group_shares,
            drift=drift,
        )
        if not candidates:
            return state
        # the first nominees; when the next ones are due does not depend on them
        return replace(
            nominate(state, candidates, rounds.decided, 0.0), nominated_at=0.0, nominated_labels=0.0
        )

    def _process(
        self,
        state: CertifiedState,
        groups: tuple[Group, ...],
        members: tuple[Hypothesis, ...],
        rounds: Rounds,
        people: ClosedPeople,
    ) -> GapProcess:
        guarantee = state.guarantee
        share = guarantee.own_share(state.run)
        if guarantee.bound in ("betting", "nominate"):
            shares: tuple[float, ...] = ()
            if not guarantee.nominates:
                shares = tuple((share * self._likely(state, groups, members, people)).tolist())
            bound = BettingBound(groups, guarantee.rates, len(members), share, shares=shares)
            return BettingProcess(bound, members, bound.start(), guarantee.group_decides)
        own = self.bound if isinstance(self.bound, FixedCountBound) else None
        return AuditProcess(
            bound=own or AUDIT_BOUNDS[guarantee.bound],
            members=members,
            groups=groups,
            rates=guarantee.rates,
            delta=share,
            columns=max(rounds.features.shape[1], 1),
            log_size=log(max(len(members), 1)),
            seed=guarantee.seed,
            group_decides=guarantee.group_decides,
        )

    def _likely(
        self,
        state: CertifiedState,
        groups: tuple[Group, ...],
        members: tuple[Hypothesis, ...],
        people: ClosedPeople,
    ) -> FloatArray:
        """The part of delta of each member: by the first people, none of whom is judged."""
        sample = people.sample
        assert sample is not None  # cohorts have been closed
        past = people.past
        costs = PooledCosts.of(
            sample.log,
            (past.features, past.group if state.guarantee.group_decides else None),
            partial(acceptance_table, members),
            fit_outcomes(sample.observed),
            self.loss,
            sample.observed,
        )
        generator = stream(state.guarantee.seed, "shares of delta", state.run)
        return likely_shares(costs, past, self.rates, groups, float(self.limit), generator)

    def _members(self, state: CertifiedState, rounds: Rounds) -> tuple[Hypothesis, ...]:
        """The finite class that all later rounds are judged by: H itself, or its cuts at the values
        of exactly the first N_0 arrivals of the run, however they were grouped into calls.
        """
        source = self.hypotheses
        if isinstance(source, Stumps) and source.max_bins is None:
            source = Stumps(max_bins=CUTS)
        past = first_arrivals(rounds, state.began, state.began + self._first_arrivals)
        bound = source.bind(past.features, past.group if state.guarantee.group_decides else None)
        if not isinstance(bound, Enumeration):
            raise InvalidInput(
                f"{type(self.hypotheses).__name__} cannot be enumerated, so there is no union "
                "bound over it.",
                hint='use bound="nominate".',
            )
        size = bound.totals(np.zeros((1, len(past.features)))).shape[1]
        if log(size) > MOST_LOG_SIZE:
            raise InvalidInput(
                f"the class has {size} members; a union over them is too wide.",
                hint='use bound="nominate".',
            )
        every = (bound.hypothesis(i) for i in range(size))
        own = self.rules
        new = (hypothesis for hypothesis in every if not is_constant(hypothesis))
        return (*own, *(hypothesis for hypothesis in new if not own or hypothesis not in own))

    # what planning may look at: people of closed cohorts

    def _closed_people(self, state: CertifiedState, rounds: Rounds) -> ClosedPeople:
        """Read from the table, so whoever was erased there is gone here."""
        sample = closed_sample(
            rounds,
            state.spans,
            rule_slots(state),
            with_group=self.group_use == "decide",
            before=state.first_run,
        )
        return ClosedPeople(sample, past_people(rounds, state.spans, before=state.first_run))

    def _audits(
        self, state: CertifiedState, rounds: Rounds, sample: ClosedSample
    ) -> list[LabelledSample]:
        if not state.guarantee.nominates:
            return []
        return audited_people(rounds, sample, state.groups or (), before=state.first_run)

    def _inputs(
        self,
        state: CertifiedState,
        rounds: Rounds,
        people: ClosedPeople,
        number: int,
        round: int,
    ) -> PlanningInputs:
        assert people.sample is not None  # cohorts have been closed
        return PlanningInputs(
            audit_rate=self.audit_rate,
            horizon=self.horizon,
            state=state,
            rounds=rounds,
            log=people.sample.log,
            observed=people.sample.observed,
            past=people.past,
            audits=self._audits(state, rounds, people.sample),
            loss=self.loss,
            number=number,
            round=round,
            budget_left=self.budget_left(rounds),
        )

    def budget_left(self, rounds: Rounds) -> float:
        """Bad accepts that audits may still cost, those whose label has not come counted as bad."""
        return inf if self.audit_budget is None else self.audit_budget - rounds.audit_bill

    def budget_spent(self, rounds: Rounds) -> bool:
        """Whether no audit can ever be afforded any more, whatever labels come."""
        return self.budget_left(rounds) + rounds.audits_pending < 1

    # for people

    def notes(self, state: CertifiedState, rounds: Rounds) -> tuple[Note, ...]:
        """What is missing, and what has happened."""
        found = certificates.notes(state)
        if self.budget_spent(rounds):
            found.append(self._spent(state, rounds))
        elif not state.audits_open:
            text = (
                f"audits are paused: {rounds.audits_pending} labels of audited people have not "
                f"come, and count as bad until they do; {self.budget_left(rounds):g} of the "
                "audit budget are left."
            )
            if state.process is None:
                text += self._would_do(state)
            found.append(Note("audits paused", text))
        if not state.quota_open:
            found.append(Note("quota used up", "nobody is accepted until the next period begins."))
        return tuple(found)

    def _spent(self, state: CertifiedState, rounds: Rounds) -> Note:
        """The budget is spent: after the start the policy is frozen; before it, constants stay in
        force, and a larger budget would have done.
        """
        if state.process is not None:
            return Note("frozen", "the audit budget is spent: the policy is frozen.")
        text = (
            f"the audit budget of {self.audit_budget:g} is spent before anything could be "
            "certified: constants stay in force for good."
        )
        return Note("budget too small", text + self._would_do(state))

    def _would_do(self, state: CertifiedState) -> str:
        needed = self.budget_for_start(state)
        if not isfinite(needed):
            return ""
        return f" About {ceil(needed):,} would do to begin, and more to learn."

    def budget_for_start(self, state: CertifiedState) -> float:
        """About how many bad accepts the start needs: until each group has its first people in each
        denominator, by the counts so far (and one imaginary person in each).
        """
        evidence = state.evidence
        groups = state.guarantee.groups or tuple(evidence.seen)
        if len(groups) < 2:
            return inf
        bad = evidence.negatives + 0.5
        sizes = [evidence.denominator(group, rate) for group in groups for rate in self.rates]
        return 1.2 * FIRST_PEOPLE * bad / (min(sizes) + 0.5)

    def forecast(self, state: CertifiedState, rounds: Rounds) -> tuple[RateForecast, ...]:
        """How far the evidence of each rate is expected to come within the horizon."""
        process = state.process
        if process is None or not process.members or state.frozen is not None:
            return ()
        if not state.spans:
            return ()
        epoch = rounds.epoch
        people = self._closed_people(state, rounds)
        outlook = self._inputs(state, rounds, people, epoch.number, epoch.first_round).outlook
        if outlook is None:
            return ()
        prospect = outlook.prospect
        if self.audit_rate == "auto":
            course = prospect.course(outlook.start, outlook.horizon)
        else:
            course = prospect.trajectory(0.0, outlook.start, outlook.horizon)
        return prospect.forecasts(course, outlook.horizon)

    def warm_start(self, state: CertifiedState, history: RoundLog) -> CertifiedState:
        """Count audited people who were decided before the first round: which groups there are,
        and whether each has its first people.
        """
        share = float(history.acceptance[0])  # one coin for all: every accept was an audit
        counts = Counts.of_log(0, 0, history, share, np.random.default_rng(0))
        return replace(state, evidence=state.evidence.add(counts, None, judged=False))

    def check_people(self, state: CertifiedState, rows: FloatArray, rounds: Rounds) -> None:
        """InvalidInput if a model that is going to judge these people cannot read them: a word
        that its encoder does not know, say. It is asked before they are decided about.
        """
        if state.process is None:
            return
        own: tuple[Hypothesis, ...] = ()
        if len(rows) == 1 and not rounds.epoch_is_over:
            # one person in the midst of an epoch: the policy asks its own rules, before the coin
            own = rounds.epoch.mixture.hypotheses
        for member in state.process.members:
            if getattr(member, "schema", None) is not None and id(member) not in map(id, own):
                member.accepts(rows, None)

    # what follows from the settings

    def __post_init__(self) -> None:
        object.__setattr__(self, "hypotheses", as_class(self.hypotheses))
        if isinstance(self.hypotheses, Estimator):
            require_skops()
        require_prices(self.prices)
        require_group_use(self.group_use)
        require_limit(self.limit)
        require_delta(self.delta)
        self._require_bound()
        self._require_audits()
        require_choice("fallback", self.fallback, ("accept", "reject"))
        if self.maturity is not None:
            requirement = "a window is a positive, finite span of time"
            hint = "None says that labels come before the next decision."
            require_number("maturity", self.maturity, lambda window: window > 0, requirement, hint)
        if self.horizon is not None:
            require_horizon(self.horizon)
        requirement = "the probability of suspending without a reason lies strictly between 0 and 1"
        require_number(
            "drift_false_alarm",
            self.drift_false_alarm,
            lambda share: 0 < share < 1,
            requirement,
            "0.001 is the default.",
        )
        self._require_shares()
        self._require_quota()
        self._require_keep()
        object.__setattr__(self, "candidates", as_candidates(self.candidates) or None)
        self._require_fitting_class()
        as_groups(self.groups)

    def _require_bound(self) -> None:
        if isinstance(self.bound, FixedCountBound):
            if self.bound.name in ("betting", "nominate", *AUDIT_BOUNDS):
                raise InvalidInput(
                    f"the bound of your own is called {self.bound.name!r}, as one of evenhand's "
                    "is.",
                    hint="give it another name, by which certificates tell them apart.",
                    argument="bound",
                )
        elif self.bound is not None:
            require_choice("bound", self.bound, ("betting", "nominate", *AUDIT_BOUNDS))

    def _require_audits(self) -> None:
        if not (isinstance(self.audit_rate, str) and self.audit_rate == "auto"):
            requirement = 'it is "auto" or a probability in (0, 1]'
            require_number("audit_rate", self.audit_rate, lambda rate: 0 < rate <= 1, requirement)
        if self.audit_budget is not None:
            requirement = (
                "it is the number of bad accepts that audits may cost, finite and at least 1"
            )
            require_number(
                "audit_budget",
                self.audit_budget,
                lambda many: many >= 1,
                requirement,
                "None sets no budget; without a single audit nothing can be certified.",
            )

    def _require_shares(self) -> None:
        requirement = "the share of the population that is accepted at most is a number in (0, 1]"
        if self.accept_at_most is not None:
            require_number(
                "accept_at_most",
                self.accept_at_most,
                lambda share: 0 < share <= 1,
                requirement,
                "0.2 accepts one person in five at most; None and 1 set no cap.",
            )
        most = 1.0 if self.accept_at_most is None else float(self.accept_at_most)
        if self.accept_at_least is not None:
            require_number(
                "accept_at_least",
                self.accept_at_least,
                lambda share: 0 <= share <= 1,
                "the share of the population that is accepted at least is a number in [0, 1]",
                "None and 0 set no floor.",
            )
            if self.accept_at_least > most:
                raise InvalidInput(
                    f"accept_at_least is {self.accept_at_least!r}, and accept_at_most is {most:g}",
                    requirement="the floor lies at or below the cap",
                    hint="lower accept_at_least, or raise accept_at_most.",
                    argument="accept_at_least",
                )
        if self.audit_rate != "auto" and self.audit_rate > most:
            raise InvalidInput(
                f"audit_rate is {self.audit_rate!r}, and accept_at_most is {most:g}",
                requirement="the audit coin alone may not accept more than the cap",
                hint=f'use audit_rate="auto", or one of at most {most:g}.',
                argument="audit_rate",
            )

    def _require_quota(self) -> None:
        if self.quota is not None and not isinstance(self.quota, Quota):
            raise InvalidInput(
                f"quota is {self.quota!r}",
                requirement="it says how many people may be accepted in each period",
                hint="use evenhand.Quota(count, period), for example Quota(50, period=1.0).",
                argument="quota",
            )

    def _require_keep(self) -> None:
        require_choice("keep", self.keep, ("rows", "counts"))
        needs = {
            "a quota": self.quota is not None,
            f"the bound {self.bound_name!r}": self.bound_name not in ("betting", "nominate"),
        }
        for what, given in needs.items():
            if given and self.keep == "counts":
                raise InvalidInput(
                    f'keep is "counts", and {what} looks at people one by one.',
                    requirement="where counts alone are kept, every round is counted once",
                    hint='use keep="rows".',
                    argument="keep",
                )

    def needed_rows(self, state: CertifiedState, rounds: Rounds) -> BoolArray | None:
        """Which rows of the table are still needed, where counts alone are kept; None: all of
        them.
        """
        _, cohorts = rounds.so_far(OPEN)
        if self.keep == "rows" or state.process is None or state.drift is None or cohorts is None:
            return None
        if cohorts.since != state.closed_to:
            return None  # a cohort has just been closed: at the next look
        slots = rule_slots(state)
        return still_needed(rounds, state.spans, cohorts, slots, state.drift.fed_to)

    @property
    def rules(self) -> tuple[Hypothesis, ...]:
        """The candidates: rules that are members from the start."""
        return as_candidates(self.candidates)

    def check_first(self, rows: FloatArray, group: GroupArray | None) -> None:
        """InvalidInput if a candidate cannot decide about the first people."""
        require_readable(self.rules, rows, group if self.group_use == "decide" else None)

    def _require_fitting_class(self) -> None:
        hypotheses = self.hypotheses
        name = type(hypotheses).__name__
        if self.bound == "dkw" and self.candidates:
            raise InvalidInput(
                f"candidates has {len(self.rules)} rules, and the bound 'dkw' covers the "
                "thresholds of one class alone",
                requirement="each candidate needs an interval of its own",
                hint='use bound="betting".',
                argument="candidates",
            )
        if hypotheses.uses_group and self.group_use != "decide":
            raise InvalidInput(
                f'{name} looks at the group, but group_use is "{self.group_use}".',
                hint='choose group_use="decide".',
                argument="group_use",
            )
        require_certifiable(self.rates)
        if self.bound not in (None, "nominate") and self._too_rich:
            raise InvalidInput(
                f"{name} is too rich for a union over its members, which the bound "
                f"{self.bound_name!r} pays.",
                hint='use bound="nominate".',
                argument="bound",
            )
        # thresholds and stumps are infinitely many, but a grid of cuts from the first rounds is a
        # finite class for all later ones
        if self.bound == "dkw" and not (hypotheses.exact and not isfinite(hypotheses.log_size)):
            raise InvalidInput(
                f"the bound 'dkw' covers thresholds on a column, and {name} may hold any rules.",
                hint='use bound="betting", or a class of thresholds.',
                argument="bound",
            )

    @property
    def _too_rich(self) -> bool:
        """Whether no union over the class can be paid: it cannot be enumerated, or is too large."""
        size = self.hypotheses.log_size
        return not self.hypotheses.exact or (isfinite(size) and size > MOST_LOG_SIZE)

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The rates whose gaps are kept below the limit."""
        return as_rates(self.rate)

    @cached_property
    def loss(self) -> TransformedLoss:
        """What errors cost."""
        return TransformedLoss.of_prices(self.prices)

    @property
    def bound_name(self) -> str:
        """The name of the bound; by default the one that covers the class."""
        if self.bound is None:
            return "nominate" if self._too_rich else "betting"
        return self.bound.name if isinstance(self.bound, FixedCountBound) else self.bound

    @property
    def fitted(self) -> bool:
        """Whether hypotheses are fitted and nominated one by one."""
        return self.bound_name == "nominate"

    @property
    def _first_arrivals(self) -> int:
        """N_0: the people whose values are the cuts of thresholds and stumps; fitted classes have
        no cuts.
        """
        return 0 if self.fitted else FIRST_ROUNDS

    @property
    def _first_length(self) -> int:
        if not self.fitted:
            return FIRST_ROUNDS
        if self.horizon is None:
            return FIRST_FITTED
        return int(np.clip(self.horizon // 100, FIRST_ROUNDS, FIRST_FITTED))

    def guarantee(self, seed: int) -> Guarantee:
        """What is guaranteed."""
        return Guarantee(
            rates=self.rates,
            limit=float(self.limit),
            delta=self.delta,
            bound=self.bound_name,
            group_use=self.group_use,
            maturity=self.maturity,
            drift_false_alarm=self.drift_false_alarm,
            seed=seed,
            groups=as_groups(self.groups),
            accept_at_most=_bound_or_none(self.accept_at_most, 1.0),
            accept_at_least=_bound_or_none(self.accept_at_least, 0.0),
            budgeted=self.audit_budget is not None,
            has_quota=self.quota is not None,
        )

    def reading(self, schema: Schema) -> "Certified":
        """The same for people with these columns."""
        rules = reading(self.rules, schema) or None
        return replace(self, hypotheses=class_reading(self.hypotheses, schema), candidates=rules)


# closing a cohort


NO_RULES = RuleSlots(())


def rule_slots(state: CertifiedState) -> RuleSlots:
    """Where the rules of the certificate cut; no rules before intervals start."""
    return NO_RULES if state.process is None else state.process.slots


def close(state: CertifiedState, cohort: Counts | TalliedCohort, rounds: Rounds) -> CertifiedState:
    """Look at a closed cohort exactly once, by the record that opened its epoch: a second look
    with a newer record would not be predictable. A cohort without a record (all applicants were
    accepted, before intervals started) only counts towards the start.
    """
    record = state.records.get(cohort.epoch)
    process = state.process
    contradictions = state.contradictions
    judged = False
    if process is not None and record is not None:
        judged = process.judges(record)
        process = process.update(cohort, record, rounds)
        contradictions = int(process.intervals()[2].sum())
    shares = state.shares
    group_shares = state.group_shares
    if shares is not None and record is not None:
        shares, group_shares = _counted_shares(state, cohort, record)
    evidence = state.evidence.add(cohort, state.groups, judged=judged)
    remember_closed(rounds, state.spans, cohort, rule_slots(state))
    return replace(
        state,
        process=process,
        contradictions=contradictions,
        shares=shares,
        group_shares=group_shares,
        evidence=evidence,
        closed_to=cohort.stop,
        spans=(*state.spans, (cohort.epoch, cohort.first, cohort.stop)),
    )


def _counted_shares(
    state: CertifiedState, cohort: Counts | TalliedCohort, record: EpochRecord
) -> tuple[AcceptedShares, AcceptedShares | None]:
    """The shares that rules accept, with a closed cohort: all its people count."""
    process, groups = state.running
    assert state.shares is not None
    decide = state.guarantee.group_decides
    rounds = cohort.rounds
    # where rules see the group, what they say about one that nobody has named is not known
    codes = group_codes(cohort.group, groups)
    inside = codes >= 0 if decide else np.ones(len(rounds), dtype=bool)
    if isinstance(cohort, TalliedCohort):
        accepted = cohort.chosen(inside)
    else:
        shown = cohort.group[inside] if decide else None
        accepted = process.table(cohort.features[inside], shown) @ rounds[inside]
    doubtful = float(rounds[~inside].sum()) + cohort.lost
    people = float(rounds[inside].sum())
    shares = state.shares.update(accepted[: record.rules], people, doubtful)
    if not decide or state.group_shares is None:
        return shares, None
    known = np.array([value is not None for value in cohort.group.tolist()], dtype=bool)
    own = codes[known] == np.arange(len(record.labelled))[:, np.newaxis]
    doubtful = float(rounds[~known].sum()) + cohort.lost
    people = float(rounds[known].sum())
    return shares, state.group_shares.update(own @ rounds[known], people, doubtful)


def _first_shares(
    guarantee: Guarantee, run: int, members: tuple[Hypothesis, ...], groups: tuple[Group, ...]
) -> tuple[AcceptedShares | None, AcceptedShares | None]:
    """The shares of hypotheses and of group classifiers at the start of a run; None without a cap
    and a floor. All that is kept for shares is split evenly; where hypotheses are nominated, half
    of it is for the groups, if they decide, and the rest for what will be nominated.
    """
    if not guarantee.shares_matter:
        return None, None
    sides = {
        "capped": guarantee.accept_at_most is not None,
        "floored": guarantee.accept_at_least is not None,
    }
    decide = guarantee.group_decides
    each = guarantee.for_shares(run) / max(len(members) + decide * len(groups), 1)
    if guarantee.nominates:
        each = 0.5 * guarantee.for_shares(run) / len(groups)
    shares = AcceptedShares.start(np.full(len(members), each), **sides)
    if not decide:
        return shares, None
    return shares, AcceptedShares.start(np.full(len(groups), each), **sides)


def lottery(share: float, group_use: GroupUse) -> Mixture:
    """Accept with this probability, whoever the person is."""
    if share == 1.0:
        return Mixture((ACCEPT_ALL,), (1.0,), group_use)
    if share == 0.0:
        return Mixture((REJECT_ALL,), (1.0,), group_use)
    return Mixture((ACCEPT_ALL, REJECT_ALL), (share, 1.0 - share), group_use)


def without_coin(policy: Mixture) -> Mixture:
    """The same without accept-all, whose weight goes to reject-all."""
    parts = zip(policy.hypotheses, policy.weights, strict=True)
    kept = [(rule, weight) for rule, weight in parts if rule not in (ACCEPT_ALL, REJECT_ALL)]
    rest = policy.weight_of(ACCEPT_ALL) + policy.weight_of(REJECT_ALL)
    rules, weights = zip((REJECT_ALL, rest), *kept, strict=True)
    return Mixture(rules, weights, policy.group_use)


def _planned(state: CertifiedState, epoch: Epoch) -> CertifiedState:
    """An epoch is opened as planned; `gate` says whether the counts allow it."""
    number = epoch.number
    planned = PlannedEpoch(
        epoch, state.records.get(number), state.gaps.get(number), state.accepted.get(number)
    )
    return replace(state, planned=planned, audits_open=True, quota_open=True)


def _moved(known: dict[int, Kept], number: int, to: int) -> dict[int, Kept]:
    """What is kept by the number of an epoch, under another number."""
    return {to if one == number else one: value for one, value in known.items()}


def _with(known: dict[int, Kept], number: int, value: Kept | None) -> dict[int, Kept]:
    """The entries with that of one epoch; None: it has none."""
    rest = {key: entry for key, entry in known.items() if key != number}
    return rest if value is None else {**rest, number: value}


def _bound_or_none(given: float | None, none: float) -> float | None:
    """A cap of 1 and a floor of 0 are none."""
    return None if given is None or given == none else float(given)


def join_groups(state: CertifiedState, round: int) -> CertifiedState:
    """A group that has turned up since the start, and has a few people by now, joins."""
    if not isinstance(state.process, BettingProcess) or not state.guarantee.reserved(state.run):
        return state
    for group in state.evidence.groups:
        if group not in (state.groups or ()):
            state = state.joined_by_group(group, round)
    return state


def nominate(
    state: CertifiedState, hypotheses: Sequence[Hypothesis], round: int, labels: float
) -> CertifiedState:
    """The N-th nominated hypothesis books 6 delta_r / (pi^2 N^2), which sums to delta_r, and is
    judged by later epochs only: it was chosen by the past, so later people are fresh. labels: how
    many were seen by now.
    """
    process = state.process
    assert isinstance(process, BettingProcess)
    ledger = state.ledger
    guarantee = state.guarantee
    shares = state.shares
    for hypothesis in hypotheses:
        number = len(process.members) + 1
        share = inverse_square_share(guarantee.own_share(state.run), number)
        what = f"nominated hypothesis {number}"
        ledger = ledger.book(what, share, at=round, run=state.run)
        process = process.joined_by(hypothesis, share)
        if shares is not None:
            kept = guarantee.for_shares(state.run) * (0.5 if guarantee.group_decides else 1.0)
            own = inverse_square_share(kept, number)
            what = f"accepted share of nominated hypothesis {number}"
            ledger = ledger.book(what, own, at=round, run=state.run)
            shares = shares.joined_by(own)
    return replace(
        state,
        process=process,
        shares=shares,
        ledger=ledger,
        nominated_at=float(round),
        nominated_labels=labels,
    )


def certificate_of(state: CertifiedState, epoch: Epoch) -> Certificate:
    """What is claimed about the policy of an epoch. That of a frozen policy never changes; only a
    suspension ends it.
    """
    if state.frozen is not None:
        return state.frozen
    gaps: GapEnds | None = state.gaps.get(epoch.number)
    accepted = state.accepted.get(epoch.number)
    return certificates.certificate(state, epoch.mixture, gaps, epoch.end, accepted)
