"""Figure 1 of the paper: the region of (gap, cost) that mixtures reach, and what a limit costs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from evenhand.contracts import GroupUse
from evenhand.errors import InvalidInput
from evenhand.faircsc.columns import PointPricer, Price, RuleColumn
from evenhand.faircsc.oracle import (
    HEURISTIC_CALLS,
    FairCSC,
    FairSolution,
    bind_fair,
    unlimited,
)
from evenhand.faircsc.pooled import Answers, walk_pool
from evenhand.fairness.rates import Rate
from evenhand.hypotheses.named import ClassLike, as_class
from evenhand.shares import require_limit
from evenhand.shown import BAND, INK, MUTED_INK, Brief, Cell, Shown
from evenhand.words import CostSensitiveProblem, FloatArray, LabelledSample

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(Shown, Brief):
    """What each limit costs, and the region of (gap, cost) that mixtures reach.

    Parameters
    ----------
    limits : array of shape (limits,)
        The grid of limits.
    solutions : tuple of FairSolution
        The cheapest fair mixture at each limit.
    region : array of shape (vertices, 2)
        The vertices (gap, cost) of the region, counter-clockwise.
    constants : array of shape (2, 2)
        The points (gap, cost) of accepting all applicants and of rejecting all applicants.
    exact : bool
        Whether the region is the whole one (an exact class) or what a heuristic oracle found of it.

    See Also
    --------
    frontier : Makes it.

    Examples
    --------
    >>> import numpy as np
    >>> import evenhand as eh
    >>> score, group = np.arange(8.0)[:, None], np.array(list("abaabaab"))
    >>> sample = eh.LabelledSample(score, group, [-1, -1, 1, 1, -1, 1, 1, 1])
    >>> problem = eh.Prices().problem(score, group, sample.label)
    >>> rate = eh.FalsePositiveRate()
    >>> traced = frontier(problem, eh.Stumps(), rate, sample, [0.0, 0.25, 1.0])
    >>> traced.costs.tolist(), traced.price_of_fairness.tolist()
    ([2.0, 1.5, 1.0], [1.0, 0.5, 0.0])
    >>> traced.to_frame().round(2)
       limit  cost  price_of_fairness   gap  rules_mixed
    0   0.00   2.0                1.0  0.00            1
    1   0.25   1.5                0.5  0.25            2
    2   1.00   1.0                0.0  0.50            1
    """

    limits: FloatArray
    solutions: tuple[FairSolution, ...]
    region: FloatArray
    constants: FloatArray
    exact: bool

    @property
    def costs(self) -> FloatArray:
        """The cost at each limit."""
        return np.array([solution.cost for solution in self.solutions])

    @property
    def price_of_fairness(self) -> FloatArray:
        """What each limit costs beyond the cheapest unconstrained mixture known."""
        return self.costs - min(float(self.costs.min()), float(self.region[:, 1].min()))

    def _headline(self) -> str:
        kind = "exact" if self.exact else "as far as the oracle found it"
        return f"What a limit costs: {len(self.limits)} limits ({kind})"

    def _columns(self) -> dict[str, Sequence[Cell]]:
        return {
            "limit": self.limits.tolist(),
            "cost": self.costs.tolist(),
            "price_of_fairness": self.price_of_fairness.tolist(),
            "gap": [float(np.abs(solution.gaps).max()) for solution in self.solutions],
            "rules_mixed": [solution.support_size for solution in self.solutions],
        }

    def _draw(self, axes: "Axes") -> None:
        hull = np.concatenate([self.region, self.region[:1]])
        axes.fill(hull[:, 0], hull[:, 1], color=BAND, label="what mixtures reach")
        axes.plot(*self.constants.T, "o", color=MUTED_INK, label="accept all, reject all")
        cheapest = [solution.gaps[0] for solution in self.solutions]  # signed, as the region is
        axes.plot(cheapest, self.costs, color=INK, linewidth=2, label="cheapest at each limit")
        axes.set_xlabel("gap (rate of the second group minus rate of the first)")
        axes.set_ylabel("cost")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize="small")


def frontier(
    problem: CostSensitiveProblem,
    hypotheses: ClassLike,
    rate: str | Rate,
    sample: LabelledSample,
    limits: Sequence[float],
    *,
    group_use: GroupUse = "certify_only",
    directions: int = 32,
    progress: Callable[[int], None] | None = None,
) -> Frontier:
    """Solve at every limit of a grid and trace the reachable region (one rate, two groups).

    Parameters
    ----------
    problem : CostSensitiveProblem
        The people, with the costs of accepting and rejecting each of them.
    hypotheses : HypothesisClass, str or classifier
        The rules to mix.
    rate : Rate or str
        The rate whose gap is limited.
    sample : LabelledSample
        The people on whom the gap is measured; they belong to two groups.
    limits : sequence of float
        The grid of limits.
    group_use : {"certify_only", "decide"}
        Whether the group may influence decisions.
    directions : int
        In how many directions of (gap, cost) a class behind an oracle is searched for vertices of
        the region. An enumerable class yields all of them.
    progress : callable, optional
        Called with the number of steps done; there are about len(limits) + directions.

    Returns
    -------
    Frontier
        The solutions and the region.

    Raises
    ------
    InvalidInput
        If there is no limit, or if there are several rates or more than two groups.

    Notes
    -----
    The region's vertices are argmins of u gap + v cost over the class (Figure 1 of the paper).

    Examples
    --------
    >>> import numpy as np
    >>> import evenhand as eh
    >>> score, group = np.arange(8.0)[:, None], np.array(list("abaabaab"))
    >>> sample = eh.LabelledSample(score, group, [-1, -1, 1, 1, -1, 1, 1, 1])
    >>> problem = eh.Prices().problem(score, group, sample.label)
    >>> rate = eh.FalsePositiveRate()
    >>> traced = frontier(problem, eh.Stumps(), rate, sample, [0.0, 0.25])
    >>> [solution.support_size for solution in traced.solutions]
    [1, 2]
    """
    if np.ndim(limits) != 1 or len(limits) == 0:
        raise InvalidInput(
            "limits is empty; give at least one limit.",
            hint="np.linspace(0, 0.2, 21) is a good grid.",
        )
    grid = np.array([require_limit(limit) for limit in limits])
    rules = as_class(hypotheses)
    fair = bind_fair(
        rules,
        problem.features,
        problem.group,
        rate,
        sample,
        float(grid.max()),
        group_use=group_use,
    )
    if len(fair.constraints.pairs) != 1:
        raise InvalidInput(
            f"there are {len(fair.constraints.rates)} rates and {len(fair.constraints.groups)} "
            "groups; the picture of (gap, cost) needs one rate and two groups.",
            hint="name one rate, merge groups, or call solve_fair for each limit.",
        )
    steps = count(1)
    tick = (lambda: None) if progress is None else lambda: progress(next(steps))
    trace = _exact if rules.exact else _pooled
    solutions, points, constants = trace(fair, problem, grid, directions, tick)
    return Frontier(grid, solutions, convex_hull(points), constants, rules.exact)


Tick = Callable[[], None]
Traced = tuple[tuple[FairSolution, ...], FloatArray, FloatArray]
"""Solutions, (points, 2) of (gap, cost) whose hull is the region, and the same for the constants.
"""


def _exact(
    fair: FairCSC, problem: CostSensitiveProblem, grid: FloatArray, directions: int, tick: Tick
) -> Traced:
    """Every limit is solved to optimality by itself."""
    solutions = []
    for limit in grid:
        at = fair.at(float(limit))
        solutions.append(at.solve(problem.acceptance_cost, problem.rejection_total))
        tick()
    pricer, scale = fair.pricer(problem.acceptance_cost)
    fixed = _place(pricer.permanent, problem, scale)
    if isinstance(pricer, PointPricer):
        every = np.stack([pricer.gaps[0], problem.rejection_total + scale * pricer.costs], axis=1)
    else:
        every = _place(_sweep(pricer, directions, tick), problem, scale)
    return tuple(solutions), np.concatenate([every, fixed]), fixed[:2]


def _pooled(
    fair: FairCSC, problem: CostSensitiveProblem, grid: FloatArray, directions: int, tick: Tick
) -> Traced:
    """A heuristic oracle: everything it ever answered serves all limits, so that a looser limit
    never costs more.
    """
    pricer, scale = fair.pricer(problem.acceptance_cost)
    known = Answers.of(pricer)
    for column in _sweep(pricer, directions, tick):
        known.pool.add(column)
    for limit in np.quantile(grid, (0.0, 0.5, 1.0)):
        walk_pool(pricer, known, float(limit), HEURISTIC_CALLS)
        tick()
    free = known.best(np.inf)  # the region reaches down to the cheapest rule that was met
    walks = [known.best(require_limit(float(limit))) for limit in grid]
    for walk in (free, *walks):
        for column in walk.columns:
            known.pool.add(column)
    cheapest = unlimited(pricer, known, walks)
    units = (scale, problem.rejection_total)
    solutions = [fair.solution(walk, cheapest, units, pricer.calls) for walk in walks]
    constants = _place(pricer.permanent[:2], problem, scale)
    return tuple(solutions), _place(known.pool.columns, problem, scale), constants


def _place(columns: list[RuleColumn], problem: CostSensitiveProblem, scale: float) -> FloatArray:
    return np.array(
        [[column.gaps[0], problem.rejection_total + scale * column.cost] for column in columns]
    )


def _sweep(price: Price, directions: int, tick: Tick) -> list[RuleColumn]:
    """The class's extreme points in `directions` directions of (gap, cost)."""
    extremes = []
    for angle in np.linspace(0, 2 * np.pi, directions, endpoint=False):
        extremes.append(price(np.array([np.sin(angle)]), float(np.cos(angle))))
        tick()
    return extremes


def convex_hull(points: FloatArray) -> FloatArray:
    """The vertices of the convex hull of (n, 2) points, counter-clockwise; its two ends where all
    lie on one line.
    """
    from scipy.spatial import ConvexHull, QhullError

    ordered = np.unique(points, axis=0)
    try:
        return np.asarray(ordered[ConvexHull(ordered).vertices])
    except (QhullError, ValueError):
        span = ordered - ordered.mean(axis=0)
        along = span @ span[int(np.argmax((span**2).sum(axis=1)))]
        both = [int(np.argmin(along)), int(np.argmax(along))]
        return ordered[both] if len(ordered) > 1 else ordered
