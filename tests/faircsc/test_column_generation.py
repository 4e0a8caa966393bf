"""Without constants, the first phase finds a fair mixture or proves that there is none."""

import numpy as np
import pytest
from tests.faircsc.problems import OracleOnly

import evenhand as eh


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
    with pytest.raises(eh.Infeasible) as caught:
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
