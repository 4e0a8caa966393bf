"""The paper's recipe reaches its own bound."""

import numpy as np
import pytest
from tests.faircsc.problems import best_pair, random_problem

import evenhand as eh


@pytest.mark.parametrize("seed", range(4))
def test_the_papers_recipe_reaches_its_bound(seed):
    """Theorem "reduction": cost <= OPT + 4 nu sum|c - c'|, gap <= limit, support <= 2, with the
    group classifiers in the class.
    """
    case = random_problem(seed, hypotheses=30)
    r = np.random.default_rng(seed)
    problem = eh.CostSensitiveProblem(
        case.problem.features,
        r.integers(0, 2, len(case.contexts)),
        np.zeros(len(case.cost)),
        case.cost,
    )
    common = dict(
        hypotheses=case.hypotheses,
        rates=eh.FalsePositiveRate(),
        sample=case.sample,
        allowed_gap=0.05,
        group_use="decide",
    )
    paper = eh.solve_fair(problem, **common, method="saddle-point", tolerance=0.01)
    ours = eh.solve_fair(problem, **common)
    assert paper.report.converged
    assert paper.cost <= ours.cost + 4 * 0.01 * np.abs(case.cost).sum()
    assert paper.cost >= ours.cost - 1e-9
    assert np.abs(paper.gaps).max() <= 0.05 + 1e-12
    assert paper.support_size <= 2
    assert paper.oracle_calls > ours.oracle_calls


def test_without_group_classifiers_the_budget_grows_until_the_limit_holds():
    case = random_problem(7, hypotheses=30)
    paper = eh.solve_fair(
        case.problem,
        case.hypotheses,
        eh.FalsePositiveRate(),
        case.sample,
        0.05,
        method="saddle-point",
    )
    costs, gaps = case.points([eh.FalsePositiveRate()])
    optimum = (
        best_pair(costs, gaps[0], 0.05) * np.abs(case.cost).sum() + case.problem.rejection_total
    )
    assert np.abs(paper.gaps).max() <= 0.05 + 1e-12
    assert optimum - 1e-9 <= paper.cost <= optimum + 0.05 * np.abs(case.cost).sum()


def test_nu_too_large_for_the_limit():
    case = random_problem(0)
    with pytest.raises(eh.InvalidInput, match="nu < limit / 2"):
        eh.solve_fair(
            case.problem,
            case.hypotheses,
            eh.FalsePositiveRate(),
            case.sample,
            0.05,
            method="saddle-point",
            tolerance=0.03,
        )
