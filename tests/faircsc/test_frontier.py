"""Figure 1: the region contains every hypothesis, and the price of fairness falls as the limit grows."""

import numpy as np
import pytest
from tests.faircsc.problems import OracleOnly, random_problem

import evenhand as eh


def inside(region: np.ndarray, point: np.ndarray) -> bool:
    edges = np.roll(region, -1, axis=0) - region
    to = point - region
    return bool((edges[:, 0] * to[:, 1] - edges[:, 1] * to[:, 0] >= -1e-9).all())


def test_region_and_costs():
    case = random_problem(4, hypotheses=40)
    grid = np.linspace(0, 0.3, 13)
    result = eh.frontier(case.problem, case.hypotheses, eh.FalsePositiveRate(), case.sample, grid)
    costs, gaps = case.points([eh.FalsePositiveRate()])
    for gap, cost in zip(gaps[0], costs * np.abs(case.cost).sum() + case.problem.rejection_total, strict=True):
        assert inside(result.region, np.array([gap, cost]))
    assert (np.diff(result.costs) <= 1e-9).all()
    assert (result.price_of_fairness >= 0).all()
    assert all(inside(result.region, np.array([s.gaps[0], s.cost])) for s in result.solutions)
    np.testing.assert_array_equal(result.constants[:, 0], 0)


def test_behind_an_oracle_the_region_is_swept():
    case = random_problem(4, hypotheses=12)
    swept = eh.frontier(
        case.problem, OracleOnly(case.hypotheses), eh.FalsePositiveRate(), case.sample, [0.05], directions=400
    )
    whole = eh.frontier(case.problem, case.hypotheses, eh.FalsePositiveRate(), case.sample, [0.05])
    assert all(inside(whole.region, point) for point in swept.region)
    assert swept.region[:, 1].min() == pytest.approx(whole.region[:, 1].min())


def test_needs_two_groups_and_a_grid():
    five = random_problem(1, groups=5)
    with pytest.raises(eh.InvalidInput, match="5 groups"):
        eh.frontier(five.problem, five.hypotheses, eh.FalsePositiveRate(), five.sample, [0.1])
    two = random_problem(1)
    with pytest.raises(eh.InvalidInput, match="limits is empty"):
        eh.frontier(two.problem, two.hypotheses, eh.FalsePositiveRate(), two.sample, [])
