"""Ways to break the paper's recipe for FairCSC, each applied to the real code, and the check that
must then fail (it passes on the code as it is).

They leave the answer that is returned nearly optimal and within its limit, because a linear program
over everything that the game has met mends it; the checks look at the game itself. They are exact:
no false alarms.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from tests.faircsc.saddle_checks import check_every_saddle_point, check_the_game

from evenhand.errors import EvenhandError
from evenhand.faircsc import oracle, saddle_point
from evenhand.faircsc.columns import SaddlePoint
from evenhand.faircsc.saddle_point import Recipe, _Game

pytestmark = pytest.mark.filterwarnings("ignore::evenhand.errors.NotConverged")


@dataclass(frozen=True)
class Mutant:
    """What is broken, how, and the check that sees it."""

    name: str
    breaks: Callable[[pytest.MonkeyPatch], None]
    check: Callable[[], object] = check_the_game


def loosened(patch):
    """limit + 2 nu instead of limit - 2 nu."""
    wrong = property(lambda recipe: recipe.limit + 2 * recipe.oracle_tolerance)
    patch.setattr(Recipe, "tightened", wrong)


def not_tightened(patch):
    patch.setattr(Recipe, "tightened", property(lambda recipe: recipe.limit))


def tightened_too_much(patch):
    """By 4.5 nu: the gaps are fine, and the cost of tightening is not paid for."""
    wrong = property(lambda recipe: recipe.limit - 4.5 * recipe.oracle_tolerance)
    patch.setattr(Recipe, "tightened", wrong)


def no_check(patch):
    """The first look at the averages is taken for the last."""
    patch.setattr(SaddlePoint, "is_approximate", property(lambda point: True))


def one_player_checked(patch):
    """Only the oracle's gain is looked at: multipliers of 0 and any mixture pass."""
    wrong = property(lambda point: point.mixture_gain <= point.oracle_tolerance)
    patch.setattr(SaddlePoint, "is_approximate", wrong)


def last_instead_of_average(patch):
    """The last answer is taken for the average of all. (Few calls, so that it ends soon.)"""
    patch.setattr(oracle, "SADDLE_CALLS", 2000)
    step = _Game.step

    def forgetful(game, pool, steps):
        step(game, pool, steps)
        last = steps[-1]
        game.cost_sum = game.played * last.cost
        game.gap_sum = [game.played * gap for gap in last.gaps]

    patch.setattr(_Game, "step", forgetful)


def wrong_sign(patch):
    """The multipliers fall where the limit is exceeded. (Few calls.)"""
    real = _Game.multipliers

    def turned(game):
        plus, minus = real(game)
        return minus, plus

    patch.setattr(_Game, "multipliers", turned)
    patch.setattr(oracle, "SADDLE_CALLS", 2000)


def rate_that_never_falls(patch):
    """The rate stays at its first value, and the averages go round. (Few calls.)"""
    step = _Game.step

    def restless(game, pool, steps):
        step(game, pool, steps)
        game.squares = 1e-3

    patch.setattr(_Game, "step", restless)
    patch.setattr(oracle, "SADDLE_CALLS", 2000)


def budget_too_small(patch):
    patch.setattr(saddle_point, "FIRST_BUDGET", 0.05)


def stopped_early(patch):
    """A few calls, and nobody looks whether they were enough."""
    real = _Game.play

    def hasty(game, pool, steps):
        game.recipe = replace(game.recipe, max_calls=20)
        return real(game, pool, steps)

    patch.setattr(_Game, "play", hasty)


MUTANTS = (
    Mutant("limit + 2 nu, seen in the game", loosened),
    Mutant("limit + 2 nu", loosened, check_every_saddle_point),
    Mutant("not tightened", not_tightened, check_every_saddle_point),
    Mutant("tightened by 4.5 nu", tightened_too_much, check_every_saddle_point),
    Mutant("no check of the averages", no_check),
    Mutant("one player checked", one_player_checked),
    Mutant("last answer instead of the average", last_instead_of_average),
    Mutant("multipliers with the wrong sign", wrong_sign),
    Mutant("a rate that never falls", rate_that_never_falls),
    Mutant("a budget that is too small", budget_too_small),
    Mutant("stopped after a few calls", stopped_early),
)


@pytest.mark.parametrize("check", [check_the_game, check_every_saddle_point])
def test_the_code_passes(check):
    check()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_mutant_is_caught(mutant, monkeypatch):
    mutant.breaks(monkeypatch)
    with pytest.raises((AssertionError, EvenhandError)):
        mutant.check()
