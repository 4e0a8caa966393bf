"""The launches that several tests of the planner look at."""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

import evenhand as eh
from evenhand.planning.plan import SURE
from evenhand.planning.population import from_numbers
from evenhand.simulation.record import constant_costs

SHARES, BAD = {"a": 0.6, "b": 0.4}, {"a": 0.2, "b": 0.3}
FPR = eh.FalsePositiveRate()
EASY = dict(
    limit=0.1,
    group_shares=SHARES,
    bad_rates={"a": 0.4, "b": 0.5},
    separation=1.5,
    horizon=8_000,
    lives=5,
)


def planned(shifts=None, use="certify_only", rules=None):
    return from_numbers(SHARES, BAD, 1.2, shifts, use, rules)


def gaps_of(world) -> np.ndarray:
    """|FPR gap| of every rule of a population of two groups."""
    bad = world.probability * (1 - world.positive_rate)
    rates = [
        (world.accepts[:, world.group == g] @ bad[world.group == g]) / bad[world.group == g].sum()
        for g in "ab"
    ]
    return np.abs(rates[1] - rates[0])


def table(rows: int = 800) -> eh.LabelledSample:
    rng = np.random.default_rng(3)
    label = np.where(rng.random(rows) < 0.6, 1, -1)
    group = np.where(rng.random(rows) < 0.5, "f", "m")
    features = np.column_stack(
        [label + rng.normal(0, 1.2, rows), rng.normal(0, 1, rows) + 0.3 * label]
    )
    return eh.LabelledSample(features, group, label)


def random_table(seed: int, rows: int = 3_000) -> eh.LabelledSample:
    """Signals from none to strong, groups and good outcomes from rare to frequent, half of the
    tables with few distinct values.
    """
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(2, 5))
    group = np.where(rng.random(rows) < rng.uniform(0.3, 0.7), "f", "m")
    features = rng.normal(size=(rows, columns)) + rng.uniform(0, 0.6) * (group == "m")[:, None]
    score = rng.uniform(0, 2) * (features @ rng.normal(size=columns)) / np.sqrt(columns)
    label = np.where(rng.random(rows) < 1 / (1 + np.exp(-score - rng.normal(0, 1.2))), 1, -1)
    if rng.random() < 0.5:
        features = np.round(2 * features) / 2
    return eh.LabelledSample(features, group, label)


def thinned(sample: eh.LabelledSample) -> eh.LabelledSample:
    """What a plan once looked at: 600 rows, every column in 12 bins."""
    rows = np.random.default_rng(0).choice(len(sample), min(600, len(sample)), replace=False)
    edges = np.quantile(sample.features, np.arange(1, 12) / 12, axis=0)
    pairs = zip(sample.features[rows].T, edges.T, strict=True)
    codes = [np.searchsorted(np.unique(edge), column, side="right") for column, edge in pairs]
    features = np.column_stack(codes).astype(float)
    return eh.LabelledSample(features, sample.group[rows], sample.label[rows])


@dataclass(frozen=True)
class Verdict:
    """A plan, and what a life of the real class on the whole table saved against the constant."""

    plan: eh.LaunchPlan
    lived: float
    people: int

    @property
    def contradicted(self) -> bool:
        """Whether the life ends on the side of 0 that the verdict excludes."""
        tiny = 1e-6 * self.people
        if self.plan.answer == "worth it":
            return self.lived <= tiny
        return self.plan.answer != "close call" and self.lived > tiny

    @property
    def contradiction_chance(self) -> float:
        """The probability, by the plan's own lives, that one more life contradicts the verdict."""
        plan = self.plan
        if plan.answer not in ("worth it", "not worth it"):
            return 0.0
        freedom = plan.lives - 1
        half = (plan.saving.high - plan.saving.low) / 2
        scale = half / stdtrit(freedom, (1 + SURE) / 2)  # s sqrt(1 + 1/n)
        return float(stdtr(freedom, -abs(plan.saving.mean) / scale)) if scale > 0 else 0.0

    @property
    def outside(self) -> bool:
        """Whether the life's saving is outside of the plan's interval."""
        tiny = 1e-6 * self.people
        return not self.plan.saving.low - tiny <= self.lived <= self.plan.saving.high + tiny


def life(sample: eh.LabelledSample, limit: float, people: int) -> float:
    """What one life of the real class on the whole table saves; its seed is none of a plan's."""
    world = eh.environments.Replay(sample, hypotheses=eh.Stumps())
    learner = eh.CertifiedLearner(eh.Stumps(), FPR, limit, 0.05, horizon=people, seed=0)
    run = eh.simulate(learner, world, people, 1_000, limit)
    return people * min(constant_costs(world, eh.Prices())) - float(run.lengths @ run.losses)


def verdict(
    rows: eh.LabelledSample, sample: eh.LabelledSample, limit: float, people: int, lives: int = 8
) -> Verdict:
    """The plan on some rows, and a life on the whole table."""
    plan = eh.plan_from_sample(rows, eh.Stumps(), limit=limit, horizon=people, lives=lives)
    return Verdict(plan, life(sample, limit, people), people)
