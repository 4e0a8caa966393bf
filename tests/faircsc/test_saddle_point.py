"""The paper's recipe: the game itself reaches its own bound, and says so where it does not.

The answer that is returned is a linear program over everything the game has met, which hides much:
it is nearly optimal even where the game is far from a saddle point. So the averages of the game
(`report.game`) are looked at.
"""

import numpy as np
import pytest
from tests.faircsc.problems import best_pair, random_problem
from tests.faircsc.saddle_checks import (
    NU,
    check_every_saddle_point,
    check_the_game,
    decided,
    play,
)

import evenhand as eh
from evenhand import theory
from evenhand.errors import NotConverged
from evenhand.faircsc import saddle_point

FPR = eh.FalsePositiveRate()


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
def test_the_papers_recipe_reaches_its_bound(seed):
    """Theorem 3.5: cost <= OPT + 4 nu sum|c - c'|, gap <= limit, support <= 2, with the group
    classifiers in the class.
    """
    case, problem, common = decided(seed)
    paper = eh.solve_fair(problem, **common, method="saddle-point", tolerance=0.01)
    ours = eh.solve_fair(problem, **common)
    assert paper.report.converged
    assert paper.report.note == ""
    assert paper.cost <= ours.cost + 4 * 0.01 * np.abs(case.cost).sum()
    assert paper.cost >= ours.cost - 1e-9
    assert np.abs(paper.gaps).max() <= 0.05 + 1e-12
    assert paper.support_size <= 2


def test_the_game_itself_keeps_lemmas_b_4_b_5_and_b_6():
    """Exact: no false alarms. `tests/mutants/test_saddle_mutants.py` has what it must catch."""
    check_the_game()


def test_the_worst_saddle_points_of_the_game_keep_them_too():
    check_every_saddle_point()


def test_a_class_whose_cheapest_rule_is_fair_has_nothing_to_play_for():
    _, problem, common = decided(0)
    found = eh.solve_fair(problem, **{**common, "limit": 1.0}, method="saddle-point")
    assert found.oracle_calls == found.report.game.plays == 1
    assert found.report.game.multipliers.tolist() == [0.0]
    assert found.report.converged


def test_it_halts_within_the_proved_number_of_calls():
    """Checks come when the steps have grown by a fifth, and each is a call as well."""
    for seed in range(2):
        for nu in (0.03, 0.015):
            _, game, calls = play(seed, limit=4 * nu, nu=nu)
            proved = theory.saddle_point_calls(nu)
            assert game.is_approximate
            assert calls <= saddle_point.CHECK_GROWTH * proved + 100


def test_calls_that_run_out_are_a_field_a_sentence_and_a_warning():
    _, problem, common = decided(0)
    few = {**common, "method": "saddle-point", "tolerance": NU, "limit": 4 * NU, "max_calls": 20}
    with pytest.warns(NotConverged, match=r"2[12] calls"):
        found = eh.solve_fair(problem, **few)
    assert found.report.ran_out
    assert not found.report.converged
    assert "may cost more than 4 nu" in found.report.note
    assert np.abs(found.gaps).max() <= 4 * NU + 1e-12


@pytest.mark.thorough
def test_without_group_classifiers_the_budget_grows_until_the_limit_holds():
    case = random_problem(7, hypotheses=30)
    paper = eh.solve_fair(
        case.problem, case.hypotheses, FPR, case.sample, 0.05, method="saddle-point"
    )
    costs, gaps = case.points([FPR])
    optimum = (
        best_pair(costs, gaps[0], 0.05) * np.abs(case.cost).sum() + case.problem.rejection_total
    )
    assert paper.report.game.within(0.05)
    assert np.abs(paper.gaps).max() <= 0.05 + 1e-12
    assert optimum - 1e-9 <= paper.cost <= optimum + 0.05 * np.abs(case.cost).sum()


def test_with_two_rates_budget_2_is_not_taken_for_granted():
    """The proof mixes in one group classifier to undo one gap; with two gaps there is no proof."""
    _, problem, common = decided(1)
    two = {**common, "rates": [FPR, eh.FalseNegativeRate()], "limit": 0.04}
    found = eh.solve_fair(problem, **two, method="saddle-point", tolerance=0.015)
    assert found.report.game.within(0.04)
    assert found.report.converged


def test_nu_too_large_for_the_limit():
    case = random_problem(0)
    with pytest.raises(eh.InvalidInput, match="nu"):
        eh.solve_fair(
            case.problem,
            case.hypotheses,
            FPR,
            case.sample,
            0.05,
            method="saddle-point",
            tolerance=0.03,
        )
