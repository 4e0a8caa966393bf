"""FairCSC for heuristic oracles: keep every hypothesis ever seen, and walk with safeguards.

Logistic regression, trees and boosting are not argmins: about half of their answers are worse than
a hypothesis already seen, a feasible answer at multiplier 0 does not end the search, and no lower
bound is proved. So the best mixture of the *pool* is solved after each call. Where a search
partitions the rows (the leaves of a tree, the values of a score), the pool has all hypotheses that
its cells offer, not the answer alone: the cheapest of them at any multiplier is found without a
call, so that the best mixture of all of them is exact, and fewer calls are needed.

With one constraint: where the free answer is fair, a few small multipliers of either sign look for
a cheaper one; otherwise the multiplier at which the oracle's own gap crosses the limit is bracketed
by doubling, then the slope of the pool's optimal edge alternates with bisection, after one look at
a quarter of the crossing. The walk ends early when it has stalled.
"""

from dataclasses import dataclass, field

import numpy as np

from evenhand.faircsc.column_generation import Pool
from evenhand.faircsc.columns import (
    ClassPricer,
    Iteration,
    PointPricer,
    Price,
    Relatives,
    RuleColumn,
    Walk,
    cheapest,
    walk_hull,
)
from evenhand.words import FloatArray

NEARBY = (0.05, -0.05, 0.1, -0.1)
"""Multipliers that look for a cheaper answer where the free one is fair, as shares of all costs;
positive: towards a gap of 0.
"""
FIRST = 0.25
"""The multiplier at which the search for the crossing begins."""
LOOK_BELOW = 0.25
"""The share of the crossing multiplier at which one call looks for cheap answers just outside the
limit.
"""
PATIENCE = 2
WORTH = 1e-4
"""The walk has stalled when PATIENCE calls together have not lowered the (normalised) cost by
WORTH, once the crossing is bracketed.
"""
NEAR = 0.02
"""A multiplier that differs by less from one that was tried, in proportion, is not tried."""
POOL_STEPS = 100
"""Steps in which the best mixture of the pool is found."""


@dataclass(eq=False)
class _Crossing:
    """Bisection for the multiplier at which the oracle's gap crosses the limit on the side that the
    free answer violates.
    """

    side: float
    limit: float
    lower: float = 0.0
    upper: float | None = None
    looked_below: int | None = None
    """The number of calls before the look below the crossing."""

    def next(self) -> float:
        """The middle of the bracket, or twice the lower end while there is no upper end."""
        if self.upper is not None:
            return 0.5 * (self.lower + self.upper)
        return 2.0 * self.lower if self.lower > 0 else FIRST

    def take(self, multiplier: float, gap: float) -> None:
        """Narrow the bracket."""
        if self.side * gap > self.limit:
            self.lower = max(self.lower, multiplier)
        elif self.upper is None or multiplier < self.upper:
            self.upper = multiplier


@dataclass(eq=False)
class Answers:
    """Everything that is known of a class without another call, for walks to several limits.

    pool: the start, and the answers of all calls; relatives: what else their searches offer; asked:
    the multipliers of each call; offered: relatives that a mixture has needed, where there are
    several constraints.
    """

    pool: Pool
    relatives: list[Relatives] = field(default_factory=list)
    asked: list[tuple[FloatArray, RuleColumn]] = field(default_factory=list)
    offered: list[RuleColumn] = field(default_factory=list)

    @classmethod
    def of(cls, pricer: ClassPricer | PointPricer) -> "Answers":
        """Only the permanent members are known; what the pricer finds besides its answers will be
        known, too.
        """
        relatives = pricer.relatives if isinstance(pricer, ClassPricer) else []
        return cls(Pool.of(pricer.permanent), relatives)

    def best(self, limit: float, *, answers_alone: bool = False) -> Walk:
        """The optimal mixture of all that is known, or of the answers alone: the hull's edge for
        one constraint, the linear program for several."""
        columns = self.pool.columns
        if len(columns[0].gaps) == 1:
            costs = self.pool.costs
            gaps = self.pool.gaps[0]

            def price(multipliers: FloatArray, weight: float) -> RuleColumn:
                known = [columns[int(np.argmin(weight * costs + multipliers[0] * gaps))]]
                if not answers_alone:
                    known += [relatives(multipliers, weight) for relatives in self.relatives]
                return cheapest(known, multipliers, weight)

            return walk_hull(price, columns, limit, 1e-15, POOL_STEPS)
        whole = Pool.of(columns if answers_alone else [*columns, *self.offered])
        optimum = whole.solve(limit)
        for _ in range(0 if answers_alone or not self.relatives else POOL_STEPS):
            if optimum is None:
                break
            multipliers = optimum.multipliers
            column = cheapest([more(multipliers) for more in self.relatives], multipliers, 1.0)
            least = min(known.value(multipliers) for known in whole.columns)
            if column.value(multipliers) >= least - 1e-9 or not whole.add(column):
                break
            self.offered.append(column)
            optimum = whole.solve(limit)
        if optimum is None:
            return whole.mixture(np.eye(len(whole.columns))[whole.constant or 0], limit)
        return whole.mixture(optimum.weights, limit)


