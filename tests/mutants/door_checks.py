"""Exact checks of what may happen to a row between the coin and the certificate, one for each line
of the law of cohorts.

Where a line is about fairness, one more person, every possible one, is put through a learner in the
middle of its life, with what people do to the row afterwards depending on person, draw and label,
and the mean wealth of every process at the true rates is added up: 1 where nothing is lost, at most
1 where something is. Where a line is about bookkeeping, the books are compared. Nothing is left to
chance.
"""

import copy
from unittest.mock import patch

import numpy as np
from tests.learners.play import WORLD, two_phase
from tests.mutants.checks import (
    FPR,
    SR,
    TOLERANCE,
    as_told,
    everything_that_can_happen,
    learner_at_work,
    looked_at,
    mean_wealth,
    play,
    true_rates,
    wealth_of,
    world,
)

from evenhand.hypotheses.constants import REJECT_ALL
from evenhand.learners import CertifiedLearner
from evenhand.learners.certified import intervals
from evenhand.policies import Mixture
from evenhand.randomness import stream

FATE = np.array([[0.9, 0.2], [0.5, 1.0], [0.1, 0.7], [1.0, 0.3], [0.4, 0.4], [0.2, 0.9]])
"""(contexts, labels): with which probability something happens to an accepted person; to a rejected
one, with 1 minus it.
"""


def at_most_one(*wealths):
    """No process grows in the mean."""
    largest = max(float(wealth.max()) for wealth in wealths)
    assert largest <= 1 + TOLERANCE, f"a wealth grows to {largest:.6f} in the mean"


def some_cannot_be_accepted(rate):
    """A learner whose policy, published by the service, gives no weight to accept-all.

    Bets are made as if nobody's probability were below .1 (any bets are valid): small ones would
    hide what is wrong.
    """
    learner = learner_at_work(rate=rate)
    members = learner.state.run.process.members
    rules = Mixture((members[0], members[-1], REJECT_ALL), (0.5, 0.3, 0.2))
    with patch.object(intervals, "LEAST_FORESEEN", 0.1):
        learner.replay([], learner.round, published=rules)
    chances = learner.policy.acceptance(world().features)
    assert chances.min() == 0 < chances.max()
    return learner


def check_selection_counts_everybody():
    """Selection rates need no label: E[W] = 1 also where some people cannot be accepted."""
    for wealth in mean_wealth(some_cannot_be_accepted(SR)):
        np.testing.assert_allclose(wealth, 1.0, atol=TOLERANCE)


def check_labels_count_by_policy():
    """Rates with labels: where some people cannot be accepted, nobody of the cohort is looked at,
    whoever is in it: W stays 1.
    """
    for wealth in mean_wealth(some_cannot_be_accepted(FPR)):
        np.testing.assert_allclose(wealth, 1.0, atol=TOLERANCE)


def mean_wealth_with_fates(learner, meddle):
    """The mean of W where `meddle(learner, decision)` happens to people with a probability by
    context, label and draw.
    """
    truth = true_rates(learner)
    singles, pairs = 0.0, 0.0

    def met(learner, decision, label):
        as_told(learner, decision, label)
        meddle(learner, decision)

    for chance, context, accepted, label in everything_that_can_happen(learner, None):
        for true_label in (-1, 1) if label == 0 else (label,):
            good = world().positive_rate[context]
            share = 1.0 if label else (good if true_label == 1 else 1 - good)
            fate = FATE[context, (true_label + 1) // 2]
            fate = fate if accepted else 1 - fate
            for part, report in ((fate, met), (1 - fate, as_told)):
                single, pair = wealth_of(
                    *looked_at(learner, context, accepted, label, report), truth
                )
                singles, pairs = (
                    singles + chance * share * part * single,
                    pairs + chance * share * part * pair,
                )
    return singles, pairs


def check_overruled_rows_stay():
    """E[W] <= 1 where humans overrule by person, draw and label."""
    at_most_one(
        *mean_wealth_with_fates(
            learner_at_work(),
            lambda learner, decision: learner.overrule(decision.round, not decision.accept),
        )
    )


def check_erased_rows_are_paid_for():
    """E[W] <= 1 where people are erased, before their cohort closes, by person, draw and label."""
    at_most_one(
        *mean_wealth_with_fates(
            learner_at_work(), lambda learner, decision: learner.erase(decision.round)
        )
    )


def check_closed_sums_stay():
    """Who is erased after the closing, chosen by outcome and decision, changes no sum, no interval,
    no drift count and no booking.
    """
    learner, people, rejected, bad = learner_at_work(0), stream(1, "people"), [], []
    while learner.round < 1500 or learner.rounds_left:
        sample = world().draw(min(50, max(learner.rounds_left, 1)), people)
        decisions = play(learner, sample)
        rejected += decisions.round[~decisions.accept].tolist()
        bad += decisions.round[decisions.accept & (sample.label == -1)].tolist()
    learner.open_epoch()
    before = copy.deepcopy(learner)
    assert len(rejected) > 60
    learner.erase(np.array(bad[:60] + rejected[:60]))
    resumed = learner.restarted(3)  # as a service's trainer takes up the checkpoint
    closed = [
        learner.state.book.between(first, stop) for _, first, stop in learner.state.run.closed
    ]
    resumed.resume(learner.checkpoint(), [epoch.policy for epoch in learner.report.epochs], closed)
    for one in (learner, resumed):
        arrays, kept = (
            one.state.run.process.state.to_arrays(),
            before.state.run.process.state.to_arrays(),
        )
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, kept[name], err_msg=name)
        assert one.bookings == before.bookings
        assert one.drift == before.drift
        now, then = (each.state.history.of() for each in (one, before))
        assert now.negative.sum() == then.negative.sum() - 60


