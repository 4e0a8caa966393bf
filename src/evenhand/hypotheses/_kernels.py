"""The loops of `Stumps`, in which two channels touch every row and column once, and the scores of
linear rules; each beside its NumPy form, which adds in the same order.
"""

import numpy as np
from numpy.typing import NDArray

from evenhand.computing import compiled
from evenhand.words import FloatArray, IntArray

Codes = NDArray[np.uint8 | np.uint16 | np.int32]
"""The bin of each row in each column, in the smallest kind of number that tells them apart."""
TILE = 2048
"""People scored at a time in NumPy: few enough for scores to stay in the cache."""


def _add_one(codes: Codes, starts: IntArray, channel: FloatArray, sums: FloatArray) -> None:
    _add_each(codes, starts, (channel,), sums)


def _add_two(
    codes: Codes, starts: IntArray, first: FloatArray, second: FloatArray, sums: FloatArray
) -> None:
    _add_each(codes, starts, (first, second), sums)


def _add_each(
    codes: Codes, starts: IntArray, channels: tuple[FloatArray, ...], sums: FloatArray
) -> None:
    """bincount adds from 0 in the order of rows, as the loops do."""
    for j in range(codes.shape[1]):
        code = codes[:, j].astype(np.intp)
        part = sums[starts[j] : starts[j + 1]]
        for c, channel in enumerate(channels):
            part[:, c] = np.bincount(code, channel, len(part))


@compiled(_add_one)
def add_one(codes: Codes, starts: IntArray, channel: FloatArray, sums: FloatArray) -> None:
    """sums[starts[j] + codes[i, j], 0] = sum of channel[i]; sums are 0 before."""
    rows, columns = codes.shape
    for i in range(rows):
        value = channel[i]
        for j in range(columns):
            sums[starts[j] + np.int64(codes[i, j]), 0] += value


@compiled(_add_two)
def add_two(
    codes: Codes, starts: IntArray, first: FloatArray, second: FloatArray, sums: FloatArray
) -> None:
    """The same for two channels at once: sums[., 0] and sums[., 1] lie side by side in memory."""
    rows, columns = codes.shape
    for i in range(rows):
        one, two = first[i], second[i]
        for j in range(columns):
            at = starts[j] + np.int64(codes[i, j])
            sums[at, 0] += one
            sums[at, 1] += two


@compiled(_add_one)
def add_one_by_column(
    codes: Codes, starts: IntArray, channel: FloatArray, sums: FloatArray
) -> None:
    """The same column by column: with many bins one column's sums fit into the cache, all of them
    do not.
    """
    rows, columns = codes.shape
    for j in range(columns):
        start = starts[j]
        for i in range(rows):
            sums[start + np.int64(codes[i, j]), 0] += channel[i]


@compiled(_add_two)
def add_two_by_column(
    codes: Codes, starts: IntArray, first: FloatArray, second: FloatArray, sums: FloatArray
) -> None:
    """Two channels, column by column."""
    rows, columns = codes.shape
    for j in range(columns):
        start = starts[j]
        for i in range(rows):
            at = start + np.int64(codes[i, j])
            sums[at, 0] += first[i]
            sums[at, 1] += second[i]


def _cut_totals(
    sums: FloatArray, starts: IntArray, everybody: FloatArray, above: FloatArray, below: FloatArray
) -> None:
    for j in range(len(starts) - 1):
        low, high = starts[j], starts[j + 1]
        cuts = slice(low - j, high - j - 1)
        from_each_on = np.cumsum(sums[low:high][::-1], axis=0)[::-1].T
        if j == 0:
            everybody[:] = from_each_on[:, 0]
        above[:, cuts] = from_each_on[:, 1:]
        below[:, cuts] = np.cumsum(sums[low : high - 1], axis=0).T


@compiled(_cut_totals)
def cut_totals(
    sums: FloatArray, starts: IntArray, everybody: FloatArray, above: FloatArray, below: FloatArray
) -> None:
    """For each channel c: above[c] = the sum of codes >= b for each column and b >= 1, below[c]
    that of codes < b in the same order, everybody[c] that of all codes of the first column.
    """
    for c in range(sums.shape[1]):
        for j in range(len(starts) - 1):
            low, high = starts[j], starts[j + 1]
            total = 0.0
            for at in range(high - 1, low, -1):
                total += sums[at, c]
                above[c, at - j - 1] = total
            if j == 0:
                everybody[c] = total + sums[low, c]
            total = 0.0
            for at in range(low + 1, high):
                total += sums[at - 1, c]
                below[c, at - j - 1] = total


def _score_rows(columns: FloatArray, weights: FloatArray, scores: FloatArray) -> None:
    for start in range(0, columns.shape[1], TILE):
        tile = np.ascontiguousarray(columns[:, start : start + TILE])
        score = weights[:, :1] * tile[0] + 0.0  # never -0.0
        term = np.empty_like(score)
        for j in range(1, len(tile)):
            score += np.multiply(weights[:, j : j + 1], tile[j], out=term)
        scores[:, start : start + TILE] = score


@compiled(_score_rows)
def score_rows(columns: FloatArray, weights: FloatArray, scores: FloatArray) -> None:
    """scores[m, i] = sum_j weights[m, j] columns[j, i], added up column by column; a zero adds
    nothing and costs a look.
    """
    members, rows = scores.shape
    total = np.empty(members)
    for i in range(rows):
        for m in range(members):
            total[m] = 0.0
        for j in range(len(columns)):
            value = columns[j, i]
            if value != 0.0:
                for m in range(members):
                    total[m] += weights[m, j] * value
        for m in range(members):
            scores[m, i] = total[m]
