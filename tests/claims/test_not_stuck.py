"""Not stuck, not reckless: how the certified learner chooses, on ten populations that were fixed
with their seeds before the choice was changed (`ten_populations`).

T = 1e5, 20 seeds, no horizon told. Regret over the best constant's, beside what the version before
the change had on the same seeds (`ten_populations_before.json`). A mean of 20 runs has a standard
error of 1 to 8% of itself, the geometric mean of ten ratios one of about 2%: a geometric mean that
is 5% above its target is seen with probability .99.

Stuck: after round 50,000 a policy saves less than 1% of the best constant's cost although the
intervals allow 5%. The negative controls are the version before, which has such a run, and a
learner whose audit coin is fixed at .001 and whose cells learn nothing from each other.

Missed as measured last: the geometric mean is .84 (target .75). The table says so; asserted is what
holds. On the same seeds the version before was chosen, so 120 fresh ones of the population that was
stuck are measured, too.
"""

from dataclasses import replace

import numpy as np
import pytest
from joblib import Parallel, delayed
from tests.claims.ten_populations import (
    POPULATIONS,
    ROUNDS,
    SEEDS,
    figures,
    read,
)

from evenhand.algorithms.certified import cost_posterior

QUICK = ("hiring, selection", 16)
"""The run that the version before spent at reject-all for 100,000 rounds."""
FRESH = ("hiring, selection", 110)
"""Likewise of a version that took the guess which cells share for certain."""
FRESH_SEEDS = range(100, 220)
"""Seeds by which nothing was chosen but that draw: 7 of the first 60 runs were stuck without it."""


def stuck(found):
    return [one for one in found if one.stuck_until > 0]


def beyond_the_bill(found):
    """Runs that end above 1.05 of the best constant's regret beyond their audit bill."""
    return [one for one in found if one.regret - one.bill > 1.05]


def ratios(found, before):
    """Of each population: the mean regret over that of the version before, same seeds."""
    old = {(one.population, one.seed): one.regret for one in before}
    means = {}
    for name in POPULATIONS:
        runs = [one for one in found if one.population == name]
        means[name] = float(
            np.mean([one.regret for one in runs]) / np.mean([old[name, one.seed] for one in runs])
        )
    return means


@pytest.mark.thorough
@pytest.mark.parametrize("run", [QUICK, FRESH], ids=str)
def test_a_run_that_was_stuck_is_not(run):
    one = figures(*run)
    assert not stuck([one])
    assert not beyond_the_bill([one])
    assert not one.violated
    assert one.regret < 0.5


def test_the_check_sees_the_version_before():
    """Negative control: the figures of the version before have a run that is stuck, and the
    geometric mean of its ratios to itself is 1.
    """
    before = read()
    assert [(one.population, one.seed) for one in stuck(before)] == [QUICK]
    assert np.allclose(list(ratios(before, before).values()), 1.0)


@pytest.mark.thorough
def test_the_check_sees_a_learner_that_takes_the_shared_guess_for_certain(monkeypatch):
    """Negative control: without an error in the shared slopes the run stays at reject-all."""
    real = cost_posterior._similar_cells

    def certain(*given):
        guess = real(*given)
        return replace(guess, root=np.zeros_like(guess.root))

    monkeypatch.setattr(cost_posterior, "_similar_cells", certain)
    assert stuck([figures(*FRESH)])


@pytest.mark.slow
def test_the_check_sees_a_learner_whose_cells_learn_nothing_from_each_other(monkeypatch):
    """Negative control: with the overall share as guess of every cell and a coin of .001, hiring
    has stuck runs again.
    """

    def overall(accepts, people, negative, labels):
        odds = negative.sum() / (labels.sum() - negative.sum())
        nothing = np.zeros((len(people), 0))
        return cost_posterior.CellGuess(nothing, np.zeros(0), float(np.log(odds)), np.zeros((0, 0)))

    monkeypatch.setattr(cost_posterior, "_similar_cells", overall)
    found = [figures("hiring, selection", seed, audit_rate=0.001) for seed in range(6)]
    assert stuck(found)


@pytest.mark.claims
def test_full(claims, workers):
    found = Parallel(n_jobs=workers)(
        delayed(figures)(name, seed) for name in POPULATIONS for seed in SEEDS
    )
    before = read()
    of_each = ratios(found, before)
    mean = float(np.exp(np.mean(np.log(list(of_each.values())))))
    named = "; ".join(f"{name} {ratio:.2f}" for name, ratio in of_each.items())
    runs = f"ten populations x {len(SEEDS)} seeds, T={ROUNDS:.0e}"
    claims.add(
        f"certified, {runs}: regret over that of the version before",
        "geometric mean <= .75",
        f"{mean:.3f} ({named})",
        mean <= 0.75,
    )
    above = beyond_the_bill(found)
    claims.add(
        f"certified, {runs}: runs above 1.05 of the best constant's regret beyond the audit bill",
        "0",
        f"{len(above)} (largest {max(one.regret - one.bill for one in found):.3f}; before: "
        f"{len(beyond_the_bill(before))}, {max(one.regret - one.bill for one in before):.3f})",
        not above,
    )
    idle = stuck(found)
    claims.add(
        f"certified, {runs}: runs stuck beyond 50,000 where the intervals allow 5%",
        "0",
        f"{len(idle)} (before: {len(stuck(before))})",
        not idle,
    )
    dear = max(found, key=lambda one: one.dear_people)
    claims.add(
        f"certified, {runs}: most people decided above 1.05 of the constant's cost in one run",
        "shown as it is",
        f"{dear.dear_people:.0f} ({dear.population}; before: "
        f"{max(one.dear_people for one in before):.0f})",
        True,
    )
    violated = [one for one in found if one.violated]
    claims.add(f"certified, {runs}: violations", "0", str(len(violated)), not violated)
    assert not idle
    assert not violated
    assert max(of_each.values()) <= 1.1


@pytest.mark.claims
def test_full_on_fresh_seeds(claims, workers):
    found = Parallel(n_jobs=workers)(delayed(figures)(FRESH[0], seed) for seed in FRESH_SEEDS)
    idle = stuck(found)
    regrets = [one.regret for one in found]
    claims.add(
        f"certified, {FRESH[0]}, {len(FRESH_SEEDS)} fresh seeds, T={ROUNDS:.0e}: runs stuck beyond "
        "50,000 where the intervals allow 5%",
        "0",
        f"{len(idle)}; regret over the best constant's {np.mean(regrets):.3f} on average, "
        f"{max(regrets):.3f} at most",
        not idle,
    )
