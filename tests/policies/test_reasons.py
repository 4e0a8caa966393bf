"""Shapley values against all orders of the columns, one by one; the least change against a grid."""

import itertools

import numpy as np
import pytest

from evenhand.policies.reasons import WeightedRule, attribution, least_change


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


@pytest.mark.parametrize("seed", range(6))
def test_the_least_change_is_the_least_of_a_grid(seed):
    _, acceptance, rng = policy(seed)
    person, comparison = rng.normal(size=4), rng.normal(size=(30, 4))
    candidates = [np.unique(column) for column in comparison.T]
    coin = float(acceptance(person[None, :])[0]) + 0.05
    change = least_change(acceptance, person, candidates, comparison, coin)
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
        assert change.size == pytest.approx(min(single))
    elif change is not None:
        assert len(change.columns) == 2
    if change is not None:
        row = person.copy()
        row[list(change.columns)] = change.values
        assert acceptance(row[None, :])[0] == pytest.approx(change.acceptance)
        assert change.acceptance > coin


def test_nothing_outside_the_observed_is_proposed():
    people = np.array([[400.0], [500.0], [600.0]])
    impossible = least_change(
        lambda rows: (rows[:, 0] >= 7_530).astype(float),
        np.array([440.0]),
        [[7_530.0]],
        people,
        0.2,
    )
    assert impossible is None
