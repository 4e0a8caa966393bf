"""The fair linear program: hypotheses as its columns, the oracles that price new ones, and the walk
to its optimum where there is one constraint.

With costs normalised by sum_i |c_i| (so that a limit of 1e-12 means the same at every scale of
costs), a hypothesis h is the column

    (cost(h), gap_1(h), ..., gap_K(h)),  cost(h) = sum_i c_i 1[h accepts i] / sum_i |c_i|

and one CSC call with acceptance costs c_i + sum_k lambda_k g_ki answers argmin over h of cost(h) +
lambda . gap(h). The program is to

    minimise cost(pi)  subject to  |gap_k(pi)| <= limit for all k.

With one constraint, `walk_hull` walks the lower hull of (gap, cost) to the edge that crosses the
limit. Each hypothesis is a point; mixtures reach the convex hull, and the optimum is where the
lower hull meets the strip |gap| <= limit: one vertex inside it, or the edge between a vertex inside
and one outside. With the cheapest vertex *outside* (say gap > limit), the chord from a point inside
to a point outside has slope -lambda; one oracle call with multiplier lambda finds the hull's
farthest vertex below the chord, which replaces one of its ends. The new triangle between chord and
tangents has at most a quarter of the old one's area; still, a long run of short edges may need many
calls, so every second call after the first few bisects the multiplier between those at which the
two ends were found. Each call also proves the lower bound min_h cost(h) + lambda gap(h) - lambda
limit.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial

import numpy as np

from evenhand.contracts import Enumeration, Hypothesis, Partition, Partitioning, RowOracle
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, Constant, GroupClassifier
from evenhand.shown import Brief
from evenhand.words import BoolArray, FloatArray, GroupArray

TILE = 32_768
"""Members whose Lagrangians are computed at a time."""
TIE = 1e-13
"""Normalised costs closer than this are equal: rounding must not decide between hypotheses."""
ROUNDING = 1e-10
"""A gap of a constant below this is 0: shares of a table sum to 1 but for rounding."""
SECANT_CALLS = 8
"""Calls before bisection joins in; real hulls are done by then."""


@dataclass(frozen=True)
class Iteration:
    """One call of the CSC oracle.

    Parameters
    ----------
    multipliers : tuple of float
        The prices of the gaps that the oracle was asked with, one per constraint.
    cost : float
        The normalised cost of the answer: its acceptance costs over the sum of their sizes.
    gaps : tuple of float
        The gaps of the answer.
    upper_bound : float
        The normalised cost of the best fair mixture known after the call.
    lower_bound : float or None
        What no fair mixture of the class can undercut; None where nothing is proved.

    Examples
    --------
    >>> Iteration((0.0,), -0.4, (0.2,), -0.1, -0.4).gaps
    (0.2,)
    """

    multipliers: tuple[float, ...]
    cost: float
    gaps: tuple[float, ...]
    upper_bound: float
    lower_bound: float | None


@dataclass(frozen=True, eq=False)
class RuleColumn:
    """One hypothesis with its normalised cost and its gaps.

    Most columns that a walk meets never need the hypothesis itself, so it is made when asked for.
    """

    cost: float
    gaps: FloatArray
    hypothesis: Callable[[], Hypothesis]

    @classmethod
    def of(cls, hypothesis: Hypothesis, cost: float, gaps: FloatArray) -> "RuleColumn":
        """The column of a hypothesis that is at hand."""
        return cls(cost, gaps, lambda: hypothesis)

    def value(self, multipliers: FloatArray) -> float:
        """cost + lambda . gap: its Lagrangian value, but for the constant."""
        return self.cost + float(multipliers @ self.gaps)

    def priced_at(
        self, multipliers: tuple[float, ...], upper_bound: float, lower_bound: float | None
    ) -> Iteration:
        """The record of the call that this column answered."""
        gaps = tuple(self.gaps.tolist())
        return Iteration(multipliers, self.cost, gaps, upper_bound, lower_bound)


@dataclass(frozen=True, eq=False, repr=False)
class SaddlePoint(Brief):
    """What the game of the paper's recipe answers by itself: the averages of what was played,
    before a linear program shrinks their support.

    Parameters
    ----------
    cost, gaps : float, array
        The normalised cost and the gaps of the average mixture.
    multipliers : array
        The average price of each gap.
    multiplier_budget : float
        What the multipliers might sum to.
    tightened_limit : float
        limit - 2 nu, the limit of the game.
    oracle_tolerance : float
        nu.
    multipliers_gain, mixture_gain : float
        What either player would gain by leaving the averages: at most nu each at a nu-approximate
        saddle point.
    plays : int
        The steps of the game.

    Examples
    --------
    >>> gaps, prices = np.array([0.05]), np.array([0.3])
    >>> point = SaddlePoint(-0.4, gaps, prices, 2.0, 0.08, 0.01, 0.002, 0.0, 90)
    >>> point.is_approximate, point.within(0.1)
    (True, True)
    """

    cost: float
    gaps: FloatArray
    multipliers: FloatArray
    multiplier_budget: float
    tightened_limit: float
    oracle_tolerance: float
    multipliers_gain: float
    mixture_gain: float
    plays: int

    @property
    def is_approximate(self) -> bool:
        """Whether it is a nu-approximate saddle point."""
        return max(self.multipliers_gain, self.mixture_gain) <= self.oracle_tolerance

    def within(self, limit: float) -> bool:
        """Whether no gap of the average exceeds the limit, but for rounding.

        Parameters
        ----------
        limit : float
            The limit of the gap.

        Returns
        -------
        bool
            True if all gaps are within it.
        """
        return bool(np.abs(self.gaps).max() <= limit + TIE)


@dataclass(frozen=True, eq=False)
class Walk:
    """Where a walk ended: a mixture of columns, its bounds, and the calls that led there; `game`:
    the saddle point, where one was sought.
    """

    columns: tuple[RuleColumn, ...]
    weights: tuple[float, ...]
    lower_bound: float | None
    converged: bool
    iterations: tuple[Iteration, ...]
    game: SaddlePoint | None = None

    @property
    def cost(self) -> float:
        """The normalised cost of the mixture."""
        return float(sum(w * c.cost for w, c in zip(self.weights, self.columns, strict=True)))

    def prefer_single(self, pricer: "ClassPricer | PointPricer", limit: float) -> "Walk":
        """The same, or one hypothesis that is fair and costs no more: no needless randomisation.

        Ties are broken by cost, then one feasible hypothesis before a mixture, then |gap|.
        """
        highest = self.cost + TIE
        known = [column for column in self.columns if column.cost <= highest]
        known += pricer.singles(highest)
        fair = [column for column in known if np.abs(column.gaps).max() <= limit]
        if not fair:
            return self
        single = min(fair, key=lambda column: float(np.abs(column.gaps).max()))
        return replace(self, columns=(single,), weights=(1.0,))


Price = Callable[[FloatArray, float], RuleColumn]
"""price(multipliers, cost_weight): argmin over h of cost_weight * cost(h) + multipliers . gap(h).
"""


def without_rounding(gaps: FloatArray) -> FloatArray:
    """Gaps that are 0 but for the rounding of sums of shares are 0."""
    return np.where(np.abs(gaps) <= ROUNDING, 0.0, gaps)


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows on which everything is evaluated: objective rows and sample rows, merged where they
    are the same people.

    cost: (rows,) normalised acceptance costs (0 on rows that only the sample has); channels, pairs:
    as in `GapConstraints` (0 on rows that only the objective has).
    """

    features: FloatArray
    group: GroupArray | None
    cost: FloatArray
    channels: FloatArray
    pairs: FloatArray

    @cached_property
    def gaps(self) -> FloatArray:
        """(K, rows): what accepting each row adds to each gap."""
        return self.pairs @ self.channels

    @cached_property
    def accept_all_gaps(self) -> FloatArray:
        """(K,): the gaps of accepting all applicants. A rate P(accepted | group, label in S) has
        none, so rounding is set to 0; a rate with weights of its own may have some.
        """
        return without_rounding(self.pairs @ self.channels.sum(axis=1))

    def column(self, hypothesis: Hypothesis) -> RuleColumn:
        """Evaluate one hypothesis."""
        if isinstance(hypothesis, Constant):
            if not hypothesis.accept:
                return RuleColumn.of(hypothesis, 0.0, np.zeros(len(self.pairs)))
            return RuleColumn.of(hypothesis, float(self.cost.sum()), self.accept_all_gaps)
        accepted = hypothesis.accepts(self.features, self.group)
        totals = self.channels[:, accepted].sum(axis=1)
        return RuleColumn.of(hypothesis, float(self.cost[accepted].sum()), self.pairs @ totals)

    def permanent(self, groups: tuple[object, ...], with_constants: bool) -> list[RuleColumn]:
        """The members that need no oracle: the constants, and the group classifiers where the group
        may be used.
        """
        members: list[Hypothesis] = [ACCEPT_ALL, REJECT_ALL] if with_constants else []
        members += [] if self.group is None else [GroupClassifier(value) for value in groups]
        return [self.column(member) for member in members]


