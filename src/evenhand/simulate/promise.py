"""What a promise costs: the certified learner over a grid of limits, split into what fairness costs
and what certifying it costs.

cost per person = best without a limit + price of the limit + price of learning and certifying it
                = opt(1)               + opt(limit) - opt(1)  + mean loss of the learner - opt(limit)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners import CertifiedLearner
from evenhand.policies import Mixture
from evenhand.simulate.compare import RunToPlay, play_all

LIMITS = (0.02, 0.04, 0.07, 0.12, 0.2)
MOST_SEEDS = 3
"""Lives per limit at most: the figure shows a trend, not a claim."""


@dataclass(frozen=True)
class PromiseCost:
    """Costs per person, one entry per limit; `learner`, `low`, `high`: mean, least and most of the
    simulated lives.
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

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "PromiseCost":
        """What `to_json` wrote."""
        told: dict[str, Any] = {field.name: document[field.name] for field in fields(cls)}
        plain: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in told.items()
        }
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
    """Play the learner that `make` yields for each limit; at most MOST_SEEDS lives each."""
    grid, lives = tuple(sorted(set(limits))), tuple(seeds)[:MOST_SEEDS]
    learners = [make(limit) for limit in grid]
    tasks = [
        RunToPlay(one, environment, rounds, seed, one.allowed_gap, one.allowed_gap)
        for one in learners
        for seed in lives
    ]
    played = play_all(tasks, jobs, progress)
    means = np.array([float(run.lengths @ run.losses) / rounds for run in played]).reshape(
        len(grid), len(lives)
    )
    terms = (learners[0].rates, learners[0].prices)
    constants = (
        environment.loss(Mixture((rule,), (1.0,)), terms[1]) for rule in (ACCEPT_ALL, REJECT_ALL)
    )
    return PromiseCost(
        limits=grid,
        learner=tuple(means.mean(axis=1).tolist()),
        low=tuple(means.min(axis=1).tolist()),
        high=tuple(means.max(axis=1).tolist()),
        optimum=tuple(float(environment.optimum(limit, *terms)[0]) for limit in grid),
        unlimited=float(environment.optimum(1.0, *terms)[0]),
        constant=float(min(constants)),
        rounds=rounds,
        seeds=lives,
    )
