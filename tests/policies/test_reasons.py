"""Shapley values against all orders of the columns, one by one; the least change against a grid."""

import itertools

import numpy as np
import pytest

from evenhand.policies.reasons import Changeable, WeightedRule, attribution, least_change


def by_all_orders(acceptance, person, comparison):
    """The definition: every order of the columns, every comparison person, one at a time."""
    width = len(person)
    values = np.zeros(width)
    orders = list(itertools.permutations(range(width)))
    for order in orders:
        for other in comparison:
            row = other.copy()
            before = acceptance(row[None, :])[0]
            for column in order:
                row[column] = person[column]
                after = acceptance(row[None, :])[0]
                values[column] += (after - before) / len(orders) / len(comparison)
                before = after
    return values


def policy(seed, width=4):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(3))
    cut = rng.normal(size=width)
    slope = rng.normal(size=width)
    rules = [
        WeightedRule(weights[0], lambda rows: (rows[:, 1] >= cut[1]).astype(float), (1,)),
        WeightedRule(weights[1], lambda rows: (rows @ slope >= 0.1).astype(float), (0, 1, 2, 3)),
        WeightedRule(
            weights[2],
            lambda rows: ((rows[:, 0] < cut[0]) & (rows[:, 2] >= cut[2])).astype(float),
            (0, 2),
        ),
    ]
    return rules, lambda rows: sum(rule.weight * rule.accepts(rows) for rule in rules), rng


@pytest.mark.parametrize("seed", range(8))
def test_the_values_are_those_of_all_orders(seed):
    rules, acceptance, rng = policy(seed)
    person, comparison = rng.normal(size=4), rng.normal(size=(7, 4)).round(1)
    reasons = attribution(rules, person, comparison)
    np.testing.assert_allclose(
        reasons.values, by_all_orders(acceptance, person, comparison), atol=1e-12
    )
    assert reasons.values.sum() == pytest.approx(reasons.acceptance - reasons.baseline)
    assert reasons.acceptance == pytest.approx(acceptance(person[None, :])[0])
    assert reasons.baseline == pytest.approx(acceptance(comparison).mean())
    assert reasons.standard_error == 0.0


def test_a_column_that_no_rule_uses_has_no_share_and_ties_are_shared():
    """The first column got all of the blame when ties went to the first."""
    rules = [
        WeightedRule(1.0, lambda rows: ((rows[:, 0] > 0) & (rows[:, 1] > 0)).astype(float), (0, 1))
    ]
    reasons = attribution(rules, np.array([-1.0, -1.0, 5.0]), np.ones((3, 3)))
    np.testing.assert_allclose(reasons.values, [-0.5, -0.5, 0.0])


@pytest.mark.parametrize("seed", range(3))
def test_sampled_orders_agree_within_their_standard_error(seed):
    rules, _, rng = policy(seed)
    person, comparison = rng.normal(size=4), rng.normal(size=(20, 4))
    exact = attribution(rules, person, comparison)
    sampled = attribution(rules, person, comparison, most_evaluations=250)
    assert sampled.standard_error > 0
    assert np.abs(sampled.values - exact.values).max() <= 5 * sampled.standard_error
    assert sampled.values.sum() == pytest.approx(exact.values.sum())


def walked(seed, most=400):
    """An estimate with a fresh seed, and what it estimates."""
    rules, _, rng = policy(3)
    person = rng.normal(size=4)
    comparison = rng.normal(size=(60, 4))
    exact = attribution(rules, person, comparison)
    return attribution(rules, person, comparison, most_evaluations=most, seed=seed), exact


def test_the_error_of_walks_is_that_against_all_people():
    """200 estimates by 40 pairs of walks: their squared errors, in units of the variance that they
    report, are at most 1 on average, and less by what drawing without replacement and the known sum
    save. The mean has a standard deviation below .1 (200 independent estimates), so that correct
    code fails with probability below .001; an error that is too small by a quarter is found.
    """
    ratios = []
    for seed in range(200):
        found, exact = walked(seed)
        free = found.errors > 0
        assert found.values.sum() == pytest.approx(exact.values.sum())
        ratios += (((found.values - exact.values) / np.where(free, found.errors, 1.0)) ** 2)[
            free
        ].tolist()
    assert 0.4 < np.mean(ratios) < 1.4


