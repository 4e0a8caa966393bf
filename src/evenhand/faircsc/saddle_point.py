"""The paper's recipe for FairCSC (section 3.1 and appendix B.2): exponentiated gradient on the
Lagrangian.

    L(pi, lambda) = cost(pi) + sum_k lambda_k (s_k gap_k(pi) - (limit - 2 nu)),
    lambda >= 0, sum lambda <= budget

over the 2K signed constraints. The multipliers play exponentiated gradient, the oracle answers with
a best response, and the averages approach a saddle point. At a nu-approximate one (lemmas B.4 and
B.5) the average costs at most 4 nu more than the optimum, in normalised cost, and because the
constraint was tightened by 2 nu none of its gaps exceeds the limit. A linear program over its
support then shrinks it to a basic solution, which costs no more.

**How many calls** (lemma B.3). In step t the multipliers are proportional to exp(eta_t x sum of the
excesses so far), eta_t = sqrt(ln(2K + 1) / (1 + sum of the squared half-ranges of the excesses)).
Rates that only fall keep the regret of the multipliers below

    budget x 2 sqrt(ln(2K + 1) (1 + t)),

and the best responses have none, so the averages of t steps are a nu-approximate saddle point once
t >= 4 budget^2 ln(2K + 1) / nu^2 + 1 (`theory.saddle_point_calls`). Whether they are one is checked
on the way, so fewer steps often do.

**The budget.** 2 suffices where there is one gap and both group classifiers are in the class, which
is the paper's case; otherwise it is doubled until the constraint is met.
"""

from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np

from evenhand.errors import InvalidInput
from evenhand.faircsc.column_generation import Pool
from evenhand.faircsc.columns import Iteration, Price, RuleColumn, SaddlePoint, Walk
from evenhand.faircsc.pooled import Answers

FIRST_BUDGET = 2.0
"""What the multipliers may sum to at first."""
FIRST_CHECK = 8
CHECK_GROWTH = 1.2
"""The averages are checked after so many steps, and again whenever the steps have grown by this
factor."""


