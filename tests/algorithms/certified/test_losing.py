"""After its coin a round may only lose information: a human overrules it, the person is erased, the
group comes late. What learners know of these rounds afterwards.

The rows themselves are tested in `tests/rounds`.
"""

import numpy as np
import pytest
from tests.play import FPR, WORLD, certified, every_learner, two_phase

import evenhand as eh
from evenhand.errors import InvalidInput, ProtocolError
from evenhand.estimation.outcomes import fit_outcomes
from evenhand.learners import AcceptAll, Unconstrained, Uniform
from evenhand.rounds import counting, learning, reports
from evenhand.words import Prices

PEOPLE = WORLD.draw(400, np.random.default_rng(1))


def decided(learner, people=60, *, told=True, prices=None):
    """The learner after a block of people, and all labels."""
    given = {} if prices is None else {"prices": prices}
    decisions = learner.decide(PEOPLE.features[:people], PEOPLE.group[:people], **given)
    if told:
        accepted = np.flatnonzero(decisions.accept)
        learner.observe(accepted, PEOPLE.label[accepted])
    return decisions


def gathered(learner):
    """(rejected, positive, negative) per context, of all that the loss may learn from."""
    found = np.zeros((3, 6))
    for _, log in learner.gathered:
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


class TestTheLoss:
    def check_overruled(self, learner):
        decisions = decided(learner)
        accepted = np.flatnonzero(decisions.accept)[:7]
        learner.overrule(accepted, False)
        assert (gathered(learner) == expected(decisions, set(accepted.tolist()))).all()

    def test_whoever_was_drawn_to_be_accepted_and_rejected_by_a_human_never_enters(self):
        self.check_overruled(Uniform(seed=3))

    def test_the_requirement_has_teeth(self, monkeypatch):
        """A table that does not listen keeps the labels of those who were overruled."""
        monkeypatch.setattr(reports, "overrule", lambda *_, **__: np.zeros(0, np.int64))
        with pytest.raises(AssertionError):
            self.check_overruled(Uniform(seed=3))

    def test_whoever_was_drawn_to_be_rejected_and_accepted_by_a_human_stays_rejected(self):
        learner = Uniform(seed=3)
        decisions = decided(learner)
        learner.overrule(np.flatnonzero(~decisions.accept), True)
        assert (gathered(learner) == expected(decisions, set())).all()

    @pytest.mark.parametrize("told", [False, True])
    def test_the_erased_leave(self, told):
        learner = Uniform(seed=3)
        decisions = decided(learner)
        left_out = [0, 5, 17, 59]
        learner.erase(left_out if told else np.array(left_out))
        assert (gathered(learner) == expected(decisions, set(left_out))).all()

    def test_of_two_people_alike_but_for_their_prices_the_right_one_is_forgotten(self):
        learner = AcceptAll(seed=0)
        learner.decide(np.zeros((2, 1)), ["a", "a"], prices=Prices([0.5, 1.0], [1.0, 1.0]))
        learner.observe([0, 1], [1, 1])
        learner.erase(0)
        ((_, log),) = learner.gathered
        assert log.prices.false_accept.tolist() == [1.0]
        assert log.positive.tolist() == [1.0]

    def test_what_was_fitted_to_the_person_is_forgotten_by_the_next_fit(self):
        learner = certified()
        decided(learner, 200)
        learner.open_epoch()
        rounds = learner.rounds
        before = fit_outcomes(learning.log(rounds, with_group=False))
        learner.erase(np.flatnonzero(PEOPLE.label[:200] == -1)[:20])
        after = fit_outcomes(learning.log(rounds, with_group=False))
        assert after.overall < before.overall
        assert learning.log(rounds, with_group=False).rounds == 180

    @pytest.mark.parametrize("name", list(every_learner()))
    def test_every_learner_goes_on(self, name):
        """Overruled people, and erased ones of all epochs: the loss may learn from the others.

        Nobody is lost in the first 1000 rounds: whoever is lost while a learner explores keeps it
        waiting.
        """
        learner, generator, lost = every_learner()[name], np.random.default_rng(3), set()
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
        assert learner.round == 2000
        assert sum(log.rounds for _, log in learner.gathered) == 2000 - len(lost)


