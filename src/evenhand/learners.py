"""The learners that people use: each is an algorithm with a name, a signature and what there is to
look at.

CertifiedLearner     keeps the limit from the first person on (beyond the paper)
TwoPhaseLearner      the paper's algorithm
AcceptAll, Uniform, ExploreThenCommit, Exp4, PairedRounds, Unconstrained, FairOnGathered
                     what it is compared with
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from math import ceil
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from evenhand import storage
from evenhand.algorithms import baselines
from evenhand.algorithms.certified import certificates
from evenhand.algorithms.certified.choose import SCHEDULE
from evenhand.algorithms.certified.forecast import RateForecast, sentences
from evenhand.algorithms.certified.quota import Quota
from evenhand.algorithms.certified.state import CertifiedState, Guarantee
from evenhand.algorithms.certified.step import Certified
from evenhand.algorithms.exploration import (
    PRINTED,
    ExplorationRule,
    Slack,
    SlackRule,
    outside_groups,
)
from evenhand.algorithms.exponential_weights import GROWTH, exp4, require_net
from evenhand.algorithms.settings import require_horizon, require_prices
from evenhand.algorithms.two_phase import FIRST_EPOCH, Epochs, TwoPhase, TwoPhaseState
from evenhand.bandit import PracticalSchedule, Schedule
from evenhand.bounds import SlackBound
from evenhand.contracts import GroupUse, HypothesisClass
from evenhand.errors import InvalidInput, ProtocolError, StorageError
from evenhand.estimation import EstimatedLoss, RoundLog
from evenhand.faircsc import FairCSC
from evenhand.faircsc.oracle import Method
from evenhand.fairness.certificate import COINS_FROM_SEED, Certificate
from evenhand.fairness.delta_ledger import Booking
from evenhand.fairness.drift import DriftMonitor
from evenhand.fairness.rates import FalsePositiveRate, RateLike, as_rates
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.models import trusting
from evenhand.hypotheses.named import ClassLike, as_class
from evenhand.keys import KeyBook
from evenhand.learner import SHELL, EpochLearner, LearnerReport, plain_setting
from evenhand.people import as_group
from evenhand.policies import Mixture
from evenhand.rounds import Epoch, Keep
from evenhand.shown import BAND, INK, LIMIT, draw_limit
from evenhand.words import FloatArray, Group, LabelledSample, Prices

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "AcceptAll",
    "CertifiedLearner",
    "Epoch",
    "EpochLearner",
    "Exp4",
    "ExploreThenCommit",
    "ExploringLearner",
    "FairOnGathered",
    "LearnerReport",
    "PairedRounds",
    "Quota",
    "TwoPhaseLearner",
    "Unconstrained",
    "Uniform",
    "load",
]

FALSE_POSITIVES = FalsePositiveRate()


class CertifiedLearner(EpochLearner):
    """Decides about people (`decide`), learns from outcomes (`observe`), and keeps gaps in a limit.

    `decide` accepts or rejects people, each with a fresh random draw; `observe` takes the outcomes
    of accepted people. With probability at least 1 - delta over the whole run, and under the
    assumptions that the certificate lists, every deployed policy keeps |gap| <= limit on the
    population. Among these policies the learner chooses one with small expected cost.

    Parameters
    ----------
    hypotheses : HypothesisClass, str or classifier
        The rules that may be mixed: a class, its name ("stumps"), or a scikit-learn classifier or
        pipeline, which becomes an `Estimator`. Finite classes, thresholds and stumps are judged
        whole; of classes that are fitted, or whose members nobody can list, single rules are
        nominated, each of which is judged by later people.
    rate : Rate, str, or a sequence of them
        The rates whose gaps are limited.
    limit : float
        The largest gap that a deployed policy may have.
    delta : float
        Probability that the limit is ever exceeded over the learner's whole run.
    horizon : int, optional
        How many people will come; it is only used to weigh exploration.
    prices : Prices, optional
        What errors cost.
    group_use : {"certify_only", "decide"}
        Whether the group may influence a decision.
    audit_rate : float or "auto"
        The probability of the audit coin.
    audit_budget : float, optional
        Bad accepts that audits may cost, over all runs and from the first round on. It holds for
        every outcome: a label that has not come counts as bad, as does a person who was erased. The
        audit coin is not tossed where it could exceed the budget.
    maturity : float, optional
        How long after a decision its label is complete, in the units of `at`.
    fallback : {"accept", "reject"}
        The constant that is deployed when drift suspends the certificate; under a cap or a floor
        the lottery at the nearest share that is permitted.
    groups : sequence, optional
        The groups of the guarantee; others count outside of it. By default they are those seen in
        the first rounds, and a group that turns up later joins once it has ten people.
    drift_false_alarm : float
        The probability of suspending without a reason.
    accept_at_most : float, optional
        A cap: every policy accepts at most this share of the population, from the first person on,
        with the same delta. The start, and whatever is deployed when nothing is certified, is then
        a lottery, "accept each person with this probability", which has no gap.
    accept_at_least : float, optional
        A floor: every policy accepts at least this share, unless the audit budget or the quota
        forbids it; the certificate then says so.
    quota : Quota, optional
        How many people may be accepted in each period, as a hard count; `decide` then needs `at`.
    candidates : sequence, optional
        Rules that are members from the first round, beside the class: those of the incumbent. Each
        is a hypothesis, the JSON of one, or a fitted classifier or pipeline.
    keep : {"rows", "counts"}
        "rows": every person's row, for good. "counts": sums and a bounded sample of people, so that
        memory does not grow with them; the decisions are the same. Then nobody can be erased or
        overruled and no group reported after the decision, and a label must come before its cohort
        closes: each of these raises a ProtocolError.
    seed : int, optional
        Seed of all random draws, for tests and simulations: coming coins can be computed from it,
        and the certificate says so. None, for people, takes the coins from the entropy of the
        system.

    Raises
    ------
    InvalidInput
        If a setting makes no sense.

    Examples
    --------
    >>> from evenhand import FalsePositiveRate, ScoreThresholds
    >>> learner = CertifiedLearner(ScoreThresholds(), FalsePositiveRate(), 0.1, 0.05, seed=1)
    >>> decisions = learner.decide([[0.2], [0.7]], ["a", "b"])
    >>> learner.observe(decisions.round, [-1, 1])
    >>> learner.certificate.limit, learner.report.notes[0].kind
    (0.1, 'waiting for people')
    """

    algorithm: Certified
    state: CertifiedState

    def __init__(
        self,
        hypotheses: ClassLike,
        rate: RateLike,
        limit: float,
        delta: float,
        *,
        horizon: int | None = None,
        prices: Prices | None = None,
        group_use: GroupUse = "certify_only",
        audit_rate: float | Literal["auto"] = "auto",
        audit_budget: float | None = None,
        maturity: float | None = None,
        fallback: Literal["accept", "reject"] = "accept",
        groups: Sequence[Group] | None = None,
        drift_false_alarm: float = 1e-3,
        accept_at_most: float | None = None,
        accept_at_least: float | None = None,
        quota: Quota | None = None,
        candidates: Sequence[object] | None = None,
        keep: Keep = "rows",
        seed: int | None = None,
    ) -> None:
        algorithm = Certified(
            as_class(hypotheses),
            rate,
            limit,
            delta,
            horizon=horizon,
            prices=as_prices(prices),
            group_use=group_use,
            audit_rate=audit_rate,
            audit_budget=audit_budget,
            maturity=maturity,
            fallback=fallback,
            groups=groups,
            drift_false_alarm=drift_false_alarm,
            accept_at_most=accept_at_most,
            accept_at_least=accept_at_least,
            quota=quota,
            candidates=candidates,
            keep=keep,
        )
        super().__init__(algorithm, seed=seed, settings=settings_of(algorithm, prices=prices))

    # its parts

    @property
    def hypotheses(self) -> HypothesisClass:
        """The rules that may be mixed."""
        return self.algorithm.hypotheses

    @property
    def limit(self) -> float:
        """The gap that is never exceeded."""
        return float(self.algorithm.limit)

    @property
    def comparator_gap(self) -> float:
        """It competes with the best policy within the limit."""
        return self.limit

    @property
    def delta(self) -> float:
        """Probability that the limit is ever exceeded."""
        return self.algorithm.delta

    @property
    def horizon(self) -> int | None:
        """How many people will come."""
        return self.algorithm.horizon

    @property
    def maturity(self) -> float | None:
        """How long after a decision its label is complete."""
        return self.algorithm.maturity

    @property
    def audit_rate(self) -> float | Literal["auto"]:
        """The probability of the audit coin."""
        return self.algorithm.audit_rate

    @property
    def audit_budget(self) -> float | None:
        """Bad accepts that audits may cost."""
        return self.algorithm.audit_budget

    @property
    def accept_at_most(self) -> float:
        """The largest share of the population that a policy may accept; 1 without a cap."""
        return self.guarantee.most

    @property
    def accept_at_least(self) -> float:
        """The smallest share of the population that a policy may accept; 0 without a floor."""
        return self.guarantee.least

    @property
    def quota(self) -> Quota | None:
        """How many people may be accepted in each period."""
        return self.algorithm.quota

    @property
    def nominates(self) -> bool:
        """Whether hypotheses are nominated one by one instead of judged all at once: those of
        fitted classes, and of classes whose members nobody can list.
        """
        return self.algorithm.nominates

    @property
    def schedule(self) -> PracticalSchedule:
        """The floor of the audit coin, and the regret that the bandit tolerates."""
        return SCHEDULE

    @property
    def guarantee(self) -> Guarantee:
        """What is guaranteed by these settings."""
        return self.algorithm.guarantee(self.seed)

    # what is claimed

    @property
    def certificate(self) -> Certificate:
        """What is claimed about the policy that is deployed now.

        That of a frozen policy never changes; only a suspension ends it.
        """
        with self.lock:
            return self._with_coins(certificates.certificate_of(self.state, self.epoch))

    def _with_coins(self, issued: Certificate) -> Certificate:
        """With what is to be said of the coins."""
        if not self.coins_from_seed:
            return issued
        return replace(issued, assumptions=(*issued.assumptions, COINS_FROM_SEED))

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
        with self.lock:
            issued = certificates.certify(self.state, policy, self.epoch.end)
            return self._with_coins(issued)

    @property
    def bookings(self) -> tuple[Booking, ...]:
        """What has been booked of delta, process by process."""
        return self.state.ledger.entries

    @property
    def drift(self) -> DriftMonitor | None:
        """The streams that are watched; None before anything is certified."""
        return None if self.state.drift is None else self.state.drift.monitor

    @property
    def trail(self) -> tuple[tuple[Epoch, FloatArray, FloatArray], ...]:
        """(epoch, lower, upper) for each epoch: between which values the gaps of its policy were
        certified to lie.
        """
        nothing = (np.zeros(1), np.zeros(1))
        with self.lock:
            epochs = self.rounds.epochs
            return tuple((epoch, *self.state.gaps.get(epoch.number, nothing)) for epoch in epochs)

    @property
    def learned_weight(self) -> float:
        """How much of the deployed policy is not a constant."""
        policy = self.epoch.mixture
        parts = zip(policy.hypotheses, policy.weights, strict=True)
        return sum(weight for rule, weight in parts if rule not in (ACCEPT_ALL, REJECT_ALL))

    @property
    def forecast(self) -> tuple[RateForecast, ...]:
        """How far the evidence of each rate is expected to come within the horizon.

        Without a horizon: within ten times the rounds so far and 20,000. Empty before a hypothesis
        has an interval, once the policy is frozen, and where no rule is cheaper than a constant.
        A forecast is no part of a certificate.
        """
        with self.lock:
            return self.algorithm.forecast(self.state, self.rounds)

    @property
    def report(self) -> LearnerReport:
        """Where the learner stands, and what it expects of the rounds ahead."""
        with self.lock:
            return self._report(sentences(self.forecast))

    # before the first round

    def warm_start(self, history: RoundLog, *, audited: bool) -> None:
        """Learn from rounds that were decided before, with their true acceptance probabilities.

        Parameters
        ----------
        history : RoundLog
            The rounds; they enter the loss.
        audited : bool
            Whether they were gathered by a coin that ignored the person. Then they also count
            towards the start: which groups there are, and whether each has its first people, so
            that learning may begin at once. The intervals of the certificate use only people about
            whom this learner decided.

        Raises
        ------
        ProtocolError
            If rounds have been decided.
        InvalidInput
            If audited rounds have different acceptance probabilities.
        """
        with self.lock:
            self._warm_start(history, audited)

    def _warm_start(self, history: RoundLog, audited: bool) -> None:
        if self.rounds.decided > 0:
            raise ProtocolError(
                f"{self.rounds.decided} rounds have been decided; a warm start comes before the "
                "first."
            )
        if self.group_use == "decide":
            nobody = np.full(len(history), None)
            as_group(nobody if history.group is None else history.group, len(history))
        if audited and (history.acceptance != history.acceptance[0]).any():
            raise InvalidInput(
                "the history's acceptance probability differs between people, so it was not "
                "gathered by an audit rule.",
                hint="pass audited=False: it then serves the loss only.",
            )
        self.columns = history.features.shape[1]
        self.rounds.before.append((history, audited))
        if audited:
            self.state = self.algorithm.warm_start(self.state, history)

    def _columns(self) -> dict[str, Sequence[Any]]:
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
        draw_limit(axes, self.limit)
        axes.axhline(-self.limit, color=LIMIT, linestyle=(0, (4, 2)), linewidth=1.2)
        axes.set_xlim(0, max(self.round, 1))
        axes.set_xlabel("round")
        axes.set_ylabel("gaps of the deployed policy\nare certified to lie here")


class ExploringLearner(EpochLearner):
    """A learner that explores as the paper does: what there is to look at."""

    algorithm: TwoPhase | baselines.AfterExploration
    state: TwoPhaseState

    @property
    def paper(self) -> TwoPhase:
        """The settings of the paper's algorithm, and its steps."""
        if isinstance(self.algorithm, TwoPhase):
            return self.algorithm
        return self.algorithm.paper

    @property
    def hypotheses(self) -> HypothesisClass:
        """The rules that may be mixed."""
        return self.paper.hypotheses

    @property
    def limit(self) -> float | None:
        """The gap that is never exceeded."""
        return self.paper.limit

    @property
    def comparator_gap(self) -> float:
        """It competes with the best policy of this gap."""
        return self.paper.comparator

    @property
    def horizon(self) -> int:
        """T."""
        return int(self.paper.horizon)

    @property
    def schedule(self) -> Schedule:
        """The exploration floor of the bandit."""
        return self.paper.floors

    @property
    def exploration_rule(self) -> ExplorationRule:
        """The rule that ends the exploration."""
        return self.paper.exploration_rule

    @property
    def exploration_rounds(self) -> int | None:
        """The preset length of the exploration; None where it stops on counts."""
        return self.paper.exploration_rule.rounds

    @property
    def slack(self) -> Slack | None:
        """What the sample allows: beta, and the limit of the empirical gap; None before the
        exploration is over.
        """
        return self.state.exploration.slack

    @property
    def sample(self) -> LabelledSample | None:
        """The people of the exploration; None before it is over."""
        with self.lock:
            if self.slack is None:
                return None
            return self.paper.sample(self.state, self.rounds)

    @property
    def groups(self) -> tuple[Group, ...] | None:
        """The groups that the guarantee covers: those of the sample; None before it is closed."""
        return None if self.slack is None else self.state.exploration.groups

    @property
    def outside(self) -> dict[Group, int]:
        """People of other groups who have been decided, by group: they are not covered."""
        with self.lock:
            return outside_groups(self.state.exploration, self.rounds)

    @property
    def guarantee(self) -> float | None:
        """The gap between any two of `groups` that no deployed policy exceeds, with probability at
        least 1 - delta; None where none is guaranteed, because the paper's gamma + O(beta) is
        followed to the letter.
        """
        if self.paper.slack_rule == "as printed":
            return None
        return 0.0 if self.slack is None else self.slack.guarantee

    def fair_oracle(self, loss: EstimatedLoss) -> FairCSC:
        """FairCSC over the rows of `loss`, with the constraint of the exploration's sample.

        Parameters
        ----------
        loss : EstimatedLoss
            The objective.

        Returns
        -------
        FairCSC
            The fair oracle (section 3.1 of the paper).

        Raises
        ------
        InvalidInput
            If the exploration is not finished.
        """
        with self.lock:
            return self.paper.fair_oracle(self.state, self.rounds, loss)

    def close_exploration(self) -> None:
        """End the wait for labels that will not come.

        The sample is closed without them, and the next decision is the bandit's.

        Raises
        ------
        ProtocolError
            If there is nothing to close: the exploration is over or its people have not all
            arrived; if it depends on the missing labels whether these people suffice; and if the
            limit could not be kept with so many labels missing.

        Notes
        -----
        The k people of the sample whose labels are missing add k / min_j n_j to the slack, n_j the
        people who are left in the smallest denominator. That covers all that their labels may have
        been, so the guarantee does not depend on when or why this is called. The learner never
        does it by itself.
        """
        with self.lock:
            self.state = self.paper.close_exploration(self.state, self.rounds)
            self.rounds.end_epoch_here()


