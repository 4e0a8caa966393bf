"""
Learners side by side
=====================

Regret and true gaps of three learners on one population, four lives each.
"""

import matplotlib.pyplot as plt
import numpy as np

import evenhand as eh
from evenhand.learners import AcceptAll, FairOnGathered
from evenhand.simulation import compare

world, rate = eh.environments.lending(), eh.FalsePositiveRate()
learners = {
    "certified": eh.CertifiedLearner(world.hypotheses, rate, 0.12, 0.05),
    "fair-on-gathered": FairOnGathered(world.hypotheses, rate, 0.12),
    "accept-all": AcceptAll(),
}
compared = compare(
    learners,
    world,
    rounds=50_000,
    seeds=range(4),
    limit=0.12,
    delta=0.05,
    regret_gap=0.12,
)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for learner, colour in zip(compared.learners, ("#117733", "#8a4b08", "#5c636b"), strict=True):
    for run in learner.runs:
        left.plot(np.r_[0, run.rounds], np.r_[0, run.regret], color=colour, alpha=0.8)
        right.stairs(run.gaps, np.r_[0, run.rounds], baseline=None, color=colour, alpha=0.8)
    left.plot([], [], color=colour, label=learner.name)
right.axhline(0.12, color="#c4400c", linestyle="--")
left.set(title="regret so far", xlabel="round")
right.set(title="true gap (dashed: the limit)", xlabel="round", ylim=(0, 0.3))
left.legend(frameon=False)
