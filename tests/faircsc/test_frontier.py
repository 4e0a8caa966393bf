"""Figure 1: the region contains every hypothesis, and the price of fairness falls as the limit
grows.
"""

import numpy as np
import pytest
from tests.faircsc.problems import OracleOnly, random_problem

import evenhand as eh
from evenhand.faircsc.frontier import convex_hull


def inside(region: np.ndarray, point: np.ndarray) -> bool:
    edges = np.roll(region, -1, axis=0) - region
    to = point - region
    return bool((edges[:, 0] * to[:, 1] - edges[:, 1] * to[:, 0] >= -1e-9).all())


def test_region_and_costs():
    case = random_problem(4, hypotheses=40)
    grid = np.linspace(0, 0.3, 13)
    result = eh.faircsc.frontier(
        case.problem, case.hypotheses, eh.FalsePositiveRate(), case.sample, grid
    )
    costs, gaps = case.points([eh.FalsePositiveRate()])
    for gap, cost in zip(
        gaps[0], costs * np.abs(case.cost).sum() + case.problem.rejection_total, strict=True
    ):
        assert inside(result.region, np.array([gap, cost]))
    assert (np.diff(result.costs) <= 1e-9).all()
    assert (result.price_of_fairness >= 0).all()
    assert all(inside(result.region, np.array([s.gaps[0], s.cost])) for s in result.solutions)
    np.testing.assert_array_equal(result.constants[:, 0], 0)


def test_the_line_of_the_cheapest_policies_is_drawn_inside_the_region():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    for number in range(6):  # the cheapest policies have gaps of either sign
        case = random_problem(number, hypotheses=40)
        rate, grid = eh.FalsePositiveRate(), np.linspace(0, 0.3, 13)
        result = eh.faircsc.frontier(case.problem, case.hypotheses, rate, case.sample, grid)
        (line,) = (
            one for one in result.plot().lines if one.get_label() == "cheapest at each limit"
        )
        assert all(inside(result.region, point) for point in line.get_xydata())
    pyplot.close("all")


def test_behind_an_oracle_the_region_is_swept():
    case = random_problem(4, hypotheses=12)
    swept = eh.faircsc.frontier(
        case.problem,
        OracleOnly(case.hypotheses),
        eh.FalsePositiveRate(),
        case.sample,
        [0.05],
        directions=400,
    )
    whole = eh.faircsc.frontier(
        case.problem, case.hypotheses, eh.FalsePositiveRate(), case.sample, [0.05]
    )
    assert all(inside(whole.region, point) for point in swept.region)
    assert swept.region[:, 1].min() == pytest.approx(whole.region[:, 1].min())


def test_needs_two_groups_and_a_grid():
    five = random_problem(1, groups=5)
    with pytest.raises(eh.InvalidInput, match="5 groups"):
        eh.faircsc.frontier(
            five.problem, five.hypotheses, eh.FalsePositiveRate(), five.sample, [0.1]
        )
    two = random_problem(1)
    with pytest.raises(eh.InvalidInput, match="limits"):
        eh.faircsc.frontier(two.problem, two.hypotheses, eh.FalsePositiveRate(), two.sample, [])


def test_a_heuristic_oracle_never_charges_more_for_a_looser_limit():
    """Answers at all limits come from one pool, so the cost falls as the limit grows although no
    answer is optimal.
    """
    from sklearn.tree import DecisionTreeClassifier
    from tests.faircsc.test_pooled import people

    problem, sample = people(3, rows=600)
    trees = eh.Estimator(DecisionTreeClassifier(max_depth=3, random_state=0))
    result = eh.faircsc.frontier(
        problem, trees, eh.SelectionRate(), sample, np.linspace(0, 0.4, 9), directions=12
    )
    assert (np.diff(result.costs) <= 1e-9).all()
    assert all(
        np.abs(s.gaps).max() <= limit + 1e-12
        for s, limit in zip(result.solutions, result.limits, strict=True)
    )
    assert result.price_of_fairness.min() == pytest.approx(0)


def test_a_region_without_area_keeps_its_ends():
    points = np.array([[1e-17, 3.0], [-1e-17, 1.0], [0.0, 2.0], [1e-17, 1.0 + 1e-16]])
    np.testing.assert_allclose(sorted(convex_hull(points)[:, 1]), [1.0, 3.0])
