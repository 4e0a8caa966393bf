"""FairCSC for exact oracles with several constraints: Dantzig-Wolfe column generation.

The linear program over the columns found so far gives multipliers lambda; one oracle call finds the
column of least cost + lambda . gap. If it beats no known column, the program's solution is optimal:
for every lambda

    OPT >= min_h [cost(h) + lambda . gap(h)] - limit sum_k |lambda_k|.

The first phase, `feasible_start`, is needed where no constant is allowed.
"""

from dataclasses import dataclass, field

import numpy as np

from evenhand.errors import Infeasible
from evenhand.faircsc.columns import Iteration, Price, RuleColumn, Walk
from evenhand.words import FloatArray

ROUNDING = 1e-13
"""What a limit may be exceeded by; beyond it, weight moves to a constant."""
TIGHT = 1e-8
"""How near to the limit a constraint must be to count as tight before its equation is solved."""


@dataclass(frozen=True, eq=False)
class PoolOptimum:
    """Weights per column, the optimal cost, and the signed multiplier of each constraint."""

    weights: FloatArray
    cost: float
    multipliers: FloatArray


@dataclass(eq=False)
class Pool:
    """Every column seen so far, without repetition."""

    columns: list[RuleColumn] = field(default_factory=list)
    seen: set[tuple[float, ...]] = field(default_factory=set)

    @classmethod
    def of(cls, columns: list[RuleColumn]) -> "Pool":
        """A pool that starts with `columns`."""
        pool = cls()
        for column in columns:
            pool.add(column)
        return pool

    def add(self, column: RuleColumn) -> bool:
        """Whether the column is a new point."""
        key = (column.cost, *column.gaps.tolist())
        if key in self.seen:
            return False
        self.seen.add(key)
        self.columns.append(column)
        return True

    @property
    def costs(self) -> FloatArray:
        """(columns,)"""
        return np.array([column.cost for column in self.columns])

    @property
    def gaps(self) -> FloatArray:
        """(constraints, columns)"""
        return np.stack([column.gaps for column in self.columns], axis=1)

    @property
    def constant(self) -> int | None:
        """The number of the cheapest column without any gap."""
        fair = [i for i, column in enumerate(self.columns) if not column.gaps.any()]
        return min(fair, key=lambda i: self.columns[i].cost, default=None)

    def solve(self, limit: float) -> PoolOptimum | None:
        """The cheapest mixture of the pool within the limit; None if none is.

            minimise sum_h w_h cost(h)
            subject to  |sum_h w_h gap_k(h)| <= limit for all k,  sum_h w_h = 1,  w >= 0

        A basic solution has at most 1 + rank(tight constraints) columns (section B.1 of the paper,
        "support_size", for one constraint).
        """
        from scipy.optimize import linprog

        costs = self.costs
        gaps = self.gaps
        result = linprog(
            costs,
            A_ub=np.concatenate([gaps, -gaps]),
            b_ub=np.full(2 * len(gaps), limit),
            A_eq=np.ones((1, len(costs))),
            b_eq=[1.0],
            method="highs-ds",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if result.x is None:
            return None
        # Solve the equations of the basis again, so that tight constraints hold to rounding and not
        # to a solver's tolerance: sum_S w = 1 and sum_S w gap_A = limit (with the side's sign), on
        # the support S and the tight constraints A.
        weights = np.asarray(result.x)
        support = np.flatnonzero(weights > 1e-9)
        values = gaps[:, support] @ weights[support]
        tight = np.flatnonzero(np.abs(values) >= limit - TIGHT)
        system = np.concatenate([np.ones((1, len(support))), gaps[np.ix_(tight, support)]])
        target = np.concatenate([[1.0], np.sign(values[tight]) * limit])
        solved, *_ = np.linalg.lstsq(system, target, rcond=None)
        accurate = np.abs(system @ solved - target).max() <= 1e-13 and solved.min() >= 0
        basic = np.zeros_like(weights)
        basic[support] = solved if accurate else weights[support]
        basic = np.asarray(basic / basic.sum())
        upper, lower = np.split(np.asarray(result.ineqlin.marginals), 2)
        return PoolOptimum(basic, float(costs @ basic), lower - upper)

    def least_violation(self) -> tuple[float, FloatArray]:
        """min over mixtures of max_k |gap_k|, with the direction mu (sum |mu| = 1) that proves it:
        an LP over (w, v).
        """
        from scipy.optimize import linprog

        gaps = self.gaps
        constraints, columns = gaps.shape
        both = np.concatenate([gaps, -gaps])
        result = linprog(
            np.r_[np.zeros(columns), 1.0],
            A_ub=np.c_[both, -np.ones(2 * constraints)],
            b_ub=np.zeros(2 * constraints),
            A_eq=np.r_[np.ones(columns), 0.0][None, :],
            b_eq=[1.0],
            method="highs-ds",
        )
        upper, lower = np.split(np.asarray(result.ineqlin.marginals), 2)
        least = float(np.abs(gaps @ np.asarray(result.x)[:-1]).max())
        return least, lower - upper

    def mixture(
        self,
        weights: FloatArray,
        limit: float,
        *,
        lower_bound: float | None = None,
        converged: bool = False,
        steps: list[Iteration] | None = None,
    ) -> Walk:
        """The pool's mixture as the end of a walk, inside the limit to rounding."""
        worst = float(np.abs(self.gaps @ weights).max())
        constant = self.constant
        if constant is not None and worst > limit + ROUNDING:
            # Gaps scale with the weight that an exactly fair column does not get.
            weights = limit / worst * weights
            weights[constant] += 1.0 - limit / worst
        support = np.flatnonzero(weights > 0)
        chosen = tuple(self.columns[i] for i in support)
        kept = tuple(weights[support].tolist())
        return Walk(chosen, kept, lower_bound, converged, tuple(steps or ()))


def generate_columns(
    price: Price, start: list[RuleColumn], limit: float, tolerance: float, max_calls: int
) -> Walk:
    """The optimum over all mixtures of an exact class, to `tolerance` in normalised cost.

    `start` must be feasible.
    """
    pool = Pool.of(start)
    lower = -np.inf
    steps: list[Iteration] = []
    multipliers = np.zeros(len(start[0].gaps))

    def solve() -> PoolOptimum:
        optimum = pool.solve(limit)
        if optimum is None:  # the start is feasible: only the LP solver's rounding leads here
            raise Infeasible(
                "the linear program over known columns has no solution.", certificate=np.nan
            )
        return optimum

    optimum = solve()
    while len(steps) < max_calls:
        column = price(multipliers, 1.0)
        lower = max(lower, column.value(multipliers) - limit * float(np.abs(multipliers).sum()))
        new = pool.add(column)
        optimum = solve() if new else optimum
        steps.append(column.priced_at(tuple(multipliers.tolist()), optimum.cost, lower))
        if optimum.cost - lower <= tolerance or (not new and len(steps) > 1):
            break
        multipliers = optimum.multipliers
    return pool.mixture(
        optimum.weights,
        limit,
        lower_bound=min(lower, optimum.cost),
        converged=optimum.cost - lower <= max(tolerance, 1e-9),
        steps=steps,
    )


def feasible_start(
    price: Price, constraints: int, limit: float, max_calls: int
) -> list[RuleColumn]:
    """Columns whose mixtures include a feasible one, for a class without constants; Infeasible with
    a proof if there is none.

    Phase one minimises v subject to |gap_k(pi)| <= v. For every mu with sum |mu_k| = 1, min_h mu .
    gap(h) is a lower bound of the least v: once it exceeds the limit, no mixture is feasible.
    """
    pool = Pool.of([price(np.zeros(constraints), 1.0)])
    lower = 0.0
    for calls in range(1, max_calls):
        least, direction = pool.least_violation()
        if least <= limit:
            return pool.columns
        column = price(direction, 0.0)
        lower = max(lower, float(direction @ column.gaps))
        if lower > limit or not pool.add(column):
            raise Infeasible(
                f"no mixture of the class has all gaps within {limit:g}: the least worst gap any "
                f"mixture reaches is at least {lower:.6g} (proved by oracle call {calls + 1}).",
                hint="add accept-all or reject-all to the class (with_constants=True), or raise "
                "the limit.",
                certificate=lower,
            )
    return pool.columns
