"""FairCSC (section 3.1): the cheapest mixture whose group rates differ by at most a limit, with
costs and rates from different data.

    minimise over mixtures pi   sum_j c_j^{pi(x_j)}
    subject to                  |gap_k(pi)| <= limit for every rate and pair of groups k

`bind_fair` does once what depends on the rows alone; `FairCSC.solve` answers one cost vector;
`solve_fair` does both.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, TypedDict, Unpack

import numpy as np

from evenhand.contracts import GroupUse, HypothesisClass, RowOracle, class_reading
from evenhand.errors import InvalidInput, NotConverged
from evenhand.faircsc.column_generation import Pool, feasible_start, generate_columns
from evenhand.faircsc.columns import (
    ClassPricer,
    Iteration,
    PointPricer,
    Price,
    Reporting,
    Rows,
    RuleColumn,
    SaddlePoint,
    Walk,
    make_pricer,
    walk_hull,
)
from evenhand.faircsc.pooled import Answers, walk_pool
from evenhand.faircsc.saddle_point import Recipe, saddle_point
from evenhand.fairness.rates import GapConstraints, RateLike
from evenhand.hypotheses.named import ClassLike, as_class
from evenhand.policies import Mixture
from evenhand.schema import Schema
from evenhand.shares import require_limit
from evenhand.shown import Brief, plain
from evenhand.words import CostSensitiveProblem, FloatArray, GroupArray, LabelledSample, as_people

Method = Literal["column-generation", "saddle-point"]

EXACT_CALLS = 40
"""Hard cap of the walk for exact oracles with one constraint."""
MANY_CALLS = 400
"""Cap of column generation with several constraints."""
HEURISTIC_CALLS = 12
HEURISTIC_CALLS_MANY = 20
"""Budget of the pooled walk with one constraint, and with several."""
SADDLE_CALLS = 100_000
"""Calls of the paper's recipe, unless others are asked for; an answer that needed more says so."""


@dataclass(frozen=True, repr=False)
class SolveReport(Brief):
    """How a solution was found.

    Parameters
    ----------
    method : str
        "column-generation" or "saddle-point".
    converged : bool
        False if the calls ran out before optimality was proved; a heuristic oracle proves none.
        With "saddle-point": whether a nu-approximate saddle point within the limit was found, so
        that the cost is at most 4 nu above the optimum.
    cost_scale : float
        The sum of the sizes of the acceptance costs, by which costs were divided in `iterations`.
    constraint_names : tuple of str
        What each gap compares, for example "FPR b minus a".
    iterations : tuple of Iteration
        The calls of the oracle.
    game : SaddlePoint, optional
        With "saddle-point": the averages of the game itself.

    Examples
    --------
    >>> report = SolveReport("column-generation", True, 8.0, ("FPR b minus a",), ())
    >>> report.constraint_names, report.note
    (('FPR b minus a',), '')
    """

    method: str
    converged: bool
    cost_scale: float
    constraint_names: tuple[str, ...]
    iterations: tuple[Iteration, ...]
    game: SaddlePoint | None = None

    @property
    def ran_out(self) -> bool:
        """Whether the game of the paper's recipe ended because its calls ran out."""
        return self.game is not None and not self.game.is_approximate

    @property
    def note(self) -> str:
        """What must be known about the answer, in a sentence; empty if there is nothing."""
        if self.game is None or not self.ran_out:
            return ""
        nu = self.game.oracle_tolerance
        gain = max(self.game.multipliers_gain, self.game.mixture_gain)
        return (
            f"the saddle point has not converged: after {len(self.iterations):,} calls a player "
            f"could still gain {gain:.2g}, more than nu = {nu:.2g}. The mixture is within the "
            "limit, but it may cost more than 4 nu above the optimum."
        )