class TwoPhaseLearner(ExploringLearner):
    """The paper's algorithm: explore, build the fair oracle, run the bandit over fair policies.

    `decide` accepts or rejects people; `observe` takes the outcomes of those who were accepted.

    Parameters
    ----------
    hypotheses : HypothesisClass or str
        The rules that may be mixed: a class, or its name ("stumps").
    rate : Rate, str, or a sequence of them
        Whose gap is kept below the limit.
    limit : float or None
        The gap that is never exceeded, with probability 1 - delta. None (with exploration_rounds
        or tradeoff_exponent) guarantees comparator_gap + 2 beta.
    delta : float
        Probability that the limit is ever exceeded.
    horizon : int
        T.
    comparator_gap : float, optional
        The learner competes with the best policy of this gap; half of the limit by default.
    exploration_rounds, tradeoff_exponent : optional
        The length of the exploration: this many rounds, else T^(2 alpha), else it stops on counts
        when twice the slack fits between the two gaps.
    estimator : {"one-sided", "two-sided"}
        How losses are weighted (`evenhand.estimation`).
    schedule : {"practical", "theory"} or Schedule
        The exploration floor of the bandit.
    bound : str or SlackBound, optional
        The slack of the sample: "joint-hoeffding" (default), "dkw" or "clopper-pearson"; "as
        printed" is the paper's order with constant 1, which guarantees nothing.
    prices : Prices, optional
        What errors cost.
    group_use : {"certify_only", "decide"}
        Whether the group may influence a decision.
    slack_rule : {"corrected", "as printed"}
        How slack and limit relate. "as printed" is the paper's set, with gamma + O(beta) and no
        constant claimed.
    method : {"column-generation", "saddle-point"}
        The fair oracle: exact, or the paper's recipe.
    oracle_tolerance : float, optional
        nu of the saddle point; 1 / horizon by default, as in the paper.
    epochs : {"doubling", "every-round"}
        When the bandit's weights Q are solved anew: whenever its rounds have doubled, or in every
        round, as in the paper.
    seed : int, optional
        Seed of all random draws.

    Raises
    ------
    InvalidInput
        If a setting makes no sense, or the exploration does not fit into the horizon.

    Notes
    -----
    Labels may be late, and later for some people than for others: the sample is exactly the first
    T0 arrivals, and all applicants are accepted until the last of their labels has come.
    `report.notes` say which labels are still missing; `close_exploration` ends the wait.

    Examples
    --------
    >>> from evenhand import FalsePositiveRate, ScoreThresholds
    >>> learner = TwoPhaseLearner(
    ...     ScoreThresholds(), FalsePositiveRate(), 0.4, 0.1, 1000, exploration_rounds=100, seed=1
    ... )
    >>> learner.decide([[0.2], [0.7]], ["a", "b"]).accept.tolist(), learner.report.phase
    ([True, True], 'explore')
    """

    def __init__(
        self,
        hypotheses: ClassLike,
        rate: RateLike,
        limit: float | None,
        delta: float,
        horizon: int,
        *,
        comparator_gap: float | None = None,
        exploration_rounds: int | None = None,
        tradeoff_exponent: float | None = None,
        estimator: Literal["one-sided", "two-sided"] = "one-sided",
        schedule: Literal["practical", "theory"] | Schedule = "practical",
        bound: str | SlackBound | None = None,
        prices: Prices | None = None,
        group_use: GroupUse = "certify_only",
        slack_rule: SlackRule = "corrected",
        method: Method = "column-generation",
        oracle_tolerance: float | None = None,
        epochs: Epochs = "doubling",
        seed: int | None = None,
    ) -> None:
        algorithm = TwoPhase(
            as_class(hypotheses),
            rate,
            limit,
            delta,
            horizon,
            comparator_gap=comparator_gap,
            exploration_rounds=exploration_rounds,
            tradeoff_exponent=tradeoff_exponent,
            estimator=estimator,
            schedule=schedule,
            bound=bound,
            prices=as_prices(prices),
            group_use=group_use,
            slack_rule=slack_rule,
            method=method,
            oracle_tolerance=oracle_tolerance,
            epochs=epochs,
        )
        super().__init__(algorithm, seed=seed, settings=settings_of(algorithm, prices=prices))

    @classmethod
    def as_printed(
        cls,
        hypotheses: ClassLike,
        rate: RateLike,
        gamma: float,
        delta: float,
        horizon: int,
        tradeoff_exponent: float = 0.25,
        *,
        method: Method = "saddle-point",
        epochs: Epochs = "every-round",
        schedule: Literal["practical", "theory"] | Schedule = "theory",
        seed: int | None = None,
    ) -> Self:
        """The algorithm to the letter of the paper, with its constants.

        Two-sided estimates, T0 and beta as in theorem 3.1 with constants 1, the saddle-point
        FairCSC with nu = 1/T, a new Q in every round, the group classifiers in H. It gives no
        certificate: its report says "gamma + O(beta), no constant claimed".

        Parameters
        ----------
        hypotheses : HypothesisClass or str
            A finite class, or its name.
        rate : Rate, str, or a sequence of them
            Whose gap is limited.
        gamma : float
            It competes with the best policy of this gap.
        delta : float
            delta; theorem 3.1 takes at most 1 / sqrt(horizon).
        horizon : int
            T.
        tradeoff_exponent : float
            alpha of remark 3.3, in [1/4, 1/2]; theorem 3.1 is alpha = 1/4.
        method, epochs, schedule
            Other values than these leave the letter: "column-generation" is exact and faster,
            "doubling" solves for Q O(log T) times, "practical" explores less. The report names
            what is different.
        seed : int, optional
            Seed of all random draws.

        Returns
        -------
        TwoPhaseLearner
            A learner with these settings, at its beginning.

        Raises
        ------
        InvalidInput
            If the class is infinite, or T0 does not fit into the horizon.

        Notes
        -----
        T0 = sqrt(T ln(|H|/delta)) and beta = sqrt(ln(|H|/delta)) / T^(1/4); in general T^(2 alpha)
        sqrt(ln(|H|/delta)), at most T/2, and sqrt(ln(|H|/delta)) / T^alpha. mu_t = 3.2
        ln(|H|^2 T^3 / delta) / sqrt(t), at most 1/2: below T of about 1e5 every decision of the
        second phase is a fair coin (`evenhand.theory.uniform_rounds`).

        Examples
        --------
        >>> from evenhand.environments import lending
        >>> learner = TwoPhaseLearner.as_printed(lending().hypotheses, "fpr", 0.02, 0.01, 10_000)
        >>> learner.exploration_rounds, learner.guarantee
        (304, None)
        >>> print(learner.report.notes[0])
        as printed in the paper: gamma + O(beta), no constant claimed (gamma = 0.02). There is no \
certificate.
        """
        size = getattr(hypotheses, "log_size", np.inf)
        if not np.isfinite(size):
            raise InvalidInput(
                f"{type(hypotheses).__name__} has no finite ln|H|, which the paper's T0, beta and "
                "mu_t are made of.",
                hint="use a FiniteClass; or TwoPhaseLearner, whose bounds cover thresholds and "
                "stumps.",
                argument="hypotheses",
            )
        return cls(
            hypotheses,
            rate,
            None,
            delta,
            horizon,
            comparator_gap=gamma,
            tradeoff_exponent=tradeoff_exponent,
            estimator="two-sided",
            schedule=schedule,
            bound=PRINTED,
            group_use="decide",
            slack_rule="as printed",
            method=method,
            epochs=epochs,
            seed=seed,
        )


