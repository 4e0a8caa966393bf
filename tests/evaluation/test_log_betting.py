"""The loss process against its product form on tiny logs, and the laws that its proof uses; the
fractional counts of a randomised policy: below the exact wealth of the mixture.
"""

import itertools
import math

import numpy as np
import pytest
from tests.bounds.exact_wealth import clamped_regression, terms
from tests.evaluation.worlds import POLICY, logged

from evenhand.bounds import BettingBound
from evenhand.bounds.betting_wealth import CLASS_OF_NODE, NODES, THETA
from evenhand.errors import InvalidInput
from evenhand.evaluation.log_betting import (
    LoggedGaps,
    LossBound,
    LossRows,
    LossState,
    cohort_of,
    largest_consistent,
)
from evenhand.fairness import FalsePositiveRate
from evenhand.words import Prices

FPR = FalsePositiveRate()
BOUND = LossBound(Prices(2.0, 1.0), 0.05)


def phi(m, w, d, room, accepted, negative):
    """The clamped estimate, case by case as the docstring says."""
    if w > 1 and d > 0:
        m = max(m, (w - room / d) / (w - 1))
    if w > 1 and d < 0:
        m = min(m, room / (abs(d) * (w - 1)))
    assert -1e-12 <= m <= 1 + 1e-12
    return m + (w * ((1 if negative else 0) - m) if accepted else 0.0)


def exact_log_wealth(pi, w, m, outcomes, bet, low, theta, flip):
    """ln prod (1 - lambda (Z - theta)), factor by factor, for the loss or for 1 - loss."""
    total = 0.0
    for q, weight, guess, (accepted, negative) in zip(pi, w, m, outcomes, strict=True):
        base, d = 0.5 * (1 - q), q - 0.5 * (1 - q)
        if flip:
            base, d = 1 - base, -d
        z = base + d * phi(guess, weight, d, low + 0.5 / bet - base, accepted, negative)
        assert bet * (z - low) <= 0.5 + 1e-9
        total += math.log(1 - bet * (z - theta))
    return total


def random_rows(seed, n=12, least=0.01):
    rng = np.random.default_rng(seed)
    accepted = rng.random(n) < 0.6
    return LossRows(
        rng.random(n),
        1 / rng.uniform(least, 1, n),
        rng.random(n),
        accepted,
        accepted & (rng.random(n) < 0.5),
        np.zeros(n, bool),
        np.ones(n),
    )


def polynomial(state, side, k, theta):
    a, b, c, e, h = state.sums[:, side, k]
    return theta * b - a - (c - 2 * theta * e + theta**2 * h)


@pytest.mark.parametrize("least", [0.01, 0.3])
@pytest.mark.parametrize("seed", range(8))
def test_the_sums_stay_below_the_exact_wealth_and_close_to_it(seed, least):
    """Independent product form, at every theta of a grid in [0, 1], all bets, both sides; tight
    where bets and weights are small.
    """
    rows = random_rows(seed, least=least)
    state = BOUND.update(BOUND.start(), rows)
    told = list(zip(rows.accepted, rows.negative, strict=True))
    for k, bet in enumerate(BOUND.bets(BOUND.start())):
        for theta, side in itertools.product(np.linspace(0, 1, 11), (0, 1)):
            exact = exact_log_wealth(
                rows.policy, rows.inverse, rows.regression, told, bet, 0.0, theta, side == 1
            )
            assert polynomial(state, side, k, theta) <= exact + 1e-9
            if k == 5 and least == 0.3:
                assert polynomial(state, side, k, theta) >= exact - 0.1 * (1 + abs(exact))


def test_the_factor_has_mean_one_at_the_truth():
    """Enumerate outcome and coin of one person: E[Z] is the loss whatever the clamp does, so
    E[factor] = 1 at theta = loss.
    """
    for q, p, m, rate, bet in itertools.product(
        (0.0, 0.3, 1.0), (0.02, 0.5, 1.0), (0.0, 0.4, 1.0), (0.2, 0.9), (0.5, 0.01)
    ):
        loss = rate * q + (1 - rate) * 0.5 * (1 - q)
        for flip in (False, True):
            mean = 0.0
            for negative, accepted in itertools.product((True, False), (True, False)):
                chance = (rate if negative else 1 - rate) * (p if accepted else 1 - p)
                theta = 1 - loss if flip else loss
                if chance:
                    factor = math.exp(
                        exact_log_wealth(
                            [q], [1 / p], [m], [(accepted, negative)], bet, 0.0, theta, flip
                        )
                    )
                    mean += chance * factor
            assert mean == pytest.approx(1.0, abs=1e-12)


