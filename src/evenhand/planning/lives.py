"""Simulated lives of a launch: what each way to decide would cost on the planned population, with the spread over lives.

Count-level simulation, so a life of a million people takes about a second. The union over a class enters every bound as ln(M / delta) alone; a class
of M rules is therefore simulated by the m rules of the population with delta m / M.
"""

from dataclasses import dataclass
from math import ceil, log
from typing import Any

import numpy as np

from evenhand.environments.truth import ZERO_ONE
from evenhand.fairness.bounds.slack import Dkw, JointHoeffding, people_needed
from evenhand.fairness.rates import Rate
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners import CertifiedLearner, EpochLearner, ExploreThenCommit, TwoPhaseLearner
from evenhand.planning.population import Planned
from evenhand.policies import Mixture
from evenhand.simulate import Run, simulate
from evenhand.simulate.record import promises
from evenhand.words import FloatArray, Prices

POINTS = 72
"""Rounds at which curves are kept."""


@dataclass(frozen=True)
class Terms:
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

    cost: cumulative expected cost; weight: share of the policy that is not a constant; audit: the weight of accept-all; gap: the true one.
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
    return np.unique(np.r_[np.geomspace(min(100, horizon), horizon, POINTS), np.linspace(1, horizon, 24)].round())


def live(learner: EpochLearner, planned: Planned, terms: Terms, seeds: range) -> Lives:
    """Play the learner once per seed."""
    rounds = grid(terms.horizon)
    runs = [simulate(learner, planned.world, terms.horizon, seed, terms.limit) for seed in seeds]
    weights = [np.array([_weight(p, constants=False) for p in run.policies]) for run in runs]
    audits = [np.array([_weight(p, constants=True) for p in run.policies]) for run in runs]
    return Lives(
        rounds=rounds,
        cost=np.array([_cost_at(run, rounds) for run in runs]),
        weight=np.array([_at(run, w, rounds) for run, w in zip(runs, weights, strict=True)]),
        audit=np.array([_at(run, a, rounds) for run, a in zip(runs, audits, strict=True)]),
        gap=np.array([_at(run, run.gaps, rounds) for run in runs]),
        worst_gap=np.array([run.worst_gap for run in runs]),
        audited=np.array([float(run.lengths @ a) for run, a in zip(runs, audits, strict=True)]),
        promised=all(isinstance(run.learner, CertifiedLearner) or promises(run.learner, terms.limit) for run in runs),
    )


def certified(planned: Planned, terms: Terms) -> CertifiedLearner:
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


def two_phase(planned: Planned, terms: Terms, exploration: int) -> TwoPhaseLearner:
    """The paper's algorithm, which explores as long as its own rule asks for."""
    return TwoPhaseLearner(**_settings(planned, terms), exploration_rounds=exploration)


def explore_then_commit(planned: Planned, terms: Terms) -> ExploreThenCommit:
    """Accept everybody for T^(2/3) rounds, then deploy the best policy for good."""
    return ExploreThenCommit(**_settings(planned, terms))


def exploration_rounds(planned: Planned, terms: Terms) -> float:
    """T0: people to accept until twice the slack fits between the limit and half of it; infinity if that never happens."""
    people = 1e4
    bound, delta, log_size = _bound(planned, terms)
    need = people_needed(
        bound,
        np.maximum(planned.denominators(terms.rates) * people, 1.0),
        terms.limit / 4,
        log_size=log_size,
        columns=1,
        failure_probability=delta,
    )
    return float(ceil(people * need.multiple)) if np.isfinite(need.multiple) else float("inf")


def _settings(planned: Planned, terms: Terms) -> dict[str, Any]:
    bound, delta, _ = _bound(planned, terms)
    return {
        "hypotheses": planned.world.hypotheses,
        "rate": terms.rates,
        "allowed_gap": terms.limit,
        "failure_probability": delta,
        "horizon": terms.horizon,
        "prices": terms.prices,
        "bound": bound,
        "seed": 0,
    }


def _bound(planned: Planned, terms: Terms) -> tuple[Dkw | JointHoeffding, float, float]:
    """Two-phase has the sharper of its bounds: (bound, delta, ln|H|). DKW covers thresholds on one score, whatever their number."""
    size, delta = log(len(planned.world.hypotheses)), _delta(planned, terms)
    people = np.maximum(planned.denominators(terms.rates) * 1e6, 1.0)
    union = JointHoeffding().slack(people, log_size=size, columns=1, failure_probability=delta)
    cover = Dkw().slack(people, log_size=size, columns=1, failure_probability=terms.failure_probability)
    if planned.one_score and cover < union:
        return Dkw(), terms.failure_probability, size
    return JointHoeffding(), delta, size


def _delta(planned: Planned, terms: Terms) -> float:
    return terms.failure_probability * len(planned.world.hypotheses) / planned.rules


def _weight(policy: Mixture, *, constants: bool) -> float:
    """The weight of accept-all, or of everything that is not a constant."""
    parts = zip(policy.hypotheses, policy.weights, strict=True)
    if constants:
        return float(sum(w for h, w in parts if h == ACCEPT_ALL))
    return float(sum(w for h, w in parts if h not in (ACCEPT_ALL, REJECT_ALL)))


def learned_weight(policy: Mixture) -> float:
    """How much of a policy is not a constant."""
    return _weight(policy, constants=False)


def _cost_at(run: Run, rounds: FloatArray) -> FloatArray:
    total = np.cumsum(run.lengths * run.losses)
    return np.interp(rounds, np.r_[0, run.rounds], np.r_[0.0, total])


def _at(run: Run, values: FloatArray, rounds: FloatArray) -> FloatArray:
    """The value of the epoch in which each round lies."""
    return values[np.minimum(np.searchsorted(run.rounds, rounds), len(values) - 1)]
