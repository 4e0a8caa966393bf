"""The compiled pass of `betting`: every row and hypothesis adds to the running sums of each side and bet. Imported on first use.

For one rate, a row of group j, and a hypothesis that accepts it (a = 1) or rejects it (a = 0), with g = lambda c_j, w = 1/p,
s the largest possible |h - f_j| and R = 1/(2 g s):

    side where phi > 0 is dangerous (up if a = 1, low if a = 0):  m' = max(m, (w - R)/(w - 1)), an unresolved label is a hit
    side where phi < 0 is dangerous (low if a = 1, up if a = 0):  m' = min(m, R/(w - 1)),       an unresolved label is a miss
    phi = m' (rejected), m' + (1 - m') w (accepted, hit), m' - m' w (accepted, miss)
    linear[.., a, k] += g phi,   quadratic[.., a, k] += kappa (g phi)^2,   kappa = 1/2 or, for the dangerous sign, k(g s |phi|)

Where the clamp binds, the dangerous phi is R itself and is written so: w - m' (w - 1) would lose digits at small p. R >= 1,
so m' <= 1; the minimum with 1 is for rounding alone, which p close to 1 would magnify.
Rounds enter row by row, or, where few values of (group, p, m) occur, counted together for each hypothesis (`betting_cells`).
k(u) = (-ln(1-u) - u)/u^2 = 1/2 + u/3 + u^2/4 + u^3/5 + u^4/6 + ... is replaced by `curvature`, which is never below it on [0, 1/2].
"""

from typing import Any

import numpy as np
from numba import njit

from evenhand.words import FloatArray, IntArray


@njit(cache=True, nogil=True, inline="always")
def curvature(u: float) -> float:
    """k(u) <= 1/2 + u/3 + u^2/4 + u^3/5 + u^4/3 for 0 <= u <= 1/2: the tail u^4/6 + u^5/7 + ... is at most u^4/(6(1-u))."""
    return 0.5 + u * (1 / 3 + u * (0.25 + u * (0.2 + u / 3)))


