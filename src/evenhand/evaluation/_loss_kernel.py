"""The loop of `log_betting`, in which every row adds to the sums of each side and bet, beside its
NumPy form.
"""

import numpy as np

from evenhand.computing import compiled
from evenhand.words import BoolArray, FloatArray

AT_ONCE = 20_000
"""Rows that are added at a time in NumPy."""


def _add_rows(
    rows: FloatArray, happened: BoolArray, low: float, bets: FloatArray, sums: FloatArray
) -> None:
    for start in range(0, rows.shape[1], AT_ONCE):
        part = slice(start, start + AT_ONCE)
        at, d, w, regression, n = rows[:, part]
        known, negative, open = happened[:, part]
        bad = np.where(open, d > 0.0, negative)
        weighs = w > 1.0
        rising, falling = weighs & (d > 0.0), weighs & (d < 0.0)
        up, beyond = np.where(rising, d, 1.0), np.where(weighs, w - 1.0, 1.0)
        down = np.where(falling, d * beyond, 1.0)
        for k, bet in enumerate(bets):
            room = low + 0.5 / bet - at
            tight = rising & (d * w > room)
            raised = np.maximum(regression, np.minimum(1.0, (w - room / up) / beyond))
            lowered = np.where(falling, np.minimum(regression, -room / down), regression)
            m = np.where(tight, raised, lowered)
            phi = np.where(bad, w - m * (w - 1.0), -m * (w - 1.0))
            z = at + np.minimum(d * np.where(known, phi, m), room)
            u = np.maximum(0.0, np.minimum(0.5, bet * (z - low)))
            curve = n * bet * bet * (0.5 + u * (1 / 3 + u * (0.25 + u * (0.2 + u / 3))))
            terms = (n * bet * z, n * bet, curve * z * z, curve * z, curve)
            for row, term in enumerate(terms):  # added one after the other, as the loop does
                sums[row, k] = np.cumsum(np.concatenate([sums[row, k : k + 1], term]))[-1]


@compiled(_add_rows)
def add_rows(
    rows: FloatArray, happened: BoolArray, low: float, bets: FloatArray, sums: FloatArray
) -> None:
    """sums (5, K) += a, b, c, e, h of the side that rejects high losses, for losses of at least
    `low`; see `log_betting`.

    rows: (5, n), base, slope, inverse propensity, regression and count of each row; happened: (3,
    n), whether it was accepted, has a bad outcome, is still open.
    """
    for i in range(rows.shape[1]):
        base, d, w, n = rows[0, i], rows[1, i], rows[2, i], rows[4, i]
        accepted, negative, open = happened[0, i], happened[1, i], happened[2, i]
        for k in range(len(bets)):
            bet, m, phi = bets[k], rows[3, i], 0.0
            room = low + 0.5 / bet - base
            if w > 1.0 and d > 0.0 and d * w > room:
                m = max(m, min(1.0, (w - room / d) / (w - 1.0)))
            elif w > 1.0 and d < 0.0:
                m = min(m, -room / (d * (w - 1.0)))
            if not accepted:
                phi = m
            elif (d > 0.0) if open else negative:
                phi = w - m * (w - 1.0)
            else:
                phi = -m * (w - 1.0)
            # the clamp keeps d phi within its room; the minimum is for rounding alone
            z = base + min(d * phi, room)
            u = max(0.0, min(0.5, bet * (z - low)))
            # k(u) = (-ln(1-u) - u)/u^2 is at most this for 0 <= u <= 1/2: the rest of its series is
            # at most u^4/(6(1-u))
            curve = n * bet * bet * (0.5 + u * (1 / 3 + u * (0.25 + u * (0.2 + u / 3))))
            sums[0, k] += n * bet * z
            sums[1, k] += n * bet
            sums[2, k] += curve * z * z
            sums[3, k] += curve * z
            sums[4, k] += curve
