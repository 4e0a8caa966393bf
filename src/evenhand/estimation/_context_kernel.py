"""The compiled pass of `find_contexts` for large tables: one hash per row, and a check that equal hashes mean equal rows."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from evenhand.words import FloatArray, IntArray


@njit(cache=True, nogil=True)
def mix_rows(table: FloatArray, hashes: NDArray[np.uint64]) -> None:
    """h <- (h xor bits) * odd, mixed, value by value, modulo 2^64; the bits of -0.0 are taken for those of 0.0."""
    bits = table.view(np.uint64)
    for i in range(len(table)):
        value = hashes[i]
        for j in range(table.shape[1]):
            seen = bits[i, j]
            if seen == np.uint64(0x8000000000000000):
                seen = np.uint64(0)
            value = (value ^ seen) * np.uint64(0xBF58476D1CE4E5B9)
            value ^= value >> np.uint64(29)
        hashes[i] = value


@njit(cache=True, nogil=True)
def same_rows(table: FloatArray, first: IntArray, index: IntArray) -> bool:
    """Whether row i equals row first[index[i]] for every i."""
    for i in range(len(table)):
        other = first[index[i]]
        if other != i:
            for j in range(table.shape[1]):
                if table[i, j] != table[other, j]:
                    return False
    return True
