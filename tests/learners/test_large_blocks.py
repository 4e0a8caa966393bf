"""A call of decide() with many people costs what its people cost: work is counted, not timed.

Within one call no label can come, so nothing new can be planned: the epoch goes on, twice as long
each time it is full.
"""

from math import log2

import numpy as np
import pytest
from tests.learners.play import FPR, WORLD, everybody

import evenhand as eh
from evenhand.bounds import BettingBound
from evenhand.estimation import RoundLog
from evenhand.learners import CertifiedLearner, Unconstrained
from evenhand.learners.certified.run import CertificationRun

SIZES = (20_000, 50_000)


class Hasty(CertifiedLearner):
    """What was seen: epochs of fifty rounds in which nothing new is known, each looked at by itself
    later.
    """

    def _prolonged(self, epoch):
        return None


@pytest.fixture
def work(monkeypatch):
    """How often something was done: parts of blocks, plans, cohorts looked at, and updates of the
    betting bound.
    """
    done = dict.fromkeys(("parts", "plans", "looks", "updates"), 0)

    def counted(owner, method, name):
        original = getattr(owner, method)

        def counting(self, *args, **named):
            done[name] += 1
            return original(self, *args, **named)

        monkeypatch.setattr(owner, method, counting)

    counted(CertifiedLearner, "_decide_block", "parts")
    counted(CertifiedLearner, "_plan", "plans")
    counted(CertificationRun, "look", "looks")
    counted(BettingBound, "update", "updates")
    return done


def a_block(learner, people, seed):
    sample = WORLD.draw(people, np.random.default_rng(seed))
    decisions = learner.decide(sample.features, sample.group)
    accepted = np.flatnonzero(decisions.accept)
    learner.observe(decisions.first_round + accepted, sample.label[accepted])
    return decisions


def certified(kind=CertifiedLearner, **settings):
    return kind(WORLD.hypotheses, FPR, 0.2, 0.05, **{"seed": 1, **settings})


def first_block(work, people, kind=CertifiedLearner):
    """What a first block and a call after it take."""
    learner = certified(kind)
    a_block(learner, people, 0)
    a_block(learner, 10, 1)
    return learner, dict(work)


@pytest.mark.parametrize("people", SIZES)
def test_a_first_block_is_one_epoch_and_the_call_after_it_looks_at_one_cohort(work, people):
    learner, done = first_block(work, people)
    assert done["parts"] <= log2(people / 100) + 3
    assert done["plans"] == 2
    assert done["looks"] == 1
    assert learner.report.epochs[0].rounds == people
    assert learner.report.epochs[1].first_round == people
    # what was told about the block is learned at once, not after twice as many people
    assert learner.learned_weight > 0


