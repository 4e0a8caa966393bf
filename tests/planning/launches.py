"""The launches that several tests of the planner look at."""

import numpy as np

import evenhand as eh
from evenhand.planning.population import from_numbers

SHARES, BAD = {"a": 0.6, "b": 0.4}, {"a": 0.2, "b": 0.3}
FPR = eh.FalsePositiveRate()
EASY = dict(
    limit=0.1,
    group_shares=SHARES,
    bad_rates={"a": 0.4, "b": 0.5},
    separation=1.5,
    horizon=8_000,
    lives=3,
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
