"""Levels of rounds."""

import numpy as np

from evenhand.algorithms.certified.sampling import least_level, sampling_level


def test_levels_halve_any_stretch_of_rounds_whatever_the_rhythm():
    for first, step in ((0, 1), (12_345, 1), (0, 2), (1, 2), (3, 7), (10**9, 64)):
        level = sampling_level(np.arange(first, first + 4096 * step, step))
        for k in range(6):
            assert abs((level >= k).mean() - 0.5**k) < 0.02
    assert sampling_level(np.array([0]))[0] == 32
    assert least_level(5, 10) == least_level(10, 10) == 0
    assert least_level(11, 10) == 1
    assert least_level(81, 10) == 4
