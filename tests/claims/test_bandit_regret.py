"""Theorem 3.11: after the exploration, regret to the best policy of the learner's own set grows
like sqrt(T).

gamma = .02, delta = .05, alpha = 1/4 (so T0 = sqrt(T ln(2|H|/delta)), the paper's length),
population "random".
"""

import numpy as np
import pytest
from tests.claims.measure import column, lifetimes, mean, shown, slope, slope_error

HORIZONS = (1000, 3162, 10_000, 31_623, 100_000, 316_228, 1_000_000)
WIDE = (1000, 31_623, 1_000_000)
PAPER = {"limit": None, "tradeoff_exponent": 0.25}


def regrets(seeds, horizon, learner="two-phase", workers=1, **settings):
    return lifetimes(seeds, learner, "random", horizon, workers=workers, **{**PAPER, **settings})


def within(one, two):
    """The laws at T = 1e5: two-sided <= 2200, one-sided <= 700, ratio >= 2."""
    sizes = mean(one, "bandit_regret"), mean(two, "bandit_regret")
    return sizes[1] <= 2200 and sizes[0] <= 700 and sizes[1] >= 2 * sizes[0]


@pytest.mark.slow
def test_one_sided_weighting_has_a_fraction_of_the_two_sided_regret():
    """T = 1e5, 12 seeds, bounds for the quick tier 900, 2600 and a ratio of 1.7.

    Resampling 240 fresh seeds: means of 12 are 521 +- 80 and 1767 +- 198, their .999 quantiles 826
    and 2436, the .001 quantile of the ratio 1.86. So the false-alarm rate is below 1e-3. Catches a
    one-sided regret that doubles with probability .8.
    """
    one, two = regrets(range(12), 100_000), regrets(range(12), 100_000, estimator="two-sided")
    assert mean(one, "bandit_regret") <= 900
    assert mean(two, "bandit_regret") <= 2600
    assert mean(two, "bandit_regret") >= 1.7 * mean(one, "bandit_regret")
    assert min(column(one + two, "bandit_regret")) >= 0


def test_regret_grows_like_the_square_root():
    """T = 1e3, 3e4, 1e6, 12 seeds, limit .58. Resampling 240 fresh seeds: .459 +- .026, .999
    quantile .544: false-alarm rate below 1e-3.

    Catches a slope of .64 with probability .99, such as linear regret from T = 1e5 on.
    """
    assert slope(WIDE, [mean(regrets(range(12), T), "bandit_regret") for T in WIDE]) <= 0.58


@pytest.mark.parametrize("broken", ["theory", "unweighted"])
def test_the_checks_see_linear_regret(broken):
    """Negative controls: the literal constants toss a coin; a learner that forgets importance
    weights locks in.
    """
    settings = {"theory": {"schedule": "theory", "estimator": "two-sided"}, "unweighted": {}}[
        broken
    ]
    learner = "two-phase" if broken == "theory" else "without importance weights"
    sizes = [
        mean(regrets(range(12), T, learner, **settings), "bandit_regret") for T in (*WIDE, 100_000)
    ]
    assert sizes[-1] > (2600 if broken == "theory" else 900)
    assert slope(WIDE, sizes[:3]) > 0.58


@pytest.mark.claims
def test_full(claims, workers):
    """40 seeds. Resampling 240 fresh ones: means of 40 are 521 +- 44 (one-sided; the seeds of the
    test are on the high side) and 1766 +- 108, the slope is .455 +- .012: false-alarm rates below
    1e-3 for 700, 2200, the ratio and .55. Catches a one-sided regret that is 50% higher with
    probability .9, and a slope of .58 with .99."""
    seeds = range(40)
    curves = {
        name: [regrets(seeds, T, learner, workers, **more) for T in HORIZONS]
        for name, learner, more in (
            ("one", "two-phase", {}),
            ("two", "two-phase", {"estimator": "two-sided"}),
            ("etc", "explore-then-commit", {}),
        )
    }
    at = HORIZONS.index(100_000)
    one, two, rival = (curves[name][at] for name in ("one", "two", "etc"))
    ratio = mean(two, "bandit_regret") / mean(one, "bandit_regret")
    beside = shown(rival, "bandit_regret")
    for claim, limit, runs in (
        ("two-sided", 2200, two),
        ("one-sided, with exploration rows", 700, one),
    ):
        claims.add(
            "phase-2 regret to the best policy in the set, T=1e5, 40 seeds, random, "
            f"{claim} (theorem 3.11)",
            f"<= {limit}",
            shown(runs, "bandit_regret"),
            mean(runs, "bandit_regret") <= limit,
            beside,
        )
    claims.add("two-sided / one-sided regret", ">= 2", f"{ratio:.2f}", ratio >= 2)
    for name, title in (("one", "one-sided"), ("two", "two-sided")):
        fitted, rivals = (
            slope(HORIZONS, [mean(runs, "bandit_regret") for runs in curves[c]])
            for c in (name, "etc")
        )
        error = slope_error(HORIZONS, [column(runs, "bandit_regret") for runs in curves[name]])
        claims.add(
            f"slope of log regret, T=1e3 to 1e6, {title}",
            "<= .55",
            f"{fitted:.3f} +- {error:.3f}",
            fitted <= 0.55,
            f"{rivals:.3f}",
        )
        assert fitted <= 0.55
    assert within(one, two)
    assert np.all(column(one + two, "bandit_regret") >= 0)
