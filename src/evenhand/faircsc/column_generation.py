"""FairCSC with several constraints: Dantzig-Wolfe column generation, and its first phase where no
constant is allowed.

The master program over the columns found so far gives multipliers lambda; one oracle call finds the
column of least cost + lambda . gap. If it beats no known column, the master's solution is optimal:
for every lambda

    OPT >= min_h [cost(h) + lambda . gap(h)] - limit sum_k |lambda_k|.
"""

from dataclasses import dataclass, field

import numpy as np

from evenhand.errors import Infeasible
from evenhand.faircsc.columns import Column, Price
from evenhand.faircsc.master import MasterSolution, mix_towards_constant, solve_master
from evenhand.faircsc.secant import Walk
from evenhand.faircsc.solution import Iteration
from evenhand.words import FloatArray


@dataclass(eq=False)
class Pool:
    """Every column seen so far, without repetition."""

    columns: list[Column] = field(default_factory=list)
    seen: set[tuple[float, ...]] = field(default_factory=set)

    @classmethod
    def of(cls, columns: list[Column]) -> "Pool":
        """A pool that starts with `columns`."""
        pool = cls()
        for column in columns:
            pool.add(column)
        return pool

    def add(self, column: Column) -> bool:
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

    def solve(self, limit: float) -> MasterSolution | None:
        """The best mixture of the pool."""
        return solve_master(self.costs, self.gaps, limit)

    def constant(self) -> int | None:
        """The cheapest column without any gap."""
        fair = [i for i, column in enumerate(self.columns) if not column.gaps.any()]
        return min(fair, key=lambda i: self.columns[i].cost, default=None)

    def walk(
        self,
        weights: FloatArray,
        limit: float,
        lower: float | None,
        converged: bool,
        steps: list[Iteration],
    ) -> Walk:
        """The pool's mixture as the end of a walk, inside the limit to rounding."""
        constant = self.constant()
        if constant is not None:
            weights = mix_towards_constant(weights, self.gaps, limit, constant)
        support = np.flatnonzero(weights > 0)
        chosen = tuple(self.columns[i] for i in support)
        return Walk(chosen, tuple(weights[support].tolist()), lower, converged, tuple(steps))


def generate_columns(
    price: Price, start: list[Column], limit: float, tolerance: float, max_calls: int
) -> Walk:
    """The optimum over all mixtures of an exact class, to `tolerance` in normalised cost.

    `start` must be feasible.
    """
    pool, lower = Pool.of(start), -np.inf
    steps: list[Iteration] = []
    multipliers = np.zeros(len(start[0].gaps))
    master = _require(pool.solve(limit))
    while len(steps) < max_calls:
        column = price(multipliers, 1.0)
        lower = max(lower, column.value(multipliers) - limit * float(np.abs(multipliers).sum()))
        new = pool.add(column)
        master = _require(pool.solve(limit)) if new else master
        steps.append(
            Iteration(
                tuple(multipliers.tolist()),
                column.cost,
                tuple(column.gaps.tolist()),
                master.cost,
                lower,
            )
        )
        if master.cost - lower <= tolerance or (not new and len(steps) > 1):
            break
        multipliers = master.multipliers
    converged = master.cost - lower <= max(tolerance, 1e-9)
    return pool.walk(master.weights, limit, min(lower, master.cost), converged, steps)


def _require(master: MasterSolution | None) -> MasterSolution:
    if (
        master is None
    ):  # the start is feasible, so only a numerical failure of the LP solver leads here
        raise Infeasible(
            "the linear program over known columns has no solution.", certificate=np.nan
        )
    return master


def feasible_start(price: Price, constraints: int, limit: float, max_calls: int) -> list[Column]:
    """Columns whose mixtures include a feasible one, for a class without constants; Infeasible with
    a proof if there is none.

    Phase one minimises v subject to |gap_k(pi)| <= v. For every mu with sum |mu_k| = 1, min_h mu .
    gap(h) is a lower bound of the least v: once it exceeds the limit, no mixture is feasible.
    """
    pool, lower = Pool.of([price(np.zeros(constraints), 1.0)]), 0.0
    for calls in range(1, max_calls):
        least, direction = _least_violation(pool.gaps)
        if least <= limit:
            return pool.columns
        column = price(direction, 0.0)
        lower = max(lower, float(direction @ column.gaps))
        if lower > limit or not pool.add(column):
            raise Infeasible(
                f"no mixture of the class has all gaps within {limit:g}: the least worst gap any mixture reaches is at least "
                f"{lower:.6g} (proved by oracle call {calls + 1}).",
                hint="add accept-all or reject-all to the class (with_constants=True), or raise the limit.",
                certificate=lower,
            )
    return pool.columns


def _least_violation(gaps: FloatArray) -> tuple[float, FloatArray]:
    """min over mixtures of max_k |gap_k|, with the direction mu (sum |mu| = 1) that proves it: an
    LP over (w, v).
    """
    from scipy.optimize import linprog

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
