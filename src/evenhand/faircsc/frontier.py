"""Figure 1 of the paper: the region of (gap, cost) that mixtures reach, and what a limit costs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

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
from evenhand.media import Told
from evenhand.result import (
    Amount,
    Cell,
    Column,
    Curves,
    Line,
    Point,
    Points,
    Result,
    Table,
    column,
    shown,
)
from evenhand.shares import require_limit
from evenhand.shown import Brief
from evenhand.words import CostSensitiveProblem, FloatArray, Group, LabelledSample

CHOSEN_ON_THEM = (
    "These figures are measured on the people that the mixtures were chosen on. They are not "
    "certified for the population: on new people the gap may be larger."
)
ALIKE = 1e-9
"""Costs that differ by this share of the largest one differ by rounding."""
ROWS = 40
"""So many limits are shown to people."""


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(Told, Brief):
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
    people : float
        How many people the costs are summed over.
    rate : str
        The name of the rate whose gap is limited.
    groups : tuple
        The two groups; a gap is the rate of the second minus the rate of the first.

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
    >>> traced.to_frame()[["limit", "cost", "price_of_fairness", "gap", "rules_mixed"]].round(4)
       limit    cost  price_of_fairness   gap  rules_mixed
    0   0.00  0.2500             0.1250  0.00            1
    1   0.25  0.1875             0.0625  0.25            2
    2   1.00  0.1250             0.0000  0.50            1
    """

    limits: FloatArray
    solutions: tuple[FairSolution, ...]
    region: FloatArray
    constants: FloatArray
    exact: bool
    people: float
    rate: str
    groups: tuple[Group, Group]

    ALSO: ClassVar = ("costs", "price_of_fairness")

    @property
    def costs(self) -> FloatArray:
        """The cost at each limit."""
        return np.array([solution.cost for solution in self.solutions])

    @property
    def price_of_fairness(self) -> FloatArray:
        """What each limit costs beyond the cheapest unconstrained mixture known."""
        return self.costs - min(float(self.costs.min()), float(self.region[:, 1].min()))

    def at(self, limit: float) -> int:
        """The place of the limit of the grid that is nearest to `limit`."""
        return int(np.argmin(np.abs(self.limits - limit)))

    def result(
        self,
        limit: float | None = None,
        names: Sequence[str] | None = None,
        free: float | None = None,
    ) -> Result:
        """What is said of the limits; costs are those per person.

        Parameters
        ----------
        limit : float, optional
            The limit whose mixture is given in words; one of the grid.
        names : sequence of str, optional
            The names of the columns.
        free : float, optional
            What a person costs without a limit, where that was found by another search. By default
            it is the least cost that is known here.

        Returns
        -------
        Result
            The tables "limits" and "mixtures".
        """
        costs = self.costs / self.people
        extra = self.price_of_fairness if free is None else self.costs - free * self.people
        return _told(self, limit, names, costs, np.maximum(extra, 0.0) / self.people)


def _told(
    record: Frontier,
    limit: float | None,
    names: Sequence[str] | None,
    costs: FloatArray,
    extra: FloatArray,
) -> Result:
    accept_all, reject_all = (float(cost) for cost in record.constants[:, 1] / record.people)
    facts: dict[str, Cell] = {
        "people": record.people,
        "cost, accepting all applicants": Amount(accept_all, "cost"),
        "cost, rejecting all applicants": Amount(reject_all, "cost"),
    }
    policy: tuple[str, ...] = ()
    if limit is not None:
        chosen = record.solutions[record.at(limit)]
        policy = (f"Within a limit of {limit:g}:", *chosen.policy.describe(names).splitlines())
    return Result(
        kind="frontier",
        title="What a limit costs",
        record=record,
        answer=_answer(record, limit, costs, extra),
        facts=facts,
        tables=(_limits(record, costs, extra), _mixtures(record, names)),
        figures=(_curve(record, extra), _region(record, limit, costs)),
        policy=policy,
        beware=(CHOSEN_ON_THEM,),
    )


def _answer(
    record: Frontier, limit: float | None, costs: FloatArray, extra: FloatArray
) -> tuple[str, ...]:
    told = []
    if limit is not None:
        price = shown(float(extra[record.at(limit)]), "cost")
        told.append(
            f"A limit of {limit:g} on the gap in {record.rate} costs {price} per person beyond "
            "having none."
        )
    changes = np.flatnonzero(np.abs(np.diff(costs)) > ALIKE * np.abs(costs).max())
    last = int(changes[-1]) + 1 if len(changes) else 0
    if last + 1 < len(costs):
        told.append(f"From a limit of {record.limits[last]:g} on the cost stays the same.")
    return (*told, _optimality(record))


