"""Ten populations of a kind that users have, fixed with their seeds before the choice of policies
was changed, and what a run of the certified learner costs on them.

Each has 10 bins of a score x 3 bands of a second feature x two groups, and scorecards (score bin +
points x band reaches a cut-off) that never look at the group. Truth is exact: costs and gaps are
sums over 60 contexts, and the optimum is a linear program that knows them.

`python -m tests.claims.ten_populations FILE` writes the figures of all runs. With PYTHONPATH at
another version of the package it measures that version on the same seeds; that is how
`ten_populations_before.json` was made.
"""

import json
import sys
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.environments import Discrete
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners import CertifiedLearner
from evenhand.policies import Mixture
from evenhand.simulation import simulate
from evenhand.words import Prices

DELTA = 0.05
ROUNDS = 100_000
SEEDS = tuple(range(20))
LATEST = 50_000
"""From this round on nobody may be stuck."""
ALLOWED, SAVED = 0.05, 0.01
"""Stuck: the intervals allow a mixture that saves ALLOWED of the best constant's cost, and what is
deployed saves less than SAVED of it."""
BEFORE = Path(__file__).with_name("ten_populations_before.json")
BINS, BANDS = 10, 3
POINTS = (0, 1, 2, 3, 4, 6)


@dataclass(frozen=True)
class Population:
    """Two groups of applicants, and what is asked of the learner.

    share: of the second group. means: of the two groups' scores, in bins. level: the logit of a
    good outcome at bin 4.5 and the middle band; slope: what one bin adds. bands: how the groups are
    spread over the bands.
    """

    share: float
    means: tuple[float, float]
    level: float
    slope: float = 0.6
    rates: tuple[str, ...] = ("fpr",)
    limit: float = 0.05
    prices: tuple[float, float] = (1.0, 1.0)
    bands: tuple[tuple[float, ...], tuple[float, ...]] = ((0.4, 0.35, 0.25), (0.3, 0.35, 0.35))

    def world(self) -> Discrete:
        score, band = np.divmod(np.arange(BINS * BANDS, dtype=np.float64), BANDS)
        bins = np.arange(BINS, dtype=np.float64)
        mass = []
        for part, mean, bands in zip(
            (1 - self.share, self.share), self.means, self.bands, strict=True
        ):
            bell = np.exp(-0.5 * ((bins - mean) / 2.2) ** 2)
            mass.append(part * np.repeat(bell / bell.sum(), BANDS) * np.tile(bands, BINS))
        good = 1 / (1 + np.exp(-(self.level + self.slope * (score - 4.5) + 0.6 * (band - 1.0))))
        totals = [score + worth * band for worth in POINTS]
        cards = [
            np.tile(total >= cut, 2) for total in totals for cut in range(int(total.max()) + 2)
        ]
        group = np.repeat(["a", "b"], BINS * BANDS)
        return Discrete(np.concatenate(mass), np.tile(good, 2), group, np.array(cards))


HIRING = {"share": 0.35, "means": (4.8, 4.0), "level": -2.4, "slope": 0.7}
POPULATIONS = {
    "credit": Population(0.3, (6.0, 4.5), 0.4),
    "credit, prices 5:1": Population(0.3, (6.0, 4.5), 0.4, prices=(5.0, 1.0)),
    "hiring, selection": Population(rates=("selection",), **HIRING),
    "hiring, FNR": Population(rates=("fnr",), **HIRING),
    "minority of 5%": Population(0.05, (5.5, 4.5), 0.2),
    "minority of 1%": Population(0.01, (5.5, 4.5), 0.2),
    "balanced": Population(0.5, (4.8, 4.5), 0.0),
    "rare bad, prices 10:1": Population(0.3, (5.5, 4.5), 3.0, prices=(10.0, 1.0)),
    "Adult-like": Population(0.33, (5.0, 3.2), -1.4),
    "equal odds": Population(0.4, (5.2, 4.4), 0.0, rates=("fpr", "fnr"), limit=0.1),
}


@lru_cache(maxsize=16)
def world_of(name: str) -> Discrete:
    return POPULATIONS[name].world()


@dataclass(frozen=True)
class Figures:
    """One run in numbers; costs are shares of the best constant's.

    regret: over the best constant's, and bill: what its audits cost, in the same unit.
    after_10000: the regret of the first 10,000 rounds over the constant's there. now: that of the
    last policy. stuck_until: the last round at which the policy saved less than SAVED although the
    intervals of round LATEST allow ALLOWED; 0 if they do not or it never was so after LATEST.
    dearest, dear_people: the largest cost of what is deployed beside the audit coin, after the
    start, and how many people were decided above 1.05.
    """

    population: str
    seed: int
    regret: float
    bill: float
    after_10000: float
    now: float
    learned: float
    stuck_until: float
    dearest: float
    dear_people: float
    worst_gap: float
    limit: float

    @property
    def violated(self) -> bool:
        return self.worst_gap > self.limit + 1e-9


