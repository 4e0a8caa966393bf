"""What theorem 3.5 says about the game of the paper's recipe, checked against an exact optimum:
lemma B.4 (an approximate saddle point), B.5 (tightening) and B.6 (both).

`check_the_game` looks at the saddle points that the code finds, `check_every_saddle_point` at the
worst of *all* nu-approximate ones of the same game, found by linear programs: the code's averages
have never used the 2 nu by which the limit is tightened, others do.
"""

import numpy as np
from scipy.optimize import linprog
from tests.faircsc.problems import random_problem

import evenhand as eh
from evenhand.faircsc.oracle import bind_fair
from evenhand.faircsc.saddle_point import FIRST_BUDGET, Recipe

NU = 0.01
LIMIT = 0.05
ROUNDING = 1e-12


def decided(seed, limit=LIMIT):
    """A problem whose class has the group classifiers: (case, problem, the rest)."""
    case = random_problem(seed, hypotheses=30)
    group = np.random.default_rng(seed).integers(0, 2, len(case.contexts))
    problem = eh.CostSensitiveProblem(
        case.problem.features, group, np.zeros(len(case.cost)), case.cost
    )
    common = dict(
        hypotheses=case.hypotheses,
        rates=eh.FalsePositiveRate(),
        sample=case.sample,
        limit=limit,
        group_use="decide",
    )
    return case, problem, common


def play(seed, limit=LIMIT, nu=NU, **more):
    """(normalised optima at limit and limit - 2 nu, the game, its calls)."""
    case, problem, common = decided(seed, limit)
    scale = np.abs(case.cost).sum()
    optima = [
        eh.solve_fair(problem, **{**common, "limit": at}).cost / scale
        for at in (limit, limit - 2 * nu)
    ]
    paper = eh.solve_fair(problem, **common, method="saddle-point", tolerance=nu, **more)
    return optima, paper.report.game, paper.oracle_calls


def check_the_game(seeds=range(6), limit=LIMIT, nu=NU):
    """The averages of each game, before any linear program.

    B.4 at the tightened limit: cost <= OPT' + 2 nu, gap <= (limit - 2 nu) + 2 nu.
    B.5: OPT' <= OPT + 2 nu. B.6, theorem 3.5: cost <= OPT + 4 nu, gap <= limit.
    Some of the games must be played at all, and the limit must bind.
    """
    played = 0
    for seed in seeds:
        (optimum, tightened), game, _ = play(seed, limit, nu)
        played += game.plays > 1
        assert max(game.multipliers_gain, game.mixture_gain) <= nu
        assert tightened <= optimum + 2 * nu + ROUNDING
        assert game.cost <= tightened + 2 * nu + ROUNDING
        assert game.cost <= optimum + 4 * nu + ROUNDING
        assert np.abs(game.gaps).max() <= limit + ROUNDING
    assert played >= len(seeds) / 2


def points(seed):
    """(normalised costs, gaps) of a class with its constants and group classifiers."""
    _, problem, common = decided(seed)
    fair = bind_fair(
        common["hypotheses"],
        problem.features,
        problem.group,
        common["rates"],
        common["sample"],
        LIMIT,
        group_use="decide",
    )
    pricer, _ = fair.pricer(problem.acceptance_cost)
    known = pricer.permanent
    costs = np.r_[pricer.costs, [column.cost for column in known]]
    return costs, np.r_[pricer.gaps[0], [column.gaps[0] for column in known]]


STEEP = (np.array([-0.5, -0.5, 0.5, 0.0, 0.0]), np.array([0.1, 1.0, -1.0, 0.0, 0.0]))
"""A rule without errors and with a gap of .1, both group classifiers (all right and all wrong), and
the constants: to close the gap costs nearly 1 per unit, the most that is possible.
"""


def cheapest(costs, gaps, limit):
    """The optimum over all mixtures."""
    rows = np.array([gaps, -gaps])
    return linprog(costs, rows, [limit] * 2, np.ones((1, len(gaps))), [1.0]).fun


def worst_saddle_point(costs, gaps, recipe, multiplier):
    """(largest gap, largest cost) of a mixture that is, with this multiplier on the positive side,
    a nu-approximate saddle point of the recipe's game; None if there is none.
    """
    nu, excess = recipe.oracle_tolerance, gaps - recipe.tightened
    value = costs + multiplier * excess
    rows = np.array([value, (FIRST_BUDGET - multiplier) * excess, -multiplier * excess])
    limits = [value.min() + nu, nu, nu]
    found = [
        linprog(-aim, rows, limits, np.ones((1, len(gaps))), [1.0]).fun for aim in (gaps, costs)
    ]
    return None if None in found else tuple(-one for one in found)


def check_every_saddle_point(limit=LIMIT, nu=NU):
    """Lemma B.6 for the worst saddle points: gap <= limit and cost <= OPT + 4 nu; some of them
    exceed the limit of the game, so that tightening is needed at all.
    """
    recipe = Recipe(limit, nu, fixed_budget=True, max_calls=1)
    above = []
    for costs, gaps in [STEEP, *map(points, range(4))]:
        optimum = cheapest(costs, gaps, limit)
        for side in (1.0, -1.0):
            for multiplier in np.linspace(0.0, FIRST_BUDGET, 21):
                found = worst_saddle_point(costs, side * gaps, recipe, multiplier)
                if found is not None:
                    above.append(found[0] - recipe.tightened)
                    assert found[0] <= limit + ROUNDING
                    assert found[1] <= optimum + 4 * nu + ROUNDING
    assert 0.5 * nu < max(above) <= 2 * nu + ROUNDING
