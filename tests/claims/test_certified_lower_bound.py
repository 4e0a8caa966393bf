"""The lower-bound instance under a guarantee of T^-alpha: the certified learner pays of order T^(2
alpha), which theorem 4.1 says is least.

regret / T^(2 alpha), the mean over D1 and D2, is flat within 15% (of its geometric mean) and at
most 6; violations are within the binomial limit.
"""

import numpy as np
import pytest
from joblib import Parallel, delayed
from tests.claims.certified import DELTA, FPR, ROUNDING
from tests.claims.measure import binomial_limit, detectable

from evenhand.environments import LowerBound
from evenhand.learners import AcceptAll, CertifiedLearner, TwoPhaseLearner
from evenhand.simulation import simulate

HORIZONS = {1 / 4: (10**5, 10**6, 10**7), 1 / 3: (10**4, 10**5, 10**6, 10**7)}


def certified(hypotheses, gap):
    return CertifiedLearner(hypotheses, FPR, gap, DELTA)


def life(seed, which, alpha, horizon, make=certified):
    """(regret / T^(2 alpha), whether some policy exceeded T^-alpha)."""
    gap = horizon**-alpha
    world = LowerBound(which, gap)
    run = simulate(make(world.hypotheses, gap), world, horizon, seed, gap)
    return float(run.regret[-1]) / horizon ** (2 * alpha), run.worst_gap > gap + ROUNDING


def keeps_the_claim(found):
    """A constant between 1 and 6, and no more violations than delta allows (false alarm 1e-3)."""
    broken = sum(broken for _, broken in found)
    constant = np.mean([ratio for ratio, _ in found])
    return bool(1 <= constant <= 6 and broken <= binomial_limit(len(found), DELTA, 1e-3))


@pytest.mark.parametrize(("alpha", "horizon"), [(1 / 4, 10**6), (1 / 3, 10**5)])
def test_the_guarantee_costs_a_constant_times_t_to_the_two_alpha(alpha, horizon):
    """3 seeds on each distribution; a constant of 6.5 and a rate of violations of .9 are caught."""
    found = [life(seed, which, alpha, horizon) for seed in range(3) for which in (1, 2)]
    assert keeps_the_claim(found)


BROKEN = {
    "a limit of 4 gamma": lambda H, gap: CertifiedLearner(H, FPR, 4 * gap, DELTA),
    "two-phase": lambda H, gap: TwoPhaseLearner(H, FPR, gap, DELTA, 10**6, comparator_gap=0.0),
    "accept all": lambda H, gap: AcceptAll(),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_check_sees_another_constant_and_a_broken_guarantee(name):
    """Negative controls: under 4 gamma the unfair rule is allowed, two-phase pays 20 to 30 times
    T^(2 alpha), and accepting all applicants pays in proportion to T.
    """
    found = [life(0, which, 1 / 4, 10**6, BROKEN[name]) for which in (1, 2)]
    assert not keeps_the_claim(found)


def is_flat(ratios):
    """Within 15% of the geometric mean, and at most 6."""
    middle = np.exp(np.log(ratios).mean())
    return bool(np.abs(ratios / middle - 1).max() <= 0.15 and ratios.max() <= 6)


def test_the_check_of_the_full_tier_sees_another_exponent():
    """Negative control: a regret of order T^(2 alpha + .1), and constants of 6.5."""
    horizons = np.array(HORIZONS[1 / 4], dtype=float)
    assert is_flat(np.full(3, 3.0))
    assert not is_flat(3.0 * (horizons / horizons[0]) ** 0.1)
    assert not is_flat(np.full(3, 6.5))


@pytest.mark.claims
@pytest.mark.parametrize("alpha", HORIZONS)
def test_full(claims, workers, alpha):
    """40 seeds per distribution and horizon: the standard error of each ratio is below 4%, so a
    drift of 20% over the range is caught.
    """
    jobs = [(s, which, alpha, T) for T in HORIZONS[alpha] for which in (1, 2) for s in range(40)]
    found = np.array(Parallel(n_jobs=workers)(delayed(life)(*job) for job in jobs)).reshape(
        len(HORIZONS[alpha]), 80, 2
    )
    ratios, errors = found[..., 0].mean(axis=1), found[..., 0].std(axis=1, ddof=1) / np.sqrt(80)
    flat = np.abs(ratios / np.exp(np.log(ratios).mean()) - 1).max()
    broken = int(found[..., 1].sum())
    limit = binomial_limit(found[..., 1].size, DELTA, 1e-6)
    holds = is_flat(ratios) and broken <= limit
    claims.add(
        f"certified: lower-bound instance, guarantee T^-{alpha:.2f}, regret / T^{2 * alpha:.2f}, "
        f"T={HORIZONS[alpha][0]:.0e} to 1e7",
        f"flat within 15%, <= 6; violations <= {limit} "
        f"(catches {detectable(found[..., 1].size, limit):.2f})",
        f"{', '.join(f'{r:.2f}+-{e:.2f}' for r, e in zip(ratios, errors, strict=True))}: "
        f"within {flat:.0%}; {broken} violations",
        holds,
    )
    assert holds
