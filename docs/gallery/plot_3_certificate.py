"""
A certificate with three groups
===============================

One interval for each pair of groups; all of them hold at once.
"""

import numpy as np

import evenhand as eh

rng = np.random.default_rng(0)
rules, rate = eh.ScoreThresholds(), eh.FalsePositiveRate()
learner = eh.CertifiedLearner(rules, rate, limit=0.15, delta=0.05, seed=1)
for _ in range(60):
    group = rng.choice(["north", "south", "west"], size=1_000, p=[0.5, 0.3, 0.2])
    score = rng.normal(0.3 * (group == "north"), 1.0)
    repays = np.where(score + rng.normal(size=1_000) > 0, 1, -1)
    decisions = learner.decide(score[:, None], group)
    accepted = np.flatnonzero(decisions.accept)
    learner.observe(decisions.round[accepted], repays[accepted])
learner.certificate.plot()