def label_counts(learner):
    """People in the label streams of the audited, by category: good, bad, not come."""
    streams = [
        test.total
        for name, test in learner.drift.streams.items()
        if name in ("labels of a", "labels of b")
    ]
    return np.sum(streams, axis=0)


def check_categories_are_settled_in_the_window():
    """A label that comes after its window counts for the loss and the certificate, and as "not
    come" for the drift test.
    """
    learner = learner_at_work(rate=FPR, maturity=10.0)
    before, now = label_counts(learner), float(learner.round)
    people = world().draw(learner.rounds_left, stream(2, "people"))
    decisions = learner.decide(people.features, people.group, at=now)
    accepted = np.flatnonzero(decisions.accept)
    early, late = accepted[::2], accepted[1::2]
    learner.observe(decisions.round[early], people.label[early], at=now + 9)
    learner.observe(decisions.round[late], people.label[late], at=now + 11)
    negatives = learner.state.run.evidence.negatives
    learner.open_epoch()
    audited = decisions.audit
    expected = [
        (audited[early] & (people.label[early] == 1)).sum(),
        (audited[early] & (people.label[early] == -1)).sum(),
        audited[late].sum(),
    ]
    assert min(expected) > 0
    np.testing.assert_array_equal(label_counts(learner) - before, expected)
    assert learner.state.run.evidence.negatives - negatives == (people.label[accepted] == -1).sum()


def check_streams_wait_in_order():
    """Without a window no cohort's labels are looked at before those of an earlier one are
    complete; then all are, in order.
    """
    learner = learner_at_work()
    before, owed, audited = label_counts(learner), None, 0
    people = stream(2, "people")
    for turn in range(3):
        sample = world().draw(learner.rounds_left, people)
        decisions = learner.decide(sample.features, sample.group)
        accepted = np.flatnonzero(decisions.accept)
        audited += int(decisions.audit.sum())
        if turn == 0:
            owed, accepted = (
                (int(decisions.round[accepted[0]]), int(sample.label[accepted[0]])),
                accepted[1:],
            )
        learner.observe(decisions.round[accepted], sample.label[accepted])
        learner.open_epoch()
        np.testing.assert_array_equal(label_counts(learner), before)
    learner.observe(*owed)
    play(learner, world().draw(learner.rounds_left, people))
    learner.open_epoch()
    assert (label_counts(learner) - before).sum() > audited


def check_exploration_takes_first_arrivals():
    """Where good labels come late, nobody is rejected before all of the first N* arrivals have
    theirs, and they are the sample.
    """
    learner, people = two_phase(exploration_rounds=400, horizon=20_000), stream(1, "people")
    owed = []
    for _ in range(30):
        sample = WORLD.draw(50, people)
        decisions = learner.decide(sample.features, sample.group)
        assert decisions.accept.all()
        bad = sample.label == -1
        learner.observe(decisions.round[bad], sample.label[bad])
        owed.append((decisions.round[~bad], sample.label[~bad]))
    assert learner.sample is None
    for rounds, labels in owed[::-1]:
        learner.observe(rounds, labels)
    while learner.sample is None:
        assert learner.round < 5000
        play(learner, WORLD.draw(50, people))
    drawn = stream(1, "people")
    first = [WORLD.draw(50, drawn) for _ in range(8)]
    assert learner.sample.weight.sum() == 400
    assert (learner.sample.weight * (learner.sample.label == -1)).sum() == sum(
        (s.label == -1).sum() for s in first
    )