class ExploreThenCommit(ExploringLearner):
    """Accept all applicants for T0 = T^(2/3) rounds (or as given), then deploy the empirically
    best fair policy for good.

    Parameters
    ----------
    hypotheses, rate, limit, delta, horizon
        As in `TwoPhaseLearner`.
    same_exploration : bool
        Whether T0 is that of a `TwoPhaseLearner` with the same settings.
    seed : int, optional
        Seed of all random draws.
    **settings
        Further settings of `TwoPhaseLearner`.

    Examples
    --------
    >>> from evenhand import ScoreThresholds
    >>> learner = ExploreThenCommit(ScoreThresholds(), FalsePositiveRate(), 0.4, 0.1, 1000, seed=1)
    >>> learner.exploration_rounds
    100
    """

    def __init__(
        self,
        hypotheses: ClassLike,
        rate: RateLike,
        limit: float | None,
        delta: float,
        horizon: int,
        *,
        same_exploration: bool = False,
        seed: int | None = None,
        **settings: Any,
    ) -> None:
        require_horizon(horizon, 2)
        given = (settings.get("exploration_rounds"), settings.get("tradeoff_exponent"))
        lengths = dict(settings)
        if given == (None, None) and not same_exploration:
            lengths["exploration_rounds"] = ceil(horizon ** (2 / 3))
        paper = paper_with(hypotheses, rate, limit, delta, horizon, lengths)
        own = settings_of(paper, prices=settings.get("prices"), same_exploration=same_exploration)
        algorithm = baselines.AfterExploration(paper, baselines.commit)
        super().__init__(algorithm, seed=seed, settings=own)


