"""The law of cohorts: every decided round counts, as drawn; what is lost counts at its worst;
nothing is chosen afterwards.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.learners.play import FPR, WORLD

from evenhand.errors import ProtocolError, StorageError
from evenhand.fairness import FalseNegativeRate, SelectionRate
from evenhand.fairness.delta_ledger import Booking
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL, GroupClassifier
from evenhand.learners import CertifiedLearner
from evenhand.learners.certified.evidence import from_block, labelled_groups
from evenhand.learners.rounds import Block
from evenhand.policies import Mixture
from evenhand.randomness import stream

RULE = WORLD.hypotheses.bind(WORLD.features, None).hypothesis(2)


def block(people, policy, generator, *, first=0, epoch=1, **columns):
    """Everybody decided by `policy`, labels of all accepted known."""
    acceptance = policy.acceptance(people.features, people.group)
    accept = generator.random(len(people)) < acceptance
    label = np.where(accept, people.label, 0)
    return Block(
        first=first,
        epoch=epoch,
        features=people.features,
        group=people.group.astype(object),
        accept=accept,
        acceptance=acceptance,
        prices=None,
        label=label,
        logged=np.zeros(len(people), bool),
        audit=accept & (generator.random(len(people)) < 0.2),
        settled=label,
        **columns,
    )


def some(rounds=400, policy=None, **columns):
    generator = stream(3, "some")
    mixed = policy or Mixture((ACCEPT_ALL, REJECT_ALL, RULE), (0.2, 0.1, 0.7))
    return block(WORLD.draw(rounds, generator), mixed, generator, **columns)


class TestTheType:
    def test_a_selection_made_afterwards_has_no_constructor(self):
        whole = from_block(some())
        for rows in (np.arange(1, len(whole.features)), np.flatnonzero(whole.positive == 0)):
            columns = {
                name: getattr(whole, name)[..., rows]
                for name in (
                    *(
                        "acceptance",
                        "rejected",
                        "positive",
                        "negative",
                        "unresolved",
                        "settled",
                        "settled_audited",
                    ),
                    *("audited_positive", "audited_negative", "audited_unresolved", "group"),
                )
            }
            with pytest.raises(ProtocolError, match="looks at everybody who was decided"):
                replace(whole, features=whole.features[rows], **columns)

    def test_a_life_refuses_a_gap_and_a_repetition(self):
        learner = CertifiedLearner(WORLD.hypotheses, FPR, 0.2, 0.05, seed=1)
        learner.replay([some(100)], 100)
        for first in (101, 99, 0):
            with pytest.raises(ProtocolError, match="round 100 is the next to be looked at"):
                learner.replay([replace(some(50), first=first)], 300)

    def test_everybody_is_in_one_column(self):
        drawn = some()
        r = np.random.default_rng(0)
        marks = dict(overruled=r.random(400) < 0.1, erased=r.random(400) < 0.1)
        drawn = replace(drawn, **marks, label=np.where(r.random(400) < 0.2, 0, drawn.label))
        cohort = from_block(drawn)
        assert cohort.rounds.sum() + cohort.lost == 400
        here = ~drawn.erased
        assert cohort.rejected.sum() == (~drawn.accept & here).sum()
        assert (
            cohort.positive.sum()
            == (drawn.accept & here & ~drawn.overruled & (drawn.label == 1)).sum()
        )
        assert (
            cohort.unresolved.sum()
            == (drawn.accept & here & (drawn.overruled | (drawn.label == 0))).sum()
        )
        assert cohort.lost_accepted.sum() == (drawn.accept & drawn.erased).sum()
        assert cohort.lost_audited == (drawn.audit & drawn.erased).sum()

    def test_the_loss_sees_neither_overruled_nor_erased_people(self):
        drawn = some()
        accepted = np.flatnonzero(drawn.accept)
        overruled, erased = np.zeros(400, bool), np.zeros(400, bool)
        overruled[accepted[:30]] = True
        erased[accepted[30:40]] = True
        log = from_block(replace(drawn, overruled=overruled, erased=erased)).log
        assert log.accepted.sum() == len(accepted) - 40

    def test_overruled_rejections_stay_rejected(self):
        drawn = some()
        plain = from_block(drawn)
        marked = from_block(replace(drawn, overruled=~drawn.accept))
        np.testing.assert_array_equal(plain.rejected, marked.rejected)
        np.testing.assert_array_equal(plain.positive, marked.positive)
        by_group = {(g, False): float(((drawn.group == g) & ~drawn.accept).sum()) for g in "ab"}
        assert marked.overruled == by_group

    def test_the_drift_categories_are_those_of_the_end_of_the_window(self):
        drawn = some()
        late = np.zeros(400, bool)
        late[np.flatnonzero(drawn.accept)[::3]] = True
        cohort = from_block(replace(drawn, settled=np.where(late, 0, drawn.settled)))
        assert cohort.positive.sum() == (drawn.label == 1).sum()
        assert cohort.settled[0].sum() == ((drawn.label == 1) & ~late).sum()
        assert cohort.settled[2].sum() == late.sum()
        assert cohort.settled_audited.sum() == drawn.audit.sum()


class TestWhoseLabelsCount:
    def test_the_policy_decides_before_the_coins(self):
        groups = ("a", "b")
        everybody = Mixture((ACCEPT_ALL, RULE), (0.01, 0.99))
        assert labelled_groups(everybody, groups).tolist() == [True, True]
        assert labelled_groups(Mixture((RULE,), (1.0,)), groups).tolist() == [False, False]
        by_group = Mixture((GroupClassifier("a"), RULE), (0.1, 0.9), "decide")
        assert labelled_groups(by_group, groups).tolist() == [True, False]

    @pytest.mark.parametrize("rate", [FPR, FalseNegativeRate(), SelectionRate()])
    def test_a_policy_that_cannot_accept_everybody_narrows_selection_rates_alone(self, rate):
        learner = CertifiedLearner(WORLD.hypotheses, rate, 0.3, 0.05, seed=1)
        accept_all = Mixture((ACCEPT_ALL,), (1.0,))
        learner.replay([some(600, accept_all)], 600, published=Mixture((RULE,), (1.0,)))
        before = learner.state.run.process.intervals()
        learner.replay([some(3000, Mixture((RULE,), (1.0,)), first=600, epoch=2)], 3600)
        after = learner.state.run.process.intervals()
        narrower = (after[1] - after[0]) < (before[1] - before[0]) - 1e-9
        assert narrower.any() == isinstance(rate, SelectionRate)


class TestFrozen:
    def frozen(self, rate=FPR):
        learner = CertifiedLearner(WORLD.hypotheses, rate, 0.2, 0.05, audit_budget=200, seed=1)
        generator = stream(5, "people")
        while learner.epoch.phase != "frozen":
            people = WORLD.draw(100, generator)
            decisions = learner.decide(people.features, people.group)
            accepted = np.flatnonzero(decisions.accept)
            learner.observe(decisions.first_round + accepted, people.label[accepted])
        return learner, generator

    @pytest.mark.parametrize("rate", [FPR, SelectionRate()])
    def test_no_closing_changes_policy_or_certificate(self, rate):
        learner, generator = self.frozen(rate)
        policy, certificate = learner.policy, learner.certificate.to_json()
        intervals = learner.state.run.process.intervals()
        for _ in range(5):
            first = learner.state.run.next_round
            played = block(
                WORLD.draw(500, generator),
                policy,
                generator,
                first=first,
                epoch=learner.epoch.number,
            )
            learner.replay([played], first + 500)
            assert learner.policy is policy
            assert learner.epoch.phase == "frozen"
            assert learner.certificate.to_json() == certificate
            np.testing.assert_array_equal(learner.state.run.process.intervals()[0], intervals[0])

    def test_only_a_suspension_ends_it(self):
        learner, generator = self.frozen()
        for _ in range(8):
            first = learner.state.run.next_round
            people = WORLD.draw(2000, generator)
            moved = replace(people, group=np.where(generator.random(2000) < 0.5, "b", people.group))
            played = block(
                moved, learner.policy, generator, first=first, epoch=learner.epoch.number
            )
            learner.replay([played], first + 2000)
            if learner.state.run.number > 1:
                break
        assert "group mix" in learner.state.run.ended
        assert learner.certificate.status == "suspended"


class TestCheckpoints:
    def play(self, learner, closings, generator, erased=None):
        blocks = []
        for _ in range(closings):
            first, epoch = learner.state.run.next_round, learner.epoch
            size = min(epoch.rounds, 400)
            played = block(
                WORLD.draw(size, generator),
                epoch.policy,
                generator,
                first=first,
                epoch=epoch.number,
            )
            blocks.append(played)
            learner.replay([played], first + size)
        return blocks

    def fresh(self, **settings):
        return CertifiedLearner(WORLD.hypotheses, FPR, 0.2, 0.05, seed=1, **settings)

    def policies(self, learner):
        return [epoch.policy for epoch in learner.report.epochs]

    def test_a_learner_that_takes_it_up_continues_bit_for_bit(self):
        learner, generator = self.fresh(), stream(6, "people")
        blocks = self.play(learner, 6, generator)
        copy = self.fresh()
        copy.resume(learner.checkpoint(), self.policies(learner), blocks)
        assert copy.certificate == learner.certificate
        for _ in range(3):
            state = generator.bit_generator.state
            self.play(learner, 1, generator)
            generator.bit_generator.state = state
            self.play(copy, 1, generator)
            assert copy.policy == learner.policy
            assert copy.certificate == learner.certificate
            assert copy.checkpoint() == learner.checkpoint()

    def test_who_is_erased_afterwards_changes_no_sum_and_spends_nothing(self):
        learner, generator = self.fresh(), stream(6, "people")
        blocks = self.play(learner, 8, generator)
        gone = [
            replace(b, erased=b.accept & (b.label == -1)) for b in blocks
        ]  # chosen by outcome and decision
        copy = self.fresh()
        copy.resume(learner.checkpoint(), self.policies(learner), gone)
        assert copy.certificate == learner.certificate
        assert copy.bookings == learner.bookings
        np.testing.assert_array_equal(
            copy.state.run.process.intervals()[0], learner.state.run.process.intervals()[0]
        )
        assert copy._resolved().negative.sum() == 0
        self.play(copy, 2, generator)
        assert copy.bookings == learner.bookings

    def test_it_holds_nobody(self):
        learner, generator = self.fresh(bound="nominate"), stream(6, "people")
        self.play(learner, 6, generator)
        assert learner.state.run.evidence.audits
        stored = learner.checkpoint()["state"]
        tally = next(item[1] for item in stored["items"] if item[0] == "_life")["fields"]["tally"][
            "fields"
        ]
        assert tally["audits"]["items"] == []
        assert tally["past"]["fields"]["group"]["items"] == []

    def test_another_promise_or_older_rules_are_refused(self):
        learner, generator = self.fresh(), stream(6, "people")
        blocks = self.play(learner, 3, generator)
        kept = learner.checkpoint()
        with pytest.raises(StorageError, match="another promise"):
            CertifiedLearner(WORLD.hypotheses, FPR, 0.1, 0.05, seed=1).resume(
                kept, self.policies(learner), blocks
            )
        with pytest.raises(StorageError, match="rules 1"):
            self.fresh().resume({**kept, "rules": 1}, self.policies(learner), blocks)


def test_a_new_life_succeeds_an_older_record_from_the_reserve():
    learner = CertifiedLearner(WORLD.hypotheses, FPR, 0.2, 0.05, seed=1)
    policies = [Mixture((ACCEPT_ALL,), (1.0,)), Mixture((ACCEPT_ALL, RULE), (0.5, 0.5))]
    learner.succeed(
        policies,
        [Booking("life 1: betting over 6 hypotheses", 0.045, 100)],
        5000,
        "written under rules 1",
    )
    assert (learner.round, learner.epoch.number, learner.epoch.first_round) == (5000, 3, 5000)
    assert learner.certificate.status == "suspended"
    assert learner.learned_weight == 0
    generator = stream(7, "people")
    while learner.round < 9000:
        people = WORLD.draw(100, generator)
        decisions = learner.decide(people.features, people.group)
        accepted = np.flatnonzero(decisions.accept)
        learner.observe(decisions.first_round + accepted, people.label[accepted])
    assert learner.learned_weight > 0.3
    assert 0.045 < learner.certificate.spent <= 0.05
    assert learner.certificate.status == "certified"