def _optimality(record: Frontier) -> str:
    """How far from the best mixtures within the limits, in words."""
    found = [(one.cost, one.lower_bound) for one in record.solutions]
    if any(lower is None for _, lower in found):
        return "This class is searched by a heuristic: cheaper mixtures may exist."
    if all(
        lower is not None and cost - lower <= ALIKE * max(1.0, abs(cost)) for cost, lower in found
    ):
        return (
            "All are optimal: no mixture of this class within a limit costs less, as the lower "
            "bounds prove."
        )
    return "The lower bounds say how much less a mixture within a limit could cost at most."


def _limits(record: Frontier, costs: FloatArray, extra: FloatArray) -> Table:
    """A row for each limit."""
    first, second = record.groups

    def bound(place: int) -> float | None:
        lower = record.solutions[place].lower_bound
        return None if lower is None else lower / record.people

    return Table.of(
        "limits",
        "What a limit costs",
        range(len(record.limits)),
        column("limit", "limit", "share", lambda place: float(record.limits[place])),
        column("cost", "cost per person", "cost", lambda place: float(costs[place])),
        column(
            "price_of_fairness", "price of fairness", "extra", lambda place: float(extra[place])
        ),
        column("gap", "gap", "difference", lambda at: float(record.solutions[at].gaps[0])),
        column("lower_bound", "lower bound", "cost", bound),
        column("rules_mixed", "rules mixed", "count", lambda at: record.solutions[at].support_size),
        column(
            "oracle_calls", "oracle calls", "count", lambda at: record.solutions[at].oracle_calls
        ),
        note=f"Gap: {record.rate} of {second} minus that of {first}. Price of fairness: what a "
        "person costs beyond the cheapest rule without a limit.",
        most=ROWS,
    )


def _mixtures(record: Frontier, names: Sequence[str] | None) -> Table:
    """The rules of each limit with their weights, for programs."""
    rows: list[tuple[Cell, ...]] = [
        (float(limit), float(weight), rule.describe(names))
        for limit, solution in zip(record.limits, record.solutions, strict=True)
        for weight, rule in zip(solution.policy.weights, solution.policy.hypotheses, strict=True)
    ]
    columns = Column("limit", "limit", "share"), Column("weight", "weight", "weight")
    return Table(
        "mixtures",
        "The mixtures within each limit",
        (*columns, Column("rule", "rule")),
        tuple(rows),
        most=0,
    )


def _curve(record: Frontier, extra: FloatArray) -> Curves:
    return Curves(
        "What a limit costs",
        f"limit on the gap in {record.rate}",
        "cost per person beyond no limit",
        record.limits.tolist(),
        (Line("the cheapest mixture that was found within each limit", extra.tolist()),),
    )


def _region(record: Frontier, limit: float | None, costs: FloatArray) -> Points:
    """Figure 1 of the paper, with costs in place of accuracy."""
    region = record.region / (1.0, record.people)
    constants = record.constants / (1.0, record.people)
    known = [
        ("the cheapest, whatever its gap", *region[np.argmin(region[:, 1])]),
        ("accept all applicants", *constants[0]),
        ("reject all applicants", *constants[1]),
    ]
    if limit is not None:
        place = record.at(limit)
        name = f"the cheapest within {limit:g}"
        known.insert(1, (name, record.solutions[place].gaps[0], costs[place]))
    first, second = record.groups
    return Points(
        "What mixtures reach" if record.exact else "What mixtures reach, as far as found",
        f"gap in {record.rate}: {second} minus {first}",
        "cost per person",
        tuple(Point(name, float(gap), float(cost)) for name, gap, cost in known),
        note="Shaded: the gaps and costs of all mixtures.",
        reached=tuple((float(gap), float(cost)) for gap, cost in region),
    )


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
    first, second = fair.constraints.groups
    counted = len(sample) == len(problem.features)  # then the costs are those of its people
    return Frontier(
        grid,
        solutions,
        convex_hull(points),
        constants,
        rules.exact,
        float(sample.weight.sum() if counted else len(problem.features)),
        fair.constraints.rates[0].name,
        (first, second),
    )


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
    for found in _sweep(pricer, directions, tick):
        known.pool.add(found)
    for limit in np.quantile(grid, (0.0, 0.5, 1.0)):
        walk_pool(pricer, known, float(limit), HEURISTIC_CALLS)
        tick()
    free = known.best(np.inf)  # the region reaches down to the cheapest rule that was met
    walks = [known.best(require_limit(float(limit))) for limit in grid]
    for walk in (free, *walks):
        for found in walk.columns:
            known.pool.add(found)
    cheapest = unlimited(pricer, known, walks)
    units = (scale, problem.rejection_total)
    solutions = [fair.solution(walk, cheapest, units, pricer.calls) for walk in walks]
    constants = _place(pricer.permanent[:2], problem, scale)
    return tuple(solutions), _place(known.pool.columns, problem, scale), constants


def _place(columns: list[RuleColumn], problem: CostSensitiveProblem, scale: float) -> FloatArray:
    return np.array([[one.gaps[0], problem.rejection_total + scale * one.cost] for one in columns])


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