@dataclass(eq=False)
class _Search:
    """A walk to one limit: what is known, and the iterations."""

    price: Price
    known: Answers
    limit: float
    max_calls: int
    steps: list[Iteration] = field(default_factory=list)
    mixture: Walk | None = None
    """The best mixture after the last call."""

    @property
    def may_call(self) -> bool:
        return len(self.steps) < self.max_calls

    def call(self, multipliers: FloatArray) -> RuleColumn:
        """One oracle call."""
        column = self.price(multipliers, 1.0)
        self.known.pool.add(column)
        self.known.asked.append((multipliers, column))
        self.mixture = self.known.best(self.limit, answers_alone=len(multipliers) > 1)
        asked = tuple(multipliers.tolist())
        self.steps.append(column.priced_at(asked, self.mixture.cost, None))
        return column

    def stalled(self, first: int | None) -> bool:
        """Whether the last calls have brought next to nothing; only those after the first so many
        count, none if that is None.
        """
        costs = [] if first is None else [step.upper_bound for step in self.steps[first:]]
        return len(costs) > PATIENCE and costs[-1] > costs[-1 - PATIENCE] - WORTH

    def candidates(self, crossing: _Crossing) -> list[float]:
        """What to try next, best first: doubling until the crossing is bracketed, then the slope of
        the pool's optimal edge and the bisection in turns.
        """
        if crossing.upper is None:
            return [crossing.next()]
        turns = [crossing.next()]
        best = self.mixture or self.known.best(self.limit)
        if len(best.columns) == 2:  # else one hypothesis is optimal by itself
            inside, outside = best.columns
            gap = float(outside.gaps[0] - inside.gaps[0])
            edge = (inside.cost - outside.cost) / gap * crossing.side
            turns += [edge] if 0 < edge <= crossing.upper else []
        below = []
        if crossing.looked_below is None:
            below = [LOOK_BELOW * crossing.upper]
            crossing.looked_below = len(self.steps)
        return below + (turns if len(self.steps) % 2 else turns[::-1])

    def walk_one(self) -> None:
        """One constraint: bracket the multiplier at which the oracle's gap crosses the limit."""
        free = [column for multipliers, column in self.known.asked if multipliers[0] == 0.0]
        gap = float((free[0] if free else self.call(np.zeros(1))).gaps[0])
        side = float(np.sign(gap)) or 1.0
        tried = {side * float(multipliers[0]): column for multipliers, column in self.known.asked}

        def near(multiplier: float) -> bool:
            return any(np.isclose(multiplier, other, rtol=NEAR) for other in tried)

        if abs(gap) <= self.limit:
            for multiplier in NEARBY:
                if self.may_call and not near(multiplier):
                    self.call(np.array([side * multiplier]))
            return
        crossing = _Crossing(side, self.limit)
        for multiplier, column in tried.items():
            if multiplier >= 0:
                crossing.take(multiplier, float(column.gaps[0]))
        while self.may_call and not self.stalled(crossing.looked_below):
            fresh = [multiplier for multiplier in self.candidates(crossing) if not near(multiplier)]
            if not fresh:
                break
            tried[fresh[0]] = self.call(np.array([side * fresh[0]]))
            crossing.take(fresh[0], float(tried[fresh[0]].gaps[0]))

    def walk_many(self) -> None:
        """The multipliers come from the program over the answers alone: a heuristic oracle is asked
        where *its* gaps cross the limits.
        """
        pool = self.known.pool
        previous = np.zeros(len(pool.columns[0].gaps))
        self.call(previous)
        while self.may_call:
            optimum = pool.solve(self.limit)
            target = previous if optimum is None else optimum.multipliers
            known = len(pool.columns)
            self.call(target)
            if len(pool.columns) == known and self.may_call:
                self.call(0.5 * (target + previous))
            previous = target


def walk_pool(price: Price, known: Answers, limit: float, max_calls: int) -> Walk:
    """A good mixture of at most 1 + K hypotheses with `max_calls` oracle calls; always inside the
    limit.
    """
    search = _Search(price, known, limit, max_calls)
    if len(known.pool.columns[0].gaps) == 1:
        search.walk_one()
        best = search.mixture or known.best(limit)
    else:
        search.walk_many()
        best = known.best(limit)
    return Walk(best.columns, best.weights, None, False, tuple(search.steps))
