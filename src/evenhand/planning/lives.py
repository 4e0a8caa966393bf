"""Simulated lives of a launch: what each way to decide would cost on the planned population, with
the spread over lives.

Count-level simulation, so a life of a million people takes about a second. The union over a class
enters every bound as ln(M / delta) alone; a class of M rules is therefore simulated by the m rules
of the population with delta m / M.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf, log
from typing import Any

import numpy as np

from evenhand.bounds import BettingBound, JointHoeffding, people_needed
from evenhand.contracts import Policy
from evenhand.environments.population import ZERO_ONE
from evenhand.fairness.rates import Rate
from evenhand.learners import CertifiedLearner, EpochLearner, ExploreThenCommit, TwoPhaseLearner
from evenhand.learners.certified.cohorts import group_codes
from evenhand.learners.certified.forecast import Prospect, RateForecast, epoch_length
from evenhand.learners.certified.learner import FIRST_FITTED, FIRST_ROUNDS
from evenhand.learners.certified.run import FIRST_PEOPLE, LATER_GROUPS
from evenhand.planning.population import Planned
from evenhand.simulate import Run, simulate
from evenhand.simulate.record import audit_weight, learned_weight, promises
from evenhand.words import FloatArray, Prices

POINTS = 72
"""Rounds at which curves are kept."""


@dataclass(frozen=True)
class LaunchTerms:
    """What is promised and what errors cost: the limit, delta, T, the rates and the prices."""

    limit: float
    failure_probability: float
    horizon: int
    rates: tuple[Rate, ...]
    prices: Prices = ZERO_ONE
    audit_budget: float | None = None


@dataclass(frozen=True, eq=False)
class Lives:
    """Several lives of one learner on a grid of rounds, one row per life.

    cost: cumulative expected cost; weight: share of the policy that is not a constant; audit: the
    weight of accept-all; gap: the true one.
    """

    rounds: FloatArray
    cost: FloatArray
    weight: FloatArray
    audit: FloatArray
    gap: FloatArray
    worst_gap: FloatArray
    audited: FloatArray
    promised: bool


def grid(horizon: int) -> FloatArray:
    """Rounds from the first epoch to the horizon, dense at both ends."""
    return np.unique(
        np.r_[np.geomspace(min(100, horizon), horizon, POINTS), np.linspace(1, horizon, 24)].round()
    )


def live(learner: EpochLearner, planned: Planned, terms: LaunchTerms, seeds: range) -> Lives:
    """Play the learner once per seed."""
    rounds = grid(terms.horizon)
    runs = [simulate(learner, planned.world, terms.horizon, seed, terms.limit) for seed in seeds]
    weights = [np.array([learned_weight(p) for p in run.policies]) for run in runs]
    audits = [
        np.array([audit_weight(p) * (phase != "frozen") for p, phase in _deployed(run)])
        for run in runs
    ]
    return Lives(
        rounds=rounds,
        cost=np.array([_cost_at(run, rounds) for run in runs]),
        weight=np.array([_at(run, w, rounds) for run, w in zip(runs, weights, strict=True)]),
        audit=np.array([_at(run, a, rounds) for run, a in zip(runs, audits, strict=True)]),
        gap=np.array([_at(run, run.gaps, rounds) for run in runs]),
        worst_gap=np.array([run.worst_gap for run in runs]),
        audited=np.array([float(run.lengths @ a) for run, a in zip(runs, audits, strict=True)]),
        promised=all(promises(run.learner, terms.limit) for run in runs),
    )


def certified(planned: Planned, terms: LaunchTerms) -> CertifiedLearner:
    """The certified learner."""
    return CertifiedLearner(
        planned.world.hypotheses,
        terms.rates,
        terms.limit,
        _delta(planned, terms),
        horizon=terms.horizon,
        prices=terms.prices,
        audit_budget=terms.audit_budget,
        seed=0,
    )


def foreseen(planned: Planned, terms: LaunchTerms) -> tuple[RateForecast, ...]:
    """What the certified learner would expect on the planned population after its first rounds: the
    forecast by which it audits.

    Nothing is simulated: the regression is right, costs and gaps are known, and every process
    starts from nothing.
    """
    learner, world = certified(planned, terms), planned.world
    groups = world.population_sample().groups
    table = np.array(
        [row for row in world.accepts if row.any() and not row.all()], dtype=np.float64
    )
    shape = (len(terms.rates) * len(groups) * (len(groups) - 1) // 2, len(table))
    if shape[1] == 0:
        return ()
    delta = (1.0 - LATER_GROUPS) * learner._promise().share(1)
    bound = BettingBound(groups, terms.rates, len(table), delta)
    accepts = np.concatenate([np.repeat([[1.0], [0.0]], len(world), axis=1), table])
    fa, fr = (
        float(np.max(price)) for price in (terms.prices.false_accept, terms.prices.false_reject)
    )
    negative = 1.0 - world.positive_rate
    cost = accepts @ (world.probability * (negative * fa - world.positive_rate * fr))
    prospect = Prospect(
        weight=world.probability,
        group=group_codes(world.group, groups),
        negative=negative,
        accepts=accepts,
        cost=cost,
        sure_cost=cost,
        rates=terms.rates,
        groups=len(groups),
        limit=terms.limit,
        lower=np.concatenate([np.zeros((shape[0], 2)), np.full(shape, -1.0)], axis=1),
        upper=np.concatenate([np.zeros((shape[0], 2)), np.full(shape, 1.0)], axis=1),
        threshold=np.pad(np.tile(bound.pair_thresholds.T, (len(terms.rates), 1)), ((0, 0), (2, 0))),
        floor=lambda t: learner.schedule.exploration_floor(int(t)),
    ).narrowed()
    start = (
        float(np.clip(terms.horizon // 100, FIRST_ROUNDS, FIRST_FITTED))
        if planned.fitted
        else float(FIRST_ROUNDS)
    )
    rarest = float(planned.denominators(terms.rates).min())
    while start * rarest < FIRST_PEOPLE and start < terms.horizon:
        start += epoch_length(start)
    horizon = float(terms.horizon)
    return prospect.forecasts(prospect.course(min(start, horizon - 1.0), horizon), horizon)


def two_phase(planned: Planned, terms: LaunchTerms, exploration: int) -> TwoPhaseLearner:
    """The paper's algorithm, which explores as long as its own rule asks for."""
    return TwoPhaseLearner(**_settings(planned, terms), exploration_rounds=exploration)


