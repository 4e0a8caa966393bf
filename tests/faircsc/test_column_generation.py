"""Adversarial hulls: every point a vertex, a million of them; the walk stays within 40 calls and
exact. Without constants, the first phase finds a fair mixture or proves that there is none.
"""

import numpy as np
import pytest
from tests.faircsc.problems import OracleOnly

import evenhand as eh
from evenhand.faircsc.column_generation import walk_hull
from evenhand.faircsc.columns import Column
from evenhand.hypotheses import ACCEPT_ALL

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


@pytest.mark.parametrize("name", ["parabola", "exponential", "geometric", "steep", "arc", "step"])
@pytest.mark.parametrize("limit", [1e-4, 0.01, 0.05, 0.2])
@pytest.mark.parametrize("side", [1, -1])
def test_forty_calls_and_exact(all_hulls, name, limit, side):
    gaps, costs = all_hulls[name]
    calls = 0

    def price(multipliers: np.ndarray, weight: float) -> Column:
        nonlocal calls
        calls += 1
        i = int(np.argmin(weight * costs + multipliers[0] * side * gaps))
        return Column.of(ACCEPT_ALL, float(costs[i]), np.array([side * gaps[i]]))

    constant = Column.of(ACCEPT_ALL, 0.5, np.zeros(1))
    walk = walk_hull(price, [constant], limit, 1e-13, 40)
    cost = sum(w * c.cost for w, c in zip(walk.weights, walk.columns, strict=True))
    gap = sum(w * c.gaps[0] for w, c in zip(walk.weights, walk.columns, strict=True))
    truth = np.interp(limit, gaps, costs) if gaps[np.argmin(costs)] > limit else costs.min()
    assert calls <= 40
    assert walk.converged
    assert abs(gap) <= limit + 1e-12
    assert abs(cost - truth) <= 1e-12


@pytest.mark.parametrize("wrap", [lambda h: h, OracleOnly], ids=["one-pass", "oracle"])
def test_infeasible_without_constants_is_proved(wrap):
    """Every hypothesis accepts group 1 only: gap 1 for each mixture. One call beyond the first
    proves it.
    """
    sample = eh.LabelledSample(
        np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([0, 1, 0, 1]), np.array([-1, -1, 1, 1])
    )
    problem = eh.CostSensitiveProblem(
        np.array([[0.0], [1.0], [2.0]]), None, np.zeros(3), np.array([1.0, -1.0, 1.0])
    )
    unfair = eh.FiniteClass.from_table(np.array([[0, 1, 0], [0, 1, 1]], bool))
    with pytest.raises(eh.Infeasible, match=r"at least 1 \(proved by oracle call 2\)") as caught:
        eh.solve_fair(
            problem, wrap(unfair), eh.FalsePositiveRate(), sample, 0.05, with_constants=False
        )
    assert caught.value.certificate == pytest.approx(1.0)
    assert (
        eh.solve_fair(problem, wrap(unfair), eh.FalsePositiveRate(), sample, 0.05).gaps[0]
        <= 0.05 + 1e-12
    )


@pytest.mark.parametrize("wrap", [lambda h: h, OracleOnly], ids=["one-pass", "oracle"])
def test_feasible_without_constants_is_found(wrap):
    """Two opposite hypotheses: only their mixture is fair."""
    sample = eh.LabelledSample(
        np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([0, 1, 0, 1]), np.array([-1, -1, 1, 1])
    )
    problem = eh.CostSensitiveProblem(
        np.array([[0.0], [1.0]]), None, np.zeros(2), np.array([-1.0, -3.0])
    )
    opposite = eh.FiniteClass.from_table(np.array([[0, 1], [1, 0]], bool))
    solution = eh.solve_fair(
        problem, wrap(opposite), eh.FalsePositiveRate(), sample, 0.1, with_constants=False
    )
    assert abs(solution.gaps[0]) <= 0.1 + 1e-12
    assert solution.cost == pytest.approx(-(0.55 * 3 + 0.45 * 1))
