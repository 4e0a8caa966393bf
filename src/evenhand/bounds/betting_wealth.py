"""The wealth of every process at the nodes of [0, 1], and what it says about rates and gaps.

[0, 1] is cut, before any data, into CELLS between EDGES, and the cells are gathered into CLASSES.
For one class [a, b], a group j, a bet lambda, a side and a hypothesis that accepts the row (h = 1)
or rejects it (h = 0):

    g = min(lambda c_j, THETA / max(1 - a, b)),    s = 1 - a if h = 1 else b,    R = THETA / (g s) >= 1
    phi > 0 is dangerous (up and h = 1, low and h = 0):   m' = max(m, (w - R)/(w - 1)),   w = 1/p
    phi < 0 is dangerous (up and h = 0, low and h = 1):   m' = min(m, R/(w - 1))
    phi = m' (rejected),  w - m'(w - 1) (accepted, hit),  -m'(w - 1) (accepted, miss)
    ln W(f) = sum over rows of ln(1 -+ g phi (h - f))       - for up, + for low

so that g |phi| |h - f| <= THETA for phi of the dangerous sign and every f of the class. A label
that has not arrived is a hit where phi > 0 is dangerous and a miss where phi < 0 is: the smaller
factor. Where the clamp binds, the dangerous phi is written as R: w - m'(w - 1) would lose digits at
small p.

ln W is a sum of logarithms of affine functions of f, so it is concave on the class, and in a cell
it lies above the chord through its values at the two nodes. Where the chord exceeds the threshold,
ln W does:

    one group        points f of a cell with chord > L are out
    a pair of cells  points (f_j, f_i) with chord_j^up + chord_i^low > L are out

The classes share their borders, so there are 46 nodes for 38 cells. Rows of equal group, w, m and
outcome are counted together, and the bets of a plan are few (`betting_plan`), so that the
logarithms are computed once for all hypotheses; what a hypothesis adds is a product of its counts
with them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.words import BoolArray, FloatArray, IntArray

THETA = 0.8
"""Every factor is at least 1 - THETA."""
_LEFT = (0, 0.01, 0.035, 0.07, 0.115, 0.16, 0.21, 0.27, 0.35, 0.42)
_BORDERS = (0, 0.035, 0.115, 0.27)
EDGES = np.array([*_LEFT, 0.5, *(1.0 - np.array(_LEFT[::-1]))])
CLASSES = np.array([*_BORDERS, 0.5, *(1.0 - np.array(_BORDERS[::-1]))])
_CUTS = np.searchsorted(EDGES, CLASSES - 1e-9)
SPANS = tuple(slice(_CUTS[c] + c, _CUTS[c + 1] + c + 1) for c in range(len(CLASSES) - 1))
"""The nodes of each class."""
NODES = np.concatenate([EDGES[_CUTS[c] : _CUTS[c + 1] + 1] for c in range(len(CLASSES) - 1)])
CLASS_OF_CELL = np.repeat(np.arange(len(CLASSES) - 1), np.diff(_CUTS))
CLASS_OF_NODE = np.repeat(np.arange(len(CLASSES) - 1), np.diff(_CUTS) + 1)
LEFT_NODE = np.arange(len(EDGES) - 1) + CLASS_OF_CELL
"""The node at the left end of each cell; the next one is at its right end."""
ROUNDING = 1e-9
"""Thresholds are raised by this much: rounding may never cut off a point."""
AT_ONCE = 100_000
"""Logarithms that are computed at a time, few enough to stay in the cache."""
MOST_ENTRIES = 20_000
"""Rows, or kinds of rounds, that are looked at together."""
REJECTED, HIT, MISS, UNRESOLVED = range(4)
UP, LOW = 0, 1
"""The two sides of a process: up rejects high rates, low rejects low ones."""
SIDES = np.array([[UP], [LOW]])


@dataclass(frozen=True, eq=False)
class Entries:
    """The rounds of one group, those that look alike counted together: w, m, kind and count (E,).

    A hypothesis sees them through people (M, S): with `starts`, entries of the same row stand next
    to each other, and people says whether h accepts the row; without, people says how many rounds
    of each entry h accepts.
    """

    inverse: FloatArray
    regression: FloatArray
    kind: IntArray
    count: FloatArray
    people: FloatArray
    starts: IntArray | None

    @classmethod
    def of_groups(
        cls,
        accepts: BoolArray,
        group: IntArray,
        inverse: FloatArray,
        regression: FloatArray,
        outcomes: FloatArray,
        groups: int,
    ) -> Iterator[tuple[int, "Entries"]]:
        """(group, entries), a part at a time, from rows with outcomes (4, n): rounds rejected, hit,
        miss, unresolved; -1 is no group.

        Where p = 1, phi is 1 for a hit and 0 for a miss whatever m is: hits look alike, and the
        rest brings nothing.
        """
        certain = inverse == 1.0
        brings = (outcomes != 0) & ~(certain & np.array([[True], [False], [True], [False]]))
        m = np.where(certain, 0.0, regression)
        for j in range(groups):
            row, kind = np.nonzero((brings & (group == j)).T)
            count, w = outcomes[kind, row], inverse[row]
            order = np.lexsort((kind, w, m[row]))
            look = np.stack([kind[order], w[order], m[row][order]])
            first = np.ones(len(order), dtype=bool)
            first[1:] = (look[:, 1:] != look[:, :-1]).any(axis=0)
            starts = np.flatnonzero(np.diff(row, prepend=-1))
            if np.count_nonzero(first) >= len(starts):
                ends = np.append(starts, len(row))
                for at in range(0, len(starts), MOST_ENTRIES):
                    own, part = (
                        starts[at : at + MOST_ENTRIES],
                        slice(ends[at], ends[min(at + MOST_ENTRIES, len(starts))]),
                    )
                    people = accepts[:, row[own]].astype(np.float64)
                    yield (
                        j,
                        cls(w[part], m[row[part]], kind[part], count[part], people, own - ends[at]),
                    )
                continue
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.cumsum(first) - 1
            alike = look[:, first]
            from scipy import sparse  # heavy, and needed for many rows alone

            counted = sparse.csr_array((count, (place, row)), shape=(alike.shape[1], len(group)))
            taken = np.ascontiguousarray((counted @ accepts.T.astype(np.float64)).T)
            total = np.bincount(place, weights=count, minlength=alike.shape[1]).astype(np.float64)
            for at in range(0, alike.shape[1], MOST_ENTRIES):
                part = slice(at, at + MOST_ENTRIES)
                kinds = alike[0, part].astype(np.int64)
                yield (
                    j,
                    cls(alike[1, part], alike[2, part], kinds, total[part], taken[:, part], None),
                )

    def changes(self, stakes: FloatArray, nodes: IntArray) -> tuple[FloatArray, FloatArray]:
        """What `people` is multiplied with, (stakes, S, 2 nodes), and what is added to that,
        (stakes, 2 nodes), for ln W at the nodes.
        """
        everybody = np.arange(len(self.kind))
        if (
            self.starts is not None and len(self.people) == 1
        ):  # every entry is either accepted or rejected
            taken = np.repeat(self.people[0] > 0, np.diff(self.starts, append=len(self.kind)))
            parts = (everybody[taken == h] for h in (False, True))
            added = sum(
                self.count[part] @ self.log_factors(stakes, nodes, h == 1, part)
                for h, part in enumerate(parts)
            )
            return np.zeros((len(stakes), 0, 2 * len(nodes))), np.asarray(added)
        rejects, accepts = (self.log_factors(stakes, nodes, h, everybody) for h in (False, True))
        change = np.subtract(accepts, rejects, out=accepts)
        if self.starts is not None:
            change *= self.count[:, np.newaxis]
            change = np.add.reduceat(change, self.starts, axis=1)
        return change, np.asarray(self.count @ rejects)

    def log_factors(
        self, stakes: FloatArray, nodes: IntArray, accepts: bool, entries: IntArray
    ) -> FloatArray:
        """(stakes, entries, 2 nodes): ln(1 - g phi (h - f)), then ln(1 + g phi (h - f)), for h = 1
        if `accepts`, else 0.
        """
        classes, of_node = np.unique(CLASS_OF_NODE[nodes], return_inverse=True)
        w, m, kind = (
            column[entries, np.newaxis] for column in (self.inverse, self.regression, self.kind)
        )
        a, b = CLASSES[classes], CLASSES[classes + 1]
        g = np.minimum(stakes[:, np.newaxis, np.newaxis], THETA / np.maximum(1.0 - a, b))
        reach = THETA / (g * ((1.0 - a) if accepts else b))
        more = w - 1.0
        odds = np.divide(1.0, more, out=np.full(w.shape, 1e200), where=more > 0.0)
        hit, rejected = kind == HIT, kind == REJECTED
        over = np.maximum(m, np.minimum(1.0, 1.0 - (reach - 1.0) * odds))
        high = np.where(
            rejected, over, np.where(kind == MISS, -over * more, np.minimum(w - m * more, reach))
        )
        under = np.minimum(m, np.minimum(reach * odds, 1.0))
        low = np.where(
            rejected, under, np.where(hit, w - under * more, -np.minimum(m * more, reach))
        )
        up, down = (high, low) if accepts else (low, high)
        found = np.concatenate([(-g * up)[..., of_node], (g * down)[..., of_node]], axis=2)
        found *= np.tile(float(accepts) - NODES[nodes], 2)
        found += 1.0
        return np.asarray(np.log(found, out=found))


def add_wealth(
    wealth: FloatArray, entries: Entries, bets: FloatArray, inverse_share: float, alive: BoolArray
) -> None:
    """Add what the entries of one group bring to wealth (M, K, 2, nodes), with bets (M, K), in the
    classes alive (M, classes).
    """
    nodes = np.flatnonzero(np.asarray(alive.any(axis=0))[CLASS_OF_NODE])
    different = np.unique(bets[bets > 0])
    if not (len(entries.kind) and len(nodes) and len(different)):
        return
    together = max(1, AT_ONCE // (len(entries.kind) * len(nodes)))
    for first in range(0, len(different), together):
        some = different[first : first + together]
        for bet, change, added in zip(
            some, *entries.changes(some * inverse_share, nodes), strict=True
        ):
            members, k = np.nonzero(bets == bet)
            brought = (entries.people[members, : len(change)] @ change + added).reshape(
                -1, 2, len(nodes)
            )
            if len(nodes) == wealth.shape[-1]:  # whole rows are added faster
                wealth[members, k] += brought
            else:
                wealth[
                    members[:, np.newaxis, np.newaxis], k[:, np.newaxis, np.newaxis], SIDES, nodes
                ] += brought


def narrow_cells(
    wealth: FloatArray, threshold: FloatArray, lower: FloatArray, upper: FloatArray
) -> None:
    """Take from each cell, lower and upper (B, cells), what a single process excludes: wealth (B,
    K, 2, nodes), threshold (B, K).

    The chord is linear, so what it leaves of a cell is an interval; an empty one has lower > upper.
    """
    from evenhand.bounds import (
        _betting_kernel,
    )  # numba is heavy: only those who bet load it

    kernel: Any = _betting_kernel
    kernel.narrow_cells(wealth, threshold + ROUNDING, EDGES, LEFT_NODE, lower, upper)


def largest_gaps(
    wealth_j: FloatArray,
    wealth_i: FloatArray,
    cells_j: tuple[FloatArray, FloatArray],
    cells_i: tuple[FloatArray, FloatArray],
    threshold: FloatArray,
) -> FloatArray:
    """(B,): the largest f_j - f_i that the pairs leave, over all pairs of cells; -inf if nothing is
    left.

    wealth (B, K, 2, nodes) of either group; cells: (lower, upper), (B, cells) each; threshold (B,
    K). Each bet leaves, of a pair of cells, the points below one line; the largest difference below
    all lines is at most the least of the largest below each.
    """
    from evenhand.bounds import _betting_kernel

    kernel: Any = _betting_kernel
    found = np.empty(len(threshold))
    kernel.largest_gaps(
        wealth_j, wealth_i, *cells_j, *cells_i, threshold + ROUNDING, EDGES, LEFT_NODE, found
    )
    return found
