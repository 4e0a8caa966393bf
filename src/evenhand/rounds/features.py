"""The features of a table's people, in chunks that never move."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.words import FloatArray, IntArray

Column = NDArray[Any]

FIRST_CAPACITY = 64
"""Rows for which an empty table has room."""
CHUNK = 65_536
"""Rows of a chunk of features."""


class FeatureTable:
    """Features in chunks of CHUNK rows. Chunks never move: a table that doubled by copying would
    need twice its memory for a moment, and a call of decide() would wait for the copy. Only the
    first chunk grows, by doubling.

    Examples
    --------
    >>> table = FeatureTable.of(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> table.wipe(np.array([0]))
    >>> table.between(0, 2).tolist(), table.at(np.array([1])).tolist()
    ([[0.0, 0.0], [3.0, 4.0]], [[3.0, 4.0]])
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.capacity = min(FIRST_CAPACITY, CHUNK)
        self._chunks: list[FloatArray] = [np.zeros((self.capacity, columns))]

    @classmethod
    def of(cls, features: FloatArray) -> "FeatureTable":
        """A table with these rows."""
        table = cls(features.shape[1])
        table.make_room(len(features))
        table.write(0, features)
        return table

    def make_room(self, rows: int) -> None:
        """Let there be at least so many rows. New ones are zeros, which take no memory until they
        are written to.
        """
        first = self._chunks[0]
        if len(first) < min(rows, CHUNK):
            self._chunks[0] = grown(first, min(max(2 * len(first), rows), CHUNK))
        while rows > len(self._chunks) * CHUNK:
            self._chunks.append(np.zeros((CHUNK, self.columns)))
        self.capacity = sum(map(len, self._chunks))

    def write(self, start: int, features: FloatArray) -> None:
        """These features are those of the rows from `start` on."""
        for number, here, there in _pieces(start, start + len(features)):
            self._chunks[number][here] = features[there]

    def write_one(self, row: int, features: FloatArray) -> None:
        """The features (columns,) of one row."""
        self._chunks[row // CHUNK][row % CHUNK] = features

    def wipe(self, rows: IntArray) -> None:
        """Set these rows to zero."""
        for number in np.unique(rows // CHUNK).tolist():
            self._chunks[number][rows[rows // CHUNK == number] % CHUNK] = 0.0

    def between(self, start: int, stop: int) -> FloatArray:
        """The rows start .. stop - 1: a view if they are of one chunk, else a copy."""
        pieces = [self._chunks[number][here] for number, here, _ in _pieces(start, stop)]
        if len(pieces) == 1:
            return pieces[0]
        return np.concatenate(pieces) if pieces else np.zeros((0, self.columns))

    def at(self, rows: IntArray) -> FloatArray:
        """A copy of these rows, in this order."""
        numbers = rows // CHUNK
        present = np.unique(numbers).tolist()
        if len(present) == 1:
            return np.asarray(self._chunks[present[0]][rows % CHUNK])
        found = np.empty((len(rows), self.columns))
        for number in present:
            here = numbers == number
            found[here] = self._chunks[number][rows[here] % CHUNK]
        return found


def grown(column: Column, capacity: int) -> Column:
    """A copy with room for so many rows."""
    larger = np.zeros((capacity, *column.shape[1:]), column.dtype)
    # Where nobody was overruled or erased the column is never written to, and takes no memory.
    if column.dtype != np.bool_ or column.any():
        larger[: len(column)] = column
    return larger


def _pieces(start: int, stop: int) -> Iterator[tuple[int, slice, slice]]:
    """(number of the chunk, its rows, the same rows counted from `start`) of the rows start ..
    stop - 1.
    """
    at = start
    while at < stop:
        number, first = divmod(at, CHUNK)
        end = min(stop, (number + 1) * CHUNK)
        yield number, slice(first, first + end - at), slice(at - start, end - start)
        at = end
