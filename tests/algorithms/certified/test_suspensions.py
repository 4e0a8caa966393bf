"""After a suspension the certificate says so, and claims nothing of what came before.

The outcomes of one group turn round: until the drift tests notice it, people are decided far above
the limit under a certified policy. The next certificate is about later policies alone, and names
the round and what was found. Seeds are fixed; the change is so large that a run in which it is not
found within the rounds played would be a failure of the drift tests (tests/claims has their power).
"""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from tests.flips import CALL, DELTA, LIMIT, population

import evenhand as eh
from evenhand import CertifiedLearner
from evenhand.fairness.certificate import Certificate

CHANGES = (6000, 12000)
MOST = 20000


def played(seed, changes, most, learner=None, **settings):
    """Group b's outcomes turn round at each of the changes. Returns the learner, and of each epoch
    that it opened its first round and the worst true gap of its policy for anybody it decided.
    """
    if learner is None:
        learner = CertifiedLearner(
            population().hypotheses, "fpr", LIMIT, DELTA, seed=seed, **settings
        )
    people = np.random.default_rng([seed, 1])
    gaps = []
    while learner.round < most:
        turned = sum(change <= learner.round for change in changes) % 2 == 1
        world = population(flipped=turned)
        sample = world.draw(CALL, people)
        decisions = learner.decide(sample.features, sample.group)
        accepted = np.flatnonzero(decisions.accept)
        learner.observe(decisions.first_round + accepted, sample.label[accepted])
        gap = float(np.abs(world.gaps(learner.policy, "fpr")).max())
        gaps.append((decisions.first_round, gap))
    return learner, gaps


def suspended_at(learner):
    """The rounds in which a learned policy gave way to a constant."""
    phases = [(epoch.first_round, epoch.phase) for epoch in learner.report.epochs]
    return [
        first
        for (_, before), (first, after) in itertools.pairwise(phases)
        if (before, after) == ("certified", "explore")
    ]


@pytest.fixture(scope="module")
def once():
    return played(0, CHANGES[:1], 9000)


@pytest.fixture(scope="module")
def twice():
    return played(0, CHANGES, MOST)


def test_the_claim_begins_after_the_suspension(once):
    learner, gaps = once
    certificate = learner.certificate
    assert certificate.status == "certified"
    [at] = suspended_at(learner)
    assert at > CHANGES[0]
    assert f"from round {at:,} on the gap" in certificate.claim
    assert "whole run" not in certificate.claim
    assert dict(certificate.covered_from) == {"a": at, "b": at}
    assert certificate.window[0] == at
    assert f"does not change from round {at:,} on" in certificate.assumptions[0]
    # there is something that must not be claimed, and nothing of it is
    assert any(gap > LIMIT for first, gap in gaps if first < at)
    assert all(gap <= LIMIT for first, gap in gaps if first >= at)


def test_an_auditor_reads_when_and_why_and_who_decided_meanwhile(once):
    learner, _ = once
    [found] = learner.certificate.suspensions
    assert found.round == suspended_at(learner)[0]
    assert found.reasons
    assert all(reason.startswith("labels of b") for reason in found.reasons)
    resumed = next(
        epoch.first_round
        for epoch in learner.report.epochs
        if epoch.phase == "certified" and epoch.first_round > found.round
    )
    assert found.resumed == resumed
    assert f"{found.describe()}." in learner.certificate.result().beware


def test_every_suspension_is_on_the_certificate_and_the_claim_begins_with_the_last(twice):
    learner, _ = twice
    certificate = learner.certificate
    assert certificate.status == "certified"
    at = suspended_at(learner)
    assert len(at) == 2
    assert [one.round for one in certificate.suspensions] == at
    assert set(dict(certificate.covered_from).values()) == {at[-1]}
    assert certificate.since == at[-1]


def test_while_it_is_suspended_it_says_that_constants_decide():
    learner = played(0, CHANGES[:1], CHANGES[0])[0]
    state = replace(learner.state, contradictions=1)
    learner.state = state
    learner.rounds.overdue = True
    sample = population().draw(1, np.random.default_rng(0))
    learner.decide(sample.features, sample.group)
    certificate = learner.certificate
    assert certificate.status == "suspended"
    [found] = certificate.suspensions
    assert (found.round, found.resumed) == (CHANGES[0], None)
    assert "constants alone have decided since" in " ".join(certificate.result().beware)
    assert "Certified with probability" not in certificate.describe()


def test_it_survives_json_and_storage(twice, tmp_path):
    learner, _ = twice
    certificate = learner.certificate
    again = Certificate.from_json(json.loads(json.dumps(certificate.to_json())))
    assert again == certificate
    learner.save(tmp_path / "learner")
    assert eh.load(tmp_path / "learner").certificate == certificate


def test_it_survives_where_counts_alone_are_kept(once, tmp_path):
    learner, _ = played(0, CHANGES[:1], 8000, keep="counts")
    learner.save(tmp_path / "learner")
    learner, _ = played(2, (0,), 9000, eh.load(tmp_path / "learner"))
    assert learner.certificate.suspensions[:1] == once[0].certificate.suspensions
    assert learner.certificate.since == learner.certificate.suspensions[-1].round


def test_a_group_that_joins_after_it_is_covered_from_its_own_round(once):
    state = once[0].state
    joined = state.joined_by_group("c", 8888)
    assert joined.covered_from == {"a": state.began, "b": state.began, "c": 8888}
    assert joined.next_run(9999).covered_from == {}


def test_a_cap_is_claimed_from_the_suspension_on():
    learner, _ = played(0, CHANGES[:1], 9000, accept_at_most=0.6)
    certificate = learner.certificate
    assert certificate.status == "certified"
    assert f"0.6 of the population, from round {certificate.since:,} on" in certificate.claim
