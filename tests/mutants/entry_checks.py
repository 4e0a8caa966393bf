"""Exact checks of what may happen to a row between the coin and the certificate, one for each line
of the requirement about cohorts.

Where a line is about fairness, one more person, every possible one, is put through a learner in the
middle of its run, with what people do to the row afterwards depending on person, draw and label,
and the mean wealth of every process at the true rates is added up: 1 where nothing is lost, at most
1 where something is. Where a line is about bookkeeping, tables and states are compared. Nothing is
left to chance.
"""

import copy
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from tests.mutants.checks import (
    FPR,
    SR,
    TOLERANCE,
    Coin,
    closed_now,
    everything_that_can_happen,
    learner_at_work,
    looked_at,
    mean_wealth,
    play,
    report_label,
    shown_to_the_bound,
    true_rates,
    wealth_of,
    world,
)
from tests.play import WORLD, two_phase

from evenhand import load
from evenhand.algorithms.certified import intervals
from evenhand.algorithms.certified.rule_tables import RuleSlots
from evenhand.algorithms.certified.sample import audited_people, closed_rounds, closed_sample
from evenhand.fairness.drift import Stream
from evenhand.hypotheses import FiniteClass, Threshold
from evenhand.hypotheses.constants import REJECT_ALL
from evenhand.learners import CertifiedLearner
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.rounds import PATIENCE, Rounds

FATE = np.array([[0.9, 0.2], [0.5, 1.0], [0.1, 0.7], [1.0, 0.3], [0.4, 0.4], [0.2, 0.9]])
"""(contexts, labels): with which probability something happens to an accepted person; to a rejected
one, with 1 minus it.
"""


def at_most_one(*wealths):
    """No process grows in the mean."""
    largest = max(float(wealth.max()) for wealth in wealths)
    assert largest <= 1 + TOLERANCE, f"a wealth grows to {largest:.6f} in the mean"


def some_cannot_be_accepted(rate):
    """A learner whose policy gives no weight to accept-all.

    Bets are made as if nobody's probability were below .1 (any bets are valid): small ones would
    hide what is wrong.
    """
    learner = learner_at_work(rate=rate)
    members = learner.state.process.members
    rules = Mixture((members[0], members[-1], REJECT_ALL), (0.5, 0.3, 0.2))
    with patch.object(intervals, "LEAST_FORESEEN", 0.1):
        publish(learner, rules)
    chances = learner.policy.acceptance(world().features)
    assert chances.min() == 0 < chances.max()
    return learner


def publish(learner, policy):
    """Another policy takes the place of the one that has just been opened, with its own record."""
    epoch = replace(learner.rounds.epoch, policy=policy, audit=0.0)
    learner.rounds.epochs[-1] = epoch
    people = learner.algorithm._closed_people(learner.state, learner.rounds)
    learner.state, _ = learner.algorithm._opened(learner.state, epoch, learner.rounds, people)


