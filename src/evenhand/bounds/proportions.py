"""Exact intervals for the difference and the ratio of two proportions.

x_j of n_j people have an event, two independent binomials with probabilities p_1 and p_2. The lower
end of p_1 - p_2 at level alpha is found in four steps; the upper end exchanges the two groups, and
for the ratio p_1 / p_2 the line p_1 = p_2 + d becomes p_1 = r p_2.

1. **An ordering** (Buehler). T_d(x) is the score statistic at the restricted maximum likelihood
   with p_1 - p_2 = d. d_0(x) solves T_{d_0}(x) = z_alpha. It is the approximate end, and it ranks
   the tables x'.
2. **A region.** R(x) is the up-hull of {x' : T_{d_0(x)}(x') >= z_alpha}: with (x_1', x_2') it holds
   every table with more events in the first group and fewer in the second. T falls in d, so the
   regions of two tables are nested, and x lies in its own. Where T is 0/0 (d = 0 without events)
   it is its limit, which keeps it falling.
3. **A p-value.** With C(x_2) the interval of Clopper and Pearson for p_2 at level 1 - g
   (Berger and Boos; g = alpha / 50),

       p(d) = g + sup over p_2 in C(x_2) of P_{p_2 + d, p_2}(R(x)).

   P(R) grows in p_1, hence p(d) grows in d. If d is the truth, p(d) <= alpha needs that C misses
   p_2 (probability at most g), or that P(R(X)) <= alpha - g, which for nested regions has
   probability at most alpha - g.
4. **The end** is a d with p(d) <= alpha, as large as can be found. By monotonicity every smaller d
   is excluded too.

**The supremum is rigorous.** Along the line, F(p) = P_{p + d, p}(R) is smooth. The m-th derivative
of a binomial's likelihood, divided by the likelihood, has mean 0 and variance at most
m! (n/(p(1-p)))^m, and those of different orders are uncorrelated, so with
I = s^2 n_1/(p_1(1-p_1)) + n_2/(p_2(1-p_2)) (s = dp_1/dp_2: 1 for differences, r for ratios)

    |F''''| = |E[1_R L''''/L]| <= sqrt(F) ||L''''/L||_2 <= sqrt(24) I^2 sqrt(F).

On a cell of width w the cubic H that agrees with F and F' at both ends is off by at most
w^4 max|F''''| / 384. The maximum M of F on the cell therefore satisfies M <= max H + c sqrt(M) with
c = sqrt(24) (I w^2)^2 / 384, which is solved for M. I is convex in p, so its maximum is at an end.
Where I is large (p near 0 or 1) the corner bound holds instead: P(R) grows in p_1 and falls in p_2,
so F <= P_{p_1(b), a}(R) on [a, b]. Cells are halved where their bound is largest.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
import scipy.optimize
import scipy.special

from evenhand.errors import InvalidInput
from evenhand.words import FloatArray, IntArray

BERGER_BOOS = 50.0
"""g = alpha / 50: the share of alpha that the interval of the nuisance parameter may use."""

TOLERANCE = 0.002
"""An end is accepted if its p-value lies between (1 - 0.002) alpha and alpha."""

TIE = 1e-8
"""Statistics that differ by less are equal."""

CELLS = 24
"""Cells of the nuisance parameter to begin with."""

MOST_CELLS = 600
"""A supremum that is not known well enough with so many cells stays as large as its bound, which is
valid."""

DIRECT = 40
"""A value of the incomplete beta function costs as much as so many terms of a sum."""

MOST_LOG_RATIO = 300.0
"""No ratio beyond exp(300) is looked at: its square is still a number. Only at alpha = 1/2 does T
stay above z for every ratio."""

BLOCK = 2_000_000
"""Entries of one matrix of binomial probabilities."""

Line = Literal["difference", "ratio"]


class Interval(NamedTuple):
    """The two ends of an interval.

    Parameters
    ----------
    lower, upper : float
        The ends; the upper end of a ratio may be infinite.

    Examples
    --------
    >>> Interval(0.1, 0.3).upper
    0.3
    """

    lower: float
    upper: float


def proportion_interval(events: int, people: int, alpha: float) -> Interval:
    """Clopper and Pearson's interval of one proportion.

    Parameters
    ----------
    events, people : int
        k of n.
    alpha : float
        Each end is wrong with probability at most alpha.

    Returns
    -------
    Interval
        (lower, upper); (0, 1) for nobody.

    Notes
    -----
    P[Bin(n, lower) >= k] = alpha and P[Bin(n, upper) <= k] = alpha.

    Examples
    --------
    >>> [round(end, 4) for end in proportion_interval(3, 10, 0.025)]
    [0.0667, 0.6525]
    """
    misses = people - events
    lower = scipy.special.betaincinv(events, misses + 1, alpha) if events else 0.0
    upper = scipy.special.betaincinv(events + 1, misses, 1 - alpha) if misses else 1.0
    return Interval(float(lower), float(upper))


def difference_interval(
    events: int,
    people: int,
    other_events: int,
    other_people: int,
    alpha: float,
    alpha_upper: float | None = None,
) -> Interval:
    """The exact interval of the difference of two proportions.

    Parameters
    ----------
    events, people : int
        x_1 of n_1.
    other_events, other_people : int
        x_2 of n_2.
    alpha : float
        Each end is wrong with probability at most alpha: 0.025 for a two-sided interval of 95%.
    alpha_upper : float, optional
        The same for the upper end alone, if it is to be another one.

    Returns
    -------
    Interval
        (lower, upper) of p_1 - p_2; (-1, 1) if a group has nobody.

    Raises
    ------
    InvalidInput
        If a count is negative, there are more events than people, or alpha is not in (0, 1/2].

    Examples
    --------
    >>> [round(end, 3) for end in difference_interval(56, 70, 48, 80, 0.025)]
    [0.051, 0.345]
    """
    _require(events, people, other_events, other_people, alpha)
    if people == 0 or other_people == 0:
        return Interval(-1.0, 1.0)
    lower = _lower_end(events, people, other_events, other_people, alpha, "difference")
    other = alpha if alpha_upper is None else alpha_upper
    upper = -_lower_end(other_events, other_people, events, people, other, "difference")
    return Interval(lower, upper)


def ratio_interval(
    events: int, people: int, other_events: int, other_people: int, alpha: float
) -> Interval:
    """The exact interval of the ratio of two proportions.

    Parameters
    ----------
    events, people : int
        x_1 of n_1.
    other_events, other_people : int
        x_2 of n_2.
    alpha : float
        Each end is wrong with probability at most alpha: 0.025 for a two-sided interval of 95%.

    Returns
    -------
    Interval
        (lower, upper) of p_1 / p_2; the upper end is infinite if x_2 = 0; (0, infinity) if a group
        has nobody.

    Raises
    ------
    InvalidInput
        If a count is negative, there are more events than people, or alpha is not in (0, 1/2].

    Examples
    --------
    >>> [round(end, 3) for end in ratio_interval(48, 80, 56, 70, 0.025)]
    [0.595, 0.932]
    >>> ratio_interval(5, 10, 0, 10, 0.025).upper
    inf
    """
    _require(events, people, other_events, other_people, alpha)
    if people == 0 or other_people == 0:
        return Interval(0.0, math.inf)
    lower = _lower_end(events, people, other_events, other_people, alpha, "ratio")
    inverse = _lower_end(other_events, other_people, events, people, alpha, "ratio")
    return Interval(lower, 1.0 / inverse if inverse > 0 else math.inf)


def _require(x1: int, n1: int, x2: int, n2: int, alpha: float) -> None:
    for events, people in ((x1, n1), (x2, n2)):
        if not 0 <= events <= people:
            raise InvalidInput(
                f"{events} of {people} people have the event; a count lies between 0 and the "
                "number of people."
            )
    if not 0 < alpha <= 0.5:
        raise InvalidInput(
            f"alpha is {alpha}; the probability that an end is wrong lies in (0, 1/2].",
            hint="0.025 at each end gives an interval that holds with probability 0.95.",
        )


@lru_cache(maxsize=4096)
def _lower_end(x1: int, n1: int, x2: int, n2: int, alpha: float, line: Line) -> float:
    """The lower end of p_1 - p_2 or of p_1 / p_2."""
    # The least value has no table below it to be excluded with.
    if line == "difference" and x1 == 0 and x2 == n2:
        return -1.0
    if line == "ratio" and x1 == 0:
        return 0.0
    z = float(-scipy.special.ndtri(alpha))
    approximate = _approximate_end(x1, n1, x2, n2, z, line)
    nuisance = proportion_interval(x2, n2, alpha / BERGER_BOOS / 2)
    region = _Region.of(x1, n1, x2, n2, approximate, z, alpha, nuisance, line)
    goal = alpha * (1 - 1 / BERGER_BOOS)
    return _largest_excluded(region, nuisance, goal, approximate)


def restricted_difference(
    share_1: FloatArray, n1: int, share_2: FloatArray, n2: int, d: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """The most likely (p_1, p_2) with p_1 - p_2 = d.

    Parameters
    ----------
    share_1, share_2 : array
        x_j / n_j.
    n1, n2 : int
        The people of each group.
    d : float or array
        The difference.

    Returns
    -------
    tuple of array
        p_1 and p_2.

    Notes
    -----
    The likelihood equation is a cubic in p_2 (Miettinen and Nurminen, 1985); its middle root by the
    formula of Viete.

    Examples
    --------
    >>> p1, p2 = restricted_difference(np.array([0.6]), 10, np.array([0.3]), 10, 0.3)
    >>> p1.round(6), p2.round(6)
    (array([0.6]), array([0.3]))
    """
    n = n1 + n2
    x1 = share_1 * n1
    x2 = share_2 * n2
    # n p^3 + l2 p^2 + l1 p + l0 = 0 for p = p_2
    l2 = (n1 + 2 * n2) * d - n - (x1 + x2)
    l1 = (n2 * d - n - 2 * x2) * d + (x1 + x2)
    l0 = x2 * d * (1 - d)
    centre = l2 / (3 * n)
    q = centre**3 - l1 * l2 / (6 * n**2) + l0 / (2 * n)
    size = np.sqrt(np.maximum(centre**2 - l1 / (3 * n), 0.0))
    signed = np.where(q >= 0, size, -size)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = np.where(size > 0, q / signed**3, 0.0)
    angle = (math.pi + np.arccos(np.clip(cosine, -1.0, 1.0))) / 3
    p2 = 2 * signed * np.cos(angle) - centre
    p2 = np.clip(p2, np.maximum(0.0, -np.asarray(d)), np.minimum(1.0, 1.0 - np.asarray(d)))
    return np.clip(p2 + d, 0.0, 1.0), p2


def restricted_ratio(
    share_1: FloatArray, n1: int, share_2: FloatArray, n2: int, r: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """The most likely (p_1, p_2) with p_1 = r p_2.

    Parameters
    ----------
    share_1, share_2 : array
        x_j / n_j.
    n1, n2 : int
        The people of each group.
    r : float or array
        The ratio.

    Returns
    -------
    tuple of array
        p_1 and p_2.

    Notes
    -----
    The likelihood equation is the quadratic n r p^2 - (r (n_1 + x_2) + x_1 + n_2) p + x_1 + x_2 = 0
    in p = p_2 (Koopman, 1984); its smaller root.

    Examples
    --------
    >>> p1, p2 = restricted_ratio(np.array([0.6]), 10, np.array([0.3]), 10, 2.0)
    >>> p1.round(6), p2.round(6)
    (array([0.6]), array([0.3]))
    """
    x1 = share_1 * n1
    x2 = share_2 * n2
    a = (n1 + n2) * r
    b = r * (n1 + x2) + x1 + n2
    c = x1 + x2
    # 2c / (b + root) instead of (b - root) / (2a): nothing cancels
    root = np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))
    p2 = np.clip(2 * c / (b + root), 0.0, np.minimum(1.0, 1.0 / np.maximum(r, 1e-300)))
    return np.clip(r * p2, 0.0, 1.0), p2


def score(
    x1: FloatArray, n1: int, x2: FloatArray, n2: int, value: FloatArray | float, line: Line
) -> FloatArray:
    """The score statistic T of the hypothesis p_1 - p_2 = value, or p_1 / p_2 = value.

    Parameters
    ----------
    x1, x2 : array
        The events.
    n1, n2 : int
        The people.
    value : float or array
        The difference or the ratio.
    line : {"difference", "ratio"}
        Which one.

    Returns
    -------
    array
        T; where it is 0/0 the limit 0, so that T falls in the value everywhere. For ratios a table
        without events has minus infinity.

    Examples
    --------
    >>> score(np.array([6.0]), 10, np.array([3.0]), 10, 0.0, "difference").round(3)
    array([1.348])
    """
    share_1 = np.asarray(x1, dtype=np.float64) / n1
    share_2 = np.asarray(x2, dtype=np.float64) / n2
    slope: FloatArray | float = 1.0
    shift: FloatArray | float = value
    if line == "difference":
        p1, p2 = restricted_difference(share_1, n1, share_2, n2, value)
    else:
        p1, p2 = restricted_ratio(share_1, n1, share_2, n2, value)
        slope = value
        shift = 0.0
    variance = p1 * (1 - p1) / n1 + slope * slope * p2 * (1 - p2) / n2
    numerator = share_1 - slope * share_2 - shift
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = numerator / np.sqrt(variance)
    # 0/0: the hypothesis is what the table shows, and leaves nothing to chance. Near it T is as the
    # root of the distance, so its limit is 0 from both sides.
    statistic = np.where((numerator == 0) & (variance == 0), 0.0, statistic)
    if line == "ratio":
        # Without any event it is 0/0 for every ratio, and no ratio is too large.
        statistic = np.where((share_1 == 0) & (share_2 == 0), -np.inf, statistic)
    return np.asarray(statistic)


def _approximate_end(x1: int, n1: int, x2: int, n2: int, z: float, line: Line) -> float:
    """d_0(x) or r_0(x): where T falls to z."""
    at = np.array([x1], dtype=np.float64)
    other = np.array([x2], dtype=np.float64)

    def excess(t: float) -> float:
        value = t if line == "difference" else math.exp(t)
        return float(np.clip(score(at, n1, other, n2, value, line)[0] - z, -1e3, 1e3))

    # T falls, from infinity at the least value on; ratios are searched by their logarithm.
    low, high = -1.0, 1.0
    if line == "ratio":
        while excess(low) < 0 and low > -MOST_LOG_RATIO:
            low = max(2 * low, -MOST_LOG_RATIO)
        while excess(high) > 0 and high < MOST_LOG_RATIO:
            high = min(2 * high, MOST_LOG_RATIO)
    if excess(low) <= 0:
        root = low
    elif excess(high) >= 0:
        root = high
    else:
        root = float(scipy.optimize.brentq(excess, low, high, xtol=1e-14, rtol=1e-14))
    return root if line == "difference" else math.exp(root)


@dataclass(frozen=True, eq=False)
class _Region:
    """R(x), cut to the tables that have any probability worth mentioning.

    least[i] is the fewest events of the first group that are in the region together with
    second[i] events of the second group; n_1 + 1 if none is.
    """

    n1: int
    n2: int
    first: IntArray
    """Consecutive numbers of events of the first group."""
    second: IntArray
    """Consecutive numbers of events of the second group."""
    least: IntArray
    log_choose_1: FloatArray
    log_choose_2: FloatArray
    left_out: float
    """The probability of the tables that were cut off, and of rounding: added to every P(R)."""
    line: Line

    @classmethod
    def of(
        cls,
        x1: int,
        n1: int,
        x2: int,
        n2: int,
        value: float,
        z: float,
        alpha: float,
        nuisance: Interval,
        line: Line,
    ) -> "_Region":
        """R(x) for the table x whose approximate end is `value`."""
        log_cut = 38.0 + 2 * math.log(1 / alpha)
        second = _likely(n2, nuisance.lower, nuisance.upper, log_cut)
        least = _least_events(second, n1, n2, value, z, line)
        # Rounding must not put the table outside of its own region.
        least = np.where(second <= x2, np.minimum(least, x1), least)
        # Of the first group all numbers of events are needed at which the region begins.
        inside = least[(least >= 0) & (least <= n1)]
        first = np.arange(int(inside.min(initial=n1)), int(inside.max(initial=0)) + 1)
        return cls(
            n1,
            n2,
            first,
            second,
            least,
            _log_choose(n1, first),
            _log_choose(n2, second),
            1e-8 * alpha,
            line,
        )

    def p1(self, p2: FloatArray, value: float) -> FloatArray:
        """p_1 on the line, kept in [0, 1]."""
        moved = p2 + value if self.line == "difference" else p2 * value
        return np.clip(moved, 0.0, 1.0)

    def domain(self, nuisance: Interval, value: float) -> tuple[float, float] | None:
        """The p_2 of which the supremum is taken; None if the line has no such point.

        Beyond p_1 = 1 the probability falls in p_2, so nothing larger is there: this is no cut of
        the nuisance parameter. Below p_1 = 0 the line has no points; as d grows it gets more of
        them, so p(d) stays monotone.
        """
        low, high = nuisance
        if self.line == "difference":
            low = max(low, -value)
            high = min(high, max(low, 1.0 - value))
        else:
            high = min(high, max(low, 1.0 / value if value > 1.0 else 1.0))
        return (low, high) if low <= high else None

    def probability(
        self, p1: FloatArray, p2: FloatArray, slope: float | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """P(R) at pairs (p_1, p_2), and its derivative along a line of this slope."""
        size = max(1, BLOCK // (len(self.first) + len(self.second)))
        if len(p1) > size:
            parts = [
                self.probability(p1[i : i + size], p2[i : i + size], slope)
                for i in range(0, len(p1), size)
            ]
            return np.concatenate([one[0] for one in parts]), np.concatenate([o[1] for o in parts])
        mass_2 = _mass(self.n2, self.second, self.log_choose_2, p2)
        if DIRECT * len(self.least) < len(self.first):
            reaches, at_least = self._direct(p1)
        else:
            reaches, at_least = self._summed(p1)
        total = np.einsum("ij,ij->i", mass_2, reaches) + self.left_out
        if slope is None:
            return total, np.zeros_like(total)
        # d/dp_1 P(X_1 >= k) = k P(X_1 = k) / p_1;  d/dp_2 P(X_2 = k) = P(X_2 = k) (k - n p)/(p q)
        with np.errstate(divide="ignore", invalid="ignore"):
            rising = np.einsum("ij,j,ij->i", mass_2, self.least, at_least) / p1
            mass_2 *= self.second - self.n2 * p2[:, None]
            falling = np.einsum("ij,ij->i", mass_2, reaches) / (p2 * (1 - p2))
            return total, slope * rising + falling

    def _direct(self, p1: FloatArray) -> tuple[FloatArray, FloatArray]:
        """P(X_1 >= least) and P(X_1 = least) for each p_1, one by one."""
        k = np.clip(self.least, 1, self.n1).astype(np.float64)
        always = self.least <= 0
        never = self.least > self.n1
        tail: FloatArray = np.asarray(scipy.special.betainc(k, self.n1 - k + 1, p1[:, None]))
        reaches: FloatArray = np.where(always, 1.0, np.where(never, 0.0, tail))
        at_least: FloatArray = _mass(self.n1, k, _log_choose(self.n1, k), p1)
        return reaches, np.where(always | never, 0.0, at_least)

    def _summed(self, p1: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same by sums from above; beyond the window an incomplete beta function."""
        window = len(self.first)
        beyond = _at_least(self.n1, int(self.first[-1]) + 1, p1)
        # Columns: never in the region, the window, always in it.
        mass = np.zeros((len(p1), window + 2))
        mass[:, 1:-1] = _mass(self.n1, self.first, self.log_choose_1, p1)
        tail = np.empty_like(mass)
        tail[:, 0] = 1.0
        tail[:, -1] = 0.0
        tail[:, 1:-1] = np.cumsum(mass[:, -2:0:-1], axis=1)[:, ::-1]
        tail[:, 1:-1] += beyond[:, None]
        place = np.clip(self.least - self.first[0] + 1, 1, window)
        place = np.where(self.least <= 0, 0, np.where(self.least > self.n1, window + 1, place))
        return tail[:, place], mass[:, place]


