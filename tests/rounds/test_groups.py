"""Groups and their numbers."""

import numpy as np

from evenhand.rounds import Rounds


def test_groups_of_several_kinds_stay_what_they_are():
    rounds = Rounds()
    given = ["1", 1, True, frozenset({2}), None, "no", "north"]
    for group in given:
        rounds.append_one(1, np.zeros((1, 1)), group, True, 1.0, False, None, None)
    found = rounds.groups_of(slice(None)).tolist()
    assert found[0] == "1"
    assert found[3:] == given[3:]
    assert found[1] == found[2] == 1  # equal values are one group, as in a dictionary
