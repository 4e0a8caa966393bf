"""What was derived is forgotten with people."""

import numpy as np
from tests.rounds.made import table

from evenhand.rounds import reports


def test_what_was_derived_so_far_is_forgotten_with_people():
    rounds = table()
    assert rounds.cache.of_prefix("sum") == (0, None)
    for forget in (
        lambda: reports.erase(rounds, np.array([3])),
        lambda: reports.overrule(rounds, np.array([5]), ~rounds["accept"][[5]]),
        lambda: rounds.drop_from(50),
    ):
        rounds.cache.keep_prefix("sum", 40, "all of them")
        assert rounds.cache.of_prefix("sum") == (40, "all of them")
        forget()
        assert rounds.cache.of_prefix("sum") == (0, None)