def _likely(n: int, low: float, high: float, log_cut: float) -> IntArray:
    """The numbers of events outside of which Bin(n, p) has probability at most 2 exp(-log_cut) for
    every p in [low, high] (Bernstein's inequality).
    """

    def reach(p: float) -> float:
        return math.sqrt(2 * n * p * (1 - p) * log_cut) + log_cut

    # The smallest likely number is that of `low`, because Bin(n, p) grows with p.
    start = max(0, math.floor(n * low - reach(low)))
    stop = min(n, math.ceil(n * high + reach(high)))
    return np.arange(start, stop + 1)


def _least_events(
    second: IntArray, n1: int, n2: int, value: float, z: float, line: Line
) -> IntArray:
    """The fewest events of the first group with T >= z, hulled: at most that of every larger number
    of the second group's events.
    """
    x2 = second.astype(np.float64)
    # T >= z needs a numerator of z standard errors, which are at most these.
    slope = 1.0 if line == "difference" else value
    shift = value if line == "difference" else 0.0
    least = n1 * (slope * x2 / n2 + shift)
    width = n1 * z * 0.5 * math.sqrt(1 / n1 + slope * slope / n2)
    low = np.clip(np.floor(least) - 2, -1, n1).astype(np.int64)
    high = np.clip(np.ceil(least + width) + 2, 0, n1 + 1).astype(np.int64)
    # Invariant: not in the region at low (or low = -1), in it at high (or high = n_1 + 1).
    while (high - low > 1).any():
        middle = (low + high) // 2
        # Tables that tie with x belong to the region; rounding must not leave one out. (Without
        # this the end at 5 and 5 people missed in 3.2% instead of 2.5%.)
        inside = score(np.clip(middle, 0, n1), n1, x2, n2, value, line) >= z - TIE
        inside = np.where(middle < 0, False, np.where(middle > n1, True, inside))
        high = np.where((high - low > 1) & inside, middle, high)
        low = np.where((high - low > 1) & ~inside, middle, low)
    return np.minimum.accumulate(high[::-1])[::-1]