@dataclass(frozen=True, eq=False)
class Relatives:
    """The hypotheses that a partition of the rows offers; the cheapest of them is found without a
    search.

    sums: (1 + K, cells), the cost and the gaps of accepting each cell alone; where the cells are
    ordered, (1 + K, chains (length + 1)): those of accepting all cells of a chain from each one on.
    """

    ordered: bool
    hypothesis: Callable[[BoolArray], Hypothesis]
    sums: FloatArray
    chains: int = 1

    @classmethod
    def of(cls, partition: Partition, cost: FloatArray, gaps: FloatArray) -> "Relatives":
        """Add up the cost and the gaps, (K, rows), of accepting each row."""
        sums = np.stack(
            [np.bincount(partition.cell, row, partition.cells) for row in (cost, *gaps)]
        )
        if partition.ordered:
            chain = sums.reshape(len(sums), partition.chains, -1)
            from_each_on = chain[:, :, ::-1].cumsum(axis=2)[:, :, ::-1]
            none = np.zeros((len(sums), partition.chains, 1))
            sums = np.concatenate([from_each_on, none], axis=2).reshape(len(sums), -1)
        exact = sums.astype(np.float64, copy=False)
        return cls(partition.ordered, partition.hypothesis, exact, partition.chains)

    def __call__(self, multipliers: FloatArray, cost_weight: float = 1.0) -> RuleColumn:
        value = cost_weight * self.sums[0] + multipliers @ self.sums[1:]
        if self.ordered:
            # Costs and gaps are sums over people, so each chain is cut by itself.
            chain = value.reshape(self.chains, -1)
            first = np.argmax(chain <= chain.min(axis=1, keepdims=True) + TIE, axis=1)
            accept = (np.arange(chain.shape[1] - 1) >= first[:, np.newaxis]).ravel()
            total = self.sums[:, np.arange(self.chains) * chain.shape[1] + first].sum(axis=1)
        else:
            accept = value < -TIE
            total = self.sums[:, accept].sum(axis=1)
        make = cache(partial(self.hypothesis, accept))
        return RuleColumn(float(total[0]), total[1:].copy(), make)


