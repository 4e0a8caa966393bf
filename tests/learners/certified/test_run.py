"""A certification run: whose labels count, freezing, checkpoints and succession; and the rules that
it watches: those kept are draws of the population given h(x) = 1, whatever the mixture was.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.learners.certified.test_evidence import RULE, block, some
from tests.learners.play import FPR, WORLD

from evenhand.errors import StorageError
from evenhand.estimation import RoundLog
from evenhand.fairness import FalseNegativeRate, SelectionRate
from evenhand.fairness.delta_ledger import Booking
from evenhand.fairness.drift import DriftMonitor
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL, GroupClassifier
from evenhand.learners import CertifiedLearner
from evenhand.learners.certified.evidence import from_counts
from evenhand.learners.certified.run import MOST_RULES, WatchedRules, labelled_groups
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.simulate import simulate


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
        assert copy.state.history.of().negative.sum() == 0
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


# the rules that are watched

ROWS = WORLD.hypotheses.bind(WORLD.features, None)
RULES = [ROWS.hypothesis(i) for i in range(2, 8)]
GROUPS = ("a", "b")


def cohort(policy, rounds=1000):
    acceptance = policy.acceptance(WORLD.features, WORLD.group)
    counts = WORLD.draw_counts(rounds, acceptance, stream(rounds, "cohort"))
    columns = (counts.rejected, counts.accepted_positive, counts.accepted_negative)
    log = RoundLog(
        WORLD.features, WORLD.group, acceptance, *(column.astype(float) for column in columns)
    )
    return from_counts(1, log, 0.1, stream(1, "audit"))


class Spy:
    """Remembers the chances it is asked with."""

    def __init__(self):
        self.chances = []

    def binomial(self, number, chance):
        self.chances.append(np.broadcast_to(chance, np.shape(number)))
        return number


@pytest.mark.parametrize(
    "weights", [(0.1, 0.2, 0.6, 0.1), (0.02, 0.0, 0.08, 0.9), (0.3, 0.5, 0.1, 0.1)]
)
def test_everybody_whom_the_rule_accepts_is_kept_with_the_same_probability(weights):
    policy = Mixture((ACCEPT_ALL, REJECT_ALL, RULES[0], RULES[3]), weights)
    coins = Spy()
    watched = WatchedRules(coins, (RULES[0],), (1,), (1,), 1)
    seen = cohort(policy)
    watched.watch_labels(DriftMonitor.start({"group mix": 3}), seen, policy, GROUPS)
    inside = RULES[0].accepts(seen.features)
    assert coins.chances
    for chance in np.concatenate(coins.chances):
        np.testing.assert_allclose(
            (chance * seen.acceptance)[inside], weights[0] + weights[2], atol=1e-12
        )
        assert not chance[~inside].any()


def test_rules_are_opened_by_weight_and_given_up_when_too_many():
    watched, monitor = WatchedRules(stream(1, "watched")), DriftMonitor.start({"group mix": 3})
    for rule in RULES:
        policy = Mixture((ACCEPT_ALL, rule), (0.1, 0.9))
        seen = cohort(policy)
        monitor = watched.watch(monitor, seen, policy, GROUPS, GROUPS, labels=True)
    assert len(watched.rules) == MOST_RULES
    assert watched.opened == len(RULES)
    assert RULES[-1] in watched.rules
    named = [name for name in monitor.streams if "rule" in name]
    assert len(named) == 4 * MOST_RULES
    assert sum(test.false_alarm for test in monitor.streams.values()) <= 1e-3
    assert not monitor.alarms


def test_a_rule_is_not_shown_labels_of_epochs_that_may_have_chosen_it():
    policy = Mixture((ACCEPT_ALL, RULES[0]), (0.1, 0.9))
    watched = WatchedRules(stream(1, "watched"), (RULES[0],), (1,), (2,), 1)
    monitor = watched.watch_labels(
        DriftMonitor.start({"group mix": 3}), cohort(policy), policy, GROUPS
    )
    assert "labels of a accepted by rule 1" not in monitor.streams


def test_a_learner_watches_what_it_deploys():
    learner = simulate(CertifiedLearner(WORLD.hypotheses, FPR, 0.3, 0.05), WORLD, 20_000, 0).learner
    streams = learner.state.run.monitor.streams
    assert any(name.startswith("labels of b accepted by rule") for name in streams)
    assert (
        max(sum(test.total) for name, test in streams.items() if "accepted by rule" in name) > 3000
    )
    assert not learner.state.run.monitor.alarms
