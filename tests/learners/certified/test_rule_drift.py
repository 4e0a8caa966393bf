"""The watched rules: those kept are draws of the population given h(x) = 1, whatever the mixture
was.
"""

import numpy as np
import pytest
from tests.learners.play import FPR, WORLD

from evenhand.estimation import RoundLog
from evenhand.fairness.drift import DriftMonitor
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners import CertifiedLearner
from evenhand.learners.certified.evidence import from_counts
from evenhand.learners.certified.rule_drift import MOST_RULES, WatchedRules
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.simulate import simulate

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
