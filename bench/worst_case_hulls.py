"""How many oracle calls does the walk need at the worst? Hulls on which every one of a million
points is a vertex.

The lower hull runs from a constant at (gap 0, cost 0) down to the cheapest point at gap 1. Costs
fall in `gap` and are convex.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenhand.faircsc.columns import RuleColumn, Walk, walk_hull
from evenhand.hypotheses.constants import REJECT_ALL
from evenhand.words import FloatArray

LIMITS = (1e-4, 1e-3, 0.01, 0.05, 0.2)


@dataclass(frozen=True, eq=False)
class Hull:
    """Vertices with ascending gaps; the first is the constant."""

    name: str
    gaps: FloatArray
    costs: FloatArray

    def optimum(self, limit: float) -> float:
        """By brute force: the cost at `limit` on the edge between its two neighbours."""
        return float(np.interp(limit, self.gaps, self.costs))

    def walk(self, limit: float, max_calls: int) -> Walk:
        """The package's walk with an exact oracle that only answers argmin cost + lambda gap."""
        values = np.empty_like(self.costs)

        def price(multipliers: FloatArray, cost_weight: float) -> RuleColumn:
            np.multiply(self.gaps, multipliers[0], out=values)
            np.add(values, cost_weight * self.costs, out=values)
            at = int(values.argmin())
            return RuleColumn.of(REJECT_ALL, float(self.costs[at]), self.gaps[at : at + 1].copy())

        constant = RuleColumn.of(REJECT_ALL, float(self.costs[0]), np.zeros(1))
        return walk_hull(price, [constant], limit, 1e-13, max_calls)


def _even(points: int) -> FloatArray:
    return np.linspace(0.0, 1.0, points)


def _geometric(points: int) -> FloatArray:
    """0, then gaps from 1e-9 to 1 with one ratio."""
    return np.concatenate([[0.0], np.geomspace(1e-9, 1.0, points - 1)])


_SHAPES: dict[str, tuple[Callable[[int], FloatArray], Callable[[FloatArray], FloatArray]]] = {
    "parabola": (_even, lambda g: g * g - 2 * g),
    "quarter circle": (_even, lambda g: -np.sqrt(1 - (1 - g) ** 2)),
    "exponential, 10": (_even, lambda g: np.expm1(-10 * g)),
    "exponential, 1000": (_even, lambda g: np.expm1(-1000 * g)),
    "square root": (_geometric, lambda g: -np.sqrt(g)),
    "logarithm": (_geometric, lambda g: -np.log1p(1e6 * g) / np.log1p(1e6)),
    "tenth root": (_geometric, lambda g: -(g**0.1)),
    "nearly flat": (_even, lambda g: -g + 1e-3 * g * g),
    "twentieth power": (_even, lambda g: (1 - g) ** 20 - 1),
}


def hulls(points: int) -> list[Hull]:
    """One hull per shape."""
    return [
        Hull(name, gaps, shape(gaps))
        for name, (grid, shape) in _SHAPES.items()
        for gaps in [grid(points)]
    ]
