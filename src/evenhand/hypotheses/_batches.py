"""Several rules of one kind, asked together: the arrays behind `together`. Each answers as its members do, bit for bit."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenhand.words import BoolArray, FloatArray, IntArray

_TILE = 2048
"""People whose scores are added up at a time: few enough to stay in the cache."""


@dataclass(frozen=True, eq=False)
class ConstantBatch:
    """Constants; accept: (members, 1)."""

    accept: BoolArray
    columns = None

    def __call__(self, columns: FloatArray) -> BoolArray:
        """The same answer for everybody."""
        return np.broadcast_to(self.accept, (len(self.accept), columns.shape[1]))


@dataclass(frozen=True, eq=False)
class ThresholdBatch:
    """x_column >= value, or its negation; value, below: (members, 1)."""

    column: IntArray
    value: FloatArray
    below: BoolArray
    columns: int

    def __call__(self, columns: FloatArray) -> BoolArray:
        """One comparison for all members."""
        return np.asarray((columns[self.column] >= self.value) ^ self.below)


@dataclass(frozen=True, eq=False)
class LinearBatch:
    """w.x >= threshold; weights: (members, columns), threshold: (members, 1)."""

    weights: FloatArray
    threshold: FloatArray
    columns: int

    def __call__(self, columns: FloatArray) -> BoolArray:
        """Scores are added up column by column, for one person as for many: the order of additions never changes."""
        people = columns.shape[1]
        if people == 1:
            score = np.add.accumulate(self.weights * columns[:, 0], axis=1)[:, -1:]
            return np.asarray(score >= self.threshold)
        accepts = np.empty((len(self.weights), people), dtype=bool)
        for start in range(0, people, _TILE):
            tile = slice(start, start + _TILE)
            np.greater_equal(self._scores(columns[:, tile]), self.threshold, out=accepts[:, tile])
        return accepts

    def _scores(self, columns: FloatArray) -> FloatArray:
        score = self.weights[:, :1] * columns[0]
        term = np.empty_like(score)
        for j in range(1, len(columns)):
            score += np.multiply(self.weights[:, j : j + 1], columns[j], out=term)
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