def _log_choose(n: int, k: IntArray | FloatArray) -> FloatArray:
    ln = scipy.special.gammaln
    return np.asarray(ln(n + 1.0) - ln(k + 1.0) - ln(n - k + 1.0))


def _mass(n: int, k: IntArray | FloatArray, log_choose: FloatArray, p: FloatArray) -> FloatArray:
    """P[Bin(n, p) = k], a row for each p."""
    # p = 0 and p = 1 get a finite logarithm, so that 0 * log is 0 and everything else vanishes.
    log_p = np.log(np.maximum(p, 1e-300))[:, None]
    log_q = np.log1p(-np.minimum(p, 1 - 1e-16))[:, None]
    log_q = np.where(p[:, None] == 1.0, -700.0, log_q)
    log_mass = k * (log_p - log_q)
    log_mass += n * log_q + log_choose
    return np.asarray(np.exp(log_mass, out=log_mass))


def _at_least(n: int, k: int, p: FloatArray) -> FloatArray:
    """P[Bin(n, p) >= k]."""
    if k <= 0:
        return np.ones_like(p)
    if k > n:
        return np.zeros_like(p)
    return np.asarray(scipy.special.betainc(k, n - k + 1, p))


def _supremum(region: _Region, low: float, high: float, value: float, goal: float) -> float:
    """An upper bound of sup F over [low, high] that is within the tolerance of the largest value
    seen; or a value of F above the goal, as soon as one is seen.
    """
    slope = 1.0 if region.line == "difference" else value
    if high <= low:
        at = np.array([low])
        return float(region.probability(region.p1(at, value), at)[0][0])
    # Equal steps in the arcsine, in which all binomials are equally wide.
    angles = np.linspace(math.asin(math.sqrt(low)), math.asin(math.sqrt(high)), CELLS + 1)
    nodes = np.sin(angles) ** 2
    nodes[0] = low
    nodes[-1] = high
    height, rise = region.probability(region.p1(nodes, value), nodes, slope)
    starts = nodes[:-1]
    ends = nodes[1:]
    left = np.stack([height[:-1], rise[:-1]], axis=1)
    right = np.stack([height[1:], rise[1:]], axis=1)
    seen = float(height.max())
    settled = 0.0
    cells = len(starts)
    while True:
        bound = _cell_bounds(region, starts, ends, left, right, value, slope)
        largest = max(settled, float(bound.max(initial=0.0)))
        # A bound well below the goal excludes the value and need not be sharp.
        accepted = max(seen * (1 + TOLERANCE / 2), 0.9 * goal)
        if seen > goal:
            return seen
        if largest <= accepted or cells > MOST_CELLS:
            return largest
        # Only cells whose bound is above what is accepted are worth halving.
        open_ = bound > accepted
        settled = max(settled, float(bound[~open_].max(initial=0.0)))
        middle = (starts[open_] + ends[open_]) / 2
        height, rise = region.probability(region.p1(middle, value), middle, slope)
        seen = max(seen, float(height.max()))
        node = np.stack([height, rise], axis=1)
        starts, ends, left, right = (
            np.concatenate([starts[open_], middle]),
            np.concatenate([middle, ends[open_]]),
            np.concatenate([left[open_], node]),
            np.concatenate([node, right[open_]]),
        )
        cells += len(middle)