@dataclass(frozen=True, eq=False, repr=False)
class FairSolution(Brief):
    """The cheapest fair mixture that was found, with its figures.

    Parameters
    ----------
    policy : Mixture
        The mixture.
    cost : float
        The sum over the problem's rows of c^{pi(x)}.
    gaps : array
        One gap per rate and pair of groups, as measured on the sample.
    lower_bound : float or None
        No fair mixture of the class costs less; None where the oracle is heuristic.
    unlimited_cost : float
        The cost of the cheapest rule of all that were found, whatever its gaps: what it would cost
        without a limit. No mixture that was found costs less.
    unlimited_gaps : array
        The gaps of that rule.
    oracle_calls : int
        How often the class was searched.
    report : SolveReport
        How it was found.
    evaluate : callable
        Computes `acceptance`.

    See Also
    --------
    solve_fair : Makes it.

    Examples
    --------
    >>> import numpy as np
    >>> import evenhand as eh
    >>> score, group = np.arange(8.0)[:, None], np.array(list("abaabaab"))
    >>> sample = eh.LabelledSample(score, group, [-1, -1, 1, 1, -1, 1, 1, 1])
    >>> problem = eh.Prices().problem(score, group, sample.label)
    >>> solution = eh.solve_fair(problem, eh.Stumps(), eh.FalsePositiveRate(), sample, 1.0)
    >>> solution.cost, solution.lower_bound, solution.support_size, solution.acceptance.tolist()
    (1.0, 1.0, 1, [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    """

    policy: Mixture
    cost: float
    gaps: FloatArray
    lower_bound: float | None
    unlimited_cost: float
    unlimited_gaps: FloatArray
    oracle_calls: int
    report: SolveReport
    evaluate: Callable[[], FloatArray] = field(repr=False)

    @cached_property
    def acceptance(self) -> FloatArray:
        """P[pi(x) = +1] on the problem's rows."""
        return self.evaluate()

    @property
    def ran_out(self) -> bool:
        """Whether it is worse than the tolerance allows, because the calls of "saddle-point" ran
        out.
        """
        return self.report.ran_out

    @property
    def support_size(self) -> int:
        """How many hypotheses the mixture has."""
        return len(self.policy.weights)

    def to_json(self) -> dict[str, Any]:
        """The figures as plain JSON.

        Returns
        -------
        dict
            The fields without `evaluate`.
        """
        figures = (one.name for one in fields(self) if one.name != "evaluate")
        return {name: plain(getattr(self, name)) for name in figures}


