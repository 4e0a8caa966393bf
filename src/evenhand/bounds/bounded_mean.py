"""A bound on the mean of bounded values from their sum and their sum of squares.

Z_1, ..., Z_n are independent with mean mu and values in an interval of width R. For a stake lambda
that was fixed beforehand, with u = lambda R <= 1/2,

    W = prod_i (1 + lambda (Z_i - mu))

is positive and has mean 1, so by Markov's inequality P(ln W >= ln(1/alpha)) <= alpha. Since
ln(1 + z) >= z - k(u) z^2 for z >= -u, with k(u) = (-ln(1-u) - u)/u^2,

    ln W >= lambda n (m - mu) - k lambda^2 n (V + (m - mu)^2),

m and V being the mean and the variance of the Z_i. The right side grows with d = m - mu >= 0 as
long as 2 k lambda d < 1, which lambda R <= 1/2 ensures. So mu >= m - d with probability at least
1 - alpha, where d is the smaller root of

    k lambda d^2 - d + (k lambda V + ln(1/alpha) / (lambda n)) = 0;

without a root nothing is said. A good stake is sqrt(2 ln(1/alpha) / (n V)) with a variance that
was seen on other people: a bad one costs width, never validity.
"""

import numpy as np

from evenhand.words import FloatArray

LARGEST_STAKE = 0.5
"""The largest lambda R."""


def good_stakes(variance: FloatArray, people: int, width: float, alpha: float) -> FloatArray:
    """The stakes that make the bound narrowest if the values have such variances.

    Parameters
    ----------
    variance : array
        Of the values, as other people show it.
    people : int
        n, the number of values that will be looked at.
    width : float
        R, the width of the interval that holds all values.
    alpha : float
        The probability with which the bound may be wrong.

    Returns
    -------
    array
        min(sqrt(2 ln(1/alpha) / (n V)), 1/(2 R)).

    Examples
    --------
    >>> good_stakes(np.array([0.04, 0.0]), 5000, 2.0, 0.05).round(4)
    array([0.1731, 0.25  ])
    """
    evidence = 2 * np.log(1 / alpha) / max(people, 1)
    best = np.sqrt(evidence / np.maximum(variance, 1e-12))
    return np.asarray(np.minimum(best, LARGEST_STAKE / width))


def least_means(
    total: FloatArray,
    squares: FloatArray,
    people: int,
    width: float,
    stake: FloatArray,
    alpha: float,
) -> FloatArray:
    """Lower ends of means; each is wrong with probability at most alpha.

    Parameters
    ----------
    total, squares : array
        The sum and the sum of squares of the n values.
    people : int
        n.
    width : float
        R, the width of an interval that is known to hold every value.
    stake : array
        lambda, fixed before the values were seen; lambda R <= 1/2.
    alpha : float
        The probability with which each end may be wrong.

    Returns
    -------
    array
        The ends; minus infinity where the values say nothing.

    Examples
    --------
    >>> seen = np.array([300.0])
    >>> least_means(seen, seen, 1000, 1.0, np.array([0.15]), 0.05).round(3)
    array([0.262])
    """
    if people == 0:
        return np.full(np.shape(total), -np.inf)
    mean = total / people
    variance = np.maximum(squares / people - mean**2, 0.0)
    u = stake * width
    curvature = (-np.log1p(-u) - u) / u**2
    slope = curvature * stake
    constant = slope * variance + np.log(1 / alpha) / (stake * people)
    inside = 1 - 4 * slope * constant
    # 2c / (1 + root) instead of (1 - root) / (2 slope): nothing cancels
    shift = 2 * constant / (1 + np.sqrt(np.maximum(inside, 0.0)))
    return np.asarray(np.where(inside >= 0, mean - shift, -np.inf))
