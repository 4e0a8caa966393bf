"""A sample of rounds that depends on nothing about people: a level of each round's number."""

from math import ceil, log2

import numpy as np

from evenhand.words import IntArray

ROWS_AT_ONCE = 65_536
"""Rows that are looked at at a time, so that the sampling of a long cohort takes no memory."""


def sampling_level(round_ids: IntArray) -> IntArray:
    """0 for half of all rounds, 1 for a quarter, 2 for an eighth, ...: the number of leading zero
    bits of (n phi mod 1), phi the golden ratio, to 32 bits. To keep the rounds of a level and above
    is to keep a sample that depends on nothing about people, that is spread evenly over any stretch
    of rounds, whatever rhythm people come in, and of which every smaller one is a part.
    """
    fraction = round_ids.astype(np.uint64)
    fraction *= np.uint64(0x9E3779B97F4A7C15)
    fraction >>= np.uint64(32)
    # frexp: the number of bits that are left
    return np.asarray(32 - np.frexp(fraction.astype(np.float64))[1], dtype=np.int64)


def least_level(people: int, most: int) -> int:
    """The level from which on about `most` of so many people are kept."""
    return max(ceil(log2(people / most)), 0)
