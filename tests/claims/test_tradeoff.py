"""Second remark after theorem 3.1: exploring T^(2 alpha) rounds gives a slack of order T^-alpha and
regret of order T^(2 alpha).

The slack is that of the *worst* policy in the learner's set on the true population, found by
maximising the true gap over the set.
"""

import math

import numpy as np
import pytest
from tests.claims.measure import GAMMA, column, lifetimes, mean, slope, slope_error

from evenhand import theory

ALPHAS = (1 / 4, 1 / 3, 1 / 2)
WIDE = (10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000)


def slacks(alpha, horizon, seeds, name="random", workers=1, frozen=None):
    """Worst true gap in the set minus gamma; the run ends when the set is known. `frozen` fixes T0:
    the negative control.
    """
    how = {"tradeoff_exponent": alpha} if frozen is None else {"exploration_rounds": frozen}
    rounds = frozen or theory.tradeoff_rounds(
        horizon, alpha, math.log(204 if name == "random" else 441), 0.05
    )
    runs = lifetimes(
        seeds,
        "two-phase",
        name,
        horizon,
        workers=workers,
        rounds=rounds + 1,
        limit=None,
        **how,
    )
    return column(runs, "set_gap") - GAMMA


def regrets(alpha, horizon, seeds, workers=1):
    """Exploration + bandit regret, both to the best policy in the set: what the learner pays in
    all.
    """
    what = ("two-phase", "random", horizon)
    return lifetimes(seeds, *what, workers=workers, limit=None, tradeoff_exponent=alpha)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_slack_shrinks_like_t_to_the_minus_alpha(alpha):
    """T = 1e4, 1e5, 1e6, 1e7, 6 seeds; a slope has a standard error below .01, so +-.05 has a
    false-alarm rate below 1e-4.

    Catches an exponent that is wrong by .07 (alpha = 1/3 for 1/4 is wrong by .083).
    """
    assert (
        abs(slope(WIDE[::2], [slacks(alpha, T, range(6)).mean() for T in WIDE[::2]]) + alpha)
        <= 0.05
    )


def test_the_check_sees_a_slack_that_does_not_shrink():
    """Negative controls: T0 frozen at 1000 gives slope 0, and each alpha's slopes refute the other
    alphas.
    """
    frozen = slope(WIDE[::2], [slacks(None, T, range(6), frozen=1000).mean() for T in WIDE[::2]])
    assert all(abs(frozen + alpha) > 0.05 for alpha in ALPHAS)
    third = slope(WIDE[::2], [slacks(1 / 3, T, range(6)).mean() for T in WIDE[::2]])
    assert abs(third + 1 / 4) > 0.05
    assert abs(third + 1 / 2) > 0.05


@pytest.mark.claims
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("name", ["random", "thresholds"])
def test_full_slack(claims, workers, alpha, name):
    """40 seeds, T = 1e4 to 1e7; standard errors below .005: +-.04 has a false-alarm rate below 1e-6
    and catches a slope wrong by .05.
    """
    found = [slacks(alpha, T, range(40), name, workers) for T in WIDE]
    fitted, error = slope(WIDE, [s.mean() for s in found]), slope_error(WIDE, found)
    claims.add(
        f"gap of the worst policy in the set minus gamma, alpha = {alpha:.3f}, {name}",
        f"slope {-alpha:.3f} +- .04",
        f"{fitted:.3f} +- {error:.3f} "
        f"({found[0].mean():.3f} at T=1e4, {found[-1].mean():.4f} at T=1e7)",
        abs(fitted + alpha) <= 0.04,
        "the same set",
    )
    assert abs(fitted + alpha) <= 0.04


@pytest.mark.claims
@pytest.mark.parametrize("alpha", ALPHAS)
def test_full_regret(claims, workers, alpha):
    """20 seeds, T = 1e4 to 1e7. "About 2 alpha" is within .08 for alpha >= 1/3; for alpha = 1/4 the
    bandit's part decides and the slope is to be at most .55. Standard errors below .02."""
    horizons = WIDE[::2]
    found = [regrets(alpha, T, range(20), workers) for T in horizons]
    paid = [column(runs, "exploration") * 1.0 + column(runs, "bandit_regret") for runs in found]
    true_cost = [column(runs, "regret") for runs in found]
    fitted, error = slope(horizons, [p.mean() for p in paid]), slope_error(horizons, paid)
    holds = abs(fitted - 2 * alpha) <= 0.08 if alpha > 0.3 else fitted <= 0.55
    rival = [
        lifetimes(
            range(20),
            "explore-then-commit",
            "random",
            T,
            workers=workers,
            limit=None,
            tradeoff_exponent=alpha,
        )
        for T in horizons
    ]
    rival_paid = [np.mean(column(r, "exploration") + column(r, "bandit_regret")) for r in rival]
    claims.add(
        f"exploration + regret, alpha = {alpha:.3f}, T=1e4 to 1e7",
        f"slope about {2 * alpha:.2f}" if alpha > 0.3 else "slope <= .55",
        f"{fitted:.3f} +- {error:.3f} "
        f"(regret to the best gamma-fair policy: {true_cost[0].mean():.0f} at T=1e4, "
        f"{true_cost[-1].mean():.0f} at T=1e7)",
        holds,
        f"{slope(horizons, rival_paid):.3f}",
    )
    assert holds
    assert mean(found[-1], "bandit_regret") >= 0
