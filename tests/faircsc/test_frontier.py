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


def crossings(region: np.ndarray, gap: float) -> list[float]:
    """The costs at which the edges of the region have this gap."""
    found = []
    for (x, low), (there, high) in zip(region, np.roll(region, -1, axis=0), strict=True):
        if min(x, there) <= gap <= max(x, there) and x != there:
            found.append(low + (gap - x) / (there - x) * (high - low))
    return found


def test_opt_is_the_cheapest_point_of_the_region_within_the_limit():
    for number in range(6):  # the cheapest policies have gaps of either sign
        case = random_problem(number, hypotheses=40)
        rate, grid = eh.FalsePositiveRate(), np.linspace(0, 0.3, 13)
        traced = eh.faircsc.frontier(case.problem, case.hypotheses, rate, case.sample, grid)
        for limit, cost in zip(traced.limits, traced.costs, strict=True):
            within = [cost for gap, cost in traced.region if abs(gap) <= limit]
            ends = [one for side in (-limit, limit) for one in crossings(traced.region, side)]
            assert cost == pytest.approx(min(within + ends), abs=1e-9)


def test_the_figures_are_those_of_the_record():
    """A limit whose mixture is told; costs are those per person."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    case = random_problem(4, hypotheses=40)
    grid = np.linspace(0, 0.3, 13)
    rate = eh.FalsePositiveRate()
    traced = eh.faircsc.frontier(case.problem, case.hypotheses, rate, case.sample, grid)
    told = traced.result(0.1)
    curve, picture = told.figures
    np.testing.assert_allclose(curve.lines[0].y, traced.price_of_fairness / traced.people)
    np.testing.assert_allclose(picture.reached, traced.region / (1.0, traced.people))
    free, chosen, *_ = picture.points
    assert free.y == min(cost for _, cost in picture.reached)
    place = traced.at(0.1)
    assert (chosen.x, chosen.y * traced.people) == pytest.approx(
        (traced.solutions[place].gaps[0], traced.costs[place])
    )
    assert traced.solutions[place].policy.describe().splitlines() == list(told.policy[1:])
    mixed = told.table("mixtures").rows
    for limit, solution in zip(traced.limits, traced.solutions, strict=True):
        assert [row[1] for row in mixed if row[0] == limit] == list(solution.policy.weights)
    for number in range(2):
        assert traced.plot(number=number, limit=0.1).lines
    pyplot.close("all")


def test_where_only_constants_differ_no_limit_costs_anything():
    features, group = np.ones((40, 1)), np.array(["a", "b"] * 20)
    label = np.where(np.arange(40) % 5 == 0, -1, 1)
    sample = eh.LabelledSample(features, group, label)
    problem = eh.Prices().problem(features, group, label)
    traced = eh.faircsc.frontier(problem, eh.Stumps(), "fpr", sample, [0.0, 0.1])
    curve, picture = traced.result().figures
    assert sorted(round(cost, 12) for _, cost in picture.reached) == [0.2, 0.8]
    assert not any(curve.lines[0].y)


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
