"""Figure 1 of the paper: the region of (gap, cost) that mixtures reach, and what each limit costs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.contracts import GroupUse, HypothesisClass
from evenhand.errors import InvalidInput
from evenhand.faircsc.columns import ClassPricer, Column, PointPricer
from evenhand.faircsc.oracle import FairCSC, bind_fair
from evenhand.faircsc.solution import FairSolution
from evenhand.fairness.rates import Rate
from evenhand.words import CostSensitiveProblem, FloatArray, LabelledSample


@dataclass(frozen=True, eq=False)
class Frontier:
    """limits: the grid; solutions: the cheapest fair mixture at each; region: (vertices, 2) of (gap, cost), counter-clockwise;
    exact: whether the region is the whole one (an exact class) or what a heuristic oracle found of it."""

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

    The region's vertices are argmins of u gap + v cost over the class: `directions` of them for a class behind an oracle, all of them
    for an enumerable class.
    """
    grid = np.asarray(limits, dtype=np.float64)
    if grid.ndim != 1 or len(grid) == 0:
        raise InvalidInput("limits is empty; give at least one limit.", hint="np.linspace(0, 0.2, 21) is a good grid.")
    fair = bind_fair(hypotheses, problem.features, problem.group, rate, sample, float(grid.max()), group_use=group_use)
    if len(fair.constraints.pairs) != 1:
        raise InvalidInput(
            f"the sample has {len(fair.constraints.groups)} groups; the picture of (gap, cost) needs one rate and two groups.",
            hint="merge groups, or call solve_fair for each limit.",
        )
    done = _Counter(progress)
    solutions = []
    for limit in grid:
        solutions.append(fair.at(float(limit)).solve(problem.acceptance_cost, problem.rejection_total))
        done.tick()
    points, constants = _extreme_points(fair, problem, directions, done)
    return Frontier(grid, tuple(solutions), convex_hull(points), constants, hypotheses.exact)


@dataclass(eq=False)
class _Counter:
    progress: Callable[[int], None] | None
    steps: int = 0

    def tick(self) -> None:
        self.steps += 1
        if self.progress is not None:
            self.progress(self.steps)


def _extreme_points(
    fair: FairCSC, problem: CostSensitiveProblem, directions: int, done: _Counter
) -> tuple[FloatArray, FloatArray]:
    """(points, 2) of (gap, cost) whose hull is the region, and the same for the constants."""
    rows, scale = fair.priced_rows(problem.acceptance_cost)
    permanent = rows.permanent(fair.constraints.groups, True)
    pricer = fair.pricer(rows, permanent)

    def place(columns: list[Column]) -> FloatArray:
        return np.array([[column.gaps[0], problem.rejection_total + scale * column.cost] for column in columns])

    if isinstance(pricer, PointPricer):
        every = np.stack([pricer.gaps[0], problem.rejection_total + scale * pricer.costs], axis=1)
        return np.concatenate([every, place(permanent)]), place(permanent[:2])
    return np.concatenate([_sweep(pricer, directions, place, done), place(permanent)]), place(permanent[:2])


def _sweep(
    pricer: ClassPricer, directions: int, place: Callable[[list[Column]], FloatArray], done: _Counter
) -> FloatArray:
    found = []
    for angle in np.linspace(0, 2 * np.pi, directions, endpoint=False):
        found.append(pricer(np.array([np.sin(angle)]), float(np.cos(angle))))
        done.tick()
    return place(found)


def convex_hull(points: FloatArray) -> FloatArray:
    """The vertices of the convex hull of (n, 2) points, counter-clockwise; its two ends where all lie on one line."""
    from scipy.spatial import ConvexHull, QhullError

    ordered = np.unique(points, axis=0)
    try:
        return np.asarray(ordered[ConvexHull(ordered).vertices])
    except (QhullError, ValueError):
        return ordered[[0, -1]] if len(ordered) > 1 else ordered