def check_groups_told_with_outcomes_stay_outside():
    """A group that is told with the label of an accepted person leaves the row outside; told by
    `tell_group`, for all, it counts.
    """
    learner = learner_at_work()
    for told_apart in (False, True):
        before = learner.certificate
        people = world().draw(learner.rounds_left, stream(3, "people"))
        decisions = learner.decide(people.features, np.full(len(people), None))
        accepted = np.flatnonzero(decisions.accept)
        learner.observe(
            decisions.round[accepted], people.label[accepted], group=people.group[accepted]
        )
        if told_apart:
            learner.tell_group(decisions.round, people.group)
        learner.open_epoch()
        counted = [
            sum(cell.people for cell in found.counts) for found in (before, learner.certificate)
        ]
        outside = [
            sum(found.people for found in one.outside if found.group is None)
            for one in (before, learner.certificate)
        ]
        late = [
            sum(found.people for found in one.late_groups) for one in (before, learner.certificate)
        ]
        inside = len(accepted) if told_apart else 0
        assert counted[1] - counted[0] == inside
        assert outside[1] - outside[0] == (0 if told_apart else len(people))
        assert late[1] - late[0] == (len(people) if told_apart else 0)


def with_group(people, place, value):
    """The same people, of whom some have another group."""
    group = people.group.astype(object)
    group[place] = value
    return type(people)(people.features, group, people.label)


def check_rare_groups_join():
    """A group of 1% that was not among the first people is named by the certificate once it has ten
    people; from then on the limit holds for its pairs, too, of which nothing is known yet, by
    weight on constants."""
    limit, people = 0.3, stream(1, "people")
    learner = CertifiedLearner(world().hypotheses, FPR, limit, 0.05, audit_rate=0.08, seed=3)
    weight = 0.0
    while learner.certificate.groups != ("a", "b", "c"):
        assert learner.round < 2000, f"the certificate covers {learner.certificate.groups} alone"
        weight = learner.learned_weight
        sample = world().draw(min(50, learner.rounds_left), people)
        play(learner, with_group(sample, (learner.round + np.arange(len(sample))) % 97 == 50, "c"))
        if learner.rounds_left == 0:
            learner.open_epoch()
    assert weight > 2 * limit, "the limit would bind nobody"
    assert learner.learned_weight <= limit + TOLERANCE
    assert {(gap.group, gap.reference) for gap in learner.certificate.gaps} == {
        ("b", "a"),
        ("c", "a"),
        ("c", "b"),
    }
    assert "group c joins" in learner.bookings[-1].process


def check_typing_errors_stop_nobody():
    """One mistyped group among the first people: the others learn on, and the certificate counts
    and names it outside.
    """
    learner = CertifiedLearner(world().hypotheses, FPR, 0.3, 0.05, audit_rate=0.08, seed=3)
    people = stream(1, "people")
    play(learner, with_group(world().draw(learner.rounds_left, people), 7, "Femal"))
    while learner.round < 1500 or learner.rounds_left:
        play(learner, world().draw(min(50, max(learner.rounds_left, 1)), people))
    learner.open_epoch()
    assert learner.epoch.phase == "certified"
    assert learner.learned_weight > 0
    assert learner.certificate.groups == ("a", "b")
    assert [(found.group, found.people) for found in learner.certificate.outside] == [("Femal", 1)]
    assert any("Femal" in note for note in learner.report.notes)


def check_frozen_is_frozen():
    """Once the audit budget is spent, no closing changes policy or certificate, whatever its people
    show.
    """
    learner, people = (
        CertifiedLearner(world().hypotheses, FPR, 0.3, 0.05, audit_budget=200, seed=3),
        stream(1, "people"),
    )
    while learner.epoch.phase != "frozen":
        play(learner, world().draw(50, people))
    policy, certificate = learner.policy, learner.certificate
    for _ in range(4):
        play(learner, world().draw(500, people))
        learner._collect()
        learner.replay([], learner.round)
        assert learner.epoch.phase == "frozen"
        assert learner.policy == policy
        assert learner.certificate == certificate