class Exp4(ExploringLearner):
    """EXP4 on the net of fair pairs of an enumerable class: the paper's inefficient baseline.

    Parameters
    ----------
    hypotheses, rate, limit, delta, horizon
        As in `TwoPhaseLearner`.
    grid : int, optional
        The number of steps of weight between two rules; ceil(sqrt(horizon)) by default.
    growth : float, default 0.25
        The length of an epoch, in which the weights stay as they are, as a share of all rounds
        after the exploration; 0 renews them after every round.
    seed : int, optional
        Seed of all random draws.
    **settings
        Further settings of `TwoPhaseLearner`. estimator="two-sided" is EXP4 as the paper has it;
        "one-sided" (the default) weights accepted rounds alone, and learns from the exploration,
        too.

    Raises
    ------
    InvalidInput
        If a setting makes no sense; at the end of the exploration, if the class cannot be
        enumerated or has so many pairs that its net is too large.

    Notes
    -----
    After the same exploration as the two-phase learner, the net holds every rule whose gap on the
    sample is within the limit, and of every pair of rules the mixtures w h + (1-w) h' with w on
    the grid or at an end of the pair's interval of fair weights. So the best fair policy of the
    sample is in it, exactly. Each member i keeps the importance-weighted loss it would have had,
    and is drawn with probability proportional to exp(-rate_t * cumulative estimated loss_i), with
    rate_t = sqrt(ln N / (K t)) for N members and K = 1 or 2 weighted decisions.

    The net has about sqrt(T) |H|^2 / 2 members, and every renewal costs |H|^2 / 2 steps: that is
    exponential in the number of bits that describe a rule, and why the paper replaces this
    baseline by one that asks an oracle. With several rates or more than two groups the net holds
    the best mixture of *two* rules, and regret to the best mixture is linear.

    Examples
    --------
    >>> from evenhand import ScoreThresholds
    >>> Exp4(ScoreThresholds(), FalsePositiveRate(), 0.4, 0.1, 1000, grid=4, seed=1).params["grid"]
    4
    """

    def __init__(
        self,
        hypotheses: ClassLike,
        rate: RateLike,
        limit: float | None,
        delta: float,
        horizon: int,
        *,
        grid: int | None = None,
        growth: float = GROWTH,
        seed: int | None = None,
        **settings: Any,
    ) -> None:
        paper = paper_with(hypotheses, rate, limit, delta, horizon, settings)
        own = settings_of(paper, prices=settings.get("prices"), grid=grid, growth=growth)
        algorithm = baselines.AfterExploration(paper, exp4(grid, growth))
        super().__init__(algorithm, seed=seed, settings=own)


