"""What every learner owes: rounds, coins, epochs, looking."""

import inspect
import json

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.learners.play import FPR, WORLD, everybody, play, two_phase, world

import evenhand as eh
from evenhand.environments import random_population
from evenhand.errors import InvalidInput, ProtocolError
from evenhand.estimation import RoundLog
from evenhand.learners import TwoPhaseLearner, Unconstrained, Uniform
from evenhand.learners.baselines import FOREVER

NAMES = list(everybody())


@pytest.fixture(params=NAMES)
def learner(request):
    return everybody()[request.param]


def test_each_person_is_one_round_and_decisions_carry_what_they_must(learner):
    sample = WORLD.draw(500, np.random.default_rng(0))
    decisions = learner.decide(sample.features, sample.group)
    assert learner.round == len(decisions) == 500
    assert [d.round for d in decisions] == list(range(500))
    ends = np.cumsum([epoch.rounds for epoch in learner.report.epochs])
    assert np.array_equal(decisions.epoch, 1 + np.searchsorted(ends, np.arange(500), side="right"))
    assert not any(d.audit for d in decisions)


def test_the_propensity_is_the_policy_s_probability_of_what_was_done(learner):
    people = np.random.default_rng(1)
    for _ in range(30):
        sample = WORLD.draw(40, people)
        decisions = learner.decide(sample.features, sample.group)
        for d, x, a in zip(decisions, sample.features, sample.group, strict=True):
            acceptance = learner.report.epochs[d.epoch - 1].policy.acceptance(x[None], [a])[0]
            assert d.propensity == (acceptance if d.accept else 1.0 - acceptance)
            assert d.propensity > 0
        accepted = np.flatnonzero(decisions.accept)
        learner.observe(decisions.round[accepted], sample.label[accepted])


def test_one_by_one_equals_blocks_within_an_epoch(learner):
    """Coins are drawn in the order of rounds, so not only the law is the same but every single
    decision.
    """
    single, block, start = learner, learner.restarted(5), 0
    people = WORLD.draw(1500, np.random.default_rng(3))
    while start < 1500:
        part = range(start, min(1500, start + max(1, min(100, block.rounds_left))))
        together = block.decide(people.features[part], people.group[part])
        alone = [
            single.decide(people.features[i : i + 1], people.group[i : i + 1])[0] for i in part
        ]
        assert list(together) == alone
        accepted = together.round[together.accept]
        for told in (single, block):
            told.observe(accepted, people.label[accepted])
        start += len(part)
    assert single.report == block.report


def test_of_a_block_that_spans_epochs_nothing_is_learned_before_it_is_handed_over():
    """The labels of its accepted people cannot be known, so its rejected people do not enter alone
    either.
    """
    learner = two_phase()
    play(learner, 900, 0)
    people = WORLD.draw(1000, np.random.default_rng(1))
    learner.decide(people.features, people.group)
    assert sum(log.rounds for _, log in learner.state.history.logs) <= 900


def test_looking_changes_nothing(learner):
    twin = learner.restarted(5)
    for seed in range(6):
        before = learner.round, learner.rounds_left
        for _ in range(3):
            learner.policy.acceptance(WORLD.features, WORLD.group)
            learner.acceptance(WORLD.features, WORLD.group)
            repr(learner.report), dict(learner.params), learner.epoch, learner.policy.describe()
        assert (learner.round, learner.rounds_left) == before
        assert play(learner, 200, seed) == play(twin, 200, seed)


def test_the_coin_has_the_policy_s_probability(learner):
    """80,000 coins: a probability off by .01 is found with probability .99 at level 1e-6."""
    play(learner, 1500, 4)
    learner.open_epoch()
    rows = np.zeros((4000, 1))
    chance = learner.acceptance([[0.0]], ["a"])[0]
    hits = total = 0
    for seed in range(20):
        again = learner.restarted(seed)
        again.state.epochs = [*learner.state.epochs[:-1], learner.epoch]
        again.state.round, again.state.coins = learner.round, np.random.default_rng(seed)
        count = min(4000, learner.rounds_left)
        hits += int(again.decide(rows[:count], np.full(count, "a")).accept.sum())
        total += count
    assert (chance in (0.0, 1.0) and hits in (0, total)) or binomtest(
        hits, total, chance
    ).pvalue > 1e-6


def test_a_block_may_go_on_beyond_the_end_of_an_epoch():
    """Its first part fills the epoch; the labels of earlier people end it; the rest meets one
    policy, because nothing more is known.
    """
    learner = Unconstrained(WORLD.hypotheses, FPR, first_rounds=10, seed=5)
    sample = WORLD.draw(9, np.random.default_rng(0))
    decisions = learner.decide(sample.features, sample.group)
    learner.observe(decisions.round, sample.label)
    more = WORLD.draw(700, np.random.default_rng(1))
    found = learner.decide(more.features, more.group)
    assert found.epoch.tolist() == [1] + [2] * 699
    assert found.first_round == 9
    assert learner.round == 709


def test_nobody_is_no_round():
    learner = Uniform(seed=0)
    assert len(learner.decide(np.zeros((0, 1)))) == 0
    assert learner.round == 0


def test_restarted_equals_a_new_learner(learner):
    fresh = everybody()
    name = next(n for n in NAMES if fresh[n].params == learner.params)
    play(learner, 700, 1, told=0.8)
    again = learner.restarted(5)
    assert again.params == fresh[name].params
    assert again.report == fresh[name].report
    assert play(again, 900, 6) == play(fresh[name], 900, 6)
    assert again.report == fresh[name].report


