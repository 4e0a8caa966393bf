"""The compiled loops of `betting_wealth` over cells and pairs of cells. Imported on first use."""

import numpy as np
from numba import njit

from evenhand.words import FloatArray, IntArray


@njit(cache=True, nogil=True)
def narrow_cells(
    wealth: FloatArray,
    threshold: FloatArray,
    edges: FloatArray,
    left_node: IntArray,
    lower: FloatArray,
    upper: FloatArray,
) -> None:
    """lower, upper (B, cells) lose the points whose chord of wealth (B, K, 2, nodes) exceeds
    threshold (B, K).
    """
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


@njit(cache=True, nogil=True)
def largest_gaps(
    wealth_j: FloatArray,
    wealth_i: FloatArray,
    lower_j: FloatArray,
    upper_j: FloatArray,
    lower_i: FloatArray,
    upper_i: FloatArray,
    threshold: FloatArray,
    edges: FloatArray,
    left_node: IntArray,
    gaps: FloatArray,
) -> None:
    """max x - y over pairs of cells, x and y in what is left of them, chord(x) + chord(y) <=
    threshold for every bet.

    From the best corner (largest x, smallest y) the excess over the threshold is worked off by
    lowering x or raising y, whichever takes more of it per unit first: a linear program with one
    constraint.
    """
    cells, bets = len(left_node), threshold.shape[1]
    for b in range(len(threshold)):
        best = -np.inf
        least = np.inf
        for d in range(cells):
            if lower_i[b, d] <= upper_i[b, d] and lower_i[b, d] < least:
                least = lower_i[b, d]
        for c in range(cells - 1, -1, -1):
            x = upper_j[b, c]
            if lower_j[b, c] > x:
                continue
            if x - least <= best:
                break
            width_j, at_j = edges[c + 1] - edges[c], left_node[c]
            for d in range(cells):
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