class PairedRounds(EpochLearner):
    """The "initial approach" of the paper's section 1: each exploration round is paired with a
    round of EXP4.

    Parameters
    ----------
    hypotheses, rate, limit, delta, horizon
        As in `TwoPhaseLearner`.
    grid : int, optional
        As in `Exp4`.
    seed : int, optional
        Seed of all random draws.
    **settings
        Further settings of `TwoPhaseLearner`. exploration_rounds or tradeoff_exponent says how
        many rounds explore in all; by default half of the horizon does, as the sentence reads.

    Notes
    -----
    The paper gives it a regret of O(T^(2 alpha)) at a gap of gamma + O(T^-alpha), and leaves it
    because the net is of exponential size. Two more things keep it from what section 2 and the
    two-phase algorithm do, and `tests/claims/test_baselines.py` measures both:

    - Paired through the whole run, half of all rounds accept all applicants, so that regret is
      linear: the bound needs a pairing that ends after T^(2 alpha) exploration rounds.
    - Exploitation begins when the sample is small. Then either almost no policy is allowed, or
      (limit=None) a gap of gamma + 2 beta_t is, far above the gamma + O(T^-alpha) that the bound
      claims for every round.

    Examples
    --------
    >>> from evenhand import ScoreThresholds
    >>> learner = PairedRounds(ScoreThresholds(), FalsePositiveRate(), 0.4, 0.1, 1000, seed=1)
    >>> learner.exploration_rounds
    500
    """

    algorithm: baselines.Paired
    state: TwoPhaseState

    def __init__(
        self,
        hypotheses: ClassLike,
        rate: RateLike,
        limit: float | None,
        delta: float,
        horizon: int,
        *,
        grid: int | None = None,
        seed: int | None = None,
        **settings: Any,
    ) -> None:
        require_horizon(horizon, 2)
        require_net(grid, GROWTH)
        lengths = dict(settings)
        if settings.get("exploration_rounds") is None and not settings.get("tradeoff_exponent"):
            lengths["exploration_rounds"] = int(horizon) // 2
        paper = paper_with(hypotheses, rate, limit, delta, horizon, lengths)
        own = settings_of(paper, prices=settings.get("prices"), grid=grid)
        super().__init__(baselines.Paired(paper, grid), seed=seed, settings=own)

    @property
    def paper(self) -> TwoPhase:
        """The settings that it shares with the paper's algorithm."""
        return self.algorithm.paper

    @property
    def hypotheses(self) -> HypothesisClass:
        """The rules that may be mixed."""
        return self.paper.hypotheses

    @property
    def limit(self) -> float | None:
        """The gap that no exploitation block exceeds."""
        return self.paper.limit

    @property
    def comparator_gap(self) -> float:
        """It competes with the best policy of this gap."""
        return self.paper.comparator

    @property
    def exploration_rounds(self) -> int | None:
        """How many rounds explore in all."""
        return self.paper.exploration_rule.rounds

    @property
    def slack(self) -> Slack | None:
        """What the sample of the last exploitation block allowed; None before the first one."""
        return self.state.exploration.slack


