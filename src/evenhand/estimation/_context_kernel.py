"""The loop of `find_contexts`: rows are numbered in the order in which they first appear, by a
table of hashes in compiled code, by a sort of hashes in NumPy.
"""

import numpy as np
from numpy.typing import NDArray

from evenhand.computing import compiled
from evenhand.words import FloatArray, IntArray


def _number_rows(
    one: FloatArray, two: FloatArray, beside: FloatArray, first: IntArray, index: IntArray
) -> int:
    parts = [np.concatenate([one, two]) if len(two) else one, beside]
    found = _grouped_by(_row_hash(parts), first, index)
    if not all(np.array_equal(part[first[index]], part) for part in parts):
        table = np.column_stack(parts) + 0.0
        equal = np.unique(table, axis=0, return_inverse=True)[1].reshape(-1)
        found = _grouped_by(equal, first, index)
    return found


def _row_hash(parts: list[FloatArray]) -> NDArray[np.uint64]:
    """h <- (h xor bits) * odd, mixed, column by column, modulo 2^64; -0.0 counts as 0.0, which it
    equals.
    """
    key = np.full(len(parts[0]), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for part in parts:
        for column in part.T:
            key = (key ^ (column + 0.0).view(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
            key ^= key >> np.uint64(29)
    return key


def _grouped_by(key: NDArray[np.generic], first: IntArray, index: IntArray) -> int:
    """Numbers the values of a one-dimensional key."""
    _, where, inverse = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(where)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    first[: len(order)], index[:] = where[order], rank[inverse.reshape(-1)]
    return len(order)


@compiled(_number_rows, pays=5_000_000)
def number_rows(
    one: FloatArray, two: FloatArray, beside: FloatArray, first: IntArray, index: IntArray
) -> int:
    """Rows of `one`, then those of `two`, each followed by its columns in `beside`. index[i]: the
    number of row i among the distinct rows; first[number]: where it appears first. How many there
    are.

    The hash of a row is the sum over its columns of the value's bits, mixed with the column's
    number, modulo 2^64; zeros of either sign add nothing. Equal hashes are checked value by value.
    """

    def hashed(row: FloatArray, column: np.uint64) -> np.uint64:
        key, bits = np.uint64(0), row.view(np.uint64)
        for j in range(len(row)):
            if row[j] != 0.0:
                place = (column + np.uint64(j)) << np.uint64(1)
                mixed = (bits[j] ^ place) * np.uint64(0xBF58476D1CE4E5B9)
                mixed = (mixed ^ (mixed >> np.uint64(29))) * (np.uint64(0x94D049BB133111EB) + place)
                key += mixed ^ (mixed >> np.uint64(32))
        return key

    def same(row: FloatArray, other: FloatArray) -> bool:
        equal = True
        for j in range(len(row)):
            equal = equal and row[j] == other[j]
        return equal

    size = 2
    while size < 2 * len(beside):
        size *= 2
    slots = np.full(size, -1)
    start, columns, found, mask = len(one), one.shape[1], 0, np.uint64(size - 1)
    hashes = np.empty(len(beside), np.uint64)
    for i in range(len(beside)):
        new = one[i] if i < start else two[i - start]
        key = hashed(new, np.uint64(0)) + hashed(beside[i], np.uint64(columns))
        slot = key & mask
        while True:
            number = slots[slot]
            if number < 0:
                slots[slot], first[found], hashes[found], index[i] = found, i, key, found
                found += 1
                break
            other = first[number]
            known = one[other] if other < start else two[other - start]
            if hashes[number] == key and same(beside[other], beside[i]) and same(known, new):
                index[i] = number
                break
            slot = (slot + np.uint64(1)) & mask
    return found
