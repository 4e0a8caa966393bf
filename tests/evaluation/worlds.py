"""Logs with a known truth: two groups, three normal features, and a lender who leans on the first
one.
"""

import numpy as np

from evenhand.evaluation import DecisionLog
from evenhand.hypotheses import ACCEPT_ALL
from evenhand.hypotheses.thresholds import Threshold
from evenhand.policies import Mixture

POLICY = Mixture((Threshold(0, 0.4, 3), Threshold(1, 0.4, 3), ACCEPT_ALL), (0.5, 0.3, 0.2))


def people(rows, seed):
    """(features, group, label) of independent people."""
    rng = np.random.default_rng([seed, 0])
    group = np.where(rng.random(rows) < 0.35, "b", "a")
    label = np.where(rng.random(rows) < np.where(group == "a", 0.6, 0.45), 1, -1)
    shift = (label == 1)[:, None] * np.array([0.9, 0.4, 0.0]) + (group == "a")[:, None] * np.array(
        [0.2, 0.0, 0.0]
    )
    return rng.normal(size=(rows, 3)) + shift, group, label


def logged(rows=2000, seed=1, floor=0.05, open_share=0.0):
    """A log, with what nobody sees: all labels."""
    features, group, label = people(rows, seed)
    rng = np.random.default_rng([seed, 1])
    p = np.clip(1 / (1 + np.exp(-2 * (features[:, 0] - 0.3))), floor, 0.95)
    accept = rng.random(rows) < p
    seen = np.where(accept & (rng.random(rows) >= open_share), label, 0)
    return DecisionLog.of(features, accept, p, seen, group=group), label


def same(one, other):
    """Whether two logs are equal, bit for bit."""
    arrays = ("features", "accept", "acceptance", "label", "count")
    return (
        all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
        and one.group.tolist() == other.group.tolist()
        and one.names == other.names
        and one.ids == other.ids
        and one.ordered_by == other.ordered_by
        and all(
            np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True)
            for name in one.ordered_by
        )
    )
