"""The loops of `betting` over cells and pairs of cells, each beside its NumPy form."""

import numpy as np

from evenhand.computing import compiled
from evenhand.words import FloatArray, IntArray

AT_ONCE = 200
"""Members whose pairs of cells are compared at a time in NumPy."""
Grid = tuple[FloatArray, IntArray]
"""The edges of the cells, and the node at the left end of each."""
Cells = tuple[FloatArray, FloatArray]
"""lower, upper (B, cells): what is left of each cell; lower > upper where nothing is."""
Pair = tuple[Cells, Cells]
"""The cells of group j and those of group i."""
Given = tuple[FloatArray, FloatArray, Pair, FloatArray, Grid]
"""What `largest_gaps` is given."""


def _narrow_cells(
    wealth: FloatArray, threshold: FloatArray, grid: Grid, lower: FloatArray, upper: FloatArray
) -> None:
    edges, left_node = grid
    width = np.diff(edges)
    for k in range(threshold.shape[1]):
        for side in range(2):
            left = wealth[:, k, side, left_node] - threshold[:, k, np.newaxis]
            right = wealth[:, k, side, left_node + 1] - threshold[:, k, np.newaxis]
            kept = lower <= upper
            gone = kept & (left > 0.0) & (right > 0.0)
            b, c = np.nonzero(kept & ~gone & ((left > 0.0) | (right > 0.0)))
            one, two = left[b, c], right[b, c]
            cut, falls = edges[c] + width[c] * one / (one - two), two > 0.0
            upper[b[falls], c[falls]] = np.minimum(upper[b[falls], c[falls]], cut[falls])
            lower[b[~falls], c[~falls]] = np.maximum(lower[b[~falls], c[~falls]], cut[~falls])
            lower[gone], upper[gone] = 1.0, 0.0


@compiled(_narrow_cells)
def narrow_cells(
    wealth: FloatArray, threshold: FloatArray, grid: Grid, lower: FloatArray, upper: FloatArray
) -> None:
    """lower, upper (B, cells) lose the points whose chord of wealth (B, K, 2, nodes) exceeds
    threshold (B, K).
    """
    edges, left_node = grid
    for b in range(len(lower)):
        for c in range(len(left_node)):
            for k in range(threshold.shape[1]):
                for side in range(2):
                    if lower[b, c] > upper[b, c]:
                        break
                    left = wealth[b, k, side, left_node[c]] - threshold[b, k]
                    right = wealth[b, k, side, left_node[c] + 1] - threshold[b, k]
                    if left > 0.0 and right > 0.0:
                        lower[b, c], upper[b, c] = 1.0, 0.0
                    elif right > 0.0:
                        upper[b, c] = min(
                            upper[b, c],
                            edges[c] + (edges[c + 1] - edges[c]) * left / (left - right),
                        )
                    elif left > 0.0:
                        lower[b, c] = max(
                            lower[b, c],
                            edges[c] + (edges[c + 1] - edges[c]) * left / (left - right),
                        )


def _largest_gaps(
    wealth_j: FloatArray, wealth_i: FloatArray, cells: Pair, threshold: FloatArray, grid: Grid
) -> FloatArray:
    """The largest corner first: of the other pairs of cells only those that could exceed what it
    leaves are looked at.
    """
    (lower_j, upper_j), (lower_i, upper_i) = cells
    given = (wealth_j, wealth_i, cells, threshold, grid)
    x = np.where(lower_j <= upper_j, upper_j, -np.inf)
    y = np.where(lower_i <= upper_i, lower_i, np.inf)
    gaps = np.full(len(threshold), -np.inf)
    some = np.flatnonzero((x > -np.inf).any(axis=1) & (y < np.inf).any(axis=1))
    gaps[some] = _left_of_pairs(some, x[some].argmax(axis=1), y[some].argmin(axis=1), given)
    for start in range(0, len(some), AT_ONCE):
        members = some[start : start + AT_ONCE]
        corner = x[members][:, :, np.newaxis] - y[members][:, np.newaxis]
        b, c, d = np.nonzero(corner > gaps[members][:, np.newaxis, np.newaxis])
        np.maximum.at(gaps, members[b], _left_of_pairs(members[b], c, d, given))
    return gaps


