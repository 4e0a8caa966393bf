"""After its coin a round may only lose information: a human overrules it, the person is erased, the
group comes late.

Every law is tried on learners that log people as their labels come (`harvest`) and on the book's
whole blocks (`close`).
"""

import numpy as np
import pytest
from tests.learners.play import FPR, WORLD, everybody, two_phase

import evenhand as eh
from evenhand.errors import InvalidInput, ProtocolError
from evenhand.estimation import RoundLog
from evenhand.estimation.outcomes import fit_outcomes
from evenhand.learners import AcceptAll, CertifiedLearner, Unconstrained, Uniform
from evenhand.learners.rounds import Block, RoundBook, merged
from evenhand.words import Prices

PEOPLE = WORLD.draw(400, np.random.default_rng(1))
NAMES = list(everybody())


def decided(learner, people=60, *, told=True, prices=None):
    """The learner after a block of people, all labels told."""
    given = {} if prices is None else {"prices": prices}
    decisions = learner.decide(PEOPLE.features[:people], PEOPLE.group[:people], **given)
    if told:
        accepted = np.flatnonzero(decisions.accept)
        learner.observe(accepted, PEOPLE.label[accepted])
    return decisions


def gathered(learner):
    """(rejected, positive, negative) per context, of everything in the history."""
    found = np.zeros((3, 6))
    for _, log in learner.state.history.logs:
        place = log.features[:, 0].astype(int)
        found += [
            np.bincount(place, column, 6) for column in (log.rejected, log.positive, log.negative)
        ]
    return found


def expected(decisions, left_out, people=60):
    """The same from the decisions themselves."""
    context, found = PEOPLE.features[:people, 0].astype(int), np.zeros((3, 6))
    for i in range(people):
        if i not in left_out:
            kind = 0 if not decisions.accept[i] else 1 if PEOPLE.label[i] == 1 else 2
            found[kind, context[i]] += 1
    return found


class TestOverruled:
    @pytest.mark.parametrize("collected", [False, True])
    def test_whoever_was_accepted_by_the_coin_and_refused_by_a_human_never_enters_the_loss(
        self, collected
    ):
        learner = Uniform(seed=3)
        decisions = decided(learner)
        accepted = np.flatnonzero(decisions.accept)[:7]
        if collected:
            learner._collect()
        learner.overrule(accepted, False)
        learner._collect()
        assert (gathered(learner) == expected(decisions, set(accepted.tolist()))).all()

    @pytest.mark.parametrize("collected", [False, True])
    def test_whoever_was_rejected_by_the_coin_and_accepted_by_a_human_stays_rejected(
        self, collected
    ):
        learner = Uniform(seed=3)
        decisions = decided(learner)
        rejected = np.flatnonzero(~decisions.accept)[:7]
        if collected:
            learner._collect()
        learner.overrule(rejected, np.ones(7, bool))
        learner._collect()
        assert (gathered(learner) == expected(decisions, set())).all()
        with pytest.raises(ProtocolError, match="was rejected"):
            learner.observe(int(rejected[0]), 1)
        assert learner.state.book.blocks[0].overruled.sum() == 7

    def test_a_label_is_refused_afterwards_also_one_that_was_told_before(self):
        learner = AcceptAll(seed=0)
        decided(learner, told=False)
        learner.observe(3, 1)
        learner.overrule([3, 4], False)
        for round in (3, 4):
            with pytest.raises(ProtocolError, match=f"round {round} was overruled"):
                learner.observe(round, 1)
        assert learner.report.missing_labels == 58

    def test_what_agrees_with_the_draw_and_what_is_said_again_change_nothing(self):
        learner, twin = Uniform(seed=3), Uniform(seed=3)
        decisions = decided(learner)
        decided(twin)
        learner.overrule(decisions.round, decisions.accept)
        assert not learner.state.book.blocks[0].overruled.any()
        accepted = np.flatnonzero(decisions.accept)[:5]
        for again in (1, 2, 3):
            learner.overrule(np.tile(accepted, again), False)
        learner.overrule(accepted, True)  # the human comes round to the coin: the label stays lost
        twin.overrule(accepted, False)
        for one in (learner, twin):
            one._collect()
        assert (gathered(learner) == gathered(twin)).all()
        assert learner.state.book.blocks[0].overruled.sum() == 5

    @pytest.mark.parametrize(
        ("round", "error"), [(10**6, ProtocolError), (0.5, InvalidInput), ([[1]], InvalidInput)]
    )
    def test_of_several_all_are_overruled_or_none(self, round, error):
        learner = AcceptAll(seed=0)
        decided(learner)
        with pytest.raises(error):
            learner.overrule([1, 2, round] if np.ndim(round) == 0 else round, False)
        assert not learner.state.book.blocks[0].overruled.any()

    @pytest.mark.parametrize("accept", [1, "no", None, 0.0, [True, False]])
    def test_a_human_says_yes_or_no(self, accept):
        learner = AcceptAll(seed=0)
        decided(learner)
        with pytest.raises(InvalidInput, match="True or False"):
            learner.overrule(3, accept)

    def test_the_law_has_teeth(self):
        """A book that does not listen keeps the labels of those who were overruled in the loss."""

        class Careless(RoundBook):
            def overrule(self, rounds, accept, window_open=True):
                return []

        learner = Uniform(seed=3)
        learner.state.book = Careless()
        decisions = decided(learner)
        accepted = np.flatnonzero(decisions.accept)[:7]
        learner.overrule(accepted, False)
        learner._collect()
        assert (gathered(learner) != expected(decisions, set(accepted.tolist()))).any()