def check_selection_counts_all_applicants():
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
        report_label(learner, decision, label)
        meddle(learner, decision)

    for chance, context, accepted, label in everything_that_can_happen(learner, None):
        for true_label in (-1, 1) if label == 0 else (label,):
            good = world().positive_rate[context]
            share = 1.0 if label else (good if true_label == 1 else 1 - good)
            fate = FATE[context, (true_label + 1) // 2]
            fate = fate if accepted else 1 - fate
            for part, report in ((fate, met), (1 - fate, report_label)):
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
            learner_at_work(700),
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
    no drift count and no booking, neither at once nor when the learner is loaded again.
    """
    learner = learner_at_work(0)
    people = stream(1, "people")
    rejected = []
    bad = []
    while learner.round < 1500 or learner.rounds_left:
        sample = world().draw(min(50, max(learner.rounds_left, 1)), people)
        decisions = play(learner, sample)
        rejected += decisions.round[~decisions.accept].tolist()
        bad += decisions.round[decisions.accept & (sample.label == -1)].tolist()
    learner.open_epoch()
    before = copy.deepcopy(learner)
    assert len(rejected) > 60
    learner.erase(np.array(bad[:60] + rejected[:60]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learner"
        learner.save(path)
        loaded = load(path, same_coins=True)
    for one in (learner, loaded):
        kept = vars(before.state.process.state)
        for name, array in vars(one.state.process.state).items():
            np.testing.assert_array_equal(array, kept[name], err_msg=name)
        assert one.bookings == before.bookings
        assert one.drift == before.drift
        now, then = (
            each.algorithm._closed_people(each.state, each.rounds).sample.log
            for each in (one, before)
        )
        assert now.negative.sum() == then.negative.sum() - 60


def people_of_two_epochs():
    """A learner whose next closing holds people of two epochs, and bad outcomes that closed before.

    A call of decide() has gone on beyond the end of an epoch.
    """
    learner = learner_at_work(1500)
    people = stream(2, "people")
    rounds = learner.rounds
    bad = rounds["round"][(rounds["label"] == -1) & (rounds["round"] < 1000)]
    play(learner, world().draw(10, people))
    play(learner, world().draw(learner.rounds_left + 200, people))
    return learner, bad


def check_bets_are_fixed_before_the_coins():
    """What people are judged by is the record that opened their epoch: whoever is erased after
    their coins changes no bet and no regression, also where one closing holds people of two epochs.
    """
    learner, bad = people_of_two_epochs()
    shown = []
    for erased in (bad[:0], bad):
        clone = copy.deepcopy(learner)
        clone.erase(erased)
        shown.append(shown_to_the_bound(clone))
    assert [len(cohorts) for cohorts in shown] == [2, 2]
    for (_, cohort, plan), (_, other, later) in zip(*shown, strict=True):
        np.testing.assert_array_equal(cohort.regression, other.regression)
        for name, array in vars(plan).items():
            np.testing.assert_array_equal(array, vars(later)[name], err_msg=name)


def check_bets_belong_to_the_epoch():
    """Where one closing holds people of two epochs, each epoch has the bets of its own record."""
    learner, _ = people_of_two_epochs()
    records = learner.state.records
    epochs = sorted(records)
    shown = shown_to_the_bound(learner)
    assert len(epochs) == len(shown) == 2
    for epoch, (_, _, plan) in zip(epochs, shown, strict=True):
        assert plan is records[epoch].bets


def check_labels_after_the_closing_stay_outside():
    """A label that comes after its cohort has closed changes nothing that was learned from it."""
    learner = learner_at_work()
    sample = world().draw(learner.rounds_left, stream(2, "people"))
    decisions = learner.decide(sample.features, sample.group)
    accepted = np.flatnonzero(decisions.accept)
    learner.observe(decisions.round[accepted[::2]], sample.label[accepted[::2]])
    learner.open_epoch()
    late = accepted[1::2]

    def learned():
        learner.rounds.cache.forget()  # what is remembered would hide a change
        spans = learner.state.spans
        rounds = learner.rounds
        closed = closed_rounds(rounds, spans, RuleSlots(()), before=True)
        sample = closed_sample(rounds, closed, RuleSlots(()), with_group=False, before=True)
        log = sample.log
        audits = audited_people(learner.rounds, sample, ("a", "b"), before=True)
        return log.positive.sum(), log.negative.sum(), sum(one.weight.sum() for one in audits)

    before = learned()
    assert decisions.audit[late].any()
    learner.observe(int(decisions.round[late[0]]), int(sample.label[late[0]]))
    assert learned() == before
    learner.observe(decisions.round[late], sample.label[late])
    assert learned() == before


def check_rows_are_in_the_order_of_arrival():
    """The table holds each person in the row of the round, as decided: together, one by one, and
    taken over from a ledger.
    """
    learner = learner_at_work()
    sample = world().draw(30, stream(2, "people"))
    parts = [slice(0, 20), slice(20, 21), slice(21, 30)]
    decided = [learner.decide(sample.features[part], sample.group[part]) for part in parts]
    accept = np.concatenate([decisions.accept for decisions in decided])
    propensity = np.concatenate([decisions.propensity for decisions in decided])
    assert 0 < accept.sum() < 30
    rounds = learner.rounds
    copied = Rounds()
    names = ("epoch", "at", "accept", "acceptance", "audit", "label", "settled", "overruled")
    columns = {name: rounds[name] for name in (*names, "erased", "group_late")}
    copied.append_rows(
        rounds.features_of(slice(None)), rounds.groups_of(slice(None)), columns, None
    )
    for table in (rounds, copied):
        np.testing.assert_array_equal(table["round"], np.arange(learner.round))
        np.testing.assert_array_equal(table.features_of(slice(-30, None)), sample.features)
        np.testing.assert_array_equal(table.groups_of(slice(None))[-30:], sample.group)
        np.testing.assert_array_equal(table["accept"][-30:], accept)
        drawn = np.where(accept, table["acceptance"][-30:], 1 - table["acceptance"][-30:])
        np.testing.assert_array_equal(drawn, propensity)


def numbers_in(value, seen=None):
    """Every number that can be reached from a value, also those in bytes."""
    seen = set() if seen is None else seen
    if id(value) in seen or value is None or isinstance(value, str | bool):
        return set()
    if isinstance(value, int | float):
        return {float(value)}
    if isinstance(value, bytes):
        return set(np.frombuffer(value[: len(value) // 8 * 8]).tolist())
    seen.add(id(value))
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return set(np.ravel(value).tolist()) if value.dtype.kind in "fiu" else set()
    if isinstance(value, Mapping):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | np.ndarray):
        parts = list(value)
    else:
        parts = list(getattr(value, "__dict__", {}).values())
    return set().union(*(numbers_in(part, seen) for part in parts))


def check_the_state_keeps_nobody():
    """What an algorithm knows beside the table of rounds are sums: nobody's features are in it."""
    cuts = FiniteClass([Threshold(0, cut, 2) for cut in (-0.5, 0.0, 0.5)])
    learner = CertifiedLearner(cuts, FPR, 0.3, 0.05, audit_rate=0.2, seed=3)
    people = stream(1, "people")
    everyone = set()
    while learner.round < 1000 or learner.rounds_left:
        features = people.normal(size=(min(50, max(learner.rounds_left, 1)), 2))
        group = np.where(people.random(len(features)) < 0.5, "a", "b")
        label = np.where(features[:, 0] + people.normal(size=len(features)) > 0, 1, -1)
        decisions = learner.decide(features, group)
        accepted = decisions.accept
        learner.observe(decisions.round[accepted], label[accepted])
        everyone |= set(features.ravel().tolist())
    learner.open_epoch()
    assert learner.epoch.phase == "certified"
    assert not everyone & numbers_in(learner.state)
    assert everyone <= numbers_in(learner.rounds)


def label_counts(state):
    """People in the label streams of the audited, by category: good, bad, not come."""
    streams = state.drift.monitor.streams
    return np.sum([streams[Stream("labels", group)].total for group in ("a", "b")], axis=0)


def check_categories_are_settled_in_the_window():
    """A label that comes after its window counts for the loss and the certificate, and as "not
    come" for the drift test; one that came within it stays, though the decision is overruled later.
    """
    learner = learner_at_work(1500, rate=FPR, maturity=10.0)
    # the windows of all earlier people have passed, and the streams have seen them
    now = learner.round + 10.0
    looked = learner.algorithm._watch_drift(learner.state, learner.rounds, now)
    before = label_counts(looked)
    people = world().draw(learner.rounds_left, stream(2, "people"))
    decisions = learner.decide(people.features, people.group, at=now)
    accepted = np.flatnonzero(decisions.accept)
    # few enough are late for the streams not to call it drift
    late = accepted[::10]
    early = np.setdiff1d(accepted, late)
    learner.observe(decisions.round[early], people.label[early], at=now + 9)
    learner.observe(decisions.round[late], people.label[late], at=now + 11)
    overruled = early[:10]
    assert decisions.audit[overruled].any()
    learner.overrule(decisions.round[overruled], False)
    negatives = learner.state.evidence.negatives
    learner.open_epoch()
    audited = decisions.audit
    expected = [
        (audited[early] & (people.label[early] == 1)).sum(),
        (audited[early] & (people.label[early] == -1)).sum(),
        audited[late].sum(),
    ]
    assert min(expected) > 0
    np.testing.assert_array_equal(label_counts(learner.state) - before, expected)
    left = np.setdiff1d(accepted, overruled)
    assert learner.state.evidence.negatives - negatives == (people.label[left] == -1).sum()


def waiting_for_one_label(later):
    """(learner, round, state): without a window, the label of an audited person is missing and
    `later` people have been decided since, all of whom have theirs; the state after a look.
    """
    learner = learner_at_work()
    coins = learner.coins, learner.audit_coins
    learner.coins, learner.audit_coins = Coin(0.0), Coin(0.0)
    here = world()
    missing = learner.decide(here.features[:1], here.group[:1])[0]
    assert missing.audit
    learner.coins, learner.audit_coins = coins
    for _ in range(later):
        play(learner, here.draw(1, stream(learner.round, "people")))
    assert learner.rounds_left > 0
    return (
        learner,
        missing.round,
        learner.algorithm.step(learner.state, learner.rounds, None)[0],
    )


def check_streams_wait_in_order():
    """Without a window, nobody's category is looked at before that of an earlier person is settled,
    whoever has a label by now.
    """
    learner, missing, state = waiting_for_one_label(PATIENCE - 1)
    assert state.drift.fed_to == missing
    np.testing.assert_array_equal(label_counts(state), label_counts(learner.state))
    learner.observe(missing, 1)
    state, _ = learner.algorithm.step(learner.state, learner.rounds, None)
    assert state.drift.fed_to == learner.round
    more = label_counts(state) - label_counts(learner.state)
    assert more[2] == 0 < more[0]


def check_a_missing_label_silences_nothing():
    """A label that never comes is "not come" once PATIENCE people have been decided since; whoever
    came later is looked at, and should it come after all, the category stays.
    """
    learner, missing, state = waiting_for_one_label(PATIENCE)
    audited = learner.rounds["audit"][missing:].sum()
    assert audited > 1
    for _ in range(2):
        assert state.drift.fed_to == learner.round
        more = label_counts(state) - label_counts(learner.state)
        assert (more.sum(), more[2]) == (audited, 1)
        if learner.rounds["label"][missing] == 0:
            learner.observe(missing, 1)
        state, _ = learner.algorithm.step(learner.state, learner.rounds, None)


def check_exploration_takes_first_arrivals():
    """Where good labels come late, nobody is rejected before all of the first N* arrivals have
    theirs, and they are the sample.
    """
    learner = two_phase(exploration_rounds=400, horizon=20_000)
    people = stream(1, "people")
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


def check_groups_reported_with_outcomes_stay_outside():
    """A group that is reported with the label of an accepted person leaves the row outside;
    reported by `report_group`, for all, it counts.
    """
    learner = learner_at_work()
    for reported_apart in (False, True):
        before = learner.certificate
        people = world().draw(learner.rounds_left, stream(3, "people"))
        decisions = learner.decide(people.features, np.full(len(people), None))
        accepted = np.flatnonzero(decisions.accept)
        learner.observe(
            decisions.round[accepted], people.label[accepted], group=people.group[accepted]
        )
        if reported_apart:
            learner.report_group(decisions.round, people.group)
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
        inside = len(accepted) if reported_apart else 0
        assert counted[1] - counted[0] == inside
        assert outside[1] - outside[0] == (0 if reported_apart else len(people))
        assert late[1] - late[0] == (len(people) if reported_apart else 0)


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
    assert learner.certificate.covered_from == {"a": 0, "b": 0, "c": learner.epoch.first_round}


def check_groups_join_with_nothing():
    """The pairs of a group that joins start at wealth 1: what its partners had gathered before
    narrows nothing.
    """
    learner = CertifiedLearner(world().hypotheses, FPR, 0.3, 0.05, audit_rate=0.08, seed=3)
    people = stream(1, "people")
    while learner.round < 3000 or learner.rounds_left:
        play(learner, world().draw(min(50, max(learner.rounds_left, 1)), people))
    learner.open_epoch()
    assert (learner.state.process.state.wealth != 0).any()
    learner.state = learner.state.joined_by_group("c", learner.round)
    joined = learner.state.process.state
    np.testing.assert_array_equal(joined.wealth - joined.wealth_before[:, -1], 0.0)
    learner.decide(world().features[:1], [None])  # somebody outside, so that a cohort closes
    closed_now(learner)
    process = learner.state.process
    gaps = process.bound.intervals(process.state)
    assert (gaps.upper[:, 0, 0] - gaps.lower[:, 0, 0] < 1.5).all()
    assert (gaps.rate_lower[:, 0, 2] == 0).all()
    assert (gaps.rate_upper[:, 0, 2] == 1).all()
    for partner, pair in ((0, 1), (1, 2)):  # all that is known is the partner's own rate
        np.testing.assert_allclose(gaps.upper[:, 0, pair], 1 - gaps.rate_lower[:, 0, partner])
        np.testing.assert_allclose(gaps.lower[:, 0, pair], -gaps.rate_upper[:, 0, partner])


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
    assert any("Femal" in note.text for note in learner.report.notes if note.kind == "outside")


def check_frozen_is_frozen():
    """Once the audit budget is spent, no closing changes policy or certificate, whatever its people
    show.
    """
    learner = CertifiedLearner(world().hypotheses, FPR, 0.3, 0.05, audit_budget=200, seed=3)
    people = stream(1, "people")
    while learner.epoch.phase != "frozen":
        play(learner, world().draw(50, people))
    policy = learner.policy
    certificate = learner.certificate
    for _ in range(4):
        play(learner, world().draw(500, people))
        closed_now(learner)
        assert learner.epoch.phase == "frozen"
        assert learner.policy == policy
        assert learner.certificate == certificate
