"""The same decisions however people arrive: blocks of 1, 7, 100, 1,000 and 5,000 of the same people
have the same class and the same epochs, and where labels come at the same rounds the same
decisions, bit for bit (so they are equal in law).

Exact: nothing here can fail by chance.
"""

import numpy as np
import pytest

from evenhand.algorithms.certified import start as certified_start
from evenhand.environments import Scores
from evenhand.hypotheses import Linear, ScoreThresholds, Stumps
from evenhand.learners import CertifiedLearner

BLOCKS = (1, 7, 100, 1000, 5000)
CLASSES = {"thresholds": ScoreThresholds, "stumps": Stumps, "linear": Linear}


def played(block, people, every, seed=1, kind="thresholds", **settings):
    """Labels of each `every` people come together, at the same rounds for all blocks. Returns the
    decisions, the members and the first rounds of the epochs.
    """
    sample = Scores().draw(people, np.random.default_rng(seed))
    told = CertifiedLearner(CLASSES[kind](), "fpr", 0.1, 0.05, seed=seed, maturity=1.0, **settings)
    accept = np.zeros(people, dtype=bool)
    start = 0
    while start < people:
        at = float(start // every)
        stop = min(start + block, people, (start // every + 1) * every)
        if start and start % every == 0:
            before = np.flatnonzero(accept[start - every : start]) + start - every
            told.observe(before, sample.label[before], at=at - 0.5)
        decisions = told.decide(sample.features[start:stop], sample.group[start:stop], at=at)
        accept[start:stop] = decisions.accept
        start = stop
    process = told.state.process
    members = () if process is None else process.members
    return accept, members, [epoch.first_round for epoch in told.report.epochs]


def at_once(block, people, seed=1):
    """Labels come with the next call: members, and the first rounds of the epochs."""
    sample = Scores().draw(people, np.random.default_rng(seed))
    told = CertifiedLearner(ScoreThresholds(), "fpr", 0.1, 0.05, seed=seed)
    for start in range(0, people, block):
        rows = slice(start, start + block)
        decisions = told.decide(sample.features[rows], sample.group[rows])
        chosen = np.flatnonzero(decisions.accept)
        told.observe(decisions.first_round + chosen, sample.label[rows][chosen])
    return told.state.process.members, [epoch.first_round for epoch in told.report.epochs]


@pytest.mark.parametrize(
    "settings",
    [{}, {"accept_at_most": 0.3}, {"audit_budget": 60}],
    ids=["plain", "capped", "budget"],
)
def test_decisions_are_equal_where_labels_come_at_the_same_rounds(settings):
    found = [played(block, 1200, 200, **settings) for block in (1, 7, 200)]
    for accept, members, epochs in found[1:]:
        assert (accept == found[0][0]).all()
        assert members == found[0][1]
        assert epochs == found[0][2]


def test_class_and_epochs_do_not_depend_on_the_size_of_a_block():
    found = [at_once(block, 1500) for block in (7, 100, 500)]
    assert found[1] == found[0]
    assert found[2] == found[0]


def test_control_cuts_of_all_who_have_come_depend_on_it(monkeypatch):
    """Seen to fail: the class is made of the values of everybody so far."""
    original = certified_start.first_arrivals
    monkeypatch.setattr(
        certified_start,
        "first_arrivals",
        lambda rounds, first, stop: original(rounds, first, rounds.decided),
    )
    found = [at_once(block, 1500) for block in (100, 500)]
    assert len(found[0][0]) != len(found[1][0])


@pytest.mark.claims
@pytest.mark.parametrize("kind", CLASSES)
def test_full_blocks(claims, kind):
    found = [played(block, 20_000, 5000, kind=kind) for block in BLOCKS]
    same = all((one[0] == found[0][0]).all() for one in found)
    alike = all(one[1] == found[0][1] and one[2] == found[0][2] for one in found)
    claims.add(
        f"blocks of 1, 7, 100, 1,000, 5,000 of the same 20,000 people, {kind}",
        "the same class and epochs, and decisions equal bit for bit",
        f"{len(found[0][1])} rules, {len(found[0][2])} epochs; "
        f"{'equal' if alike else 'not equal'}; decisions {'equal' if same else 'differ'}",
        same and alike,
    )
    assert same
    assert alike


@pytest.mark.claims
def test_full_class_and_epochs_with_labels_at_once(claims):
    found = [at_once(block, 20_000) for block in BLOCKS]
    alike = all(one == found[0] for one in found)
    claims.add(
        "blocks of 1 to 5,000, labels with the next call",
        "the same class, the same epochs",
        f"{len(found[0][0])} rules and {len(found[0][1])} epochs in all of them"
        if alike
        else f"{[(len(one[0]), len(one[1])) for one in found]}",
        alike,
    )
    assert alike
