"""Two figures over many runs: what a longer exploration buys and costs (`tradeoff`), and what a
promised limit costs (`promise_cost`).

The trade-off of the paper's main theorem: exploring T^(2 alpha) rounds buys a gap of order
T^(-alpha). For each exponent alpha in [1/4, 1/2] and each horizon T, over seeds:

    excess gap    max over the learner's set Pi of |gap on D|, minus gamma;
                  theory: slope -alpha in T
    cost          regret of the exploration, plus the bandit's regret to the best policy in Pi;
                  theory: slope 2 alpha (up to 1)

The cost of a promise, per person:

    best without a limit + price of the limit    + price of learning and certifying it
    = opt(1)             + (opt(limit) - opt(1)) + (mean loss of the learner - opt(limit))
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from evenhand.contracts import HypothesisClass, Json
from evenhand.environments.population import TablePopulation
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import Rate
from evenhand.learners import CertifiedLearner, TwoPhaseLearner
from evenhand.simulate.compare import RunToPlay, play_all
from evenhand.simulate.record import RunRecord, constant_costs
from evenhand.words import FloatArray

EXPONENTS = (1 / 4, 1 / 3, 1 / 2)
HORIZONS = 5
"""How many horizons, from T/10 to 10 T."""
TABLES = "lending, random, thresholds, lower-bound or hard"
LIMITS = (0.02, 0.04, 0.07, 0.12, 0.2)
MOST_SEEDS = 3
"""Runs per limit at most: the figure shows a trend, not a claim."""


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """What longer explorations bought and cost: means over seeds.

    Parameters
    ----------
    exponents : tuple of float
        The exponents alpha.
    horizons : tuple of int
        The horizons T.
    seeds : tuple of int
        The seeds of each mean.
    comparator_gap : float
        gamma.
    excess_gap, cost, explored : array of float
        (exponents, horizons): the worst gap in the set beyond gamma, the regret of the exploration
        plus the regret inside the set, and the rounds explored.

    Examples
    --------
    >>> import numpy as np
    >>> gap = np.array([[0.2, 0.1]])
    >>> measured = Tradeoff((0.25,), (100, 1600), (0,), 0.02, gap, 1 / gap**2, 1 / gap)
    >>> round(measured.slope(0, "excess_gap"), 2), round(measured.slope(0, "cost"), 2)
    (-0.25, 0.5)
    >>> measured.to_json()["horizons"]
    [100, 1600]
    """

    exponents: tuple[float, ...]
    horizons: tuple[int, ...]
    seeds: tuple[int, ...]
    comparator_gap: float
    excess_gap: FloatArray
    cost: FloatArray
    explored: FloatArray

    def slope(self, row: int, what: str) -> float:
        """Return the least-squares slope of log(what) against log T for one exponent.

        Parameters
        ----------
        row : int
            The place of the exponent.
        what : {"excess_gap", "cost"}
            What grows or falls with T.

        Returns
        -------
        float
            The slope; NaN if a value is not positive.
        """
        values = np.asarray(getattr(self, what))[row]
        if not (values > 0).all():
            return float("nan")
        return float(np.polyfit(np.log(self.horizons), np.log(values), 1)[0])

    def to_json(self) -> Json:
        """Return the measures as plain JSON, with the slopes.

        Returns
        -------
        dict
            One entry per field, and "slopes", where a slope that does not exist is null.
        """
        plain = {
            one.name: value.tolist() if isinstance(value, np.ndarray) else value
            for one in fields(self)
            for value in [getattr(self, one.name)]
        }
        for name in ("exponents", "horizons", "seeds"):
            plain[name] = list(plain[name])
        slopes = {
            what: [self.slope(row, what) for row in range(len(self.exponents))]
            for what in ("excess_gap", "cost")
        }
        plain["slopes"] = {
            what: [slope if np.isfinite(slope) else None for slope in row]
            for what, row in slopes.items()
        }
        return plain


def tradeoff(
    environment: Any,
    hypotheses: HypothesisClass,
    rate: Rate,
    rounds: int,
    seeds: Sequence[int],
    *,
    comparator_gap: float,
    failure_probability: float,
    exponents: Sequence[float] = EXPONENTS,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Tradeoff:
    """Play the two-phase learner at each exponent and horizon.

    Parameters
    ----------
    environment : TablePopulation
        A population that is a table; elsewhere the learner's set has no known truth.
    hypotheses : HypothesisClass
        The class of the learner.
    rate : Rate
        The rate whose gap is limited.
    rounds : int
        The horizons reach from a tenth of this to ten times as many.
    seeds : sequence of int
        One run per seed, exponent and horizon.
    comparator_gap : float
        gamma, the gap of the policies that the learner competes with.
    failure_probability : float
        delta.
    exponents : sequence of float
        The exponents alpha.
    jobs : int
        How many processes do the work.
    progress : callable, optional
        Called with the number of runs that are finished.

    Returns
    -------
    Tradeoff
        Means over the seeds.

    Raises
    ------
    InvalidInput
        If the population is not a table, there are fewer than 1000 rounds, or a run did not finish
        its exploration.

    Notes
    -----
    The main theorem of the paper: T_0 = T^(2 alpha) rounds of exploration give a gap of
    gamma + O(T^(-alpha)) and a regret of O(T^(2 alpha)).

    Examples
    --------
    >>> import evenhand as eh
    >>> world = eh.environments.lending()
    >>> measured = tradeoff(
    ...     world, world.hypotheses, eh.FalsePositiveRate(), 1_000, [0],
    ...     comparator_gap=0.02, failure_probability=0.05, exponents=[1 / 2],
    ... )
    >>> measured.horizons
    (100, 316, 1000, 3162, 10000)
    """
    if not isinstance(environment, TablePopulation):
        raise InvalidInput(
            f"the truth about a learner's set is not known on {type(environment).__name__}, "
            "so there is no trade-off to measure.",
            hint=f"use a population that is a table: {TABLES}.",
        )
    if rounds < 1000:
        raise InvalidInput(
            f"the trade-off is measured from a tenth of {rounds} rounds to ten times as many; "
            "it needs at least 1000."
        )
    horizons = tuple(int(h) for h in np.geomspace(rounds / 10, rounds * 10, HORIZONS).round())
    tasks, settings = [], (hypotheses, rate, None, failure_probability)
    for alpha, horizon in product(exponents, horizons):
        learner = TwoPhaseLearner(
            *settings, horizon, comparator_gap=comparator_gap, tradeoff_exponent=alpha
        )
        play = partial(RunToPlay, regret_gap=comparator_gap, limit=1.0)
        tasks += [play(learner, environment, horizon, seed) for seed in seeds]
    measures = np.array([_gap_cost_explored(run) for run in play_all(tasks, jobs, progress)])
    shape = (len(exponents), len(horizons), len(seeds))
    gaps, cost, explored = (column.reshape(shape).mean(axis=2) for column in measures.T)
    grid = (tuple(exponents), horizons, tuple(seeds))
    return Tradeoff(*grid, comparator_gap, gaps - comparator_gap, cost, explored)


def _gap_cost_explored(run: RunRecord) -> tuple[float, float, float]:
    if run.worst_gap_in_set is None:
        raise InvalidInput(
            f"a run of {run.rounds[-1]} rounds (seed {run.seed}) did not finish its exploration, "
            "so it has no set to measure.",
            hint="use more rounds.",
        )
    cost = run.exploration_regret + (run.regret_in_set or 0.0)
    return run.worst_gap_in_set, cost, float(run.explored)


@dataclass(frozen=True)
class PromiseCost:
    """What promising a limit costs per person, over a grid of limits.

    Parameters
    ----------
    limits : tuple of float
        The limits; the fields below have one entry per limit.
    learner, low, high : tuple of float
        The mean, the least and the largest cost of the simulated runs.
    optimum : tuple of float
        The cost of the best policy within the limit.
    unlimited : float
        The cost of the best policy without a limit.
    constant : float
        The cost of the better constant.
    rounds : int
        Rounds of each run.
    seeds : tuple of int
        The seeds of each mean.

    Examples
    --------
    >>> cost = PromiseCost(
    ...     limits=(0.05, 0.1), learner=(0.35, 0.33), low=(0.34, 0.32), high=(0.36, 0.34),
    ...     optimum=(0.3, 0.28), unlimited=0.26, constant=0.41, rounds=8_000, seeds=(0, 1),
    ... )
    >>> PromiseCost.from_json(cost.to_json()) == cost
    True
    """

    limits: tuple[float, ...]
    learner: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    optimum: tuple[float, ...]
    unlimited: float
    constant: float
    rounds: int
    seeds: tuple[int, ...]

    def to_json(self) -> Json:
        """Return the costs as plain JSON.

        Returns
        -------
        dict
            One entry per field.
        """
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "PromiseCost":
        """Read what `to_json` wrote.

        Parameters
        ----------
        document : mapping
            What `to_json` returned.

        Returns
        -------
        PromiseCost
            The same costs.
        """
        plain: dict[str, Any] = {one.name: document[one.name] for one in fields(cls)}
        for name, value in plain.items():
            plain[name] = tuple(value) if isinstance(value, list) else value
        return cls(**plain)


def promise_cost(
    make: Callable[[float], CertifiedLearner],
    environment: Any,
    rounds: int,
    seeds: Sequence[int],
    limits: Sequence[float] = LIMITS,
    *,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> PromiseCost:
    """Play the certified learner over a grid of limits, and tell what each limit costs.

    Parameters
    ----------
    make : callable
        From a limit to a learner that promises it.
    environment : Environment
        The population.
    rounds : int
        Rounds of each run.
    seeds : sequence of int
        One run per seed and limit, of at most three seeds.
    limits : sequence of float
        The grid.
    jobs : int
        How many processes do the work.
    progress : callable, optional
        Called with the number of runs that are finished.

    Returns
    -------
    PromiseCost
        Costs per person.

    Examples
    --------
    >>> import evenhand as eh
    >>> world = eh.environments.lending()
    >>> def certified(limit):
    ...     return eh.CertifiedLearner(world.hypotheses, eh.FalsePositiveRate(), limit, 0.05)
    >>> cost = promise_cost(certified, world, rounds=500, seeds=[0], limits=[0.1, 0.2])
    >>> cost.unlimited <= cost.optimum[1] <= cost.optimum[0] <= cost.constant
    True
    """
    grid, chosen = tuple(sorted(set(limits))), tuple(seeds)[:MOST_SEEDS]
    learners = [make(limit) for limit in grid]
    tasks = [
        RunToPlay(learner, environment, rounds, seed, learner.allowed_gap, learner.allowed_gap)
        for learner in learners
        for seed in chosen
    ]
    runs = play_all(tasks, jobs, progress)
    costs = np.array([float(run.lengths @ run.losses) / rounds for run in runs])
    costs = costs.reshape(len(grid), len(chosen))
    rates, prices = learners[0].rates, learners[0].prices
    return PromiseCost(
        limits=grid,
        learner=tuple(costs.mean(axis=1).tolist()),
        low=tuple(costs.min(axis=1).tolist()),
        high=tuple(costs.max(axis=1).tolist()),
        optimum=tuple(float(environment.optimum(limit, rates, prices)[0]) for limit in grid),
        unlimited=float(environment.optimum(1.0, rates, prices)[0]),
        constant=float(min(constant_costs(environment, prices))),
        rounds=rounds,
        seeds=chosen,
    )
