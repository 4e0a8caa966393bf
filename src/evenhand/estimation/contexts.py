"""Equal rows found fast: a hash of each row's bits, one sort, and an exact check: different rows never merge."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.words import FloatArray, GroupArray, IntArray

COMPILED = 2_000_000
"""Tables with as many numbers are hashed by compiled code."""


@dataclass(frozen=True, eq=False)
class Contexts:
    """Distinct rows in the order in which they first appear: row i equals row first[index[i]]."""

    first: IntArray
    index: IntArray

    def __len__(self) -> int:
        return len(self.first)

    def total(self, value: FloatArray) -> FloatArray:
        """The sum of `value` over the rows of each context."""
        return np.asarray(np.bincount(self.index, weights=value, minlength=len(self)), dtype=np.float64)


def find_contexts(features: FloatArray, group: GroupArray | None, *more: FloatArray) -> Contexts:
    """Rows are equal if features, group and every further column are."""
    beside = [*more, *([] if group is None else [_codes(group)])]
    parts = [features, *([np.column_stack(beside)] if beside else [])]  # wide features are never copied
    contexts = _grouped_by(_row_hash(parts))
    if all(_same_rows(part, contexts) for part in parts):
        return contexts
    table = np.column_stack(parts) + 0.0  # -0.0 becomes 0.0, which it equals
    return _grouped_by(np.unique(table, axis=0, return_inverse=True)[1].reshape(-1))


def _codes(group: GroupArray) -> FloatArray:
    """0, 1, 2, ... for the distinct groups, which may be of any hashable kind."""
    seen: dict[Any, int] = {}
    return np.array([seen.setdefault(value, len(seen)) for value in group.tolist()], dtype=np.float64)


def _row_hash(parts: Sequence[FloatArray]) -> NDArray[np.uint64]:
    """h <- (h xor bits) * odd, mixed, column by column, modulo 2^64; -0.0 counts as 0.0, which it equals."""
    value = np.full(len(parts[0]), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for part in parts:
        if part.size >= COMPILED:
            from evenhand.estimation._context_kernel import mix_rows  # numba is heavy: only large tables load it

            mix_rows(np.ascontiguousarray(part), value)
            continue
        for column in part.T:
            value = (value ^ (column + 0.0).view(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
            value ^= value >> np.uint64(29)
    return value


def _same_rows(part: FloatArray, contexts: Contexts) -> bool:
    if part.size >= COMPILED:
        from evenhand.estimation._context_kernel import same_rows  # see above

        return bool(same_rows(part, contexts.first, contexts.index))
    return np.array_equal(part[contexts.first[contexts.index]], part)


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
    mixed = len({part.dtype.kind in "biuf" for part in present}) > 1
    return np.concatenate([part.astype(object) for part in present] if mixed else present)
