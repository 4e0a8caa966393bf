"""Windows: whose label may still come."""

import numpy as np
from tests.play import decide_people
from tests.rounds.made import EVERYBODY, MIXED, PEOPLE, first, of_kind, table

from evenhand.algorithms.certified import drift
from evenhand.randomness import stream
from evenhand.rounds import PATIENCE, Rounds, learning, reports, windows


class TestTime:
    def test_a_label_within_the_window_settles_and_a_later_one_does_not(self):
        rounds = table(8, policy=EVERYBODY, told=False, at=0.0)
        for numbers, labels, now in (([0, 1], [1, -1], 9.9), ([2, 3], [1, -1], 10.0)):
            window_open = windows.window_open(rounds, np.array(numbers), now, 10.0)
            reports.enter_labels(
                rounds, np.array(numbers), np.array(labels), window_open=window_open
            )
        assert rounds["settled"].tolist() == [1, -1, 0, 0, 0, 0, 0, 0]
        assert rounds["label"].tolist() == [1, -1, 1, -1, 0, 0, 0, 0]

    def test_who_is_lost_within_the_window_has_not_come_and_later_nothing_changes(self):
        rounds = table(4, policy=EVERYBODY, told=False)
        reports.enter_labels(rounds, np.arange(4), np.array([1, -1, 1, -1]))
        reports.overrule(rounds, np.array([0]), np.array([False]), window_open=True)
        reports.erase(rounds, np.array([1]), window_open=True)
        reports.overrule(rounds, np.array([2]), np.array([False]), window_open=False)
        reports.erase(rounds, np.array([3]), window_open=False)
        assert rounds["settled"].tolist() == [0, 0, 1, -1]
        assert rounds["label"].tolist() == [0, 0, 0, 0]

    def test_without_a_window_patience_is_counted_from_the_end_of_the_call(self):
        rounds = table(10, told=False)
        one = np.array([0])
        for more in (PATIENCE - 1, 1):
            assert bool(np.all(windows.window_open(rounds, one, None, None)))
            decide_people(rounds, first(more), MIXED, stream(1, "more"), epoch=1)
        assert not np.any(windows.window_open(rounds, one, None, None))

    def test_cohorts_close_in_the_order_of_arrival(self):
        rounds = Rounds()
        for at in (1.0, None, 3.0):
            decide_people(rounds, first(2), EVERYBODY, stream(1, "coins"), epoch=1, at=at)
        assert windows.matured(rounds, None, None) == 6
        assert windows.matured(rounds, 5.9, 5.0) == 0
        assert windows.matured(rounds, 50.0, 5.0) == 2  # nobody knows when the next window ends

    def test_rounds_of_a_call_that_has_not_returned_are_not_mature(self):
        rounds = table(10)
        rounds.returned = 4
        assert windows.matured(rounds, None, None) == 4
        assert learning.log(rounds).rounds <= 4
        assert learning.resolved_before(rounds, 10) <= 4
        assert drift.settled_before(rounds, 0, None, None) <= 4

    def test_the_first_missing_label(self):
        """Against a loop, while labels come, are lost and people are added."""
        rounds = table(200, told=False)
        draw = np.random.default_rng(0)
        for _ in range(60):
            accepted = of_kind(rounds, True)
            open_rows = accepted[~rounds.label_discarded[accepted]]
            some = draw.choice(open_rows, 12)
            reports.enter_labels(rounds, some, PEOPLE.label[some % 400])
            if draw.random() < 0.2:
                reports.erase(rounds, draw.choice(rounds.decided, 1))
            if draw.random() < 0.2:
                reports.overrule(rounds, draw.choice(open_rows, 1), np.array([False]))
            if draw.random() < 0.1:
                decide_people(rounds, first(20), MIXED, draw, epoch=1)
            for may_come in (False, True):
                lacking = rounds["accept"] & (rounds["label"] == 0)
                if may_come:
                    lacking &= ~rounds.label_discarded
                expected = np.flatnonzero(np.append(lacking, True))[0]
                assert windows.first_missing(rounds, may_come=may_come) == expected