class AcceptAll(EpochLearner):
    """Accept all applicants: no gap, and every label is seen.

    Parameters
    ----------
    rate, prices, seed : optional
        The rate whose gap is measured, what errors cost, and the seed of all random draws.

    Examples
    --------
    >>> AcceptAll(seed=1).decide([[0.2], [0.7]]).accept.tolist()
    [True, True]
    """

    def __init__(
        self,
        *,
        rate: RateLike = FALSE_POSITIVES,
        prices: Prices | None = None,
        seed: int | None = None,
    ) -> None:
        algorithm = baselines.Fixed(
            as_rates(rate), as_prices(prices), Mixture((ACCEPT_ALL,), (1.0,))
        )
        settings = {"rate": rate, "prices": prices}
        super().__init__(algorithm, seed=seed, settings=settings)


class Uniform(EpochLearner):
    """Toss a fair coin for each person: no gap.

    Parameters
    ----------
    rate, prices, seed : optional
        The rate whose gap is measured, what errors cost, and the seed of all random draws.

    Examples
    --------
    >>> Uniform(seed=1).acceptance([[0.2], [0.7]]).tolist()
    [0.5, 0.5]
    """

    def __init__(
        self,
        *,
        rate: RateLike = FALSE_POSITIVES,
        prices: Prices | None = None,
        seed: int | None = None,
    ) -> None:
        coin = Mixture((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5))
        algorithm = baselines.Fixed(as_rates(rate), as_prices(prices), coin)
        settings = {"rate": rate, "prices": prices}
        super().__init__(algorithm, seed=seed, settings=settings)


