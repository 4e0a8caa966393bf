"""The compiled pass of `find_contexts` for large tables: one hash per row, and a check that equal hashes mean equal rows."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from evenhand.words import FloatArray, IntArray


@njit(cache=True, nogil=True)
def row_hashes(table: FloatArray, out: NDArray[np.uint64]) -> None:
    """h <- (h xor bits) * odd, mixed, value by value, modulo 2^64."""
    bits = table.view(np.uint64)
    for i in range(len(table)):
        value = np.uint64(0x9E3779B97F4A7C15)
        for j in range(table.shape[1]):
            value = (value ^ bits[i, j]) * np.uint64(0xBF58476D1CE4E5B9)
            value ^= value >> np.uint64(29)
        out[i] = value


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
