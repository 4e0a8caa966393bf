"""Figure 1 of the paper: the region of (gap, cost) that mixtures reach, and what each limit costs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.contracts import GroupUse, HypothesisClass
from evenhand.errors import InvalidInput
from evenhand.faircsc.columns import Column, PointPricer, Price
from evenhand.faircsc.oracle import HEURISTIC_CALLS, FairCSC, bind_fair
from evenhand.faircsc.pooled import Answers, walk_pool
from evenhand.faircsc.solution import FairSolution
from evenhand.fairness.rates import Rate
from evenhand.words import CostSensitiveProblem, FloatArray, LabelledSample


@dataclass(frozen=True, eq=False)
class Frontier:
    """limits: the grid; solutions: the cheapest fair mixture at each; region: (vertices, 2) of
    (gap, cost), counter-clockwise; exact: whether the region is the whole one (an exact class) or
    what a heuristic oracle found of it."""

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


def frontier(
    problem: CostSensitiveProblem,
    hypotheses: HypothesisClass,
    rate: Rate,
    sample: LabelledSample,
    limits: Sequence[float],
    *,
    group_use: GroupUse = "certify_only",
    directions: int = 32,
    progress: Callable[[int], None] | None = None,
) -> Frontier:
    """Solve at every limit of a grid and trace the reachable region (one rate, two groups).

    The region's vertices are argmins of u gap + v cost over the class: `directions` of them for a
    class behind an oracle, all of them for an enumerable class.
    """
    grid = np.asarray(limits, dtype=np.float64)
    if grid.ndim != 1 or len(grid) == 0:
        raise InvalidInput(
            "limits is empty; give at least one limit.",
            hint="np.linspace(0, 0.2, 21) is a good grid.",
        )
    fair = bind_fair(
        hypotheses,
        problem.features,
        problem.group,
        rate,
        sample,
        float(grid.max()),
        group_use=group_use,
    )
    if len(fair.constraints.pairs) != 1:
        raise InvalidInput(
            f"the sample has {len(fair.constraints.groups)} groups; the picture of (gap, cost) needs one rate and two groups.",
            hint="merge groups, or call solve_fair for each limit.",
        )
    trace = _exact if hypotheses.exact else _pooled
    solutions, points, constants = trace(fair, problem, grid, directions, _Counter(progress))
    return Frontier(grid, solutions, convex_hull(points), constants, hypotheses.exact)


@dataclass(eq=False)
class _Counter:
    progress: Callable[[int], None] | None
    steps: int = 0

    def tick(self) -> None:
        self.steps += 1
        if self.progress is not None:
            self.progress(self.steps)


Traced = tuple[tuple[FairSolution, ...], FloatArray, FloatArray]
"""Solutions, (points, 2) of (gap, cost) whose hull is the region, and the same for the constants.
"""


def _exact(
    fair: FairCSC, problem: CostSensitiveProblem, grid: FloatArray, directions: int, done: _Counter
) -> Traced:
    """Every limit is solved to optimality by itself."""
    solutions = []
    for limit in grid:
        solutions.append(
            fair.at(float(limit)).solve(problem.acceptance_cost, problem.rejection_total)
        )
        done.tick()
    rows, scale = fair.priced_rows(problem.acceptance_cost)
    permanent = rows.permanent(fair.constraints.groups, True)
    pricer = fair.pricer(rows, permanent)
    fixed = _place(permanent, problem, scale)
    if isinstance(pricer, PointPricer):
        every = np.stack([pricer.gaps[0], problem.rejection_total + scale * pricer.costs], axis=1)
        return tuple(solutions), np.concatenate([every, fixed]), fixed[:2]
    return (
        tuple(solutions),
        np.concatenate([_place(_sweep(pricer, directions, done), problem, scale), fixed]),
        fixed[:2],
    )


def _pooled(
    fair: FairCSC, problem: CostSensitiveProblem, grid: FloatArray, directions: int, done: _Counter
) -> Traced:
    """A heuristic oracle: everything it ever answered serves all limits, so that a looser limit
    never costs more.
    """
    rows, scale = fair.priced_rows(problem.acceptance_cost)
    permanent = rows.permanent(fair.constraints.groups, True)
    pricer = fair.pricer(rows, permanent)
    known = Answers.of(pricer, permanent)
    for column in _sweep(pricer, directions, done):
        known.pool.add(column)
    for limit in np.quantile(grid, (0.0, 0.5, 1.0)):
        walk_pool(pricer, known, float(limit), HEURISTIC_CALLS)
        done.tick()
    solutions = []
    for limit in grid:
        walk = known.best(float(limit))
        at = fair.at(float(limit))
        solutions.append(
            at.solution(
                walk, walk.columns, walk.weights, scale, problem.rejection_total, pricer.calls
            )
        )
        for column in walk.columns:
            known.pool.add(column)
    return (
        tuple(solutions),
        _place(known.pool.columns, problem, scale),
        _place(permanent[:2], problem, scale),
    )


def _place(columns: list[Column], problem: CostSensitiveProblem, scale: float) -> FloatArray:
    return np.array(
        [[column.gaps[0], problem.rejection_total + scale * column.cost] for column in columns]
    )


def _sweep(price: Price, directions: int, done: _Counter) -> list[Column]:
    """The class's extreme points in `directions` directions of (gap, cost)."""
    found = []
    for angle in np.linspace(0, 2 * np.pi, directions, endpoint=False):
        found.append(price(np.array([np.sin(angle)]), float(np.cos(angle))))
        done.tick()
    return found


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
        return (
            ordered[[int(np.argmin(along)), int(np.argmax(along))]] if len(ordered) > 1 else ordered
        )
