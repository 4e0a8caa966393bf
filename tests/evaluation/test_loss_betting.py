"""The loss process against its product form on tiny logs, and the laws that its proof uses."""

import itertools
import math

import numpy as np
import pytest
from tests.evaluation.worlds import POLICY, logged

from evenhand.errors import InvalidInput
from evenhand.evaluation.evaluate import _loss_rows
from evenhand.evaluation.loss_betting import LossBound, LossRows, LossState, largest_consistent
from evenhand.words import Prices

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
    """ln prod (1 - lambda (Z - theta)), one factor after the other, for the loss or for 1 - loss."""
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
        rng.random(n), 1 / rng.uniform(least, 1, n), rng.random(n), accepted, accepted & (rng.random(n) < 0.5),
        np.zeros(n, bool), np.ones(n),
    )  # fmt: skip


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
        state = bound.update(state, _loss_rows(log, at, pi, np.full(2000, 0.4)))
        widths.append(state.upper - state.lower)
    truth = np.where(label == 1, 1 - pi, pi).mean()
    assert state.lower < truth < state.upper
    assert (np.diff(widths) <= 1e-12).all()
    assert widths[-1] < 0.08
    assert LossState(state.sums, 0.5, 0.4).contradiction


def test_refusals():
    with pytest.raises(InvalidInput, match="both prices are 0"):
        LossBound(Prices(0.0, 0.0), 0.05)
    with pytest.raises(InvalidInput, match="one entry per person"):
        LossBound(Prices(np.ones(3), 1.0), 0.05)
