"""The paper's recipe for FairCSC (section 3.1 and appendix B.2): exponentiated gradient on the
Lagrangian.

    L(pi, lambda) = cost(pi) + sum_k lambda_k (s_k gap_k(pi) - (limit - 2 nu)),
    lambda >= 0, sum lambda <= budget

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
from evenhand.faircsc.columns import Iteration, Price, RuleColumn, Walk
from evenhand.faircsc.pooled import Answers
from evenhand.words import FloatArray

FIRST_BUDGET = 2.0
"""What the multipliers may sum to at first."""
EXPONENT_CAP = 500.0
"""exp of a larger number would overflow."""


@dataclass(frozen=True)
class Recipe:
    """The settings of the paper's recipe.

    oracle_tolerance: the paper's nu. fixed_budget: whether the multiplier budget stays at 2,
    because both group classifiers are in the class.
    """

    limit: float
    oracle_tolerance: float
    fixed_budget: bool
    max_calls: int

    def __post_init__(self) -> None:
        if not 0 < self.oracle_tolerance < self.limit / 2:
            raise InvalidInput(
                f"the oracle tolerance nu is {self.oracle_tolerance:g} and the limit "
                f"{self.limit:g}; the paper's recipe needs 0 < nu < limit / 2.",
                hint='choose a smaller tolerance, or method="column-generation", which needs none.',
            )


@dataclass(frozen=True, eq=False)
class _Lagrangian:
    """The tightened game: signed gaps against a limit of limit - 2 nu."""

    price: Price
    tightened: float
    multiplier_budget: float

    def respond(self, dual: FloatArray) -> tuple[RuleColumn, tuple[float, ...]]:
        """min over h of L(h, lambda), and the signed multipliers it was priced with."""
        plus, minus = np.split(dual, 2)
        return self.price(np.asarray(plus - minus), 1.0), tuple((plus - minus).tolist())

    def value(self, cost: float, gaps: FloatArray, dual: FloatArray) -> float:
        """L at (cost, gaps)."""
        return cost + float(dual @ self.excess(gaps))

    def excess(self, gaps: FloatArray) -> FloatArray:
        """s_k gap_k - (limit - 2 nu) for both signs."""
        return np.concatenate([gaps, -gaps]) - self.tightened

    def play(self, pool: Pool, recipe: Recipe, steps: list[Iteration]) -> bool:
        """Play until the averages are a nu-approximate saddle point; whether they then meet the
        true limit.
        """
        nu, signs = recipe.oracle_tolerance, 2 * len(pool.columns[0].gaps)
        exponents, dual_sum = np.zeros(signs), np.zeros(signs)
        cost_sum, gap_sum = 0.0, np.zeros(signs // 2)
        check_at, played = 8, 0
        while len(steps) < recipe.max_calls:
            dual = self.multiplier_budget * np.exp(exponents) / (1.0 + np.exp(exponents).sum())
            column, multipliers = self.respond(dual)
            pool.add(column)
            played += 1
            cost_sum, gap_sum, dual_sum = (
                cost_sum + column.cost,
                gap_sum + column.gaps,
                dual_sum + dual,
            )
            # a learning rate that starts at order one and falls to the one of the theorem
            rate = max(nu / (2 * self.multiplier_budget), float(1.0 / np.sqrt(played)))
            exponents = np.minimum(exponents + rate * self.excess(column.gaps), EXPONENT_CAP)
            steps.append(column.priced_at(multipliers, cost_sum / played, None))
            if played < check_at:
                continue
            # Does neither player gain more than nu by leaving the averages?
            check_at = int(check_at * 1.2) + 1
            cost, gaps, mean_dual = cost_sum / played, gap_sum / played, dual_sum / played
            reply, multipliers = self.respond(mean_dual)
            steps.append(reply.priced_at(multipliers, cost, None))
            value = self.value(cost, gaps, mean_dual)
            worst = cost + self.multiplier_budget * max(0.0, float(self.excess(gaps).max()))
            if worst - value <= nu and value - self.value(reply.cost, reply.gaps, mean_dual) <= nu:
                return bool(np.abs(gaps).max() <= self.tightened + 2 * nu)
        return False


def saddle_point(price: Price, start: list[RuleColumn], recipe: Recipe) -> Walk:
    """A mixture within 4 nu of the optimum and inside the limit."""
    steps: list[Iteration] = []
    pool, multiplier_budget = Pool.of(start), FIRST_BUDGET
    while True:
        tightened = recipe.limit - 2 * recipe.oracle_tolerance
        game = _Lagrangian(price, tightened, multiplier_budget)
        met = game.play(pool, recipe, steps)
        if met or recipe.fixed_budget or len(steps) >= recipe.max_calls:
            break
        multiplier_budget *= 2
    shrunk = Answers(pool).best(recipe.limit)
    return Walk(shrunk.columns, shrunk.weights, None, met, tuple(steps))
