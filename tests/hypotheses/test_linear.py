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
from evenhand.hypotheses.serialise import hypothesis_from_json
from evenhand.tables import prepare, read_frame, read_table


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


def test_surrogate_equals_scikit_learn_up_to_its_penalties(monkeypatch):
    monkeypatch.setattr(linear, "PRIOR", 0.0)
    monkeypatch.setattr(linear, "FEW", 0.0)
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

    found = fit_logistic(white, weight * (sign > 0), weight * (sign < 0), np.full(3, 0.01))
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
    assert LinearRule((0.0,), 1.0).describe() == "accept if 0 >= 1"


def test_a_rule_is_described_by_what_its_columns_contribute():
    """Weight times spread: an income in euros comes before a mark that one person has, and no
    column that decides is left out.
    """
    names = ["income", "Marital=missing", "age"]
    rule = LinearRule((0.001, 0.9, -0.05), 2.0, (1000.0, 0.02, 12.0))
    said = "accept if 0.001 income - 0.05 age + 0.9 Marital=missing >= 2"
    assert rule.describe(names) == said
    assert rule == LinearRule((0.001, 0.9, -0.05), 2.0)  # it is the same rule
    assert LinearRule((1.0,) * 9, 0.0, (1.0,) * 9).describe().count("x") == 9
    few = LinearRule((1.0,) * 9, 0.0, (1.0,) * 5 + (0.001,) * 4).describe(list("abcdefghi"))
    assert few == (
        "accept if 1 a + 1 b + 1 c + 1 d + 1 e "
        "+ smaller contributions (0.1% together) of f, g, h, i >= 0"
    )
    many = LinearRule((1.0,) * 20, 0.0, (1.0,) * 5 + (0.001,) * 15).describe()
    assert many.endswith("of x5, x6, x7, x8, x9 and 10 more >= 0")


def test_a_fitted_rule_knows_the_spread_of_its_columns():
    x, cost = problem(1)
    rule = Linear().bind(x, None).best(cost)
    np.testing.assert_allclose(rule.spread, x.std(axis=0), rtol=1e-3)
    np.testing.assert_array_equal(hypothesis_from_json(rule.to_json()).spread, rule.spread)
    first = Linear().bind(x, None).partition(cost).hypothesis(np.arange(len(x)) > 5)
    assert first.spread == rule.spread


def with_rare(seed, rows=500, rare=(1, 2, 5, 20)):
    """Numbers of several units, and columns that are 1 for a few people."""
    draw = np.random.default_rng(seed)
    x, cost = problem(seed, rows=rows)
    marks = [np.isin(np.arange(rows), draw.choice(rows, one, replace=False)) for one in rare]
    return np.column_stack([x, *marks]) * 1.0, cost


@pytest.mark.parametrize("seed", range(3))
def test_the_direction_is_the_minimum_of_the_formula(seed):
    """The docstring's formula on the columns as they are, minimised by scipy."""
    from scipy.optimize import minimize

    x, cost = with_rare(seed)
    size = np.abs(cost) / np.abs(cost).sum()
    people = 1.0 / (size @ size)
    apart = x - np.array([min(set(col), key=lambda v: (-(col == v).sum(), v)) for col in x.T])
    apart[:, :4] = x[:, :4] - np.median(x[:, :4], axis=0)  # all values occur once
    away = [np.abs(col[col != 0]) for col in apart.T]
    few = np.array([len(col) for col in away])
    rest = np.array([np.median(col) for col in away])
    unit = x.std(axis=0)

    def objective(g):
        weight = g[1:] / unit
        margin = x @ weight - (x @ weight).mean() + g[0]
        loss = size @ np.logaddexp(0.0, np.sign(cost) * margin)
        prior = (4.0 + 20.0 / few) * np.square(rest * weight) / people
        return loss + 0.5e-4 * (x @ weight).var() + 0.5 * prior.sum()

    other = minimize(objective, np.zeros(x.shape[1] + 1), options={"gtol": 1e-8}).x[1:]
    found = np.array(Linear().bind(x, None).direction(cost)) * unit
    np.testing.assert_allclose(found, other, atol=2e-3)


@pytest.mark.parametrize("seed", range(5))
def test_the_unit_of_a_column_changes_no_rule(seed):
    """Neither its zero nor its sign, also of a rare column."""
    x, cost = with_rare(seed)
    draw = np.random.default_rng(seed)
    unit = np.exp(draw.normal(0, 5, x.shape[1])) * draw.choice([-1, 1], x.shape[1])
    plain = Linear().bind(x, None).best(cost)
    other = Linear().bind(x * unit, None).best(cost)
    np.testing.assert_allclose(np.array(other.weights) * unit, plain.weights, rtol=1e-3, atol=1e-6)
    shifted = Linear().bind(x + draw.normal(size=x.shape[1]), None).best(cost)
    np.testing.assert_allclose(shifted.weights, plain.weights, rtol=1e-3, atol=1e-6)