def _cell_bounds(
    region: _Region,
    starts: FloatArray,
    ends: FloatArray,
    left: FloatArray,
    right: FloatArray,
    value: float,
    slope: float,
) -> FloatArray:
    """An upper bound of F on each cell: by the cubic and its error, or by the corner."""
    p1_start = region.p1(starts, value)
    p1_end = region.p1(ends, value)
    # Each of the two terms is convex, so its maximum on a cell is at an end.
    with np.errstate(divide="ignore", invalid="ignore"):
        first = region.n1 * np.maximum(1 / (p1_start * (1 - p1_start)), 1 / (p1_end * (1 - p1_end)))
        second = region.n2 * np.maximum(1 / (starts * (1 - starts)), 1 / (ends * (1 - ends)))
        information = slope * slope * first + second
        width = ends - starts
        c = math.sqrt(24) * (information * width**2) ** 2 / 384
        top = _cubic_maximum(left[:, 0], left[:, 1] * width, right[:, 0], right[:, 1] * width)
        bound = ((c + np.sqrt(c * c + 4 * np.maximum(top, 0.0))) / 2) ** 2
    bound = np.where(np.isfinite(bound), bound, 1.0)
    rough = ~(information * width**2 < 0.3)
    if rough.any():
        corner, _ = region.probability(p1_end[rough], starts[rough])
        bound[rough] = np.minimum(bound[rough], corner)
    return np.minimum(bound, 1.0)


