"""Confidence sequences for a proportion and for the difference of two: intervals that hold at every
time at once, so that a growing table may be looked at as often as one likes.

One proportion is a share of arrivals, for which `accepted_share` has both ends. For a difference,
the i-th person of the first group is paired with the i-th of the second. D_i = X_i - Y_i is 1, 0 or
-1, independent, with mean d = p_1 - p_2. For a rate lambda > 0,

    W_n(lambda, d) = prod_i (1 + lambda (D_i - d))
                   = (1 + lambda (1 - d))^{n_+} (1 - lambda d)^{n_0} (1 - lambda (1 + d))^{n_-}

is a non-negative martingale with mean 1 as long as lambda (1 + d) <= 1, and so is the average
over fixed rates. Ville: P(ever W_n(d) >= 1/alpha) <= alpha. W falls in d, so the values d that it
has not excluded by time n are those above a root; the lower end is the largest root so far. The
upper end exchanges the two groups. Bets that do not depend on the data need no order within the
sample, only the three counts (Chugg, Cortes-Gomez, Wilder and Ramdas, 2023, bet adaptively on the
same pairs).
"""

from math import log

import numpy as np

from evenhand.bounds.accepted_share import largest_shares, smallest_shares
from evenhand.bounds.proportions import Interval
from evenhand.words import BoolArray, FloatArray, IntArray

RATES = 0.9 * 2.0 ** (-0.5 * np.arange(0, 14))
"""The rates lambda of the bets, from 0.9 to 0.01, equally weighted: an excess d is found with
the rate d / variance, and between two neighbours at most 3% of its growth is lost."""


def proportion_sequence(events: int, people: int, alpha: float) -> Interval:
    """The confidence sequence of p after k of n people had the event.

    Parameters
    ----------
    events, people : int
        k and n.
    alpha : float
        Each end is wrong at any time with probability at most alpha.

    Returns
    -------
    Interval
        (lower, upper); (0, 1) for nobody.

    Examples
    --------
    >>> [round(end, 3) for end in proportion_sequence(200, 1000, 0.05)]
    [0.161, 0.243]
    """
    counts = np.array([[events], [people], [alpha]], dtype=np.float64)
    return Interval(float(smallest_shares(*counts)[0]), float(largest_shares(*counts)[0]))


def log_wealth(plus: FloatArray, zero: FloatArray, minus: FloatArray, d: FloatArray) -> FloatArray:
    """ln of the average wealth of bets that the difference is larger than d.

    Parameters
    ----------
    plus, zero, minus : array
        How many of the pairs so far had the event in the first group alone, in both or neither, and
        in the second alone: n_+, n_0 and n_-.
    d : array
        The differences that are bet against, in [-1, 1].

    Returns
    -------
    array
        ln W_n(d).

    Examples
    --------
    >>> log_wealth(np.array([40.0]), np.array([50.0]), np.array([10.0]), np.array([0.0])).round(2)
    array([7.43])
    """
    # lambda (1 + d) <= 0.9 keeps every factor positive; W falls in d with these rates, too.
    rates = RATES / (1 + np.maximum(d, 0.0))[:, None]
    column = d[:, None]
    logs = (
        plus[:, None] * np.log1p(rates * (1 - column))
        + zero[:, None] * np.log1p(-rates * column)
        + minus[:, None] * np.log1p(-rates * (1 + column))
    )
    most = logs.max(axis=1)
    return np.asarray(most + np.log(np.exp(logs - most[:, None]).mean(axis=1)))


def _lower_ends(plus: FloatArray, zero: FloatArray, minus: FloatArray, alpha: float) -> FloatArray:
    """The least d that the pairs have not excluded, for each time."""
    goal = log(1 / alpha)
    low = np.full(len(plus), -1.0)
    high = np.full(len(plus), 1.0)
    for _ in range(40):
        middle = (low + high) / 2
        excluded = log_wealth(plus, zero, minus, middle) >= goal
        low = np.where(excluded, middle, low)
        high = np.where(excluded, high, middle)
    return low


def difference_sequence(
    first: IntArray | BoolArray, second: IntArray | BoolArray, alpha: float, looks: int = 64
) -> Interval:
    """The confidence sequence of p_1 - p_2 after the people so far.

    Parameters
    ----------
    first, second : array of 0 and 1
        The events of the two groups in order of arrival; people without a partner are left out
        until one arrives.
    alpha : float
        Each end is wrong at any time with probability at most alpha.
    looks : int
        At how many earlier times, equally spaced in the logarithm, the intersection is taken; what
        was excluded once stays excluded.

    Returns
    -------
    Interval
        (lower, upper); (-1, 1) without a pair.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> end = difference_sequence(rng.random(2000) < 0.3, rng.random(2000) < 0.2, 0.025)
    >>> [round(float(value), 2) for value in end]
    [0.05, 0.13]
    """
    pairs = min(len(first), len(second))
    if pairs == 0:
        return Interval(-1.0, 1.0)
    times = np.unique(np.geomspace(min(10, pairs), pairs, looks).astype(np.int64))
    step = np.asarray(first[:pairs], np.int64) - np.asarray(second[:pairs], np.int64)
    plus = np.cumsum(step > 0)[times - 1].astype(np.float64)
    minus = np.cumsum(step < 0)[times - 1].astype(np.float64)
    zero = times - plus - minus
    return Interval(
        float(_lower_ends(plus, zero, minus, alpha).max()),
        -float(_lower_ends(minus, zero, plus, alpha).max()),
    )
