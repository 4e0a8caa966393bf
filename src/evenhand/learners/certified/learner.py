"""The certified learner: one number that is never exceeded, from the first person on (beyond the
paper).

    1. Accept everybody until every group has a few people in each denominator.
    2. Per epoch: close the cohorts whose labels have matured, narrow the interval of every
       hypothesis, and choose among the mixtures whose gap is below the limit for all values that
       the intervals still allow (`deploy`). Constants are exactly fair, so there always are some.
    3. An audit coin that ignores the person keeps every probability of being accepted above a
       floor.

Regret, not fairness, pays for ignorance: with probability at least 1 - failure_probability, every
policy ever deployed keeps the limit.
"""

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.bandit import PracticalSchedule
from evenhand.contracts import FixedCountBound, GroupUse, Hypothesis, HypothesisClass, Json
from evenhand.errors import InvalidInput, ProtocolError, StorageError
from evenhand.estimation import RoundLog
from evenhand.fairness.certificate import RULES, Certificate
from evenhand.fairness.delta_ledger import Booking, DeltaLedger
from evenhand.fairness.drift import DriftMonitor
from evenhand.fairness.rates import RateLike, as_rates
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.estimator import Estimator, as_class
from evenhand.hypotheses.models import require_skops
from evenhand.learners.certified.deploy import SCHEDULE, Ahead, Chosen, Situation
from evenhand.learners.certified.evidence import (
    ClosedCohort,
    PastPeople,
    from_block,
    from_counts,
    group_codes,
)
from evenhand.learners.certified.forecast import RateForecast, epoch_length, sentences
from evenhand.learners.certified.intervals import AUDIT_BOUNDS
from evenhand.learners.certified.nomination import due, nominees
from evenhand.learners.certified.run import MOST_LOG_SIZE, CertificationRun, GapLimits, Guarantee
from evenhand.learners.epochs import (
    Epoch,
    EpochLearner,
    LearnerState,
    as_rounds,
    as_told_groups,
    holds_lock,
    locked,
)
from evenhand.learners.rounds import Block, merged
from evenhand.learners.settings import (
    as_groups,
    made_with,
    require_choice,
    require_delta,
    require_gap,
    require_horizon,
    require_number,
)
from evenhand.learners.storage import Decoder, Encoder, array_from_json, array_to_json, stored_as
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.shown import BAND, INK, LIMIT, draw_limit
from evenhand.words import BoolArray, Decisions, FloatArray, Group, Prices, as_group

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BoundName = Literal["betting", "nominate", "hoeffding", "kl", "binomial", "dkw"]
FIRST_ROUNDS = 100
FIRST_FITTED = 1000
FOREVER = 2**62
NO_POLICY = Mixture((ACCEPT_ALL,), (1.0,))
"""In the place of a policy that is on record elsewhere."""


