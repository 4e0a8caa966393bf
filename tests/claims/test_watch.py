"""A growing table that is looked at after every pair of people: when a gap is found, and how often
one is found that is not there.

The shares are those of American Community Survey people of Massachusetts (2015 to 2018) who are not
employed and whom the model that comes with the table predicts to be employed: 0.2327 of 74,461
women, 0.1788 of 64,017 men (employment_MA in nannyml 0.13.1). A draw with replacement from that
table is a coin with these shares. Beside it stands the test of Chugg, Cortes-Gomez, Wilder and
Ramdas (Auditing Fairness by Betting, 2023), written from the paper: K_t = prod (1 + lambda_s D_s),
lambda_s by online Newton steps within [-1/2, 1/2], which rejects when K_t >= 1/delta. A false alarm
rate of .13 is caught with probability .99.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom

from evenhand.bounds.sequences import log_wealth
from evenhand.evaluation import measure

WOMEN, MEN = 0.2327, 0.1788
DELTA = 0.05
PAIRS = 6000
RUNS = 400
NEWTON = 2 / (2 - math.log(3))


def paired(rng, first, second, pairs):
    return rng.random(pairs) < first, rng.random(pairs) < second


def watched(first, second):
    """The pair after which 0 is outside the interval of whoever looks after every pair."""
    step = first.astype(int) - second.astype(int)
    plus = np.cumsum(step > 0).astype(float)
    minus = np.cumsum(step < 0).astype(float)
    zero = np.arange(1, len(step) + 1) - plus - minus
    none = np.zeros(len(step))
    # Two ends, each at delta / 2: the bets on either side against a difference of 0.
    wealth = np.maximum(log_wealth(plus, zero, minus, none), log_wealth(minus, zero, plus, none))
    return first_time(wealth >= math.log(2 / DELTA))


def first_time(rejects):
    found = np.flatnonzero(rejects)
    return int(found[0]) + 1 if len(found) else len(rejects) + 1


def chugg(first, second):
    """Their test; a gradient step on -ln(1 + lambda D) after every pair."""
    rate = 0.0
    wealth = 0.0
    curvature = 1.0
    for time, step in enumerate(first.astype(int) - second.astype(int), start=1):
        wealth += math.log1p(rate * step)
        if wealth >= math.log(1 / DELTA):
            return time
        gradient = -step / (1 + rate * step)
        curvature += gradient**2
        rate = min(0.5, max(-0.5, rate - NEWTON * gradient / curvature))
    return len(first) + 1


def peeking(first, second):
    """A textbook 95% interval that is looked at after every pair from the hundredth on."""
    times = np.arange(1, len(first) + 1)
    p = np.cumsum(first) / times
    q = np.cumsum(second) / times
    error = np.sqrt(np.maximum(p * (1 - p) + q * (1 - q), 1e-12) / times)
    return first_time((np.abs(p - q) > 1.96 * error) & (times >= 100))


def test_the_time_is_that_at_which_measure_shows_a_gap():
    """`measure(watch=True)` shows no gap one pair earlier, and shows one then."""
    rng = np.random.default_rng(41)
    first, second = paired(rng, 0.6, 0.3, 400)
    time = watched(first, second)
    assert time < 400

    def shown(pairs):
        accepted = np.concatenate([first[:pairs], second[:pairs]])
        group = ["b"] * pairs + ["a"] * pairs
        known = [("b", "a")]  # nobody else turns up: all of delta is theirs
        found = measure(accepted, group, rates="selection", pairs=known, watch=True, delta=DELTA)
        return found.rates[0].gap_interval[0] > 0

    assert not shown(time - 1)
    assert shown(time)


@pytest.mark.claims
def test_how_soon_a_gap_is_found(claims):
    rng = np.random.default_rng(42)
    drawn = [paired(rng, WOMEN, MEN, PAIRS) for _ in range(RUNS)]
    ours = float(np.median([watched(*one) for one in drawn]))
    theirs = float(np.median([chugg(*one) for one in drawn]))
    # If nothing differs, at most a share delta ever rejects; a textbook interval does far more.
    equal = [paired(rng, MEN, MEN, PAIRS) for _ in range(RUNS)]
    wrong = sum(watched(*one) <= PAIRS for one in equal)
    control = sum(peeking(*one) <= PAIRS for one in equal)
    most = int(binom.ppf(0.999, RUNS, DELTA))
    holds = ours <= 1065 and wrong <= most < control
    claims.add(
        "a watched table, ACS, FPR by sex (gap .054): median pairs until it is shown",
        "at most 1,065; without a gap shown in at most 5% of runs",
        f"{ours:,.0f}; Chugg et al. {theirs:,.0f}; without a gap {wrong} of {RUNS}, "
        f"a textbook interval {control}",
        holds,
    )
    assert holds
