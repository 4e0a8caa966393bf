import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from evenhand.computing import computing_in
from evenhand.errors import InvalidInput, LengthMismatch, NotFinite
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, Linear, LinearRule, linear
from evenhand.hypotheses.linear import fit_logistic, log_sauer, minimum, row_scores, whitener


def problem(seed, rows=400, columns=4):
    draw = np.random.default_rng(seed)
    x = (
        draw.normal(size=(rows, columns))
        @ draw.normal(size=(columns, columns))
        * [1e3, 1.0, 1e-3, 1.0][:columns]
        + 5.0
    )
    truth = draw.normal(size=columns) / x.std(axis=0)
    good = (x - x.mean(axis=0)) @ truth + draw.normal(size=rows) > 0
    return x, np.where(good, -1.0, 1.0) * draw.random(rows)


def test_surrogate_equals_scikit_learn_up_to_its_penalty():
    x, cost = problem(0)
    direction = Linear(penalty=1e-9).bind(x, None).direction(cost)
    standard = (x - x.mean(axis=0)) / x.std(axis=0)
    other = LogisticRegression(C=1e9, max_iter=5000, tol=1e-10).fit(
        standard, cost < 0, sample_weight=np.abs(cost)
    )
    np.testing.assert_allclose(np.array(direction) * x.std(axis=0), other.coef_[0], rtol=1e-3)


def test_fit_is_a_stationary_point():
    draw = np.random.default_rng(1)
    white, sign, weight = (
        draw.normal(size=(200, 3)),
        draw.choice([-1.0, 1.0], 200),
        np.full(200, 1 / 200),
    )

    def loss(g):
        free = min(
            float(weight @ np.logaddexp(0, -sign * (white @ g + b)))
            for b in np.linspace(-0.5, 0.5, 2001)
        )
        return free + 0.005 * g @ g

    found = fit_logistic(white, weight * (sign > 0), weight * (sign < 0), 0.01)
    assert all(
        loss(found) <= loss(found + step) + 1e-7 for step in 0.01 * draw.normal(size=(20, 3))
    )


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
    score = row_scores(x, bound.direction(cost))
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


def one_hot(seed, rows=600, kinds=(7, 12, 30), distinct=400):
    """Rows with one 1 for each kind, a number, and zeros elsewhere; some rows are repeated."""
    draw = np.random.default_rng(seed)
    parts = [np.eye(kind)[draw.integers(0, kind, distinct)] for kind in kinds]
    x = np.column_stack([draw.integers(0, 50, distinct), *parts])[draw.integers(0, distinct, rows)]
    good = x @ draw.normal(size=x.shape[1]) + 3.0 * draw.normal(size=rows) > 0
    return x, np.where(good, -1.0, 1.0) * draw.random(rows)


def test_equal_rows_are_fitted_as_one_row(monkeypatch):
    """The fit looks at distinct rows alone, and its answer is that of a fit to all of them, told
    apart by a copy of each row.
    """
    x, cost = one_hot(0)
    bound, seen, fit = Linear().bind(x, None), [], linear.fit_logistic
    monkeypatch.setattr(
        linear, "fit_logistic", lambda white, *rest: seen.append(len(white)) or fit(white, *rest)
    )
    best = bound.best(cost)
    assert seen == [len(np.unique(x, axis=0))] != [len(x)]
    monkeypatch.setattr(
        linear, "distinct_rows", lambda rows: (np.arange(len(rows)), np.arange(len(rows)))
    )
    apart = Linear().bind(x, None).best(cost)
    assert seen[1:] == [len(x)]
    np.testing.assert_allclose(best.weights, apart.weights, rtol=1e-6)
    assert best.accepts(x).tolist() == apart.accepts(x).tolist()


def test_rows_are_told_apart_where_a_score_cannot_do_it():
    """A score that is too coarse merges nothing: 1e20 + 1 is 1e20."""
    x = np.array([[1e20, 0.0], [1e20, 1.0], [0.0, 0.0], [1e20, 0.0]])
    first, index = linear.distinct_rows(x)
    assert (x[first[index]] == x).all()


def test_zeros_are_not_scored():
    """The score of a bound row is added up from its entries that are not zero, to the bits of all
    of them.
    """
    x, _ = one_hot(1)
    bound = Linear().bind(x, None)
    weights = tuple(np.random.default_rng(0).normal(size=x.shape[1]).tolist())
    assert len(bound.entries[0]) == np.count_nonzero(bound.rows) <= 4 * len(bound.rows)
    assert bound.scores(weights)[bound.index].tobytes() == row_scores(x, weights).tobytes()
    assert Linear().bind(np.random.default_rng(0).normal(size=(50, 3)), None).entries is None


