"""The compiled pass of `log_betting`: every row adds to the sums of each side and bet. Imported on
first use.
"""

from numba import njit

from evenhand.words import BoolArray, FloatArray


@njit(cache=True, nogil=True, inline="always")
def curvature(u: float) -> float:
    """k(u) = (-ln(1-u) - u)/u^2 <= 1/2 + u/3 + u^2/4 + u^3/5 + u^4/3 for 0 <= u <= 1/2: the tail is
    at most u^4/(6(1-u)).
    """
    return 0.5 + u * (1 / 3 + u * (0.25 + u * (0.2 + u / 3)))


@njit(cache=True, nogil=True)
def add_rows(
    base: FloatArray,
    slope: FloatArray,
    inverse: FloatArray,
    regression: FloatArray,
    accepted: BoolArray,
    negative: BoolArray,
    open: BoolArray,
    count: FloatArray,
    low: float,
    bets: FloatArray,
    sums: FloatArray,
) -> None:
    """sums (5, K) += a, b, c, e, h of the side that rejects high losses, for losses of at least
    `low`; see `log_betting`.
    """
    for i in range(len(base)):
        d, w, n = slope[i], inverse[i], count[i]
        for k in range(len(bets)):
            bet, m, phi = bets[k], regression[i], 0.0
            room = low + 0.5 / bet - base[i]
            if w > 1.0 and d > 0.0 and d * w > room:
                m = max(m, min(1.0, (w - room / d) / (w - 1.0)))
            elif w > 1.0 and d < 0.0:
                m = min(m, -room / (d * (w - 1.0)))
            if not accepted[i]:
                phi = m
            elif (d > 0.0) if open[i] else negative[i]:
                phi = w - m * (w - 1.0)
            else:
                phi = -m * (w - 1.0)
            z = base[i] + min(
                d * phi, room
            )  # the clamp keeps d phi within its room; the minimum is for rounding alone
            curve = n * bet * bet * curvature(max(0.0, min(0.5, bet * (z - low))))
            sums[0, k] += n * bet * z
            sums[1, k] += n * bet
            sums[2, k] += curve * z * z
            sums[3, k] += curve * z
            sums[4, k] += curve
