"""FairCSC with one constraint: walk the lower hull of (gap, cost) to the edge that crosses the
limit.

    minimise cost(pi) subject to |gap(pi)| <= gamma

Each hypothesis is a point (gap, cost); mixtures reach their convex hull, and the optimum is where
the lower hull meets the strip
|gap| <= gamma: one vertex inside it, or the edge between a vertex inside and one outside. With the cheapest vertex *outside*
(say gap > gamma), the chord from a point inside to a point outside has slope -lambda; one oracle
call with multiplier lambda finds the hull's farthest vertex below the chord, which replaces one of
its ends. The new triangle between chord and tangents has at most a quarter of the old one's area;
still, a long run of short edges may need many calls, so every second call after the first few
bisects the multiplier between those at which the two ends were found. Each call also proves the
lower bound min_h cost(h) + lambda gap(h) - lambda gamma.
"""

from dataclasses import dataclass, field

import numpy as np

from evenhand.faircsc.columns import Column, Price
from evenhand.faircsc.solution import Iteration

SECANT_CALLS = 8
"""Calls before bisection joins in; real hulls are done by then."""


@dataclass(frozen=True, eq=False)
class Walk:
    """Where a walk ended: columns with their weights, its bounds, and its iterations."""

    columns: tuple[Column, ...]
    weights: tuple[float, ...]
    lower_bound: float | None
    converged: bool
    iterations: tuple[Iteration, ...]


@dataclass(eq=False)
class _Bracket:
    """The two ends of the chord, in coordinates where the violated side is gap > limit."""

    inside: Column
    outside: Column
    side: float
    limit: float
    inside_multiplier: float
    outside_multiplier: float
    lower_bound: float
    iterations: list[Iteration] = field(default_factory=list)

    inside_gap: float = field(init=False)
    outside_gap: float = field(init=False)
    upper_bound: float = field(init=False)

    def __post_init__(self) -> None:
        self.inside_gap, self.outside_gap = self.gap(self.inside), self.gap(self.outside)
        self.upper_bound = self.mixture_cost

    def gap(self, column: Column) -> float:
        return self.side * float(column.gaps[0])

    @property
    def slope(self) -> float:
        """The multiplier at which both ends have the same value."""
        return (self.inside.cost - self.outside.cost) / (self.outside_gap - self.inside_gap)

    @property
    def outside_weight(self) -> float:
        """The weight of the outer end in the mixture whose gap is the limit."""
        return (self.limit - self.inside_gap) / (self.outside_gap - self.inside_gap)

    @property
    def mixture_cost(self) -> float:
        """The cost of that mixture: `upper_bound` is its least value so far."""
        return self.inside.cost + self.outside_weight * (self.outside.cost - self.inside.cost)

    def next_multiplier(self) -> float:
        """The chord's slope, or the middle of the bracket in every second call once the walk is
        long.
        """
        late = len(self.iterations) >= SECANT_CALLS and len(self.iterations) % 2 == 1
        if late and np.isfinite(self.inside_multiplier):
            return 0.5 * (self.inside_multiplier + self.outside_multiplier)
        return self.slope

    def take(self, column: Column, multiplier: float) -> None:
        """Tighten the bounds with a new vertex; it becomes an end of the chord where that lowers
        the mixture's cost.
        """
        gap = self.gap(column)
        self.lower_bound = max(
            self.lower_bound, column.cost + multiplier * gap - multiplier * self.limit
        )
        ends = (self.inside, self.outside, self.inside_gap, self.outside_gap)
        if gap > self.limit:
            self.outside, self.outside_gap, self.outside_multiplier = column, gap, multiplier
        else:
            self.inside, self.inside_gap, self.inside_multiplier = column, gap, multiplier
        reached = self.mixture_cost
        if reached > self.upper_bound:
            self.inside, self.outside, self.inside_gap, self.outside_gap = ends
        else:
            self.upper_bound = reached
        self.record(column, multiplier)

    def record(self, column: Column, multiplier: float) -> None:
        signed = (self.side * multiplier,)
        self.iterations.append(
            Iteration(
                signed, column.cost, tuple(column.gaps.tolist()), self.upper_bound, self.lower_bound
            )
        )


def walk_hull(
    price: Price, start: list[Column], limit: float, tolerance: float, max_calls: int
) -> Walk:
    """The optimum over the hull that `price` describes, exact to `tolerance` in normalised cost.

    `start` holds at least one column inside the strip (the constants). For an exact oracle.
    """
    free = price(np.zeros(1), 1.0)
    cheapest = min(
        [column for column in start if abs(column.gaps[0]) <= limit], key=lambda column: column.cost
    )
    if abs(free.gaps[0]) <= limit:
        best = min((free, cheapest), key=lambda column: column.cost)
        iteration = Iteration((0.0,), free.cost, tuple(free.gaps.tolist()), best.cost, best.cost)
        return Walk((best,), (1.0,), best.cost, True, (iteration,))
    highest = (cheapest.cost - free.cost) / limit if limit > 0 else np.inf
    bracket = _Bracket(cheapest, free, float(np.sign(free.gaps[0])), limit, highest, 0.0, free.cost)
    bracket.record(free, 0.0)
    while (
        bracket.upper_bound - bracket.lower_bound > tolerance
        and len(bracket.iterations) < max_calls
    ):
        multiplier = bracket.next_multiplier()
        bracket.take(price(np.array([bracket.side * multiplier]), 1.0), multiplier)
    converged = bracket.upper_bound - bracket.lower_bound <= max(tolerance, 1e-12)
    weight = bracket.outside_weight
    columns = (bracket.inside, bracket.outside) if weight > 0 else (bracket.inside,)
    weights = (1.0 - weight, weight) if weight > 0 else (1.0,)
    return Walk(
        columns,
        weights,
        min(bracket.lower_bound, bracket.upper_bound),
        converged,
        tuple(bracket.iterations),
    )