def test_without_prolonging_a_quarter_of_the_people_has_a_hundred_epochs(work):
    """The negative control: what the bounds above refuse."""
    _, done = first_block(work, SIZES[0] // 4, Hasty)
    assert done["plans"] > 90
    assert done["looks"] > 90


@pytest.mark.parametrize("people", SIZES)
def test_a_later_block_is_as_cheap(work, people):
    """A learner that has intervals: the bound is updated once for each epoch, not once for each
    part.
    """
    learner = certified()
    for seed in range(8):
        a_block(learner, 100, seed)
    learner.open_epoch()
    before, epochs = dict(work), len(learner.report.epochs)
    assert before["updates"] > 0
    a_block(learner, people, 99)
    a_block(learner, 10, 100)
    done = {name: work[name] - before[name] for name in work}
    assert done["parts"] <= log2(people / 50) + 3
    assert done["updates"] <= done["looks"] <= 4
    assert done["plans"] == len(learner.report.epochs) - epochs <= 3


@pytest.mark.parametrize("name", list(everybody()))
def test_every_learner_cuts_a_block_into_few_parts(name, monkeypatch):
    learner, plans = everybody()[name], []
    original = type(learner)._plan
    monkeypatch.setattr(
        type(learner), "_plan", lambda self, *args: plans.append(args) or original(self, *args)
    )
    a_block(learner, 20_000, 0)
    assert learner.round == 20_000
    assert len(plans) <= 130  # an exploration that may not be prolonged grows by a twentieth


def test_a_prolonged_epoch_has_one_number_one_policy_and_all_its_rounds():
    learner = Unconstrained(WORLD.hypotheses, FPR, first_rounds=10, seed=1)
    a_block(learner, 9, 0)
    decisions = a_block(learner, 700, 1)
    assert decisions.epoch.tolist() == [1] + [2] * 699
    assert learner.epoch.number == 2
    assert learner.epoch.first_round == 10
    assert learner.rounds_left == 10 + 10 * 128 - 709
    before = learner.policy
    a_block(
        learner, 1, 2
    )  # labels were told: the epoch ends here, and its length is what was played
    assert [epoch.rounds for epoch in learner.report.epochs] == [10, 699, learner.epoch.rounds]
    assert learner.epoch.first_round == 709
    assert learner.policy != before


def test_while_nothing_is_told_the_epoch_goes_on_and_the_first_labels_end_it():
    learner = Unconstrained(WORLD.hypotheses, FPR, first_rounds=100, seed=1)
    people = WORLD.draw(1000, np.random.default_rng(0))
    for i in range(700):
        learner.decide(people.features[i : i + 1], people.group[i : i + 1])
    assert [epoch.rounds for epoch in learner.report.epochs] == [800]
    learner.observe(np.arange(650), people.label[:650])
    learner.decide(people.features[700:701])
    assert [epoch.rounds for epoch in learner.report.epochs] == [700, 700]


def test_a_learner_may_refuse_to_be_prolonged():
    class Punctual(Unconstrained):
        def _prolonged(self, epoch):
            return None

    learner = Punctual(WORLD.hypotheses, FPR, first_rounds=100, seed=1)
    learner.decide(WORLD.draw(700, np.random.default_rng(0)).features)
    assert [epoch.rounds for epoch in learner.report.epochs] == [100, 100, 200, 400]


def test_while_labels_mature_one_epoch_waits_and_ends_with_the_first_window(work):
    learner = certified(maturity=60.0)
    for now in range(61):
        people = WORLD.draw(100, np.random.default_rng(now))
        assert work["plans"] == 1
        decisions = learner.decide(people.features, people.group, at=float(now))
        learner.observe(
            decisions.round[decisions.accept], people.label[decisions.accept], at=float(now)
        )
    assert work["plans"] == 2
    assert learner.report.epochs[0].rounds == 6000
    assert work["looks"] == 1


def test_counts_are_news():
    """Rounds played in aggregate are resolved: each epoch is followed by a new plan, as ever."""
    run = eh.simulate(certified(), WORLD, 5000, 1)
    assert len(run.learner.report.epochs) > 5
    assert run.learner.report.epochs[0].rounds == 100


def test_a_history_that_was_there_before_the_first_round_is_news(work):
    world, learner = WORLD, certified()
    counts = world.draw_counts(2000, np.ones(6), np.random.default_rng(0))
    columns = (counts.rejected, counts.accepted_positive, counts.accepted_negative)
    log = RoundLog(world.features, world.group, np.ones(6), *(c.astype(float) for c in columns))
    learner.warm_start(log, audited=True)
    learner.decide(WORLD.features[np.zeros(101, int)])
    assert work["plans"] == 2


def test_waiting_is_stored(tmp_path):
    """A copy of a learner whose epoch has been prolonged ends it when the original does."""
    for told in (False, True):
        learner = certified()
        people = WORLD.draw(1000, np.random.default_rng(0))
        decisions = learner.decide(people.features, people.group)
        if told:
            learner.observe(decisions.round, people.label)
        learner.save(tmp_path / "x")
        copy = eh.load(tmp_path / "x")
        for one in (learner, copy):
            if not told:
                one.observe(decisions.round[:700], people.label[:700])
            one.decide(people.features[:5], people.group[:5])
        assert learner.report == copy.report
        assert learner.report.epochs[0].rounds == 1000


def test_a_plan_that_fails_is_made_again(monkeypatch):
    """What was found before the failure still counts as news: the epoch is not prolonged in
    silence.
    """
    learner = certified()
    a_block(learner, 100, 0)
    monkeypatch.setattr(CertifiedLearner, "_chosen", lambda *_: 1 / 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            learner.open_epoch()
    monkeypatch.undo()
    assert learner.open_epoch().number == 2