@dataclass(frozen=True, eq=False)
class FairCSC:
    """A fair oracle bound to objective rows and a sample; `bind_fair` makes it.

    Parameters
    ----------
    oracle : RowOracle
        The class, bound to `rows`.
    exact : bool
        Whether its answers are true argmins.
    rows : Rows
        The objective rows, then the rows that only the sample has.
    objective : int
        How many of the rows are objective rows.
    constraints : GapConstraints
        The gaps that are limited.
    limit : float
        The limit of the gap.
    group_use : {"certify_only", "decide"}
        Whether the group may influence decisions.
    with_constants : bool
        Whether accept-all and reject-all belong to the class.
    method : {"column-generation", "saddle-point"}
        The solver.
    tolerance : float, optional
        How near to the optimum is near enough, in normalised cost; nu for "saddle-point".
    max_calls : int, optional
        A bound on the oracle calls.
    schema : Schema, optional
        What the rows stand for; the mixtures have it.

    Examples
    --------
    >>> import numpy as np
    >>> import evenhand as eh
    >>> from evenhand.faircsc import bind_fair
    >>> score, group = np.arange(8.0)[:, None], np.array(list("abaabaab"))
    >>> sample = eh.LabelledSample(score, group, [-1, -1, 1, 1, -1, 1, 1, 1])
    >>> fair = bind_fair(eh.Stumps(), score, None, eh.FalsePositiveRate(), sample, 0.0)
    >>> print(fair.at(1.0).cheapest(-sample.label.astype(float)).policy.describe(["score"]))
    always: accept if score >= 2
    """

    oracle: RowOracle
    exact: bool
    rows: Rows
    objective: int
    constraints: GapConstraints
    limit: float
    group_use: GroupUse = "certify_only"
    with_constants: bool = True
    method: Method = "column-generation"
    tolerance: float | None = None
    max_calls: int | None = None
    schema: Schema | None = None

    def at(self, limit: float) -> "FairCSC":
        """The same oracle with another limit.

        Parameters
        ----------
        limit : float
            The limit of the gap.

        Returns
        -------
        FairCSC
            A copy that shares the bound rows.
        """
        return replace(self, limit=require_limit(limit))

    def cheapest(self, acceptance_cost: FloatArray) -> FairSolution:
        """The cheapest fair mixture for acceptance costs c^{+1} - c^{-1} on the objective rows.

        Parameters
        ----------
        acceptance_cost : array of shape (rows,)
            What accepting a person costs beyond rejecting them.

        Returns
        -------
        FairSolution
            Its cost is that beyond rejecting all applicants.
        """
        return self.solve(acceptance_cost, 0.0)

    def solve(
        self,
        acceptance_cost: FloatArray,
        rejection_total: float,
        progress: Callable[[int], None] | None = None,
    ) -> FairSolution:
        """The cheapest fair mixture, at what it costs in all.

        Parameters
        ----------
        acceptance_cost : array of shape (rows,)
            What accepting a person costs beyond rejecting them.
        rejection_total : float
            What rejecting all applicants costs.
        progress : callable, optional
            Called with the number of oracle calls so far.

        Returns
        -------
        FairSolution
            Its cost includes `rejection_total`.
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

        Parameters
        ----------
        limits : sequence of float
            The limits, in the order in which they are solved.
        acceptance_cost, rejection_total, progress
            As in `solve`.

        Returns
        -------
        list of FairSolution
            One for each limit.
        """
        pricer, scale = self.pricer(acceptance_cost)
        price = pricer if progress is None else Reporting(pricer, progress)
        known = None if self.exact else Answers.of(pricer)
        walks: list[tuple[Walk, int]] = []
        for limit in map(require_limit, limits):
            # the one pass over an enumerable class counts as one call at each limit
            before = pricer.calls if isinstance(pricer, ClassPricer) else 0
            walk = self._walk(price, pricer.permanent, known, limit)
            calls = len(walk.iterations) if self.method == "saddle-point" else pricer.calls - before
            walks.append((walk.prefer_single(pricer, limit), calls))
        free = unlimited(pricer, known, [walk for walk, _ in walks])
        return [self.solution(walk, free, (scale, rejection_total), calls) for walk, calls in walks]

    def pricer(self, acceptance_cost: FloatArray) -> tuple[ClassPricer | PointPricer, float]:
        """What prices hypotheses for these costs, and the scale that was divided out of them.

        Parameters
        ----------
        acceptance_cost : array of shape (rows,)
            What accepting a person costs beyond rejecting them.

        Returns
        -------
        tuple
            The pricer, and the sum of the sizes of the costs.
        """
        scale = float(np.abs(acceptance_cost).sum()) or 1.0
        cost = np.zeros(len(self.rows.features))
        cost[: self.objective] = acceptance_cost / scale
        rows = replace(self.rows, cost=cost)
        groups = self.constraints.groups
        return make_pricer(self.oracle, self.exact, rows, groups, self.with_constants), scale

    def _walk(
        self, price: Price, start: list[RuleColumn], known: Answers | None, limit: float
    ) -> Walk:
        constraints = len(self.rows.pairs)
        calls = self.max_calls
        if not any(np.abs(column.gaps).max() <= limit for column in start):
            start = start + feasible_start(price, constraints, limit, MANY_CALLS)
            if known is not None:
                known = replace(known, pool=Pool.of(known.pool.columns + start))
        if self.method == "saddle-point":
            nu = min(0.01, limit / 4) if self.tolerance is None else self.tolerance
            # the proof of budget 2 needs both group classifiers, and one gap
            fixed = self.rows.group is not None and constraints == 1
            recipe = Recipe(limit, nu, fixed_budget=fixed, max_calls=calls or SADDLE_CALLS)
            return saddle_point(price, start, recipe)
        if known is not None:
            few = HEURISTIC_CALLS if constraints == 1 else HEURISTIC_CALLS_MANY
            return walk_pool(price, known, limit, calls or few)
        if constraints == 1 and any(abs(column.gaps[0]) <= limit for column in start):
            return walk_hull(price, start, limit, self.tolerance or 1e-13, calls or EXACT_CALLS)
        return generate_columns(price, start, limit, self.tolerance or 1e-10, calls or MANY_CALLS)

    def solution(
        self, walk: Walk, free: tuple[float, FloatArray], units: tuple[float, float], calls: int
    ) -> FairSolution:
        """The mixture that a walk has found, in the units of the problem.

        Parameters
        ----------
        walk : Walk
            The mixture as columns with weights.
        free : tuple of float and array
            The cost and the gaps of the cheapest rule without a limit, as `unlimited` finds it.
        units : tuple of float
            What was divided out of the costs, and what rejecting all applicants costs.
        calls : int
            How often the class was searched.

        Returns
        -------
        FairSolution
            The mixture with its cost and its gaps.
        """
        scale, rejection_total = units
        hypotheses = tuple(column.hypothesis() for column in walk.columns)
        policy = Mixture(hypotheses, walk.weights, self.group_use, self.schema)
        pairs = zip(walk.weights, walk.columns, strict=True)
        features = self.rows.features[: self.objective]
        group = self.rows.group
        lower = None
        if walk.lower_bound is not None and self.exact:
            lower = rejection_total + scale * min(walk.lower_bound, walk.cost)
        return FairSolution(
            policy=policy,
            cost=rejection_total + scale * walk.cost,
            gaps=np.sum([weight * column.gaps for weight, column in pairs], axis=0),
            lower_bound=lower,
            unlimited_cost=rejection_total + scale * min(free[0], walk.cost),
            unlimited_gaps=free[1],
            oracle_calls=calls,
            report=SolveReport(
                self.method,
                walk.converged,
                scale,
                self.constraints.names,
                walk.iterations,
                walk.game,
            ),
            evaluate=lambda: policy.acceptance_of_checked(
                features, None if group is None else group[: self.objective]
            ),
        )


