"""What the claims share: populations and learners by name, runs over seeds, slopes, exact
binomial limits.

Runs are described by names and numbers, so that worker processes can be told about them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binom
from tests.claims import broken

from bench.rivals import Exp4AppleTasting, InverseGap
from evenhand.environments import (
    Discrete,
    LowerBound,
    at_the_limit,
    avoided_region,
    hard,
    lending,
    random_population,
    rare_labels,
    small_group,
    threshold_population,
)
from evenhand.fairness import FalsePositiveRate
from evenhand.learners import (
    Exp4,
    ExploreThenCommit,
    ExploringLearner,
    FairOnGathered,
    PairedRounds,
    TwoPhaseLearner,
    Unconstrained,
    Uniform,
)
from evenhand.simulation import policy_set, regret_in_set, simulate

FPR = FalsePositiveRate()
GAMMA, LIMIT, DELTA = 0.02, 0.12, 0.05
"""The comparator's gap, the limit (a slack of .1) and delta of the prototype's figures."""

POPULATIONS: dict[str, Callable[..., Discrete]] = {
    "random": random_population,
    "thresholds": threshold_population,
    "lending": lending,
    "hard": hard,
    "D1": lambda gap=1 / 16: LowerBound(1, gap),
    "D2": lambda gap=1 / 16: LowerBound(2, gap),
    "small group": small_group,
    "few negatives": lambda: rare_labels(-1),
    "few positives": lambda: rare_labels(1),
    "at the limit": lambda: at_the_limit(0.1),
    "avoided region": avoided_region,
}


def as_printed(
    hypotheses: Any, rate: Any, limit: Any, delta: float, horizon: int, **settings: Any
) -> TwoPhaseLearner:
    """The paper to the letter, which names no limit, with delta = 1/sqrt(T)."""
    gamma = settings.pop("comparator_gap")
    return TwoPhaseLearner.as_printed(hypotheses, rate, gamma, horizon**-0.5, horizon, **settings)


LEARNERS: dict[str, Callable[..., Any]] = {
    "as printed": as_printed,
    "two-phase": TwoPhaseLearner,
    "explore-then-commit": ExploreThenCommit,
    "exp4": Exp4,
    "exp4 on a fixed grid": broken.FixedGrid,
    "paired rounds": PairedRounds,
    "exp4.at": Exp4AppleTasting,
    "inverse gap": InverseGap,
    "inverse gap by a wrong regression": broken.Misspecified,
    "without importance weights": broken.Unweighted,
    "second hypothesis": broken.SecondHypothesis,
}
GREEDY: dict[str, Callable[..., Any]] = {
    "fair-on-gathered": FairOnGathered,
    "unconstrained": Unconstrained,
}


@lru_cache(maxsize=64)
def population(name: str, *arguments: float) -> Discrete:
    return POPULATIONS[name](*arguments)


@dataclass(frozen=True)
class Lifetime:
    """One run, in numbers.

    Regret is to the best gamma-fair policy; bandit_regret, after T0, to the best one in the
    learner's set.
    """

    regret: float
    bandit_regret: float
    bandit_rounds: int
    exploration: int
    worst_gap: float
    last_gap: float
    last_excess: float
    guarantee: float
    set_gap: float
    beta: float
    share_above: float
    iterations: tuple[int, ...]
    halted: bool
    oracle_calls: int


def make(learner: str, world: Discrete, horizon: int, **settings: Any) -> Any:
    """A learner by name; the gap may be given as `limit` and `comparator_gap`, another rate as
    `rate`.
    """
    if learner == "uniform":
        return Uniform()
    gap = settings.pop("limit", LIMIT)
    rate = settings.pop("rate", FPR)
    if learner in GREEDY:
        return GREEDY[learner](world.hypotheses, rate, gap, **settings)
    gamma = settings.pop("comparator_gap", GAMMA)
    delta = settings.pop("delta", DELTA)
    return LEARNERS[learner](
        world.hypotheses, rate, gap, delta, horizon, comparator_gap=gamma, **settings
    )


def lifetime(
    seed: int,
    learner: str,
    name: str,
    horizon: int,
    *,
    arguments: tuple[float, ...] = (),
    rounds: int | None = None,
    compared_with: float = GAMMA,
    **settings: Any,
) -> Lifetime:
    """Play one learner on one population.

    `compared_with` is the gamma of the regret, `rounds` may cut the run short.
    """
    world = population(name, *arguments)
    run = simulate(
        make(learner, world, horizon, **settings), world, rounds or horizon, seed, compared_with
    )
    later = np.array([phase != "explore" for phase in run.phases])
    # whoever explores as the paper does has a set of its own, once the exploration is over
    has_set = isinstance(run.learner, ExploringLearner) and run.learner.slack is not None
    inside = policy_set(run.learner, world) if has_set else None
    guarantee = run.learner.slack.guarantee if has_set else settings.get("limit", LIMIT)
    epochs = run.learner.report.epochs
    return Lifetime(
        regret=float(run.regret[-1]),
        bandit_regret=float(regret_in_set(run, world)[-1]) if has_set else float("nan"),
        bandit_rounds=int(run.lengths[later].sum()),
        exploration=int(run.lengths[~later].sum()),
        worst_gap=run.worst_gap,
        last_gap=float(run.gaps[-1]),
        last_excess=float(run.losses[-1] - run.optimum),
        guarantee=guarantee,
        set_gap=inside.worst_gap if inside else float("nan"),
        beta=inside.beta if inside else float("nan"),
        share_above=run.share_above(guarantee),
        iterations=tuple(epoch.iterations for epoch in epochs if epoch.phase == "bandit"),
        halted=all(epoch.halted for epoch in epochs),
        oracle_calls=run.oracle_calls,
    )


def lifetimes(
    seeds: Iterable[int], *what: Any, workers: int = 1, **settings: Any
) -> list[Lifetime]:
    """`lifetime` for each seed, over several processes if asked."""
    if workers == 1:
        return [lifetime(seed, *what, **settings) for seed in seeds]
    return Parallel(n_jobs=workers)(delayed(lifetime)(seed, *what, **settings) for seed in seeds)


def column(runs: Sequence[Lifetime], name: str) -> np.ndarray:
    return np.array([getattr(run, name) for run in runs], dtype=float)


def mean(runs: Sequence[Lifetime], name: str) -> float:
    return float(column(runs, name).mean())


def shown(runs: Sequence[Lifetime], name: str) -> str:
    """mean +- standard error."""
    values = column(runs, name)
    return f"{values.mean():.0f} +- {values.std(ddof=1) / np.sqrt(len(values)):.0f}"


def slope(horizons: Sequence[float], values: Sequence[float]) -> float:
    """The exponent of values ~ T^slope by least squares on logarithms."""
    return float(np.polyfit(np.log(horizons), np.log(values), 1)[0])


def slope_error(horizons: Sequence[float], samples: Sequence[np.ndarray]) -> float:
    """The standard error of `slope` of the means: relative errors of the means, carried through the
    least squares.
    """
    centred = np.log(horizons) - np.mean(np.log(horizons))
    relative = [s.std(ddof=1) / np.sqrt(len(s)) / abs(s.mean()) for s in samples]
    return float(np.sqrt(np.sum((centred * relative) ** 2)) / np.sum(centred**2))


def binomial_limit(runs: int, probability: float, false_alarm: float) -> int:
    """The least k with P[Binomial(runs, probability) > k] <= false_alarm: more than k failures
    refute `probability`.
    """
    return int(binom.ppf(1 - false_alarm, runs, probability))


def detectable(runs: int, limit: int, power: float = 0.99) -> float:
    """The least failure probability with which more than `limit` failures occur with the given
    power.
    """
    grid = np.linspace(0, 1, 2001)
    return float(grid[np.argmax(binom.sf(limit, runs, grid) >= power)])