class _Greedy(EpochLearner):
    """What there is to look at in a learner that re-solves whenever the rounds have doubled."""

    @property
    def hypotheses(self) -> HypothesisClass | None:
        """The rules that may be mixed."""
        return self.algorithm.hypotheses

    @property
    def limit(self) -> float:
        """The limit that it is compared at."""
        return float(self.settings["limit"])

    @property
    def comparator_gap(self) -> float:
        """It is compared with the best policy within the limit."""
        return self.limit


class Unconstrained(_Greedy):
    """ILOVETOCONBANDITS (one-sided) over all mixtures: low regret to the best unfair policy, and no
    guarantee.

    Parameters
    ----------
    hypotheses, rate, limit
        The rules, the rate whose gap is measured, and a limit that nobody keeps.
    first_rounds : int
        All applicants are accepted in so many rounds at first.
    prices, group_use, seed : optional
        As in `TwoPhaseLearner`.

    Examples
    --------
    >>> from evenhand import ScoreThresholds
    >>> Unconstrained(ScoreThresholds(), FalsePositiveRate(), seed=1).rounds_left
    256
    """

    def __init__(
        self,
        hypotheses: ClassLike,
        rate: RateLike,
        limit: float = 1.0,
        *,
        first_rounds: int = 4 * FIRST_EPOCH,
        prices: Prices | None = None,
        group_use: GroupUse = "certify_only",
        seed: int | None = None,
    ) -> None:
        algorithm = baselines.Greedy(
            as_class(hypotheses),
            rate,
            limit,
            first_rounds,
            as_prices(prices),
            group_use,
            plan=baselines.unconstrained,
            needs_group="never",
        )
        super().__init__(
            algorithm,
            seed=seed,
            settings={
                "hypotheses": algorithm.hypotheses,
                "rate": rate,
                "limit": limit,
                "first_rounds": first_rounds,
                "prices": prices,
                "group_use": group_use,
            },
        )


class FairOnGathered(_Greedy):
    """Greedy: the best policy whose gap *on the labels gathered so far* is within the limit,
    without weighting or exploration.

    Parameters
    ----------
    hypotheses, rate, limit
        The rules, the rate, and the limit of its gap on the gathered labels.
    first_rounds : int
        All applicants are accepted in so many rounds at first.
    prices, group_use, seed : optional
        As in `TwoPhaseLearner`.

    Examples
    --------
    >>> from evenhand import ScoreThresholds
    >>> FairOnGathered(ScoreThresholds(), FalsePositiveRate(), 0.1, seed=1).epoch.phase
    'explore'
    """

    def __init__(
        self,
        hypotheses: ClassLike,
        rate: RateLike,
        limit: float = 1.0,
        *,
        first_rounds: int = 4 * FIRST_EPOCH,
        prices: Prices | None = None,
        group_use: GroupUse = "certify_only",
        seed: int | None = None,
    ) -> None:
        algorithm = baselines.Greedy(
            as_class(hypotheses),
            rate,
            limit,
            first_rounds,
            as_prices(prices),
            group_use,
            plan=baselines.fair_on_gathered,
            needs_group="always",  # every label that is gathered enters the constraint
        )
        super().__init__(
            algorithm,
            seed=seed,
            settings={
                "hypotheses": algorithm.hypotheses,
                "rate": rate,
                "limit": limit,
                "first_rounds": first_rounds,
                "prices": prices,
                "group_use": group_use,
            },
        )


def as_prices(prices: Prices | None) -> Prices:
    """The prices of a learner; 1 and 1 by default."""
    if prices is None:
        return Prices()
    require_prices(prices)
    return prices


def paper_with(
    hypotheses: ClassLike,
    rate: RateLike,
    limit: float | None,
    delta: float,
    horizon: int,
    settings: dict[str, Any],
) -> TwoPhase:
    """The paper's algorithm with these settings, for a baseline that explores as it does."""
    prices = as_prices(settings.get("prices"))
    rules = as_class(hypotheses)
    return TwoPhase(rules, rate, limit, delta, horizon, **{**settings, "prices": prices})


def settings_of(algorithm: Certified | TwoPhase, **own: Any) -> dict[str, Any]:
    """The settings of a learner, for `params` and `save`: its algorithm's, and its own, among them
    the prices as they were given.
    """
    return {one.name: getattr(algorithm, one.name) for one in fields(algorithm) if one.init} | own


# loading

LEARNERS: dict[str, type[EpochLearner]] = {
    learner.__name__: learner
    for learner in (
        AcceptAll,
        CertifiedLearner,
        Exp4,
        ExploreThenCommit,
        FairOnGathered,
        PairedRounds,
        TwoPhaseLearner,
        Unconstrained,
        Uniform,
    )
}
"""Every learner that can be loaded, by the name under which it is stored."""
_CHANGED = (
    "somebody has changed the file: restore it from a copy, or make a new learner with the "
    "settings you want."
)


