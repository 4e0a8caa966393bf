"""Exact intervals for the gaps of many rules at once, from one sample of labelled people.

Fix a rule, a rate and an ordered pair of groups (j, k). Given group and label of all people of the
sample, K_k ~ Binomial(n_k, f_k) and K_j ~ Binomial(n_j, f_j) of those in the rate's denominator
are accepted, independently. U_1 = P_{f_k}(K <= K_k) and U_2 = P_{f_j}(K >= K_j) are independent
p-values: P(U_i <= t) <= t for all t.

**Two independent tests made into one: the staircase.** For corners (s_1, t_1), ..., (s_C, t_C)
with s rising and t falling, the event

    A = union over c of {U_1 > s_c and U_2 > t_c}

is increasing in (U_1, U_2), so its probability is smallest when both are uniform, and then

    P(not A) = s_1 + sum_c (s_{c+1} - s_c) t_c,        s_{C+1} = 1.

On A there is a corner at which f_k < up(K_k; s_c) and f_j > low(K_j; t_c), up and low being the
one-sided exact (Clopper-Pearson) limits. So

    f_k - f_j <= max over c of up(K_k; s_c) - low(K_j; t_c).

The maximum of a finite list: no optimiser whose error would need a proof. A union over R G(G-1) M
one-sided statements gives delta, for R rates, G groups and M rules.

The corners are s_c = Phi(-r cos theta_c), t_c = Phi(-r sin theta_{c+1}) with equally spaced angles:
a staircase around the quarter disc of radius r in units of standard errors. r is chosen such that
P(not A) = alpha. At alpha = 1e-5, r^2/2 = 10.3; the same for two bounds with alpha/2 each would
cost (4.42 + 4.42)^2/4 = 19.5, and joint Hoeffding pays ln(1/alpha) = 11.5 with the largest
variance, 1/4, whatever the rate. Ellipses turned towards the gap were tried: 5% narrower at rates
of 1/2, up to 20% wider at rates of .02 and unequal groups. Not taken.

**What does not work.** Adding the two exponents and keeping the threshold, n_k KL_k + n_j KL_j
<= ln(1/alpha), has no proof: each term is dominated by an Exp(1) variable, their sum by
Gamma(2), whose tail is (1 + L) e^-L. Testing the estimated gap alone against all (f_k, f_j) of a
given gap is provable but worthless: the unknown level of the rates makes 1/4 the variance again.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from evenhand.shares import require_delta
from evenhand.words import FloatArray

CORNERS = 32
"""Corners of a staircase; more of them bring less than 1% of width."""

SMALLEST_LOG_TAIL = -690.0
"""Below it Phi(-r) leaves the floating-point range: limits then say nothing, which is valid."""


def gap_ends(
    least: FloatArray, most: FloatArray, people: FloatArray, signs: FloatArray, delta: float
) -> tuple[FloatArray, FloatArray]:
    """Between which values the gaps of M rules lie, all of them at once.

    Parameters
    ----------
    least, most : array, shape (M, rates, groups)
        Between which numbers of people of each denominator a rule accepts. They differ where one
        row stands for all rules between two of them: limits rise with the people who are accepted.
    people : array, shape (rates, groups)
        All people of each denominator. The rate of a group without any may be anything.
    signs : array, shape (rates,)
        +1 where acceptance raises the rate (FPR, selection), -1 where it lowers it (FNR).
    delta : float
        The probability that any of the intervals misses its gap.

    Returns
    -------
    tuple of array, each of shape (M, gaps)
        The lower and the upper ends, in the order of `GapConstraints`: rate by rate, pair by pair,
        later group minus earlier group.

    Examples
    --------
    >>> accepted = np.array([[[30.0, 20.0]]])
    >>> lower, upper = gap_ends(accepted, accepted, np.array([[100.0, 100.0]]), np.ones(1), 0.05)
    >>> lower.round(2), upper.round(2)
    (array([[-0.25]]), array([[0.06]]))
    """
    require_delta(delta)
    rates, groups = people.shape
    tests = rates * groups * (groups - 1)
    stairs = staircase(math.log(delta / tests) - math.log(len(least)))
    upper = _distinct_limits(most, people, stairs.log_first)
    lower = 1.0 - _distinct_limits(people - least, people, stairs.log_second)
    return _of_rises(_largest_rise(upper, lower), signs)


def upper_limits(accepted: FloatArray, people: FloatArray, log_tails: FloatArray) -> FloatArray:
    """The f with P(Binomial(n, f) <= k) = tail; 1 where k = n.

    Parameters
    ----------
    accepted, people : array, shape (rows,)
        k and n.
    log_tails : array, shape (tails,)
        The logarithms of the tails.

    Returns
    -------
    array, shape (tails, rows)
        The limits.

    Examples
    --------
    >>> upper_limits(np.array([0.0]), np.array([10.0]), np.log([0.05])).round(3)
    array([[0.259]])
    """
    from scipy.special import betaincinv

    below = accepted < people
    limit = np.ones((len(log_tails), len(accepted)))
    tails = np.exp(log_tails)[:, None]
    limit[:, below] = 1.0 - betaincinv((people - accepted)[below], accepted[below] + 1.0, tails)
    return limit


def _distinct_limits(accepted: FloatArray, people: FloatArray, log_tails: FloatArray) -> FloatArray:
    """(corners, M, rates, groups); each distinct (accepted, people) is solved once."""
    base = people.max() + 1.0
    coded, where = np.unique(accepted * base + people, return_inverse=True)
    distinct_people = np.mod(coded, base)
    distinct_accepted = (coded - distinct_people) / base
    table = upper_limits(distinct_accepted, distinct_people, log_tails)
    return np.asarray(table[:, where.reshape(accepted.shape)])


@dataclass(frozen=True, eq=False)
class Staircase:
    """ln s_c and ln t_c of the corners; symmetric: t is s in reverse order."""

    log_first: FloatArray
    log_second: FloatArray

    @classmethod
    def at_radius(cls, radius: float) -> "Staircase":
        """The staircase around the quarter disc of this radius."""
        from scipy.special import log_ndtr

        cosines = np.cos(np.arange(CORNERS) * (math.pi / 2) / CORNERS)
        log_tail = np.asarray(log_ndtr(-radius * cosines), dtype=np.float64)
        return cls(log_tail, log_tail[::-1])

    def miss(self) -> float:
        """P(not A) for uniform p-values: s_1 + sum_c (s_{c+1} - s_c) t_c."""
        first = np.exp(self.log_first)
        second = np.exp(self.log_second)
        return float(first[0] + (np.append(first[1:], 1.0) - first) @ second)


@lru_cache(maxsize=256)
def staircase(log_alpha: float) -> Staircase:
    """The staircase with P(not A) <= alpha, by bisection on the radius, rounded outwards."""
    if log_alpha < SMALLEST_LOG_TAIL:
        nothing = np.full(1, -math.inf)
        return Staircase(nothing, nothing)
    alpha = math.exp(log_alpha)
    lower = 0.0
    upper = 40.0
    while upper - lower > 1e-9:
        middle = (lower + upper) / 2
        fits = Staircase.at_radius(middle).miss() <= alpha
        lower, upper = (lower, middle) if fits else (middle, upper)
    return Staircase.at_radius(upper)


def _largest_rise(upper: FloatArray, lower: FloatArray) -> FloatArray:
    """max over corners of up_k(s_c) - low_j(t_c): (C, M, rates, groups) twice -> (M, rates, groups
    j, groups k).
    """
    rise = upper[0][..., None, :] - lower[0][..., :, None]
    for up, low in zip(upper[1:], lower[1:], strict=True):
        np.maximum(rise, up[..., None, :] - low[..., :, None], out=rise)
    return np.asarray(rise)


def _of_rises(rises: FloatArray, signs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Intervals from one-sided limits of acceptance differences, clipped to [-1, 1] and turned by
    the rates' signs.

    rises (M, rates, groups, groups): rises[..., j, k] is an upper limit of f_k - f_j. So f_k - f_j
    lies in [-rises[..., k, j], rises[..., j, k]]; a rate with sign -1 has the gap f_j - f_k.
    """
    gaps = [
        (r, j, k) if sign > 0 else (r, k, j)
        for r, sign in enumerate(signs)
        for j, k in combinations(range(rises.shape[-1]), 2)
    ]
    lower = [np.maximum(-rises[:, r, k, j], -1.0) for r, j, k in gaps]
    upper = [np.minimum(rises[:, r, j, k], 1.0) for r, j, k in gaps]
    return np.stack(lower, axis=1), np.stack(upper, axis=1)
