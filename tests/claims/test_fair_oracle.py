"""Lemma 3.4 and theorem 3.5: two hypotheses are enough, and FairCSC reduces to CSC up to 4 nu of
the total weight.

The answer is a linear program over all that the game of the paper's recipe has met, which is nearly
optimal whether the game has converged or not; so the game itself is measured, too: the cost and the
gap of its averages, before that program (lemmas B.4 to B.6).
"""

import numpy as np
import pytest
from tests.claims.measure import FPR, population

from evenhand import solve_fair, theory
from evenhand.faircsc import saddle_point
from evenhand.words import CostSensitiveProblem, LabelledSample

NAMES = ("random", "lending")
LIMIT = 0.02


def question(name, seed):
    """Costs from one sample of a population, rates from another."""
    world, random = population(name), np.random.default_rng(seed)
    rows, people = world.draw(300, random), world.draw(2000, random)
    cost = -rows.label.astype(float)
    problem = CostSensitiveProblem(rows.features, rows.group, np.zeros(300), cost)
    return world, problem, LabelledSample(people.features, people.group, people.label)


def answers(name, seeds, nu, **more):
    """For each seed: support; error of the paper's solver over its bound, and its gap; the same of
    its game alone; whether the game has converged.
    """
    found = []
    for seed in seeds:
        world, problem, people = question(name, seed)
        told = (problem, world.hypotheses, FPR, people, LIMIT)
        exact = solve_fair(*told, group_use="decide")
        paper = solve_fair(*told, group_use="decide", method="saddle-point", tolerance=nu, **more)
        scale = float(np.abs(problem.acceptance_cost).sum())
        allowed = theory.saddle_point_error(nu, scale)
        game = paper.report.game
        found.append(
            (
                exact.support_size,
                (paper.cost - exact.cost) / allowed,
                float(np.abs(paper.gaps).max()),
                (problem.rejection_total + scale * game.cost - exact.cost) / allowed,
                float(np.abs(game.gaps).max()),
                paper.report.converged,
            )
        )
    return np.array(found)


def faults(found):
    """What lemma 3.4 and theorem 3.5 forbid."""
    laws = {
        "support": found[:, 0].max() <= 2,
        "error": found[:, 1].max() <= 1,
        "gap": found[:, 2].max() <= LIMIT + 1e-9,
        "game's error": found[:, 3].max() <= 1,
        "game's gap": found[:, 4].max() <= LIMIT + 1e-9,
        "converged": found[:, 5].all(),
    }
    return [law for law, kept in laws.items() if not kept]


@pytest.mark.parametrize("name", NAMES)
def test_two_hypotheses_are_enough_and_the_reduction_is_accurate(name):
    """Deterministic: no false alarms. Catches a third hypothesis in the support, an error above 4
    nu, and a gap above the limit.

    Negative control: the next test.
    """
    assert faults(answers(name, range(4), nu=0.009)) == []


@pytest.mark.filterwarnings("ignore::evenhand.errors.NotConverged")
def test_the_check_sees_a_solver_that_gives_up():
    """Negative control: after a call or two the paper's solver is further from the optimum than 4
    nu, and its game leaves the limit; after 60 calls the game alone is. It says so.
    """
    found = answers("lending", range(4), nu=0.006, max_calls=1)
    assert set(faults(found)) == {"error", "game's gap", "converged"}
    later = answers("lending", range(4), nu=0.006, max_calls=60)
    # the game is far from the optimum, and the program over all answers hides it
    assert "game's error" in faults(later)
    assert "error" not in faults(later)


def test_the_check_sees_a_game_that_is_loosened_instead_of_tightened(monkeypatch):
    """Negative control: with limit + 2 nu the answer is still optimal, and the game is not fair."""
    loose = property(lambda recipe: recipe.limit + 2 * recipe.oracle_tolerance)
    monkeypatch.setattr(saddle_point.Recipe, "tightened", loose)
    assert "game's gap" in faults(answers("lending", range(4), nu=0.005))


@pytest.mark.claims
def test_full(claims):
    """10 questions per population, nu = .005."""
    found = np.concatenate([answers(name, range(10), nu=0.005) for name in NAMES])
    claims.add(
        "FairCSC: support of the solution, and the paper's solver (lemma 3.4, theorem 3.5)",
        "support <= 2; error <= 4 nu sum|c|, gap <= .02, of the game itself and of the answer",
        f"support {found[:, 0].max():.0f}; game: error at most {found[:, 3].max():.2f} of the "
        f"bound, gap at most {found[:, 4].max():.4f}; answer: {found[:, 1].max():.3f}, "
        f"{found[:, 2].max():.4f}; {found[:, 5].mean():.0%} converged",
        not faults(found),
    )
    assert faults(found) == []
