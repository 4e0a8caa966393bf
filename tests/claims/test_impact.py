"""Intervals of impact ratios at full size: all of them hold at once, from 5 to 5,000 people a cell.

A coverage of .90 is caught with probability .99.

A table has 2 to 6 categories. The truth is p_j / max_k p_k over the categories that take part. The
control is what is usual: for each category the approximate 95% interval of log(p_j / p_best), best
being the category with the largest rate in the sample, which was chosen by looking.
"""

import numpy as np
import pytest
from scipy.stats import binom

from evenhand.evaluation.impact_table import impact

TABLES = 1000
DELTA = 0.05


def drawn(rng):
    """Cells of one table: people and true rates."""
    groups = int(rng.integers(2, 7))
    people = np.exp(rng.uniform(np.log(5), np.log(5000), groups)).astype(int)
    # Near ties are the hard case: which category is best changes from sample to sample.
    rates = np.clip(rng.uniform(0.05, 0.9) * rng.uniform(0.9, 1.1, groups), 0.01, 0.99)
    return people, rates


def usual(selected, people):
    """Katz's interval of each ratio to the best category of the sample; None where x = 0."""
    shares = selected / people
    best = int(np.argmax(shares))
    ends = []
    for j, (x, n) in enumerate(zip(selected, people, strict=True)):
        if j == best or x == 0 or selected[best] == 0:
            ends.append(None)
            continue
        spread = np.sqrt(1 / x - 1 / n + 1 / selected[best] - 1 / people[best])
        centre = np.log(shares[j] / shares[best])
        ends.append((np.exp(centre - 1.96 * spread), np.exp(centre + 1.96 * spread)))
    return ends


@pytest.mark.claims
def test_coverage_of_impact_ratios(claims):
    rng = np.random.default_rng(30)
    missed = control = counted = 0
    for _ in range(TABLES):
        people, rates = drawn(rng)
        selected = rng.binomial(people, rates)
        decided = np.concatenate([np.arange(n) < x for x, n in zip(selected, people, strict=True)])
        names = [str(j) for j in range(len(people))]
        table = impact(decided, np.repeat(names, people).tolist(), smallest_share=0.0, delta=DELTA)
        rows = {row.group: row for row in table.rows}
        truth = rates / rates.max()
        wrong = False
        for j, name in enumerate(names):
            ends = rows[name].ratio_interval
            if ends is not None:
                wrong |= not ends[0] <= truth[j] <= ends[1]
        missed += wrong
        ends = usual(selected, people)
        control += any(
            one is not None and not one[0] <= truth[j] <= one[1] for j, one in enumerate(ends)
        )
        counted += 1
    most = int(binom.ppf(0.999, counted, DELTA))
    holds = missed <= most < control
    claims.add(
        f"impact: {counted:,} tables with cells of 5 to 5,000 people, all intervals hold",
        "at least 95%; approximate intervals to the best category of the sample below it",
        f"{1 - missed / counted:.3f}; approximate {1 - control / counted:.3f}",
        holds,
    )
    assert holds