def learner_of(name: str, **settings: Any) -> CertifiedLearner:
    asked = POPULATIONS[name]
    given = {"prices": Prices(*asked.prices), **settings}
    return CertifiedLearner(world_of(name).hypotheses, asked.rates, asked.limit, DELTA, **given)


def figures(name: str, seed: int, rounds: int = ROUNDS, **settings: Any) -> Figures:
    """Play one run."""
    world = world_of(name)
    learner = learner_of(name, **settings)
    prices = learner.prices
    run = simulate(learner, world, rounds, seed, learner.limit)
    good = float(world.probability @ world.positive_rate)
    accept, reject = (1 - good) * prices.false_accept, good * prices.false_reject
    constant = min(accept, reject)
    worth = constant - run.optimum
    coins = np.array([policy.weight_of(ACCEPT_ALL) for policy in run.policies])
    bill = max(accept - reject, 0.0) * float(run.lengths @ coins)
    # what is deployed beside the coin: its weight is put on the better constant
    beside = (run.losses - coins * max(accept - reject, 0.0)) / constant
    started = np.array([phase == "certified" for phase in run.phases])
    dear = started & (beside > 1.05)
    last = run.policies[-1]
    learned = 1.0 - sum(
        weight
        for rule, weight in zip(last.hypotheses, last.weights, strict=True)
        if rule in (ACCEPT_ALL, REJECT_ALL)
    )
    idle = (run.losses > (1 - SAVED) * constant) & (run.rounds > LATEST)
    stuck_until = 0.0
    if idle.any() and allowed(name, seed, **settings) <= (1 - ALLOWED) * constant:
        stuck_until = float(run.rounds[np.flatnonzero(idle)[-1]])
    return Figures(
        population=name,
        seed=seed,
        regret=float(run.regret[-1]) / (rounds * worth),
        bill=bill / (rounds * worth),
        after_10000=float(run.regret_at(10_000)) / (10_000 * worth),
        now=float(run.losses[-1] - run.optimum) / worth,
        learned=learned,
        stuck_until=stuck_until,
        dearest=float(beside[started].max(initial=0.0)),
        dear_people=float(run.lengths[dear].sum()),
        worst_gap=run.worst_gap,
        limit=float(learner.limit),
    )


def allowed(name: str, seed: int, **settings: Any) -> float:
    """The true cost of the cheapest mixture that the intervals allow at round LATEST."""
    from scipy.optimize import linprog

    world = world_of(name)
    learner = learner_of(name, **settings)
    state = simulate(learner, world, LATEST, seed, learner.limit).learner.state
    prices = learner.prices
    good = float(world.probability @ world.positive_rate)
    constants = [(1 - good) * prices.false_accept, good * prices.false_reject]
    if state.process is None:
        return min(constants)
    members, lower, upper = state.certified()
    costs = [world.loss(Mixture((member,), (1.0,)), prices) for member in members]
    rows = np.concatenate([upper, -lower])
    rows = np.concatenate([np.zeros((len(rows), 2)), rows], axis=1)
    solved = linprog(
        [*constants, *costs],
        A_ub=rows,
        b_ub=np.full(len(rows), learner.limit),
        A_eq=np.ones((1, rows.shape[1])),
        b_eq=[1.0],
        method="highs",
    )
    return float(solved.fun)


def table(found: list[Figures]) -> str:
    """One line for each population, means over its runs."""
    lines = [
        f"{'population':24}{'regret':>8}{'se':>7}{'max':>7}{'bill':>7}{'1e4':>7}{'now':>7}"
        f"{'weight':>8}{'stuck':>6}{'dearest':>8}{'dear':>8}{'over':>6}"
    ]
    for name in dict.fromkeys(one.population for one in found):
        runs = [one for one in found if one.population == name]
        mean = {
            key: np.mean([asdict(one)[key] for one in runs])
            for key in ("regret", "bill", "after_10000", "now", "learned", "dear_people")
        }
        regrets = np.array([one.regret for one in runs])
        error = regrets.std() / np.sqrt(max(len(runs) - 1, 1))
        lines.append(
            f"{name:24}{mean['regret']:8.3f}{error:7.3f}{regrets.max():7.2f}{mean['bill']:7.3f}"
            f"{mean['after_10000']:7.2f}{mean['now']:7.3f}{mean['learned']:8.2f}"
            f"{sum(one.stuck_until > 0 for one in runs):6d}"
            f"{max(one.dearest for one in runs):8.3f}{max(one.dear_people for one in runs):8.0f}"
            f"{sum(one.violated for one in runs):6d}"
        )
    return "\n".join(lines)


def read(path: Path = BEFORE) -> list[Figures]:
    return [Figures(**one) for one in json.loads(path.read_text())]


def main() -> None:
    seeds = SEEDS[: int(sys.argv[2])] if len(sys.argv) > 2 else SEEDS
    found = [figures(name, seed) for name in POPULATIONS for seed in seeds]
    Path(sys.argv[1]).write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    print(table(found))


if __name__ == "__main__":
    main()
