"""The certified algorithm: one limit that is kept from the first person on (beyond the paper).

    1. Accept all applicants until every group has FIRST_PEOPLE people in the denominator of each
       rate; under a cap hold a lottery instead, which is as even-handed (`start`).
    2. Per epoch: close the cohorts whose labels have matured, narrow the interval of every
       hypothesis (`closing`), and choose among the mixtures whose gap is below the limit for all
       values that the intervals still allow (`choose`). Constants are exactly fair, so there always
       are some.
    3. While an audit coin that ignores the person is tossed, every probability of being accepted is
       above a floor. It is not tossed while audits are paused or a quota is used up
       (`hard_counts`), nor after the audit budget is spent.

Uncertainty costs regret, never fairness: with probability at least 1 - delta, every policy that is
deployed keeps the limit for the groups that are covered, and the cap, as long as the assumptions of
the certificate hold.

**Symbols.** p(x) is the probability with which the policy of an epoch accepts a person with
features x; m(x) the regression, a prediction of the probability that the outcome is bad; the bets
say how much each process of a hypothesis stakes on one person (`evenhand.bounds.betting` has the
theorem). All three are in the record of an epoch before its first coin is tossed (`EpochRecord`).

**The same however people arrive.** Where an epoch is planned to end, and the cuts of thresholds and
stumps, depend on the number of people who have arrived and on nothing else: an epoch whose labels
have not come ends where it ends, and the next one has the same policy; cuts are values of exactly
the first N_0 arrivals. So a call of decide() may bring one person or thousands. Three things end an
epoch elsewhere: a drift alarm, a hard count that is used up or free again, and a spent audit
budget, after which the last epoch goes on for good.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal

from evenhand.algorithms.base import GroupNeeded, Note
from evenhand.algorithms.certified import hard_counts
from evenhand.algorithms.certified.candidates import as_candidates, reading, require_readable
from evenhand.algorithms.certified.certificates import certificate
from evenhand.algorithms.certified.choose import Choice, PlanningInputs
from evenhand.algorithms.certified.closing import (
    close,
    closed_of,
    count_between_cuts,
    count_open,
    join_groups,
    matured,
    needed_rows,
    rule_slots,
)
from evenhand.algorithms.certified.drift import next_look
from evenhand.algorithms.certified.forecast import RateForecast, epoch_length
from evenhand.algorithms.certified.hard_counts import as_planned, with_entry
from evenhand.algorithms.certified.intervals import EpochRecord, labelled_groups
from evenhand.algorithms.certified.nominate import PredictedOutcomes, due, nominate, nominees
from evenhand.algorithms.certified.notes import forecasts, notes
from evenhand.algorithms.certified.quota import Quota
from evenhand.algorithms.certified.sample import (
    ClosedPeople,
    ClosedSample,
    audited_people,
    closed_sample,
)
from evenhand.algorithms.certified.settings import (
    FIRST_ROUNDS,
    bound_or_none,
    first_length,
    must_nominate,
    require_audits,
    require_false_alarm,
    require_fitting_class,
    require_keep,
    require_maturity,
    require_quota,
    require_shares,
)
from evenhand.algorithms.certified.start import (
    CannotStart,
    constant_epoch,
    start,
    warm_start,
)
from evenhand.algorithms.certified.state import CertifiedState, Guarantee
from evenhand.algorithms.certified.unread import unread_left_out
from evenhand.algorithms.own_parts import FAILED, OwnPartFailed, watched
from evenhand.algorithms.settings import (
    as_groups,
    require_choice,
    require_group_use,
    require_horizon,
    require_prices,
)
from evenhand.contracts import (
    GroupUse,
    Hypothesis,
    HypothesisClass,
    Rate,
    class_reading,
)
from evenhand.estimation import RoundLog, TransformedLoss
from evenhand.estimation.outcomes import fit_outcomes
from evenhand.fairness.delta_ledger import DeltaLedger
from evenhand.fairness.rates import RateLike, as_rates
from evenhand.hypotheses.constants import ACCEPT_ALL
from evenhand.hypotheses.estimator import Estimator, rejecting_unread
from evenhand.hypotheses.models import require_skops
from evenhand.hypotheses.named import as_class
from evenhand.policies import Mixture
from evenhand.rounds import FOREVER, NEVER, Epoch, Keep, Rounds
from evenhand.schema import Schema
from evenhand.shares import require_delta, require_promise
from evenhand.words import BoolArray, FloatArray, Group, GroupArray, LabelledSample, Prices


@dataclass(frozen=True, eq=False)
class Certified:
    """The settings of the certified algorithm, and its step; see `evenhand.CertifiedLearner`."""

    hypotheses: HypothesisClass
    rate: RateLike
    limit: float
    delta: float
    _: KW_ONLY
    horizon: int | None = None
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
        length = first_length(self.horizon, nominates=self.nominates)
        first = constant_epoch(state, 1, 0, length, fallback=self.fallback, aim=aim)
        return as_planned(state, first), first

    def step(
        self, state: CertifiedState, rounds: Rounds, now: float | None
    ) -> tuple[CertifiedState, Epoch | None]:
        """Close the cohorts whose labels have matured, then open the next epoch."""
        try:
            return rejecting_unread(self._next, state, rounds, now)
        except OwnPartFailed as failure:
            # A rule that is judged, or watched, cannot be asked any more. What was certified about
            # it can neither be continued nor checked, so the run ends.
            return self._suspend(state, rounds, (str(failure),))

    def _next(
        self, state: CertifiedState, rounds: Rounds, now: float | None
    ) -> tuple[CertifiedState, Epoch | None]:
        # The drift tests look at preset counts of people, so a long epoch cannot hide a change.
        state = self._watch_drift(state, rounds, now)
        if state.alarms:
            return self._suspend(state, rounds)
        if state.frozen is not None:
            return state, self._goes_on(state, rounds)
        if not rounds.epoch_is_over:
            # These sums make the closing short, and nothing else.
            return count_open(state, rounds, now), self._goes_on(state, rounds)

        # Every row is judged by what was written before its coin was tossed: p, the probability of
        # being accepted by the policy of its epoch, is stored with the row; m, the regression of
        # bad outcomes on x, and the bets are stored in the record of the epoch since it opened.
        # Closing only reads them. So all three are predictable, and each factor is one step of a
        # martingale (Ville's inequality gives the intervals): nobody can choose the bets after
        # seeing the outcome.
        cohorts = list(matured(state, rounds, now))
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
        state = count_between_cuts(state, rounds)
        # The bets of the new epoch are fixed now, before its first coin.
        return self._opened(state, epoch, rounds, people)

    def _watch_drift(
        self, state: CertifiedState, rounds: Rounds, now: float | None
    ) -> CertifiedState:
        if state.drift is None:
            return state
        groups = state.groups or ()
        return replace(state, drift=state.drift.feed(rounds, groups, now, self.maturity))

    def _suspend(
        self, state: CertifiedState, rounds: Rounds, why: tuple[str, ...] = ()
    ) -> tuple[CertifiedState, Epoch]:
        """An assumption is broken: the fallback is deployed, and a new run begins with the next
        person. Nobody who has been decided by now counts in it.
        """
        state = replace(state.next_run(rounds.decided, why), closed_to=rounds.decided)
        number = rounds.epoch.number + 1
        epoch = constant_epoch(
            state, number, rounds.decided, epoch_length(0), fallback=self.fallback
        )
        epoch = replace(epoch, closed=state.closed_to)
        return as_planned(state, epoch), epoch

    def _goes_on(self, state: CertifiedState, rounds: Rounds) -> Epoch:
        """The epoch is not over (a frozen one never is): the same one, with the same number, and
        its next look set.
        """
        look = NEVER if state.drift is None else next_look(rounds.decided)
        return replace(rounds.epoch, look_at=look)

    def _may_start(self, state: CertifiedState, rounds: Rounds) -> bool:
        """Whether intervals may start: every group has its first people, and the people whose
        values are the cuts have all arrived.
        """
        waiting = state.process is None and state.ready
        return waiting and rounds.decided - state.began >= self._first_arrivals

    def _again(self, state: CertifiedState, rounds: Rounds) -> tuple[CertifiedState, Epoch]:
        """Nothing new is known: the same policy, judged by the same record, as a new epoch. Where
        epochs end must not depend on when labels come.
        """
        planned = state.planned
        assert planned is not None
        number = rounds.epoch.number + 1
        state = replace(
            state,
            records=with_entry(state.records, number, planned.record),
            gaps=with_entry(state.gaps, number, planned.gaps),
            accepted=with_entry(state.accepted, number, planned.accepted),
        )
        epoch = replace(
            planned.epoch,
            number=number,
            first_round=rounds.decided,
            rounds=self._length(state, rounds.decided),
            look_at=NEVER if state.drift is None else next_look(rounds.decided),
            closed=state.closed_to,
        )
        return as_planned(state, epoch), epoch

    def _length(self, state: CertifiedState, round: int) -> int:
        """Rounds of the epoch that begins at a round: a quarter of all before it; until intervals
        start, of those of the run.
        """
        return epoch_length(round if state.process is not None else round - state.began)

    # the next policy

    def _closed_people(self, state: CertifiedState, rounds: Rounds) -> ClosedPeople:
        """What planning may look at: people of closed cohorts. They are read from the table, so
        whoever was erased there is gone here.
        """
        closed = closed_of(state, rounds)
        sample = closed_sample(
            rounds,
            closed,
            rule_slots(state),
            with_group=self.group_use == "decide",
            before=state.first_run,
        )
        return ClosedPeople(sample, closed.past)

    def _choose(
        self, state: CertifiedState, rounds: Rounds, people: ClosedPeople, now: float | None
    ) -> tuple[CertifiedState, Epoch]:
        """Constants, until every group has its first people; then a certified mixture."""
        number = rounds.epoch.number + 1
        round = rounds.decided
        length = self._length(state, round)
        aim = 1.0 if self.quota is None else self.quota.aim(rounds, now)
        spent = hard_counts.budget_spent(self.audit_budget, rounds)
        if state.process is None or people.sample is None:
            if spent:  # nothing can be learned any more
                return state, constant_epoch(
                    state, number, round, length, fallback=self.fallback, aim=0.0
                )
            if not self._may_start(state, rounds) or people.sample is None:
                return state, constant_epoch(
                    state, number, round, length, fallback=self.fallback, aim=aim
                )
            try:
                state = start(
                    state,
                    rounds,
                    people,
                    hypotheses=self.hypotheses,
                    candidates=self.candidate_rules,
                    arrivals=self._first_arrivals,
                    loss=self.loss,
                )
            except CannotStart as why:  # at the next closing there are more people to try it on
                return replace(state, trouble=str(why)), constant_epoch(
                    state, number, round, length, fallback=self.fallback, aim=aim
                )
        inputs = replace(self._inputs(state, rounds, people, number, round), aim=aim)
        if spent:
            return self._freeze(state, inputs, rounds.schema)
        # again: once intervals have started, all rounds count, not those of the run alone
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
            budget_left=hard_counts.budget_left(self.audit_budget, rounds),
        )

    def _audits(
        self, state: CertifiedState, rounds: Rounds, sample: ClosedSample
    ) -> list[LabelledSample]:
        if not state.guarantee.nominates:
            return []
        return audited_people(rounds, sample, state.groups or (), before=state.first_run)

    def _cheapest(
        self, state: CertifiedState, inputs: PlanningInputs, length: int
    ) -> tuple[CertifiedState, Choice]:
        """Where rules are nominated, Algorithm 1 explores; all others are explored by the price of
        what is not known yet.
        """
        if not self.nominates:
            return state, inputs.by_price(length)
        if due(state, inputs.log, inputs.audits, inputs.round):
            _, groups = state.running
            people = PredictedOutcomes.of(groups, inputs.past, inputs.audits, inputs.regression)
            own = watched(self.hypotheses)
            try:
                chosen = nominees(state, own, inputs.log, people, inputs.regression, self.loss)
            except FAILED as failure:  # what is certified stays; at the next closing once more
                state = replace(state, trouble=str(failure))
                return state, inputs.by_algorithm_1(length)
            labels = float(inputs.log.accepted.sum())
            state = replace(nominate(state, chosen, inputs.round, labels), trouble=None)
            inputs = replace(inputs, state=state)
        return state, inputs.by_algorithm_1(length)

    def _freeze(
        self, state: CertifiedState, inputs: PlanningInputs, schema: Schema | None
    ) -> tuple[CertifiedState, Epoch]:
        """The audit budget is spent: the best certified policy, without audits, for good."""
        policy, gaps, accepted = inputs.without_audits()
        policy = replace(policy, schema=schema)
        state = replace(
            state,
            gaps={**state.gaps, inputs.number: gaps},
            frozen=certificate(state, policy, gaps, None, accepted),
        )
        if accepted is not None:
            state = replace(state, accepted={**state.accepted, inputs.number: accepted})
        audit = policy.weight_of(ACCEPT_ALL)
        return state, Epoch(inputs.number, "frozen", inputs.round, FOREVER, policy, audit=audit)

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
        return as_planned(state, epoch), epoch

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

    # hard counts: the audit budget and the quota

    @property
    def gated(self) -> bool:
        """Whether there is an audit budget or a quota."""
        return self.audit_budget is not None or self.quota is not None

    def remaining(self, rounds: Rounds, now: float | None) -> tuple[float, float]:
        """How many people the audit coin may accept, and how many may be accepted at all, before
        anything more is known.
        """
        return hard_counts.remaining(self.audit_budget, self.quota, rounds, now)

    def gate(
        self, state: CertifiedState, rounds: Rounds, now: float | None
    ) -> tuple[CertifiedState, Epoch | None]:
        """Before a coin is tossed: the epoch that the counts allow; None: the open one."""
        audits, accepts = self.remaining(rounds, now)
        return hard_counts.gate(state, rounds, self.audit_budget, audits, accepts)

    def with_variants(
        self, state: CertifiedState, epoch: Epoch, rounds: Rounds
    ) -> tuple[CertifiedState, tuple[Epoch, ...]]:
        """The planned epoch, and before it in number what takes its place while a count is used
        up.
        """
        return hard_counts.with_variants(state, epoch, rounds)

    def needed_rows(self, state: CertifiedState, rounds: Rounds) -> BoolArray | None:
        """Which rows of the table are still needed, where counts alone are kept; None: all of
        them.
        """
        return None if self.keep == "rows" else needed_rows(state, rounds)

    # for people

    def notes(self, state: CertifiedState, rounds: Rounds) -> tuple[Note, ...]:
        """What is missing, and what has happened."""
        return notes(state, rounds, self.audit_budget)

    def forecast(self, state: CertifiedState, rounds: Rounds) -> tuple[RateForecast, ...]:
        """How far the evidence of each rate is expected to come within the horizon."""
        process = state.process
        if process is None or not process.members or state.frozen is not None:
            return ()
        if not state.spans:
            return ()
        return rejecting_unread(self._forecast, state, rounds)

    def _forecast(self, state: CertifiedState, rounds: Rounds) -> tuple[RateForecast, ...]:
        epoch = rounds.epoch
        people = self._closed_people(state, rounds)
        inputs = self._inputs(state, rounds, people, epoch.number, epoch.first_round)
        return forecasts(inputs)

    def warm_start(self, state: CertifiedState, history: RoundLog) -> CertifiedState:
        """Count audited people who were decided before the first round."""
        return warm_start(state, history)

    def without_unread(
        self, state: CertifiedState, rounds: Rounds, now: float | None
    ) -> tuple[CertifiedState, Epoch | None]:
        """After rules could not be read from a file: their places reject all applicants, nothing is
        claimed about what stood there, and the next policy is chosen at once. Evidence, intervals
        and bookings of all others go on.

        Valid, because the policy changes at a moment that no open outcome decides, to one that is
        certified by the intervals of the rules that are left; each of these holds at all times at
        once. Closing needs nothing of a rule that is gone: with which probability everybody was
        accepted is on record with the rows.
        """
        return rejecting_unread(self._chosen_again, unread_left_out(state), rounds, now)

    def _chosen_again(
        self, state: CertifiedState, rounds: Rounds, now: float | None
    ) -> tuple[CertifiedState, Epoch | None]:
        people = self._closed_people(state, rounds)
        state, epoch = self._choose(state, rounds, people, now)
        return self._opened(state, epoch, rounds, people)

    def check_first(self, rows: FloatArray, group: GroupArray | None) -> None:
        """InvalidInput if a candidate cannot decide about the first people."""
        require_readable(self.candidate_rules, rows, group if self.group_use == "decide" else None)

    def check_people(self, state: CertifiedState, rows: FloatArray, rounds: Rounds) -> None:
        """InvalidInput if a model that is going to judge these people cannot read them: a word
        that its encoder does not know, say. It is asked before they are decided about.

        One person in the midst of an epoch is read by the rules of the policy, before the coin.
        All other rules count as rejecting whom they cannot read (`rejecting_unread`): to ask them
        would make one decision as dear as many.
        """
        if state.process is None or (len(rows) == 1 and not rounds.epoch_is_over):
            return
        for member in state.process.members:
            if getattr(member, "schema", None) is not None:
                member.accepts(rows, None)

    # what follows from the settings

    def __post_init__(self) -> None:
        object.__setattr__(self, "hypotheses", as_class(self.hypotheses))
        if isinstance(self.hypotheses, Estimator):
            require_skops()
        require_prices(self.prices)
        require_group_use(self.group_use)
        require_promise(self.limit)
        require_delta(self.delta)
        require_audits(self.audit_rate, self.audit_budget)
        require_choice("fallback", self.fallback, ("accept", "reject"))
        require_maturity(self.maturity)
        if self.horizon is not None:
            require_horizon(self.horizon)
        require_false_alarm(self.drift_false_alarm)
        require_shares(self.accept_at_most, self.accept_at_least, self.audit_rate)
        require_quota(self.quota)
        require_keep(self.keep, self.quota)
        object.__setattr__(self, "candidates", as_candidates(self.candidates) or None)
        require_fitting_class(self.hypotheses, self.group_use, self.rates)
        as_groups(self.groups)

    @property
    def candidate_rules(self) -> tuple[Hypothesis, ...]:
        """The candidates as hypotheses: rules that are members from the start."""
        return as_candidates(self.candidates)

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The rates whose gaps are kept below the limit."""
        return as_rates(self.rate)

    @cached_property
    def loss(self) -> TransformedLoss:
        """What errors cost."""
        return TransformedLoss.of_prices(self.prices)

    @cached_property
    def nominates(self) -> bool:
        """Whether hypotheses are nominated one by one instead of judged all at once."""
        return must_nominate(self.hypotheses)

    @property
    def _first_arrivals(self) -> int:
        """N_0: the people whose values are the cuts of thresholds and stumps; nominated rules have
        none.
        """
        return 0 if self.nominates else FIRST_ROUNDS

    def guarantee(self, seed: int) -> Guarantee:
        """What is guaranteed."""
        return Guarantee(
            rates=self.rates,
            limit=float(self.limit),
            delta=self.delta,
            nominates=self.nominates,
            group_use=self.group_use,
            maturity=self.maturity,
            drift_false_alarm=self.drift_false_alarm,
            seed=seed,
            groups=as_groups(self.groups),
            accept_at_most=bound_or_none(self.accept_at_most, 1.0),
            accept_at_least=bound_or_none(self.accept_at_least, 0.0),
            budgeted=self.audit_budget is not None,
            has_quota=self.quota is not None,
        )

    def reading(self, schema: Schema) -> "Certified":
        """The same for people with these columns."""
        candidates = reading(self.candidate_rules, schema) or None
        return replace(
            self, hypotheses=class_reading(self.hypotheses, schema), candidates=candidates
        )
