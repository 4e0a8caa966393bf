"""Which policy is deployed next: a choice among certified mixtures, from closed cohorts alone.

`PlanningInputs` is what is known when an epoch is planned. For enumerable classes (finite ones,
thresholds and stumps) the certified mixture (`deployable`) with the least J (`objective`) is
deployed, at costs that are known as well as their posterior says (`cost_posterior`); fitted classes
use Algorithm 1, with the audits that `forecast` expects to pay.

**Validity.** Nothing here enters the certificate. Q is computed from closed cohorts before the
coins of its epoch are tossed. It is a mixture of members and constants that meets the limit for all
values that the intervals allow, mixing it with accept-all keeps it so, and mu > 0 keeps every
probability of being accepted above 0. So what is deployed is predictable and certified, whatever
the forecasts are worth: a poor one costs regret.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from evenhand.algorithms.certified.cost_posterior import PooledCosts, robust_costs
from evenhand.algorithms.certified.deployable import CertifiedSet
from evenhand.algorithms.certified.evidence import PastPeople, group_codes
from evenhand.algorithms.certified.forecast import HALF, LITTLE, Prospect
from evenhand.algorithms.certified.nominate import PredictedOutcomes
from evenhand.algorithms.certified.objective import Exploration
from evenhand.algorithms.certified.state import AcceptedShareEnds, CertifiedState, GapEnds
from evenhand.bandit import PracticalSchedule, coordinate_descent, explored_constants
from evenhand.estimation import EstimatedLoss, RoundLog, TransformedLoss
from evenhand.estimation.outcomes import OutcomeRegression, fit_outcomes
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.rounds import Rounds
from evenhand.words import BoolArray, FloatArray, LabelledSample

MOST_OF_CAP = 0.5
"""The floor of the audit coin has at most this part of a cap."""
SCHEDULE = PracticalSchedule(scale=0.3)
"""mu_t = .3 / sqrt(t): for fitted classes the floor of the audit coin, and the regret that the
bandit tolerates."""
PRICED_SCHEDULE = PracticalSchedule(scale=0.15)
"""Where exploration is priced, J tosses the coin as often as labels are worth it; the floor only
keeps every probability above 0."""
AUDIT_Z = 2.0
"""Audits are spent for what a learned policy saves beyond so many standard errors."""


@dataclass(frozen=True, eq=False)
class Outlook:
    """What was known of the rounds ahead when epoch `number` began, after `start` rounds."""

    number: int
    start: float
    horizon: float
    prospect: Prospect


@dataclass(frozen=True, eq=False)
class Choice:
    """The policy of an epoch, between which values its gaps and its accepted share lie, and what it
    took to choose it.
    """

    policy: Mixture
    gaps: GapEnds
    accepted: AcceptedShareEnds | None
    floor: float
    steps: int
    oracle_calls: int
    halted: bool


@dataclass(frozen=True, eq=False)
class PlanningInputs:
    """What is known when epoch `number` is planned, after `round` rounds: all from closed cohorts.

    log: all resolved rounds, or some that stand for all; observed: the same rows as they were seen;
    past: people who are kept for forecasts; audits: audited people, where
    hypotheses are nominated; loss: prices and their normaliser; budget_left: bad accepts that
    audits may still cost; aim: the accepted share that spreads a quota over its period.
    """

    audit_rate: float | Literal["auto"]
    horizon: int | None
    state: CertifiedState
    rounds: Rounds
    log: RoundLog
    observed: RoundLog
    past: PastPeople
    audits: list[LabelledSample]
    loss: TransformedLoss
    number: int
    round: int
    budget_left: float
    aim: float = 1.0

    @property
    def floor(self) -> float:
        """mu: the weight of accept-all that every policy has."""
        return self._floor_at(self.log.rounds)

    def _floor_at(self, rounds: float) -> float:
        if self.audit_rate != "auto":
            return float(self.audit_rate)
        guarantee = self.state.guarantee
        schedule = SCHEDULE if guarantee.nominates else PRICED_SCHEDULE
        floor = schedule.exploration_floor(max(1, int(rounds)))
        if not guarantee.nominates:
            # Whoever met a part kappa of the people would toss a coin of scale / sqrt(kappa t) for
            # them: sqrt(kappa) scale / sqrt(t) of all. A cap asks for no more.
            floor *= math.sqrt(guarantee.most)
        return min(floor, MOST_OF_CAP * min(guarantee.most, self.aim))

    @property
    def rounds_ahead(self) -> float:
        """Rounds ahead; without a horizon nine times as many as so far, and some."""
        if self.horizon is None:
            return max(float(9 * self.round + 20_000), 1.0)
        return max(float(self.horizon - self.round), 1.0)

    def _affordable(self, length: int) -> float:
        """The weight of accept-all for which an epoch's bad accepts stay within the budget."""
        evidence = self.state.evidence
        bad = evidence.negatives / evidence.accepted if evidence.accepted else 0.5
        return self.budget_left / (length * max(bad, 1e-3))

    @cached_property
    def regression(self) -> OutcomeRegression:
        """m(x) = P[y = -1 | x], from all labels."""
        return fit_outcomes(self.observed)

    # what may be deployed, and what it costs

    def _certified_set(self, accepts: BoolArray) -> CertifiedSet:
        """The certified hypotheses and the constants, whose gaps are zero, on some rows."""
        members, lower, upper = self.state.certified()
        # the same memory layout as `accepts`: the last bits of products with it depend on that
        layout: Literal["F", "C"] = "F" if accepts.flags.f_contiguous else "C"
        decides = np.empty((2 + len(accepts), accepts.shape[1]), order=layout)
        decides[0] = 1.0
        decides[1] = 0.0
        decides[2:] = accepts
        zero = np.zeros((len(lower), 2))
        guarantee = self.state.guarantee
        accepted_shares = None
        if guarantee.limits_acceptance:
            constants = np.tile([1.0, 0.0], (3, 1))
            accepted_shares = np.concatenate([constants, self.state.accepted_share_ends()], axis=1)
        expected = None
        if self.aim < 1.0 and self.past.weight.sum() > 0:
            shown = self.past.group if guarantee.group_decides else None
            fraction = self.past.weight / self.past.weight.sum()
            expected = np.r_[1.0, 0.0, self.state.table(self.past.features, shown) @ fraction]
        return CertifiedSet(
            (ACCEPT_ALL, REJECT_ALL, *members),
            decides,
            np.concatenate([zero, lower], axis=1),
            np.concatenate([zero, upper], axis=1),
            guarantee.limit,
            guarantee.group_use,
            accepted_shares,
            guarantee.most,
            guarantee.least if guarantee.least <= self.aim else 0.0,
            aim=self.aim,
            expected=expected,
        )

    @cached_property
    def pooled(self) -> tuple[PooledCosts, CertifiedSet]:
        """What accepting the people of each cell costs, and what may be deployed on them."""
        group = self.past.group if self.state.guarantee.group_decides else None
        costs = PooledCosts.of(
            self.log,
            (self.past.features, group),
            self.state.table,
            self.regression,
            self.loss,
            self.observed,
        )
        return costs, self._certified_set(costs.accepts)

    @cached_property
    def _robust(self) -> tuple[EstimatedLoss, FloatArray]:
        return robust_costs(self.log, self.observed, self.regression, self.loss)

    @cached_property
    def _estimated(self) -> tuple[CertifiedSet, FloatArray, FloatArray]:
        """What may be deployed, and the cost of accepting all people of each of its columns, per
        person, with its variance. Fitted classes: doubly robust with capped weights.
        """
        if not self.state.guarantee.nominates:
            costs, deployable = self.pooled
            return deployable, costs.cost, costs.variance
        loss, variances = self._robust
        accepts = self.state.table(loss.features, loss.group)
        cost = loss.acceptance_cost / loss.rounds
        variance = variances / loss.rounds**2
        return self._certified_set(accepts), cost, variance

    # choosing

    def by_price(self, length: int) -> Choice:
        """The certified mixture with the least J, and the audit coin beside it."""
        state = self.state
        floor = self.floor
        rounds = self.log.rounds
        groups = state.groups or ()
        costs, deployable = self.pooled
        codes = group_codes(self.past.group, groups)
        inside = codes >= 0
        found = Exploration(
            deployable,
            costs,
            rates=state.guarantee.rates,
            groups=len(groups),
            group=codes[inside],
            weight=self.past.weight[inside],
            negative=self.regression.negative_probability(self.past.features[inside]),
            cell=costs.of_past[inside],
            floor=floor,
            rounds=rounds,
            length=float(length),
            ahead=max(self.rounds_ahead - length, 0.0),
            more_audits=self.audit_rate == "auto",
        ).with_audit_coin(
            self._affordable(length), stream(state.guarantee.seed, "pricing", self.number)
        )
        policy, gaps, accepted = _deployed(deployable, found.weights)
        return Choice(policy, gaps, accepted, floor, found.steps, found.oracle_calls, found.halted)

    def by_algorithm_1(self, length: int) -> Choice:
        """Algorithm 1 among deployable mixtures, and then the audits: uncertified mass moves
        between the constants, within the budget of bad accepts.

        Where accepting is a sacrifice, accept-all has at least the part that minimises the
        expected total cost. What the bandit explores beyond it stays if half of the learned weight
        is expected in time, because labels also make better rules; else it is stopped.
        """
        loss, _ = self._robust
        deployable, cost, variance = self._estimated
        floor = self._floor_at(loss.rounds)
        # psi mu = .3 / sqrt(t), also where the user has fixed mu
        tolerated = SCHEDULE.exploration_floor(max(1, int(loss.rounds))) * SCHEDULE.regret_scale
        oracle = deployable.beside_audit_coin(floor)
        descent = coordinate_descent(
            loss, oracle, exploration_floor=floor, regret_scale=tolerated / floor, sides=1
        )
        smoothed = descent.weights.smoothed(floor, explored_constants(1))
        weights = deployable.cautious(deployable.weights_of(smoothed), cost, variance)
        if self.audit_rate == "auto":
            free = weights[0] - floor + weights[1]
            audited = weights[0] - floor
            # if accepting is a sacrifice: will it pay?
            outlook = None
            if loss.acceptance_cost.sum() > 0 and free > LITTLE:
                outlook = self.outlook
            if outlook is not None:
                best = outlook.prospect.best(outlook.start, outlook.horizon)
                in_time = np.isfinite(best.reaches(HALF * outlook.prospect.full))
                audited = (
                    max(audited, best.audit_part * free) if in_time else best.audit_part * free
                )
            audited = min(audited, max(self._affordable(length) - floor, 0.0), free)
            weights[0] = floor + audited
            weights[1] = free - audited
        kept = deployable.repair_cap(weights, floor)
        if kept[0] > self._affordable(length):  # the audit budget outranks the floor of a cap
            kept = deployable.without_floor().repair_cap(weights, floor)
        policy, gaps, accepted = _deployed(deployable, kept)
        report = descent.report
        took = (report.iterations, report.oracle_calls, report.halted)
        return Choice(policy, gaps, accepted, floor, *took)

    def without_audits(self) -> tuple[Mixture, GapEnds, AcceptedShareEnds | None]:
        """The best certified policy without accept-all, and between which values its gaps and its
        accepted share lie.
        """
        deployable, cost, variance = self._estimated
        nobody_audited = replace(deployable.without_floor(), lotteries=(0.0, 0.0))
        program, _ = nobody_audited.programs(0.0)
        cheapest = program.cheapest(deployable.accepts @ cost)
        return _deployed(deployable, nobody_audited.cautious(cheapest, cost, variance))

    # forecasting

    @cached_property
    def outlook(self) -> Outlook | None:
        """What the rounds after `round` are expected to bring; None if no past people are known."""
        if not len(self.past.weight):
            return None
        horizon = self.round + self.rounds_ahead
        return Outlook(self.number, float(self.round), horizon, self.prospect.narrowed())

    @cached_property
    def prospect(self) -> Prospect:
        """Who will come, and what is known of the members: all from closed cohorts.

        A member is sure to save what it is estimated to save, less AUDIT_Z standard errors.
        """
        state = self.state
        deployable, cost, variance = self._estimated
        process, groups = state.running
        others = len(deployable.members) - 2 - len(process.members)
        people = PredictedOutcomes.of(groups, self.past, self.audits, self.regression)
        shown = people.group if state.guarantee.group_decides else None
        constants = np.repeat([[1.0], [0.0]], len(people.weight), axis=1)
        # costs, and those that are sure
        costs = deployable.accepts @ cost
        differs = deployable.accepts @ variance
        constant = int(np.argmin(costs[:2]))
        error = np.sqrt(np.maximum(variance.sum() - differs if constant == 0 else differs, 0.0))
        saved = np.maximum(costs[constant] - costs[2:] - AUDIT_Z * error[2:], 0.0)
        # past epochs, and which processes saw them
        rounds = np.r_[0.0, 0.0, process.rounds, np.zeros(others)]
        played = []
        later = 0.0
        for epoch, first, stop in reversed(state.spans):
            saw = rounds > later
            policy = self.rounds.mixture(epoch)
            if saw.any():
                acceptance = policy.acceptance(people.features, shown)
                played.append((float(stop - first), acceptance, saw))
            later += stop - first
        return Prospect(
            weight=people.weight / people.weight.sum(),
            group=group_codes(people.group, groups),
            negative=people.negative,
            accepts=np.concatenate([constants, state.table(people.features, shown)]),
            cost=costs,
            sure_cost=np.r_[costs[:2], costs[constant] - saved],
            rates=state.guarantee.rates,
            groups=len(groups),
            limit=state.guarantee.limit,
            lower=deployable.lower,
            upper=deployable.upper,
            threshold=np.pad(process.thresholds(), ((0, 0), (2, others))),
            floor=self._floor_at,
            accepted=None if deployable.accepted_shares is None else deployable.accepted_shares[2],
            most=state.guarantee.most,
            played=tuple(played),
        )


def _deployed(
    deployable: CertifiedSet, weights: FloatArray
) -> tuple[Mixture, GapEnds, AcceptedShareEnds | None]:
    """The mixture of the members with these weights, and between which values its gaps and the
    share that it accepts lie.
    """
    gaps = (deployable.lower @ weights, deployable.upper @ weights)
    return deployable.mixture(weights), gaps, deployable.accepted(weights)