class TestErased:
    @pytest.mark.parametrize("collected", [False, True])
    @pytest.mark.parametrize("told", [False, True])
    def test_the_person_leaves_the_loss_and_the_book_forgets_who_it_was(self, collected, told):
        learner = Uniform(seed=3)
        decisions = decided(learner)
        if collected:
            learner._collect()
        left_out = [0, 5, 17, 59]
        learner.erase(left_out if told else np.array(left_out))
        learner._collect()
        assert (gathered(learner) == expected(decisions, set(left_out))).all()
        block = merged(learner.state.book.blocks)
        assert (block.features[left_out] == 0).all()
        assert block.group[left_out].tolist() == [None] * 4
        assert (block.label[left_out] == 0).all()
        assert block.erased.nonzero()[0].tolist() == left_out
        assert (
            block.accept == decisions.accept
        ).all()  # the coin and its probability stay on record
        assert (
            np.delete(block.features, left_out, axis=0)
            == np.delete(PEOPLE.features[:60], left_out, axis=0)
        ).all()

    def test_nothing_more_can_be_said_about_an_erased_person_but_erasing_again_is_harmless(self):
        learner = CertifiedLearner(WORLD.hypotheses, FPR, 0.2, 0.05, seed=1)
        learner.decide(PEOPLE.features[:60])
        learner.erase([3, 3, 9])
        learner.erase(3)
        for what in (
            lambda: learner.observe(3, 1),
            lambda: learner.overrule(3, False),
            lambda: learner.tell_group(3, "a"),
            lambda: learner.observe([1, 9], [1, 1]),
        ):
            with pytest.raises(ProtocolError, match=r"round [39] was erased"):
                what()
        assert learner.report.missing_labels == 58

    def test_of_several_all_are_erased_or_nobody(self):
        learner = AcceptAll(seed=0)
        decided(learner)
        with pytest.raises(ProtocolError, match="round 60 is unknown"):
            learner.erase([1, 2, 60])
        assert not learner.state.book.blocks[0].erased.any()

    def test_prices_of_the_person_are_wiped_and_the_right_row_is_forgotten(self):
        """Two people alike in everything but their prices: the history forgets the one who was
        erased.
        """
        learner = AcceptAll(seed=0)
        learner.decide(np.zeros((2, 1)), ["a", "a"], prices=Prices([0.5, 1.0], [1.0, 1.0]))
        learner.observe([0, 1], [1, 1])
        learner._collect()
        learner.erase(0)
        ((_, log),) = learner.state.history.logs
        assert log.prices.false_accept.tolist() == [1.0]
        assert log.positive.tolist() == [1.0]
        assert learner.state.book.blocks[0].prices.false_accept.tolist() == [0.0, 1.0]

    def test_a_history_of_which_everybody_is_erased_is_empty(self):
        learner = AcceptAll(seed=0)
        decided(learner, 5)
        learner._collect()
        learner.erase(range(5))
        assert learner.state.history.logs == []

    @pytest.mark.parametrize("name", NAMES)
    def test_every_learner_goes_on(self, name):
        """Overruled people, and erased ones of all epochs: the history holds exactly the others of
        those whose turn has come.

        Nobody is lost in the first 1000 rounds: whoever is lost while a learner explores keeps it
        waiting.
        """
        learner, generator, lost = everybody()[name], np.random.default_rng(3), set()
        people = WORLD.draw(2000, generator)
        for start in range(0, 2000, 50):
            part = slice(start, start + 50)
            decisions = learner.decide(people.features[part], people.group[part])
            accepted = start + np.flatnonzero(decisions.accept)
            learner.observe(accepted, people.label[accepted])
            if start < 1000:
                continue
            fates, somebody = generator.random(len(accepted)), int(generator.integers(start + 50))
            refused, gone = accepted[fates < 0.1], [*accepted[fates > 0.95].tolist(), somebody]
            learner.overrule(refused, False)
            learner.erase(gone)
            lost |= {*refused.tolist(), *gone}
        learner._collect()
        assert learner.round == 2000
        settled = getattr(learner, "_settled", 2000)
        assert settled >= 300
        assert sum(log.rounds for _, log in learner.state.history.logs) == settled - sum(
            round < settled for round in lost
        )

    def test_what_was_fitted_to_the_person_is_forgotten_with_the_log(self):
        learner = CertifiedLearner(WORLD.hypotheses, FPR, 0.2, 0.05, seed=1)
        decided(learner, 200)
        learner.open_epoch()
        before = fit_outcomes(learner.state.history.of(with_group=False))
        learner.erase(np.flatnonzero(PEOPLE.label[:200] == -1)[:20])
        after = fit_outcomes(learner.state.history.of(with_group=False))
        assert after.overall < before.overall
        assert learner.state.history.of(with_group=False).rounds == 180

    def test_sums_of_closed_cohorts_stay(self):
        learner = CertifiedLearner(WORLD.hypotheses, FPR, 0.2, 0.05, seed=1)
        decided(learner, 400)
        learner.open_epoch()
        before = learner.certificate
        learner.erase(range(100))
        assert learner.certificate.counts == before.counts
        assert learner.certificate.gaps == before.gaps