def test_an_open_label_costs_at_least_what_either_label_would():
    rows = random_rows(3)
    row = int(np.flatnonzero(rows.accepted)[0])
    open = np.zeros(12, bool)
    open[row] = True
    worst = BOUND.update(
        BOUND.start(),
        LossRows(
            *(
                getattr(rows, n)
                for n in ("policy", "inverse", "regression", "accepted", "negative")
            ),
            open,
            rows.count,
        ),
    )
    for label in (False, True):
        negative = rows.negative.copy()
        negative[row] = label
        known = BOUND.update(
            BOUND.start(),
            LossRows(
                rows.policy,
                rows.inverse,
                rows.regression,
                rows.accepted,
                negative,
                np.zeros(12, bool),
                rows.count,
            ),
        )
        for side, k, theta in itertools.product((0, 1), range(6), (0.0, 0.4, 1.0)):
            assert polynomial(worst, side, k, theta) <= polynomial(known, side, k, theta) + 1e-12


def test_a_count_is_so_many_equal_rows():
    rows = random_rows(4, 1)
    many = LossRows(
        *(
            np.repeat(getattr(rows, n), 3)
            for n in ("policy", "inverse", "regression", "accepted", "negative", "open", "count")
        )
    )
    counted = LossRows(
        rows.policy,
        rows.inverse,
        rows.regression,
        rows.accepted,
        rows.negative,
        rows.open,
        3 * rows.count,
    )
    assert np.allclose(
        BOUND.update(BOUND.start(), many).sums,
        BOUND.update(BOUND.start(), counted).sums,
        rtol=1e-12,
    )


def test_only_a_cut_that_reaches_the_top_is_made():
    """theta b - a - c + 2 theta e - theta^2 h >= L between the roots 0.25 and 0.75 (b = 2, h = 2, a
    + L = .375).
    """
    sums = np.array([[0.0], [2.0], [0.0], [0.0], [2.0]])
    assert largest_consistent(sums, 0.375, 0.7) == pytest.approx(0.25)
    assert largest_consistent(sums, 0.375, 1.0) == 1.0
    assert largest_consistent(sums, 0.375, 0.2) == 0.2


def test_intervals_narrow_and_a_contradiction_is_seen():
    log, label = logged(20_000, 2)
    pi = POLICY.acceptance(log.features)
    bound, state = LossBound(Prices(), 0.05), LossBound(Prices(), 0.05).start()
    widths = []
    for start in range(0, 20_000, 2000):
        at = slice(start, start + 2000)
        state = bound.update(state, LossRows.of(log, at, pi, np.full(2000, 0.4)))
        widths.append(state.upper - state.lower)
    truth = np.where(label == 1, 1 - pi, pi).mean()
    assert state.lower < truth < state.upper
    assert (np.diff(widths) <= 1e-12).all()
    assert widths[-1] < 0.08
    assert LossState(state.sums, 0.5, 0.4).contradiction


def test_refusals():
    with pytest.raises(InvalidInput, match="prices"):
        LossBound(Prices(0.0, 0.0), 0.05)
    with pytest.raises(InvalidInput):
        LossBound(Prices(np.ones(3), 1.0), 0.05)


# the gaps


def bound():
    return BettingBound(("a", "b"), (FPR,), 1, 0.05)


def gap_phi(m, p, reach, dangerous, accept, label):
    w = 1 / p
    clamped = float(
        clamped_regression(np.array(m), np.array(w), np.array(reach), np.array(dangerous))
    )
    return clamped + (w * ((label == -1) - clamped) if accept else 0.0)


def exact_gap_wealth(log, q, m, group, plan, j, side, k, node):
    """ln prod [q (1 -+ g phi_1 (1 - f)) + (1 - q)(1 +- g phi_0 f)], one person after the other."""
    f, total, sign = NODES[node], 0.0, (-1.0, 1.0)[side]
    for i in np.flatnonzero(group == j):
        parts = []
        for h in (1, 0):
            g, reach = terms(plan.bets[0, 0, k], plan.inverse_share[0, j], CLASS_OF_NODE[node], h)
            value = gap_phi(
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
        exact = exact_gap_wealth(log, q, m, group, plan, j, side, k, node)
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
                value = gap_phi(0.5, p, THETA / (g * deviation), h == (side == 0), accept, label)
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
