"""The largest difference of two rates that a box and one half-plane allow: a linear program in the plane, by its vertices."""

import numpy as np

from evenhand.words import BoolArray, FloatArray

ROUNDING = 1e-12
"""The half-plane is widened by this much, relative to its terms: rounding may never cut off a point."""


def largest_difference(
    lower_x: FloatArray,
    upper_x: FloatArray,
    lower_y: FloatArray,
    upper_y: FloatArray,
    a: FloatArray,
    b: FloatArray,
    limit: FloatArray,
) -> FloatArray:
    """max x - y  subject to  lower_x <= x <= upper_x,  lower_y <= y <= upper_y,  a x - b y <= limit;  -inf if nothing is left.

    a and b may have any sign. A bounded polygon attains the maximum at a vertex: a corner of the box inside the half-plane, or a
    point where the line a x - b y = limit crosses a side of the box. Arrays are broadcast against each other.
    """
    limit = limit + ROUNDING * (np.abs(a) + np.abs(b) + np.abs(limit))
    best = np.full(np.broadcast_shapes(lower_x.shape, lower_y.shape, a.shape, b.shape, limit.shape), -np.inf)
    for x in (lower_x, upper_x):
        for y in (lower_y, upper_y):
            best = _better(best, x - y, a * x - b * y <= limit)
    for x in (lower_x, upper_x):
        y = _quotient(a * x - limit, b)
        best = _better(best, x - y, (y >= lower_y) & (y <= upper_y))
    for y in (lower_y, upper_y):
        x = _quotient(limit + b * y, a)
        best = _better(best, x - y, (x >= lower_x) & (x <= upper_x))
    return np.where((lower_x > upper_x) | (lower_y > upper_y), -np.inf, best)


def _better(best: FloatArray, value: FloatArray, possible: BoolArray) -> FloatArray:
    return np.where(possible & (value > best), value, best)


def _quotient(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """NaN, which no comparison lets through, where the line is parallel to the side."""
    shape = np.broadcast_shapes(numerator.shape, denominator.shape)
    with np.errstate(over="ignore"):
        return np.asarray(np.divide(numerator, denominator, out=np.full(shape, np.nan), where=denominator != 0))
