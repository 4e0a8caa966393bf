"""The certified learner: one number that is never exceeded, from the first person on (beyond the
paper).

    1. Accept everybody until every group has a few people in each denominator.
    2. Per epoch: close the cohorts whose labels have matured, narrow the interval of every hypothesis, and choose among the mixtures whose
       gap is below the limit for all values that the intervals still allow: by pooled costs and the price of what is not known yet
       (`pricing`), or, for fitted classes, by Algorithm 1. Constants are exactly fair, so there always are some.
    3. An audit coin that ignores the person keeps every probability of being accepted above a floor.

Regret, not fairness, pays for ignorance: with probability at least 1 - failure_probability, every
policy ever deployed keeps the limit.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.bandit import PracticalSchedule, coordinate_descent, explored
from evenhand.contracts import GroupUse, HypothesisClass, Json
from evenhand.errors import InvalidInput, ProtocolError, StorageError
from evenhand.estimation import EstimatedLoss, RoundLog, doubly_robust
from evenhand.estimation.outcomes import OutcomeRegression, fit_outcomes
from evenhand.fairness.certificate import RULES, Certificate
from evenhand.fairness.delta_ledger import Booking, DeltaLedger
from evenhand.fairness.drift import DriftMonitor
from evenhand.fairness.rates import Rate, as_rates
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners.certified.certificates import issue, refusal
from evenhand.learners.certified.cohorts import (
    ClosedCohort,
    accept_weight,
    from_block,
    from_counts,
    group_codes,
)
from evenhand.learners.certified.deployable import SURE, CertifiedSet, Gain
from evenhand.learners.certified.forecast import (
    HALF,
    LITTLE,
    Prospect,
    RateForecast,
    epoch_length,
    sentences,
)
from evenhand.learners.certified.intervals import AuditProcess
from evenhand.learners.certified.nomination import foretold, nominate
from evenhand.learners.certified.pricing import WEIGHT_CAP, Cells, PooledCosts, Witnesses, explore
from evenhand.learners.certified.run import Life, Past, Promise
from evenhand.learners.certified.settings import require_bound, require_settings, too_rich
from evenhand.learners.codec import Decoder, Encoder, array_from_json, array_to_json
from evenhand.learners.epochs import (
    Epoch,
    EpochLearner,
    as_rounds,
    as_told_groups,
    holds_lock,
    locked,
)
from evenhand.learners.rounds import Block, Lost, Single, merged
from evenhand.learners.settings import as_groups, require_hypotheses, require_number
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.words import Decisions, FloatArray, GroupArray, Prices, as_group

FIRST_ROUNDS = 100
FIRST_FITTED = 1000
FLOOR = 0.3
"""mu_t = FLOOR / sqrt(t): the audit coin."""
FOREVER = 2**62
NO_POLICY = Mixture((ACCEPT_ALL,), (1.0,))
"""In the place of a policy that is on record elsewhere."""


@dataclass(frozen=True, eq=False)
class _Ahead:
    """What was known of the rounds ahead when epoch `number` began, after `start` rounds."""

    number: int
    start: float
    horizon: float
    prospect: Prospect


BoundName = Literal["betting", "nominate", "hoeffding", "kl", "binomial", "dkw"]


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The policy of an epoch, what it was chosen from, and what that took."""

    policy: Mixture
    deployable: CertifiedSet
    floor: float
    steps: int
    oracle_calls: int
    halted: bool


