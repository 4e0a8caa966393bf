"""Rounds that look alike to the bound, counted together: a mixture has few acceptance probabilities, and a regression may be coarse.

The sums of `betting` see a round only through its group, w = 1/p, m, outcome and h(x). Where few triples (group, w, m) occur among many
rows, a hypothesis needs one count for each of them and outcome: one addition per row instead of one polynomial per row and bet.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.words import BoolArray, FloatArray, IntArray

MOST_VALUES = 256
"""So many values of p, and of m, at most."""
LEAST_ROWS = 2000
CROWD = 8
"""Rows per cell from which counting pays."""


@dataclass(frozen=True, eq=False)
class Cells:
    """group, inverse, regression (C,); total (4, C): rounds rejected, hit, miss and unresolved; the entries say where each row counts."""

    group: IntArray
    inverse: FloatArray
    regression: FloatArray
    total: FloatArray
    row: IntArray
    slot: IntArray
    count: FloatArray

    def taken(self, accepts: BoolArray) -> FloatArray:
        """(M, 4, C): the part of `total` that each hypothesis accepts."""
        from evenhand.fairness.bounds import _betting_kernel

        found = np.zeros((len(accepts), self.total.size))
        count_accepted: Any = _betting_kernel.count_accepted
        count_accepted(accepts, self.row, self.slot, self.count, found)
        return found.reshape(len(accepts), *self.total.shape)


def cells_of(group: IntArray, inverse: FloatArray, regression: FloatArray, outcomes: FloatArray) -> Cells | None:
    """The cells of a cohort whose outcomes (4, n) are counts; None where rows are few, or too different from each other."""
    if len(group) < LEAST_ROWS:
        return None
    values = [_values(column) for column in (inverse, regression)]
    if any(found is None for found in values):
        return None
    (w, w_at), (m, m_at) = (found for found in values if found is not None)
    inside = np.flatnonzero(group >= 0)
    groups = int(group.max(initial=0)) + 1
    code = ((group * len(w) + w_at) * len(m) + m_at)[inside]
    used, cell = _used(code, groups * len(w) * len(m))
    if len(used) * CROWD > len(group):
        return None
    which, place = np.nonzero(outcomes[:, inside])
    slot, count = which * len(used) + cell[place], outcomes[which, inside[place]]
    total = np.bincount(slot, weights=count, minlength=4 * len(used)).astype(np.float64).reshape(4, -1)
    of_group, rest = np.divmod(used, len(w) * len(m))
    return Cells(of_group, w[rest // len(m)], m[rest % len(m)], total, inside[place], slot, count)


def _values(column: FloatArray) -> tuple[FloatArray, IntArray] | None:
    """Distinct values and where each entry is; None if they are too many, which a first part of the column may show."""
    if len(np.unique(column[: 4 * MOST_VALUES])) > MOST_VALUES:
        return None
    found, at = np.unique(column, return_inverse=True)
    return (found, at.astype(np.int64)) if len(found) <= MOST_VALUES else None


def _used(code: IntArray, codes: int) -> tuple[IntArray, IntArray]:
    """The codes that occur, and the place of each entry among them."""
    occurs = np.bincount(code, minlength=codes) > 0
    used = np.flatnonzero(occurs).astype(np.int64)
    place = np.cumsum(occurs) - 1
    return used, place[code].astype(np.int64)
