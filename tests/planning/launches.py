"""The launches that several tests of the planner look at."""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

import evenhand as eh
from evenhand.planning.launch_plan import SURE
from evenhand.planning.population import from_numbers
from evenhand.simulation.record import constant_costs, learned_weight

SHARES, BAD = {"a": 0.6, "b": 0.4}, {"a": 0.2, "b": 0.3}
FPR = eh.FalsePositiveRate()
EASY = dict(
    limit=0.1,
    group_shares=SHARES,
    bad_rates={"a": 0.4, "b": 0.5},
    separation=1.5,
    horizon=8_000,
    runs=5,
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
    """A plan, and one run of the real class on the whole table: what it saved against the constant.

    halves: after how many people half of the learned policy's weight was certified for good, in
    this run and in others.
    """

    plan: eh.planning.LaunchPlan
    saved: float
    halves: tuple[float, ...]
    people: int

    @property
    def contradicted(self) -> bool:
        """Whether the run ends on the side of 0 that a clear verdict excludes."""
        tiny = 1e-6 * self.people
        if self.plan.answer == "worth it":
            return self.saved <= tiny
        return self.plan.answer in ("not worth it", "nothing to gain") and self.saved > tiny

    @property
    def misled(self) -> bool:
        """Whether it ends on the other side of a verdict that is only probable."""
        probable = {"probably worth it": self.saved <= 0, "probably not worth it": self.saved > 0}
        return probable.get(self.plan.answer, False)

    @property
    def contradiction_chance(self) -> float:
        """The probability, by the plan's own runs, that one more run contradicts the verdict."""
        plan = self.plan
        if plan.answer not in ("worth it", "not worth it"):
            return 0.0
        freedom = plan.runs - 1
        half = (plan.saving.high - plan.saving.low) / 2
        scale = half / stdtrit(freedom, (1 + SURE) / 2)  # s sqrt(1 + 1/n)
        return float(stdtr(freedom, -abs(plan.saving.mean) / scale)) if scale > 0 else 0.0

    @property
    def outside(self) -> bool:
        """Whether the run's saving is outside of the plan's interval."""
        tiny = 1e-6 * self.people
        return not self.plan.saving.low - tiny <= self.saved <= self.plan.saving.high + tiny

    def foretells(self, half: float) -> bool:
        """Whether the forecast is within a factor of 1.5 of this round (one epoch; rounds are whole
        numbers), or neither is within the horizon.
        """
        said = self.plan.half.round
        if said is None or not np.isfinite(half):
            return said is None and not np.isfinite(half)
        return 1 / FACTOR <= said / half <= FACTOR

    @property
    def in_band(self) -> bool:
        """Whether the run reaches half of the weight within the band that the plan shows."""
        band = (self.plan.half.early, self.plan.half.late)
        early, late = (np.inf if end is None else end for end in band)
        return early <= self.halves[0] <= late


FACTOR = 1.5 * (1 + 1e-3)


def real_run(
    sample: eh.LabelledSample, plan: eh.planning.LaunchPlan, cap: float | None, seed: int
) -> tuple[float, float]:
    """What one run of the real class on the whole table saves, and when half of the weight is
    certified.
    """
    world = eh.environments.Replay(sample, hypotheses=eh.Stumps())
    people = plan.horizon
    learner = eh.CertifiedLearner(
        eh.Stumps(), FPR, plan.limit, 0.05, horizon=people, accept_at_most=cap, seed=0
    )
    if cap is not None:  # known from the plan; only the regret would need it
        nobody = eh.policies.Mixture((eh.hypotheses.REJECT_ALL,), (1.0,))
        world.know_optimum(plan.limit, FPR, eh.Prices(), plan.best_cost, nobody, (0.0, cap))
    run = eh.simulate(learner, world, people, seed, plan.limit)
    accept, reject = constant_costs(world, eh.Prices())
    most = 1.0 if cap is None else cap
    constant = min(reject, most * accept + (1 - most) * reject)
    saved = people * constant - float(run.lengths @ run.losses)
    below = [learned_weight(policy) < 0.5 * plan.full_weight - 1e-9 for policy in run.policies]
    last = int(np.flatnonzero(below)[-1]) if any(below) else -1
    if plan.full_weight == 0 or last == len(below) - 1:
        return saved, np.inf
    return saved, float(np.r_[0, run.rounds][last + 1])


def verdict(
    rows: eh.LabelledSample,
    sample: eh.LabelledSample,
    limit: float,
    people: int,
    runs: int = 8,
    cap: float | None = None,
    more_runs: int = 0,
) -> Verdict:
    """The plan on some rows, and one run and some more on the whole table; their seeds are none of
    a plan's.
    """
    plan = eh.planning.plan_from_sample(
        rows, eh.Stumps(), limit=limit, horizon=people, runs=runs, accept_at_most=cap
    )
    played = [real_run(sample, plan, cap, 1_000 + seed) for seed in range(1 + more_runs)]
    return Verdict(plan, played[0][0], tuple(half for _, half in played), people)
