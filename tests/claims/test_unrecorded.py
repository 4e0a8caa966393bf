"""Logs without probabilities: coverage of the limit for each Gamma, and its width beside a box.

200 confounded logs for each Gamma, in populations where the rejected are as bad as Gamma allows;
3,000 people, 6 strata. A correct limit at .025 misses more than 12 times in 200 with probability
2e-3, and a miss rate of .12 is caught with probability .99. Control: Gamma = 1
assumed where it is 4.
"""

from math import inf

import numpy as np
import pytest
from tests.bounds.test_unrecorded import drawn, population

from evenhand.bounds.proportions import proportion_interval
from evenhand.bounds.unrecorded import BAD, GOOD, largest_rate, largest_root, rate_range

LOGS = 200
PEOPLE = 3000
ALPHA = 0.025


def misses(gamma, assumed, logs, seed):
    rng = np.random.default_rng(seed)
    missed = 0
    for _ in range(logs):
        weight, acceptance = population(rng, strata=6)
        rows = drawn(weight, acceptance, PEOPLE, rng)
        missed += largest_rate(rows, assumed, ALPHA) < largest_root(weight, acceptance, gamma)
    return missed


@pytest.mark.claims
@pytest.mark.parametrize("gamma", [1.0, 1.5, 2.0, 4.0, inf])
def test_full_coverage(gamma, claims):
    missed = misses(gamma, gamma, LOGS, seed=7)
    holds = missed <= 12
    name = f"logs without probabilities, Gamma = {gamma:g}: limits of {LOGS} confounded logs"
    claims.add(name, f"misses <= 12 (alpha = {ALPHA})", f"{missed}", holds)
    assert holds


@pytest.mark.claims
def test_full_control(claims):
    missed = misses(4.0, 1.0, LOGS, seed=8)
    holds = missed > LOGS / 2
    name = "logs without probabilities: Gamma = 1 assumed where it is 4 (control)"
    claims.add(name, "misses in more than half of the logs", f"{missed} of {LOGS}", holds)
    assert holds


def box_width(rows):
    """The range of the rate over a box of exact intervals, for Gamma = 1."""
    counts = rows.counts(0, rows.people).astype(int)
    part = ALPHA / (4 * len(counts))
    bad = [proportion_interval(int(c[BAD]), int(c[BAD] + c[GOOD]), part) for c in counts]
    share = [proportion_interval(int(c.sum()), rows.people, part) for c in counts]
    least = np.array([b.lower * s.lower for b, s in zip(bad, share, strict=True)])
    most = np.array([b.upper * s.upper for b, s in zip(bad, share, strict=True)])
    takes = rows.acceptance == 1.0
    upper = most[takes].sum() / (most[takes].sum() + least[~takes].sum())
    lower = least[takes].sum() / (least[takes].sum() + most[~takes].sum())
    return upper - lower


@pytest.mark.claims
def test_full_width(claims):
    rng = np.random.default_rng(9)
    ours, box = [], []
    for _ in range(50):
        rows = drawn(*population(rng, strata=6), PEOPLE, rng)
        ends = rate_range(rows, 1.0, ALPHA)
        ours.append(ends.upper - ends.lower)
        box.append(box_width(rows))
    ratio = float(np.mean(ours) / np.mean(box))
    name = "logs without probabilities, Gamma = 1: width of a rate's range over that of a box"
    figure = f"{ratio:.2f} ({np.mean(ours):.3f} against {np.mean(box):.3f})"
    claims.add(name, "<= .5", figure, ratio <= 0.5)
    assert ratio <= 0.5
