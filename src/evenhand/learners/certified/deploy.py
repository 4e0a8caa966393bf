"""Which policy is deployed next: a choice among certified mixtures, from closed cohorts alone.

Classes that are enumerated choose by pooled costs and the price of what is not known yet
(`pricing`); fitted ones by Algorithm 1, with the audits that `forecast` expects to pay. Nothing
here enters a certificate: a poor choice costs regret.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenhand.bandit import PracticalSchedule, coordinate_descent, explored
from evenhand.estimation import EstimatedLoss, RoundLog, TransformedLoss, doubly_robust
from evenhand.estimation.outcomes import OutcomeRegression, fit_outcomes
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners.certified.deployable import SURE, CertifiedSet
from evenhand.learners.certified.evidence import group_codes
from evenhand.learners.certified.forecast import HALF, LITTLE, Prospect
from evenhand.learners.certified.intervals import AuditProcess
from evenhand.learners.certified.nomination import ForetoldPeople
from evenhand.learners.certified.pricing import WEIGHT_CAP, Exploration, PooledCosts
from evenhand.learners.certified.run import CertificationRun, GapLimits
from evenhand.learners.certified.settings import CertifiedSettings
from evenhand.learners.epochs import Epoch
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.words import FloatArray

SCHEDULE = PracticalSchedule(scale=0.3)
"""mu_t = .3 / sqrt(t): the floor of the audit coin, and the regret that the bandit tolerates."""


@dataclass(frozen=True, eq=False)
class Ahead:
    """What was known of the rounds ahead when epoch `number` began, after `start` rounds."""

    number: int
    start: float
    horizon: float
    prospect: Prospect


@dataclass(frozen=True, eq=False)
class Chosen:
    """The policy of an epoch, between which values its gaps lie, and what it took to choose it."""

    policy: Mixture
    gaps: GapLimits
    floor: float
    steps: int
    oracle_calls: int
    halted: bool
    ahead: Ahead | None = None


@dataclass(frozen=True, eq=False)
class Situation:
    """What is known when epoch `number` is planned, after `round` rounds.

    log: all resolved rounds; loss: prices and their normaliser; epochs: those before it.
    budget_left: bad accepts that audits may still cost.
    """

    settings: CertifiedSettings
    run: CertificationRun
    log: RoundLog
    loss: TransformedLoss
    epochs: Sequence[Epoch]
    number: int
    round: int
    budget_left: float

    @property
    def floor(self) -> float:
        """mu: the weight of accept-all that every policy has."""
        return self._floor_at(self.log.rounds)

    def _floor_at(self, rounds: float) -> float:
        if self.settings.audit_rate != "auto":
            return float(self.settings.audit_rate)
        return SCHEDULE.exploration_floor(max(1, int(rounds)))

    @property
    def rounds_ahead(self) -> float:
        """Rounds ahead; without a horizon nine times as many as so far, and some."""
        horizon, round = self.settings.horizon, self.round
        return max(float((horizon - round) if horizon is not None else 9 * round + 20_000), 1.0)

    def _affordable(self, length: int) -> float:
        """The weight of accept-all for which an epoch's bad accepts stay within the budget."""
        seen = self.run.evidence
        bad = seen.negatives / seen.accepted if seen.accepted else 0.5
        return self.budget_left / (length * max(bad, 1e-3))

    @cached_property
    def regression(self) -> OutcomeRegression:
        """m(x) = P[y = -1 | x], from all labels."""
        return fit_outcomes(self.log)

    # what may be deployed, and what it costs

    def _certified_set(self, accepts: FloatArray) -> CertifiedSet:
        """The certified hypotheses and the constants, whose gaps are zero, on some rows."""
        members, lower, upper = self.run.certified()
        # one row at a time, so that the result has the memory layout of `accepts`: the last bits of
        # products with it depend on that
        zero, row = np.zeros((len(lower), 2)), np.ones((1, accepts.shape[1]))
        return CertifiedSet(
            (ACCEPT_ALL, REJECT_ALL, *members),
            np.concatenate([row, 0.0 * row, accepts]),
            np.concatenate([zero, lower], axis=1),
            np.concatenate([zero, upper], axis=1),
            self.run.guarantee.limit,
            self.run.guarantee.group_use,
        )

    @cached_property
    def _pooled(self) -> tuple[PooledCosts, CertifiedSet]:
        """What accepting the people of each cell costs, and what may be deployed on them."""
        run, past = self.run, self.run.evidence.past
        shown = past.features, past.group if run.guarantee.group_decides else None
        costs = PooledCosts.of(self.log, shown, run.table, self.regression, self.loss)
        return costs, self._certified_set(costs.accepts.astype(np.float64))

    @cached_property
    def _robust(self) -> tuple[EstimatedLoss, FloatArray]:
        return doubly_robust(self.log, self.regression, self.loss, cap=WEIGHT_CAP)

    @cached_property
    def _estimated(self) -> tuple[CertifiedSet, FloatArray, FloatArray]:
        """What may be deployed, and the cost of accepting all people of each of its columns, per
        person, with its variance. Fitted classes: doubly robust with capped weights.
        """
        if not self.settings.fitted:
            costs, deployable = self._pooled
            return deployable, costs.cost, costs.variance
        loss, variances = self._robust
        accepts = self.run.table(loss.features, loss.group).astype(np.float64)
        cost, variance = loss.acceptance_cost / loss.rounds, variances / loss.rounds**2
        return self._certified_set(accepts), cost, variance

    # choosing

    def by_price(self, length: int) -> Chosen:
        """The certified mixture with the least J (`pricing`), and the audit coin beside it."""
        run, floor, rounds = self.run, self.floor, self.log.rounds
        costs, deployable = self._pooled
        past, groups, process = run.evidence.past, run.groups or (), run.process
        codes = group_codes(past.group, groups)
        inside = codes >= 0
        chance = self.regression.negative_probability(past.features[inside])
        most = (self._affordable(length) - floor) / max(1.0 - floor, 1e-12)
        explored_mixture = Exploration(
            deployable,
            costs,
            rates=run.guarantee.rates,
            groups=len(groups),
            group=codes[inside],
            weight=past.weight[inside],
            negative=chance,
            cell=costs.of_past[inside],
            floor=floor,
            rounds=rounds,
            length=float(length),
            ahead=max(self.rounds_ahead - length, 0.0),
            most_audits=float(np.clip(most, 0.0, 1.0)),
            more_audits=self.settings.audit_rate == "auto",
            audited=process.audits / rounds if isinstance(process, AuditProcess) else None,
        ).best(stream(run.guarantee.seed, "pricing", self.number))
        weights = (1.0 - floor) * explored_mixture.weights
        weights[0] += floor
        took = explored_mixture.steps, explored_mixture.oracle_calls, explored_mixture.halted
        policy, gaps = _deployed(deployable, weights)
        return Chosen(policy, gaps, floor, *took)

    def by_descent(self, length: int) -> Chosen:
        """Algorithm 1 among deployable mixtures, and then the audits."""
        loss, _ = self._robust
        deployable, floor = self._estimated[0], self._floor_at(loss.rounds)
        tolerated = SCHEDULE.exploration_floor(max(1, int(loss.rounds))) * SCHEDULE.regret_scale
        # psi mu = .3 / sqrt(t), also where the user has fixed mu
        descent = coordinate_descent(
            loss, deployable, exploration_floor=floor, regret_scale=tolerated / floor, sides=1
        )
        policy = descent.weights.smoothed(floor, explored(1))
        weights, ahead = self._with_audits(policy, floor, length)
        report = descent.report
        took = report.iterations, report.oracle_calls, report.halted
        policy, gaps = _deployed(deployable, weights)
        return Chosen(policy, gaps, floor, *took, ahead)

    def _with_audits(
        self, policy: Mixture, floor: float, length: int
    ) -> tuple[FloatArray, Ahead | None]:
        """Move uncertified mass between the constants, within the budget of bad accepts.

        Where accepting is a sacrifice, accept-all has at least the share that minimises the
        expected total cost. What the bandit explores beyond it stays if half of the learned weight
        is expected in time, because labels also make better rules; else it is stopped.
        """
        deployable, cost, variance = self._estimated
        weights = deployable.cautious(deployable.weights_of(policy), cost, variance)
        if self.settings.audit_rate != "auto":
            return weights, None
        free, ahead = weights[0] - floor + weights[1], None
        share = weights[0] - floor
        # if accepting is a sacrifice: will it pay?
        if self._robust[0].acceptance_cost.sum() > 0 and free > LITTLE:
            ahead = self.ahead
            if ahead is not None:
                best = ahead.prospect.best(ahead.start, ahead.horizon)
                in_time = np.isfinite(best.reaches(HALF * ahead.prospect.full))
                share = max(share, best.share * free) if in_time else best.share * free
        share = min(share, max(self._affordable(length) - floor, 0.0), free)
        weights[0], weights[1] = floor + share, free - share
        return weights, ahead

    def without_audits(self) -> tuple[Mixture, GapLimits]:
        """The best certified policy, and between which values its gaps lie."""
        deployable, cost, variance = self._estimated
        cheapest = deployable.weights_of(deployable.cheapest(cost).policy)
        return _deployed(deployable, deployable.cautious(cheapest, cost, variance))

    # forecasting

    @cached_property
    def ahead(self) -> Ahead | None:
        """What the rounds after `round` are expected to bring; None if no past people are known."""
        if not len(self.run.evidence.past.weight):
            return None
        start = float(self.round)
        return Ahead(self.number, start, self.round + self.rounds_ahead, self._prospect())

    def _prospect(self) -> Prospect:
        """Who will come, and what is known of the members: all from closed cohorts.

        A member is sure to save what it is estimated to save, less SURE standard errors.
        """
        deployable, cost, variance = self._estimated
        run, (process, groups) = self.run, self.run.running
        others = len(deployable.members) - 2 - len(process.members)
        people = ForetoldPeople.of(run, self.regression)
        shown = people.group if run.guarantee.group_decides else None
        constants = np.repeat([[1.0], [0.0]], len(people.weight), axis=1)
        # costs, and those that are sure
        costs, differs = deployable.accepts @ cost, deployable.accepts @ variance
        constant = int(np.argmin(costs[:2]))
        error = np.sqrt(np.maximum(variance.sum() - differs if constant == 0 else differs, 0.0))
        saved = np.maximum(costs[constant] - costs[2:] - SURE * error[2:], 0.0)
        # past epochs, and which processes saw them
        rounds, played, later = np.r_[0.0, 0.0, process.rounds, np.zeros(others)], [], 0.0
        for epoch, first, stop in reversed(run.closed):
            saw, length = rounds > later, float(stop - first)
            policy = self.epochs[epoch - 1].mixture
            if saw.any():
                acceptance = policy.acceptance(people.features, shown)
                played.append((length, acceptance, policy.weight_of(ACCEPT_ALL), saw))
            later += stop - first
        return Prospect(
            weight=people.weight / people.weight.sum(),
            group=group_codes(people.group, groups),
            negative=people.negative,
            accepts=np.concatenate([constants, run.table(people.features, shown)]),
            cost=costs,
            sure_cost=np.r_[costs[:2], costs[constant] - saved],
            rates=run.guarantee.rates,
            groups=len(groups),
            limit=run.guarantee.limit,
            lower=deployable.lower,
            upper=deployable.upper,
            threshold=np.pad(process.thresholds(), ((0, 0), (2, others))),
            floor=self._floor_at,
            audits_only=run.guarantee.bound not in ("betting", "nominate"),
            played=tuple(played),
        ).narrowed()


def _deployed(deployable: CertifiedSet, weights: FloatArray) -> tuple[Mixture, GapLimits]:
    """The mixture of the members with these weights, and between which values its gaps lie."""
    return deployable.mixture(weights), (deployable.lower @ weights, deployable.upper @ weights)
