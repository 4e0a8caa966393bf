"""The people whom planning looks at: all of them while they are few, then a bounded sample which
stands for all; nobody who was erased.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.play import WORLD, decide_people, report_all

from evenhand import CertifiedLearner, ScoreThresholds
from evenhand.algorithms.certified import sample
from evenhand.algorithms.certified.closing import closed_of
from evenhand.algorithms.certified.rule_tables import RuleSlots
from evenhand.algorithms.certified.sample import (
    ClosedRounds,
    audited_people,
    closed_rounds,
    closed_sample,
    most_rows,
)
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.thresholds import Threshold
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.rounds import Rounds, learning, reports

MIXED = Mixture((ACCEPT_ALL, REJECT_ALL), (0.6, 0.4))
PEOPLE = WORLD.draw(400, np.random.default_rng(1))
SPANS = ((1, 0, 700), (2, 700, 1000), (3, 1000, 3000))
CUTS = RuleSlots(tuple(Threshold(0, value, 2) for value in (-1.0, -0.2, 0.4, 1.1)))


def table(*, told=True):
    rounds = decide_people(Rounds(), PEOPLE, MIXED, stream(3, "table"))
    return report_all(rounds, PEOPLE) if told else rounds


def continuous(seed=0):
    """3,000 people of three epochs, no two of them alike."""
    generator = np.random.default_rng(seed)
    rounds = Rounds()
    for epoch, first, stop in SPANS:
        people = stop - first
        p = np.where(generator.random(people) < 0.5, 0.2, 0.9)
        accept = generator.random(people) < p
        rounds.append(
            epoch=epoch,
            features=generator.normal(size=(people, 2)),
            group=np.where(generator.random(people) < 0.4, "a", "b"),
            accept=accept,
            acceptance=p,
            audit=accept & (generator.random(people) < 0.3),
        )
    labelled = np.flatnonzero(rounds["accept"])[::3]
    reports.enter_labels(rounds, labelled, np.where(generator.random(len(labelled)) < 0.6, 1, -1))
    return rounds


def taken(rounds, spans=SPANS, slots=CUTS):
    closed = closed_rounds(rounds, spans, slots, before=False)
    return closed_sample(rounds, closed, slots, with_group=False, before=False)


def audits(rounds, spans=SPANS, groups=("a", "b")):
    return audited_people(rounds, taken(rounds, spans, RuleSlots(())), groups, before=True)


def exact(rounds):
    """(cells, outcomes): people who are resolved, by a loop."""
    totals = np.zeros((5, 3))
    for row in range(len(rounds)):
        if not rounds["erased"][row] and not (rounds["accept"][row] and not rounds["label"][row]):
            cell = sum(
                rounds.features_of(slice(row, row + 1))[0, 0] >= rule.value for rule in CUTS.members
            )
            outcome = {0: 0, 1: 1, -1: 2}[int(rounds["label"][row])]
            totals[cell, outcome] += 1
    return totals


def by_cell(log):
    cell = CUTS.cell(log.features)
    counts = (log.rejected, log.positive, log.negative)
    return np.stack([np.bincount(cell, weights=one, minlength=5) for one in counts], axis=1)


def test_while_there_are_few_people_all_are_in_it():
    rounds = continuous()
    found = taken(rounds)
    assert found.log is found.observed
    rounds.returned = rounds.decided
    whole = learning.log(rounds, with_group=False)
    np.testing.assert_array_equal(found.log.features, whole.features)
    for name in ("rejected", "positive", "negative", "acceptance"):
        np.testing.assert_array_equal(getattr(found.log, name), getattr(whole, name))


@pytest.mark.parametrize("most", [20, 100, 333])
def test_a_sample_is_bounded_and_stands_for_all(most, monkeypatch):
    monkeypatch.setattr(sample, "most_rows", lambda _: most)
    rounds = continuous()
    found = taken(rounds, slots=RuleSlots(()))
    assert len(found.log) <= 3 * most
    assert found.observed.rounds == len(found.log)
    totals = exact(rounds).sum(axis=0)
    assert found.log.rejected.sum() == pytest.approx(totals[0])
    assert found.log.accepted.sum() == pytest.approx(totals[1:].sum())
    audited = rounds["audit"] & (rounds["label"] != 0)
    assert sum(one.weight.sum() for one in audits(rounds)) == pytest.approx(audited.sum())


@pytest.mark.parametrize("most", [100, 333])
def test_between_two_cuts_the_counts_of_all_people_are_kept(most, monkeypatch):
    monkeypatch.setattr(sample, "most_rows", lambda _: most)
    rounds = continuous()
    np.testing.assert_allclose(by_cell(taken(rounds).log), exact(rounds), rtol=1e-12)
    # the control: without them a sample misses by its error
    plain = taken(continuous(), slots=RuleSlots(())).log
    assert np.abs(by_cell(plain) - exact(rounds)).max() > 1.0


def test_a_sample_does_not_depend_on_when_it_was_taken(monkeypatch):
    monkeypatch.setattr(sample, "most_rows", lambda _: 90)
    at_once, step_by_step = continuous(), continuous()
    for stop in (1, 2):
        taken(step_by_step, SPANS[:stop])
    one, two = taken(at_once), taken(step_by_step)
    for name in ("features", "rejected", "positive", "negative"):
        np.testing.assert_array_equal(getattr(one.log, name), getattr(two.log, name))
        np.testing.assert_array_equal(getattr(one.observed, name), getattr(two.observed, name))


def test_whoever_is_erased_or_overruled_is_gone(monkeypatch):
    monkeypatch.setattr(sample, "most_rows", lambda _: 90)
    rounds = continuous()
    before = taken(rounds)
    gone = np.flatnonzero((rounds.features_of(slice(None)) == before.log.features[5]).all(axis=1))
    reports.erase(rounds, gone)
    reports.overrule(rounds, np.flatnonzero(rounds["label"] != 0)[:40], np.zeros(40, dtype=bool))
    after = taken(rounds)
    assert not (after.log.features == before.log.features[5]).all(axis=1).any()
    assert not (after.log.features == 0.0).all(axis=1).any()
    np.testing.assert_allclose(by_cell(after.log), exact(rounds), rtol=1e-12)


def test_audited_people_have_labels_and_a_group():
    rounds = table()
    reports.erase(rounds, np.flatnonzero(rounds["audit"])[:5])
    (found,) = audits(rounds, [(1, 0, 400)], ("a",))
    audited = rounds["audit"] & ~rounds["erased"] & (PEOPLE.group == "a")
    assert found.weight.sum() == audited.sum()
    good = audited & (PEOPLE.label == 1)
    assert found.weight[found.label == 1].sum() == good.sum()
    assert audits(table(told=False), [(1, 0, 400)], ("a",)) == []


def test_nobody_is_no_sample():
    assert taken(Rounds(), ()) is None


def test_many_rules_look_at_fewer_people():
    assert most_rows(0) == most_rows(99) == 20_000
    assert most_rows(1_000) == 5_000
    assert most_rows(100_000) == 2_000


def test_a_learner_adds_the_counts_of_each_cohort_once(monkeypatch):
    """Those that come from the tallies are those of a count over all rows."""
    monkeypatch.setattr(sample, "most_rows", lambda _: 150)
    learner = CertifiedLearner(ScoreThresholds(0), "fpr", 0.3, 0.1, seed=3)
    generator = np.random.default_rng(4)
    for _ in range(40):
        rows = generator.normal(size=(200, 1))
        group = np.where(generator.random(200) < 0.5, "a", "b")
        label = np.where(generator.random(200) < 1.0 / (1.0 + np.exp(-rows[:, 0])), 1, -1)
        decisions = learner.decide(rows, group)
        learner.observe(decisions.round[decisions.accept], label[decisions.accept])
    state, rounds = learner.state, learner.rounds
    known = closed_of(state, rounds).between_cuts
    assert known is not None
    nothing = ClosedRounds.none(rounds, before=True)
    anew = replace(nothing, spans=state.spans).with_between_cuts(rounds, state.process.slots)
    np.testing.assert_array_equal(known, anew.between_cuts)