class CertifiedLearner(EpochLearner):
    """|gap| <= allowed_gap at every round with probability at least 1 - failure_probability, and
    then as little regret as it can.

    bound: "betting" (default for finite classes, thresholds and stumps), "nominate" (default for
    fitted classes), or the audit-only "hoeffding", "kl", "binomial", "dkw". audit_rate: "auto", or
    the probability of the audit coin. audit_budget: bad accepts that audits may cost. maturity: how
    long after a decision its label is complete, in the units of `at`. fallback: the constant that
    is deployed when drift suspends the certificate. groups: those of the promise; others count
    outside of it. By default they are those seen in the first rounds, and a group that turns up
    later joins once it has ten people.
    """

    needs_group = False  # people whose group is unknown count outside of the certificate
    _not_stored = EpochLearner._not_stored | {"_coin", "_ahead"}
    _coin: tuple[Mixture, float] | None = None

    def __init__(
        self,
        hypotheses: HypothesisClass,
        rate: Rate | Sequence[Rate],
        allowed_gap: float,
        failure_probability: float,
        *,
        horizon: int | None = None,
        bound: BoundName | None = None,
        prices: Prices | None = None,
        group_use: GroupUse = "certify_only",
        audit_rate: float | Literal["auto"] = "auto",
        audit_budget: float | None = None,
        maturity: float | None = None,
        fallback: Literal["accept", "reject"] = "accept",
        groups: Sequence[Any] | None = None,
        drift_false_alarm: float = 1e-3,
        seed: int | None = None,
    ) -> None:
        settings = {
            name: value for name, value in locals().items() if name not in ("self", "__class__")
        }
        require_hypotheses(hypotheses)
        require_settings(
            allowed_gap,
            failure_probability,
            bound,
            audit_rate,
            audit_budget,
            fallback,
            maturity,
            horizon,
            drift_false_alarm,
        )
        if hypotheses.uses_group and group_use != "decide":
            raise InvalidInput(
                f'{type(hypotheses).__name__} looks at the group, but group_use is "{group_use}".',
                hint='choose group_use="decide".',
            )
        self.hypotheses, self.horizon, self.maturity = hypotheses, horizon, maturity
        self.rates = as_rates(rate)
        self.allowed_gap = self.comparator_gap = float(allowed_gap)
        self.failure_probability, self.drift_false_alarm = failure_probability, drift_false_alarm
        self.audit_rate, self.audit_budget, self.fallback = audit_rate, audit_budget, fallback
        self.fitted = bound == "nominate" or (bound is None and too_rich(hypotheses))
        self.bound: str = bound or ("nominate" if self.fitted else "betting")
        require_bound(self.bound, hypotheses)
        self._now: float | None = None
        self._queue: list[ClosedCohort] = []
        self._ahead: _Ahead | None = None
        super().__init__(
            prices=Prices() if prices is None else prices,
            group_use=group_use,
            seed=seed,
            settings=settings,
        )
        self._audit_coins = stream(self.seed, "audit")
        self._life = Life.first(self._promise(), as_groups(groups))
        self._records: dict[int, tuple[FloatArray, FloatArray]] = {}
        self._frozen_certificate: Certificate | None = None

    @property
    def schedule(self) -> PracticalSchedule:
        """The floor of the audit coin, and the regret that the bandit tolerates."""
        return PracticalSchedule(scale=FLOOR)

    # deciding and observing

    @holds_lock
    def decide(
        self,
        features: ArrayLike,
        group: ArrayLike | None = None,
        *,
        prices: Prices | None = None,
        at: float | None = None,
    ) -> Decisions:
        """Decide about one person per row.

        `at`: the time, needed where labels have a maturity window.
        """
        with self._lock:
            if at is not None:
                self._tick(at)
            elif self.maturity is not None:
                raise InvalidInput(
                    "labels have a maturity window, so decide() needs the time of the decision.",
                    hint="pass at=...",
                )
            return super().decide(features, group, prices=prices)

    def _decide_block(
        self, rows: FloatArray, group: GroupArray | None, prices: Prices | None
    ) -> Any:
        block = super()._decide_block(rows, group, prices)
        if isinstance(block, Single):
            _, _, accepted, probability, _ = block.person
            share = self._audit_weight / probability if probability > 0 else 0.0
            coin = self._audit_coins.random()  # tossed for everybody
            block.audited_at(accepted and coin < share, self._now)
            return block
        chance = np.divide(
            self._audit_weight,
            block.acceptance,
            out=np.zeros(len(rows)),
            where=block.acceptance > 0,
        )
        block.audit = block.accept & (self._audit_coins.random(len(rows)) < chance)
        block.at = self._now
        return block

    def observe(
        self,
        round: ArrayLike,
        label: ArrayLike,
        *,
        group: ArrayLike | None = None,
        at: float | None = None,
    ) -> None:
        """Tell labels of accepted rounds. A `group` told here must not contradict one that is
        known; one that was unknown stays outside the certificate, because only accepted people have
        outcomes: see `tell_group`."""
        self._tick(at)
        rounds = as_rounds(round)
        if group is not None:
            self._book.check_group(rounds, as_told_groups(group, len(rounds)))
        super().observe(rounds, label)

    def tell_group(self, round: ArrayLike, group: ArrayLike) -> None:
        """Groups that arrive after the decision, for accepted and rejected people alike. They count
        in a cohort that is still open.

        Law, which is on record in the certificate with the number of people by group and draw:
        whether and when a group becomes known does not depend on the draw.
        """
        rounds = as_rounds(round)
        self._book.tell_group(rounds, as_told_groups(group, len(rounds)))

    def _lose(self, lost: Lost, *, erased: bool) -> None:
        super()._lose(lost, erased=erased)
        if erased and lost.closed:
            self._life.tally.forget(lost.features, lost.group, lost.label)

    def _tick(self, at: float | None) -> None:
        if at is None:
            return
        require_number("at", at, lambda _: True, "the time is a finite number")
        if self._now is not None and at < self._now:
            raise ProtocolError(
                f"the time is {at}, but it has been {self._now} before; time does not run backwards."
            )
        self._now = float(at)

    @property
    def _audit_weight(self) -> float:
        """The probability of the audit coin: the weight of accept-all, which ignores the person;
        remembered as long as the policy lasts.
        """
        policy = self.policy
        if self._coin is None or self._coin[0] is not policy:
            self._coin = (policy, accept_weight(policy))
        return self._coin[1]

    # closing cohorts

    def _take(self, log: RoundLog) -> None:
        self._queue.append(
            from_counts(self.epoch.number, log, self._audit_weight, self._audit_coins, self._round)
        )

    def _collect(self) -> bool:
        """Close what has matured, in the order of arrival, and look at it once; whether there was
        anything.
        """
        closed = self._queue + [
            from_block(block) for block in self._book.close(self._now, self.maturity)
        ]
        self._queue = []
        self._look_at(sorted(closed, key=lambda cohort: cohort.first))
        return bool(closed)

    def _look_at(self, closed: Sequence[ClosedCohort]) -> None:
        self._watch_late_labels()
        for number, cohort in enumerate(closed):
            policy = self._epochs[cohort.epoch - 1].policy
            if number > 0:  # the first one was prepared for when the last closing ended
                self._life.prepare({cohort.epoch: policy}, self._resolved_or_none())
            self._life.look(cohort, policy)
            self._remember(cohort)
        if self._life.alarms:
            self._suspend()
        self._life.join_groups(self._round)

    def _remember(self, cohort: ClosedCohort) -> None:
        """What the loss needs of a cohort."""
        shown = cohort.log if self.group_use == "decide" else cohort.log.without_group()
        if shown.rounds > 0:
            self._history.add([(cohort.epoch, shown.where(shown.acceptance > 0))])

    def _watch_late_labels(self) -> None:
        """Without a maturity window: show the drift tests the cohorts that have all their labels by
        now, in the order of arrival.
        """
        awaiting = self._life.awaiting
        while awaiting:
            epoch, first, stop = awaiting[0]
            if not any(first <= block.first < stop for block in self._book.blocks):
                return  # its rounds were decided elsewhere and closed without their labels
            cohort = from_block(self._book.between(first, stop))
            if not cohort.complete:
                return
            self._life.watch_labels(cohort, self._epochs[epoch - 1].policy)
            awaiting.pop(0)

    def replay(
        self,
        played: Sequence[Block],
        rounds: int,
        *,
        at: float | None = None,
        published: Mixture | None = None,
    ) -> Epoch:
        """Close the epoch with rounds that its policies decided elsewhere, and open the next one: a
        service's ledger drew and waited.

        played: *all* rounds whose cohorts have closed since the last call, in the order of arrival
        and numbered without gaps: accepted and rejected, overruled and erased alike. rounds: how
        many have been decided in all, waiting ones included. published: what was deployed after
        this closing, where that is on record.
        """
        if rounds < self._round:
            raise ProtocolError(
                f"{rounds} rounds were decided, but it has been {self._round} before."
            )
        self._tick(at)
        self._columns = self._columns or next((block.features.shape[1] for block in played), None)
        self._round = rounds
        self._look_at([from_block(block) for block in played])
        planned = self._choose(self.epoch.number + 1, rounds)
        opened = planned if published is None else replace(planned, policy=published)
        self._life.prepare(self._policies_ahead(opened), self._resolved_or_none())
        self._epochs.append(opened)
        return self.epoch

    def _suspend(self) -> None:
        """An assumption is broken: nothing that was learned before counts any more."""
        self._history.logs = []
        self._frozen_certificate = None
        self._book.forget_learned()
        self._life = self._life.next(self._round)

    # planning

    def _choose(self, number: int, round: int) -> Epoch:
        if round == 0:
            return self._constant(number, round, self._first_rounds)
        if self._life.frozen:
            return replace(self.epoch, number=number, first_round=round)
        if not self._life.started:
            if not self._life.ready:
                return self._constant(number, round, epoch_length(self._life.tally.people))
            self._life.start(self.hypotheses, self._columns or 1, round)
        if self._budget_left <= 0:
            return self._frozen(number, round)
        return self._deploy(number, round)

    def _plan(self, number: int, round: int) -> Epoch:
        epoch = self._choose(number, round)
        if round > 0:
            self._life.prepare(self._policies_ahead(epoch), self._resolved_or_none())
        return epoch

    def _policies_ahead(self, opened: Epoch) -> dict[int, Mixture]:
        """The policies of the epochs that have rounds to be looked at: those that wait for labels,
        and the one that is opened.
        """
        ends = [*(epoch.first_round for epoch in self._epochs[1:]), opened.first_round]
        waiting = [
            epoch
            for epoch, end in zip(self._epochs, ends, strict=True)
            if end > self._life.next_round
        ]
        return {epoch.number: epoch.policy for epoch in (*waiting, opened)}

    @property
    def _first_rounds(self) -> int:
        """Everybody is accepted at first; a class that is fitted needs more labels than one that is
        judged as it is.
        """
        if not self.fitted:
            return FIRST_ROUNDS
        return (
            FIRST_FITTED
            if self.horizon is None
            else int(np.clip(self.horizon // 100, FIRST_ROUNDS, FIRST_FITTED))
        )

    def _constant(self, number: int, round: int, rounds: int) -> Epoch:
        """Before anything is certified: accept everybody; after a suspension: the fallback,
        audited.
        """
        floor = 1.0
        if round > 0 and self._life.number > 1 and self.fallback == "reject":
            floor = max(0.05, self.schedule.exploration_floor(round))
        everybody = Mixture((ACCEPT_ALL,), (1.0,), self.group_use)
        coin = Mixture((ACCEPT_ALL, REJECT_ALL), (floor, 1.0 - floor), self.group_use)
        return Epoch(
            number,
            "explore",
            round,
            rounds,
            everybody if floor == 1.0 else coin,
            exploration_floor=floor,
        )

    def _deploy(self, number: int, round: int) -> Epoch:
        """One epoch of a deployable mixture."""
        log, length = self._resolved(), self._length(round)
        chosen = self._chosen(log, number, round, length)
        self._record(number, chosen.policy, chosen.deployable)
        took = chosen.steps, chosen.oracle_calls, chosen.halted
        return Epoch(number, "certified", round, length, chosen.policy, chosen.floor, *took)

    def _chosen(self, log: RoundLog, number: int, round: int, length: int) -> "_Chosen":
        """Fitted classes are explored by Algorithm 1, all others by the price of what is not known
        yet.
        """
        return (self._by_descent if self.fitted else self._by_price)(log, number, round, length)

    def _by_price(self, log: RoundLog, number: int, round: int, length: int) -> "_Chosen":
        """The certified mixture with the least J (`pricing`), and the audit coin beside it."""
        life, floor = self._life, self._floor(log.rounds)
        cells, costs, deployable = self._pooled(log)
        past, groups, process = life.tally.past, life.groups or (), life.process
        codes = group_codes(past.group, groups)
        inside = codes >= 0
        chance = fit_outcomes(log).negative_probability(past.features[inside])
        found = explore(
            deployable,
            costs,
            Witnesses(codes[inside], past.weight[inside], chance, cells.of_past[inside]),
            life.promise.pairs(groups),
            floor=floor,
            rounds=log.rounds,
            length=float(length),
            ahead=max(self._rounds_ahead(round) - length, 0.0),
            most_audits=self._most_audits(floor, length),
            more_audits=self.audit_rate == "auto",
            audited=process.audits / log.rounds if isinstance(process, AuditProcess) else None,
            generator=stream(self.seed, "pricing", number),
        )
        weights = (1.0 - floor) * found.weights
        weights[0] += floor
        policy = deployable.mixture(weights)
        return _Chosen(policy, deployable, floor, found.steps, found.oracle_calls, found.halted)

    def _pooled(self, log: RoundLog) -> tuple[Cells, PooledCosts, CertifiedSet]:
        """The cells of the people seen so far, what accepting them costs, and what may be deployed
        on them.
        """
        life, past = self._life, self._life.tally.past
        cells = Cells.of(
            log, past.features, past.group if life.promise.group_decides else None, life.table
        )
        members, lo, hi = life.certified()
        accepts = cells.accepts.astype(np.float64)
        deployable = CertifiedSet.of(members, accepts, lo, hi, self.allowed_gap, self.group_use)
        return cells, PooledCosts.of(log, cells, fit_outcomes(log), self.loss), deployable

    def _by_descent(self, log: RoundLog, number: int, round: int, length: int) -> "_Chosen":
        """Nominate, and let Algorithm 1 choose among deployable mixtures."""
        regression = fit_outcomes(log)
        nominate(self._life, self.hypotheses, log, regression, self.loss, round)
        loss, variances = self._estimated_loss(log, regression)
        deployable = self._deployable(loss)
        floor = self._floor(loss.rounds)
        tolerated = (
            self.schedule.exploration_floor(max(1, int(loss.rounds))) * self.schedule.regret_scale
        )
        found = coordinate_descent(
            loss, deployable, exploration_floor=floor, regret_scale=tolerated / floor, sides=1
        )  # psi mu = .3 / sqrt(t), also where the user has fixed mu
        policy = found.weights.smoothed(floor, explored(1))
        policy = self._with_audits(
            policy, deployable, loss, variances, regression, floor, number, round, length
        )
        report = found.report
        return _Chosen(
            policy, deployable, floor, report.iterations, report.oracle_calls, report.halted
        )

    @staticmethod
    def _length(round: int) -> int:
        """Rounds of the epoch that begins after `round` rounds."""
        return epoch_length(round)

    def _resolved(self) -> RoundLog:
        """Everything resolved as one log, which the history remembers until something is added."""
        log = self._history.of(with_group=self.group_use == "decide")
        assert log is not None  # cohorts have been closed
        return log

    def _resolved_or_none(self) -> RoundLog | None:
        return self._resolved() if self._history.logs else None

    def _estimated_loss(
        self, log: RoundLog, regression: OutcomeRegression
    ) -> tuple[EstimatedLoss, FloatArray]:
        """The loss of fitted classes and the variances of its acceptance costs: doubly robust with
        capped weights.
        """
        return doubly_robust(log, regression, self.loss, cap=WEIGHT_CAP)

    def _estimated(
        self, log: RoundLog, regression: OutcomeRegression
    ) -> tuple[CertifiedSet, FloatArray, FloatArray]:
        """What may be deployed, and the cost of accepting all people of each of its columns, per
        person, with its variance.
        """
        if not self.fitted:
            _, costs, deployable = self._pooled(log)
            return deployable, costs.cost, costs.variance
        loss, variances = self._estimated_loss(log, regression)
        return (
            self._deployable(loss),
            loss.acceptance_cost / loss.rounds,
            variances / loss.rounds**2,
        )

    def _deployable(self, loss: EstimatedLoss) -> CertifiedSet:
        members, lo, hi = self._life.certified()
        accepts = self._life.table(loss.features, loss.group).astype(np.float64)
        return CertifiedSet.of(members, accepts, lo, hi, self.allowed_gap, self.group_use)

    def _floor(self, rounds: float) -> float:
        """mu: the weight of accept-all that every policy has."""
        if self.audit_rate != "auto":
            return float(self.audit_rate)
        return self.schedule.exploration_floor(max(1, int(rounds)))

    def _rounds_ahead(self, round: int) -> float:
        """Rounds ahead; without a horizon nine times as many as so far, and some."""
        return max(
            float((self.horizon - round) if self.horizon is not None else 9 * round + 20_000), 1.0
        )

    def _most_audits(self, floor: float, length: int) -> float:
        """The largest weight of accept-all in Q for which an epoch's bad accepts stay within the
        budget.
        """
        bad = length * max(self._life.tally.negative_share, 1e-3)
        return float(np.clip((self._budget_left / bad - floor) / max(1.0 - floor, 1e-12), 0.0, 1.0))

    def _with_audits(
        self,
        policy: Mixture,
        deployable: CertifiedSet,
        loss: EstimatedLoss,
        variances: FloatArray,
        regression: OutcomeRegression,
        floor: float,
        number: int,
        round: int,
        length: int,
    ) -> Mixture:
        """Move uncertified mass between the constants, within the budget of bad accepts.

        Where accepting is a sacrifice, accept-all has at least the share that minimises the
        expected total cost. What the bandit explores beyond it stays if half of the learned weight
        is expected in time, because labels also make better rules; else it is stopped.
        """
        cost, variance = loss.acceptance_cost / loss.rounds, variances / loss.rounds**2
        weights = self._cautious(deployable.weights_of(policy), deployable, cost, variance)
        if self.audit_rate != "auto":
            return deployable.mixture(weights)
        free = weights[0] - floor + weights[1]
        share = weights[0] - floor
        if (
            loss.acceptance_cost.sum() > 0 and free > LITTLE
        ):  # accepting is a sacrifice: will it pay?
            ahead = self._foreseen(number, round, deployable, cost, variance, regression)
            if ahead is not None:
                best = ahead.prospect.best(ahead.start, ahead.horizon)
                in_time = np.isfinite(best.reaches(HALF * ahead.prospect.full))
                share = max(share, best.share * free) if in_time else best.share * free
        share = min(
            share,
            max(
                self._budget_left / (length * max(self._life.tally.negative_share, 1e-3)) - floor,
                0.0,
            ),
            free,
        )
        weights[0], weights[1] = floor + share, free - share
        return deployable.mixture(weights)

    @staticmethod
    def _cautious(
        weights: FloatArray, deployable: CertifiedSet, cost: FloatArray, variance: FloatArray
    ) -> FloatArray:
        """Learned weight whose gain over the better constant may be chance goes to that constant."""
        learned = np.concatenate([np.zeros(2), weights[2:]])
        total = float(learned.sum())
        if total == 0.0:
            return weights
        gain = Gain.of(learned @ deployable.accepts / total, cost, variance)
        kept = weights - (1.0 - gain.trusted) * learned
        kept[gain.constant] += (1.0 - gain.trusted) * total
        return kept

    def _foreseen(
        self,
        number: int,
        round: int,
        deployable: CertifiedSet,
        cost: FloatArray,
        variance: FloatArray,
        regression: OutcomeRegression,
    ) -> _Ahead | None:
        """What the rounds after `round`, where epoch `number` begins, are expected to bring.

        None if no past people are known. It is remembered for the report. cost, variance: of
        accepting all people of each column of `deployable`, per person.
        """
        self._ahead = None
        if not len(self._life.tally.past.weight):
            return None
        prospect = self._prospect(deployable, cost, variance, regression)
        self._ahead = _Ahead(number, float(round), round + self._rounds_ahead(round), prospect)
        return self._ahead

    def _prospect(
        self,
        deployable: CertifiedSet,
        cost: FloatArray,
        variance: FloatArray,
        regression: OutcomeRegression,
    ) -> Prospect:
        """Who will come, and what is known of the members: all from closed cohorts.

        A member is sure to save what it is estimated to save, less SURE standard errors.
        """
        life, (process, groups) = self._life, self._life.running
        others = len(deployable.members) - 2 - len(process.members)
        features, group, people, negative = foretold(life, regression)
        shown = group if self.group_use == "decide" else None
        constants = np.repeat([[1.0], [0.0]], len(people), axis=1)

        costs, differs = deployable.accepts @ cost, deployable.accepts @ variance
        constant = int(np.argmin(costs[:2]))
        error = np.sqrt(np.maximum(variance.sum() - differs if constant == 0 else differs, 0.0))
        saved = np.maximum(costs[constant] - costs[2:] - SURE * error[2:], 0.0)

        rounds, played, later = np.r_[0.0, 0.0, process.rounds, np.zeros(others)], [], 0.0
        for epoch, first, stop in reversed(life.closed):
            saw, policy = rounds > later, self._epochs[epoch - 1].policy
            if saw.any():
                played.append(
                    (
                        float(stop - first),
                        policy.acceptance(features, shown),
                        accept_weight(policy),
                        saw,
                    )
                )
            later += stop - first

        def floor(t: float) -> float:
            return (
                self.schedule.exploration_floor(int(t))
                if self.audit_rate == "auto"
                else float(self.audit_rate)
            )

        return Prospect(
            weight=people / people.sum(),
            group=group_codes(group, groups),
            negative=negative,
            accepts=np.concatenate([constants, life.table(features, shown)]),
            cost=costs,
            sure_cost=np.r_[costs[:2], costs[constant] - saved],
            rates=self.rates,
            groups=len(groups),
            limit=self.allowed_gap,
            lower=deployable.lo,
            upper=deployable.hi,
            threshold=np.pad(process.thresholds(), ((0, 0), (2, others))),
            floor=floor,
            audits_only=self.bound not in ("betting", "nominate"),
            played=tuple(played),
        ).narrowed()

    @property
    @locked
    def forecast(self) -> tuple[RateForecast, ...]:
        """How far the evidence of each rate is expected to come within the horizon.

        Without a horizon: within ten times the rounds so far and 20,000. Empty before a hypothesis
        has an interval, once the policy is frozen, and where no rule is cheaper than a constant.
        A forecast is no part of a certificate.
        """
        life, ahead, number = self._life, self._ahead, self.epoch.number
        if (
            life.process is None
            or not life.process.members
            or life.frozen
            or not self._history.logs
        ):
            return ()
        if ahead is None or ahead.number != number:
            log = self._resolved()
            regression = fit_outcomes(log)
            known = self._estimated(log, regression)
            ahead = self._foreseen(number, self.epoch.first_round, *known, regression)
        if ahead is None:
            return ()
        prospect, span = ahead.prospect, (ahead.start, ahead.horizon)
        course = (
            prospect.course(*span) if self.audit_rate == "auto" else prospect.trajectory(0.0, *span)
        )
        return prospect.forecasts(course, ahead.horizon)

    def _outlook(self) -> tuple[str, ...]:
        return sentences(self.forecast)

    @property
    def _budget_left(self) -> float:
        return (
            float("inf")
            if self.audit_budget is None
            else self.audit_budget - self._life.tally.audited_negatives
        )

    def _frozen(self, number: int, round: int) -> Epoch:
        """The budget of bad accepts is spent: the best certified policy, without audits, for good."""
        log = self._resolved()
        deployable, cost, variance = self._estimated(log, fit_outcomes(log))
        cheapest = deployable.weights_of(deployable.cheapest(cost).policy)
        policy = deployable.mixture(self._cautious(cheapest, deployable, cost, variance))
        self._record(number, policy, deployable)
        ends = self._records[number]
        self._frozen_certificate = issue(self._life, policy, ends, FOREVER)
        self._life.frozen = True
        return Epoch(number, "frozen", round, FOREVER, policy)

    def _record(self, number: int, policy: Mixture, deployable: CertifiedSet) -> None:
        weights = deployable.weights_of(policy)
        self._records[number] = (deployable.lo @ weights, deployable.hi @ weights)

    # looking

    @property
    def certificate(self) -> Certificate:
        """What is claimed about the policy that is deployed now.

        That of a frozen policy never changes; only a suspension ends it.
        """
        if self._frozen_certificate is not None:
            return self._frozen_certificate
        return issue(
            self._life,
            self.policy,
            self._records.get(self.epoch.number),
            self.epoch.first_round + self.epoch.rounds,
        )

    def certify(self, policy: Mixture) -> Certificate:
        """A certificate for any mixture of the learner's hypotheses; CannotCertify says what is
        missing.
        """
        ends = self._ends(policy)
        if max(ends[1].max(initial=0.0), -ends[0].min(initial=0.0)) > self.allowed_gap:
            raise refusal(self._life, ends)
        return issue(self._life, policy, ends, self.epoch.first_round + self.epoch.rounds)

    def _ends(self, policy: Mixture) -> tuple[FloatArray, FloatArray]:
        """Between which values the gaps of a policy lie; nothing is known of a hypothesis that has
        no interval.
        """
        members, lo, hi = (
            self._life.certified()
            if self._life.started
            else ((), np.zeros((1, 0)), np.zeros((1, 0)))
        )
        low, high = np.zeros(len(lo)), np.zeros(len(hi))
        for hypothesis, weight in zip(policy.hypotheses, policy.weights, strict=True):
            if hypothesis not in (ACCEPT_ALL, REJECT_ALL):
                known = hypothesis in members
                low += weight * (lo[:, members.index(hypothesis)] if known else -1.0)
                high += weight * (hi[:, members.index(hypothesis)] if known else 1.0)
        return low, high

    @property
    def trail(self) -> tuple[tuple[Epoch, FloatArray, FloatArray], ...]:
        """(epoch, low, high) for each epoch: between which values the gaps of its policy were
        certified to lie.
        """
        zero = np.zeros(1)
        return tuple(
            (epoch, *self._records.get(epoch.number, (zero, zero))) for epoch in self._epochs
        )

    @property
    def learned_weight(self) -> float:
        """How much of the deployed policy is not a constant."""
        return sum(
            w
            for h, w in zip(self.policy.hypotheses, self.policy.weights, strict=True)
            if h not in (ACCEPT_ALL, REJECT_ALL)
        )

    @property
    def bookings(self) -> tuple[Booking, ...]:
        """What has been booked of the failure probability, process by process."""
        return self._life.ledger.entries

    @property
    def drift(self) -> DriftMonitor | None:
        """The streams that are watched; None before anything is certified."""
        return self._life.monitor

    def _notes(self) -> list[str]:
        return self._life.notes + (
            ["the audit budget is spent: the policy is frozen."] if self._budget_left <= 0 else []
        )

    def warm_start(self, history: RoundLog, *, audited: bool) -> None:
        """Rounds played before, with their true acceptance probabilities: they enter the loss.

        If they were `audited`, that is, gathered by a coin that ignored the person, they also count
        towards the start: which groups there are, and whether each has its first people, so that
        learning may begin at once. The intervals of the certificate look at people whom this
        learner decided, and at nobody else.
        """
        if self._round > 0:
            raise ProtocolError(
                f"{self._round} rounds have been played; a warm start comes before the first."
            )
        if self.group_use == "decide":
            as_group(
                np.full(len(history), None) if history.group is None else history.group,
                len(history),
            )
        self._columns = history.features.shape[1]
        if audited:
            if (history.acceptance != history.acceptance[0]).any():
                raise InvalidInput(
                    "the history's acceptance probability differs between people, so it was not gathered by an audit rule.",
                    hint="pass audited=False: it then serves the loss only.",
                )
            cohort = from_counts(0, history, float(history.acceptance[0]), self._audit_coins)
            self._life.tally.add(
                cohort, None, billed=False, judged=False, keep_audits=self._life.promise.nominates
            )
        self._history.logs.append(
            (0, history if self.group_use == "decide" else history.without_group())
        )
        self._news = True  # the first epoch was planned without it

    def _promise(self) -> Promise:
        return Promise(
            self.rates,
            self.allowed_gap,
            self.failure_probability,
            self.bound,
            self.group_use,
            self.maturity,
            self.drift_false_alarm,
            self.seed,
        )

    # what stays when people are erased

    def checkpoint(self) -> Json:
        """Everything that is not about single people, as plain JSON: sums, intervals, bookings,
        drift counts, rules, and what is fixed for the cohorts to come. `resume` takes it up with
        the people who are left.

        Sums of a closed cohort are no personal data: who is erased later changes none of them, and
        no part of delta is spent again.
        """
        tally = replace(self._life.tally, past=Past(), audits=[])
        shells = [replace(epoch, policy=NO_POLICY) for epoch in self._epochs]
        state = {
            name: getattr(self, name)
            for name in (
                "_now",
                "_round",
                "_columns",
                "_priced",
                "_coins",
                "_audit_coins",
                "_records",
            )
        } | {
            "_life": replace(self._life, tally=tally),
            "_epochs": shells,
            "_frozen_certificate": self._frozen_certificate,
        }
        encoder = Encoder(self.hypotheses)
        encoded = encoder.encode(state)
        return {
            "rules": RULES,
            "state": encoded,
            "arrays": {n: array_to_json(a) for n, a in encoder.arrays.items()},
        }

    def resume(
        self, checkpoint: Json, policies: Sequence[Mixture], closed: Sequence[Block]
    ) -> None:
        """Take up a checkpoint that a learner with the same settings made: this one then continues
        bit for bit.

        policies: that of every epoch, in order. closed: the rounds of the cohorts that had closed
        by then, with what was known of them at their closing; people who were erased since are
        marked so, and only the loss and the forecasts miss them.
        """
        if checkpoint.get("rules") != RULES:
            raise StorageError(
                f"the checkpoint was written under rules {checkpoint.get('rules')!r}; this evenhand continues rules {RULES}.",
                hint="let a new life succeed it: succeed(...).",
            )
        arrays = {name: array_from_json(data) for name, data in checkpoint["arrays"].items()}
        state = Decoder(arrays, self.hypotheses).decode(checkpoint["state"])
        if len(state["_epochs"]) != len(policies):
            raise StorageError(
                f"the checkpoint knows {len(state['_epochs'])} epochs, but {len(policies)} policies are given."
            )
        if state["_life"].promise != self._promise():
            raise StorageError(
                "the checkpoint was made under another promise than this learner's settings."
            )
        self._restore(state)
        self._epochs = [
            replace(e, policy=p) for e, p in zip(state["_epochs"], policies, strict=True)
        ]
        self._history.logs, self._queue, self._ahead = [], [], None
        for epoch, first, stop in self._life.closed:
            run = [block for block in closed if first <= block.first < stop]
            cohort = from_block(merged([replace(block, epoch=epoch) for block in run]))
            inside = cohort.codes(self._life.groups or self._life.tally.groups) >= 0
            self._life.tally.remember(cohort, inside, keep_audits=self._life.promise.nominates)
            self._remember(cohort)

    def succeed(
        self,
        policies: Sequence[Mixture],
        bookings: Sequence[Booking],
        round: int,
        reason: str,
        *,
        lives: int = 1,
    ) -> None:
        """Take over a record that was written under older rules: what was booked stays booked, and
        a new life starts from the reserve.

        policies: those of the epochs so far, in order; round: people decided by them; lives: at
        least so many began. Nothing of what they saw is looked at again: the new life looks at
        people decided from here on, and deploys constants until it knows enough.
        """
        if self._round > 0:
            raise ProtocolError(
                f"{self._round} rounds have been played; only a fresh learner can succeed another."
            )
        booked = [
            int(found[1])
            for entry in bookings
            if (found := re.match(r"life (\d+):", entry.process))
        ]
        ledger = DeltaLedger(self.failure_probability, tuple(bookings))
        wanted = self._life.wanted
        self._life = Life(
            1 + max([lives, *booked]),
            self._promise(),
            ledger,
            round,
            wanted=wanted,
            ended=(reason,),
            next_round=round,
        )
        self._round = round
        self._epochs = [
            Epoch(n, "older rules", 0, round, policy) for n, policy in enumerate(policies, start=1)
        ]
        self._epochs.append(self._choose(len(policies) + 1, round))

    def _state(self) -> dict[str, Any]:
        names = ("_now", "_queue", "_audit_coins", "_life", "_records", "_frozen_certificate")
        return super()._state() | {name: getattr(self, name) for name in names}