class TestTheCertificate:
    def test_sums_of_closed_cohorts_stay(self):
        learner = certified()
        for _ in range(10):
            decided(learner, 60)
        before = learner.certificate
        intervals = learner.state.process.intervals()
        assert learner.state.closed_to > 120
        learner.erase(range(100))
        learner.overrule(range(100, 120), False)
        assert learner.certificate == before
        np.testing.assert_array_equal(learner.state.process.intervals()[0], intervals[0])

    def test_who_is_erased_after_the_closing_changes_no_sum_and_spends_nothing(self):
        """Chosen by outcome and decision, which is the worst that can be done."""
        learner, twin = certified(), certified()
        generators = [np.random.default_rng(2) for _ in range(2)]
        for one, generator in zip((learner, twin), generators, strict=True):
            for _ in range(10):
                people = WORLD.draw(200, generator)
                decisions = one.decide(people.features, people.group)
                accepted = np.flatnonzero(decisions.accept)
                one.observe(decisions.first_round + accepted, people.label[accepted])
        rounds = twin.rounds
        closed = rounds["round"] < twin.state.closed_to
        chosen = closed & rounds["accept"] & (rounds["label"] == -1)
        twin.erase(np.flatnonzero(chosen))
        assert twin.certificate == learner.certificate
        assert twin.bookings == learner.bookings
        assert learning.log(twin.rounds, stop=twin.state.closed_to).negative.sum() == 0
        for one, generator in zip((learner, twin), generators, strict=True):
            people = WORLD.draw(2000, generator)
            one.decide(people.features, people.group)
            one.decide(people.features, people.group)
        assert twin.bookings == learner.bookings
        assert twin.certificate.erased == 0

    def test_late_groups_count_while_the_cohort_is_open(self):
        learner = certified()
        learner.decide(
            PEOPLE.features[:150], np.where(np.arange(150) < 3, None, PEOPLE.group[:150])
        )
        learner.report_group([1, 2, 3], [*PEOPLE.group[1:3], PEOPLE.group[3]])
        with pytest.raises(ProtocolError):
            learner.report_group(3, "c")
        learner.observe(range(150), PEOPLE.label[:150])
        learner.open_epoch()
        assert sum(learner.state.evidence.late_groups.values()) == 2
        assert learner.state.evidence.unknown == 1
        with pytest.raises(ProtocolError):
            learner.report_group(5, "c")
        learner.report_group(0, "b")  # its cohort is closed: it stays outside
        assert learner.rounds.groups_of(slice(0, 1)).tolist() == [None]

    def test_a_group_reported_with_an_outcome_brings_nobody_in(self):
        """Only accepted people have outcomes, so it would depend on the draw."""
        learner = certified()
        learner.decide(PEOPLE.features[:2], ["a", None])
        learner.observe(1, 1, group="b")
        assert learner.rounds.groups_of(slice(None)).tolist() == ["a", None]
        with pytest.raises(ProtocolError):
            learner.observe(0, 1, group="b")

    def test_after_a_suspension_nobody_of_the_run_before_is_missed(self):
        learner = certified()
        decided(learner, 100)
        learner.open_epoch()
        state, epoch = learner.algorithm._suspend(learner.state, learner.rounds)
        learner.state = state
        learner.rounds.open(epoch)
        learner.erase(range(100))
        assert learner.state is state
        people = WORLD.draw(300, np.random.default_rng(2))
        decisions = learner.decide(people.features, people.group)
        learner.observe(decisions.round, people.label)
        learner.decide(people.features, people.group)
        assert learner.state.evidence.people == 300
        assert learner.certificate.erased == 0


def test_what_happened_is_stored(tmp_path):
    learner = Uniform(seed=3)
    decisions = decided(learner)
    accepted = np.flatnonzero(decisions.accept)
    learner.erase(accepted[:3])
    learner.overrule(accepted[3:6], False)
    learner.save(tmp_path / "x")
    copy = eh.load(tmp_path / "x")
    for one in (copy, learner):
        one.erase(accepted[6:9])
    assert (gathered(copy) == gathered(learner)).all()
    assert copy.report == learner.report


def test_groups_that_are_unknown_for_some_lose_nobody():
    """Learners without a guarantee about groups: unknown groups are no reason to lose anybody."""
    learner = Unconstrained(WORLD.hypotheses, FPR, first_rounds=100, seed=1)
    group = PEOPLE.group[:100].astype(object)
    group[::3] = None
    group[1::3] = float("nan")
    decisions = learner.decide(PEOPLE.features[:100], group)
    learner.observe(decisions.round, PEOPLE.label[:100])
    learner.open_epoch()
    assert sum(log.rounds for _, log in learner.gathered) == 100
    assert counting.people_by_group(learner.rounds)[None] == 67
    assert learner.epoch.number == 2


def test_two_phase_needs_groups_while_it_measures_gaps_and_not_afterwards():
    learner = two_phase()
    with pytest.raises(InvalidInput):
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
    assert sum(log.rounds for _, log in learner.gathered) == learner.round