def test_people_who_stand_for_all_have_an_error_that_is_not_reported():
    """The negative control: exact shares against 15 of 60 people are not the shares."""
    rules, _, rng = policy(3)
    person = rng.normal(size=4)
    comparison = rng.normal(size=(60, 4))
    exact = attribution(rules, person, comparison).values
    few = [
        attribution(rules, person, comparison[np.random.default_rng(seed).permutation(60)[:15]])
        for seed in range(20)
    ]
    assert all(one.standard_error == 0.0 for one in few)
    assert np.mean([np.abs(one.values - exact).max() for one in few]) > 0.03


def test_the_seed_of_walks_has_effect_and_exact_values_have_none():
    one, exact = walked(0)
    other, _ = walked(1)
    assert np.abs(one.values - other.values).max() > 1e-6
    np.testing.assert_array_equal(one.values, walked(0)[0].values)
    assert exact.standard_error == 0.0


def lines_at(*values):
    """Each column with the values to try, as lines."""
    rows = [(j, value) for j, column in enumerate(values) for value in column]
    weights = np.zeros((len(rows), len(values)))
    weights[range(len(rows)), [j for j, _ in rows]] = 1.0
    return weights, np.array([value for _, value in rows])


def accepted_at(acceptance, person, change):
    row = person.copy()
    row[list(change.columns)] = change.values
    return acceptance(row[None, :])[0]


@pytest.mark.parametrize("seed", range(6))
def test_the_least_change_is_the_least_of_a_grid(seed):
    _, acceptance, rng = policy(seed)
    person, comparison = rng.normal(size=4), rng.normal(size=(30, 4))
    candidates = [np.unique(column) for column in comparison.T]
    coin = float(acceptance(person[None, :])[0]) + 0.05
    change = least_change(acceptance, person, lines_at(*candidates), comparison, coin)
    spread = comparison.std(0)
    single = []
    for j, values in enumerate(candidates):
        for value in values:
            row = person.copy()
            row[j] = value
            if acceptance(row[None, :])[0] > coin:
                single.append(abs(value - person[j]) / spread[j])
    if single:
        assert change is not None
        assert len(change.columns) == 1
        assert change.size <= min(single) + 0.0101
    elif change is not None:
        assert len(change.columns) == 2
    if change is not None:
        assert accepted_at(acceptance, person, change) == pytest.approx(change.acceptance)
        assert change.acceptance > coin


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(12))
def test_for_linear_rules_nothing_nearer_on_a_fine_grid_is_accepted(seed):
    """Two linear rules and a cut: the least change of one or two columns, against 300 x 300."""
    rng = np.random.default_rng(seed)
    slopes, cuts = rng.normal(size=(2, 3)), rng.normal(size=2) + 0.6
    weights = np.vstack([slopes, [1.0, 0.0, 0.0]])
    right = np.r_[cuts, 0.3]

    def acceptance(rows):
        return ((rows @ weights.T >= right) * [0.4, 0.4, 0.2]).sum(axis=1)

    people = rng.normal(size=(40, 3))
    person, coin = people[int(np.argmin(acceptance(people)))], 0.7
    change = least_change(acceptance, person, (weights, right), people, coin)
    spread, nearest = people.std(0), {1: np.inf, 2: np.inf}
    for j, k in itertools.combinations(range(3), 2):
        axes = [np.r_[np.linspace(people[:, c].min(), people[:, c].max(), 300), person[c]]
                for c in (j, k)]  # fmt: skip
        grid = np.array(list(itertools.product(*axes)))
        rows = np.tile(person, (len(grid), 1))
        rows[:, [j, k]] = grid
        moved = np.abs(rows - person) / spread
        good = acceptance(rows) > coin
        for columns in (1, 2):
            found = moved[good & ((moved > 0).sum(1) == columns)].sum(1)
            nearest[columns] = min(nearest[columns], found.min(initial=np.inf))
    if change is None:
        assert np.isinf(min(nearest.values()))
    else:
        assert accepted_at(acceptance, person, change) > coin
        assert change.size <= nearest[len(change.columns)] + 0.0202
        assert len(change.columns) == 1 or np.isinf(nearest[1])


