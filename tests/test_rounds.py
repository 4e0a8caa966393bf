"""The table of decided people: what may happen to a row after its coin, and how rows are counted.

Whatever happens later, a row keeps its place, its coin and its probability. Reports are entered
whole or not at all; counts are compared with slow loops over the people.
"""

import copy
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from tests.play import WORLD, decide_people, report_all

from evenhand import storage
from evenhand.algorithms.arrivals import arrivals_before
from evenhand.algorithms.certified import drift
from evenhand.algorithms.certified.evidence import people_left
from evenhand.algorithms.certified.sample import resolved_rows
from evenhand.algorithms.certified.sampling import least_level, sampling_level
from evenhand.errors import BadLabel, InvalidInput, ProtocolError
from evenhand.estimation import RoundLog
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.rounds import (
    FOREVER,
    KINDS,
    PATIENCE,
    UNKNOWN,
    Counts,
    Epoch,
    Rounds,
    counting,
    learning,
    reports,
    windows,
)
from evenhand.rounds.stored import from_fields, to_fields
from evenhand.words import LabelledSample, Prices

PEOPLE = WORLD.draw(400, np.random.default_rng(1))
RULE = WORLD.hypotheses.bind(WORLD.features, None).hypothesis(2)
MIXED = Mixture((ACCEPT_ALL, REJECT_ALL, RULE), (0.2, 0.1, 0.7))
EVERYBODY = Mixture((ACCEPT_ALL,), (1.0,))


def first(people):
    return LabelledSample(PEOPLE.features[:people], PEOPLE.group[:people], PEOPLE.label[:people])


def table(people=60, *, policy=MIXED, told=True, **more):
    """So many people in one call, and the labels of the accepted."""
    rounds = decide_people(Rounds(), first(people), policy, stream(3, "table"), **more)
    return report_all(rounds, first(people)) if told else rounds


def written(rounds):
    """All that a file would hold, as text."""
    encoder = storage.Encoder()
    document = encoder.encode(rounds)
    arrays = {name: array.tolist() for name, array in encoder.arrays.items()}
    return json.dumps([document, arrays])


def changes_nothing(rounds, error, enter, *arguments):
    """The call raises this error, and the table is as it was."""
    before = written(rounds)
    with pytest.raises(error) as caught:
        enter(rounds, *arguments)
    assert written(rounds) == before
    return caught.value


def append_accepted(rounds, features):
    """So many people more, all of group a and all accepted."""
    people = len(features)
    rounds.append(
        epoch=1,
        features=features,
        group=np.full(people, "a"),
        accept=np.ones(people, bool),
        acceptance=np.ones(people),
    )


def of_kind(rounds, accept):
    return np.flatnonzero(rounds["accept"] == accept)


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

    def test_groups_of_several_kinds_stay_what_they_are(self):
        rounds = Rounds()
        given = ["1", 1, True, frozenset({2}), None, "no", "north"]
        for group in given:
            rounds.append_one(1, np.zeros((1, 1)), group, True, 1.0, False, None, None)
        found = rounds.groups_of(slice(None)).tolist()
        assert found[0] == "1"
        assert found[3:] == given[3:]
        assert found[1] == found[2] == 1  # equal values are one group, as in a dictionary

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