def unlimited(
    pricer: ClassPricer | PointPricer, known: Answers | None, walks: Sequence[Walk]
) -> tuple[float, FloatArray]:
    """The normalised cost and the gaps of the cheapest rule that any of the walks has met: for an
    exact class the cheapest of all, which is where each walk begins; a heuristic search may meet it
    on the way to a limit.
    """
    met = [(column.cost, column.gaps) for walk in walks for column in walk.columns]
    met += [(step.cost, np.array(step.gaps)) for walk in walks for step in walk.iterations]
    met += [(column.cost, column.gaps) for column in pricer.permanent]
    free = np.zeros(len(met[0][1]))
    found = [pricer(free)] if isinstance(pricer, PointPricer) else []
    if known is not None:
        found += [*known.pool.columns, *(relatives(free) for relatives in known.relatives)]
    met += [(column.cost, column.gaps) for column in found]
    return min(met, key=lambda point: (point[0], float(np.abs(point[1]).max())))


class SolverSettings(TypedDict, total=False):
    """The settings of a fair oracle, with the defaults of `FairCSC`."""

    method: Method
    group_use: GroupUse
    tolerance: float | None
    max_calls: int | None
    with_constants: bool


def bind_fair(
    hypotheses: ClassLike,
    features: FloatArray,
    group: GroupArray | None,
    rates: RateLike,
    sample: LabelledSample,
    limit: float,
    **settings: Unpack[SolverSettings],
) -> FairCSC:
    """Bind a class to objective rows and a labelled sample; the answer solves many cost vectors.

    Parameters
    ----------
    hypotheses : HypothesisClass, str or classifier
        The rules to mix.
    features : array of shape (rows, columns), or frame
        The people whose decisions cost something.
    group : array of shape (rows,), optional
        Their groups; needed with group_use="decide".
    rates, sample, limit
        As in `solve_fair`.
    **settings
        method, group_use, tolerance, max_calls and with_constants, as in `solve_fair`.

    Returns
    -------
    FairCSC
        The oracle.

    Raises
    ------
    InvalidInput
        If the limit is negative, or the class looks at a group that it may not use or that is not
        given.
    CannotEstimateRate
        If nobody of a group counts for a rate.

    Examples
    --------
    >>> import numpy as np
    >>> import evenhand as eh
    >>> score, group = np.arange(8.0)[:, None], np.array(list("abaabaab"))
    >>> sample = eh.LabelledSample(score, group, [-1, -1, 1, 1, -1, 1, 1, 1])
    >>> fair = bind_fair(eh.Stumps(), score, None, eh.FalsePositiveRate(), sample, 0.0)
    >>> fair.cheapest(-sample.label.astype(float)).cost
    -3.0
    """
    limit = require_limit(limit)
    if isinstance(hypotheses, str) or not hasattr(hypotheses, "bind"):
        hypotheses = as_class(hypotheses)
    group_use = settings.get("group_use", "certify_only")
    _require_use(hypotheses, group, group_use)
    schema = sample.schema or getattr(hypotheses, "schema", None)
    if schema is not None or not isinstance(features, np.ndarray):
        features, schema = as_people(features, schema)
        hypotheses = class_reading(hypotheses, schema)
    constraints = GapConstraints.on(rates, sample)
    shown = group if group_use == "decide" else None
    rows, oracle = _bind_rows(hypotheses, features, shown, sample, constraints)
    return FairCSC(
        oracle=oracle,
        exact=hypotheses.exact,
        rows=rows,
        objective=len(features),
        constraints=constraints,
        limit=limit,
        schema=schema,
        **settings,
    )