def load(
    path: str | os.PathLike[str],
    *,
    hypotheses: HypothesisClass | None = None,
    trusted: Iterable[str] = (),
    same_coins: bool = False,
) -> EpochLearner:
    """The learner that `save` stored: the same policies, certificate and report from here on.

    Parameters
    ----------
    path : str or path
        The file.
    hypotheses : HypothesisClass, optional
        Needed where the class is made of Python functions or foreign models, which cannot be stored
        as data.
    trusted : iterable of str
        Full names of types of your own in stored models, which may be loaded; see
        `evenhand.hypotheses.models.load_model`.
    same_coins : bool, default False
        Whether to go on with the coins of the stored learner, bit for bit: for replays and tests.
        By default fresh coins are tossed, which nobody who holds the file can know.

    Returns
    -------
    EpochLearner
        A learner of the kind that was stored.

    Warns
    -----
    UserWarning
        If other versions of libraries are installed than those with which fitted rules were saved.
        Each rule is asked about the last people on file. One that cannot be read, or decides
        otherwise about one of them, leaves the policy of a `CertifiedLearner`; all else goes on.

    Raises
    ------
    StorageError
        If the file is not a stored learner, is damaged, or was changed: if its settings are not
        those with which the learner was made, or if a stored number is not finite or out of its
        range.

    Notes
    -----
    Two continuations of one file are two runs: a choice between them may fail with 2 delta. Only
    one of them can save at the same path; nothing can verify that there is no copy elsewhere.

    Examples
    --------
    >>> import tempfile
    >>> learner = Uniform(seed=1)
    >>> decisions = learner.decide([[1.0], [2.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     learner.save(f"{folder}/learner")
    ...     copy = load(f"{folder}/learner")
    >>> copy.round, copy.report == learner.report
    (2, True)
    """
    with trusting(trusted):
        stored = storage.read(path, hypotheses)
    if stored.learner not in LEARNERS:
        raise StorageError(
            f"{path} holds a {stored.learner!r}; known are {', '.join(sorted(LEARNERS))}.",
            hint="register a learner of your own in evenhand.learners.LEARNERS.",
        )
    try:
        learner = LEARNERS[stored.learner](**stored.settings)
    except (InvalidInput, TypeError) as error:
        raise StorageError(
            f"the settings in {path} make no {stored.learner}: {error}", hint=_CHANGED
        ) from error
    try:
        wrong = _unsound(learner, stored)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        wrong = f"a part of it is malformed ({error})"
    if wrong is not None:
        raise StorageError(f"{path} is no sound learner: {wrong}.", hint=_CHANGED)
    learner.restore(stored)
    if stored.unread and not learner.leave_unread_rules():
        raise StorageError(
            f"{path} holds a rule that cannot be read: {stored.unread[0]}",
            hint="install the versions of the libraries with which it was written.",
        )
    learner.files = {os.path.realpath(path): stored.mark}
    if not same_coins:
        learner.toss_fresh_coins()
    return learner


def _unsound(fresh: EpochLearner, stored: storage.Stored) -> str | None:
    """What cannot be in a learner that was made with these settings; None if all is well."""
    rounds = stored.rounds
    state = stored.state
    shell = stored.shell
    numbers = [epoch.number for epoch in rounds.epochs]
    if not numbers or numbers != list(range(1, len(numbers) + 1)):
        return "its epochs are not numbered 1, 2, ..."
    if rounds.epoch.end < rounds.decided:
        return "its last epoch ends before the present round"
    for name in sorted({*SHELL, "settings"} ^ shell.keys()):
        return f"{name} is missing beside its state, or does not belong there"
    for name, kind in SHELL.items():
        if not isinstance(shell[name], kind):
            return f"{name} is {shell[name]!r}"
    try:
        KeyBook.from_fields(shell["keys"], rounds.decided)
    except InvalidInput as error:
        return error.sentence.rstrip(".")
    made_with = shell["settings"]
    for name in sorted({*stored.settings, *made_with}):
        now = plain_setting(stored.settings.get(name))
        then = plain_setting(made_with.get(name))
        if now != then:
            return f"the setting {name} is {now!r}, but the learner was made with {then!r}"
    given = stored.settings.get("seed")
    if given is not None and given != shell["seed"]:
        return f"the setting seed is {given!r}, but its coins were drawn with another one"
    wrong = _unsound_kinds(fresh.state, state)
    if wrong is None and isinstance(fresh, CertifiedLearner) and isinstance(state, CertifiedState):
        wrong = _unsound_state(fresh.algorithm.guarantee(shell["seed"]), state)
    return wrong


def _unsound_kinds(fresh: object, state: object) -> str | None:
    """A part of a state that is of another kind than in a learner that has met nobody."""
    if type(state) is not type(fresh):
        return f"its state is of kind {type(state).__name__}"
    for name, first in getattr(fresh, "__dict__", {}).items():
        now = getattr(state, name)
        if first is not None and type(now) is not type(first):
            return f"{name} of its state is of kind {type(now).__name__}"
    return None


def _unsound_state(guarantee: Guarantee, state: CertifiedState) -> str | None:
    if plain_setting(vars(guarantee)) != plain_setting(vars(state.guarantee)):
        for name, given in vars(guarantee).items():
            kept = getattr(state.guarantee, name)
            if plain_setting(given) != plain_setting(kept):
                return f"the setting {name} is {given!r}, but the learner guarantees {kept!r}"
    if state.ledger.delta != guarantee.delta:
        return f"the delta ledger is about {state.ledger.delta}, not {guarantee.delta}"
    if (state.process is None) != (state.groups is None):
        return "it has intervals without groups, or groups without intervals"
    certified = list(state.gaps.items())
    if state.planned is not None and state.planned.gaps is not None:
        certified.append((state.planned.epoch.number, state.planned.gaps))
    for number, (lower, upper) in certified:
        leaves = (np.abs(lower) > 1 + 1e-9).any() or (np.abs(upper) > 1 + 1e-9).any()
        if lower.shape != upper.shape or leaves:
            return f"the certified gaps of epoch {number} leave [-1, 1]"
    for number, (low, high) in state.accepted.items():
        if not -1e-9 <= low <= high + 1e-9 <= 1 + 2e-9:
            return f"the certified share of epoch {number} leaves [0, 1]"
    if state.process is None or state.groups is None:
        return None
    if (state.accepted_shares is not None) != guarantee.limits_acceptance:
        return "it counts accepted shares without a cap or a floor, or has one and counts none"
    if state.accepted_shares is not None and len(state.accepted_shares) != len(
        state.process.members
    ):
        return f"it counts the accepted shares of {len(state.accepted_shares)} hypotheses"
    return state.process.unsound(state.groups)
