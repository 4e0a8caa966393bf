"""FairCSC (section 3.1): the cheapest mixture whose group rates differ by at most a limit, with
costs and rates from different data.

    minimise over mixtures pi   sum_j c_j^{pi(x_j)}   subject to   |gap_k(pi)| <= limit for every rate and pair of groups k

`bind_fair` does once what depends on the rows alone; `FairCSC.solve` answers one cost vector;
`solve_fair` does both.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evenhand.contracts import Enumeration, GroupUse, HypothesisClass, RowOracle
from evenhand.errors import InvalidInput
from evenhand.faircsc.column_generation import Pool, feasible_start, generate_columns
from evenhand.faircsc.columns import ClassPricer, Column, PointPricer, Price, Rows
from evenhand.faircsc.pooled import Answers, walk_pool
from evenhand.faircsc.saddle_point import saddle_point
from evenhand.faircsc.secant import Walk, walk_hull
from evenhand.faircsc.solution import FairSolution, Iteration, SolveReport
from evenhand.fairness.rates import GapConstraints, Rate
from evenhand.policies import Mixture
from evenhand.words import CostSensitiveProblem, FloatArray, GroupArray, LabelledSample

Method = Literal["column-generation", "saddle-point"]

EXACT_CALLS = 40
"""Hard cap of the walk for exact oracles with one constraint."""
MANY_CALLS = 400
"""Cap of column generation with several constraints."""
HEURISTIC_CALLS = 12
"""Budget of the pooled walk with one constraint (20 with several)."""
SADDLE_CALLS = 100_000
SADDLE_BUDGET = 2.0
TIE = 1e-13
"""Normalised costs closer than this are equal: a single hypothesis is then preferred to a mixture.
"""


@dataclass(frozen=True, eq=False)
class FairCSC:
    """A fair oracle bound to objective rows and a sample.

    `objective` maps bound rows to objective rows.
    """

    oracle: RowOracle
    exact: bool
    rows: Rows
    objective: int
    constraints: GapConstraints
    limit: float
    group_use: GroupUse
    with_constants: bool = True
    method: Method = "column-generation"
    tolerance: float | None = None
    max_calls: int | None = None

    def at(self, limit: float) -> "FairCSC":
        """The same oracle with another limit."""
        return replace(self, limit=require_limit(limit))

    def cheapest(self, acceptance_cost: FloatArray) -> FairSolution:
        """The cheapest fair mixture for acceptance costs c^{+1} - c^{-1} on the objective rows."""
        return self.solve(acceptance_cost, 0.0)

    def solve(
        self,
        acceptance_cost: FloatArray,
        rejection_total: float,
        progress: Callable[[int], None] | None = None,
    ) -> FairSolution:
        """The cheapest fair mixture; its cost includes `rejection_total`, the cost of rejecting
        everybody.
        """
        return self.solve_at((self.limit,), acceptance_cost, rejection_total, progress)[0]

    def solve_at(
        self,
        limits: Sequence[float],
        acceptance_cost: FloatArray,
        rejection_total: float = 0.0,
        progress: Callable[[int], None] | None = None,
    ) -> list[FairSolution]:
        """The same at several limits; what a heuristic oracle answered on the way to one of them
        serves the next ones.
        """
        rows, scale = self.priced_rows(acceptance_cost)
        permanent = rows.permanent(self.constraints.groups, self.with_constants)
        pricer = self.pricer(rows, permanent)
        price = pricer if progress is None else _Reporting(pricer, progress)
        known, found = Answers.of(pricer, permanent), []
        for limit in limits:
            fair = self.at(limit)
            before = (
                pricer.calls if isinstance(pricer, ClassPricer) else 0
            )  # one pass counts as one call
            walk = fair._walk(price, permanent, known)
            columns, weights = prefer_single(walk, pricer, limit)
            calls = len(walk.iterations) if self.method == "saddle-point" else pricer.calls - before
            found.append(fair.solution(walk, columns, weights, scale, rejection_total, calls))
        return found

    def pricer(self, rows: Rows, permanent: list[Column]) -> ClassPricer | PointPricer:
        """The one pass for enumerable classes, the oracle for others; a heuristic's answer is kept
        even where a constant is cheaper.
        """
        if self.exact and isinstance(self.oracle, Enumeration):
            return PointPricer.one_pass(self.oracle, rows, permanent)
        return ClassPricer(self.oracle, rows, permanent if self.exact else [])

    def priced_rows(self, acceptance_cost: FloatArray) -> tuple[Rows, float]:
        """The rows with normalised costs, and the scale that was divided out."""
        scale = float(np.abs(acceptance_cost).sum()) or 1.0
        cost = np.zeros(len(self.rows.features))
        cost[: self.objective] = acceptance_cost / scale
        return replace(self.rows, cost=cost), scale

    def _walk(self, price: Price, start: list[Column], known: Answers) -> Walk:
        one = len(self.rows.pairs) == 1
        if not any(np.abs(column.gaps).max() <= self.limit for column in start):
            start = start + feasible_start(price, len(self.rows.pairs), self.limit, MANY_CALLS)
            known = replace(known, pool=Pool.of(known.pool.columns + start))
        if self.method == "saddle-point":
            return saddle_point(
                price,
                start,
                self.limit,
                self._nu,
                SADDLE_BUDGET,
                self.rows.group is not None,
                self.max_calls or SADDLE_CALLS,
            )
        if not self.exact:
            return walk_pool(
                price, known, self.limit, self.max_calls or (HEURISTIC_CALLS if one else 20)
            )
        inside = any(abs(column.gaps[0]) <= self.limit for column in start)
        if one and inside:
            return walk_hull(
                price, start, self.limit, self.tolerance or 1e-13, self.max_calls or EXACT_CALLS
            )
        return generate_columns(
            price, start, self.limit, self.tolerance or 1e-10, self.max_calls or MANY_CALLS
        )

    @property
    def _nu(self) -> float:
        return self.tolerance if self.tolerance is not None else min(0.01, self.limit / 4)

    def solution(
        self,
        walk: Walk,
        columns: tuple[Column, ...],
        weights: tuple[float, ...],
        scale: float,
        rejection_total: float,
        calls: int,
    ) -> FairSolution:
        """The mixture of `columns` in the units of the problem."""
        policy = Mixture(tuple(column.hypothesis for column in columns), weights, self.group_use)
        gaps = np.sum([w * column.gaps for w, column in zip(weights, columns, strict=True)], axis=0)
        cost = float(sum(w * column.cost for w, column in zip(weights, columns, strict=True)))
        group = None if self.rows.group is None else self.rows.group[: self.objective]
        lower = (
            None
            if walk.lower_bound is None or not self.exact
            else rejection_total + scale * min(walk.lower_bound, cost)
        )
        report = SolveReport(
            self.method, walk.converged, scale, self.constraints.names, walk.iterations
        )
        return FairSolution(
            policy=policy,
            cost=rejection_total + scale * cost,
            gaps=gaps,
            lower_bound=lower,
            oracle_calls=calls,
            report=report,
            evaluate=lambda: policy.acceptance_of_checked(
                self.rows.features[: self.objective], group
            ),
        )


@dataclass(eq=False)
class _Reporting:
    """A pricer that tells how many calls it has answered."""

    pricer: Callable[[FloatArray, float], Column]
    progress: Callable[[int], None]
    calls: int = 0

    def __call__(self, multipliers: FloatArray, cost_weight: float = 1.0) -> Column:
        self.calls += 1
        self.progress(self.calls)
        return self.pricer(multipliers, cost_weight)


def prefer_single(
    walk: Walk, pricer: ClassPricer | PointPricer, limit: float
) -> tuple[tuple[Column, ...], tuple[float, ...]]:
    """Ties are broken by cost, then one feasible hypothesis before a mixture, then |gap|: no
    needless randomisation.
    """
    cost = float(sum(w * c.cost for w, c in zip(walk.weights, walk.columns, strict=True)))
    known = [column for column in walk.columns if column.cost <= cost + TIE] + pricer.singles(
        cost + TIE
    )
    candidates = [column for column in known if np.abs(column.gaps).max() <= limit]
    if not candidates:
        return walk.columns, walk.weights
    return (min(candidates, key=lambda column: float(np.abs(column.gaps).max())),), (1.0,)


def require_limit(limit: float) -> float:
    """A limit is a finite number of at least 0."""
    if not np.isfinite(limit) or limit < 0:
        raise InvalidInput(
            f"allowed_gap is {limit}; the largest allowed difference of rates is a number of at least 0.",
            hint="0.05 allows five percentage points; 0 asks for exact equality; 1 switches the constraint off.",
        )
    return float(limit)


def bind_fair(
    hypotheses: HypothesisClass,
    features: FloatArray,
    group: GroupArray | None,
    rates: Rate | Sequence[Rate],
    sample: LabelledSample,
    allowed_gap: float,
    *,
    method: Method = "column-generation",
    group_use: GroupUse = "certify_only",
    tolerance: float | None = None,
    max_calls: int | None = None,
    with_constants: bool = True,
) -> FairCSC:
    """Bind a class to objective rows and a labelled sample; the answer solves many cost vectors."""
    limit = require_limit(allowed_gap)
    _require_use(hypotheses, group, group_use)
    _require_columns(features, sample)
    constraints = GapConstraints.on(rates, sample)
    rows = _merge(
        features, group if group_use == "decide" else None, sample, constraints, group_use
    )
    return FairCSC(
        oracle=hypotheses.bind(rows.features, rows.group),
        exact=hypotheses.exact,
        rows=rows,
        objective=len(features),
        constraints=constraints,
        limit=limit,
        group_use=group_use,
        with_constants=with_constants,
        method=method,
        tolerance=tolerance,
        max_calls=max_calls,
    )


def _require_use(
    hypotheses: HypothesisClass, group: GroupArray | None, group_use: GroupUse
) -> None:
    if group_use not in ("certify_only", "decide"):
        raise InvalidInput(f'group_use is {group_use!r}; it is "certify_only" or "decide".')
    if group_use == "certify_only" and hypotheses.uses_group:
        raise InvalidInput(
            f'{type(hypotheses).__name__} looks at the group, but group_use is "certify_only".',
            hint='choose group_use="decide" if the group may influence decisions, or a class that does not look at it.',
        )
    if group_use == "decide" and group is None:
        raise InvalidInput(
            'group_use is "decide" but the problem has no group.',
            hint="pass the group of each row.",
        )


def _require_columns(features: FloatArray, sample: LabelledSample) -> None:
    if features.shape[1] != sample.features.shape[1]:
        raise InvalidInput(
            f"the problem has {features.shape[1]} feature columns and the sample {sample.features.shape[1]}; both must describe "
            "people alike."
        )


def _merge(
    features: FloatArray,
    group: GroupArray | None,
    sample: LabelledSample,
    constraints: GapConstraints,
    group_use: GroupUse,
) -> Rows:
    """Objective rows first, then the sample rows that carry weight; the same people are listed
    once.
    """
    zero = np.zeros(len(features))
    same = features is sample.features or (
        features.shape == sample.features.shape and np.array_equal(features, sample.features)
    )
    if same and (group is None or np.array_equal(group, sample.group)):
        return Rows(features, group, zero, constraints.channels, constraints.pairs)
    used = np.flatnonzero(constraints.channels.any(axis=0))
    channels = np.concatenate(
        [np.zeros((len(constraints.channels), len(features))), constraints.channels[:, used]],
        axis=1,
    )
    stacked = np.concatenate([features, sample.features[used]])
    both = (
        np.concatenate([group, sample.group[used]])
        if group is not None and group_use == "decide"
        else None
    )
    return Rows(stacked, both, np.zeros(len(stacked)), channels, constraints.pairs)


def solve_fair(
    problem: CostSensitiveProblem,
    hypotheses: HypothesisClass,
    rates: Rate | Sequence[Rate],
    sample: LabelledSample,
    allowed_gap: float,
    *,
    method: Method = "column-generation",
    group_use: GroupUse = "certify_only",
    tolerance: float | None = None,
    max_calls: int | None = None,
    with_constants: bool = True,
    progress: Callable[[int], None] | None = None,
) -> FairSolution:
    """The cheapest mixture of `hypotheses` on `problem` whose `rates`, measured on `sample`, differ
    by at most `allowed_gap`.

    Accept-all and reject-all belong to the class (unless with_constants=False), the group
    classifiers too with group_use="decide". `method`: "column-generation" (exact for exact classes)
    or "saddle-point" (the paper's recipe, for which `tolerance` is nu). `max_calls` bounds the
    oracle calls; `progress` is told the number of calls so far.
    """
    if method not in ("column-generation", "saddle-point"):
        raise InvalidInput(f'method is {method!r}; it is "column-generation" or "saddle-point".')
    fair = bind_fair(
        hypotheses,
        problem.features,
        problem.group,
        rates,
        sample,
        allowed_gap,
        method=method,
        group_use=group_use,
        tolerance=tolerance,
        max_calls=max_calls,
        with_constants=with_constants,
    )
    return fair.solve(problem.acceptance_cost, problem.rejection_total, progress)


__all__ = [
    "FairCSC",
    "Iteration",
    "Method",
    "bind_fair",
    "prefer_single",
    "require_limit",
    "solve_fair",
]
