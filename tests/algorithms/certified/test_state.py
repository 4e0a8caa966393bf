"""The state of an algorithm holds sums and no people; a run has its share of delta."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.play import FPR, WORLD, certified, play

from evenhand import storage
from evenhand.algorithms.certified.evidence import Evidence
from evenhand.errors import InvalidInput
from evenhand.hypotheses import FiniteClass, Linear, Threshold
from evenhand.learners import (
    CertifiedLearner,
    ExploreThenCommit,
    FairOnGathered,
    TwoPhaseLearner,
    Unconstrained,
)

# no people

RULES = FiniteClass([Threshold(0, cut, 2) for cut in (0.5, 1.5, 2.5, 3.5, 4.5)])
SETTINGS = (FPR, 0.4, 0.1)
LEARNERS = {
    "betting": lambda: CertifiedLearner(RULES, *SETTINGS, seed=1),
    "window": lambda: CertifiedLearner(RULES, *SETTINGS, maturity=2.0, seed=1),
    "nominated": lambda: CertifiedLearner(Linear(), *SETTINGS, horizon=5000, seed=1),
    "group decides": lambda: CertifiedLearner(RULES, *SETTINGS, group_use="decide", seed=1),
    "two-phase": lambda: TwoPhaseLearner(RULES, *SETTINGS, 5000, exploration_rounds=500, seed=1),
    "commit": lambda: ExploreThenCommit(RULES, *SETTINGS, 5000, exploration_rounds=500, seed=1),
    "unconstrained": lambda: Unconstrained(RULES, FPR, first_rounds=100, seed=1),
    "fair on gathered": lambda: FairOnGathered(RULES, FPR, 0.4, first_rounds=100, seed=1),
}


def people_with_canaries(kind, rows=2000):
    """A score that many people share, and a number that one person alone has: everybody, or one in
    twenty (then contexts repeat, and the regression is a table).
    """
    draw = np.random.default_rng(7)
    score = draw.integers(0, 6, rows).astype(float)
    canary = 1000.0 + draw.random(rows)
    if kind == "some":
        canary = np.where(draw.random(rows) < 0.05, canary, 0.0)
    group = draw.choice(["a", "b"], rows)
    label = np.where(draw.random(rows) < 0.1 + 0.15 * score, 1, -1)
    return np.column_stack([score, canary]), group, label, set(canary[canary > 0].tolist())


def played(learner, features, group, label):
    for start in range(0, len(label), 100):
        part = slice(start, start + 100)
        decisions = learner.decide(features[part], group[part], at=start / 100)
        accepted = np.flatnonzero(decisions.accept)
        learner.observe(decisions.first_round + accepted, label[part][accepted], at=start / 100)
    return learner


def numbers_in(document):
    """Every number of a stored state, those of its arrays as well."""
    found = set()

    def look(data):
        if isinstance(data, dict):
            for item in data.values():
                look(item)
        elif isinstance(data, list):
            for item in data:
                look(item)
        elif isinstance(data, float):
            found.add(data)

    look(document["state"])
    for data in document["arrays"].values():
        array = storage.array_from_json(data)
        if array.dtype.kind == "f":
            found |= set(array.ravel().tolist())
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["all", "some"])
@pytest.mark.parametrize("name", LEARNERS)
def test_no_value_of_a_single_person_is_in_the_state(name, kind):
    features, group, label, canaries = people_with_canaries(kind)
    learner = played(LEARNERS[name](), features, group, label)
    assert len(learner.report.epochs) > 1
    assert canaries <= set(learner.rounds.features_of(slice(None))[:, 1].tolist())
    hypotheses = learner.algorithm.hypotheses
    document = storage.state_to_json(learner.state, hypotheses)
    assert not numbers_in(json.loads(json.dumps(document))) & canaries


def test_a_value_that_is_in_the_state_is_found():
    """Negative control."""
    features, group, label, canaries = people_with_canaries("some")
    learner = played(LEARNERS["betting"](), features, group, label)
    one = min(canaries)
    for changed in (
        replace(learner.state, gaps={1: (np.array([one]), np.array([one]))}),
        replace(learner.state, nominated_at=one),
    ):
        document = storage.state_to_json(changed, learner.hypotheses)
        assert numbers_in(document) & canaries == {one}


# shares


@pytest.mark.parametrize("groups", [None, ("a", "b")])
def test_the_shares_of_all_runs_fit_into_delta(groups):
    guarantee = certified(groups=groups).guarantee
    shares = [guarantee.run_delta(run) for run in range(1, 2000)]
    assert sum(shares) <= guarantee.delta
    assert shares[0] == pytest.approx(0.9 * guarantee.delta)
    assert all(later < earlier for earlier, later in pairwise(shares))
    reserved = guarantee.reserved(1)
    assert (reserved > 0) == (groups is None)
    assert guarantee.own_delta(1) + reserved == pytest.approx(guarantee.run_delta(1))
    assert sum(guarantee.false_alarm(run) for run in range(1, 2000)) <= 1e-3


def test_groups_that_join_book_from_the_reserve_alone():
    learner = certified()
    play(learner, 1000, 0)
    state = learner.state
    spent = state.ledger.spent
    for number in range(20):
        state = state.joined_by_group(f"late {number}", 1000 + number)
    assert state.ledger.spent - spent <= state.guarantee.reserved(1)
    assert state.ledger.spent <= state.guarantee.run_delta(1)
    assert state.covered_from["late 3"] == 1003
    assert learner.state.groups == ("a", "b")  # the state before has not changed


def test_the_next_run_starts_from_nothing_but_the_ledger():
    learner = certified()
    play(learner, 1000, 0)
    state = learner.state
    later = state.next_run(1000)
    assert (later.run, later.began) == (2, 1000)
    assert later.ledger is state.ledger
    assert vars(later.evidence) == vars(Evidence())
    assert (later.process, later.groups, later.drift, later.frozen) == (None,) * 4
    assert (later.spans, later.records) == ((), {})
    assert not later.first_run
    with pytest.raises(InvalidInput):
        later.running  # noqa: B018


def test_where_the_group_decides_classifiers_of_groups_are_certified_exactly():
    learner = certified(group_use="decide")
    play(learner, 1000, 0)
    members, lower, upper = learner.state.certified()
    assert (lower[:, -2:] == upper[:, -2:]).all()
    assert sorted(upper[0, -2:].tolist()) == [-1.0, 1.0]
    table = learner.state.table(WORLD.features, WORLD.group)
    assert table.shape == (len(members), 6)
    assert (table[-2] == (WORLD.group == "a")).all()