class TestReport:
    @pytest.mark.parametrize("label", [0, 2, 1.5, float("nan"), "1", None, b"1"])
    def test_a_bad_label_is_an_error_and_is_not_rounded(self, label):
        rounds = table(told=False)
        accepted = of_kind(rounds, True)[:1]
        error = changes_nothing(rounds, BadLabel, reports.enter_labels, accepted, np.array([label]))
        assert repr(label) in error.message

    def test_the_label_of_a_rejected_round_cannot_have_been_seen(self):
        rounds = table()
        changes_nothing(
            rounds, ProtocolError, reports.enter_labels, of_kind(rounds, False)[:1], np.array([1])
        )

    @pytest.mark.parametrize("round", [-1, 60, 10**12])
    def test_an_unknown_round_is_an_error(self, round):
        error = changes_nothing(
            table(), ProtocolError, reports.enter_labels, np.array([round]), np.array([1])
        )
        assert str(round) in error.message

    def test_the_first_label_stands(self):
        rounds = table()
        accepted = of_kind(rounds, True)
        before = written(rounds)
        reports.enter_labels(rounds, accepted, PEOPLE.label[accepted])
        assert written(rounds).replace('"has_new_labels", true', "") == before.replace(
            '"has_new_labels", true', ""
        )
        changes_nothing(
            rounds, ProtocolError, reports.enter_labels, accepted[:1], -PEOPLE.label[accepted[:1]]
        )

    def test_two_labels_for_one_round_in_one_report_are_disputed(self):
        rounds = table(told=False)
        round = of_kind(rounds, True)[0]
        changes_nothing(
            rounds, ProtocolError, reports.enter_labels, np.array([round, round]), np.array([1, -1])
        )
        reports.enter_labels(rounds, np.array([round, round]), np.array([-1, -1]))
        assert rounds["label"][round] == -1

    @pytest.mark.thorough
    @pytest.mark.parametrize("seed", range(12))
    def test_many_labels_at_once_are_the_same_labels_one_by_one_or_nothing(self, seed):
        """Labels of the accepted among repeated, disputed, overruled, erased, unknown and bad
        ones.
        """
        rounds = decide_people(Rounds(), PEOPLE, MIXED, stream(seed, "coins"))
        draw = np.random.default_rng(seed)
        accepted = of_kind(rounds, True)
        reports.enter_labels(rounds, accepted[:30], draw.choice([-1, 1], 30))
        reports.overrule(rounds, accepted[30:40], np.zeros(10, bool))
        reports.erase(rounds, accepted[40:45])
        told = draw.permutation(accepted[45:])
        labels = draw.choice([-1, 1], len(told)).astype(float)
        also, value = {
            0: ([], []),
            1: (accepted[:3], rounds["label"][accepted[:3]]),
            2: (accepted[30:31], [1]),
            3: (accepted[40:41], [1]),
            4: ([told[0], 10**6], [labels[0], 1]),
            5: (accepted[45:46], [0.5]),
        }[seed % 6]
        told = np.append(told, also).astype(np.int64)
        labels = np.append(labels, value)
        early = draw.random(len(told)) < 0.7
        together = copy.deepcopy(rounds)
        alone = copy.deepcopy(rounds)
        raised = None
        try:
            for place in range(len(told)):
                one = slice(place, place + 1)
                reports.enter_labels(alone, told[one], labels[one], window_open=early[one])
        except (BadLabel, ProtocolError) as error:
            raised = type(error)
        if raised is None:
            reports.enter_labels(together, told, labels, window_open=early)
            assert written(together) == written(alone)
        else:
            changes_nothing(together, raised, reports.enter_labels, told, labels)
        assert (raised is None) == (seed % 6 in (0, 1))

    def test_a_label_after_the_closing_serves_the_loss_alone(self):
        rounds = table(60, policy=EVERYBODY, told=False)
        reports.enter_labels(rounds, np.arange(60), PEOPLE.label[:60], closed=20)
        assert rounds["label_late"].sum() == 20
        assert counting.count(rounds, 0, 60).unresolved.sum() == 20
        assert learning.log(rounds).rounds == 60
        assert sum(map(len, resolved_rows(rounds, 0, 60))) == 40