@njit(cache=True, nogil=True)
def add_cohort(
    accepts: Any,
    group: IntArray,
    inverse: FloatArray,
    regression: FloatArray,
    rejected: FloatArray,
    hit: FloatArray,
    miss: FloatArray,
    unresolved: FloatArray,
    phi: FloatArray,
    stakes: FloatArray,
    deviation: FloatArray,
    reach: FloatArray,
    hits: FloatArray,
    linear: FloatArray,
    quadratic: FloatArray,
) -> None:
    """stakes (M, G, K): g; deviation (M, G, a): s; reach (M, G, a, K): R; linear, quadratic (M, G, side, a, K) are added to.

    hits (M, G) collects the unclamped phi (n,) of the rows that h accepts; it serves the planning alone.
    """
    hypotheses, rows = accepts.shape
    groups, bets = stakes.shape[1], stakes.shape[2]
    for h in range(hypotheses):
        certain = np.zeros((groups, 2, 2))
        for i in range(rows):
            j = group[i]
            if j < 0:
                continue
            a = 1 if accepts[h, i] else 0
            if a == 1:
                hits[h, j] += phi[i]
            w = inverse[i]
            if w == 1.0:  # phi is 1 for a hit and 0 for a miss, whatever m is
                certain[j, a, 0] += hit[i]
                certain[j, a, 1] += unresolved[i]
                continue
            m, odds, s = regression[i], 1.0 / (w - 1.0), deviation[h, j, a]
            over, under = 1 - a, a  # the side on which phi > 0 is dangerous, and the other one
            refused, goals, misses, unknown = rejected[i], hit[i], miss[i], unresolved[i]
            if refused > 0.0:
                for k in range(bets):
                    g, r = stakes[h, j, k], reach[h, j, a, k]
                    t = g * max(m, min(1.0, 1.0 - (r - 1.0) * odds))
                    linear[h, j, over, a, k] += refused * t
                    quadratic[h, j, over, a, k] += refused * curvature(t * s) * t * t
                    t = g * min(m, r * odds)
                    linear[h, j, under, a, k] += refused * t
                    quadratic[h, j, under, a, k] += refused * 0.5 * t * t
            if goals + unknown > 0.0:
                for k in range(bets):
                    g, r = stakes[h, j, k], reach[h, j, a, k]
                    t = g * min(w - m * (w - 1.0), r)
                    linear[h, j, over, a, k] += (goals + unknown) * t
                    quadratic[h, j, over, a, k] += (goals + unknown) * curvature(t * s) * t * t
                    t = g * (w - min(m, r * odds) * (w - 1.0))
                    linear[h, j, under, a, k] += goals * t
                    quadratic[h, j, under, a, k] += goals * 0.5 * t * t
            if misses + unknown > 0.0:
                for k in range(bets):
                    g, r = stakes[h, j, k], reach[h, j, a, k]
                    t = g * max(m, min(1.0, 1.0 - (r - 1.0) * odds)) * (w - 1.0)
                    linear[h, j, over, a, k] -= misses * t
                    quadratic[h, j, over, a, k] += misses * 0.5 * t * t
                    t = g * min(m * (w - 1.0), r)
                    linear[h, j, under, a, k] -= (misses + unknown) * t
                    quadratic[h, j, under, a, k] += (misses + unknown) * curvature(t * s) * t * t
        for j in range(groups):
            for a in range(2):
                for k in range(bets):
                    t, known = stakes[h, j, k], certain[j, a, 0]
                    worst = known + certain[j, a, 1]
                    linear[h, j, 1 - a, a, k] += worst * t
                    quadratic[h, j, 1 - a, a, k] += worst * curvature(t * deviation[h, j, a]) * t * t
                    linear[h, j, a, a, k] += known * t
                    quadratic[h, j, a, a, k] += known * 0.5 * t * t


@njit(cache=True, nogil=True)
def count_accepted(accepts: Any, row: IntArray, slot: IntArray, count: FloatArray, taken: FloatArray) -> None:
    """taken (M, slots) += the counts of the entries (row, slot, count) whose row h accepts."""
    for h in range(len(accepts)):
        for e in range(len(row)):
            taken[h, slot[e]] += count[e] * accepts[h, row[e]]


@njit(cache=True, nogil=True)
def add_cells(
    group: IntArray,
    inverse: FloatArray,
    regression: FloatArray,
    total: FloatArray,
    taken: FloatArray,
    stakes: FloatArray,
    deviation: FloatArray,
    reach: FloatArray,
    hits: FloatArray,
    linear: FloatArray,
    quadratic: FloatArray,
) -> None:
    """`add_cohort` for cells of equal group, w and m: total (4, C) rounds rejected, hit, miss, unresolved; taken (M, 4, C): with h = 1.

    Every cell is two rows: what h accepts of it, and what it rejects.
    """
    cells = len(group)
    accepts = np.zeros((1, 2 * cells), dtype=np.bool_)
    accepts[0, :cells] = True
    both, w, m = (
        np.concatenate((group, group)),
        np.concatenate((inverse, inverse)),
        np.concatenate((regression, regression)),
    )
    rounds, phi = np.zeros((4, 2 * cells)), np.zeros(2 * cells)
    for h in range(len(taken)):
        rounds[:, :cells] = taken[h]
        rounds[:, cells:] = total - taken[h]
        phi[:] = (rounds[0] + rounds[3]) * m + rounds[1] * (m + (1.0 - m) * w) + rounds[2] * (m - m * w)
        only = slice(h, h + 1)
        add_cohort(
            accepts,
            both,
            w,
            m,
            rounds[0],
            rounds[1],
            rounds[2],
            rounds[3],
            phi,
            stakes[only],
            deviation[only],
            reach[only],
            hits[only],
            linear[only],
            quadratic[only],
        )