class TestSettled:
    """The category of the drift test is fixed at the end of the person's own window."""

    def learner(self):
        learner = CertifiedLearner(WORLD.hypotheses, FPR, 0.2, 0.05, maturity=10.0, seed=1)
        learner.decide(PEOPLE.features[:8], PEOPLE.group[:8], at=0.0)
        return learner

    def settled(self, learner):
        return merged(learner.state.book.blocks).settled.tolist()

    def test_a_label_within_the_window_settles_and_a_later_one_does_not(self):
        learner = self.learner()
        learner.observe([0, 1], [1, -1], at=9.9)
        learner.observe([2, 3], [1, -1], at=10.0)
        assert self.settled(learner) == [1, -1, 0, 0, 0, 0, 0, 0]
        assert merged(learner.state.book.blocks).label.tolist() == [1, -1, 1, -1, 0, 0, 0, 0]

    def test_whoever_is_overruled_or_erased_within_the_window_is_not_come_and_later_nothing_changes(
        self,
    ):
        learner = self.learner()
        learner.observe([0, 1, 2, 3], [1, -1, 1, -1], at=5.0)
        learner.overrule(0, False)
        learner.erase(1)
        learner.observe([], [], at=10.0)
        learner.overrule(2, False)
        learner.erase(3)
        assert self.settled(learner) == [0, 0, 1, -1, 0, 0, 0, 0]
        assert merged(learner.state.book.blocks).label.tolist() == [0] * 8

    def test_a_label_told_again_after_the_window_changes_nothing(self):
        learner = self.learner()
        learner.observe(0, 1, at=12.0)
        learner.observe(0, 1)
        assert self.settled(learner)[0] == 0

    def test_a_time_that_is_no_number_is_refused(self):
        learner = self.learner()
        for at in (float("nan"), float("inf"), "noon"):
            with pytest.raises(InvalidInput, match="at is"):
                learner.observe(0, 1, at=at)
            with pytest.raises(InvalidInput, match="at is"):
                learner.decide(PEOPLE.features[:1], PEOPLE.group[:1], at=at)


