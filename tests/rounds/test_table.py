"""Appending to the table, and what is read of its rows."""

from collections import Counter

import numpy as np
import pytest
from tests.play import decide_people, report_all
from tests.rounds.made import (
    EVERYBODY,
    MIXED,
    PEOPLE,
    append_accepted,
    changes_nothing,
    first,
    marked_table,
    table,
    written,
)

from evenhand.errors import ProtocolError
from evenhand.estimation import RoundLog
from evenhand.randomness import stream
from evenhand.rounds import KINDS, Counts, Epoch, Rounds, counting, learning, reports, windows
from evenhand.rounds.stored import from_fields, to_fields
from evenhand.words import Prices


class TestAppending:
    def test_one_by_one_is_the_same_table_as_at_once(self):
        together = table(150, told=False)
        alone = Rounds()
        alone.open(together.epoch)
        for i in range(150):
            alone.append_one(
                1,
                PEOPLE.features[i : i + 1],
                PEOPLE.group[i].item(),
                bool(together["accept"][i]),
                float(together["acceptance"][i]),
                bool(together["audit"][i]),
                None,
                None,
            )
        alone.returned = alone.decided
        assert (alone["call_left"] == 0).all()
        assert (together["call_left"] == np.arange(149, -1, -1)).all()
        together["call_left"][:] = 0
        assert written(alone) == written(together)

    def test_what_the_caller_does_with_arrays_later_is_not_seen(self):
        rounds = Rounds()
        features = np.array([[3.0]])
        group = np.array(["a"])
        rounds.append(
            epoch=1,
            features=features,
            group=group,
            accept=np.array([True]),
            acceptance=np.ones(1),
        )
        features[0] = np.nan
        group[0] = "b"
        assert rounds.features_of(slice(None)).tolist() == [[3.0]]
        assert rounds.groups_of(slice(None)).tolist() == ["a"]

    def test_prices_are_kept_for_each_person(self):
        rounds = table(2, told=False, prices=Prices([1.0, 1.1], [0.5, 0.6]))
        rounds.append_one(
            1, np.zeros((1, 1)), "a", True, 1.0, False, Prices(np.array([1.2]), 0.7), None
        )
        assert rounds.prices.false_accept.tolist() == [1.0, 1.1, 1.2]
        assert rounds.prices.false_reject.tolist() == [0.5, 0.6, 0.7]

    def test_counts_have_their_place(self):
        rounds = table(10)
        log = RoundLog(np.zeros((1, 1)), None, [1.0], [0.0], [5.0], [5.0])
        with pytest.raises(ProtocolError):
            rounds.append_counts(Counts.of_log(1, 11, log, 0.0, stream(1, "audit")))
        rounds.append_counts(Counts.of_log(1, 10, log, 0.0, stream(1, "audit")))
        assert (rounds.decided, rounds.returned, len(rounds)) == (20, 20, 10)
        for round in (10, 19, 20):  # nobody can say who of ten people that was
            changes_nothing(
                rounds, ProtocolError, reports.enter_labels, np.array([round]), np.array([1])
            )


class TestServiceRows:
    """A service appends the rows of its ledger, and replaces those that may have changed."""

    def columns(self, rounds, rows):
        names = ("epoch", "at", "accept", "acceptance", "audit", "label", "settled")
        marks = ("overruled", "erased", "group_late", "billed")
        return {name: rounds[name][rows] for name in (*names, *marks)}

    def again(self, rounds, target, start, stop):
        rows = slice(start, stop)
        target.append_rows(
            rounds.features_of(rows), rounds.groups_of(rows), self.columns(rounds, rows), None
        )

    @pytest.mark.parametrize("cuts", [(), (100,), (7, 30, 399)])
    def test_rows_that_come_in_parts_are_the_same_table(self, cuts):
        rounds = marked_table(1)
        rounds["label_late"][:] = False
        copied = Rounds()
        copied.open(rounds.epoch)
        for start, stop in zip((0, *cuts), (*cuts, 400), strict=True):
            self.again(rounds, copied, start, stop)
        for name in set(KINDS) - {"call_left"}:
            np.testing.assert_array_equal(copied[name], rounds[name])
        assert (copied.decided, copied.returned) == (400, 400)
        assert learning.log(copied).rounds == learning.log(rounds).rounds

    def test_rows_that_were_dropped_come_again_as_they_are_known_then(self):
        rounds = table(60, policy=EVERYBODY, told=False)
        copied = Rounds()
        copied.open(rounds.epoch)
        self.again(rounds, copied, 0, 60)
        assert windows.first_missing(copied) == 0
        report_all(rounds, first(60))
        copied.drop_from(10)
        assert (copied.decided, copied.returned, len(copied)) == (10, 10, 10)
        self.again(rounds, copied, 10, 60)
        assert (copied["label"][10:] == PEOPLE.label[10:60]).all()
        assert windows.first_missing(copied) == 0
        copied.drop_from(0)
        self.again(rounds, copied, 0, 60)
        assert windows.first_missing(copied) == 60


def test_spans_are_cut_where_an_epoch_ends_and_where_counts_lie():
    rounds = table(10)
    log = RoundLog(np.zeros((1, 1)), None, [1.0], [0.0], [5.0], [5.0])
    rounds.append_counts(Counts.of_log(1, 10, log, 0.0, stream(1, "audit")))
    decide_people(rounds, first(5), MIXED, stream(1, "coins"), epoch=1)
    decide_people(rounds, first(5), MIXED, stream(1, "coins"))
    assert list(rounds.spans(0, 30)) == [(1, 0, 10), (1, 10, 20), (1, 20, 25), (2, 25, 30)]
    assert list(rounds.spans(20, 27)) == [(1, 20, 25), (2, 25, 27)]
    assert counting.count(rounds, 10, 20).positive.sum() == 5
    assert counting.people_by_group(rounds, 20) == Counter(PEOPLE.group[:5]) + Counter(
        PEOPLE.group[:5]
    )


def test_a_table_grows_and_leaves_what_was_read_as_it_was():
    rounds = table(300)
    before = rounds.features_of(slice(None)).copy()
    assert learning.log_of_rows(rounds, np.arange(10, 20)).features.base is None  # no view
    view = rounds.features_of(slice(None))
    append_accepted(rounds, np.ones((900, before.shape[1])))
    np.testing.assert_array_equal(view, before)
    np.testing.assert_array_equal(rounds.features_of(slice(300)), before)
    assert (rounds.features_of(slice(300, None)) == 1.0).all()
    assert len(rounds["accept"]) == 1200


def test_times_take_memory_once_one_is_given():
    rounds = Rounds()
    rounds.open(Epoch(1, "explore", 0, 1000, EVERYBODY))
    times = []

    def one_more(at):
        rounds.append_one(1, np.ones((1, 1)), "a", True, 1.0, False, None, at)
        times.append(np.nan if at is None else at)

    for _ in range(100):
        one_more(None)
    assert rounds["at"].strides == (0,)  # one number for all
    for stored in (rounds, from_fields(to_fields(rounds))):
        np.testing.assert_array_equal(stored["at"], times)
    for at in (3.0, 3.0, None, *np.arange(4.0, 200.0)):
        one_more(at)
    for stored in (rounds, from_fields(to_fields(rounds))):
        np.testing.assert_array_equal(stored["at"], times)
        stored.append_one(1, np.ones((1, 1)), "a", True, 1.0, False, None, 250.0)
        assert stored["at"][-1] == 250.0
