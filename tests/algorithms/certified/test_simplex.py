"""The cheapest mixture has the cost that HiGHS finds, whichever program came before it and however
many are solved together.
"""

import numpy as np
import pytest
from scipy.optimize import linprog

from evenhand.algorithms.certified import simplex
from evenhand.algorithms.certified.simplex import MixtureProgram

LIMIT = 0.05


def random_program(seed: int, members: int, gaps: int) -> tuple[np.ndarray, np.ndarray]:
    """Costs of any size, and the constraints of intervals around random gaps."""
    draw = np.random.default_rng(seed)
    middle = draw.normal(0, 0.2, (gaps, members))
    width = draw.uniform(0.0, 0.2, (gaps, members))
    middle[:, :2] = 0.0
    width[:, :2] = 0.0
    costs = draw.normal(size=members) * 10.0 ** draw.integers(-9, 6)
    return costs, np.concatenate([middle + width, width - middle])


def least_cost(costs, constraints, limits):
    """By HiGHS, in units of the largest cost."""
    total = np.ones((1, len(costs)))
    return linprog(costs / np.abs(costs).max(), constraints, limits, total, [1.0]).fun


@pytest.mark.parametrize("gaps", [1, 2, 10])
def test_equals_the_linear_program(gaps):
    for seed in range(60):
        costs, constraints = random_program(seed, 40, gaps)
        weights = MixtureProgram(constraints, LIMIT).cheapest(costs)
        scale = np.abs(costs).max()
        known = least_cost(costs, constraints, np.full(len(constraints), LIMIT))
        assert abs(costs @ weights / scale - known) <= 1e-9
        assert (constraints @ weights).max() <= LIMIT + 1e-12
        assert abs(weights.sum() - 1) <= 1e-12
        assert weights.min() >= 0
        assert (weights > 0).sum() <= 1 + len(constraints)


@pytest.mark.parametrize("seed", range(5))
def test_later_costs_start_where_earlier_ones_ended(seed):
    """Enough of them for several fresh tableaus; accept-all has a bound of its own."""
    draw = np.random.default_rng(seed)
    gaps = draw.uniform(-1, 1, size=(3, 12))
    gaps[:, :2] = 0.0
    rows = np.concatenate([gaps, -gaps, np.eye(1, 12)])
    limits = np.append(np.full(6, 0.1), draw.random())
    asked = MixtureProgram(rows, limits)
    for _ in range(20):
        costs = draw.normal(size=12)
        found = asked.cheapest(costs)
        known = least_cost(costs, rows, limits)
        assert costs @ found / np.abs(costs).max() == pytest.approx(known, abs=1e-9)
        assert (rows @ found <= limits + 1e-12).all()
    assert asked.pivots > 2 * simplex.FRESH_TABLEAU


@pytest.mark.parametrize("gaps", [1, 2, 10])
def test_many_programs_at_once_are_solved_as_one_by_one(gaps):
    costs, _ = random_program(0, 40, gaps)
    many = np.array([random_program(seed, 40, gaps)[1] for seed in range(24)])
    found = MixtureProgram(many.reshape(4, 6, *many.shape[1:]), LIMIT).cheapest(costs)
    assert found.shape == (4, 6, 40)
    for weights, constraints in zip(found.reshape(24, 40), many, strict=True):
        alone = MixtureProgram(constraints, LIMIT).cheapest(costs)
        assert weights == pytest.approx(alone, abs=1e-12)


@pytest.mark.parametrize("leading", [(), (3,)])
def test_ties_and_degenerate_programs_end(leading):
    constraints = np.tile([0.0, 0.0, 0.3, 0.3, -0.3, 0.0], (*leading, 4, 1))
    tied = MixtureProgram(constraints, LIMIT).cheapest(np.zeros(6))
    assert tied.sum(axis=-1) == pytest.approx(np.ones(leading))
    costs = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.5])
    found = MixtureProgram(constraints, LIMIT).cheapest(costs)
    assert found @ costs == pytest.approx(np.zeros(leading), abs=1e-12)


def test_blands_rule_finds_the_same_vertex(monkeypatch):
    costs, constraints = random_program(1, 40, 3)
    by_largest_gain = MixtureProgram(constraints, LIMIT).cheapest(costs)
    pivot = MixtureProgram._pivot
    monkeypatch.setattr(MixtureProgram, "_pivot", lambda self, bland: pivot(self, bland=True))
    asked = MixtureProgram(constraints, LIMIT)
    assert asked.cheapest(costs) == pytest.approx(by_largest_gain, abs=1e-12)


def test_weight_outside_a_limit_moves_to_reject_all():
    """Rounding is imitated by a limit that falls after the pivots."""
    constraints = np.array([[[0.0, 0.0, 0.1]], [[0.0, 0.0, 0.02]]])
    asked = MixtureProgram(constraints, 0.05)
    before = asked.cheapest(np.array([1.0, 0.0, -1.0]))
    assert before == pytest.approx(np.array([[0, 0.5, 0.5], [0, 0, 1.0]]))
    asked.limits = np.array([0.04])
    assert asked._weights() == pytest.approx(np.array([[0, 0.6, 0.4], [0, 0, 1.0]]))


def capped_program(seed, *, cap, floor, members=40, gaps=2):
    """A random program with rows for a cap and a floor of the accepted share; the last row is the
    floor's.
    """
    costs, constraints = random_program(seed, members, gaps)
    draw = np.random.default_rng(seed + 1000)
    middle = draw.uniform(0.05, 0.95, members)
    width = draw.uniform(0.0, 0.05, members)
    upper, lower = np.minimum(middle + width, 1.0), np.maximum(middle - width, 0.0)
    upper[:2] = lower[:2] = (1.0, 0.0)
    rows = np.concatenate([constraints, upper[np.newaxis], 1.0 - lower[np.newaxis]])
    limits = np.append(np.full(len(constraints), LIMIT), [cap, 1.0 - floor])
    return costs, rows, limits


@pytest.mark.parametrize(("cap", "floor"), [(0.2, 0.1), (0.5, 0.5), (1.0, 0.9), (0.05, 0.0)])
def test_with_a_cap_and_a_floor_it_equals_the_linear_program(cap, floor):
    for seed in range(60):
        costs, rows, limits = capped_program(seed, cap=cap, floor=floor)
        program = MixtureProgram(rows, limits, lottery=len(rows) - 1)
        for price in (costs, -costs, costs[::-1].copy()):
            weights = program.cheapest(price)
            scale = np.abs(price).max()
            assert abs(price @ weights / scale - least_cost(price, rows, limits)) <= 1e-9
            assert (rows @ weights - limits).max() <= 1e-11
            assert weights.sum() == pytest.approx(1.0)


def test_where_rounding_leaves_the_floor_weight_moves_towards_a_lottery():
    costs, rows, limits = capped_program(3, cap=0.4, floor=0.2)
    program = MixtureProgram(rows, limits, lottery=len(rows) - 1)
    outside = np.zeros((1, len(costs)))
    outside[0, 5] = 1.0
    moved = program._nearer_to_the_lottery(outside, (rows @ outside[0])[np.newaxis])
    assert (rows @ moved[0] - limits).max() <= 1e-12
    assert moved.sum() == pytest.approx(1.0)
