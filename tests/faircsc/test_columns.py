"""The rows on which columns are evaluated, their scale, ties between columns, and adversarial
hulls: every point a vertex, a million of them; the walk stays within 40 calls and exact.
"""

import numpy as np
import pytest
from tests.faircsc.problems import OracleOnly, random_problem

import evenhand as eh
from evenhand.faircsc.columns import RuleColumn, walk_hull
from evenhand.hypotheses import ACCEPT_ALL

RATE = eh.FalsePositiveRate()


def normalised(problem: eh.CostSensitiveProblem, cost: float) -> float:
    return (cost - problem.rejection_total) / np.abs(problem.acceptance_cost).sum()


@pytest.mark.parametrize("scale", [1e-12, 1e-9, 1.0, 1e12])
def test_the_scale_of_costs_changes_nothing(scale):
    case = random_problem(5)
    scaled = eh.CostSensitiveProblem(
        case.problem.features,
        None,
        scale * case.problem.cost_if_rejected,
        scale * case.problem.cost_if_accepted,
    )
    for wrap in (lambda h: h, OracleOnly):
        ours = eh.solve_fair(case.problem, wrap(case.hypotheses), RATE, case.sample, 0.02)
        other = eh.solve_fair(scaled, wrap(case.hypotheses), RATE, case.sample, 0.02)
        assert abs(normalised(scaled, other.cost) - normalised(case.problem, ours.cost)) <= 1e-12
        np.testing.assert_allclose(other.gaps, ours.gaps, atol=1e-12)


def test_merged_rows_equal_separate_rows():
    """When problem and sample are the same people the rows are shared; that must not change the
    answer.
    """
    case = random_problem(11)
    problem = eh.Prices().problem(case.sample.features, None, case.sample.label)
    shuffled = np.random.default_rng(0).permutation(len(case.sample))
    apart = eh.LabelledSample(
        case.sample.features[shuffled], case.sample.group[shuffled], case.sample.label[shuffled]
    )
    one = eh.solve_fair(problem, case.hypotheses, RATE, case.sample, 0.05)
    two = eh.solve_fair(problem, case.hypotheses, RATE, apart, 0.05)
    assert abs(one.cost - two.cost) <= 1e-9


def test_a_count_stands_for_repeated_rows():
    case = random_problem(12)
    count = np.random.default_rng(1).integers(0, 4, len(case.sample)).astype(float)
    count[:4] = 1
    repeated = np.repeat(np.arange(len(case.sample)), count.astype(int))
    counted = eh.LabelledSample(case.sample.features, case.sample.group, case.sample.label, count)
    listed = eh.LabelledSample(
        case.sample.features[repeated], case.sample.group[repeated], case.sample.label[repeated]
    )
    a, b = (
        eh.solve_fair(case.problem, case.hypotheses, RATE, sample, 0.02)
        for sample in (counted, listed)
    )
    assert abs(a.cost - b.cost) <= 1e-9


def test_ties_prefer_one_hypothesis_to_a_mixture():
    """Two hypotheses cost the same; one has no gap. A mixture of anything would be needless."""
    table = np.array([[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]], bool)
    contexts, cost = np.arange(4), np.array([-3.0, 1.0, 1.0, 3.0])
    sample = eh.LabelledSample(
        np.array([[0.0], [1.0], [2.0], [3.0]] * 2),
        np.array([0, 0, 1, 1] * 2),
        np.array([-1] * 4 + [1] * 4),
    )
    problem = eh.CostSensitiveProblem(contexts[:, None].astype(float), None, np.zeros(4), cost)
    solution = eh.solve_fair(problem, eh.FiniteClass.from_table(table), RATE, sample, 0.1)
    assert solution.support_size == 1
    assert solution.gaps[0] == 0


POINTS = 1_000_000


def _curve(slopes: np.ndarray, start: float, stop: float) -> tuple[np.ndarray, np.ndarray]:
    """A convex decreasing chain from gap `start` to `stop` with the given (descending) slopes, one
    per edge; cost 0 at gap 0.
    """
    gaps = np.linspace(start, stop, len(slopes) + 1)
    costs = -np.r_[0.0, np.cumsum(slopes * np.diff(gaps))]
    return gaps, (costs - np.interp(0.0, gaps, costs)) / max(1.0, np.abs(costs).max())


def hulls() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    u = np.linspace(0, 1, POINTS)
    angle = np.linspace(np.pi, 1.5 * np.pi, POINTS)
    return {
        "parabola": _curve(2 * (1 - u), -0.5, 1.0),
        "exponential": _curve(np.exp(-12 * u), -0.2, 1.0),
        "geometric": _curve(10.0 ** (-13 * u), -0.1, 1.0),
        "steep": _curve(20 * (1 - u) ** 9, -0.05, 1.0),
        "arc": (1 + np.cos(angle) - 0.3, (np.sin(angle) + 0.7) / 2),
        "step": _curve(np.where(u < 0.3, 2 - u, 1e-6 * (1 - u)), -0.4, 1.0),
    }


@pytest.fixture(scope="module")
def all_hulls() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return hulls()


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["parabola", "exponential", "geometric", "steep", "arc", "step"])
@pytest.mark.parametrize("limit", [1e-4, 0.01, 0.05, 0.2])
@pytest.mark.parametrize("side", [1, -1])
def test_forty_calls_and_exact(all_hulls, name, limit, side):
    gaps, costs = all_hulls[name]
    calls = 0

    def price(multipliers: np.ndarray, weight: float) -> RuleColumn:
        nonlocal calls
        calls += 1
        i = int(np.argmin(weight * costs + multipliers[0] * side * gaps))
        return RuleColumn.of(ACCEPT_ALL, float(costs[i]), np.array([side * gaps[i]]))

    constant = RuleColumn.of(ACCEPT_ALL, 0.5, np.zeros(1))
    walk = walk_hull(price, [constant], limit, 1e-13, 40)
    cost = sum(w * c.cost for w, c in zip(walk.weights, walk.columns, strict=True))
    gap = sum(w * c.gaps[0] for w, c in zip(walk.weights, walk.columns, strict=True))
    truth = np.interp(limit, gaps, costs) if gaps[np.argmin(costs)] > limit else costs.min()
    assert calls <= 40
    assert walk.converged
    assert abs(gap) <= limit + 1e-12
    assert abs(cost - truth) <= 1e-12