@dataclass(frozen=True, eq=False)
class CertifiedSettings:
    """The arguments of a `CertifiedLearner`, and what must be true of them."""

    hypotheses: HypothesisClass
    rate: RateLike
    allowed_gap: float
    failure_probability: float
    _: KW_ONLY
    horizon: int | None = None
    bound: BoundName | FixedCountBound | None = None
    prices: Prices | None = None
    group_use: GroupUse = "certify_only"
    audit_rate: float | Literal["auto"] = "auto"
    audit_budget: float | None = None
    maturity: float | None = None
    fallback: Literal["accept", "reject"] = "accept"
    groups: Sequence[Group] | None = None
    drift_false_alarm: float = 1e-3
    seed: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "hypotheses", as_class(self.hypotheses))
        if isinstance(self.hypotheses, Estimator):
            require_skops()
        require_gap(self.allowed_gap)
        require_delta(self.failure_probability)
        if isinstance(self.bound, FixedCountBound):
            if self.bound.name in ("betting", "nominate", *AUDIT_BOUNDS):
                raise InvalidInput(
                    f"the bound of your own is called {self.bound.name!r}, as one of evenhand's "
                    "is.",
                    hint="give it another name, by which certificates tell them apart.",
                )
        elif self.bound is not None:
            require_choice("bound", self.bound, ("betting", "nominate", *AUDIT_BOUNDS))
        if not (isinstance(self.audit_rate, str) and self.audit_rate == "auto"):
            law = 'it is "auto" or a probability in (0, 1]'
            require_number("audit_rate", self.audit_rate, lambda rate: 0 < rate <= 1, law)
        if self.audit_budget is not None:
            law = "it is the number of bad accepts that audits may cost, finite and at least 0"
            none = "None sets no budget."
            require_number("audit_budget", self.audit_budget, lambda many: many >= 0, law, none)
        require_choice("fallback", self.fallback, ("accept", "reject"))
        if self.maturity is not None:
            law = "a window is a positive, finite span of time"
            hint = "None says that labels come before the next decision."
            require_number("maturity", self.maturity, lambda window: window > 0, law, hint)
        if self.horizon is not None:
            require_horizon(self.horizon)
        law = "the probability of suspending without a reason lies strictly between 0 and 1"
        hint, alarm = "0.001 is the default.", self.drift_false_alarm
        require_number("drift_false_alarm", alarm, lambda share: 0 < share < 1, law, hint)
        self._require_fitting_class()

    def _require_fitting_class(self) -> None:
        hypotheses, name = self.hypotheses, type(self.hypotheses).__name__
        if hypotheses.uses_group and self.group_use != "decide":
            raise InvalidInput(
                f'{name} looks at the group, but group_use is "{self.group_use}".',
                hint='choose group_use="decide".',
            )
        as_rates(self.rate)
        if self.bound not in (None, "nominate") and self._too_rich:
            raise InvalidInput(
                f"{name} is too rich for a union over its members, which the bound "
                f"{self.bound_name!r} pays.",
                hint='use bound="nominate".',
            )
        # thresholds and stumps are infinitely many, but a grid of cuts from the first rounds is a
        # finite class for all later ones
        if self.bound == "dkw" and not (hypotheses.exact and not isfinite(hypotheses.log_size)):
            raise InvalidInput(
                f"the bound 'dkw' covers thresholds on a column, and {name} may hold any rules.",
                hint='use bound="betting", or a class of thresholds.',
            )

    @property
    def _too_rich(self) -> bool:
        """Whether no union over the class can be paid: it cannot be enumerated, or is too large."""
        size = self.hypotheses.log_size
        return not self.hypotheses.exact or (isfinite(size) and size > MOST_LOG_SIZE)

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

    def guarantee(self, seed: int) -> Guarantee:
        """What is guaranteed."""
        return Guarantee(
            rates=as_rates(self.rate),
            limit=float(self.allowed_gap),
            failure_probability=self.failure_probability,
            bound=self.bound_name,
            group_use=self.group_use,
            maturity=self.maturity,
            drift_false_alarm=self.drift_false_alarm,
            seed=seed,
        )


@dataclass(eq=False, kw_only=True)
class CertifiedState(LearnerState):
    """What a `CertifiedLearner` knows.

    now: the time, where it is told. queue: closed cohorts that were played in counts and wait to be
    looked at. audit_coins: those of the audits. run: the certification run, with its evidence and
    its drift tests. certified_gaps: between which values the gaps of each epoch's policy were
    certified to lie. frozen_certificate: that of a policy which does not change any more.
    """

    now: float | None = None
    queue: list[ClosedCohort] = field(default_factory=list)
    audit_coins: np.random.Generator
    run: CertificationRun = field(metadata=stored_as("_life"))
    certified_gaps: dict[int, GapLimits] = field(
        metadata=stored_as("_records"), default_factory=dict
    )
    frozen_certificate: Certificate | None = None


