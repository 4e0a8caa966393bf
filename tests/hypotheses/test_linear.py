import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from evenhand.errors import InvalidInput, LengthMismatch, NotFinite
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, Linear, LinearRule
from evenhand.hypotheses.linear import fit_logistic, log_sauer, row_scores, whitener


def problem(seed, rows=400, columns=4):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, columns)) @ draw.normal(size=(columns, columns)) * [1e3, 1.0, 1e-3, 1.0][:columns] + 5.0
    truth = draw.normal(size=columns) / x.std(axis=0)
    good = (x - x.mean(axis=0)) @ truth + draw.normal(size=rows) > 0
    return x, np.where(good, -1.0, 1.0) * draw.random(rows)


def test_surrogate_equals_scikit_learn_up_to_its_penalty():
    x, cost = problem(0)
    direction = Linear(penalty=1e-9).bind(x, None)._direction(cost)
    standard = (x - x.mean(axis=0)) / x.std(axis=0)
    other = LogisticRegression(C=1e9, max_iter=5000, tol=1e-10).fit(standard, cost < 0, sample_weight=np.abs(cost))
    np.testing.assert_allclose(np.array(direction) * x.std(axis=0), other.coef_[0], rtol=1e-3)


def test_fit_is_a_stationary_point():
    draw = np.random.default_rng(1)
    white, sign, weight = draw.normal(size=(200, 3)), draw.choice([-1.0, 1.0], 200), np.full(200, 1 / 200)

    def loss(g):
        free = min(float(weight @ np.logaddexp(0, -sign * (white @ g + b))) for b in np.linspace(-0.5, 0.5, 2001))
        return free + 0.005 * g @ g

    found = fit_logistic(white, sign, weight, 0.01)
    assert all(loss(found) <= loss(found + step) + 1e-7 for step in 0.01 * draw.normal(size=(20, 3)))


def test_whitening_drops_what_carries_no_information():
    draw = np.random.default_rng(2)
    a = draw.normal(size=300)
    x = np.column_stack([a * 1e6, np.full(300, 0.1), a * 1e6, draw.normal(size=300)])
    white = (x - x.mean(axis=0)) @ whitener(x)
    assert white.shape == (300, 2)
    np.testing.assert_allclose(white.T @ white / 300, np.eye(2), atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_cut_off_is_the_exact_best_along_the_direction(seed):
    x, cost = problem(seed, rows=60)
    bound = Linear().bind(x, None)
    best = bound.best(cost)
    score = row_scores(x, bound._direction(cost))
    brute = min(math.fsum(cost[score >= t]) for t in [-math.inf, *score, math.inf])
    assert math.isclose(math.fsum(cost[best.accepts(x)]), brute, abs_tol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 100_000), st.integers(1, 20), st.integers(1, 4))
def test_never_worse_than_the_constants(seed, rows, columns):
    draw = np.random.default_rng(seed)
    x, cost = draw.integers(-1, 2, (rows, columns)) * 1.0, draw.normal(size=rows)
    best = Linear().bind(x, None).best(cost)
    assert cost[best.accepts(x)].sum() <= min(0.0, cost.sum()) + 1e-12


def test_separable_rows_are_separated():
    x = np.linspace(-1, 1, 20)[:, None]
    cost = np.where(x[:, 0] > 0, -1.0, 1.0)
    best = Linear().bind(x, None).best(cost)
    assert best.accepts(x).tolist() == (x[:, 0] > 0).tolist()


def test_one_sided_costs_are_answered_by_constants():
    bound = Linear().bind(np.eye(3), None)
    assert bound.best(np.array([-1.0, 0.0, -2.0])) == ACCEPT_ALL
    assert bound.best(np.array([1.0, 0.0, 2.0])) == REJECT_ALL
    assert bound.best(np.zeros(3)) == ACCEPT_ALL


def test_answers_are_bit_for_bit_the_same_after_permuting_and_scaling():
    x, cost = problem(3)
    best = Linear().bind(x, None).best(cost)
    order = np.random.default_rng(0).permutation(len(x))
    assert Linear().bind(x[order], None).best(cost[order]) == best
    assert all(Linear().bind(x, None).best(cost * scale) == best for scale in (1e-12, 3.7, 1e12))


def test_describe():
    rule = LinearRule((0.5, -2.0, 0.0), 30.0)
    assert rule.describe(["age", "debt", "none"]) == "accept if - 2 debt + 0.5 age >= 30"
    assert LinearRule((2.0, -0.5), 1.5).describe() == "accept if 2 x0 - 0.5 x1 >= 1.5"
    assert "+ 3 smaller terms" in LinearRule(tuple(range(1, 9)), 0.0).describe()
    assert LinearRule((0.0,), 1.0).describe() == "accept if 0 >= 1"


def test_growth_is_sauers_bound():
    assert Linear().log_growth(3, 2) == pytest.approx(3 * math.log(2))
    assert Linear().log_growth(10, 2) == pytest.approx(math.log(sum(math.comb(10, i) for i in range(4))))
    assert log_sauer(10**6, 500) <= 500 * (1 + math.log(10**6 / 500))
    assert Linear().log_size == math.inf


def test_bad_input():
    for penalty in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InvalidInput, match="penalty"):
            Linear(penalty=penalty)
    with pytest.raises(NotFinite):
        Linear().bind(np.array([[np.inf]]), None)
    with pytest.raises(LengthMismatch):
        Linear().bind(np.eye(2), None).best(np.ones(3))
    with pytest.raises(InvalidInput, match=r"3 columns.*2 columns"):
        LinearRule((1.0, 2.0), 0.0).accepts(np.zeros((1, 3)))