class TestOverrule:
    def test_an_accept_that_a_human_rejected_has_no_label_any_more(self):
        rounds = table()
        accepted = of_kind(rounds, True)[:7]
        assert reports.overrule(rounds, accepted, np.zeros(7, bool)).tolist() == accepted.tolist()
        assert (rounds["label"][accepted] == 0).all()
        assert rounds["accept"][accepted].all()
        assert not rounds.resolved[accepted].any()
        changes_nothing(rounds, ProtocolError, reports.enter_labels, accepted[:1], np.array([1]))

    def test_a_reject_that_a_human_accepted_stays_a_reject(self):
        rounds = table()
        before = counting.count(rounds, 0, 60)
        rejected = of_kind(rounds, False)
        reports.overrule(rounds, rejected, np.ones(len(rejected), bool))
        after = counting.count(rounds, 0, 60)
        assert (after.rejected == before.rejected).all()
        assert rounds.resolved[rejected].all()
        by_group = Counter((PEOPLE.group[i], False) for i in rejected)
        assert after.overruled == by_group
        changes_nothing(rounds, ProtocolError, reports.enter_labels, rejected[:1], np.array([1]))

    def test_what_agrees_with_the_draw_and_what_is_reported_again_are_no_news(self):
        rounds = table()
        before = written(rounds)
        assert len(reports.overrule(rounds, np.arange(60), rounds["accept"].copy())) == 0
        assert written(rounds) == before
        accepted = of_kind(rounds, True)[:5]
        reports.overrule(rounds, accepted, np.zeros(5, bool))
        once = written(rounds)
        assert len(reports.overrule(rounds, np.tile(accepted, 2), np.zeros(10, bool))) == 0
        # the human comes round to the coin: the label stays lost
        assert len(reports.overrule(rounds, accepted, np.ones(5, bool))) == 0
        assert written(rounds) == once

    def test_all_are_overruled_or_nobody(self):
        changes_nothing(
            table(), ProtocolError, reports.overrule, np.array([1, 2, 60]), np.zeros(3, bool)
        )


class TestErase:
    def test_the_row_keeps_its_coin_and_forgets_who_it_was(self):
        rounds = table(prices=Prices(np.arange(60.0) + 1, 1.0))
        accept = rounds["accept"].copy()
        chance = rounds["acceptance"].copy()
        gone = np.array([0, 5, 17, 59])
        reports.erase(rounds, gone)
        assert (rounds.features_of(gone) == 0).all()
        assert (rounds.prices.false_accept[gone] == 0).all()
        assert rounds.groups_of(gone).tolist() == [None] * 4
        assert (rounds["label"][gone] == 0).all()
        assert (rounds["accept"] == accept).all()
        assert (rounds["acceptance"] == chance).all()
        others = np.setdiff1d(np.arange(60), gone)
        assert (rounds.features_of(others) == PEOPLE.features[others]).all()
        assert not rounds.resolved[gone].any()

    @pytest.mark.parametrize("seed", range(4))
    def test_an_erased_person_leaves_no_trace(self, seed):
        """Two tables that differ in who was erased alone are the same file, byte for byte: another
        group, which nobody else has, other features, prices and another label.
        """
        draw = np.random.default_rng(seed)
        gone = draw.choice(60, 6, replace=False)
        tables = []
        for other in (False, True):
            features = PEOPLE.features[:60].copy()
            group = PEOPLE.group[:60].astype(object)
            label = PEOPLE.label[:60].copy()
            price = np.ones(60)
            if other:
                features[gone] = 7.25
                group[gone] = "a group of which nobody else is"
                label[gone] *= -1
                price[gone] = 0.375
            rounds = Rounds()
            rounds.open(Epoch(1, "fixed", 0, FOREVER, MIXED))
            rounds.append(
                epoch=1,
                features=features,
                group=group,
                accept=np.arange(60) % 2 == 0,
                acceptance=np.full(60, 0.5),
                prices=Prices(price, 1.0),
            )
            rounds.returned = 60
            reports.enter_labels(rounds, np.arange(0, 60, 2), label[::2])
            reports.erase(rounds, gone)
            tables.append(rounds)
        assert written(tables[0]) == written(tables[1])

    def test_nothing_more_can_be_reported_and_erasing_again_is_no_news(self):
        rounds = table(policy=EVERYBODY, told=False)
        assert reports.erase(rounds, np.array([3, 3, 9])).tolist() == [3, 9]
        assert len(reports.erase(rounds, np.array([3]))) == 0
        one = np.array([3])
        changes_nothing(rounds, ProtocolError, reports.enter_labels, one, np.array([1]))
        changes_nothing(
            rounds, ProtocolError, reports.enter_labels, np.array([1, 9]), np.array([1, 1])
        )
        changes_nothing(rounds, ProtocolError, reports.overrule, one, np.array([False]))
        changes_nothing(rounds, ProtocolError, reports.enter_groups, one, np.array(["a"]))
        assert rounds.missing_labels == 58

    def test_all_are_erased_or_nobody(self):
        changes_nothing(table(), ProtocolError, reports.erase, np.array([1, 2, 60]))

    def test_a_table_of_erased_people_has_nothing_to_learn_from(self):
        rounds = table(5)
        reports.erase(rounds, np.arange(5))
        assert learning.log(rounds) is None
        assert list(learning.logs(rounds)) == []


