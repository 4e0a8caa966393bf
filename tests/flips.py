"""Runs in which the outcomes of a group flip, with all labels told or with some that never come."""

from dataclasses import dataclass

import numpy as np

from evenhand import CertifiedLearner
from evenhand.environments import Discrete

LIMIT, DELTA = 0.1, 0.05
MISSING = 0.03
"""The share of the labels that never come; nobody is told which."""
CALL = 100
"""People of a call; their labels are told before the next one."""


def population(*, flipped: bool = False) -> Discrete:
    """Six scores in two groups, 60% and 40% of the people, and five thresholds; `flipped`: in b the
    good turn out bad, and the bad good.
    """
    good = np.tile(np.linspace(0.15, 0.85, 6), 2)
    if flipped:
        good[6:] = 1.0 - good[6:]
    rules = np.array([[cut <= score for score in range(6)] for cut in range(1, 6)])
    share = np.repeat([0.1, 0.4 / 6], 6)
    return Discrete(share, good, np.repeat(["a", "b"], 6), np.tile(rules, 2), name="two groups")


@dataclass(frozen=True)
class Flip:
    """One run. found: how many people after the change the certificate was suspended, None if it
    was not; early: whether it was suspended before the change.
    """

    found: int | None
    early: bool = False


def flip(seed: int, *, missing: float, change: int, most: int, flips: bool = True) -> Flip:
    """Without a maturity window; `most`: how many people come after the change."""
    learner = CertifiedLearner(population().hypotheses, "fpr", LIMIT, DELTA, seed=seed)
    people, fate = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    before, after = population(), population(flipped=flips)
    certified = False
    while learner.round < change + most:
        sample = (after if learner.round >= change else before).draw(CALL, people)
        decisions = learner.decide(sample.features, sample.group)
        certified = certified or learner.epoch.phase == "certified"
        if certified and learner.epoch.phase == "explore":  # back to a constant: suspended
            place = learner.epoch.first_round
            return Flip(place - change, early=place < change)
        told = np.flatnonzero(decisions.accept)
        told = told[fate.random(len(told)) >= missing]
        learner.observe(decisions.first_round + told, sample.label[told])
    return Flip(None)
