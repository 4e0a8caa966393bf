"""The fractional counts of a randomised policy: below the exact wealth of the mixture, equal to it
for h in {0, 1}.
"""

import itertools
import math

import numpy as np
import pytest
from tests.bounds.exact_wealth import clamped_regression, terms
from tests.evaluation.worlds import logged

from evenhand.bounds import BettingBound
from evenhand.bounds.betting_wealth import CLASS_OF_NODE, NODES, THETA
from evenhand.evaluation.gap_process import LoggedGaps, cohort_of
from evenhand.fairness import FalsePositiveRate

FPR = FalsePositiveRate()


def bound():
    return BettingBound(("a", "b"), (FPR,), 1, 0.05)


def phi(m, p, reach, dangerous, accept, label):
    w = 1 / p
    clamped = float(
        clamped_regression(np.array(m), np.array(w), np.array(reach), np.array(dangerous))
    )
    return clamped + (w * ((label == -1) - clamped) if accept else 0.0)


def exact_log_wealth(log, q, m, group, plan, j, side, k, node):
    """ln prod [q (1 -+ g phi_1 (1 - f)) + (1 - q)(1 +- g phi_0 f)], one person after the other."""
    f, total, sign = NODES[node], 0.0, (-1.0, 1.0)[side]
    for i in np.flatnonzero(group == j):
        parts = []
        for h in (1, 0):
            g, reach = terms(plan.bets[0, 0, k], plan.inverse_share[0, j], CLASS_OF_NODE[node], h)
            value = phi(
                m[i], log.acceptance[i], reach, h == (side == 0), log.accept[i], log.label[i]
            )
            parts.append(1 + sign * g * value * (h - f))
        total += math.log(q[i] * parts[0] + (1 - q[i]) * parts[1])
    return total


@pytest.mark.parametrize("seed", range(4))
def test_the_evidence_is_below_the_exact_wealth_of_the_mixture(seed):
    log, _ = logged(60, seed, floor=0.02)
    rng = np.random.default_rng(seed)
    q, m = rng.random(60), rng.random(60)
    group = (log.group == "b").astype(np.int64)
    process = LoggedGaps.start(bound())
    plan = process.plan()
    after = process.step(cohort_of(log, slice(0, 60), q, group, m))
    for j, k, side, node in itertools.product((0, 1), range(6), (0, 1), range(0, len(NODES), 5)):
        exact = exact_log_wealth(log, q, m, group, plan, j, side, k, node)
        assert after.state.wealth[0, 0, j, k, side, node] <= exact + 1e-9


def test_the_mixture_s_factor_has_mean_one_at_the_truth():
    """Two kinds of people, every outcome and coin: the mean of the factor at f = E[N q]/E[N] is 1,
    and it is at least 1 - THETA.
    """
    kinds = [(0.3, 0.9, 0.05, 0.2), (0.7, 0.25, 0.6, 0.8)]  # share, q, p, P[y = -1]
    f = sum(s * q * n for s, q, p, n in kinds) / sum(s * n for s, q, p, n in kinds)
    for g, side in itertools.product((0.02, 0.4, 0.5), (0, 1)):
        mean = 0.0
        for (share, q, p, rate), label, accept in itertools.product(kinds, (-1, 1), (True, False)):
            chance = share * (rate if label == -1 else 1 - rate) * (p if accept else 1 - p)
            parts = []
            for h in (1, 0):
                deviation = 1.0
                value = phi(0.5, p, THETA / (g * deviation), h == (side == 0), accept, label)
                parts.append(1 + (-1.0, 1.0)[side] * g * value * (h - f))
            assert min(parts) >= 1 - THETA - 1e-12
            mean += chance * (q * parts[0] + (1 - q) * parts[1])
        assert mean == pytest.approx(1.0, abs=1e-12)


def test_estimates_are_the_self_normalised_doubly_robust_ones():
    log, _ = logged(500, 5)
    q, m = np.random.default_rng(0).random(500), np.full(500, 0.3)
    group = (log.group == "b").astype(np.int64)
    process = LoggedGaps.start(bound()).step(cohort_of(log, slice(0, 500), q, group, m))
    weight = m + np.where(log.accept, ((log.label == -1) - m) / log.acceptance, 0.0)
    by_hand = [(weight * q)[group == j].sum() / weight[group == j].sum() for j in (0, 1)]
    assert process.estimates[0].tolist() == pytest.approx(by_hand, rel=1e-12)


def test_nobody_in_a_denominator_is_unknown_not_zero():
    assert np.isnan(LoggedGaps.start(bound()).estimates).all()
