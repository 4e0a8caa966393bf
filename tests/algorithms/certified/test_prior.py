"""Shares of delta by what is likely to be deployed: against a general solver, draw by draw."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from evenhand import FalsePositiveRate
from evenhand.algorithms.certified import prior
from evenhand.algorithms.certified.cost_posterior import PooledCosts
from evenhand.algorithms.certified.evidence import PastPeople
from evenhand.algorithms.certified.prior import likely_delta_parts

FPR = (FalsePositiveRate(),)
GROUPS = ("a", "b")
ACCEPTS = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]], dtype=bool)
CHANCE = np.array([0.1, 0.3, 0.6, 0.9])
LIMIT = 0.05


def costs(labels=1e9):
    """Four cells of equal size, of which the worst are last; rule 3 accepts the worst alone."""
    share = np.full(4, 0.25)
    return PooledCosts(
        accepts=ACCEPTS,
        of_past=np.tile(np.arange(4), 2),
        cost=share * (2.0 * CHANCE - 1.0) / 2.0,
        stake=share,
        chance=CHANCE,
        labels=np.full(4, labels),
        fraction=share,
        acceptance=np.ones(4),
    )


def people():
    weight = np.array([30.0, 30.0, 20.0, 20.0, 20.0, 20.0, 30.0, 30.0])
    return PastPeople(np.zeros((8, 1)), np.repeat(np.array(GROUPS, dtype=object), 4), weight)


def shares(known, seed=0, groups=GROUPS):
    return likely_delta_parts(known, people(), FPR, groups, LIMIT, np.random.default_rng(seed))


def test_they_are_those_of_a_general_solver_where_the_outcomes_are_known():
    """With very many labels all draws are the same, and the mean is over the widths alone."""
    weight = people().weight / people().weight.sum()
    bad = np.stack([weight[:4], weight[4:]]) * CHANCE
    f = ACCEPTS @ bad.T / bad.sum(axis=1)
    variance = np.maximum(f * (1 - f), 1e-2) / bad.sum(axis=1)
    gap, spread = f[:, 1] - f[:, 0], np.sqrt(variance.sum(axis=1))
    cost = np.r_[costs().cost.sum(), 0.0, ACCEPTS @ costs().cost]
    total = np.zeros(4)
    for scale in prior.SCALES:
        rows = [np.minimum(side * gap + scale * spread, 1.0) for side in (1, -1)]
        rows = np.concatenate([np.zeros((2, 2)), rows], axis=1)
        solved = linprog(cost, A_ub=rows, b_ub=[LIMIT] * 2, A_eq=np.ones((1, 6)), b_eq=[1.0])
        total += solved.x[2:] / solved.x[2:].sum()
    expected = prior.EVEN / 4 + (1 - prior.EVEN) * total / total.sum()
    assert shares(costs()) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("labels", [1.0, 10.0, 1e9])
def test_every_rule_has_some_and_all_together_have_all(labels):
    found = shares(costs(labels))
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    assert found.min() >= prior.EVEN / 4 - 1e-12


def test_a_rule_that_nobody_wants_has_least():
    assert shares(costs())[3] == pytest.approx(prior.EVEN / 4)


def test_they_are_even_where_nothing_is_worth_deploying_or_nobody_is_known():
    dear = replace(costs(), cost=np.full(4, 0.1))
    assert shares(dear) == pytest.approx(np.full(4, 0.25))
    assert shares(costs(), groups=("c", "d")) == pytest.approx(np.full(4, 0.25))


def test_control_other_outcomes_give_other_shares():
    turned = replace(costs(), cost=costs().cost[::-1].copy(), chance=CHANCE[::-1].copy())
    assert abs(shares(turned) - shares(costs())).max() > 0.1
