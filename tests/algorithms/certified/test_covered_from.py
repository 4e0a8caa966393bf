"""A certificate says of each group from which round on it is covered.

Group c is one person in a hundred, and the only rule treats it as it treats nobody else: before c
has joined, the policies are far above the limit for it, and nothing may be claimed of them. After
that every policy keeps the limit for all three groups, with probability .95 a run; five runs with
fixed seeds, all of which keep it.
"""

import re

import numpy as np
import pytest

from evenhand import CertifiedLearner
from evenhand.environments import Discrete
from evenhand.fairness.certificate import Certificate

LIMIT, DELTA = 0.2, 0.05
SEEDS = range(5)


def world(share_of_c=0.01):
    """Low and high scores in three groups; the rule accepts high ones, and in c the low ones."""
    share = np.repeat([0.5 * (1 - share_of_c), 0.5 * (1 - share_of_c), share_of_c], 2)
    good = [0.2, 0.8, 0.2, 0.8, 0.2, 0.8]
    accepts = np.array([[False, True, False, True, True, False]])
    return Discrete(0.5 * share, good, np.repeat(["a", "b", "c"], 2), accepts, name="late c")


def played(seed, rounds=4000, share_of_c=0.01, **settings):
    population = world(share_of_c)
    learner = CertifiedLearner(population.hypotheses, "fpr", LIMIT, DELTA, seed=seed, **settings)
    people = np.random.default_rng([seed, 1])
    while learner.round < rounds:
        sample = population.draw(50, people)
        decisions = learner.decide(sample.features, sample.group)
        learner.observe(decisions.round[decisions.accept], sample.label[decisions.accept])
    return learner


@pytest.fixture(scope="module")
def runs():
    return [played(seed) for seed in SEEDS]


def worst_gap(policy):
    return float(np.abs(world().gaps(policy, "fpr")).max())


@pytest.mark.thorough
def test_a_late_group_is_covered_from_the_policy_after_it_joined(runs):
    for learner in runs:
        certificate = learner.certificate
        assert certificate.groups == ("a", "b", "c")
        covered = dict(certificate.covered_from)
        assert set(covered) == {"a", "b", "c"}
        assert covered["a"] == covered["b"] == 0
        assert covered["c"] == learner.bookings[-1].at  # where the share of c was booked
        assert covered["c"] in {epoch.first_round for epoch in learner.report.epochs}


def test_what_is_claimed_is_true_and_what_came_before_is_not_claimed(runs):
    above = 0
    for learner in runs:
        since = dict(learner.certificate.covered_from)["c"]
        for epoch in learner.report.epochs:
            if epoch.first_round >= since:
                assert worst_gap(epoch.policy) <= LIMIT
            above += worst_gap(epoch.policy) > LIMIT
    assert above >= 5  # there is something that must not be claimed


def test_the_sentence_says_since_when(runs):
    for learner in runs:
        certificate = learner.certificate
        since = dict(certificate.covered_from)["c"]
        text = certificate.describe()
        assert re.search(rf"\bc\b[^\n]*from round {since:,}\b", text)
        # whatever is said of the whole run is not said of c
        for line in text.splitlines():
            for sentence in line.split(". "):
                if "whole run" in sentence and "false alarm" not in sentence:
                    assert not re.search(r"\bc\b", sentence)


def test_groups_that_were_in_from_the_start_are_covered_over_the_whole_run():
    for settings in ({"share_of_c": 0.3}, {"groups": ("a", "b", "c"), "share_of_c": 0.1}):
        certificate = played(1, rounds=1500, **settings).certificate
        assert dict(certificate.covered_from) == {"a": 0, "b": 0, "c": 0}
        assert "whole run" in certificate.describe()
        assert "from round" not in certificate.describe()


def test_it_is_stored(runs, tmp_path):
    import evenhand as eh

    learner = runs[0]
    certificate = learner.certificate
    again = Certificate.from_json(certificate.to_json())
    assert dict(again.covered_from) == dict(certificate.covered_from)
    learner.save(tmp_path / "learner")
    loaded = eh.load(tmp_path / "learner").certificate
    assert dict(loaded.covered_from) == dict(certificate.covered_from)