class CertifiedLearner(EpochLearner):
    """Keeps |gap| <= allowed_gap at every round, and then has as little regret as it can.

    Parameters
    ----------
    hypotheses : HypothesisClass or classifier
        The rules that may be mixed; a scikit-learn classifier or pipeline becomes an `Estimator`.
    rate : Rate, str, or a sequence of them
        Whose gap is kept below the limit.
    allowed_gap : float
        The gap that is never exceeded, with probability at least 1 - failure_probability over the
        whole life of the learner.
    failure_probability : float
        delta.
    horizon : int, optional
        How many people will come; it is only used to weigh exploration.
    bound : str or FixedCountBound, optional
        "betting" (default for finite classes, thresholds and stumps), "nominate" (default for
        fitted classes), the audit-only "hoeffding", "kl", "binomial", "dkw", or a bound of your own
        (`evenhand.contracts.FixedCountBound`).
    prices : Prices, optional
        What errors cost.
    group_use : {"certify_only", "decide"}
        Whether the group may influence a decision.
    audit_rate : float or "auto"
        The probability of the audit coin.
    audit_budget : float, optional
        Bad accepts that audits may cost.
    maturity : float, optional
        How long after a decision its label is complete, in the units of `at`.
    fallback : {"accept", "reject"}
        The constant that is deployed when drift suspends the certificate.
    groups : sequence, optional
        The groups of the guarantee; others count outside of it. By default they are those seen in
        the first rounds, and a group that turns up later joins once it has ten people.
    drift_false_alarm : float
        The probability of suspending without a reason.
    seed : int, optional
        Of all coins.

    Raises
    ------
    InvalidInput
        If a setting makes no sense, or the bound does not cover the class.

    Examples
    --------
    >>> from evenhand import FalsePositiveRate, ScoreThresholds
    >>> learner = CertifiedLearner(ScoreThresholds(), FalsePositiveRate(), 0.1, 0.05, seed=1)
    >>> decisions = learner.decide([[0.2], [0.7]], ["a", "b"])
    >>> learner.observe(decisions.round, [-1, 1])
    >>> learner.certificate.limit, learner.report.notes[0][:28]
    (0.1, 'only constants are deployed:')
    """

    needs_group = False  # people whose group is unknown count outside of the certificate
    state: CertifiedState
    _not_stored = EpochLearner._not_stored | {"_coin", "_ahead"}
    _coin: tuple[Mixture, float] | None = None
    _ahead: Ahead | None = None

    @made_with(CertifiedSettings)
    def __init__(self, settings: CertifiedSettings) -> None:
        self.settings = settings
        self.hypotheses, self.horizon = settings.hypotheses, settings.horizon
        self.maturity = settings.maturity
        self.rates = as_rates(settings.rate)
        self.allowed_gap = self.comparator_gap = float(settings.allowed_gap)
        self.failure_probability = settings.failure_probability
        self.drift_false_alarm, self.fallback = settings.drift_false_alarm, settings.fallback
        self.audit_rate, self.audit_budget = settings.audit_rate, settings.audit_budget
        self.fitted, self.bound = settings.fitted, settings.bound_name
        super().__init__(
            prices=settings.prices,
            group_use=settings.group_use,
            seed=settings.seed,
            settings=settings,
        )

    def _first_state(self, seed: int) -> CertifiedState:
        guarantee, wanted = self.settings.guarantee(seed), as_groups(self.settings.groups)
        ledger = DeltaLedger(guarantee.failure_probability)
        return CertifiedState(
            seed=seed,
            coins=stream(seed, "coins"),
            audit_coins=stream(seed, "audit"),
            run=CertificationRun(1, guarantee, ledger, 0, wanted=wanted),
        )

    @property
    def schedule(self) -> PracticalSchedule:
        """The floor of the audit coin, and the regret that the bandit tolerates."""
        return SCHEDULE

    @property
    def guarantee(self) -> Guarantee:
        """What is guaranteed by these settings."""
        return self.settings.guarantee(self.seed)

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

        Parameters
        ----------
        features : array of shape (people, columns)
            The people; each is one round.
        group : array, optional
            Their groups, None where unknown.
        prices : Prices, optional
            What errors cost for each of them.
        at : float, optional
            The time, needed where labels have a maturity window.

        Returns
        -------
        Decisions
            One decision per row.
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

    def _require_readable(self, rows: FloatArray) -> None:
        process, alone = self.state.run.process, len(rows) == 1 and self._left > 0
        # one person in the midst of an epoch: the policy asks its own rules, before the coin
        own = self.epoch.mixture.hypotheses if alone and not self.state.overdue else ()
        for member in () if process is None else process.members:
            if getattr(member, "schema", None) is not None and id(member) not in map(id, own):
                member.accepts(rows, None)

    def _audited(self, accepted: bool, chance: float) -> bool:
        share = self._audit_weight / chance if chance > 0 else 0.0
        coin = self.state.audit_coins.random()  # tossed for everybody
        return accepted and coin < share

    def _audited_rows(self, accept: BoolArray, acceptance: FloatArray) -> BoolArray:
        chance, some = np.zeros(len(accept)), acceptance > 0
        np.divide(self._audit_weight, acceptance, out=chance, where=some)
        return np.asarray(accept & (self.state.audit_coins.random(len(accept)) < chance))

    def observe(
        self,
        round: ArrayLike,
        label: ArrayLike,
        *,
        group: ArrayLike | None = None,
        at: float | None = None,
    ) -> None:
        """Tell labels of accepted rounds.

        Parameters
        ----------
        round, label : int or array of int
            The rounds, and a label of -1 or +1 for each.
        group : array, optional
            Their groups, which must not contradict those that are known. One that was unknown stays
            outside the certificate, because only accepted people have outcomes: see `tell_group`.
        at : float, optional
            The time.
        """
        self._tick(at)
        rounds = as_rounds(round)
        if group is not None:
            self.state.book.check_group(rounds, as_told_groups(group, len(rounds)))
        super().observe(rounds, label)

    def tell_group(self, round: ArrayLike, group: ArrayLike) -> None:
        """Tell groups that arrive after the decision, for accepted and rejected people alike.

        Parameters
        ----------
        round, group : array
            The rounds, and the group of each. They count in a cohort that is still open.

        Notes
        -----
        Law, which is on record in the certificate with the number of people by group and draw:
        whether and when a group becomes known does not depend on the draw.
        """
        rounds = as_rounds(round)
        self.state.book.tell_group(rounds, as_told_groups(group, len(rounds)))

    def _lose(self, lost: Block, *, erased: bool) -> None:
        super()._lose(lost, erased=erased)
        if erased and lost.logged[0]:
            person = lost.features[0], lost.group_of(0), int(lost.label[0])
            self.state.run.evidence.forget(*person)

    def _tick(self, at: float | None) -> None:
        if at is None:
            return
        require_number("at", at, lambda _: True, "the time is a finite number")
        before = self.state.now
        if before is not None and at < before:
            raise ProtocolError(
                f"the time is {at}, but it has been {before} before; time does not run backwards."
            )
        self.state.now = float(at)

    @property
    def _clock(self) -> tuple[float | None, float | None]:
        return self.state.now, self.maturity

    @property
    def _audit_weight(self) -> float:
        """The probability of the audit coin: the weight of accept-all, which ignores the person;
        remembered as long as the policy lasts.
        """
        policy = self.epoch.mixture
        if self._coin is None or self._coin[0] is not policy:
            self._coin = (policy, policy.weight_of(ACCEPT_ALL))
        return self._coin[1]

    # closing cohorts

    def _take(self, log: RoundLog) -> None:
        state, share, number = self.state, self._audit_weight, self.epoch.number
        state.queue.append(from_counts(number, log, share, state.audit_coins, state.round))

    def _collect(self) -> bool:
        """Close what has matured, in the order of arrival, and look at it once; whether there was
        anything.
        """
        state = self.state
        closed = state.queue + [from_block(block) for block in state.book.close(*self._clock)]
        state.queue = []
        self._look_at(sorted(closed, key=lambda cohort: cohort.first))
        return bool(closed)

    def _look_at(self, closed: Sequence[ClosedCohort]) -> None:
        state, run = self.state, self.state.run
        # Without a maturity window: show the drift tests the cohorts that have all their labels by
        # now, in the order of arrival, unless their rounds were decided elsewhere.
        while run.awaiting:
            epoch, first, stop = run.awaiting[0]
            if not any(first <= block.first < stop for block in state.book.blocks):
                break
            cohort = from_block(state.book.between(first, stop))
            if not cohort.complete:
                break
            run.watch_labels(cohort, state.epochs[epoch - 1].mixture)
            run.awaiting.pop(0)
        policies = {one.epoch: state.epochs[one.epoch - 1].mixture for one in closed}
        run.look_at(closed, policies, state.history, state.round)
        if run.alarms:
            self._suspend()

    def replay(
        self,
        played: Sequence[Block],
        rounds: int,
        *,
        at: float | None = None,
        published: Mixture | None = None,
    ) -> Epoch:
        """Close the epoch with rounds that its policies decided elsewhere, and open the next one.

        A service's ledger draws and waits for outcomes; this learns from what it has kept.

        Parameters
        ----------
        played : sequence of Block
            *All* rounds whose cohorts have closed since the last call, in the order of arrival and
            numbered without gaps: accepted and rejected, overruled and erased alike.
        rounds : int
            How many have been decided in all, waiting ones included.
        at : float, optional
            The time.
        published : Mixture, optional
            What was deployed after this closing, where that is on record.

        Returns
        -------
        Epoch
            The next epoch.
        """
        state = self.state
        if rounds < state.round:
            raise ProtocolError(
                f"{rounds} rounds were decided, but it has been {state.round} before."
            )
        self._tick(at)
        state.columns = state.columns or next((block.features.shape[1] for block in played), None)
        state.round = rounds
        self._look_at([from_block(block) for block in played])
        planned = self._choose(self.epoch.number + 1, rounds)
        opened = self._named(planned if published is None else replace(planned, policy=published))
        self._prepare_for(opened)
        state.epochs.append(opened)
        return self.epoch

    def _suspend(self) -> None:
        """An assumption is broken: nothing that was learned before counts any more."""
        state = self.state
        state.history.logs = []
        state.frozen_certificate = None
        state.book.forget_learned()
        state.run = state.run.next(state.round)

    # planning

    def _plan(self, number: int, round: int) -> Epoch:
        epoch = self._choose(number, round)
        if round > 0:
            self._prepare_for(epoch)
        return epoch

    def _prepare_for(self, opened: Epoch) -> None:
        """Fix the bets of the epochs that have rounds to be looked at: those that wait for labels,
        and the one that is opened.
        """
        epochs, run = self.state.epochs, self.state.run
        ends = [*(epoch.first_round for epoch in epochs[1:]), opened.first_round]
        waiting = [epoch for epoch, end in zip(epochs, ends, strict=True) if end > run.next_round]
        policies = {epoch.number: epoch.mixture for epoch in (*waiting, opened)}
        run.prepare(policies, self.state.history)

    def _choose(self, number: int, round: int) -> Epoch:
        run = self.state.run
        if round == 0:  # a class that is fitted needs more labels than one that is judged as it is
            first = FIRST_ROUNDS
            if self.fitted:
                first = FIRST_FITTED
                if self.horizon is not None:
                    first = int(np.clip(self.horizon // 100, FIRST_ROUNDS, FIRST_FITTED))
            return self._constant(number, round, first)
        if run.frozen:
            return replace(self.epoch, number=number, first_round=round)
        if not run.started:
            if not run.ready:
                return self._constant(number, round, epoch_length(run.evidence.people))
            own = self.settings.bound if isinstance(self.settings.bound, FixedCountBound) else None
            run.start(self.hypotheses, own, self.state.columns or 1, round)
        if self._budget_left > 0:  # one epoch of a deployable mixture
            length = epoch_length(round)
            best = self._chosen(number, round, length)
            self.state.certified_gaps[number] = best.gaps
            took = best.steps, best.oracle_calls, best.halted
            return Epoch(number, "certified", round, length, best.policy, best.floor, *took)
        # the audit budget is spent: the best certified policy, without audits, for good
        chosen, gaps = self._situation(number, round).without_audits()
        policy = replace(chosen, schema=self.state.schema)
        self.state.certified_gaps[number] = gaps
        self.state.frozen_certificate = run.certificate(policy, gaps, FOREVER)
        run.frozen = True
        return Epoch(number, "frozen", round, FOREVER, policy)

    def _constant(self, number: int, round: int, rounds: int) -> Epoch:
        """Before anything is certified: accept everybody; after a suspension: the fallback,
        audited.
        """
        floor = 1.0
        if round > 0 and self.state.run.number > 1 and self.fallback == "reject":
            floor = max(0.05, SCHEDULE.exploration_floor(round))
        everybody = Mixture((ACCEPT_ALL,), (1.0,), self.group_use)
        coin = Mixture((ACCEPT_ALL, REJECT_ALL), (floor, 1.0 - floor), self.group_use)
        policy = everybody if floor == 1.0 else coin
        return Epoch(number, "explore", round, rounds, policy, exploration_floor=floor)

    def _chosen(self, number: int, round: int, length: int) -> Chosen:
        """Fitted classes nominate and are explored by Algorithm 1, all others by the price of what
        is not known yet.
        """
        situation = self._situation(number, round)
        if not self.fitted:
            return situation.by_price(length)
        run, log = self.state.run, situation.log
        if due(run, log, round):
            chosen = nominees(run, self.hypotheses, log, situation.regression, self.loss)
            run.nominate(chosen, round, float(log.accepted.sum()))
        choice = situation.by_descent(length)
        self._ahead = choice.ahead or self._ahead
        return choice

    def _situation(self, number: int, round: int) -> Situation:
        log = self.state.history.of(with_group=self.group_use == "decide")
        assert log is not None  # cohorts have been closed
        return Situation(
            self.audit_rate,
            self.horizon,
            self.state.run,
            log,
            self.loss,
            self.state.epochs,
            number,
            round,
            self._budget_left,
        )

    @property
    def _budget_left(self) -> float:
        if self.audit_budget is None:
            return float("inf")
        return self.audit_budget - self.state.run.evidence.audited_negatives

    # looking

    @property
    @locked
    def forecast(self) -> tuple[RateForecast, ...]:
        """How far the evidence of each rate is expected to come within the horizon.

        Without a horizon: within ten times the rounds so far and 20,000. Empty before a hypothesis
        has an interval, once the policy is frozen, and where no rule is cheaper than a constant.
        A forecast is no part of a certificate.
        """
        run, epoch = self.state.run, self.epoch
        if run.process is None or not run.process.members or run.frozen:
            return ()
        if not self.state.history.logs:
            return ()
        if self._ahead is None or self._ahead.number != epoch.number:
            self._ahead = self._situation(epoch.number, epoch.first_round).ahead
        if self._ahead is None:
            return ()
        prospect, span = self._ahead.prospect, (self._ahead.start, self._ahead.horizon)
        auto = self.audit_rate == "auto"
        course = prospect.course(*span) if auto else prospect.trajectory(0.0, *span)
        return prospect.forecasts(course, self._ahead.horizon)

    def _outlook(self) -> tuple[str, ...]:
        return sentences(self.forecast)

    @property
    def certificate(self) -> Certificate:
        """What is claimed about the policy that is deployed now.

        That of a frozen policy never changes; only a suspension ends it.
        """
        state, epoch = self.state, self.epoch
        if state.frozen_certificate is not None:
            return state.frozen_certificate
        gaps = state.certified_gaps.get(epoch.number)
        return state.run.certificate(epoch.mixture, gaps, epoch.first_round + epoch.rounds)

    def certify(self, policy: Mixture) -> Certificate:
        """A certificate for any mixture of the learner's hypotheses.

        Parameters
        ----------
        policy : Mixture
            The mixture. Nothing is known of a hypothesis that has no interval.

        Returns
        -------
        Certificate
            What is claimed about it.

        Raises
        ------
        CannotCertify
            If its gap may be above the limit; the error says what is missing.
        """
        run = self.state.run
        nothing: tuple[Hypothesis, ...] = ()
        known = run.certified() if run.started else (nothing, np.zeros((1, 0)), np.zeros((1, 0)))
        members, lower, upper = known
        least, most = np.zeros(len(lower)), np.zeros(len(upper))
        for hypothesis, weight in zip(policy.hypotheses, policy.weights, strict=True):
            if hypothesis not in (ACCEPT_ALL, REJECT_ALL):
                place = members.index(hypothesis) if hypothesis in members else None
                least += weight * (-1.0 if place is None else lower[:, place])
                most += weight * (1.0 if place is None else upper[:, place])
        if max(most.max(initial=0.0), -least.min(initial=0.0)) > self.allowed_gap:
            raise run.refusal((least, most))
        valid_until = self.epoch.first_round + self.epoch.rounds
        return run.certificate(policy, (least, most), valid_until)

    @property
    def trail(self) -> tuple[tuple[Epoch, FloatArray, FloatArray], ...]:
        """(epoch, lower, upper) for each epoch: between which values the gaps of its policy were
        certified to lie.
        """
        gaps, zero = self.state.certified_gaps, np.zeros(1)
        return tuple((epoch, *gaps.get(epoch.number, (zero, zero))) for epoch in self.state.epochs)

    def _columns(self) -> dict[str, Sequence[Any]]:
        with self._lock:
            trail = self.trail
            return {
                **super()._columns(),
                "gap_low": [float(lower.min(initial=0.0)) for _, lower, _ in trail],
                "gap_high": [float(upper.max(initial=0.0)) for _, _, upper in trail],
            }

    def _draw(self, axes: "Axes") -> None:
        columns = self._columns()
        edges = np.r_[columns["first_round"], self.round]
        axes.stairs(columns["gap_high"], edges, baseline=columns["gap_low"], fill=True, color=BAND)
        for side in ("gap_high", "gap_low"):
            axes.stairs(columns[side], edges, color=INK, baseline=None)
        draw_limit(axes, self.allowed_gap)
        axes.axhline(-self.allowed_gap, color=LIMIT, linestyle=(0, (4, 2)), linewidth=1.2)
        axes.set_xlim(0, max(self.round, 1))
        axes.set_xlabel("round")
        axes.set_ylabel("gaps of the deployed policy\nare certified to lie here")

    @property
    def learned_weight(self) -> float:
        """How much of the deployed policy is not a constant."""
        parts = zip(self.epoch.mixture.hypotheses, self.epoch.mixture.weights, strict=True)
        return sum(w for h, w in parts if h not in (ACCEPT_ALL, REJECT_ALL))

    @property
    def bookings(self) -> tuple[Booking, ...]:
        """What has been booked of the failure probability, process by process."""
        return self.state.run.ledger.entries

    @property
    def drift(self) -> DriftMonitor | None:
        """The streams that are watched; None before anything is certified."""
        return self.state.run.monitor

    def _notes(self) -> list[str]:
        spent = "the audit budget is spent: the policy is frozen."
        return self.state.run.notes + ([spent] if self._budget_left <= 0 else [])

    def warm_start(self, history: RoundLog, *, audited: bool) -> None:
        """Learn from rounds that were played before, with their true acceptance probabilities.

        Parameters
        ----------
        history : RoundLog
            The rounds; they enter the loss.
        audited : bool
            Whether they were gathered by a coin that ignored the person. Then they also count
            towards the start: which groups there are, and whether each has its first people, so
            that learning may begin at once. The intervals of the certificate look at people whom
            this learner decided, and at nobody else.

        Raises
        ------
        ProtocolError
            If rounds have been played.
        InvalidInput
            If audited rounds have different acceptance probabilities.
        """
        state = self.state
        if state.round > 0:
            raise ProtocolError(
                f"{state.round} rounds have been played; a warm start comes before the first."
            )
        if self.group_use == "decide":
            nobody = np.full(len(history), None)
            as_group(nobody if history.group is None else history.group, len(history))
        state.columns = history.features.shape[1]
        if audited:
            if (history.acceptance != history.acceptance[0]).any():
                raise InvalidInput(
                    "the history's acceptance probability differs between people, so it was not "
                    "gathered by an audit rule.",
                    hint="pass audited=False: it then serves the loss only.",
                )
            cohort = from_counts(0, history, float(history.acceptance[0]), state.audit_coins)
            audits = state.run.guarantee.nominates
            state.run.evidence.add(cohort, None, billed=False, judged=False, audits=audits)
        shown = history if self.group_use == "decide" else history.without_group()
        state.history.logs.append((0, shown))
        state.news = True  # the first epoch was planned without it

    # what stays when people are erased

    def checkpoint(self) -> Json:
        """Write everything that is not about single people as plain JSON.

        These are sums, intervals, bookings, drift counts, rules, and what is fixed for the cohorts
        to come.

        Returns
        -------
        dict
            `resume` takes it up with the people who are left.

        Notes
        -----
        Sums of a closed cohort are no personal data: who is erased later changes none of them, and
        no part of delta is spent again.
        """
        state, encoder = self.state, Encoder(self.hypotheses)
        shells = [replace(epoch, policy=NO_POLICY) for epoch in state.epochs]
        evidence = replace(state.run.evidence, past=PastPeople(), audits=[])
        kept = {
            **{f"_{name}": getattr(state, name) for name in ("now", "round", "columns", "priced")},
            "_coins": state.coins,
            "_audit_coins": state.audit_coins,
            "_records": state.certified_gaps,
            "_life": replace(state.run, evidence=evidence),
            "_epochs": shells,
            "_frozen_certificate": state.frozen_certificate,
            **({} if state.schema is None else {"_schema": state.schema}),
        }
        encoded = encoder.encode(kept)
        arrays = {name: array_to_json(array) for name, array in encoder.arrays.items()}
        return {"rules": RULES, "state": encoded, "arrays": arrays}

    def resume(
        self, checkpoint: Json, policies: Sequence[Mixture], closed: Sequence[Block]
    ) -> None:
        """Take up a checkpoint that a learner with the same settings made.

        This learner then continues bit for bit.

        Parameters
        ----------
        checkpoint : dict
            What `checkpoint` returned.
        policies : sequence of Mixture
            That of every epoch, in order.
        closed : sequence of Block
            The rounds of the cohorts that had closed by then, with what was known of them at their
            closing; people who were erased since are marked so, and only the loss and the forecasts
            miss them.

        Raises
        ------
        StorageError
            If the checkpoint was made under other rules or another guarantee.
        """
        if checkpoint.get("rules") != RULES:
            raise StorageError(
                f"the checkpoint was written under rules {checkpoint.get('rules')!r}; this "
                f"evenhand continues rules {RULES}.",
                hint="let a new life succeed it: succeed(...).",
            )
        arrays = {name: array_from_json(data) for name, data in checkpoint["arrays"].items()}
        kept = Decoder(arrays, self.hypotheses).decode(checkpoint["state"])
        if len(kept["_epochs"]) != len(policies):
            raise StorageError(
                f"the checkpoint knows {len(kept['_epochs'])} epochs, but {len(policies)} policies "
                "are given."
            )
        if kept["_life"].guarantee != self.guarantee:
            raise StorageError(
                "the checkpoint was made under another promise than this learner's settings."
            )
        self._restore(kept)
        state, run = self.state, self.state.run
        deployed = zip(kept["_epochs"], policies, strict=True)
        state.epochs = [replace(epoch, policy=policy) for epoch, policy in deployed]
        state.history.logs, state.queue, self._ahead = [], [], None
        for epoch, first, stop in run.closed:
            rounds = [block for block in closed if first <= block.first < stop]
            cohort = from_block(merged([replace(block, epoch=epoch) for block in rounds]))
            inside = group_codes(cohort.group, run.groups or run.evidence.groups) >= 0
            run.evidence.remember(cohort, inside, audits=run.guarantee.nominates)
            state.history.learn(cohort.epoch, cohort.log, with_group=self.group_use == "decide")

    def succeed(
        self,
        policies: Sequence[Mixture],
        bookings: Sequence[Booking],
        round: int,
        reason: str,
        *,
        lives: int = 1,
    ) -> None:
        """Take over a record that was written under older rules.

        What was booked stays booked, and a new run starts from the reserve.

        Parameters
        ----------
        policies : sequence of Mixture
            Those of the epochs so far, in order.
        bookings : sequence of Booking
            What was booked of the failure probability.
        round : int
            People decided by these policies.
        reason : str
            Why the record does not go on.
        lives : int
            At least so many runs began.

        Notes
        -----
        Nothing of what the record saw is looked at again: the new run looks at people decided from
        here on, and deploys constants until it knows enough.
        """
        state = self.state
        if state.round > 0:
            raise ProtocolError(
                f"{state.round} rounds have been played; only a fresh learner can succeed another."
            )
        booked = [re.match(r"life (\d+):", entry.process) for entry in bookings]
        state.run = CertificationRun(
            1 + max([lives, *(int(number[1]) for number in booked if number)]),
            self.guarantee,
            DeltaLedger(self.failure_probability, tuple(bookings)),
            round,
            wanted=state.run.wanted,
            ended=(reason,),
            next_round=round,
        )
        state.round = round
        known = enumerate(policies, start=1)
        state.epochs = [Epoch(n, "older rules", 0, round, policy) for n, policy in known]
        state.epochs.append(self._named(self._choose(len(policies) + 1, round)))