def _cubic_maximum(f0: FloatArray, g0: FloatArray, f1: FloatArray, g1: FloatArray) -> FloatArray:
    """max over t in [0, 1] of the cubic with values f and derivatives g at 0 and 1."""
    # H(t) = f0 + g0 t + b t^2 + a t^3
    b = 3 * (f1 - f0) - 2 * g0 - g1
    a = 2 * (f0 - f1) + g0 + g1
    best = np.maximum(f0, f1)
    root = np.sqrt(np.maximum(b * b - 3 * a * g0, 0.0))
    for sign in (-1.0, 1.0):
        # 3 a t^2 + 2 b t + g0 = 0 in the form that stands a -> 0
        denominator = -b + sign * root
        for t in (denominator / (3 * a), g0 / denominator):
            t = np.where(np.isfinite(t), np.clip(t, 0.0, 1.0), 0.0)
            best = np.maximum(best, f0 + t * (g0 + t * (b + t * a)))
    return best


def _largest_excluded(
    region: _Region, nuisance: Interval, goal: float, approximate: float
) -> float:
    """A value with sup F <= goal, as large as can be found: a bracketed secant on the normal scale,
    on which the supremum is nearly linear.
    """
    floor = -1.0 if region.line == "difference" else 0.0

    def supremum(value: float) -> float:
        domain = region.domain(nuisance, value)
        return 0.0 if domain is None else _supremum(region, *domain, value, goal)

    # `low` is excluded, `high` is not; distances are on the scale t of `_scale`.
    to_value, to_scale = _scale(region.line)
    least_t, most_t = (-1.0, 1.0) if region.line == "difference" else (-700.0, 700.0)
    aim = float(scipy.special.ndtri(goal * (1 - TOLERANCE)))
    t = to_scale(approximate)
    step = _standard_error(region, approximate, nuisance)
    low = high = z_low = z_high = math.nan
    best = floor
    same_side = 0
    for _ in range(60):
        bound = supremum(to_value(t))
        z = float(np.clip(scipy.special.ndtri(min(bound, 1 - 1e-12)), -37.0, 37.0))
        excluded = bound <= goal
        if excluded:
            same_side = max(same_side, 0) + 1
            low, z_low = t, z
            best = max(best, to_value(t))
            if bound >= goal * (1 - 2 * TOLERANCE) or t >= most_t:
                break
        else:
            same_side = min(same_side, 0) - 1
            high, z_high = t, z
            if t <= least_t:
                break
        if math.isnan(low):
            # Overshoot more and more until something is excluded.
            t = max(least_t, t - max(1.05 * (z - aim), 0.01) * step * -same_side)
        elif math.isnan(high):
            t = min(most_t, t + min(max(1.05 * (aim - z), 0.01), 4.0) * step * same_side)
        elif high - low < 0.001 * step:
            break
        else:
            share = (aim - z_low) / (z_high - z_low) if z_high > z_low else 0.5
            # The supremum is not quite linear: twice on the same side, and the bracket is halved.
            share = 0.5 if abs(same_side) > 2 else min(max(share, 0.05), 0.95)
            t = low + share * (high - low)
    return max(floor, best)


def _scale(line: Line) -> tuple[Callable[[float], float], Callable[[float], float]]:
    """Differences are searched as they are, ratios by their logarithm."""
    if line == "difference":
        return (lambda t: t), (lambda value: value)
    return (lambda t: math.exp(min(t, 700.0))), (lambda value: math.log(max(value, 1e-300)))


def _standard_error(region: _Region, value: float, nuisance: Interval) -> float:
    """How far the end moves for one unit on the normal scale, roughly: only the speed of the search
    depends on it.
    """
    p2 = min(max((nuisance.lower + nuisance.upper) / 2, 0.5 / region.n2), 1 - 0.5 / region.n2)
    p1 = float(region.p1(np.array([p2]), value)[0])
    p1 = min(max(p1, 0.5 / region.n1), 1 - 0.5 / region.n1)
    if region.line == "difference":
        return math.sqrt(p1 * (1 - p1) / region.n1 + p2 * (1 - p2) / region.n2)
    return math.sqrt((1 - p1) / (p1 * region.n1) + (1 - p2) / (p2 * region.n2))