def test_params_are_plain_values(learner):
    assert json.loads(json.dumps(dict(learner.params)))["learner"] == type(learner).__name__


def test_with_certify_only_the_group_changes_no_probability():
    for name, learner in everybody().items():
        if learner.group_use == "decide":
            continue
        play(learner, 1500, 7)
        left, right = (learner.acceptance(WORLD.features, np.full(6, g)) for g in ("a", "b"))
        unknown = learner.acceptance(WORLD.features)
        assert left.tobytes() == right.tobytes() == unknown.tobytes(), name


def test_flipping_the_groups_of_the_decided_changes_no_decision_under_a_certify_only_policy():
    one, two = two_phase(), two_phase()
    assert play(one, 800, 1) == play(two, 800, 1)
    assert one.epoch.phase == "bandit"
    people = WORLD.draw(50, np.random.default_rng(0))
    flipped = np.where(people.group == "a", "b", "a")
    left, right = one.decide(people.features, people.group), two.decide(people.features, flipped)
    assert np.array_equal(left.accept, right.accept)
    assert left.propensity.tobytes() == right.propensity.tobytes()


@pytest.mark.parametrize("names", [(-1, 1), ("north", "süd"), (True, False), (0.5, 2.5)])
def test_any_group_labels_work_and_mean_the_same(names):
    """The later of the two groups in ascending order is the same one here, so that even the sign of
    gaps is equal.
    """
    first, second = sorted(names)
    there, here = world((first, second)), WORLD
    runs = []
    for env in (there, here):
        learner = TwoPhaseLearner(env.hypotheses, FPR, 0.4, 0.1, 3000, comparator_gap=0.02, seed=5)
        runs.append(play(learner, 1500, 8, environment=env))
    assert runs[0] == runs[1]


def test_tuples_as_groups_are_refused_before_anything_happens():
    group = np.empty(1, dtype=object)
    group[0] = ("female", 60)
    learner = two_phase()
    with pytest.raises(InvalidInput, match="is a tuple"):
        learner.decide([[0.0]], group)
    assert learner.round == 0


def test_counts_and_events_give_the_same_next_policy(learner):
    """The same rounds, told one by one to one learner and as counts to another."""
    events, counts = learner, learner.restarted(5)
    people = np.random.default_rng(9)
    for _ in range(16):
        assert events.open_epoch() == counts.open_epoch()
        rounds = min(events.rounds_left, 400)
        sample = WORLD.draw(rounds, people)
        decisions = events.decide(sample.features, sample.group)
        accepted = np.flatnonzero(decisions.accept)
        events.observe(decisions.round[accepted], sample.label[accepted])
        context = sample.features[:, 0].astype(int)
        table = {
            "rejected": np.bincount(context[~decisions.accept], minlength=6),
            "positive": np.bincount(context[decisions.accept & (sample.label == 1)], minlength=6),
            "negative": np.bincount(context[decisions.accept & (sample.label == -1)], minlength=6),
        }
        order = list(
            dict.fromkeys(context.tolist())
        )  # in the order of first appearance, as aggregation has it
        acceptance = counts.acceptance(WORLD.features, WORLD.group)
        log = RoundLog(
            WORLD.features[order],
            WORLD.group[order],
            acceptance[order],
            **{name: column[order].astype(float) for name, column in table.items()},
        )
        counts.absorb(log)
    assert events.open_epoch() == counts.open_epoch()
    assert counts.report == events.report


def test_counts_that_do_not_fit_are_refused():
    learner = two_phase()
    one = np.ones(1)
    log = RoundLog(np.zeros((1, 1)), np.array(["a"]), one, 0 * one, 1000 * one, 0 * one)
    with pytest.raises(
        ProtocolError, match="1000 rounds do not fit into the epoch, which has 64 left"
    ):
        learner.absorb(log)
    assert learner.round == 0


def test_an_epoch_that_never_ends_is_long():
    assert Uniform().rounds_left == FOREVER


def test_without_groups_the_unconstrained_bandit_learns_all_the_same():
    learner = Unconstrained(WORLD.hypotheses, FPR, first_rounds=100, seed=1)
    rng = np.random.default_rng(0)
    for _ in range(30):
        sample = WORLD.draw(100, rng)
        decisions = learner.decide(sample.features)
        accepted = np.flatnonzero(decisions.accept)
        learner.observe(decisions.round[accepted], sample.label[accepted])
    learner.open_epoch()
    assert WORLD.loss(learner.policy) < WORLD.loss(Uniform().policy)


def test_seeds_are_drawn_where_none_is_given_and_streams_differ():
    assert Uniform().seed != Uniform().seed
    runs = [tuple(play(Uniform(seed=s), 200, 0)) for s in (1, 2, 1)]
    assert runs[0] == runs[2] != runs[1]


def test_a_large_population_is_played_by_all_of_the_quick_ones():
    env = random_population(0)
    learner = TwoPhaseLearner(env.hypotheses, FPR, 0.5, 0.1, 5000, comparator_gap=0.1, seed=0)
    play(learner, 2000, 0, environment=env, block=500)
    assert learner.epoch.phase == "bandit"


def test_help_shows_how_a_learner_is_made():
    """Not `__new__`, which takes anything."""
    for learner in (eh.CertifiedLearner, eh.TwoPhaseLearner):
        taken = list(inspect.signature(learner).parameters)
        assert taken[:3] == ["hypotheses", "rate", "allowed_gap"]