def _left_of_pairs(b: IntArray, c: IntArray, d: IntArray, given: Given) -> FloatArray:
    """The largest x - y of member b, x in cell c and y in cell d, below all lines; `given` are the
    arguments of `largest_gaps`.
    """
    wealth_j, wealth_i, cells, threshold, (edges, left_node) = given
    (lower_j, upper_j), (lower_i, upper_i) = cells
    x, y = upper_j[b, c], lower_i[b, d]
    value = x - y
    rooms = (x - lower_j[b, c], upper_i[b, d] - y)
    at_j, at_i = left_node[c], left_node[d]
    for k in range(threshold.shape[1]):
        base_j, base_i = wealth_j[b, k, 0, at_j], wealth_i[b, k, 1, at_i]
        slope_j = (wealth_j[b, k, 0, at_j + 1] - base_j) / (edges[c + 1] - edges[c])
        slope_i = (wealth_i[b, k, 1, at_i + 1] - base_i) / (edges[d + 1] - edges[d])
        excess = base_j + slope_j * (x - edges[c]) + base_i
        excess += slope_i * (y - edges[d]) - threshold[b, k]
        above, gone = excess > 0.0, np.zeros(len(b))
        steeper = slope_j >= -slope_i
        for turn in (steeper, ~steeper):
            gain, room = np.where(turn, slope_j, -slope_i), np.where(turn, *rooms)
            works = (gain > 0.0) & (excess > 0.0)
            step = np.minimum(room, excess / np.where(works, gain, 1.0))
            gone = np.where(works, gone + step, gone)
            rest = np.where(step < room, 0.0, excess - step * gain)
            excess = np.where(works, rest, excess)
        least = np.where(excess > 0.0, -np.inf, np.minimum(value, x - y - gone))
        value = np.where(above, least, value)
    return np.asarray(value)


@compiled(_largest_gaps, pays=10_000_000)
def largest_gaps(
    wealth_j: FloatArray, wealth_i: FloatArray, cells: Pair, threshold: FloatArray, grid: Grid
) -> FloatArray:
    """max x - y over pairs of cells, x and y in what is left of them, chord(x) + chord(y) <=
    threshold for every bet.

    From the best corner (largest x, smallest y) the excess over the threshold is worked off by
    lowering x or raising y, whichever takes more of it per unit first: a linear program with one
    constraint.
    """
    (lower_j, upper_j), (lower_i, upper_i) = cells
    edges, left_node = grid
    size, bets, gaps = len(left_node), threshold.shape[1], np.empty(len(threshold))
    for b in range(len(threshold)):
        best = -np.inf
        least = np.inf
        for d in range(size):
            if lower_i[b, d] <= upper_i[b, d] and lower_i[b, d] < least:
                least = lower_i[b, d]
        for c in range(size - 1, -1, -1):
            x = upper_j[b, c]
            if lower_j[b, c] > x:
                continue
            if x - least <= best:
                break
            width_j, at_j = edges[c + 1] - edges[c], left_node[c]
            for d in range(size):
                y = lower_i[b, d]
                if y > upper_i[b, d]:
                    continue
                if x - y <= best:
                    break
                width_i, at_i = edges[d + 1] - edges[d], left_node[d]
                value = x - y
                for k in range(bets):
                    slope_j = (wealth_j[b, k, 0, at_j + 1] - wealth_j[b, k, 0, at_j]) / width_j
                    slope_i = (wealth_i[b, k, 1, at_i + 1] - wealth_i[b, k, 1, at_i]) / width_i
                    excess = (
                        wealth_j[b, k, 0, at_j] + slope_j * (x - edges[c]) + wealth_i[b, k, 1, at_i]
                    )
                    excess += slope_i * (y - edges[d]) - threshold[b, k]
                    if excess <= 0.0:
                        continue
                    given = 0.0
                    for turn in range(2):
                        if (turn == 0) == (slope_j >= -slope_i):
                            gain, room = slope_j, x - lower_j[b, c]
                        else:
                            gain, room = -slope_i, upper_i[b, d] - y
                        if gain > 0.0 and excess > 0.0:
                            step = min(room, excess / gain)
                            given += step
                            excess -= step * gain
                            if step < room:
                                excess = 0.0
                    value = -np.inf if excess > 0.0 else min(value, x - y - given)
                    if value <= best:
                        break
                best = max(best, value)
        gaps[b] = best
    return gaps
