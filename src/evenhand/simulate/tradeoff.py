"""The trade-off of the paper's main theorem, measured: exploring T^(2 alpha) rounds buys a gap of
order T^(-alpha).

For each exponent alpha in [1/4, 1/2] and each horizon T, over seeds:

    excess gap    max over the learner's set Pi of |gap on D|, minus gamma                          theory: slope -alpha in T
    cost          regret of the exploration, plus the bandit's regret to the best policy in Pi      theory: slope 2 alpha (up to 1)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.contracts import HypothesisClass
from evenhand.environments.truth import TablePopulation
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import Rate
from evenhand.learners import TwoPhaseLearner
from evenhand.simulate.compare import RunToPlay, play_all
from evenhand.simulate.record import RunRecord
from evenhand.words import FloatArray

EXPONENTS = (1 / 4, 1 / 3, 1 / 2)
HORIZONS = 5
"""How many horizons, from T/10 to 10 T."""


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """Means over seeds, (exponents, horizons)."""

    exponents: tuple[float, ...]
    horizons: tuple[int, ...]
    seeds: tuple[int, ...]
    comparator_gap: float
    excess_gap: FloatArray
    cost: FloatArray
    explored: FloatArray

    def slope(self, row: int, what: str) -> float:
        """The least-squares slope of log(what) against log T for one exponent; `what` is
        "excess_gap" or "cost".
        """
        values = np.asarray(getattr(self, what))[row]
        return (
            float(np.polyfit(np.log(self.horizons), np.log(values), 1)[0])
            if (values > 0).all()
            else float("nan")
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, with the slopes."""
        rows = range(len(self.exponents))
        return {
            "exponents": list(self.exponents),
            "horizons": list(self.horizons),
            "seeds": list(self.seeds),
            "comparator_gap": self.comparator_gap,
            "excess_gap": self.excess_gap.tolist(),
            "cost": self.cost.tolist(),
            "explored": self.explored.tolist(),
            "slopes": {
                what: [_finite(self.slope(r, what)) for r in rows]
                for what in ("excess_gap", "cost")
            },
        }


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
    """Play the two-phase learner at each exponent and horizon; the population must be a table, or
    its set has no known truth.
    """
    if not isinstance(environment, TablePopulation):
        raise InvalidInput(
            f"the truth about a learner's set is not known on {type(environment).__name__}, so there is no trade-off to measure.",
            hint="use a population that is a table: lending, random, thresholds, lower-bound or hard.",
        )
    if rounds < 1000:
        raise InvalidInput(
            f"the trade-off is measured from a tenth of {rounds} rounds to ten times as many; it needs at least 1000."
        )
    horizons = tuple(int(h) for h in np.geomspace(rounds / 10, rounds * 10, HORIZONS).round())
    tasks = [
        RunToPlay(
            TwoPhaseLearner(
                hypotheses,
                rate,
                None,
                failure_probability,
                horizon,
                comparator_gap=comparator_gap,
                tradeoff_exponent=exponent,
            ),
            environment,
            horizon,
            seed,
            comparator_gap,
            1.0,
        )
        for exponent in exponents
        for horizon in horizons
        for seed in seeds
    ]
    played = play_all(tasks, jobs, progress)
    shape = (len(exponents), len(horizons), len(seeds))
    gaps, cost, explored = (
        np.array([measure(run) for run in played]).reshape(shape).mean(axis=2)
        for measure in (_gap, _cost, _explored)
    )
    return Tradeoff(
        tuple(exponents),
        horizons,
        tuple(seeds),
        comparator_gap,
        gaps - comparator_gap,
        cost,
        explored,
    )


def _gap(run: RunRecord) -> float:
    if run.worst_gap_in_set is None:
        raise InvalidInput(
            f"a run of {run.rounds[-1]} rounds (seed {run.seed}) did not finish its exploration, so it has no set to measure.",
            hint="use more rounds.",
        )
    return run.worst_gap_in_set


def _cost(run: RunRecord) -> float:
    return run.exploration_regret + (run.regret_in_set or 0.0)


def _explored(run: RunRecord) -> float:
    return float(run.explored)


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