class TestLateGroups:
    def rounds(self):
        group = np.array(["a", None, None, "b", None, None], dtype=object)
        rounds = Rounds()
        rounds.open(Epoch(1, "fixed", 0, FOREVER, EVERYBODY))
        rounds.append(
            epoch=1,
            features=PEOPLE.features[:6],
            group=group,
            accept=np.ones(6, bool),
            acceptance=np.ones(6),
        )
        rounds.returned = 6
        return rounds

    def told(self, *groups):
        return np.array(groups, dtype=object)

    def test_a_late_group_is_marked(self):
        rounds = self.rounds()
        reports.enter_groups(rounds, np.array([1, 2, 3]), self.told("b", "a", "b"))
        assert rounds.groups_of(slice(None)).tolist() == ["a", "b", "a", "b", None, None]
        assert rounds["group_late"].tolist() == [False, True, True, False, False, False]
        assert sum(counting.count(rounds, 0, 6).late_groups.values()) == 2

    def test_after_the_closing_it_changes_nothing(self):
        rounds = self.rounds()
        reports.enter_groups(rounds, np.array([1, 4]), self.told("b", "a"), closed=3)
        assert rounds.groups_of(slice(None)).tolist() == ["a", None, None, "b", "a", None]

    def test_an_unknown_group_contradicts_nothing(self):
        rounds = self.rounds()
        before = written(rounds)
        reports.enter_groups(rounds, np.array([0, 1]), self.told(None, None))
        assert written(rounds) == before

    @pytest.mark.parametrize(
        ("numbers", "groups"),
        [([0], ["b"]), ([1, 1], ["a", "b"]), ([1, 0], ["a", "b"]), ([1, 6], ["a", "a"])],
    )
    def test_all_groups_are_entered_or_none(self, numbers, groups):
        changes_nothing(
            self.rounds(),
            ProtocolError,
            reports.enter_groups,
            np.array(numbers),
            self.told(*groups),
        )

    def test_people_are_counted_by_group(self):
        rounds = self.rounds()
        assert counting.people_by_group(rounds) == {"a": 1, "b": 1, None: 4}
        assert counting.people_by_group(rounds, 1) == {"b": 1, None: 4}


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

    def test_what_is_settled_for_drift_waits_for_what_is_not(self):
        rounds = table(60, policy=EVERYBODY, told=False)
        reports.enter_labels(rounds, np.r_[0:20, 21:60], np.ones(59, int))
        assert drift.settled_before(rounds, 0, None, None) == 20
        decide_people(rounds, first(PATIENCE), EVERYBODY, stream(1, "more"), epoch=1)
        # the label of round 20 counts as "not come" now
        assert drift.settled_before(rounds, 0, None, None) == 60
        assert drift.settled_before(rounds, 0, 100.0, 5.0) == 0

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


