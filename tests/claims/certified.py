"""What the claims of the certified learner share: scenarios by name, runs in numbers, and
exact limits.

A scenario is a population with a limit, prices and rates; it is described by its name, so that
worker processes can be told about it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from tests.play import Nominated

from evenhand.environments import (
    Discrete,
    LowerBound,
    at_the_limit,
    avoided_region,
    lending,
    random_population,
    rare_labels,
    score_ladder,
    small_group,
)
from evenhand.fairness import FalsePositiveRate
from evenhand.hypotheses import ScoreThresholds
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners import CertifiedLearner
from evenhand.policies import Mixture
from evenhand.simulation import simulate
from evenhand.words import Prices

DELTA = 0.05
FPR = FalsePositiveRate()
ROUNDING = 1e-9
WAYS = ("betting", "nominate")
"""All rules of a class at once, or those that are nominated."""


@dataclass(frozen=True)
class Scenario:
    """One population with the guarantee that is made on it."""

    world: Callable[[], Discrete]
    limit: float
    prices: Prices = field(default_factory=Prices)
    thresholds: bool = False


def _ladder_gap() -> float:
    """The gap of the cheapest threshold of the ladder: as a limit it is met exactly."""
    world = score_ladder()
    return float(abs(world.gap(world.optimum(1.0)[1])))


CHEAP_ACCEPT, CHEAP_REJECT = Prices(1.0, 10.0), Prices(10.0, 1.0)
SCENARIOS: dict[str, Scenario] = {
    "random": Scenario(lambda: random_population(7, contexts=20, hypotheses=60), 0.07),
    "lending": Scenario(lending, 0.05),
    "lower bound D1": Scenario(lambda: LowerBound(1, 1 / 16), 1 / 16),
    "lower bound D2": Scenario(lambda: LowerBound(2, 1 / 16), 1 / 16),
    "a group of 5%": Scenario(small_group, 0.10),
    "base rate near 0": Scenario(lambda: rare_labels(1), 0.05, CHEAP_ACCEPT),
    "negatives near 0": Scenario(lambda: rare_labels(-1), 0.15, CHEAP_REJECT),
    "gap exactly at the limit": Scenario(lambda: at_the_limit(0.05), 0.05),
    "region never accepted": Scenario(avoided_region, 0.05),
    "prices 1:10": Scenario(
        lambda: random_population(8, contexts=20, hypotheses=60), 0.07, CHEAP_ACCEPT
    ),
    "prices 10:1": Scenario(
        lambda: random_population(9, contexts=20, hypotheses=60), 0.07, CHEAP_REJECT
    ),
}
LADDERS: dict[str, Scenario] = {
    "ladder": Scenario(score_ladder, 0.10, thresholds=True),
    "ladder, a group of 5%": Scenario(lambda: score_ladder(share=0.05), 0.15, thresholds=True),
    "ladder, base rate near 0": Scenario(
        lambda: score_ladder(base=0.95), 0.05, CHEAP_ACCEPT, thresholds=True
    ),
    "ladder, negatives near 0": Scenario(
        lambda: score_ladder(base=0.1), 0.15, CHEAP_REJECT, thresholds=True
    ),
    "ladder, gap exactly at the limit": Scenario(score_ladder, _ladder_gap(), thresholds=True),
    "ladder, prices 1:10": Scenario(score_ladder, 0.10, CHEAP_ACCEPT, thresholds=True),
    "ladder, prices 10:1": Scenario(score_ladder, 0.10, CHEAP_REJECT, thresholds=True),
    "ladder, far groups": Scenario(lambda: score_ladder(shift=0.3), 0.10, thresholds=True),
}
"""Threshold classes."""
for _seed in range(1000, 1040):
    SCENARIOS[f"random {_seed}"] = Scenario(lambda seed=_seed: random_population(seed), 0.10)
"""Fresh random populations, used for no tuning."""

SPREAD = tuple(name for name in SCENARIOS if not name.startswith("random 1"))


@lru_cache(maxsize=64)
def scenario(name: str) -> tuple[Scenario, Discrete]:
    found = {**SCENARIOS, **LADDERS}[name]
    return found, found.world()


@dataclass(frozen=True)
class CertificationRun:
    """One run in numbers.

    missed: some interval excludes the true gap of its hypothesis, or the run was suspended.
    """

    worst_gap: float
    limit: float
    missed: bool
    suspended: bool
    regret: float
    best_constant: float
    audit_bill: float
    learned_weight: float
    half_weight_at: float
    rounds: int

    @property
    def violated(self) -> bool:
        return self.worst_gap > self.limit + ROUNDING


def learner_for(
    name: str, way: str = "betting", *, limit: float | None = None, **settings: Any
) -> CertifiedLearner:
    told, world = scenario(name)
    hypotheses = ScoreThresholds() if told.thresholds else world.hypotheses
    if way == "nominate":
        hypotheses = Nominated(hypotheses)
    given = {"prices": told.prices, **settings}
    return CertifiedLearner(hypotheses, FPR, limit or told.limit, DELTA, **given)


def live(
    seed: int,
    name: str,
    way: str = "betting",
    rounds: int = 20_000,
    compared_with: float | None = None,
    **settings: Any,
) -> CertificationRun:
    """Play one run;
    regret is to the best policy with gap compared_with (default: the limit).
    """
    _, world = scenario(name)
    learner = learner_for(name, way, **settings)
    prices = learner.prices
    run = simulate(learner, world, rounds, seed, compared_with or learner.limit)
    weights = np.array([learned(policy) for policy in run.policies])
    above = np.flatnonzero(weights > 0.5)
    return CertificationRun(
        worst_gap=run.worst_gap,
        limit=learner.limit,
        missed=missed(run.learner, world),
        suspended=run.learner.state.run > 1,
        regret=float(run.regret[-1]),
        best_constant=rounds * float(constants(world, prices).min() - run.optimum),
        audit_bill=audit_bill(run, world, prices),
        learned_weight=float(weights[-1]),
        half_weight_at=float(np.r_[0, run.rounds][above[0]]) if len(above) else np.inf,
        rounds=rounds,
    )


def learned(policy: Mixture) -> float:
    """The weight of the policy that is not on constants."""
    return sum(
        w for h, w in zip(policy.hypotheses, policy.weights, strict=True) if not _constant(h)
    )


def _constant(hypothesis: Any) -> bool:
    return hypothesis in (ACCEPT_ALL, REJECT_ALL)


def constants(world: Discrete, prices: Prices) -> np.ndarray:
    """The losses of accept-all and reject-all."""
    positive = float(world.probability @ world.positive_rate)
    return np.array([(1 - positive) * prices.false_accept, positive * prices.false_reject])


def audit_bill(run: Any, world: Discrete, prices: Prices) -> float:
    """What the weight of accept-all cost above the best constant: people accepted in order to
    learn.
    """
    accept, reject = constants(world, prices)
    weights = [policy.weight_of(ACCEPT_ALL) for policy in run.policies]
    return float(max(accept - reject, 0.0) * (run.lengths @ np.array(weights)))


def true_gaps(learner: CertifiedLearner, world: Discrete) -> np.ndarray:
    """(gaps, members) on the population."""
    members, _, _ = learner.state.certified()
    return np.stack(
        [world.gaps(Mixture((h,), (1.0,), learner.group_use), learner.rates) for h in members],
        axis=1,
    )


def missed(learner: CertifiedLearner, world: Discrete) -> bool:
    """Whether the learner's intervals exclude a truth.

    They only ever shrink, so the last ones tell about all before.
    """
    if learner.state.run > 1 or learner.state.alarms:
        return True
    if learner.state.process is None or not learner.state.process.members:
        return False
    _, lo, hi = learner.state.certified()
    gaps = true_gaps(learner, world)
    return bool(((gaps < lo - ROUNDING) | (gaps > hi + ROUNDING)).any())


def lives(
    jobs: Iterable[tuple[int, str] | tuple[int, str, str]], workers: int = 1, **settings: Any
) -> list[CertificationRun]:
    """`live` for each (seed, scenario) or (seed, scenario, way); in several processes if asked."""
    if workers == 1:
        return [live(*job, **settings) for job in jobs]
    return Parallel(n_jobs=workers)(delayed(live)(*job, **settings) for job in jobs)
