"""Streams of categories that are i.i.d. while the population does not change: those whom a watched
rule keeps are draws of the population given h(x) = 1, whatever the mixture was.
"""

import numpy as np
import pytest
from tests.play import FPR, WORLD, decide_people, report_all
from tests.rounds.made import EVERYBODY, first, table

from evenhand.algorithms.certified import drift
from evenhand.algorithms.certified.drift import (
    FIRST_LOOK,
    MOST_RULES,
    DriftWatch,
    WatchedRule,
    next_look,
)
from evenhand.estimation import RoundLog
from evenhand.fairness.drift import Stream
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners import CertifiedLearner
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.rounds import PATIENCE, Counts, Rounds, reports
from evenhand.simulation import simulate

ROWS = WORLD.hypotheses.bind(WORLD.features, None)
RULES = [ROWS.hypothesis(i) for i in range(2, 8)]
GROUPS = ("a", "b")
ACCEPTING = Mixture((ACCEPT_ALL,), (1.0,))


def cohort(policy, rounds=1000):
    acceptance = policy.acceptance(WORLD.features, WORLD.group)
    counts = WORLD.draw_counts(rounds, acceptance, stream(rounds, "cohort"))
    columns = (counts.rejected, counts.accepted_positive, counts.accepted_negative)
    log = RoundLog(
        WORLD.features, WORLD.group, acceptance, *(column.astype(float) for column in columns)
    )
    return Counts.of_log(1, 0, log, 0.1, stream(1, "audit"))


def watching(*rules):
    """A watch that has been following these rules."""
    watch = DriftWatch.start(GROUPS, 1e-3, 0, seed=1, run=1)
    return DriftWatch(
        watch.monitor, GROUPS, fed_to=0, seed=1, run=1, rules=rules, opened=len(rules)
    )


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
def test_all_whom_the_rule_accepts_are_kept_with_the_same_probability(weights, monkeypatch):
    policy = Mixture((ACCEPT_ALL, REJECT_ALL, RULES[0], RULES[3]), weights)
    coins = Spy()
    monkeypatch.setattr(drift, "stream", lambda *_: coins)
    seen = cohort(policy)
    watching(WatchedRule(RULES[0], 1, 1))._fed(seen, policy, GROUPS)
    inside = RULES[0].accepts(seen.features)
    chance = coins.chances[0]  # the first watched rule; others may join
    for row in chance:
        np.testing.assert_allclose(
            (row * seen.acceptance)[inside], weights[0] + weights[2], atol=1e-12
        )
        assert not row[~inside].any()


def test_rules_are_opened_by_weight_and_given_up_when_too_many():
    watch = watching()
    for rule in RULES:
        policy = Mixture((ACCEPT_ALL, rule), (0.1, 0.9))
        watch = watch._fed(cohort(policy), policy, GROUPS)
    assert len(watch.rules) == MOST_RULES
    assert watch.opened == len(RULES)
    assert RULES[-1] in [watched.rule for watched in watch.rules]
    named = [name for name in watch.monitor.streams if name.rule is not None]
    assert len(named) == 4 * MOST_RULES
    assert sum(test.false_alarm for test in watch.monitor.streams.values()) <= 1e-3
    assert not watch.monitor.alarms
    last = watch.rules[-1]
    assert watch.rule_of(Stream("labels", "a", last.number)) == last.rule
    assert watch.rule_of(Stream("group mix")) is None


def test_a_rule_is_not_shown_labels_of_epochs_that_may_have_chosen_it():
    policy = Mixture((ACCEPT_ALL, RULES[0]), (0.1, 0.9))
    for since, shown in ((1, True), (2, False)):
        watch = watching(WatchedRule(RULES[0], 1, since))._fed(cohort(policy), policy, GROUPS)
        assert (Stream("labels", "a", 1) in watch.monitor.streams) == shown
        assert Stream("share", "a", 1) in watch.monitor.streams


def test_looks_are_preset_counts_of_people():
    assert next_look(0) == FIRST_LOOK
    assert next_look(10_000) == 10_250
    assert next_look(50_000) == 51_000


def test_rounds_are_fed_once_in_the_order_of_arrival():
    """A label that never comes counts as "not come" after PATIENCE later arrivals."""
    people = WORLD.draw(500, np.random.default_rng(1))
    rounds = decide_people(Rounds(), people, ACCEPTING, stream(1, "coins"), audit=1.0)
    told = np.setdiff1d(np.arange(500), [40, 300])
    reports.enter_labels(rounds, told, people.label[told])
    watch = DriftWatch.start(GROUPS, 1e-3, 0, seed=1, run=1)
    first = watch.feed(rounds, GROUPS, None, None)
    assert first.fed_to == 40
    assert first.feed(rounds, GROUPS, None, None).monitor == first.monitor
    more = WORLD.draw(PATIENCE, np.random.default_rng(2))
    decide_people(rounds, more, ACCEPTING, stream(2, "coins"), epoch=1, audit=1.0)
    report_all(rounds, more, 500)
    second = first.feed(rounds, GROUPS, None, None)
    assert second.fed_to == 600
    labels = [second.monitor.streams[Stream("labels", group)] for group in GROUPS]
    fed = np.array([test.total for test in labels]).sum(axis=0)
    assert fed[2] == 2
    assert fed.sum() == 600
    assert watch.fed_to == 0  # frozen


def test_a_learner_watches_what_it_deploys():
    learner = simulate(CertifiedLearner(WORLD.hypotheses, FPR, 0.3, 0.05), WORLD, 20_000, 0).learner
    streams = learner.drift.streams
    assert any(name.kind == "labels" and name.rule is not None for name in streams)
    by_rule = [sum(test.total) for name, test in streams.items() if name.rule is not None]
    assert max(by_rule) > 3000
    assert not learner.drift.alarms


def test_what_is_settled_for_drift_waits_for_what_is_not():
    rounds = table(60, policy=EVERYBODY, told=False)
    reports.enter_labels(rounds, np.r_[0:20, 21:60], np.ones(59, int))
    assert drift.settled_before(rounds, 0, None, None) == 20
    decide_people(rounds, first(PATIENCE), EVERYBODY, stream(1, "more"), epoch=1)
    # the label of round 20 counts as "not come" now
    assert drift.settled_before(rounds, 0, None, None) == 60
    assert drift.settled_before(rounds, 0, 100.0, 5.0) == 0
