"""Theorem 3.1, regret: T0 + 2 (bandit bound) + delta T, of order sqrt(T) ln(|H|/delta) up to ln T.

The bound with its own constants holds but says more than "regret <= T" only from T = 2e12 on; so
the order is measured as well: regret / (sqrt(T) ln(|H| T/delta)) does not grow with T, and regret
grows no faster than ln|H|.
"""

import math

import pytest
from tests.claims.measure import DELTA, lifetimes, mean, population, slope

from evenhand import theory

PAPER = {"limit": None, "tradeoff_exponent": 0.25}
SIZES = (50, 200, 800, 3200)


def total(learner, horizon, seeds, workers=1, **settings):
    """Regret to the best gamma-fair policy of the population, the exploration included."""
    return lifetimes(seeds, learner, "random", horizon, workers=workers, **{**PAPER, **settings})


def normalised(runs, horizon):
    """(T0 + phase-2 regret) / (sqrt(T) ln(|H| T/delta))."""
    log_size = population("random").hypotheses.log_size
    paid = mean(runs, "exploration") + mean(runs, "bandit_regret")
    return paid / (math.sqrt(horizon) * (log_size + math.log(horizon / DELTA)))


@pytest.mark.parametrize("settings", [{}, {"schedule": "theory", "estimator": "two-sided"}])
def test_the_bound_holds_and_is_vacuous(settings):
    """The bound cannot fail while it exceeds T: shown as it is (catches regret above T). Its
    negative control is the next test.
    """
    runs = total("two-phase", 100_000, range(2), **settings)
    bound = theory.regret_bound(
        1e5, population("random").hypotheses.log_size, DELTA, mean(runs, "exploration")
    )
    assert mean(runs, "regret") <= bound
    assert bound > 100 * 100_000


def test_the_order_in_t():
    """T = 1e3, 1e4, 1e5, 8 seeds: the normalised figure stays below .5 (measured .23 to .29). The
    coin of the literal constants fails.
    """
    horizons = (1000, 10_000, 100_000)
    ours = [normalised(total("two-phase", T, range(8)), T) for T in horizons]
    coin = [
        normalised(total("two-phase", T, range(2), schedule="theory", estimator="two-sided"), T)
        for T in horizons
    ]
    assert max(ours) <= 0.5
    assert max(coin) > 0.5
    assert slope(horizons, coin) > 0.3 > slope(horizons, ours)


@pytest.mark.claims
def test_full(claims, workers):
    """20 seeds, T = 1e3 to 1e7, and |H| = 54 to 3204 at T = 1e5.

    Growth with ln|H|: regret at most proportional (a factor of 2.02).
    """
    horizons = (1000, 10_000, 100_000, 1_000_000, 10_000_000)
    ours = [normalised(total("two-phase", T, range(20), workers), T) for T in horizons]
    commit = [normalised(total("explore-then-commit", T, range(20), workers), T) for T in horizons]
    by_size = [
        lifetimes(
            range(40),
            "two-phase",
            "random",
            100_000,
            workers=workers,
            arguments=(0, 50, n),
            **PAPER,
        )
        for n in SIZES
    ]
    growth = mean(by_size[-1], "bandit_regret") / mean(by_size[0], "bandit_regret")
    bound = theory.regret_bound(1e7, population("random").hypotheses.log_size, DELTA, 1e4)
    claims.add(
        "(T0 + regret) / (sqrt(T) ln(|H|T/delta)), T=1e3 to 1e7 (theorem 3.1)",
        "bounded: does not grow with T (bound with the paper's constants: vacuous)",
        f"{', '.join(f'{x:.2f}' for x in ours)} "
        f"(the printed bound at T=1e7 is {bound / 1e7:.0f} T)",
        max(ours) <= 0.5 and ours[-1] <= max(ours[:-1]),
        ", ".join(f"{x:.2f}" for x in commit),
    )
    claims.add(
        "phase-2 regret against |H| = 54, 204, 804, 3204, T=1e5",
        "at most proportional to ln|H| (factor 2.02)",
        ", ".join(f"{mean(runs, 'bandit_regret'):.0f}" for runs in by_size)
        + f" (factor {growth:.2f})",
        growth <= math.log(3204) / math.log(54),
    )
    assert max(ours) <= 0.5
    assert ours[-1] <= max(ours[:-1])
