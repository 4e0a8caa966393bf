"""Runs on continuous features with an exact truth: a normal score with thresholds, and normal
vectors with linear rules.

Features never repeat, so the learner's outcome regression is a logistic one.
"""

from functools import lru_cache

import numpy as np
from scipy.special import ndtr
from tests.claims.certified import DELTA, FPR, ROUNDING

from evenhand.environments import ScoreGroup, Scores
from evenhand.hypotheses import Linear, ScoreThresholds
from evenhand.learners import CertifiedLearner
from evenhand.randomness import stream
from evenhand.words import LabelledSample


@lru_cache(maxsize=1)
def scores() -> Scores:
    """The second group's spread is twice the first's: the odds are not logistic in the score."""
    return Scores(
        {"a": ScoreGroup(0.6, 0.6, 0.8, -0.6), "b": ScoreGroup(0.4, 0.45, 0.4, -0.9, 2.0)}
    )


def threshold_gaps(members):
    """FPR of b minus FPR of a, for accept iff score >= t (or < t)."""
    first, second = scores().groups["a"], scores().groups["b"]
    cuts = np.array([rule.value for rule in members])
    gap = ndtr((second.negative_mean - cuts) / second.spread) - ndtr(
        (first.negative_mean - cuts) / first.spread
    )
    return np.where([rule.at_least for rule in members], gap, -gap)


MEANS = {
    ("a", 1): (0.8, 0.3, 0.0),
    ("a", -1): (-0.5, 0.2, 0.0),
    ("b", 1): (0.5, -0.4, 0.3),
    ("b", -1): (-0.4, -0.2, 0.1),
}


def vectors(rows, generator):
    """x | a, y ~ Normal(mean_ay, 1) in three columns; 60% of a and 45% of b are good."""
    group = np.where(generator.random(rows) < 0.4, "b", "a")
    label = np.where(generator.random(rows) < np.where(group == "a", 0.6, 0.45), 1, -1)
    means = np.array([MEANS[g, y] for g, y in zip(group.tolist(), label.tolist(), strict=True)])
    return LabelledSample(means + generator.standard_normal((rows, 3)), group, label)


def linear_gaps(members):
    """P(w.x >= t | a, y = -1) is a normal probability."""
    gaps = []
    for rule in members:
        weights = np.array(rule.weights)
        rates = [
            ndtr((weights @ MEANS[g, -1] - rule.threshold) / np.linalg.norm(weights))
            for g in ("a", "b")
        ]
        gaps.append(rates[1] - rates[0])
    return np.array(gaps)


def play(learner, draw, rounds, seed, block=400):
    """People in blocks, labels of the accepted at once."""
    generator = stream(seed, "continuous")
    while learner.round < rounds:
        people = draw(block, generator)
        decisions = learner.decide(people.features, people.group)
        accepted = np.flatnonzero(decisions.accept)
        learner.observe(decisions.first_round + accepted, people.label[accepted])
    return learner


def _missed(learner, gaps):
    if learner.state.run > 1:
        return True
    members, lo, hi = learner.state.certified()
    truth = gaps(members)
    return bool(((truth < lo[0] - ROUNDING) | (truth > hi[0] + ROUNDING)).any())


def threshold_life_missed(seed, rounds):
    learner = CertifiedLearner(ScoreThresholds(), FPR, 0.1, DELTA, seed=seed)
    return _missed(play(learner, scores().draw, rounds, seed), threshold_gaps)


def linear_life_missed(seed, rounds):
    learner = CertifiedLearner(Linear(), FPR, 0.1, DELTA, seed=seed)
    return _missed(play(learner, vectors, rounds, seed), linear_gaps)
