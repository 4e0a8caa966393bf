"""FairCSC for heuristic oracles: keep every hypothesis ever seen, and walk with safeguards.

Logistic regression, trees and boosting are not argmins: about half of their answers are worse than a hypothesis already
seen, a feasible answer at multiplier 0 does not end the search, and no lower bound is proved. So the best mixture of the *pool* is
solved after each call, and the multipliers alternate between the slope of the pool's optimal edge and a bisection on the multiplier
at which the oracle's own gap crosses the limit.
"""

from dataclasses import dataclass, field

import numpy as np

from evenhand.faircsc.column_generation import Pool
from evenhand.faircsc.columns import Column, Price
from evenhand.faircsc.secant import Walk, walk_hull
from evenhand.faircsc.solution import Iteration
from evenhand.words import FloatArray


@dataclass(eq=False)
class _Crossing:
    """Bisection for the multiplier at which the oracle's gap crosses the limit on the side that the free answer violates."""

    side: float
    limit: float
    low: float = 0.0
    high: float | None = None
    first: float = 0.25

    def next(self) -> float:
        """The middle of the bracket, or twice the lower end while there is no upper end."""
        if self.high is not None:
            return 0.5 * (self.low + self.high)
        return 2.0 * self.low if self.low > 0 else self.first

    def take(self, multiplier: float, gap: float) -> None:
        """Narrow the bracket."""
        if self.side * gap > self.limit:
            self.low = max(self.low, multiplier)
        elif self.high is None or multiplier < self.high:
            self.high = multiplier


@dataclass(eq=False)
class _Search:
    """The pool, its best walk so far, and the iterations."""

    price: Price
    pool: Pool
    limit: float
    steps: list[Iteration] = field(default_factory=list)

    def call(self, multipliers: FloatArray) -> Column:
        """One oracle call."""
        column = self.price(multipliers, 1.0)
        self.pool.add(column)
        best = best_of_pool(self.pool, self.limit)
        cost = float(sum(w * c.cost for w, c in zip(best.weights, best.columns, strict=True)))
        self.steps.append(Iteration(tuple(multipliers.tolist()), column.cost, tuple(column.gaps.tolist()), cost, None))
        return column


def best_of_pool(pool: Pool, limit: float) -> Walk:
    """The optimal mixture of the pool's columns: the hull's edge for one constraint, the master program for several."""
    if len(pool.columns[0].gaps) == 1:
        costs, gaps = pool.costs, pool.gaps[0]
        price: Price = lambda multipliers, weight: pool.columns[int(np.argmin(weight * costs + multipliers[0] * gaps))]  # noqa: E731
        return walk_hull(price, pool.columns, limit, 1e-15, len(costs) + 2)
    master = pool.solve(limit)
    weights = np.eye(len(pool.columns))[pool.constant() or 0] if master is None else master.weights
    return pool.walk(weights, limit, None, False, [])


def walk_pool(price: Price, start: list[Column], limit: float, max_calls: int) -> Walk:
    """A good mixture of at most 1 + K hypotheses with `max_calls` oracle calls; always inside the limit."""
    search = _Search(price, Pool.of(start), limit)
    free = search.call(np.zeros(len(start[0].gaps)))
    (_walk_one if len(free.gaps) == 1 else _walk_many)(search, free, max_calls)
    best = best_of_pool(search.pool, limit)
    return Walk(best.columns, best.weights, None, False, tuple(search.steps))


def _walk_one(search: _Search, free: Column, max_calls: int) -> None:
    gap = float(free.gaps[0])
    crossing = _Crossing(float(np.sign(gap)) or 1.0, search.limit)
    crossing.take(0.0, gap)
    tried: set[float] = {0.0}
    while len(search.steps) < max_calls:
        multiplier = _edge(search, crossing.side) if len(search.steps) % 2 == 0 else None
        if multiplier is None or multiplier in tried:
            multiplier = crossing.next()
        if multiplier in tried:
            break
        tried.add(multiplier)
        column = search.call(np.array([crossing.side * multiplier]))
        crossing.take(multiplier, float(column.gaps[0]))


def _edge(search: _Search, side: float) -> float | None:
    """The multiplier of the pool's optimal edge on that side; None where one hypothesis is optimal by itself."""
    best = best_of_pool(search.pool, search.limit)
    if len(best.columns) < 2:
        return None
    inside, outside = best.columns
    slope = (inside.cost - outside.cost) / float(outside.gaps[0] - inside.gaps[0]) * side
    return slope if slope > 0 else None


def _walk_many(search: _Search, free: Column, max_calls: int) -> None:
    previous = np.zeros(len(free.gaps))
    while len(search.steps) < max_calls:
        master = search.pool.solve(search.limit)
        target = previous if master is None else master.multipliers
        known = len(search.pool.columns)
        search.call(target)
        if len(search.pool.columns) == known and len(search.steps) < max_calls:
            search.call(0.5 * (target + previous))
        previous = target