@dataclass(frozen=True)
class Recipe:
    """The settings of the paper's recipe.

    oracle_tolerance: the paper's nu. fixed_budget: whether the multiplier budget stays at 2,
    because both group classifiers are in the class and there is one gap.
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

    @property
    def tightened(self) -> float:
        """limit - 2 nu: a nu-approximate saddle point exceeds this by at most 2 nu."""
        return self.limit - 2 * self.oracle_tolerance


class _Game:
    """The tightened game with one budget, and the sums of what has been played.

    A game has few constraints and many steps, so the numbers of a step are Python's: arrays of two
    entries take longer to make than to add. `plus` and `minus` are the two signs of each gap.
    """

    def __init__(
        self, price: Price, recipe: Recipe, multiplier_budget: float, constraints: int
    ) -> None:
        self.price = price
        self.recipe = recipe
        self.multiplier_budget = multiplier_budget
        self.log_choices = log(2 * constraints + 1)
        self.played = 0
        self.cost_sum = 0.0
        self.gap_sum = [0.0] * constraints
        self.plus_sum = [0.0] * constraints
        self.minus_sum = [0.0] * constraints
        self.squares = 1.0

    def multipliers(self) -> tuple[list[float], list[float]]:
        """budget x exp(eta S) / (1 + sum exp(eta S)), S the sum of the excesses s_k gap_k - (limit
        - 2 nu): the 1 stands for what is not spent.
        """
        rate = sqrt(self.log_choices / self.squares)
        allowed = self.played * self.recipe.tightened
        plus = [rate * (gap - allowed) for gap in self.gap_sum]
        minus = [rate * (-gap - allowed) for gap in self.gap_sum]
        largest = max(0.0, *plus, *minus)
        plus = [exp(power - largest) for power in plus]
        minus = [exp(power - largest) for power in minus]
        share = self.multiplier_budget / (exp(-largest) + sum(plus) + sum(minus))
        return [share * power for power in plus], [share * power for power in minus]

    def respond(self, prices: list[float], steps: list[Iteration]) -> RuleColumn:
        """min over h of L(h, lambda), asked with the signed multipliers."""
        column = self.price(np.array(prices), 1.0)
        average = self.cost_sum / self.played if self.played else column.cost
        steps.append(column.priced_at(tuple(prices), average, None))
        return column

    def step(self, pool: Pool, steps: list[Iteration]) -> None:
        """The multipliers move, the oracle responds."""
        plus, minus = self.multipliers()
        column = self.respond([up - down for up, down in zip(plus, minus, strict=True)], steps)
        pool.add(column)
        gaps = column.gaps.tolist()
        self.played += 1
        self.cost_sum += column.cost
        self.gap_sum = [total + gap for total, gap in zip(self.gap_sum, gaps, strict=True)]
        self.plus_sum = [total + one for total, one in zip(self.plus_sum, plus, strict=True)]
        self.minus_sum = [total + one for total, one in zip(self.minus_sum, minus, strict=True)]
        # all excesses of this step, and the 0 of spending nothing, lie in this interval
        widest = max(map(abs, gaps))
        highest = max(0.0, widest - self.recipe.tightened)
        lowest = min(0.0, -widest - self.recipe.tightened)
        self.squares += ((highest - lowest) / 2) ** 2

    def averages(self, steps: list[Iteration]) -> SaddlePoint:
        """The averages, and what either player would gain by leaving them; one call."""
        tightened = self.recipe.tightened
        cost = self.cost_sum / self.played
        gaps = np.array(self.gap_sum) / self.played
        plus = np.array(self.plus_sum) / self.played
        minus = np.array(self.minus_sum) / self.played
        prices = plus - minus
        reply = self.respond(prices.tolist(), steps)
        # L = cost + prices . gaps - (sum of all multipliers) x tightened limit
        spent = float(plus.sum() + minus.sum())
        value = cost + float(prices @ gaps) - spent * tightened
        least = reply.value(prices) - spent * tightened
        excess = float(np.abs(gaps).max()) - tightened
        worst = cost + self.multiplier_budget * max(0.0, excess)
        return SaddlePoint(
            cost=cost,
            gaps=gaps,
            multipliers=prices,
            multiplier_budget=self.multiplier_budget,
            tightened_limit=tightened,
            oracle_tolerance=self.recipe.oracle_tolerance,
            multipliers_gain=worst - value,
            mixture_gain=value - least,
            plays=self.played,
        )

    def play(self, pool: Pool, steps: list[Iteration]) -> SaddlePoint:
        """Play until the averages are a nu-approximate saddle point, or the calls run out."""
        check_at = FIRST_CHECK
        while True:
            self.step(pool, steps)
            out_of_calls = len(steps) >= self.recipe.max_calls
            if self.played < check_at and not out_of_calls:
                continue
            check_at = int(check_at * CHECK_GROWTH) + 1
            found = self.averages(steps)
            if found.is_approximate or out_of_calls:
                return found


def saddle_point(price: Price, start: list[RuleColumn], recipe: Recipe) -> Walk:
    """A mixture within 4 nu of the optimum and inside the limit."""
    steps: list[Iteration] = []
    pool = Pool.of(start)
    constraints = len(start[0].gaps)
    multiplier_budget = FIRST_BUDGET
    found = _without_multipliers(price, recipe, constraints, pool, steps)
    while found is None:
        game = _Game(price, recipe, multiplier_budget, constraints)
        found = game.play(pool, steps)
        if recipe.fixed_budget or len(steps) >= recipe.max_calls or found.within(recipe.limit):
            break
        found = None
        multiplier_budget *= 2
    # costs no more than the average, and is inside the limit even where the calls ran out
    shrunk = Answers(pool).best(recipe.limit)
    converged = found.is_approximate and found.within(recipe.limit)
    return Walk(shrunk.columns, shrunk.weights, None, converged, tuple(steps), found)


def _without_multipliers(
    price: Price, recipe: Recipe, constraints: int, pool: Pool, steps: list[Iteration]
) -> SaddlePoint | None:
    """If the cheapest rule of all keeps the tightened limit, it is a saddle point with multipliers
    of 0, and there is nothing to play for.
    """
    free = price(np.zeros(constraints), 1.0)
    pool.add(free)
    steps.append(free.priced_at((0.0,) * constraints, free.cost, None))
    if np.abs(free.gaps).max() > recipe.tightened:
        return None
    return SaddlePoint(
        cost=free.cost,
        gaps=free.gaps,
        multipliers=np.zeros(constraints),
        multiplier_budget=FIRST_BUDGET,
        tightened_limit=recipe.tightened,
        oracle_tolerance=recipe.oracle_tolerance,
        multipliers_gain=0.0,
        mixture_gain=0.0,
        plays=1,
    )