class TestLateGroups:
    def learner(self):
        learner = CertifiedLearner(WORLD.hypotheses, FPR, 0.2, 0.05, seed=1)
        learner.decide(PEOPLE.features[:6], ["a", None, float("nan"), "b", None, None])
        return learner

    def test_a_late_group_counts_while_the_cohort_is_open_and_is_marked(self):
        learner = self.learner()
        learner.tell_group([1, 2, 3], ["b", "a", "b"])
        block = merged(learner.state.book.blocks)
        assert block.group.tolist() == ["a", "b", "a", "b", None, None]
        assert block.group_late.tolist() == [False, True, True, False, False, False]
        learner._collect()
        assert sum(learner.state.run.evidence.late_groups.values()) == 2

    @pytest.mark.parametrize("unknown", [None, float("nan")])
    def test_an_unknown_group_says_nothing(self, unknown):
        learner = self.learner()
        learner.tell_group([0, 1], [unknown, unknown])
        learner.tell_group(1, unknown)
        learner.observe([0, 1], [1, 1], group=[unknown, unknown])
        assert merged(learner.state.book.blocks).group.tolist() == [
            "a",
            None,
            None,
            "b",
            None,
            None,
        ]

    def test_another_group_is_refused_also_within_one_call_and_after_the_closing(self):
        learner = self.learner()
        for rounds, groups in (([0], ["b"]), ([1, 1], ["a", "b"])):
            with pytest.raises(ProtocolError, match="another group before"):
                learner.tell_group(rounds, groups)
        learner.observe(range(6), [1] * 6)
        learner._collect()
        with pytest.raises(ProtocolError, match="another group before"):
            learner.tell_group(0, "b")
        learner.tell_group(4, "b")  # its cohort is closed: it stays outside
        assert merged(learner.state.book.blocks).group[4] is None

    def test_a_group_told_with_an_outcome_brings_nobody_in(self):
        learner = self.learner()
        learner.observe(1, 1, group="b")
        assert merged(learner.state.book.blocks).group[1] is None
        with pytest.raises(ProtocolError, match="another group"):
            learner.observe(0, 1, group="b")


def block(first, rows, **changed):
    given = dict(
        first=first,
        epoch=1,
        features=np.arange(first, first + rows, dtype=float)[:, None],
        group=None,
        accept=np.ones(rows, bool),
        acceptance=np.full(rows, 0.5),
        prices=None,
        label=np.zeros(rows, np.int64),
        logged=np.zeros(rows, bool),
    )
    return Block(**{**given, **changed})


