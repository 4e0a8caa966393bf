"""What may be reported of people, and what it changes."""

import copy
from collections import Counter

import numpy as np
import pytest
from tests.play import decide_people
from tests.rounds.made import EVERYBODY, MIXED, PEOPLE, changes_nothing, of_kind, table, written

from evenhand.algorithms.certified.sample import resolved_rows
from evenhand.errors import BadLabel, ProtocolError
from evenhand.hypotheses.constants import ACCEPT_ALL
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.rounds import FOREVER, KINDS, Epoch, Rounds, counting, learning, reports, windows
from evenhand.words import Prices


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
        assert not learning.resolved(rounds, slice(None))[accepted].any()
        changes_nothing(rounds, ProtocolError, reports.enter_labels, accepted[:1], np.array([1]))

    def test_a_reject_that_a_human_accepted_stays_a_reject(self):
        rounds = table()
        before = counting.count(rounds, 0, 60)
        rejected = of_kind(rounds, False)
        reports.overrule(rounds, rejected, np.ones(len(rejected), bool))
        after = counting.count(rounds, 0, 60)
        assert (after.rejected == before.rejected).all()
        assert learning.resolved(rounds, slice(None))[rejected].all()
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
        assert not learning.resolved(rounds, slice(None))[gone].any()

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
