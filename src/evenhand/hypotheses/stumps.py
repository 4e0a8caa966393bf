"""Decision stumps: one cut in one column, in either direction; exact.

Code every column once (code = rank among its distinct values, or its quantile bin). One pass adds
every channel up by code; cumulative sums then give the totals of all cuts of all columns.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contracts import Enumeration, Hypothesis, HypothesisClass
from evenhand.errors import InvalidInput
from evenhand.hypotheses._rows import checked_channels, checked_costs, checked_rows, first_minimum
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.thresholds import Threshold
from evenhand.words import FloatArray, GroupArray, IntArray

MANY_BINS = 16_384
"""Bins of all columns together, above which the pass goes column by column."""


@dataclass(frozen=True)
class Stumps(HypothesisClass):
    """{accept iff x_j >= t} and {accept iff x_j < t} for all columns j and reals t; exact.

    With `max_bins` only that many quantiles of each column are tried as t, and the answer is exact
    among these.
    """

    max_bins: int | None = None
    exact = True
    uses_group = False
    one_column = True
    """Each rule is a threshold on one column: what the DKW bound covers."""

    def __post_init__(self) -> None:
        if self.max_bins is not None and self.max_bins < 2:
            raise InvalidInput(
                f"max_bins is {self.max_bins}; one cut needs 2 bins (None: all distinct values)."
            )

    @property
    def params(self) -> Mapping[str, Any]:
        """Class and bins."""
        return {"class": "Stumps", "max_bins": self.max_bins}

    @property
    def log_size(self) -> float:
        """Infinite: t is real."""
        return math.inf

    def log_growth(self, rows: int, columns: int) -> float:
        """ln(2 + 2 columns (rows - 1)), with bins, too: their edges come from the data, so every
        stump may be tried.
        """
        return math.log(2 + 2 * columns * (max(rows, 1) - 1))

    def bind(self, features: FloatArray, group: GroupArray | None) -> Enumeration:
        """Code the columns once."""
        rows = checked_rows(features)
        edges = [_edges(column, self.max_bins) for column in rows.T]
        widest = max(len(e) for e in edges)
        many = sum(len(e) for e in edges) > MANY_BINS
        codes = np.empty(
            rows.shape,
            order="F" if many else "C",
            dtype=np.uint8 if widest <= 256 else np.uint16 if widest <= 65536 else np.int32,
        )
        for j, column in enumerate(rows.T):
            codes[:, j] = np.searchsorted(edges[j], column, side="right") - 1
        return _BoundStumps(
            codes, np.concatenate([[0], np.cumsum([len(e) for e in edges])]), np.concatenate(edges)
        )


def _edges(column: FloatArray, max_bins: int | None) -> FloatArray:
    """The lowest value of each bin, ascending, all of them observed; one per distinct value if
    these are few.
    """
    if max_bins is None:
        return np.unique(column)
    ranked = np.sort(column)
    new = np.flatnonzero(ranked[1:] != ranked[:-1]) + 1
    if len(new) < max_bins:
        return np.asarray(ranked[np.concatenate([[0], new])])
    return np.unique(ranked[np.arange(max_bins) * len(ranked) // max_bins])


@dataclass(frozen=True, eq=False)
class _BoundStumps:
    """Coded columns; edges[starts[j] : starts[j + 1]] are the values of column j's codes.

    Members: accept all, reject all, x >= edge for every column and every edge but its lowest, then
    x < edge likewise.
    """

    codes: NDArray[Any]
    starts: IntArray
    edges: FloatArray

    def totals(self, channels: FloatArray) -> FloatArray:
        """One pass over the codes per two channels, then cumulative sums over the bins."""
        from evenhand.hypotheses import (
            _kernels,
        )  # numba is heavy: only those who use stumps load it

        checked = checked_channels(channels, len(self.codes))
        out = np.empty((len(checked), 2 + 2 * self._cuts))
        for c in range(0, len(checked), 2):
            pair = checked[c : c + 2]
            sums = np.zeros((len(self.edges), len(pair)))
            add: Callable[..., None] = self._adders(_kernels)[len(pair) - 1]
            add(self.codes, self.starts, *pair, sums)
            _kernels.cut_totals(sums, self.starts, out[c : c + 2])
        return out

    def _adders(self, kernels: Any) -> tuple[Callable[..., None], Callable[..., None]]:
        """For one channel and for two: row by row while all sums fit into the cache, else column by
        column.
        """
        if len(self.edges) > MANY_BINS:
            return kernels.add_one_by_column, kernels.add_two_by_column
        return kernels.add_one, kernels.add_two

    def best(self, acceptance_cost: FloatArray) -> Hypothesis:
        """argmin of totals; ties go to accept-all, reject-all, then the first column's lowest cut."""
        cost = checked_costs(acceptance_cost, len(self.codes))
        return self.hypothesis(first_minimum(self.totals(cost[np.newaxis])[0], cost))

    def hypothesis(self, member: int) -> Hypothesis:
        """The member with that index."""
        if member < 2:
            return (ACCEPT_ALL, REJECT_ALL)[member]
        below, cut = divmod(member - 2, self._cuts)
        columns = len(self.starts) - 1
        first_cut = self.starts[:-1] - np.arange(columns)
        column = int(np.searchsorted(first_cut, cut, side="right")) - 1
        return Threshold(column, float(self.edges[cut + column + 1]), columns, at_least=below == 0)

    @property
    def _cuts(self) -> int:
        return len(self.edges) - (len(self.starts) - 1)
