"""Labels that never come do not blind the drift tests, and they are looked at before an epoch ends.

No maturity window. The outcomes of group b flip: 8 runs with all labels told, 8 with 3% of them
missing. Every flip is found, with labels missing after at most 1.5 times as many people as without
(median and largest of 8; the seeds are fixed, and the figures are not near that factor unless the
tests wait for labels). A detection rate of .56 passes 8 of 8 with probability .01.

Then the change comes soon after a long epoch has begun, at round 18,000: a test that is looked at
only when the epoch ends, at round 25,929, finds nothing for 7,929 people.

Negative controls: with the streams waiting for the first missing label, as they once did, and looks
at the ends of epochs, 6 of the 8 flips were found within 20,000 people, three of them after 19,929
(complete: after 1,683 or 5,524), and 1 of 8 in the long epoch. On an unchanged population, with 3%
of the labels missing, 8 runs of 30,000 people are not suspended (a false alarm in one of them has
probability .008 at 1e-3 a run).
"""

import numpy as np
import pytest
from joblib import Parallel, delayed
from tests.flips import MISSING, flip

RUNS, FACTOR = 8, 1.5
EARLY = dict(change=6000, most=20_000)
LONG = dict(change=18_000, most=10_000)


def found(workers, missing, settings):
    runs = Parallel(n_jobs=workers)(
        delayed(flip)(seed, missing=missing, **settings) for seed in range(RUNS)
    )
    assert not any(run.early for run in runs)
    return [run.found for run in runs]


def shown(places):
    return ", ".join("never" if place is None else f"{place:,}" for place in places)


@pytest.mark.claims
def test_full_flips_with_labels_missing(claims, workers):
    complete, some_missing = (found(workers, share, EARLY) for share in (0.0, MISSING))
    holds = None not in complete + some_missing and all(
        how(some_missing) <= FACTOR * how(complete) for how in (np.median, max)
    )
    claims.add(
        "certified, no window: flips found with 3% of labels missing, 8 runs",
        f"all, within {FACTOR} times the people of the complete case",
        f"complete: {shown(complete)}; 3% missing: {shown(some_missing)}",
        holds,
    )
    assert holds


@pytest.mark.claims
def test_full_flips_are_found_within_a_long_epoch(claims, workers):
    places = [place for share in (0.0, MISSING) for place in found(workers, share, LONG)]
    holds = None not in places and max(places) < 5000
    claims.add(
        "certified, no window: a flip soon after an epoch of 8,643 has begun, 8 + 8 runs",
        "found within 5,000 people",
        shown(places),
        holds,
    )
    assert holds


@pytest.mark.claims
def test_full_missing_labels_are_no_drift(claims, workers):
    runs = Parallel(n_jobs=workers)(
        delayed(flip)(seed, missing=MISSING, change=6000, most=24_000, flips=False)
        for seed in range(RUNS)
    )
    alarms = sum(run.found is not None for run in runs)
    claims.add(
        "certified, no window: false alarms with 3% of labels missing, 8 runs of 30,000",
        "none",
        str(alarms),
        alarms == 0,
    )
    assert alarms == 0