def test_two_columns_together_where_neither_suffices_alone():
    """Each alone would have to leave what was observed; this was once said to be impossible."""
    people = np.array([[0.0, 0.0], [6.0, 6.0], [3.0, 2.0]])
    rule = np.array([[1.0, 1.0]]), np.array([10.0])
    change = least_change(
        lambda rows: (rows.sum(axis=1) >= 10.0).astype(float), np.zeros(2), rule, people, 0.5
    )
    assert change.columns == (0, 1)
    assert sum(change.values) == pytest.approx(10.0)


def test_what_is_proposed_can_be_read_and_holds_as_it_is_written():
    """Rounded to a hundredth of the spread, and accepted as printed; whole numbers stay whole."""
    people = np.array([[-2.1, 400.0], [0.9, 500.0], [1.7, 610.0], [0.2, 430.0]])
    cut, cents = -0.2472515294, 455.5
    lines = np.eye(2), np.array([cut, cents])
    low = least_change(
        lambda rows: (rows[:, 0] >= cut).astype(float), np.array([-2.0, 440.0]), lines, people, 0.5
    )
    assert low.values == (-0.24,)
    assert least_change(
        lambda rows: (rows[:, 0] < cut).astype(float), np.array([1.0, 440.0]), lines, people, 0.5
    ).values == (-0.25,)
    for rule in (lambda rows: rows[:, 1] > cents, lambda rows: rows[:, 1] >= cents):
        assert least_change(rule, np.array([0.0, 440.0]), lines, people, 0.5).values == (456.0,)


def test_names_become_names_that_were_observed_and_gaps_become_numbers():
    """A category, a number that may be missing (code -9), and a text, which is never proposed."""
    people = np.array([[0.0, 3.0, 7.0], [1.0, 5.0, 8.0], [1.0, -9.0, 9.0], [0.0, 4.0, 7.0]])
    columns = [
        Changeable(slice(0, 1), "name"),
        Changeable(slice(1, 2), "number", missing=-9.0),
        Changeable(slice(2, 3), "fixed"),
    ]
    person, lines = np.array([0.0, -9.0, 7.0]), lines_at([], [3.0, 4.0, 5.0], [])

    def found(rule):
        return least_change(
            lambda rows: rule(rows).astype(float), person, lines, people, 0.5, columns
        )

    assert found(lambda rows: rows[:, 0] == 1).values == (1.0,)
    assert found(lambda rows: rows[:, 0] == 2) is None  # nobody was observed there
    number = found(lambda rows: rows[:, 1] >= 4)
    assert (number.columns, number.values, number.size) == ((1,), (4.0,), 1.0)
    assert found(lambda rows: (rows[:, 0] == 1) & (rows[:, 1] >= 3)).columns == (0, 1)
    assert found(lambda rows: rows[:, 2] == 8) is None


def test_a_column_of_several_numbers_has_one_share():
    """A text takes two numbers here; they come and go together."""
    rule = WeightedRule(1.0, lambda rows: (rows[:, 0] + rows[:, 1] == 3).astype(float), (0, 1))
    people = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 5.0]])
    reasons = attribution(
        [rule], np.array([4.0, 4.0, 1.0]), people, places=[slice(0, 2), slice(2, 3)]
    )
    np.testing.assert_allclose(reasons.values, [-1.0, 0.0])


def test_nothing_outside_the_observed_is_proposed():
    people = np.array([[400.0], [500.0], [600.0]])
    impossible = least_change(
        lambda rows: (rows[:, 0] >= 7_530).astype(float),
        np.array([440.0]),
        lines_at([7_530.0]),
        people,
        0.2,
    )
    assert impossible is None


def test_a_constant_column_and_a_constant_policy_have_no_change():
    people = np.array([[1.0, 2.0], [1.0, 3.0]])
    for rule in (lambda rows: rows[:, 0] > 5, lambda rows: np.zeros(len(rows), dtype=bool)):
        lines = lines_at([5.0], [2.5])
        assert least_change(rule, np.array([1.0, 2.0]), lines, people, 0.0) is None
