"""Two independent tests made into one: a region of p-values, cut as a staircase so that nothing has
to be optimised.

Let U_1, U_2 be independent p-values, P(U_i <= t) <= t for all t (exact binomial tails of two
groups, Chernoff's bound on them, or DKW's). For corners (s_1, t_1), ..., (s_C, t_C) with s rising
and t falling, the event

    A = union over c of {U_1 > s_c and U_2 > t_c}

is increasing in (U_1, U_2), so its probability is smallest when both are uniform, and then

    P(not A) = s_1 + sum_c (s_{c+1} - s_c) t_c,        s_{C+1} = 1.

On A, some corner c has both group limits valid at its tails: with up(s) the upper limit of f_1 at
tail s and low(t) the lower limit of f_2 at tail t, f_1 - f_2 <= max over c of up(s_c) - low(t_c).
The maximum of a finite list: no optimiser whose error would need a proof.

**Shape.** s_c = Phi(-r cos theta_c), t_c = Phi(-r sin theta_{c+1}) with equally spaced angles: a
staircase around the quarter disc of radius r in units of standard errors. r is chosen such that
P(not A) = alpha. At alpha = 1e-5, r^2/2 = 10.3; the same for two bounds with alpha/2 each would
cost (4.42 + 4.42)^2/4 = 19.5, and joint Hoeffding pays ln(1/alpha) = 11.5 with the largest
variance, 1/4. Ellipses turned towards the gap were tried: 5% narrower at rates of 1/2, up to 20%
wider at rates of .02 and unequal groups. Not taken.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from evenhand.bounds.fixed_count import AuditCounts
from evenhand.words import FloatArray

CORNERS = 32
"""More corners bring less than 1% of width."""

SMALLEST_LOG_TAIL = -690.0
"""Below it Phi(-r) leaves the floating-point range: limits then say nothing, which is valid."""


@dataclass(frozen=True, eq=False)
class Staircase:
    """ln s_c and ln t_c of the corners; symmetric: t is s in reverse order."""

    log_first: FloatArray
    log_second: FloatArray

    def miss(self) -> float:
        """P(not A) for uniform p-values: s_1 + sum_c (s_{c+1} - s_c) t_c."""
        first, second = np.exp(self.log_first), np.exp(self.log_second)
        return float(first[0] + (np.append(first[1:], 1.0) - first) @ second)


def _at_radius(radius: float) -> Staircase:
    from scipy.special import log_ndtr

    cosines = np.cos(np.arange(CORNERS) * (math.pi / 2) / CORNERS)
    log_tail = np.asarray(log_ndtr(-radius * cosines), dtype=np.float64)
    return Staircase(log_tail, log_tail[::-1])


@lru_cache(maxsize=256)
def staircase(log_alpha: float) -> Staircase:
    """The staircase with P(not A) <= alpha, by bisection on the radius; the radius returned is the
    outer end.
    """
    if log_alpha < SMALLEST_LOG_TAIL:
        nothing = np.full(1, -math.inf)
        return Staircase(nothing, nothing)
    alpha, low, high = math.exp(log_alpha), 0.0, 40.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if _at_radius(middle).miss() <= alpha else (middle, high)
    return _at_radius(high)


def one_sided_share(counts: AuditCounts, log_size: float, failure_probability: float) -> float:
    """ln alpha of each one-sided test: delta over |H|, rates and ordered pairs of groups."""
    tests = counts.rates * counts.groups * (counts.groups - 1)
    return math.log(failure_probability / tests) - log_size


def largest_rise(upper: FloatArray, lower: FloatArray) -> FloatArray:
    """max over corners of up_k(s_c) - low_j(t_c): (C, M, rates, groups) twice -> (M, rates, groups
    j, groups k).
    """
    rise = upper[0][..., None, :] - lower[0][..., :, None]
    for up, low in zip(upper[1:], lower[1:], strict=True):
        np.maximum(rise, up[..., None, :] - low[..., :, None], out=rise)
    return np.asarray(rise)