def explore_then_commit(
    planned: Planned, terms: LaunchTerms, exploration: int
) -> ExploreThenCommit:
    """Accept everybody for a while, then deploy the best policy for good."""
    return ExploreThenCommit(**_settings(planned, terms), exploration_rounds=exploration)


def two_phase_exploration(planned: Planned, terms: LaunchTerms) -> float:
    """T0 of the paper's algorithm: until twice the slack fits between the limit and half of it, the
    gap that it competes with.
    """
    return _rounds_until(planned, terms, terms.limit / 4)


def commit_exploration(planned: Planned, terms: LaunchTerms) -> float:
    """T0 of explore-then-commit: T^(2/3), but at least until half of the limit is left for the
    policy.
    """
    return max(
        float(ceil(terms.horizon ** (2 / 3))), _rounds_until(planned, terms, terms.limit / 2)
    )


def _rounds_until(planned: Planned, terms: LaunchTerms, slack: float) -> float:
    """Expected people to accept until the slack is that small; infinity if it never is."""
    log_size, delta = log(len(planned.world.hypotheses)), _delta(planned, terms)

    def beta(counts: FloatArray) -> float:
        return JointHoeffding().slack(
            counts, log_size=log_size, columns=1, failure_probability=delta
        )

    need = people_needed(beta, np.maximum(planned.denominators(terms.rates), 1e-9), slack)
    return float(ceil(need.multiple)) if np.isfinite(need.multiple) else inf


def _settings(planned: Planned, terms: LaunchTerms) -> dict[str, Any]:
    return {
        "hypotheses": planned.world.hypotheses,
        "rate": terms.rates,
        "allowed_gap": terms.limit,
        "failure_probability": _delta(planned, terms),
        "horizon": terms.horizon,
        "prices": terms.prices,
        "bound": JointHoeffding(),
        "seed": 0,
    }


def _delta(planned: Planned, terms: LaunchTerms) -> float:
    return terms.failure_probability * len(planned.world.hypotheses) / planned.rules


def _deployed(run: Run[EpochLearner]) -> Iterator[tuple[Policy, str]]:
    """(policy, phase) of each epoch; once the audit budget is spent ("frozen"), accept-all is a
    constant like the other.
    """
    return zip(run.policies, run.phases, strict=True)


def _cost_at(run: Run[EpochLearner], rounds: FloatArray) -> FloatArray:
    total = np.cumsum(run.lengths * run.losses)
    return np.interp(rounds, np.r_[0, run.rounds], np.r_[0.0, total])


def _at(run: Run[EpochLearner], values: FloatArray, rounds: FloatArray) -> FloatArray:
    """The value of the epoch in which each round lies."""
    return values[np.minimum(np.searchsorted(run.rounds, rounds), len(values) - 1)]
