"""
The life of a certified learner
===============================

The band is where the gaps of the deployed policy are certified to lie, epoch by epoch.
"""

import evenhand as eh

world = eh.environments.lending()
learner = eh.CertifiedLearner(world.hypotheses, eh.FalsePositiveRate(), 0.10, 0.05)
run = eh.simulate(learner, world, rounds=100_000, seed=1, comparator_gap=0.10)
run.learner.plot()

# %%
# The truth, which only a simulation knows.

run.plot()