@pytest.mark.parametrize("rules", [1, 5])
def test_compiled_scores_are_the_plain_ones_bit_for_bit(rules, monkeypatch):
    x, _ = one_hot(2)
    x[::7, 0] = -0.0
    weights = np.random.default_rng(0).normal(size=(rules, x.shape[1])) * (
        np.random.default_rng(1).random(x.shape[1]) < 0.9
    )
    found = []
    monkeypatch.setattr(linear, "WORTH_A_CALL", 1)
    for how in ("numpy", "numba"):
        with computing_in(how):
            found.append(linear.scores(x.T, weights))
    assert found[0].tobytes() == found[1].tobytes()
    assert found[0][0].tolist() == [
        sum(w * v for w, v in zip(weights[0], row, strict=True)) for row in x.tolist()
    ]


def test_weights_without_end_are_left_to_plain_code(monkeypatch):
    """Infinity times zero is no number, so that zeros may not be passed over."""
    monkeypatch.setattr(linear, "WORTH_A_CALL", 1)
    with np.errstate(invalid="ignore"), computing_in("numba"):
        assert np.isnan(linear.scores(np.zeros((2, 3)), np.array([[np.inf, 1.0]]))).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_minimum_is_scipys(seed, monkeypatch):
    from scipy.optimize import minimize

    draw = np.random.default_rng(seed)
    matrix, shift = draw.normal(size=(40, 6)), draw.normal(size=40)

    def loss_and_slope(g):
        margin = matrix @ g + shift
        return float(np.logaddexp(0, margin).mean() + 0.05 * g @ g), matrix.T @ (
            1 / (1 + np.exp(-margin))
        ) / 40 + 0.1 * g

    found = minimum(loss_and_slope, np.zeros(6))
    assert np.abs(loss_and_slope(found)[1]).max() <= linear.SLOPE
    other = minimize(
        loss_and_slope, np.zeros(6), jac=True, method="L-BFGS-B", options={"gtol": 1e-10, "ftol": 0}
    )
    np.testing.assert_allclose(found, other.x, atol=2e-3)
    monkeypatch.setattr(linear, "SLOPE", 1e-8)
    closer = minimum(loss_and_slope, np.zeros(6))
    assert loss_and_slope(closer)[0] == pytest.approx(other.fun, rel=1e-9)


def test_the_minimum_is_found_from_far_away():
    """Where the first step is far too long, it is shortened until the function falls."""

    def steep(g):
        slope = np.array([2.0 * np.sinh(2.0 * (g[0] - 1.0))])
        return float(np.cosh(2.0 * (g[0] - 1.0))), slope

    assert minimum(steep, np.zeros(1))[0] == pytest.approx(1.0, abs=1e-4)


def test_very_many_cut_offs_are_offered_in_runs_with_the_cheapest_among_them(monkeypatch):
    x, cost = problem(0)
    bound = Linear().bind(x, None)
    best = bound.best(cost)
    every = bound.partition(cost)
    monkeypatch.setattr(linear, "MOST_CELLS", 20)
    few = bound.partition(cost)
    assert every.cells == len(x)
    assert few.cells in (20, 21)
    assert best.accepts(x).tolist() in [
        (few.cell >= first).tolist() for first in range(few.cells + 1)
    ]
    offered = {few.hypothesis(np.arange(few.cells) >= first) for first in range(few.cells + 1)}
    assert best in offered
    assert {ACCEPT_ALL, REJECT_ALL} <= offered


def test_a_fair_linear_rule_needs_neither_scipys_optimisers_nor_numba():
    """Both are slow to load; in a fresh interpreter, because others may have loaded them."""
    code = (
        "import sys, numpy as np, evenhand as eh\n"
        "r = np.random.default_rng(0); x = r.normal(size=(200, 3))\n"
        "label = np.where(x[:, 0] + r.normal(size=200) > 0, 1, -1)\n"
        "sample = eh.LabelledSample(x, np.repeat([0, 1], 100), label)\n"
        "problem = eh.Prices().problem(x, None, sample.label)\n"
        "eh.solve_fair(problem, eh.Linear(), eh.FalsePositiveRate(), sample, 0.05)\n"
        "print({'scipy.optimize', 'numba'} & set(sys.modules))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert said.strip() == "set()"


def test_describe():
    rule = LinearRule((0.5, -2.0, 0.0), 30.0)
    assert rule.describe(["age", "debt", "none"]) == "accept if - 2 debt + 0.5 age >= 30"
    assert LinearRule((2.0, -0.5), 1.5).describe() == "accept if 2 x0 - 0.5 x1 >= 1.5"
    long = LinearRule(tuple(range(1, 9)), 0.0).describe()
    assert long.endswith("+ 4 x3 + smaller weights of x2, x1, x0 >= 0")
    longer = LinearRule(tuple(range(1, 13)), 0.0).describe()
    assert longer.endswith("+ smaller weights of x6, x5, x4, x3, x2, ... >= 0")
    assert LinearRule((0.0,), 1.0).describe() == "accept if 0 >= 1"


def test_growth_is_sauers_bound():
    assert Linear().log_growth(3, 2) == pytest.approx(3 * math.log(2))
    assert Linear().log_growth(10, 2) == pytest.approx(
        math.log(sum(math.comb(10, i) for i in range(4)))
    )
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