def _bind_rows(
    hypotheses: HypothesisClass,
    features: FloatArray,
    group: GroupArray | None,
    sample: LabelledSample,
    constraints: GapConstraints,
) -> tuple[Rows, RowOracle]:
    """Objective rows first, then the sample rows that carry weight; the same people are listed
    once. Also the class, bound to them.
    """
    if features.shape[1] != sample.features.shape[1]:
        raise InvalidInput(
            f"the problem has {features.shape[1]} feature columns and the sample "
            f"{sample.features.shape[1]}; both must describe people alike."
        )
    channels = constraints.channels
    objective = len(features)
    same = features is sample.features or np.array_equal(features, sample.features)
    if not same or not (group is None or np.array_equal(group, sample.group)):
        used = np.flatnonzero(channels.any(axis=0))
        none = np.zeros((len(channels), objective))
        channels = np.concatenate([none, channels[:, used]], axis=1)
        features = np.concatenate([features, sample.features[used]])
        group = None if group is None else np.concatenate([group, sample.group[used]])
    rows = Rows(features, group, np.zeros(len(features)), channels, constraints.pairs)
    return rows, hypotheses.bind(features, group)


def _require_use(
    hypotheses: HypothesisClass, group: GroupArray | None, group_use: GroupUse
) -> None:
    if group_use not in ("certify_only", "decide"):
        raise InvalidInput(f'group_use is {group_use!r}; it is "certify_only" or "decide".')
    if group_use == "certify_only" and hypotheses.uses_group:
        raise InvalidInput(
            f'{type(hypotheses).__name__} looks at the group, but group_use is "certify_only".',
            hint='choose group_use="decide" if the group may influence decisions, or a class that '
            "does not look at it.",
        )
    if group_use == "decide" and group is None:
        raise InvalidInput(
            'group_use is "decide" but the problem has no group.',
            hint="pass the group of each row.",
        )


