"""Brackets of an exact class: finitely many pairs of rules l <= u such that every member h of the
class lies in one of them, l <= h <= u (whom l accepts, h accepts; whom h accepts, u accepts).

What is shown for every bracket is shown for every member, also of an infinite class. A finite class
is its own brackets, l = h = u. Thresholds on a column, {x >= t} for all real t, are cut at
v_1 < ... < v_K, values of other people:

    t <= v_1:              u accepts all,          l = {x >= v_1}
    v_k < t <= v_{k+1}:    u = {x > v_k},          l = {x >= v_{k+1}}
    v_K < t:               u = {x > v_K},          l accepts nobody.

Where nobody lies strictly between two cuts, l and u are equal: columns of whole numbers with few
values lose nothing.
"""

from dataclasses import dataclass
from math import isfinite

import numpy as np

from evenhand.contracts import Enumeration, HypothesisClass
from evenhand.hypotheses.thresholds import ScoreThresholds, Stumps
from evenhand.words import BoolArray, FloatArray, Group, GroupArray

CUTS = 64
"""Cuts of a column at most: quantiles of what was seen."""

MOST_PER_GROUP = 2048
"""Brackets at most where each group has a threshold of its own: their number is a product."""

Sums = tuple[FloatArray, FloatArray]
"""(channels, brackets): the sums over the rows that l accepts, and that u accepts."""


@dataclass(frozen=True, eq=False)
class CutColumns:
    """Thresholds on some columns, {x >= t}; with `both` also {x < t}."""

    columns: tuple[int, ...]
    cuts: tuple[FloatArray, ...]
    both: bool

    @property
    def size(self) -> int:
        """How many brackets there are."""
        return sum(len(cuts) + 1 for cuts in self.cuts) * (2 if self.both else 1)

    def sums(self, features: FloatArray, group: GroupArray | None, channels: FloatArray) -> Sums:
        """Channels summed over l and u of every bracket, on new rows."""
        parts = [
            _cut_sums(features[:, column], cuts, channels)
            for column, cuts in zip(self.columns, self.cuts, strict=True)
        ]
        least = np.concatenate([low for low, _ in parts], axis=1)
        most = np.concatenate([high for _, high in parts], axis=1)
        if not self.both:
            return least, most
        # {x < t} is the complement of {x >= t}: its l is the complement of u.
        total = channels.sum(axis=1, keepdims=True)
        return (
            np.concatenate([least, total - most], axis=1),
            np.concatenate([most, total - least], axis=1),
        )


@dataclass(frozen=True, eq=False)
class CutGroups:
    """One threshold per group on one column: brackets of the groups, combined in all ways."""

    column: int
    cuts: tuple[tuple[Group, FloatArray], ...]

    @property
    def size(self) -> int:
        """How many brackets there are."""
        return int(np.prod([len(cuts) + 1 for _, cuts in self.cuts]))

    def sums(self, features: FloatArray, group: GroupArray | None, channels: FloatArray) -> Sums:
        """Channels summed over l and u of every bracket, on new rows."""
        assert group is not None
        least = np.zeros((len(channels), 1))
        most = np.zeros((len(channels), 1))
        for value, cuts in self.cuts:
            mine: BoolArray = np.asarray(group == value)
            low, high = _cut_sums(features[mine, self.column], cuts, channels[:, mine])
            least = (least[:, :, None] + low[:, None, :]).reshape(len(channels), -1)
            most = (most[:, :, None] + high[:, None, :]).reshape(len(channels), -1)
        return least, most


@dataclass(frozen=True, eq=False)
class Listed:
    """A finite class: each member is a bracket."""

    hypotheses: HypothesisClass
    size: int

    def sums(self, features: FloatArray, group: GroupArray | None, channels: FloatArray) -> Sums:
        """Channels summed over every member, on new rows."""
        bound = self.hypotheses.bind(features, group)
        assert isinstance(bound, Enumeration)
        totals = bound.totals(channels)
        return totals, totals


Brackets = CutColumns | CutGroups | Listed


def brackets_of(
    hypotheses: HypothesisClass, features: FloatArray, group: GroupArray | None
) -> Brackets | None:
    """The brackets of a class, cut where `features` lie.

    Parameters
    ----------
    hypotheses : HypothesisClass
        Any class.
    features : array, shape (rows, columns)
        People whose values become cuts. They must not be those on whom anything is shown.
    group : array, shape (rows,), or None
        Their groups.

    Returns
    -------
    Brackets or None
        None for a class that has none: a fitted one, or thresholds per group with too many groups.

    Examples
    --------
    >>> brackets = brackets_of(Stumps(), np.array([[1.0], [2.0], [4.0]]), None)
    >>> brackets.size
    8
    >>> least, most = brackets.sums(np.array([[1.0], [3.0], [5.0]]), None, np.ones((1, 3)))
    >>> least[0, :4], most[0, :4]
    (array([3., 2., 1., 0.]), array([3., 2., 2., 1.]))
    """
    if isinstance(hypotheses, Stumps):
        columns = tuple(range(features.shape[1]))
        return CutColumns(columns, tuple(_cuts(features[:, j], CUTS) for j in columns), True)
    if isinstance(hypotheses, ScoreThresholds):
        score = features[:, hypotheses.column]
        if not hypotheses.per_group:
            return CutColumns((hypotheses.column,), (_cuts(score, CUTS),), False)
        assert group is not None
        values = list(dict.fromkeys(group.tolist()))
        most = int(MOST_PER_GROUP ** (1 / len(values)) + 1e-9) - 1
        if most < CUTS // 4:
            return None
        return CutGroups(
            hypotheses.column,
            tuple((value, _cuts(score[group == value], most)) for value in values),
        )
    if hypotheses.exact and isfinite(hypotheses.log_size):
        bound = hypotheses.bind(features[:1], None if group is None else group[:1])
        if isinstance(bound, Enumeration):
            members = bound.totals(np.zeros((1, 1))).shape[1]
            # A finite class whose members on one row are all of them: their numbers mean the same
            # on other rows.
            if members == round(float(np.exp(hypotheses.log_size))):
                return Listed(hypotheses, members)
    return None


def _cuts(values: FloatArray, most: int) -> FloatArray:
    """At most so many distinct values, evenly by rank."""
    distinct = np.unique(values)
    if len(distinct) <= most:
        return distinct
    return np.unique(np.quantile(values, np.linspace(0, 1, most), method="nearest"))


def _cut_sums(score: FloatArray, cuts: FloatArray, channels: FloatArray) -> Sums:
    """The sums of the K + 1 brackets of one score."""
    above = np.searchsorted(cuts, score, side="left")  # x > v_k iff k <= above
    from_on = np.searchsorted(cuts, score, side="right")  # x >= v_{k+1} iff k + 1 <= from_on
    size = len(cuts) + 1
    least = np.zeros((len(channels), size))
    most = np.zeros((len(channels), size))
    for c, channel in enumerate(channels):
        most[c] = np.bincount(above, channel, size)[::-1].cumsum()[::-1]
        least[c, :-1] = np.bincount(from_on, channel, size)[::-1].cumsum()[::-1][1:]
    return least, most
