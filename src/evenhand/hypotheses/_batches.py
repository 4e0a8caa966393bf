"""Several rules of one kind, asked together: the arrays behind `together`. Each answers as its
members do, bit for bit.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenhand.words import BoolArray, FloatArray, IntArray

WORTH_A_CALL = 20_000
"""Products that compiled code is called for, where numba has been loaded; scores alone are not
worth loading it.
"""
TILE = 2048
"""People asked about at a time without compiled code: few enough for scores to stay in the cache.
"""


@dataclass(frozen=True, eq=False)
class ConstantBatch:
    """Constants; accept: (members, 1)."""

    accept: BoolArray
    columns = None

    def __call__(self, columns: FloatArray) -> BoolArray:
        """The same answer for everybody."""
        return np.broadcast_to(self.accept, (len(self.accept), columns.shape[1]))

    def one(self, person: FloatArray) -> Sequence[int]:
        """The answers."""
        return self._answers

    @cached_property
    def _answers(self) -> tuple[bool, ...]:
        return tuple(self.accept[:, 0].tolist())


@dataclass(frozen=True, eq=False)
class ThresholdBatch:
    """x_column >= value, or its negation; value, below: (members, 1)."""

    column: IntArray
    value: FloatArray
    below: BoolArray
    columns: int

    def __call__(self, columns: FloatArray) -> BoolArray:
        """One comparison for all members."""
        if len(self.column) > len(columns):  # each column is read several times
            columns = np.ascontiguousarray(columns)
        return np.asarray((columns[self.column] >= self.value) ^ self.below)

    def one(self, person: FloatArray) -> Sequence[int]:
        """One comparison after the other, in Python's floats."""
        values = person[0].tolist()
        return [(values[column] >= value) is not below for column, value, below in self._rules]

    @cached_property
    def _rules(self) -> tuple[tuple[int, float, bool], ...]:
        columns = (self.column.tolist(), self.value[:, 0].tolist(), self.below[:, 0].tolist())
        return tuple(zip(*columns, strict=True))


@dataclass(frozen=True, eq=False)
class LinearBatch:
    """w.x >= threshold; weights: (members, columns), threshold: (members, 1)."""

    weights: FloatArray
    threshold: FloatArray
    columns: int

    def __call__(self, columns: FloatArray) -> BoolArray:
        """Scores are added up column by column, for one person as for many: the order of additions
        never changes.
        """
        return np.asarray(scores(columns, self.weights) >= self.threshold)

    def one(self, person: FloatArray) -> Sequence[int]:
        """As bytes, 1 for yes. numpy adds up the first axis of several members column by column; of
        one member it would add pairwise, so that the last of its running sums is taken."""
        weights, thresholds = self._by_column
        terms = weights * person.T
        score = np.add.reduce(terms) if len(thresholds) > 1 else np.add.accumulate(terms)[-1]
        return (score >= thresholds).tobytes()  # type: ignore[no-any-return]  # a comparison of arrays is untyped

    @cached_property
    def _by_column(self) -> tuple[FloatArray, FloatArray]:
        return np.ascontiguousarray(self.weights.T), self.threshold[:, 0].copy()


def scores(columns: FloatArray, weights: FloatArray) -> FloatArray:
    """(columns, rows) and (members, columns) -> (members, rows): w.x, added up column by column.

    Unlike a BLAS product, a row's score depends on its neighbours by not one bit. Compiled code
    goes row by row and passes over zeros, which add nothing: of a person's one-hot columns nearly
    all are zero.
    """
    worth = columns.size * len(weights) >= WORTH_A_CALL and "numba" in sys.modules
    if worth and np.isfinite(weights).all():
        from evenhand.hypotheses._kernels import score_rows

        found = np.empty((len(weights), columns.shape[1]))
        score_rows(np.ascontiguousarray(columns.T), np.ascontiguousarray(weights.T), found)
        return found
    tiles = [
        _tile_scores(columns[:, i : i + TILE], weights) for i in range(0, columns.shape[1], TILE)
    ]
    return np.concatenate(tiles, axis=1) if tiles else np.zeros((len(weights), 0))


def _tile_scores(columns: FloatArray, weights: FloatArray) -> FloatArray:
    columns = np.ascontiguousarray(columns)
    score = weights[:, :1] * columns[0] + 0.0  # never -0.0
    term = np.empty_like(score)
    for j in range(1, len(columns)):
        score += np.multiply(weights[:, j : j + 1], columns[j], out=term)
    return np.asarray(score)


@dataclass(frozen=True, eq=False)
class TableBatch:
    """lookup[member, context]; `contexts` turns the first column into context numbers."""

    lookup: BoolArray
    contexts: Callable[[FloatArray, int], IntArray]
    columns = None

    def __call__(self, columns: FloatArray) -> BoolArray:
        """One look-up for all members."""
        return self.lookup[:, self.contexts(columns.T, self.lookup.shape[1])]

    def one(self, person: FloatArray) -> Sequence[int]:
        """The column of the person's context."""
        context = self.contexts(person, self.lookup.shape[1])[0]
        return self.lookup[:, context].tobytes()
