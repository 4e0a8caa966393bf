"""The compiled pass of `find_contexts`: rows are numbered in the order in which they first appear,
by a table of hashes.
"""

import numpy as np
from numba import njit

from evenhand.words import FloatArray, IntArray


@njit(cache=True, nogil=True)
def number_rows(
    one: FloatArray,
    two: FloatArray,
    beside: FloatArray,
    slots: IntArray,
    first: IntArray,
    index: IntArray,
) -> int:
    """Rows of `one`, then those of `two`, each followed by its columns in `beside`. index[i]: the
    number of row i among the distinct rows; first[number]: where it appears first. How many there
    are.

    slots: -1 everywhere, a power of two and at least twice as many as rows. The hash of a row is
    the sum over its columns of the value's bits, mixed with the column's number, modulo 2^64; zeros
    of either sign add nothing. Equal hashes are checked value by value.
    """
    start, columns, found, mask = len(one), one.shape[1], 0, np.uint64(len(slots) - 1)
    hashes = np.empty(len(beside), np.uint64)
    for i in range(len(beside)):
        key = _hash(one[i] if i < start else two[i - start], np.uint64(0)) + _hash(
            beside[i], np.uint64(columns)
        )
        slot = key & mask
        while True:
            number = slots[slot]
            if number < 0:
                slots[slot], first[found], hashes[found], index[i] = found, i, key, found
                found += 1
                break
            other = first[number]
            known, new = (
                one[other] if other < start else two[other - start],
                one[i] if i < start else two[i - start],
            )
            if hashes[number] == key and _same(beside[other], beside[i]) and _same(known, new):
                index[i] = number
                break
            slot = (slot + np.uint64(1)) & mask
    return found


@njit(cache=True, nogil=True)
def _hash(row: FloatArray, column: np.uint64) -> np.uint64:
    key, bits = np.uint64(0), row.view(np.uint64)
    for j in range(len(row)):
        if row[j] != 0.0:
            place = (column + np.uint64(j)) << np.uint64(1)
            mixed = (bits[j] ^ place) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(29))) * (np.uint64(0x94D049BB133111EB) + place)
            key += mixed ^ (mixed >> np.uint64(32))
    return key


@njit(cache=True, nogil=True)
def _same(row: FloatArray, other: FloatArray) -> bool:
    for j in range(len(row)):  # noqa: SIM110  (numba compiles no generators inside all())
        if row[j] != other[j]:
            return False
    return True
