"""The paper's recipe for FairCSC (section 3.1 and appendix B.2): exponentiated gradient on the
Lagrangian.

    L(pi, lambda) = cost(pi) + sum_k lambda_k (s_k gap_k(pi) - (limit - 2 nu)),   lambda >= 0, sum lambda <= budget

over the 2K signed constraints. The multipliers play exponentiated gradient, the oracle answers with
a best response, and the averages approach a saddle point; at a nu-approximate one the cost is
within 4 nu of OPT (in normalised cost) and, because the constraint was tightened by 2 nu, no gap
exceeds the limit. A linear program over the support shrinks the average to a basic solution. Budget
2 suffices when both group classifiers are in the class; otherwise it is doubled until the
constraint is met.
"""

from dataclasses import dataclass

import numpy as np

from evenhand.errors import InvalidInput
from evenhand.faircsc.column_generation import Pool
from evenhand.faircsc.columns import Column, Price
from evenhand.faircsc.pooled import Answers
from evenhand.faircsc.secant import Walk
from evenhand.faircsc.solution import Iteration
from evenhand.words import FloatArray


@dataclass(frozen=True, eq=False)
class _Game:
    """The tightened game: signed gaps against a limit of limit - 2 nu."""

    price: Price
    tightened: float
    budget: float

    def respond(self, dual: FloatArray) -> Column:
        """min over h of L(h, lambda)."""
        return self.price(_signed(dual), 1.0)

    def value(self, cost: float, gaps: FloatArray, dual: FloatArray) -> float:
        """L at (cost, gaps)."""
        return cost + float(dual @ self.excess(gaps))

    def excess(self, gaps: FloatArray) -> FloatArray:
        """s_k gap_k - (limit - 2 nu) for both signs."""
        return np.concatenate([gaps, -gaps]) - self.tightened

    def worst(self, cost: float, gaps: FloatArray) -> float:
        """max over lambda of L(pi, lambda)."""
        return cost + self.budget * max(0.0, float(self.excess(gaps).max()))


def _signed(dual: FloatArray) -> FloatArray:
    plus, minus = np.split(dual, 2)
    return np.asarray(plus - minus)


def saddle_point(
    price: Price,
    start: list[Column],
    limit: float,
    oracle_tolerance: float,
    multiplier_budget: float,
    fixed: bool,
    max_calls: int,
) -> Walk:
    """A mixture within 4 nu of the optimum and inside the limit.

    `fixed`: keep the budget (the group classifiers are in the class).
    """
    if not 0 < oracle_tolerance < limit / 2:
        raise InvalidInput(
            f"the oracle tolerance nu is {oracle_tolerance:g} and the limit {limit:g}; the paper's recipe needs 0 < nu < limit / 2.",
            hint='choose a smaller tolerance, or method="column-generation", which needs none.',
        )
    steps: list[Iteration] = []
    pool = Pool.of(start)
    while True:
        game = _Game(price, limit - 2 * oracle_tolerance, multiplier_budget)
        met = _play(game, pool, oracle_tolerance, steps, max_calls)
        if met or fixed or len(steps) >= max_calls:
            break
        multiplier_budget *= 2
    shrunk = Answers(pool, []).best(limit)
    return Walk(shrunk.columns, shrunk.weights, None, met, tuple(steps))


def _play(game: _Game, pool: Pool, nu: float, steps: list[Iteration], max_calls: int) -> bool:
    """Play until the averages are a nu-approximate saddle point; whether they meet the true limit
    then.
    """
    signs = 2 * len(pool.columns[0].gaps)
    exponents, dual_sum = np.zeros(signs), np.zeros(signs)
    cost_sum, gap_sum = 0.0, np.zeros(signs // 2)
    rate = nu / (2 * game.budget)
    check_at, played = 8, 0
    while len(steps) < max_calls:
        dual = game.budget * np.exp(exponents) / (1.0 + np.exp(exponents).sum())
        column = game.respond(dual)
        pool.add(column)
        played += 1
        cost_sum, gap_sum, dual_sum = cost_sum + column.cost, gap_sum + column.gaps, dual_sum + dual
        exponents = np.minimum(exponents + _step(rate, played) * game.excess(column.gaps), 500.0)
        steps.append(
            Iteration(
                tuple(_signed(dual).tolist()),
                column.cost,
                tuple(column.gaps.tolist()),
                cost_sum / played,
                None,
            )
        )
        if played >= check_at:
            check_at = int(check_at * 1.2) + 1
            cost, gaps, mean_dual = cost_sum / played, gap_sum / played, dual_sum / played
            reply = game.respond(mean_dual)
            value = game.value(cost, gaps, mean_dual)
            steps.append(
                Iteration(
                    tuple(_signed(mean_dual).tolist()),
                    reply.cost,
                    tuple(reply.gaps.tolist()),
                    cost,
                    None,
                )
            )
            if (
                game.worst(cost, gaps) - value <= nu
                and value - game.value(reply.cost, reply.gaps, mean_dual) <= nu
            ):
                return bool(np.abs(gaps).max() <= game.tightened + 2 * nu)
    return False


def _step(rate: float, played: int) -> float:
    """A learning rate that starts at order one and falls to the one of the theorem."""
    return max(rate, float(1.0 / np.sqrt(played)))
