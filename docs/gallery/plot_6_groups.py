"""
Rates by group, before and after
================================

What a limit does to the false positive rates of two groups.
"""

import matplotlib.pyplot as plt
import numpy as np

import evenhand as eh
from evenhand.tables import read_table

table = read_table("lending").encoded()
sample = eh.LabelledSample(table.features, table.group, table.label)
problem = eh.Prices().problem(table.features, table.group, table.label)
limits = (1.0, 0.10, 0.02)
rates = []
for limit in limits:
    found = eh.solve_fair(problem, eh.Stumps(), [eh.FalsePositiveRate()], sample, limit)
    accepted = found.policy.acceptance(table.features, table.group)
    bad = table.label == -1
    rates.append([accepted[bad & (table.group == g)].mean() for g in ("a", "b")])

figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
place = np.arange(len(limits))
axes.bar(place - 0.2, np.array(rates)[:, 0], 0.38, label="group a", color="#117733")
axes.bar(place + 0.2, np.array(rates)[:, 1], 0.38, label="group b", color="#8a4b08")
axes.set_xticks(place, ["no limit", "limit 0.10", "limit 0.02"])
axes.set_ylabel("false positive rate")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
