"""
Before a launch
===============

How much of the learned policy is certified when, and how many people are audited for it.
"""

import evenhand as eh

plan = eh.plan(
    limit=0.1,
    group_shares={"a": 0.6, "b": 0.4},
    bad_rates={"a": 0.3, "b": 0.4},
    auc=0.8,
    horizon=50_000,
    runs=8,
)
print(plan.verdict)
plan.plot()