@dataclass(eq=False)
class ClassPricer:
    """Prices by calling the class's oracle, and counts the calls.

    permanent: members that are known without a call; they compete with the answers of an exact
    oracle. The answer of a heuristic one is kept even where a constant is cheaper.
    relatives: what the calls have found besides their answers, where the class's search partitions
    the rows.
    """

    oracle: RowOracle
    rows: Rows
    permanent: list[RuleColumn]
    exact: bool
    calls: int = field(default=0, init=False)
    relatives: list[Relatives] = field(default_factory=list, init=False)

    def __call__(self, multipliers: FloatArray, cost_weight: float = 1.0) -> RuleColumn:
        self.calls += 1
        extra = (multipliers @ self.rows.pairs) @ self.rows.channels
        priced = cost_weight * self.rows.cost + extra
        partition = self.oracle.partition(priced) if isinstance(self.oracle, Partitioning) else None
        if partition is None:
            answer = self.rows.column(self.oracle.best(priced))
        else:
            self.relatives.append(Relatives.of(partition, self.rows.cost, self.rows.gaps))
            answer = self.relatives[-1](multipliers, cost_weight)
        known = self.permanent if self.exact else []
        return cheapest([answer, *known], multipliers, cost_weight)

    def singles(self, highest_cost: float) -> list[RuleColumn]:
        """Members of an exact class of at most that cost that are known without a call."""
        known = self.permanent if self.exact else []
        return [column for column in known if column.cost <= highest_cost]