def solve_fair(
    problem: CostSensitiveProblem,
    hypotheses: ClassLike,
    rates: RateLike,
    sample: LabelledSample,
    limit: float,
    *,
    method: Method = "column-generation",
    group_use: GroupUse = "certify_only",
    tolerance: float | None = None,
    max_calls: int | None = None,
    with_constants: bool = True,
    progress: Callable[[int], None] | None = None,
) -> FairSolution:
    """Find the cheapest mixture whose rates differ by at most `limit`.

    Costs are those of `problem`; rates are measured on `sample`.

    Parameters
    ----------
    problem : CostSensitiveProblem
        The people, with the costs of accepting and rejecting each of them.
    hypotheses : HypothesisClass, str or classifier
        The rules to mix: a class, its name ("stumps"), or a scikit-learn classifier or pipeline,
        which becomes an `Estimator`. Accept-all and reject-all belong to them (see
        `with_constants`), and with group_use="decide" the group classifiers, too.
    rates : str, Rate or sequence of them
        The rates whose gaps are limited, such as "fpr"; false positive and false negative rates
        together are equalised odds.
    sample : LabelledSample
        The people used to measure the rates; they may differ from those of `problem`.
    limit : float
        How far a rate may differ between two groups.
    method : {"column-generation", "saddle-point"}
        "column-generation" is exact for exact classes; "saddle-point" is the paper's recipe.
    group_use : {"certify_only", "decide"}
        Whether the group is only measured, or may influence decisions.
    tolerance : float, optional
        How near to the optimum is near enough, in normalised cost; nu for "saddle-point".
    max_calls : int, optional
        A bound on the oracle calls; 100,000 for "saddle-point". `report.converged` and
        `report.note` say if they ran out.
    with_constants : bool
        Whether accept-all and reject-all belong to the class.
    progress : callable, optional
        Called with the number of oracle calls so far.

    Returns
    -------
    FairSolution
        The mixture, its cost and its gaps, and how it was found.

    Raises
    ------
    InvalidInput
        If a setting is impossible, or the problem and the sample do not fit together.
    CannotEstimateRate
        If nobody of a group counts for a rate.
    Infeasible
        If without constants no mixture is within the limit.

    Warns
    -----
    NotConverged
        If the calls of "saddle-point" ran out.

    Notes
    -----
    Section 3.1 of the paper:

        minimise over mixtures pi   sum_j c_j^{pi(x_j)}
        subject to                  |gap_k(pi)| <= limit for every rate and pair of groups k.

    Examples
    --------
    The best rule accepts one of the two bad outcomes of group b and none of group a: its false
    positive rates are 0.5 apart. Within a limit of 0.25 it is mixed with another rule.

    >>> import numpy as np
    >>> import evenhand as eh
    >>> score, group = np.arange(8.0)[:, None], np.array(list("abaabaab"))
    >>> sample = eh.LabelledSample(score, group, [-1, -1, 1, 1, -1, 1, 1, 1])
    >>> problem = eh.Prices().problem(score, group, sample.label)
    >>> solution = eh.solve_fair(problem, eh.Stumps(), eh.FalsePositiveRate(), sample, 0.25)
    >>> print(solution.policy.describe(["score"]))
    with probability 0.5: accept if score >= 5
    with probability 0.5: accept if score >= 2
    """
    if method not in ("column-generation", "saddle-point"):
        raise InvalidInput(f'method is {method!r}; it is "column-generation" or "saddle-point".')
    if None is not problem.schema != sample.schema:
        raise InvalidInput(
            "the problem and the sample have different columns: "
            f"{problem.schema.describe()}, and "
            f"{'an array' if sample.schema is None else sample.schema.describe()}.",
            hint="give both the same schema: LabelledSample(..., schema=problem.schema).",
        )
    fair = bind_fair(
        hypotheses,
        problem.features,
        problem.group,
        rates,
        sample,
        limit,
        method=method,
        group_use=group_use,
        tolerance=tolerance,
        max_calls=max_calls,
        with_constants=with_constants,
    )
    solution = fair.solve(problem.acceptance_cost, problem.rejection_total, progress)
    if solution.report.ran_out:
        warnings.warn(NotConverged(solution.report.note), stacklevel=2)
    return solution