class TestBlocks:
    def test_columns_that_are_not_given_say_that_nothing_has_happened(self):
        for rows in (1, 3):
            found = block(0, rows)
            for name in ("overruled", "erased", "group_late", "learned"):
                assert getattr(found, name).tolist() == [False] * rows
            assert found.settled.tolist() == [0] * rows

    def test_blocks_of_one_person_do_not_share_their_fate(self):
        book = RoundBook()
        for first in range(4):
            book.add(block(first, 1))
        book.erase(np.array([1]))
        book.overrule(np.array([2]), np.array([False]))
        assert [b.erased[0] for b in book.blocks] == [False, True, False, False]
        assert [b.overruled[0] for b in book.blocks] == [False, False, True, False]

    def test_every_column_is_carried_when_blocks_are_joined(self):
        book = RoundBook()
        for first in range(5):
            book.add(block(first, 1))
        book.observe(np.arange(5), np.array([1, -1, 1, -1, 1]))
        book.erase(np.array([0]))
        book.overrule(np.array([1]), np.array([False]))
        book.tell_group(np.array([2]), np.array(["a"], dtype=object))
        apart = [
            {name: getattr(b, name)[0] for name in vars(b) if np.ndim(getattr(b, name))}
            for b in book.blocks
        ]
        whole = merged(book.blocks)
        for name in (
            "overruled",
            "erased",
            "settled",
            "group_late",
            "learned",
            "label",
            "features",
        ):
            assert getattr(whole, name).tolist() == [
                np.asarray(one[name]).tolist() for one in apart
            ]
        assert whole.group.tolist() == [None, None, "a", None, None]
        assert whole.settled.tolist() == [0, 0, 1, -1, 1]

    def test_a_closed_block_is_handed_over_whole_and_is_not_changed_by_what_happens_later(self):
        for pieces in (1, 3):
            book = RoundBook()
            for first in range(0, 6, 6 // pieces):
                book.add(block(first, 6 // pieces, at=float(first)))
            book.observe(np.array([0, 1]), np.array([1, -1]))
            book.overrule(np.array([1]), np.array([False]))
            book.erase(np.array([2]))
            (closed,) = book.close(100.0, 1.0)
            assert len(closed.accept) == 6
            before = {
                name: np.copy(getattr(closed, name))
                for name in ("features", "label", "overruled", "erased")
            }
            assert before["label"].tolist() == [1, 0, 0, 0, 0, 0]
            assert before["erased"].tolist() == [False, False, True, False, False, False]
            book.observe(np.array([3]), np.array([1]))
            book.erase(np.array([0, 4]))
            book.overrule(np.array([5]), np.array([False]))
            for name, column in before.items():
                assert np.array_equal(getattr(closed, name), column)
            assert book.close(200.0, 1.0) == []

    def test_blocks_close_in_order_and_a_window_that_cannot_be_told_stays_open(self):
        book = RoundBook()
        for first, at in ((0, 1.0), (2, float("nan")), (4, 3.0)):
            book.add(block(first, 2, at=at))
        assert [b.first for b in book.close(50.0, 5.0)] == [0]
        assert book.close(1e9, 5.0) == []

    @pytest.mark.parametrize(
        ("changed", "match"),
        [
            ({"label": np.array([1, 2])}, "label is none of"),
            ({"settled": np.array([-3, 0])}, "label is none of"),
            ({"label": np.array([1.0, 0.0])}, "label of the block"),
            ({"label": np.zeros(3, np.int64)}, "label of the block"),
            ({"features": np.zeros((3, 1))}, "have another length"),
            ({"group": np.array(["a"])}, "have another length"),
            ({"acceptance": np.array([0.5, 1.5])}, "outside"),
            ({"acceptance": np.array([0.5, 0.0])}, "probability 0"),
            (
                {"accept": np.array([True, False]), "label": np.array([1, 1])},
                "rejected, refused or erased",
            ),
            (
                {"erased": np.array([True, False]), "label": np.array([1, 1])},
                "rejected, refused or erased",
            ),
            (
                {"overruled": np.array([True, False]), "label": np.array([1, 1])},
                "rejected, refused or erased",
            ),
            (
                {"accept": np.array([True, False]), "audit": np.array([True, True])},
                "audited who was rejected",
            ),
        ],
    )
    def test_a_book_is_not_made_of_impossible_blocks(self, changed, match):
        with pytest.raises(InvalidInput, match=match):
            RoundBook([block(0, 2, **changed)])

    def test_a_round_is_in_the_book_once(self):
        with pytest.raises(InvalidInput, match="round 1 is in the book twice"):
            RoundBook([block(0, 2), block(1, 2)])

    def test_what_happened_is_stored(self, tmp_path):
        learner = Uniform(seed=3)
        decisions = decided(learner)
        learner._collect()
        accepted = np.flatnonzero(decisions.accept)
        learner.erase(accepted[:3])
        learner.overrule(accepted[3:6], False)
        learner.save(tmp_path / "x")
        copy = eh.load(tmp_path / "x")
        mine, theirs = merged(learner.state.book.blocks), merged(copy.state.book.blocks)
        for name in (
            "overruled",
            "erased",
            "settled",
            "group_late",
            "learned",
            "label",
            "features",
            "logged",
        ):
            assert np.array_equal(getattr(mine, name), getattr(theirs, name)), name
        assert mine.group.tolist() == theirs.group.tolist()
        copy.erase(accepted[6:9])
        learner.erase(accepted[6:9])
        assert (gathered(copy) == gathered(learner)).all()


def test_after_a_suspension_nobody_is_taken_out_of_the_new_history():
    learner = CertifiedLearner(WORLD.hypotheses, FPR, 0.2, 0.05, seed=1)
    decided(learner, 100)
    learner.open_epoch()
    learner._suspend()
    learner.state.history.logs = [(1, RoundLog(np.zeros((1, 1)), None, [1.0], [0.0], [5.0], [5.0]))]
    learner.erase(range(100))
    assert learner.state.history.logs[0][1].rounds == 10


def test_groups_that_are_unknown_for_some_lose_nobody():
    """Learners without a promise about groups: unknown groups are no reason to lose anybody, or the
    groups of others.
    """
    learner = Unconstrained(WORLD.hypotheses, FPR, first_rounds=100, seed=1)
    group = PEOPLE.group[:100].astype(object)
    group[::3] = None
    group[1::3] = float("nan")
    decisions = learner.decide(PEOPLE.features[:100], group)
    learner.observe(decisions.round, PEOPLE.label[:100])
    learner.open_epoch()
    logs = [log for _, log in learner.state.history.logs]
    assert sum(log.rounds for log in logs) == 100
    assert sum(log.rounds for log in logs if log.group is not None) == 33
    assert learner.epoch.number == 2


def test_two_phase_refuses_unknown_groups_while_it_measures_gaps_and_takes_them_afterwards():
    learner = two_phase()
    with pytest.raises(InvalidInput, match="group is missing in 1 of 1 rows"):
        learner.decide([[0.0]], [float("nan")])
    generator = np.random.default_rng(0)
    while learner.epoch.phase != "bandit":
        people = WORLD.draw(50, generator)
        decisions = learner.decide(people.features, people.group)
        taken = np.flatnonzero(decisions.accept)
        learner.observe(decisions.first_round + taken, people.label[taken])
        learner.open_epoch()
    for _ in range(20):
        people = WORLD.draw(50, generator)
        decisions = learner.decide(people.features, np.where(np.arange(50) % 2, people.group, None))
        taken = np.flatnonzero(decisions.accept)
        learner.observe(decisions.first_round + taken, people.label[taken])
    learner._collect()
    assert sum(log.rounds for _, log in learner.state.history.logs) == learner.round