@dataclass(eq=False)
class PointPricer:
    """Prices by looking at the points (cost, gaps) of *all* members, which one pass over the data
    has yielded: one call.
    """

    oracle: Enumeration
    costs: FloatArray
    gaps: FloatArray
    permanent: list[RuleColumn]
    calls: int = field(default=1, init=False)
    answered: dict[int, RuleColumn] = field(default_factory=dict, init=False)

    @cached_property
    def buffer(self) -> FloatArray:
        """Where the values of one tile are computed, in all calls."""
        return np.empty(min(TILE, len(self.costs)))

    @classmethod
    def one_pass(
        cls, oracle: Enumeration, rows: Rows, permanent: list[RuleColumn]
    ) -> "PointPricer":
        """Sum the cost and all rate channels of every member."""
        if len(rows.pairs) == 1:
            totals = oracle.totals(np.stack([rows.cost, rows.pairs[0] @ rows.channels]))
            return cls(oracle, totals[0], totals[1:], permanent)
        totals = oracle.totals(np.concatenate([rows.cost[None, :], rows.channels]))
        return cls(oracle, totals[0], rows.pairs @ totals[1:], permanent)

    def __call__(self, multipliers: FloatArray, cost_weight: float = 1.0) -> RuleColumn:
        # Tile by tile, so that what is computed stays in the cache: over a whole large class
        # writing it down costs more than computing it.
        member = 0
        least = np.inf
        for start in range(0, len(self.costs), TILE):
            costs = self.costs[start : start + TILE]
            gaps = self.gaps[:, start : start + TILE]
            values = self.buffer[: len(costs)]
            if len(multipliers) == 1:
                np.multiply(gaps[0], multipliers[0], out=values)
            else:
                np.matmul(multipliers, gaps, out=values)
            values += costs if cost_weight == 1.0 else cost_weight * costs
            first = int(values.argmin())
            if values[first] < least:
                member = start + first
                least = float(values[first])
        for column in self.permanent:
            if cost_weight * column.cost + float(multipliers @ column.gaps) < least:
                return cheapest([self.column(member), *self.permanent], multipliers, cost_weight)
        return self.column(member)

    def column(self, member: int) -> RuleColumn:
        """The column of one member; the same one whenever it is asked for."""
        if member not in self.answered:
            gaps = self.gaps[:, member].copy()
            make = cache(partial(self.oracle.hypothesis, member))
            self.answered[member] = RuleColumn(float(self.costs[member]), gaps, make)
        return self.answered[member]

    def singles(self, highest_cost: float) -> list[RuleColumn]:
        """The member of least |gap| among those of at most that cost, and the permanent ones."""
        known = [column for column in self.permanent if column.cost <= highest_cost]
        tied = np.flatnonzero(self.costs <= highest_cost)
        if len(tied) == 0:
            return known
        least = int(tied[np.argmin(np.abs(self.gaps[:, tied]).max(axis=0))])
        return [self.column(least), *known]


@dataclass(eq=False)
class Reporting:
    """A pricer that counts the questions it has answered."""

    pricer: Price
    progress: Callable[[int], None]
    answered: int = 0

    def __call__(self, multipliers: FloatArray, cost_weight: float = 1.0) -> RuleColumn:
        self.answered += 1
        self.progress(self.answered)
        return self.pricer(multipliers, cost_weight)


