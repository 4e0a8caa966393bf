"""The first people of all."""

import numpy as np
import pytest
from tests.play import decide_people
from tests.rounds.made import EVERYBODY, PEOPLE, first, table

from evenhand.algorithms.arrivals import arrivals_before
from evenhand.errors import ProtocolError
from evenhand.estimation import RoundLog
from evenhand.randomness import stream
from evenhand.rounds import FOREVER, Counts, Epoch, Rounds, reports


class TestArrivals:
    def test_they_are_the_first_people_in_order(self):
        rounds = table(60, policy=EVERYBODY)
        reports.overrule(rounds, np.array([5]), np.array([False]))
        arrivals = arrivals_before(rounds, 40, without=(7, 50))
        assert (arrivals.features == PEOPLE.features[:40]).all()
        known = np.where(np.isin(np.arange(40), [5, 7]), 0, PEOPLE.label[:40])
        assert (arrivals.label == known).all()
        assert arrivals.missing == 2
        assert arrivals.groups == tuple(dict.fromkeys(PEOPLE.group[:40].tolist()))

    def test_counts_are_people_too_and_cannot_be_cut(self):
        rounds = Rounds()
        rounds.open(Epoch(1, "explore", 0, FOREVER, EVERYBODY))
        log = RoundLog(np.zeros((1, 1)), np.array(["a"]), [1.0], [0.0], [5.0], [5.0])
        rounds.append_counts(Counts.of_log(1, 0, log, 0.0, stream(1, "audit")))
        decide_people(rounds, first(5), EVERYBODY, stream(1, "coins"), epoch=1)
        arrivals = arrivals_before(rounds, 15)
        assert arrivals.count.sum() == 15
        assert arrivals.missing == 5
        with pytest.raises(ProtocolError):
            arrivals_before(rounds, 8)
