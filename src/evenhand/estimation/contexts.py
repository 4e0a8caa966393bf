"""Equal rows found fast: a hash of each row's bits, and an exact check: different rows never merge.

Large tables are numbered by compiled code in one pass; small ones are hashed column by column and
sorted. Both find the same contexts.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.words import FloatArray, GroupArray, IntArray

COMPILED = 2_000_000
"""Tables with as many numbers are worth loading numba for; where it has been loaded, those with
WORTH_A_CALL are compiled code's.
"""
WORTH_A_CALL = 20_000
FEW_GROUPS = 16
"""So many groups are told apart one after the other, which is faster than a sort."""


@dataclass(frozen=True, eq=False)
class Contexts:
    """Distinct rows in the order in which they first appear: row i equals row first[index[i]]."""

    first: IntArray
    index: IntArray

    def __len__(self) -> int:
        return len(self.first)

    def total(self, value: FloatArray) -> FloatArray:
        """The sum of `value` over the rows of each context."""
        return np.asarray(
            np.bincount(self.index, weights=value, minlength=len(self)), dtype=np.float64
        )


def find_contexts(
    features: FloatArray,
    group: GroupArray | None,
    *more: FloatArray,
    before: FloatArray | None = None,
) -> Contexts:
    """Rows are equal if features, group and every further column are.

    `before`: features of rows that come first, without a copy.
    """
    beside = [*more, *([] if group is None else [numbered(group)[1].astype(np.float64)])]
    columns = (
        np.column_stack(beside)
        if beside
        else np.zeros((len(features) + (0 if before is None else len(before)), 0))
    )
    if features.size + (0 if before is None else before.size) >= (
        WORTH_A_CALL if "numba" in sys.modules else COMPILED
    ):
        return _compiled(
            features if before is None else before,
            features[:0] if before is None else features,
            columns,
        )
    parts = [
        features if before is None else np.concatenate([before, features]),
        *([columns] if beside else []),
    ]
    contexts = _grouped_by(_row_hash(parts))
    if all(np.array_equal(part[contexts.first[contexts.index]], part) for part in parts):
        return contexts
    table = np.column_stack(parts) + 0.0  # -0.0 becomes 0.0, which it equals
    return _grouped_by(np.unique(table, axis=0, return_inverse=True)[1].reshape(-1))


def _compiled(one: FloatArray, two: FloatArray, beside: FloatArray) -> Contexts:
    from evenhand.estimation._context_kernel import (
        number_rows,
    )  # numba is heavy: only large tables load it

    rows = len(beside)
    slots = np.full(1 << (2 * rows).bit_length(), -1)
    first, index = np.empty(rows, np.int64), np.empty(rows, np.int64)
    found = number_rows(
        np.ascontiguousarray(one), np.ascontiguousarray(two), beside, slots, first, index
    )
    return Contexts(first[:found].copy(), index)


def numbered(group: GroupArray) -> tuple[list[Any], IntArray]:
    """The distinct groups, which may be of any hashable kind, in the order in which they first
    appear, and which of them each row has.
    """
    if group.dtype.kind not in "biufUS":
        seen: dict[Any, int] = {}
        codes = [seen.setdefault(value, len(seen)) for value in group.tolist()]
        return list(seen), np.array(codes, dtype=np.int64)
    values: list[Any] = []
    code = np.full(len(group), -1)
    while len(values) < FEW_GROUPS and (code < 0).any():
        value = group[int(np.argmax(code < 0))]
        code[group == value] = len(values)
        values.append(value.item())
    if (code < 0).any():
        _, first, inverse = np.unique(group, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return group[first[order]].tolist(), np.argsort(order)[inverse.reshape(-1)]
    return values, code


def _row_hash(parts: Sequence[FloatArray]) -> NDArray[np.uint64]:
    """h <- (h xor bits) * odd, mixed, column by column, modulo 2^64; -0.0 counts as 0.0, which it
    equals.
    """
    value = np.full(len(parts[0]), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for part in parts:
        for column in part.T:
            value = (value ^ (column + 0.0).view(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
            value ^= value >> np.uint64(29)
    return value


def _grouped_by(key: NDArray[Any]) -> Contexts:
    """The contexts of a one-dimensional key."""
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return Contexts(first[order].astype(np.int64), rank[inverse.reshape(-1)].astype(np.int64))


def joined(parts: Sequence[GroupArray | None]) -> GroupArray | None:
    """Arrays end to end; None as soon as one of them is missing. Numbers among texts stay numbers."""
    present = [part for part in parts if part is not None]
    if not present or len(present) < len(parts):
        return None
    kinds = {part.dtype.kind for part in present}
    mixed = len({kind in "biuf" for kind in kinds}) > 1
    return np.concatenate([part.astype(object) for part in present] if mixed else present)