def make_pricer(
    oracle: RowOracle,
    exact: bool,
    rows: Rows,
    groups: tuple[object, ...],
    with_constants: bool = True,
) -> ClassPricer | PointPricer:
    """The one pass over the data for exact enumerable classes, the oracle for others; with the
    members that need no oracle.
    """
    permanent = rows.permanent(groups, with_constants)
    if exact and isinstance(oracle, Enumeration):
        return PointPricer.one_pass(oracle, rows, permanent)
    return ClassPricer(oracle, rows, permanent, exact)


def cheapest(columns: list[RuleColumn], multipliers: FloatArray, cost_weight: float) -> RuleColumn:
    """The column of least cost_weight * cost + multipliers . gap; the first of equals."""
    return min(
        columns, key=lambda column: cost_weight * column.cost + float(multipliers @ column.gaps)
    )


@dataclass(eq=False)
class _Bracket:
    """The two ends of the chord, in coordinates where the violated side is gap > limit."""

    inside: RuleColumn
    outside: RuleColumn
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
        self.inside_gap = self.gap(self.inside)
        self.outside_gap = self.gap(self.outside)
        self.upper_bound = self.mixture_cost

    def gap(self, column: RuleColumn) -> float:
        return self.side * float(column.gaps[0])

    @property
    def outside_weight(self) -> float:
        """The weight of the outer end in the mixture whose gap is the limit."""
        return (self.limit - self.inside_gap) / (self.outside_gap - self.inside_gap)

    @property
    def mixture_cost(self) -> float:
        """The cost of that mixture: `upper_bound` is its least value so far."""
        return self.inside.cost + self.outside_weight * (self.outside.cost - self.inside.cost)

    def next_multiplier(self) -> float:
        """The chord's slope, at which both ends have the same value; or the middle of the bracket
        in every second call once the walk is long.
        """
        late = len(self.iterations) >= SECANT_CALLS and len(self.iterations) % 2 == 1
        if late and np.isfinite(self.inside_multiplier):
            return 0.5 * (self.inside_multiplier + self.outside_multiplier)
        return (self.inside.cost - self.outside.cost) / (self.outside_gap - self.inside_gap)

    def take(self, column: RuleColumn, multiplier: float) -> None:
        """Tighten the bounds with a new vertex; it becomes an end of the chord where that lowers
        the mixture's cost.
        """
        gap = self.gap(column)
        self.lower_bound = max(
            self.lower_bound, column.cost + multiplier * gap - multiplier * self.limit
        )
        before = (self.inside, self.outside, self.inside_gap, self.outside_gap)
        if gap > self.limit:
            self.outside = column
            self.outside_gap = gap
            self.outside_multiplier = multiplier
        else:
            self.inside = column
            self.inside_gap = gap
            self.inside_multiplier = multiplier
        reached = self.mixture_cost
        if reached > self.upper_bound:
            self.inside, self.outside, self.inside_gap, self.outside_gap = before
        else:
            self.upper_bound = reached
        self.record(column, multiplier)

    def record(self, column: RuleColumn, multiplier: float) -> None:
        signed = (self.side * multiplier,)
        self.iterations.append(column.priced_at(signed, self.upper_bound, self.lower_bound))


def walk_hull(
    price: Price, start: list[RuleColumn], limit: float, tolerance: float, max_calls: int
) -> Walk:
    """The optimum over the hull that `price` describes, exact to `tolerance` in normalised cost.

    `start` holds at least one column inside the strip (the constants). For an exact oracle with one
    constraint.
    """
    free = price(np.zeros(1), 1.0)
    cheapest = min(
        [column for column in start if abs(column.gaps[0]) <= limit], key=lambda column: column.cost
    )
    if abs(free.gaps[0]) <= limit:
        best = min((free, cheapest), key=lambda column: column.cost)
        iteration = free.priced_at((0.0,), best.cost, best.cost)
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
    weight = bracket.outside_weight
    return Walk(
        (bracket.inside, bracket.outside) if weight > 0 else (bracket.inside,),
        (1.0 - weight, weight) if weight > 0 else (1.0,),
        min(bracket.lower_bound, bracket.upper_bound),
        bracket.upper_bound - bracket.lower_bound <= max(tolerance, 1e-12),
        tuple(bracket.iterations),
    )