def marked_table(seed, people=400):
    """A table to which all has happened that may."""
    draw = np.random.default_rng(seed)
    rounds = table(people, told=False)
    accepted = of_kind(rounds, True)
    early, late = np.split(draw.permutation(accepted), [len(accepted) // 2])
    reports.enter_labels(
        rounds, early, PEOPLE.label[early], window_open=draw.random(len(early)) < 0.8
    )
    reports.enter_labels(rounds, late[:40], PEOPLE.label[late[:40]], closed=people)
    for numbers in (accepted, of_kind(rounds, False)):
        some = draw.choice(numbers, 30, replace=False)
        reports.overrule(rounds, some, ~rounds["accept"][some])
    reports.erase(rounds, draw.choice(people, 40, replace=False))
    return rounds


class TestCounting:
    @pytest.mark.parametrize("seed", range(5))
    def test_counts_are_those_of_a_loop_over_the_people(self, seed):
        rounds = marked_table(seed)
        found = counting.count(rounds, 0, 400)
        seen = Counter()
        lost = Counter()
        settled = Counter()
        for i in range(400):
            accept = bool(rounds["accept"][i])
            audit = bool(rounds["audit"][i])
            chance = float(rounds["acceptance"][i])
            if rounds["erased"][i]:
                lost[chance, accept] += 1
                continue
            silent = rounds["overruled"][i] or rounds["label_late"][i]
            label = 0 if silent else int(rounds["label"][i])
            kind = {1: "positive", -1: "negative", 0: "unresolved"}[label] if accept else "rejected"
            context = (PEOPLE.features[i, 0], PEOPLE.group[i], chance)
            seen[kind, context] += 1
            if audit:
                seen[f"audited_{kind}", context] += 1
            if accept:
                settled[int(rounds["settled"][i]), context] += 1
        contexts = list(zip(found.features[:, 0], found.group, found.acceptance, strict=True))
        assert len(set(contexts)) == len(contexts)
        for kind in ("rejected", "positive", "negative", "unresolved"):
            column = dict(zip(contexts, getattr(found, kind), strict=True))
            assert all(column[c] == seen[kind, c] for c in contexts), kind
        for kind in ("positive", "negative"):
            column = getattr(found, f"audited_{kind}")
            assert column.tolist() == [seen[f"audited_{kind}", c] for c in contexts]
        for row, label in enumerate((1, -1, 0)):
            assert found.settled[row].tolist() == [settled[label, c] for c in contexts]
        for chance, accepted, rejected in zip(
            found.lost_acceptance, found.lost_accepted, found.lost_rejected, strict=True
        ):
            assert (accepted, rejected) == (lost[chance, True], lost[chance, False])
        assert found.rounds.sum() + found.lost == 400

    @pytest.mark.parametrize("seed", range(5))
    def test_the_loss_sees_the_resolved_alone(self, seed):
        rounds = marked_table(seed)
        accept = rounds["accept"]
        here = ~rounds["erased"]
        labelled = accept & here & ~rounds["overruled"] & (rounds["label"] != 0)
        log = learning.log(rounds)
        assert log.rejected.sum() == (~accept & here).sum()
        assert log.positive.sum() == (labelled & (rounds["label"] == 1)).sum()
        assert log.negative.sum() == (labelled & (rounds["label"] == -1)).sum()
        assert learning.resolved_before(rounds, 400) == log.rounds
        rejected, chosen, audited = resolved_rows(rounds, 0, 400)
        possible = labelled & ~rounds["label_late"] & (rounds["acceptance"] > 0)
        np.testing.assert_array_equal(np.sort([*chosen, *audited]), np.flatnonzero(possible))
        assert rounds["audit"][audited].all()
        assert not rounds["audit"][chosen].any()
        assert not accept[rejected].any()
        assert here[rejected].all()
        assert (rounds["acceptance"][rejected] > 0).all()

    @pytest.mark.parametrize("chance", [0.0, 1.0, 1.5, -0.1, float("nan")])
    def test_what_cannot_have_happened_has_no_constructor(self, chance):
        rounds = table(400)
        rounds["acceptance"][:] = chance
        with pytest.raises(InvalidInput):
            counting.count(rounds, 0, 400)

    def test_a_selection_made_afterwards_has_no_constructor(self):
        whole = counting.count(table(400), 0, 400)
        columns = [
            *("acceptance", "rejected", "positive", "negative", "unresolved", "group"),
            *("settled", "settled_audited"),
            *("audited_positive", "audited_negative"),
        ]
        for rows in (np.arange(1, len(whole.features)), np.flatnonzero(whole.positive == 0)):
            kept = {name: getattr(whole, name)[..., rows] for name in columns}
            with pytest.raises(ProtocolError):
                replace(whole, features=whole.features[rows], **kept)

    def test_spans_are_cut_where_an_epoch_ends_and_where_counts_lie(self):
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

    def test_people_are_those_who_were_not_erased(self):
        rounds = table(20)
        reports.erase(rounds, np.array([4, 7]))
        features, group, weight = people_left(rounds, 0, 20)
        left = np.setdiff1d(np.arange(20), [4, 7])
        assert (features == PEOPLE.features[left]).all()
        assert (group == PEOPLE.group[left]).all()
        assert weight.sum() == 18


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


def test_one_label_is_entered_as_several_are():
    """The fast way in for one label against the slow one for several: the same columns, and what is
    impossible is left to the slow one.
    """

    def table():
        rounds = Rounds()
        rounds.open(Epoch(1, "explore", 0, 100, Mixture((ACCEPT_ALL,), (1.0,))))
        rounds.append(
            epoch=1,
            features=np.zeros((6, 1)),
            group=np.array(list("ababab")),
            accept=np.array([True, True, False, True, True, True]),
            acceptance=np.full(6, 0.5),
            at=3.0,
        )
        reports.overrule(rounds, np.array([3]), np.array([False]))
        reports.erase(rounds, np.array([4]))
        return rounds

    for window, now in ((None, None), (2.0, 4.0), (2.0, 9.0)):
        for closed in (0, 2):
            fast = table()
            slow = table()
            for round, label in ((0, 1), (1, -1)):
                single = np.array([round])
                reports.enter_labels(
                    slow,
                    single,
                    np.array([label]),
                    window_open=windows.window_open(slow, single, now, window),
                    closed=closed,
                )
                assert reports.enter_label(
                    fast, round, label, now=now, window=window, closed=closed
                )
            for name in KINDS:
                assert np.array_equal(fast[name], slow[name], equal_nan=name == "at")
            before = fast["label"].copy()
            for round, label in ((0, 1), (0, -1), (2, 1), (3, 1), (4, 1), (9, 1), (-1, 1), (5, 0)):
                assert not reports.enter_label(
                    fast, round, label, now=now, window=window, closed=closed
                )
            assert np.array_equal(fast["label"], before)


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


def test_the_log_between_two_rounds_has_one_row_per_round_in_order():
    rounds = table()
    log = learning.log_between(rounds, 10, 30)
    assert len(log) == 20
    assert np.array_equal(log.features, rounds.features_of(slice(10, 30)))
    assert np.array_equal(log.rejected, (~rounds["accept"][10:30]).astype(float))
    assert learning.log_between(rounds, 10, 30, with_group=False).group is None
    assert learning.log_between(rounds, 60, 90) is None
    rounds.returned = 20
    assert len(learning.log_between(rounds, 10, 30)) == 10


def test_levels_halve_any_stretch_of_rounds_whatever_the_rhythm():
    for first, step in ((0, 1), (12_345, 1), (0, 2), (1, 2), (3, 7), (10**9, 64)):
        level = sampling_level(np.arange(first, first + 4096 * step, step))
        for k in range(6):
            assert abs((level >= k).mean() - 0.5**k) < 0.02
    assert sampling_level(np.array([0]))[0] == 32
    assert least_level(5, 10) == least_level(10, 10) == 0
    assert least_level(11, 10) == 1
    assert least_level(81, 10) == 4


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
