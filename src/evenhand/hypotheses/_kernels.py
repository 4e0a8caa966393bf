"""Compiled loops: the pass of `Stumps`, in which two channels touch every row and column once, and
the scores of linear rules.

Imported only by those who use stumps, or linear rules on large tables.
"""

from typing import Any

import numpy as np
from numba import njit

from evenhand.words import FloatArray, IntArray


@njit(cache=True, nogil=True)
def add_one(codes: Any, starts: IntArray, channel: FloatArray, sums: FloatArray) -> None:
    """sums[starts[j] + codes[i, j], 0] += channel[i]."""
    rows, columns = codes.shape
    for i in range(rows):
        value = channel[i]
        for j in range(columns):
            sums[starts[j] + np.int64(codes[i, j]), 0] += value


@njit(cache=True, nogil=True)
def add_two(
    codes: Any, starts: IntArray, first: FloatArray, second: FloatArray, sums: FloatArray
) -> None:
    """The same for two channels at once: sums[., 0] and sums[., 1] lie side by side in memory."""
    rows, columns = codes.shape
    for i in range(rows):
        one, two = first[i], second[i]
        for j in range(columns):
            at = starts[j] + np.int64(codes[i, j])
            sums[at, 0] += one
            sums[at, 1] += two


@njit(cache=True, nogil=True)
def add_one_by_column(codes: Any, starts: IntArray, channel: FloatArray, sums: FloatArray) -> None:
    """The same column by column: with many bins one column's sums fit into the cache, all of them
    do not.
    """
    rows, columns = codes.shape
    for j in range(columns):
        start = starts[j]
        for i in range(rows):
            sums[start + np.int64(codes[i, j]), 0] += channel[i]


@njit(cache=True, nogil=True)
def add_two_by_column(
    codes: Any, starts: IntArray, first: FloatArray, second: FloatArray, sums: FloatArray
) -> None:
    """Two channels, column by column."""
    rows, columns = codes.shape
    for j in range(columns):
        start = starts[j]
        for i in range(rows):
            at = start + np.int64(codes[i, j])
            sums[at, 0] += first[i]
            sums[at, 1] += second[i]


@njit(cache=True, nogil=True)
def cut_totals(sums: FloatArray, starts: IntArray, out: FloatArray) -> None:
    """out[c] = [all, none, sum of codes >= b for each column and b >= 1, then sum of codes < b in
    the same order].
    """
    columns = len(starts) - 1
    cuts = starts[columns] - columns
    for c in range(sums.shape[1]):
        for j in range(columns):
            low, high = starts[j], starts[j + 1]
            shift = 2 - j - 1
            above = 0.0
            for at in range(high - 1, low, -1):
                above += sums[at, c]
                out[c, at + shift] = above
            if j == 0:
                out[c, 0] = above + sums[low, c]
                out[c, 1] = 0.0
            below = 0.0
            for at in range(low + 1, high):
                below += sums[at - 1, c]
                out[c, at + shift + cuts] = below


@njit(cache=True, nogil=True)
def score_rows(rows: FloatArray, weights: FloatArray, scores: FloatArray) -> None:
    """scores[m, i] = sum_j weights[j, m] rows[i, j], added up column by column; a zero in a row
    adds nothing and costs a look.
    """
    total = np.empty(weights.shape[1])
    for i in range(len(rows)):
        for m in range(len(total)):
            total[m] = 0.0
        for j in range(rows.shape[1]):
            value = rows[i, j]
            if value != 0.0:
                for m in range(len(total)):
                    total[m] += weights[j, m] * value
        for m in range(len(total)):
            scores[m, i] = total[m]
