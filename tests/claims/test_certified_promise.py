"""The guarantee of the certified learner: with probability 1 - delta no policy it ever deploys
exceeds the limit, and every interval holds.

Runs are spread over populations made to be difficult (`certified.SPREAD`), with exact truth. delta
= .05. 1,000 runs: more than 86 violations have probability 1e-6 if the rate is .05; a true rate of
.109 is detected with probability .99. Quick tier: fewer runs, the same check.
"""

from itertools import cycle, islice

import pytest
from tests.claims.certified import DELTA, LADDERS, SPREAD, WAYS, lives
from tests.claims.continuous import linear_life_missed, threshold_life_missed
from tests.claims.measure import binomial_limit, detectable

ALARM = 1e-6
LIFETIMES, SEEDS = 1000, 200


def spread(way, lifetimes):
    """`lifetimes` jobs, in turn over the scenarios."""
    return [(number, name, way) for number, name in enumerate(islice(cycle(SPREAD), lifetimes))]


@pytest.mark.parametrize("way", WAYS)
def test_no_run_breaks_the_guarantee(way):
    """22 runs of 4,000 rounds; more than 8 violations (or misses) refute delta = .05; a rate
    of .64 is detected with .99.
    """
    found = lives(spread(way, 22), rounds=4000)
    limit = binomial_limit(22, DELTA, ALARM)
    assert sum(life.violated for life in found) <= limit
    assert sum(life.missed for life in found) <= limit
    assert not any(life.suspended for life in found)


def test_a_few_runs_on_continuous_features_hold():
    """2 runs each, and both missing would be one in 400; the full tier has 200."""
    assert sum(threshold_life_missed(seed, 2000) for seed in range(2)) < 2
    assert sum(linear_life_missed(seed, 2000) for seed in range(2)) < 2


@pytest.mark.claims
@pytest.mark.parametrize("way", WAYS)
def test_full_violations(claims, workers, way):
    limit = binomial_limit(LIFETIMES, DELTA, ALARM)
    assert limit == 86
    found = lives(spread(way, LIFETIMES), workers)
    violated, missed = sum(life.violated for life in found), sum(life.missed for life in found)
    closest = max(life.worst_gap / life.limit for life in found)
    claims.add(
        f"certified, {way}: runs with any violation, 1,000 runs, T=2e4, delta=.05",
        f"<= {limit} (catches {detectable(LIFETIMES, limit):.3f})",
        f"{violated} (largest gap {closest:.2f} of the limit; intervals missed in {missed}; "
        f"suspended {sum(x.suspended for x in found)})",
        violated <= limit,
    )
    assert violated <= limit
    assert missed <= limit


@pytest.mark.claims
@pytest.mark.parametrize("name", [*SPREAD, *LADDERS])
def test_full_coverage(claims, workers, name):
    """200 seeds: more than 28 misses have probability 1e-6 at delta; a rate of
    .22 is detected with .99.
    """
    limit = binomial_limit(SEEDS, DELTA, ALARM)
    found = lives([(seed, name) for seed in range(2000, 2000 + SEEDS)], workers)
    missed = sum(life.missed for life in found)
    claims.add(
        f"certified: interval miscoverage, 200 seeds, {name}",
        f"<= {limit} (catches {detectable(SEEDS, limit):.2f})",
        f"{missed}",
        missed <= limit,
    )
    assert missed <= limit


@pytest.mark.claims
@pytest.mark.parametrize("life", [threshold_life_missed, linear_life_missed])
def test_full_coverage_on_continuous_features(claims, workers, life):
    """200 seeds; the outcome regression is logistic and, on the score, wrong in one group."""
    from joblib import Parallel, delayed

    limit = binomial_limit(SEEDS, DELTA, ALARM)
    missed = sum(Parallel(n_jobs=workers)(delayed(life)(seed, 6000) for seed in range(SEEDS)))
    what = "thresholds, betting" if life is threshold_life_missed else "linear rules, nominate"
    claims.add(
        "certified: interval miscoverage, 200 seeds, "
        f"continuous features, logistic regression, {what}",
        f"<= {limit} (catches {detectable(SEEDS, limit):.2f})",
        f"{missed}",
        missed <= limit,
    )
    assert missed <= limit
