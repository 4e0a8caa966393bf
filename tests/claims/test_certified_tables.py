"""Certificates from one table: rows drawn with replacement from a real table, which is the
population, so truth is exact.

Beside them: the mixture that keeps the limit in sample, split-and-shrink (half for fitting, one
exact interval for the mixture by one coin a row, shrunk towards the better constant), and the
point-estimate certificate as negative control. At 100 draws a cell more than 12 violations refute
delta = .05 (false-alarm rate 1e-3); a violation probability of .19 is caught with probability .95.
"""

from functools import lru_cache

import numpy as np
import pytest
import scipy.stats

import evenhand as eh
from evenhand.bounds.proportions import difference_interval
from evenhand.table_certificate import certify
from evenhand.tables import DataUnavailable, read_table

DELTA = 0.05
CELLS = [
    (name, people, limit)
    for name in ("compas", "adult", "taiwan")
    for people in (2000, 5000)
    for limit in (0.02, 0.05, 0.1)
]


@lru_cache(maxsize=1)
def population(name):
    return read_table(name).encoded().sample


def truth(sample, policy):
    """Error rate and largest FPR gap of a policy in the population."""
    accepted = policy.acceptance(sample.features, sample.group)
    bad = sample.label == -1
    rates = [accepted[bad & (sample.group == group)].mean() for group in sample.groups]
    return np.where(bad, accepted, 1 - accepted).mean(), max(rates) - min(rates)


def shrunk(sample, people, limit, rng):
    """(weight, fitted policy, the better constant's weightless rest) of split-and-shrink."""
    first = rng.random(len(people)) < 0.5
    part = eh.LabelledSample(people.features[first], people.group[first], people.label[first])
    policy = solved(part, limit)
    rest = ~first
    drawn = rng.random(rest.sum()) < policy.acceptance(people.features[rest], people.group[rest])
    bad = people.label[rest] == -1
    pairs = len(sample.groups) * (len(sample.groups) - 1) / 2
    reach = 0.0
    cells = []
    for group in sample.groups:
        here = bad & (people.group[rest] == group)
        cells.append((int((drawn & here).sum()), int(here.sum())))
    for i, one in enumerate(cells):
        for other in cells[:i]:
            ends = difference_interval(*one, *other, DELTA / 2 / pairs)
            reach = max(reach, abs(ends.lower), abs(ends.upper))
    return min(1.0, limit / reach), policy


def solved(people, limit):
    problem = eh.Prices().problem(people.features, people.group, people.label)
    return eh.solve_fair(problem, eh.Stumps(), "fpr", people, limit).policy


def draws(name, people, limit, count, seed=0):
    """For each draw: violated?, learned weight, error; in sample violated?, error; shrunk error;
    false point certificate?
    """
    sample = population(name)
    constant = min((sample.label == 1).mean(), (sample.label == -1).mean())
    found = []
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        row = rng.integers(0, len(sample), people)
        table = eh.LabelledSample(sample.features[row], sample.group[row], sample.label[row])
        done = certify(eh.Stumps(), table, limit, delta=DELTA, seed=number)
        error, gap = truth(sample, done.policy)
        naive = solved(table, limit)
        naive_error, naive_gap = truth(sample, naive)
        weight, policy = shrunk(sample, table, limit, rng)
        other = weight * truth(sample, policy)[0] + (1 - weight) * constant
        found.append(
            (gap > limit, done.learned_weight, error, naive_gap > limit, naive_error, other)
        )
    return np.array(found, dtype=float)


def summary(found):
    _, weight, error, naive_broken, naive_error, other = found.mean(axis=0)
    return {
        "violations": int(found[:, 0].sum()),
        "weight": weight,
        "least weight": found[:, 1].min(),
        # Not a number where the table is so large that nothing is lost.
        "excess": (error - naive_error) / (other - naive_error)
        if other - naive_error > 1e-3
        else float("nan"),
        "in sample": naive_broken,
    }


@pytest.mark.claims_tables
@pytest.mark.parametrize(("name", "people", "limit"), CELLS)
def test_full(claims, name, people, limit):
    count = 100
    try:
        population(name)
    except DataUnavailable as error:
        pytest.skip(str(error))
    found = summary(draws(name, people, limit, count))
    most = int(scipy.stats.binom.isf(1e-3, count, DELTA))
    claims.add(
        f"certified on {name}, {people:,} people, limit {limit}, {count} draws, stumps, FPR",
        f"violations at most {most}; learned weight above 0",
        f"{found['violations']} violations (in sample {found['in sample']:.0%}); weight "
        f"{found['weight']:.2f}, least {found['least weight']:.3f}; excess over "
        f"split-and-shrink's {found['excess']:.2f}",
        found["violations"] <= most and found["least weight"] > 0,
    )
    assert found["violations"] <= most
