"""Hypotheses as columns of the fair linear program, and the oracle that prices new ones.

With costs normalised by sum_i |c_i| (so that a limit of 1e-12 means the same at every scale of
costs), a hypothesis h is the column

    (cost(h), gap_1(h), ..., gap_K(h)),  cost(h) = sum_i c_i 1[h accepts i] / sum_i |c_i|

and one CSC call with acceptance costs c_i + sum_k lambda_k g_ki answers argmin over h of cost(h) +
lambda . gap(h).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from evenhand.contracts import Enumeration, Hypothesis, Partition, Partitioning, RowOracle
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL, Constant, GroupClassifier
from evenhand.words import BoolArray, FloatArray, GroupArray

TILE = 32_768
"""Members whose Lagrangians are computed at a time."""
TIE = 1e-13
"""Normalised costs closer than this are equal: rounding must not decide between hypotheses."""


@dataclass(frozen=True, eq=False)
class Column:
    """One hypothesis with its normalised cost and its gaps; most columns that a walk meets never
    need the hypothesis itself.
    """

    cost: float
    gaps: FloatArray
    make: Callable[[], Hypothesis]

    @classmethod
    def of(cls, hypothesis: Hypothesis, cost: float, gaps: FloatArray) -> "Column":
        """The column of a hypothesis that is at hand."""
        return cls(cost, gaps, lambda: hypothesis)

    @cached_property
    def hypothesis(self) -> Hypothesis:
        """The hypothesis."""
        return self.make()

    def value(self, multipliers: FloatArray) -> float:
        """cost + lambda . gap: its Lagrangian value, but for the constant."""
        return self.cost + float(multipliers @ self.gaps)


Price = Callable[[FloatArray, float], Column]
"""price(multipliers, cost_weight): argmin over h of cost_weight * cost(h) + multipliers . gap(h).
"""


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

    def column(self, hypothesis: Hypothesis) -> Column:
        """Evaluate one hypothesis. The gaps of a constant are zero by definition, not by summation."""
        if isinstance(hypothesis, Constant):
            cost = float(self.cost.sum()) if hypothesis.accept else 0.0
            return Column.of(hypothesis, cost, np.zeros(len(self.pairs)))
        accepted = hypothesis.accepts(self.features, self.group)
        totals = self.channels[:, accepted].sum(axis=1)
        return Column.of(hypothesis, float(self.cost[accepted].sum()), self.pairs @ totals)

    def permanent(self, groups: tuple[object, ...], with_constants: bool) -> list[Column]:
        """The members that need no oracle: the constants, and the group classifiers where the group
        may be used.
        """
        constants = [self.column(ACCEPT_ALL), self.column(REJECT_ALL)] if with_constants else []
        return constants + (
            [] if self.group is None else [self.column(GroupClassifier(value)) for value in groups]
        )


@dataclass(frozen=True, eq=False)
class Relatives:
    """The hypotheses that a partition of the rows offers; the cheapest of them is found without a
    search.

    sums: (1 + K, cells), the cost and the gaps of accepting each cell alone; where the cells are
    ordered, (1 + K, cells + 1): those of accepting all cells from each one on.
    """

    ordered: bool
    hypothesis: Callable[[BoolArray], Hypothesis]
    sums: FloatArray

    @classmethod
    def of(cls, partition: Partition, cost: FloatArray, gaps: FloatArray) -> "Relatives":
        """Add up the cost and the gaps, (K, rows), of accepting each row."""
        sums = np.stack(
            [np.bincount(partition.cell, row, partition.cells) for row in (cost, *gaps)]
        )
        if partition.ordered:
            sums = np.concatenate(
                [sums[:, ::-1].cumsum(axis=1)[:, ::-1], np.zeros((len(sums), 1))], axis=1
            )
        return cls(partition.ordered, partition.hypothesis, sums.astype(np.float64, copy=False))

    def __call__(self, multipliers: FloatArray, cost_weight: float = 1.0) -> Column:
        value = cost_weight * self.sums[0] + multipliers @ self.sums[1:]
        if self.ordered:
            first = int(np.argmax(value <= value.min() + TIE))
            accept, total = np.arange(len(value) - 1) >= first, self.sums[:, first]
        else:
            accept = value < -TIE
            total = self.sums[:, accept].sum(axis=1)
        return Column(float(total[0]), total[1:].copy(), lambda: self.hypothesis(accept))


@dataclass(eq=False)
class ClassPricer:
    """Prices by calling the class's oracle, and counts the calls. `permanent` members compete with
    each answer.

    relatives: what the calls have found besides their answers, where the class's search partitions
    the rows.
    """

    oracle: RowOracle
    rows: Rows
    permanent: list[Column]
    calls: int = field(default=0, init=False)
    relatives: list[Relatives] = field(default_factory=list, init=False)

    def __call__(self, multipliers: FloatArray, cost_weight: float = 1.0) -> Column:
        self.calls += 1
        extra = (multipliers @ self.rows.pairs) @ self.rows.channels
        priced = cost_weight * self.rows.cost + extra
        partition = self.oracle.partition(priced) if isinstance(self.oracle, Partitioning) else None
        if partition is None:
            found = self.rows.column(self.oracle.best(priced))
        else:
            self.relatives.append(Relatives.of(partition, self.rows.cost, self._gaps))
            found = self.relatives[-1](multipliers, cost_weight)
        return cheapest([found, *self.permanent], multipliers, cost_weight)

    @cached_property
    def _gaps(self) -> FloatArray:
        return self.rows.pairs @ self.rows.channels

    def singles(self, highest_cost: float) -> list[Column]:
        """Members of at most that cost that are known without a call."""
        return [column for column in self.permanent if column.cost <= highest_cost]


@dataclass(eq=False)
class PointPricer:
    """Prices by looking at the points (cost, gaps) of *all* members, which one pass over the data
    has yielded: one call.
    """

    oracle: Enumeration
    costs: FloatArray
    gaps: FloatArray
    permanent: list[Column]
    calls: int = field(default=1, init=False)
    _values: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._values = np.empty(min(TILE, len(self.costs)))  # one buffer for all calls

    @classmethod
    def one_pass(cls, oracle: Enumeration, rows: Rows, permanent: list[Column]) -> "PointPricer":
        """Sum the cost and all rate channels of every member."""
        if len(rows.pairs) == 1:
            totals = oracle.totals(np.stack([rows.cost, rows.pairs[0] @ rows.channels]))
            return cls(oracle, totals[0], totals[1:], permanent)
        totals = oracle.totals(np.concatenate([rows.cost[None, :], rows.channels]))
        return cls(oracle, totals[0], rows.pairs @ totals[1:], permanent)

    def __call__(self, multipliers: FloatArray, cost_weight: float = 1.0) -> Column:
        member, least = self._least(multipliers, cost_weight)
        for column in self.permanent:
            if cost_weight * column.cost + float(multipliers @ column.gaps) < least:
                return cheapest([self.column(member), *self.permanent], multipliers, cost_weight)
        return self.column(member)

    def _least(self, multipliers: FloatArray, cost_weight: float) -> tuple[int, float]:
        """The first member of least cost_weight * cost(h) + multipliers . gap(h), and that value.

        Tile by tile, so that what is computed stays in the cache: over a whole large class writing
        it down costs more than computing it.
        """
        if len(self.costs) <= TILE:
            return self._least_among(self.costs, self.gaps, multipliers, cost_weight)
        found, least = 0, np.inf
        for start in range(0, len(self.costs), TILE):
            rows = slice(start, start + TILE)
            member, value = self._least_among(
                self.costs[rows], self.gaps[:, rows], multipliers, cost_weight
            )
            if value < least:
                found, least = start + member, value
        return found, least

    def _least_among(
        self, costs: FloatArray, gaps: FloatArray, multipliers: FloatArray, cost_weight: float
    ) -> tuple[int, float]:
        values = self._values[: len(costs)]
        if len(multipliers) == 1:
            np.multiply(gaps[0], multipliers[0], out=values)
        else:
            np.matmul(multipliers, gaps, out=values)
        values += costs if cost_weight == 1.0 else cost_weight * costs
        member = int(values.argmin())
        return member, float(values[member])

    def column(self, member: int) -> Column:
        """The column of one member."""
        return Column(
            float(self.costs[member]),
            self.gaps[:, member].copy(),
            lambda: self.oracle.hypothesis(member),
        )

    def singles(self, highest_cost: float) -> list[Column]:
        """The member of least |gap| among those of at most that cost, and the permanent ones."""
        tied = np.flatnonzero(self.costs <= highest_cost)
        found = (
            [self.column(int(tied[np.argmin(np.abs(self.gaps[:, tied]).max(axis=0))]))]
            if len(tied)
            else []
        )
        return found + [column for column in self.permanent if column.cost <= highest_cost]


def cheapest(columns: list[Column], multipliers: FloatArray, cost_weight: float) -> Column:
    """The column of least cost_weight * cost + multipliers . gap; the first of equals."""
    return min(
        columns, key=lambda column: cost_weight * column.cost + float(multipliers @ column.gaps)
    )
