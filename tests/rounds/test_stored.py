"""A table as plain values."""

import json

import numpy as np
import pytest
from tests.play import decide_people
from tests.rounds.made import MIXED, first, of_kind, table, written

from evenhand import storage
from evenhand.errors import InvalidInput
from evenhand.estimation import RoundLog
from evenhand.randomness import stream
from evenhand.rounds import KINDS, UNKNOWN, Counts, reports
from evenhand.rounds.stored import from_fields, to_fields
from evenhand.words import Prices


class TestStoring:
    def again(self, rounds):
        encoder = storage.Encoder()
        document = json.loads(json.dumps(encoder.encode(rounds)))
        return storage.Decoder(encoder.arrays).decode(document)

    @pytest.mark.parametrize("at", [None, 3.0])
    def test_a_table_comes_back_as_it_was(self, at):
        rounds = table(60, at=at, prices=Prices(np.linspace(0, 1, 60), 1.0))
        reports.erase(rounds, np.array([3]))
        reports.overrule(rounds, np.array([5]), ~rounds["accept"][[5]])
        rounds.append_counts(
            Counts.of_log(
                1,
                60,
                RoundLog(np.zeros((1, 1)), None, [1.0], [0.0], [5.0], [5.0]),
                0.0,
                stream(1, "audit"),
            )
        )
        copied = self.again(rounds)
        assert written(copied) == written(rounds)
        for name in KINDS:
            np.testing.assert_array_equal(copied[name], rounds[name])
        reports.enter_labels(
            copied, of_kind(copied, True)[10:11], copied["label"][of_kind(copied, True)[10:11]]
        )
        decide_people(copied, first(5), MIXED, stream(1, "more"), epoch=1)
        assert copied.decided == 75

    @pytest.mark.parametrize(
        ("column", "row", "value"),
        [
            ("label", "accepted", 2),
            ("settled", "accepted", -3),
            ("label", "rejected", 1),
            ("acceptance", "accepted", 1.5),
            ("acceptance", "accepted", 0.0),
            ("acceptance", "rejected", 1.0),
            ("erased", "labelled", True),
            ("overruled", "labelled", True),
            ("audit", "rejected", True),
            ("group", "accepted", 2),
            ("group", "accepted", UNKNOWN - 1),
            ("epoch", "accepted", 0),
            ("epoch", "accepted", 2),
            ("round", "accepted", 7),
            ("round", "rejected", -1),
        ],
    )
    def test_columns_that_no_run_can_have_led_to_are_an_error(self, column, row, value):
        rounds = table()
        stored = to_fields(rounds)
        stored["columns"] = {name: values.copy() for name, values in stored["columns"].items()}
        place = of_kind(rounds, row != "rejected")[3]
        from_fields(stored)
        stored["columns"][column][place] = value
        with pytest.raises(InvalidInput):
            from_fields(stored)

    @pytest.mark.parametrize(
        "change",
        [
            lambda stored: stored["columns"].update(label=np.zeros(59, np.int8)),
            lambda stored: stored["columns"].update(label=np.zeros(60)),
            lambda stored: stored["columns"].update(colour=np.zeros(60)),
            lambda stored: stored.update(features=np.zeros((59, 1))),
            lambda stored: stored.update(prices=np.zeros(60)),
            lambda stored: stored.update(decided=61),
            lambda stored: stored.update(decided=59),
            lambda stored: stored.update(returned=61),
            lambda stored: stored.update(returned=-1),
        ],
    )
    def test_columns_of_another_shape_kind_or_name_are_an_error(self, change):
        stored = to_fields(table())
        stored["columns"] = dict(stored["columns"])
        change(stored)
        with pytest.raises(InvalidInput):
            from_fields(stored)

    def test_a_round_stands_in_the_table_once(self):
        """Rounds in rows and the same rounds in counts, with a counter that fits their number."""
        log = RoundLog(np.zeros((1, 1)), None, [1.0], [0.0], [5.0], [5.0])
        stored = to_fields(table(10))
        for first_counted in (10, 0, 20):
            counts = Counts.of_log(1, first_counted, log, 0.0, stream(1, "audit"))
            changed = stored | {"counted": [counts], "decided": 20}
            if first_counted == 10:
                assert from_fields(changed).decided == 20
            else:
                with pytest.raises(InvalidInput):
                    from_fields(changed)
