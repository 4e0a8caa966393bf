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


# lemma B.3: O(1/nu^2) calls

NUS = (0.02, 0.01, 0.005)


def calls(name, seed, nu, limit, max_calls=None):
    """Calls of the class until the game has converged; infinite if it has not within `max_calls`,
    by default the proved number and the looks at the averages.
    """
    world, problem, people = question(name, seed)
    most = int(1.1 * theory.saddle_point_calls(nu)) if max_calls is None else max_calls
    report = solve_fair(
        problem,
        world.hypotheses,
        FPR,
        people,
        limit,
        group_use="decide",
        method="saddle-point",
        tolerance=nu,
        max_calls=most,
    ).report
    return float("inf") if report.ran_out else len(report.iterations)


def constants(name, seeds, nus, limit=None):
    """calls x nu^2: rows are seeds, columns nus; the limit is 4 nu unless it is given."""
    return np.array(
        [[calls(name, seed, nu, limit or 4 * nu) * nu**2 for nu in nus] for seed in seeds]
    )


def is_of_order(found):
    """Within the proved constant 4 B^2 ln 3, and not growing as nu falls (means, factor 2)."""
    means = found.mean(axis=0)
    return bool(found.max() <= 1.1 * 16 * np.log(3) and means[-1] <= 2 * means[0])


@pytest.mark.filterwarnings("ignore::evenhand.errors.NotConverged")
def test_the_calls_are_of_the_order_that_lemma_b_3_has(monkeypatch):
    """lending, nu = .06, .04, one question: deterministic. Negative control: multipliers that do
    not move, so that the averages never become a saddle point.
    """
    assert is_of_order(constants("lending", range(1), (0.06, 0.04)))
    monkeypatch.setattr(saddle_point._Game, "multipliers", lambda self: ([0.0], [0.0]))
    assert not is_of_order(constants("lending", range(1), (0.06, 0.04)))


def test_the_check_sees_calls_of_another_order():
    """Negative control: calls that grow like 1/nu^3, whose constants double from column to
    column.
    """
    assert is_of_order(np.full((2, 3), 0.4))
    assert not is_of_order(np.array([[0.4, 0.8, 1.6]]))
    assert not is_of_order(np.full((2, 3), 20.0))


@pytest.mark.claims
def test_full_calls(claims):
    """random, lending and D1, nu = .02, .01, .005, 3 questions each; the limit is 4 nu, where it
    binds most, or .06. Deterministic.
    """
    names = ("random", "lending", "D1")
    tight = np.concatenate([constants(name, range(3), NUS) for name in names])
    fixed = np.concatenate([constants(name, range(3), NUS, limit=0.06) for name in names])
    claims.add(
        "calls of the class until the saddle point is found, times nu^2, nu = .02, .01, .005 "
        "(lemma B.3, theorem 3.5)",
        f"O(1): at most {16 * np.log(3):.1f}, which the proof gives, and not growing",
        f"limit 4 nu: mean {', '.join(f'{x:.2f}' for x in tight.mean(axis=0))}, largest "
        f"{tight.max():.2f}; limit .06: {', '.join(f'{x:.3f}' for x in fixed.mean(axis=0))}, "
        f"largest {fixed.max():.2f}",
        is_of_order(tight) and is_of_order(fixed),
    )
    assert is_of_order(tight)
    assert is_of_order(fixed)


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
