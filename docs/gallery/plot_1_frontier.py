"""
What a limit costs
==================

The cheapest policy at every limit, and the region of (gap, cost) that mixtures reach: Figure 1 of
the paper, on an invented table of loans. A limit allows gaps of either sign; here the cheapest
policies accept more of group a, so the line goes to the left.
"""

import numpy as np

import evenhand as eh
from evenhand.tables import read_table

table = read_table("lending").encoded()
sample = eh.LabelledSample(table.features, table.group, table.label)
problem = eh.Prices().problem(table.features, table.group, table.label)
rate, limits = eh.FalsePositiveRate(), np.linspace(0, 0.25, 26)
traced = eh.frontier(problem, eh.Stumps(), rate, sample, limits)
traced.plot()

# %%
# The same as a table.

traced.to_frame().iloc[::5]
