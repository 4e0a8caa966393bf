"""FairCSC for heuristic oracles: keep every hypothesis ever seen, and walk with safeguards.

Logistic regression, trees and boosting are not argmins: about half of their answers are worse than a hypothesis already
seen, a feasible answer at multiplier 0 does not end the search, and no lower bound is proved. So the best mixture of the *pool* is
solved after each call. With one constraint: where the free answer is fair, a few small multipliers of either sign look for a cheaper
one; otherwise the multiplier at which the oracle's own gap crosses the limit is bracketed by doubling, then the slope of the pool's
optimal edge alternates with bisection, after one look at a quarter of the crossing. The walk ends early when it has stalled.
"""

from dataclasses import dataclass, field

import numpy as np

from evenhand.faircsc.column_generation import Pool
from evenhand.faircsc.columns import Column, Price
from evenhand.faircsc.secant import Walk, walk_hull
from evenhand.faircsc.solution import Iteration
from evenhand.words import FloatArray

NEARBY = (0.05, -0.05, 0.1, -0.1)
"""Multipliers that look for a cheaper answer where the free one is fair, as shares of all costs; positive: towards a gap of 0."""
LOOK_BELOW = 0.25
"""The share of the crossing multiplier at which one call looks for cheap answers just outside the limit."""
PATIENCE, WORTH = 4, 1e-4
"""The walk has stalled when PATIENCE calls together have not lowered the (normalised) cost by WORTH."""


@dataclass(eq=False)
class _Crossing:
    """Bisection for the multiplier at which the oracle's gap crosses the limit on the side that the free answer violates."""

    side: float
    limit: float
    low: float = 0.0
    high: float | None = None
    first: float = 0.25
    looked_below: bool = False

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

    @property
    def stalled(self) -> bool:
        """Whether the last calls have brought next to nothing."""
        costs = [step.upper_bound for step in self.steps[-1 - PATIENCE :]]
        return len(costs) > PATIENCE and costs[-1] > costs[0] - WORTH

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
    side = float(np.sign(gap)) or 1.0
    if abs(gap) <= search.limit:
        for multiplier in NEARBY[: max_calls - 1]:
            search.call(np.array([side * multiplier]))
        return
    crossing = _Crossing(side, search.limit)
    crossing.take(0.0, gap)
    tried = {0.0}
    while len(search.steps) < max_calls and not search.stalled:
        fresh = [
            m for m in _candidates(search, crossing) if not any(np.isclose(m, other, rtol=1e-3) for other in tried)
        ]
        if not fresh:
            break
        tried.add(fresh[0])
        column = search.call(np.array([side * fresh[0]]))
        crossing.take(fresh[0], float(column.gaps[0]))


def _candidates(search: _Search, crossing: _Crossing) -> list[float]:
    """What to try next, best first: doubling until the crossing is bracketed, then the edge and the bisection in turns."""
    if crossing.high is None:
        return [crossing.next()]
    edge = _edge(search, crossing.side)
    turns = [crossing.next()] if edge is None or edge > crossing.high else [crossing.next(), edge]
    below = [] if crossing.looked_below else [LOOK_BELOW * crossing.high]
    crossing.looked_below = True
    return below + (turns if len(search.steps) % 2 else turns[::-1])


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
