"""Features in chunks."""

import numpy as np
import pytest
from tests.rounds.made import EVERYBODY, append_accepted, table

from evenhand.rounds import Epoch, Rounds, reports
from evenhand.rounds.stored import from_fields, to_fields


@pytest.mark.parametrize("size", [5, 64])
def test_features_in_chunks_are_those_of_one_array(monkeypatch, size):
    """Blocks of any length, rows in any order: an array that holds all of them is the truth."""
    monkeypatch.setattr("evenhand.rounds.features.CHUNK", size)
    generator = np.random.default_rng(0)
    rounds = Rounds()
    rounds.open(Epoch(1, "explore", 0, 1000, EVERYBODY))
    whole = np.zeros((0, 3))
    for people in (1, 2, 7, 1, 20, 0, 64, 3, 100):
        new = generator.normal(size=(people, 3))
        whole = np.concatenate([whole, new])
        if people == 1:
            rounds.append_one(1, new, "a", True, 1.0, False, None, None)
        else:
            append_accepted(rounds, new)
    rounds.returned = rounds.decided
    gone = np.array([0, 4, 5, 63, 64, 150])
    reports.erase(rounds, gone)
    whole[gone] = 0.0

    def check(table, expected):
        shuffled = generator.permutation(len(expected))
        chosen = generator.random(len(expected)) < 0.3
        for rows in (shuffled, chosen, shuffled[:0], np.array([3, 3, 70])):
            np.testing.assert_array_equal(table.features_of(rows), expected[rows])
        for rows in (slice(None), slice(4, 6), slice(3, 71), slice(-9, None), slice(9, 2)):
            np.testing.assert_array_equal(table.features_of(rows), expected[rows])

    check(rounds, whole)
    check(from_fields(to_fields(rounds)), whole)
    rounds.drop_from(100)
    check(rounds, whole[:100])


def test_chunks_of_features_never_move(monkeypatch):
    monkeypatch.setattr("evenhand.rounds.features.CHUNK", 128)
    rounds = table(300)
    first = rounds.features_of(slice(0, 128))
    append_accepted(rounds, np.ones((5000, rounds.columns)))
    assert np.shares_memory(first, rounds.features_of(slice(0, 128)))