def test_a_column_that_one_person_has_decides_about_nobody():
    """2,000 people, and a column that is 1 for one of them, who repaid."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(2000, 4))
    good = x @ [1.0, -1.0, 0.5, 0.0] + draw.logistic(size=2000) > 0
    mark = np.zeros(2000)
    mark[np.flatnonzero(good)[0]] = 1.0
    rule = Linear().bind(np.column_stack([x, mark]), None).best(np.where(good, -1.0, 1.0))
    assert 0.0 < rule.weights[4] < 1 / 24
    plain = rule.accepts(np.column_stack([x, np.zeros(2000)])).mean()
    marked = rule.accepts(np.column_stack([x, np.ones(2000)])).mean()
    other = LogisticRegression().fit(np.column_stack([x, mark]), good)
    moved = [other.predict(np.column_stack([x, np.full(2000, m)])).mean() for m in (1.0, 0.0)]
    assert abs(marked - plain) <= abs(moved[0] - moved[1]) + 0.05
    assert abs(marked - plain) < 0.01


def test_many_people_are_believed():
    """The penalty of a mark that half of the people have vanishes with their number."""
    draw = np.random.default_rng(1)
    mark = draw.integers(0, 2, 20_000) * 1.0
    good = draw.random(20_000) < 1 / (1 + np.exp(1.0 - 2.0 * mark))
    x = np.column_stack([mark, draw.normal(size=20_000)])
    direction = Linear().bind(x, None).direction(np.where(good, -1.0, 1.0))
    assert direction[0] == pytest.approx(2.0, abs=0.1)


def test_an_outlier_does_not_silence_its_column():
    """A column of 0 and 1 with one 666: its variance is that of the 666, its prior that of 0/1."""
    draw = np.random.default_rng(2)
    x = np.column_stack([draw.integers(0, 2, 2000), draw.normal(size=2000)]) * 1.0
    x[0, 0] = 666.0
    plain = linear.prior_scale(x[1:])
    assert linear.prior_scale(x) == pytest.approx(plain, rel=1e-2)


def test_numbers_without_a_square_are_no_harm():
    """1e200 squared is infinite; the rule is that of the column in other units."""
    draw = np.random.default_rng(4)
    x = draw.normal(size=(60, 2))
    cost = draw.normal(size=60)
    unit = np.array([1e100, 1e-100])
    rule = Linear().bind(x * unit, None).best(cost)
    assert rule.accepts(x * unit).tolist() == Linear().bind(x, None).best(cost).accepts(x).tolist()
    assert linear.spread_of(x * 1e200) == ()
    assert Linear().bind(x[:1], None).best(cost[:1]) in (ACCEPT_ALL, REJECT_ALL)


def test_people_who_count_much_count_as_people():
    """A person with the costs of 50 is no 50 people."""
    draw = np.random.default_rng(3)
    x = np.column_stack([draw.normal(size=(2000, 2)), np.arange(2000) < 1])
    cost = np.where(x[:, 0] + draw.logistic(size=2000) > 0, -1.0, 1.0)
    cost[0] = -50.0
    assert 0 < Linear().bind(x, None).direction(cost)[2] < 1.0


HOLES = (1, 2, 3, 5, 8)


def loans(seed, people=1200):
    """A generated table of texts and numbers, with a few blank fields in each column."""
    draw = np.random.default_rng(seed)
    income = np.exp(draw.normal(7.0, 0.8, people)).round()
    debt = draw.normal(200.0, 50.0, people).round(1)
    home = draw.choice(["own", "rent", "other"], people, p=[0.5, 0.4, 0.1])
    job = draw.choice(["a", "b", "c", "d"], people, p=[0.5, 0.3, 0.15, 0.05])
    score = np.log(income) - 0.015 * debt + 0.6 * (home == "own") - 0.5 * (job == "d") - 4.0
    good = score + draw.logistic(size=people) > 0
    columns = {"income": income, "debt": debt, "home": home, "job": job}
    table = {name: [str(value) for value in values] for name, values in columns.items()}
    for name in table:
        pool = np.flatnonzero(good == draw.choice([True, False]))  # all of them good, or all bad
        for at in draw.choice(pool, draw.choice(HOLES), replace=False):
            table[name][at] = ""
    table["sex"] = draw.choice(["f", "m"], people).tolist()
    table["repaid"] = np.where(good, "yes", "no").tolist()
    return table


def write(path, table):
    rows = zip(*table.values(), strict=True)
    path.write_text("\n".join(",".join(row) for row in [tuple(table), *rows]) + "\n")
    return path


def moved_by_blanks(tmp_path, seed, penalised=True):
    """For each column: by how much the acceptance of all moves if all leave it blank, with Linear
    and with scikit-learn on the same numbers.
    """
    table = loans(seed)
    path = write(tmp_path / "loans.csv", table)
    encoded = read_table(
        path, label="repaid", good="yes", group="sex", encode=True, fill_missing=["all"]
    ).encoded()
    x, good = encoded.features, encoded.label == 1
    rule = Linear().bind(x, None).best(np.where(good, -1.0, 1.0))
    unit = np.where(np.isin(x, (0, 1)).all(axis=0), 1.0, x.std(axis=0))  # numbers: a few steps
    other = LogisticRegression(max_iter=1000).fit(x / unit, good)
    moved = []
    for name in ("income", "debt", "home", "job"):
        blank = write(tmp_path / "blank.csv", {**table, name: [""] * len(good)})
        rows = prepare(read_frame(blank), encoded.recipe).features
        mine = rule.accepts(rows).mean() - rule.accepts(x).mean()
        theirs = other.predict(rows / unit).mean() - other.predict(x / unit).mean()
        moved.append((abs(mine), abs(theirs)))
    return moved


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(6))
def test_a_blank_field_moves_acceptance_no_more_than_scikit_learn(seed, tmp_path):
    for mine, theirs in moved_by_blanks(tmp_path, seed):
        assert mine <= theirs + 0.05


@pytest.mark.thorough
def test_without_the_prior_a_blank_field_decides(tmp_path, monkeypatch):
    """The negative control."""
    monkeypatch.setattr(linear, "PRIOR", 0.0)
    monkeypatch.setattr(linear, "FEW", 0.0)
    moved = [pair for seed in range(6) for pair in moved_by_blanks(tmp_path, seed)]
    assert max(mine - theirs for mine, theirs in moved) > 0.3


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
