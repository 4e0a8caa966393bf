"""What every learner owes, whatever its algorithm: rounds, coins, epochs, looking; a call that is
an error changes nothing; a call with many people costs what its people cost.
"""

import copy
import json
import pickle
from math import log

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.play import FPR, WORLD, certified, every_learner, play, two_phase, world
from tests.without_clocks import calls

import evenhand as eh
from evenhand.algorithms.certified import step as certified_step
from evenhand.algorithms.certified.step import Certified
from evenhand.bounds import BettingBound
from evenhand.environments import random_population
from evenhand.errors import InvalidInput, LengthMismatch, NotFinite, ProtocolError
from evenhand.estimation import RoundLog
from evenhand.fairness.certificate import COINS_FROM_SEED
from evenhand.learner import EpochLearner
from evenhand.learners import AcceptAll, TwoPhaseLearner, Unconstrained, Uniform
from evenhand.rounds import FOREVER
from evenhand.words import Prices

NAMES = list(every_learner())


@pytest.fixture(params=NAMES)
def learner(request):
    return every_learner()[request.param]


def test_each_person_is_one_round_and_decisions_carry_what_they_must(learner):
    sample = WORLD.draw(500, np.random.default_rng(0))
    decisions = learner.decide(sample.features, sample.group)
    assert learner.round == len(decisions) == 500
    assert [d.round for d in decisions] == list(range(500))
    ends = np.cumsum([epoch.rounds for epoch in learner.report.epochs])
    assert np.array_equal(decisions.epoch, 1 + np.searchsorted(ends, np.arange(500), side="right"))
    assert not any(d.audit for d in decisions)


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_one_by_one_equals_blocks_within_an_epoch(learner):
    """Coins are drawn in the order of rounds, so not only the distribution is the same but every
    single decision.
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
    assert learner.state.learned <= 900


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_the_coin_has_the_policy_s_probability(learner):
    """80,000 coins: a probability off by .01 is found with probability .99 at level 1e-6."""
    play(learner, 1500, 4)
    learner.open_epoch()
    rows = np.zeros((4000, 1))
    chance = learner.acceptance([[0.0]], ["a"])[0]
    hits = total = 0
    for seed in range(20):
        again = copy.deepcopy(learner)
        again.coins = np.random.default_rng(seed)
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


@pytest.mark.thorough
def test_restarted_equals_a_new_learner(learner):
    fresh = every_learner()
    name = next(n for n in NAMES if fresh[n].params == learner.params)
    play(learner, 700, 1, told=0.8)
    again = learner.restarted(5)
    assert again.params == fresh[name].params
    assert again.report == fresh[name].report
    assert play(again, 900, 6) == play(fresh[name], 900, 6)
    assert again.report == fresh[name].report


def test_params_are_plain_values(learner):
    assert json.loads(json.dumps(dict(learner.params)))["learner"] == type(learner).__name__


@pytest.mark.thorough
def test_with_certify_only_the_group_changes_no_probability():
    for name, learner in every_learner().items():
        if learner.group_use == "decide":
            continue
        play(learner, 1500, 7)
        left, right = (learner.acceptance(WORLD.features, np.full(6, g)) for g in ("a", "b"))
        unknown = learner.acceptance(WORLD.features)
        assert left.tobytes() == right.tobytes() == unknown.tobytes(), name


@pytest.mark.thorough
def test_flipping_the_groups_of_the_decided_changes_no_decision_under_a_certify_only_policy():
    one, two = two_phase(), two_phase()
    assert play(one, 800, 1) == play(two, 800, 1)
    assert one.epoch.phase == "bandit"
    people = WORLD.draw(50, np.random.default_rng(0))
    flipped = np.where(people.group == "a", "b", "a")
    left, right = one.decide(people.features, people.group), two.decide(people.features, flipped)
    assert np.array_equal(left.accept, right.accept)
    assert left.propensity.tobytes() == right.propensity.tobytes()


@pytest.mark.thorough
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
    with pytest.raises(InvalidInput):
        learner.decide([[0.0]], group)
    assert learner.round == 0


@pytest.mark.thorough
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
    with pytest.raises(ProtocolError):
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


# calls that are errors


@pytest.mark.parametrize("round", [0.5, 3.0, "3", [[0]]])
def test_a_round_is_a_whole_number(round):
    learner = AcceptAll()
    learner.decide(WORLD.features, WORLD.group)
    for call in (
        lambda: learner.observe(round, 1),
        lambda: learner.overrule(round, False),
        lambda: learner.erase(round),
        lambda: learner.report_group(round, "a"),
    ):
        with pytest.raises(InvalidInput) as caught:
            call()
        assert caught.value.argument == "round"
    assert learner.report.missing_labels == 6


def test_each_round_needs_one_label():
    learner = AcceptAll()
    learner.decide(WORLD.features, WORLD.group)
    with pytest.raises(InvalidInput) as caught:
        learner.observe([0, 1], [1])
    assert caught.value.argument == "label"


@pytest.mark.parametrize("accept", [1, "no", None, 0.0, [True, False]])
def test_a_human_decides_true_or_false(accept):
    learner = AcceptAll()
    learner.decide(WORLD.features, WORLD.group)
    with pytest.raises(InvalidInput) as caught:
        learner.overrule(3, accept)
    assert caught.value.argument == "accept"


def test_the_time_is_a_number_and_does_not_run_backwards():
    learner = certified(maturity=5.0)
    with pytest.raises(InvalidInput) as caught:
        learner.decide(WORLD.features, WORLD.group)
    assert caught.value.argument == "at"
    learner.decide(WORLD.features, WORLD.group, at=3.0)
    for at in (float("nan"), float("inf"), "noon"):
        for call in (
            lambda at=at: learner.observe(0, 1, at=at),
            lambda at=at: learner.decide(WORLD.features, WORLD.group, at=at),
        ):
            with pytest.raises(InvalidInput) as caught:
                call()
            assert caught.value.argument == "at"
    with pytest.raises(ProtocolError):
        learner.decide(WORLD.features, WORLD.group, at=2.0)
    assert learner.round == 6


def test_every_learner_takes_a_time(learner):
    decisions = learner.decide(WORLD.features, WORLD.group, at=1.0)
    accepted = decisions.round[decisions.accept]
    learner.observe(accepted, np.ones(len(accepted), int), at=2.0)
    with pytest.raises(ProtocolError):
        learner.decide(WORLD.features, WORLD.group, at=1.5)


@pytest.mark.parametrize(
    ("features", "group", "error"),
    [
        ([[0.0, 1.0]], ["a"], InvalidInput),
        ([[np.nan]], ["a"], NotFinite),
        ([[6.0]], ["a"], InvalidInput),
        ([[0.5]], ["a"], InvalidInput),
        ([0.0], ["a"], InvalidInput),
        ([["x"]], ["a"], InvalidInput),
        ([[0.0]], ["a", "b"], LengthMismatch),
        ([[0.0]], None, InvalidInput),
        ([[0.0]], np.array([None]), InvalidInput),
    ],
)
def test_people_who_cannot_be_decided_about_change_nothing(features, group, error):
    learner, twin = two_phase(), two_phase()
    assert play(learner, 30, 2) == play(twin, 30, 2)
    with pytest.raises(error):
        learner.decide(features, group)
    assert learner.round == 30
    assert play(learner, 300, 3) == play(twin, 300, 3)


def test_a_first_call_that_is_an_error_does_not_fix_the_number_of_columns():
    learner = Uniform()
    with pytest.raises(LengthMismatch):
        learner.decide([[0.0, 1.0]], ["a", "b"])
    learner.decide([[0.0]])
    with pytest.raises(InvalidInput) as caught:
        learner.decide([[0.0, 1.0]])
    assert caught.value.argument == "features"


def test_prices_are_given_for_all_people_or_for_none():
    priced, plain = Uniform(), Uniform()
    priced.decide([[0.0]], prices=Prices([0.5], [0.5]))
    plain.decide([[0.0]])
    for call in (
        lambda: priced.decide([[0.0]]),
        lambda: plain.decide([[0.0]], prices=Prices(0.5, 0.5)),
    ):
        with pytest.raises(InvalidInput) as caught:
            call()
        assert caught.value.argument == "prices"


def test_prices_above_the_bound_or_of_another_length_are_errors_and_fix_nothing():
    learner = Uniform(prices=Prices(1.0, 1.0))
    with pytest.raises(InvalidInput):
        learner.decide([[0.0]], prices=Prices(5.0, 1.0))
    with pytest.raises(LengthMismatch):
        learner.decide([[0.0]], prices=Prices([0.5, 0.5], 1.0))
    learner.decide([[0.0]])
    with pytest.raises(InvalidInput):
        Uniform(prices=Prices(0.0, 0.0))


@pytest.mark.thorough
def test_a_group_that_is_known_only_sometimes_stops_nobody():
    learner = two_phase()
    play(learner, 800, 1)
    assert learner.epoch.phase == "bandit"
    rng = np.random.default_rng(4)
    for i in range(600):
        person = WORLD.draw(1, rng)
        decision = learner.decide(person.features, person.group if i % 3 else None)[0]
        if decision.accept:
            learner.observe(decision.round, int(person.label[0]))
    assert learner.round == 1400


# most people come alone


def alone(learner, people, count):
    return [
        learner.decide(people.features[i : i + 1], people.group[i : i + 1]) for i in range(count)
    ]


def test_the_coins_of_single_people_are_those_of_a_block():
    """`_decide_one` writes entry by entry; `_decide_block` is its slow twin."""
    one, many = certified(), certified()
    people = WORLD.draw(90, np.random.default_rng(1))
    single = alone(one, people, 90)
    block = many.decide(people.features, people.group)
    assert [decision[0] for decision in single] == list(block)
    for name in ("coins", "audit_coins"):
        states = [getattr(each, name).bit_generator.state for each in (one, many)]
        assert states[0] == states[1]
    for name in ("accept", "acceptance", "audit", "group", "epoch", "round"):
        assert (one.rounds[name] == many.rounds[name]).all()


@pytest.mark.thorough
def test_a_decision_takes_few_function_calls():
    """Counted, because time depends on the machine: 47 for a mixture and 66 for a certified learner
    with a group; numpy 1.26 makes six more of its own. A block of one person takes more.
    """
    person, group = WORLD.features[:1], WORLD.group[:1]
    learner = certified()
    alone(learner, WORLD.draw(5, np.random.default_rng(1)), 5)
    assert calls(learner.decide, person, group) <= 66
    uniform = Uniform(seed=1)
    uniform.decide(person)
    assert calls(uniform.decide, person) <= 47
    assert calls(uniform._decide_block, person, None, None, 3) > 20


def test_what_a_caller_writes_into_a_decision_stays_there():
    learner = certified()
    (decision,) = alone(learner, WORLD.draw(1, np.random.default_rng(1)), 1)
    decision.accept[0] = False
    block = learner.decide(WORLD.features, WORLD.group)
    block.accept[:] = False
    assert learner.rounds["accept"].all()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_hold_the_same(copied):
    learner = certified()
    decision = alone(learner, WORLD.draw(3, np.random.default_rng(1)), 3)[-1]
    again = copied(learner)
    assert again.rounds["accept"].tolist() == [True] * 3
    assert copied(decision)[0] == decision[0]


# a call with many people: work is counted, not timed

SIZES = (20_000, 50_000)


@pytest.fixture
def work(monkeypatch):
    """How often something was done: parts of blocks, steps of the algorithm, cohorts closed, and
    updates of the betting bound.
    """
    done = dict.fromkeys(("parts", "steps", "closings", "updates"), 0)

    def counted(owner, method, name):
        original = getattr(owner, method)

        def counting(*args, **named):
            done[name] += 1
            return original(*args, **named)

        monkeypatch.setattr(owner, method, counting)

    counted(EpochLearner, "_decide_block", "parts")
    counted(Certified, "step", "steps")
    counted(certified_step, "close", "closings")
    counted(BettingBound, "update", "updates")
    return done


def a_block(learner, people, seed):
    sample = WORLD.draw(people, np.random.default_rng(seed))
    decisions = learner.decide(sample.features, sample.group)
    accepted = np.flatnonzero(decisions.accept)
    learner.observe(decisions.first_round + accepted, sample.label[accepted])
    return decisions


def most_parts(people):
    """Epochs grow by a quarter, so a block has so many of them, and a few more at its ends."""
    return log(people / 50) / log(1.25) + 4


@pytest.mark.parametrize("people", SIZES)
def test_a_first_block_has_the_epochs_of_all_blocks_and_one_policy(work, people):
    learner = certified()
    a_block(learner, people, 0)
    a_block(learner, people // 2 + 10, 1)
    epochs = learner.report.epochs
    assert work["parts"] <= most_parts(2 * people)
    assert work["steps"] <= most_parts(2 * people)
    # an epoch ends where it ends, whatever a call brings
    assert [epoch.first_round for epoch in epochs[:4]] == [0, 100, 150, 200]
    assert {epoch.policy for epoch in epochs if epoch.end <= people} == {epochs[0].policy}
    # what was reported about the block is learned at the first end of an epoch after it
    assert learner.learned_weight > 0


def test_epochs_that_do_not_grow_take_a_hundred_steps(work, monkeypatch):
    """Negative control: what the bounds above catch."""
    monkeypatch.setattr(Certified, "_length", lambda *_: 50)
    a_block(certified(), SIZES[0] // 4, 0)
    assert work["parts"] > 90
    assert work["steps"] > 90


@pytest.mark.thorough
@pytest.mark.parametrize("people", SIZES)
def test_a_later_block_is_as_cheap(work, people):
    """A learner that has intervals: the bound is updated once for each epoch, not once for each
    part.
    """
    learner = certified()
    for seed in range(8):
        a_block(learner, 100, seed)
    learner.open_epoch()
    before = dict(work)
    epochs = len(learner.report.epochs)
    assert before["updates"] > 0
    a_block(learner, people, 99)
    a_block(learner, 10, 100)
    done = {name: work[name] - before[name] for name in work}
    assert done["parts"] <= most_parts(people)
    assert done["steps"] <= most_parts(people)
    assert done["updates"] <= done["closings"] <= 4
    assert len(learner.report.epochs) - epochs <= most_parts(people)


def test_every_learner_cuts_a_block_into_few_parts(learner, monkeypatch):
    kind = type(learner.algorithm)
    steps = []
    original = kind.step
    monkeypatch.setattr(kind, "step", lambda *args: steps.append(1) or original(*args))
    a_block(learner, 20_000, 0)
    assert learner.round == 20_000
    assert len(steps) <= 130  # an exploration on counts goes on by a twentieth


def test_an_epoch_that_goes_on_has_one_number_one_policy_and_all_its_rounds():
    learner = Unconstrained(WORLD.hypotheses, FPR, first_rounds=10, seed=1)
    a_block(learner, 9, 0)
    decisions = a_block(learner, 700, 1)
    assert decisions.epoch.tolist() == [1] + [2] * 699
    assert learner.epoch.number == 2
    assert learner.epoch.first_round == 10
    assert learner.rounds_left == 10 + 10 * 128 - 709
    before = learner.policy
    a_block(learner, 1, 2)  # labels have come: the epoch ends here
    assert [epoch.rounds for epoch in learner.report.epochs] == [10, 699, learner.epoch.rounds]
    assert learner.epoch.first_round == 709
    assert learner.policy != before


def test_while_nothing_is_reported_the_epoch_goes_on_and_the_first_labels_end_it():
    learner = Unconstrained(WORLD.hypotheses, FPR, first_rounds=100, seed=1)
    people = WORLD.draw(1000, np.random.default_rng(0))
    alone(learner, people, 700)
    assert [epoch.rounds for epoch in learner.report.epochs] == [800]
    learner.observe(np.arange(650), people.label[:650])
    learner.decide(people.features[700:701])
    assert [epoch.rounds for epoch in learner.report.epochs] == [700, 700]


def test_while_labels_mature_one_policy_waits_and_the_first_end_after_the_window_closes(work):
    learner = certified(maturity=60.0)
    for now in range(100):
        people = WORLD.draw(100, np.random.default_rng(now))
        decisions = learner.decide(people.features, people.group, at=float(now))
        accepted = decisions.accept
        learner.observe(decisions.round[accepted], people.label[accepted], at=float(now))
        if now <= 60:
            assert {epoch.policy for epoch in learner.report.epochs} == {learner.policy}
            assert work["closings"] == 0
    assert [epoch.first_round for epoch in learner.report.epochs[:4]] == [0, 100, 150, 200]
    assert work["closings"] > 0


def test_counts_are_news():
    """Rounds played in aggregate are resolved: each epoch is followed by the next, as planned."""
    run = eh.simulate(certified(), WORLD, 5000, 1)
    assert len(run.learner.report.epochs) > 5
    assert run.learner.report.epochs[0].rounds == 100


@pytest.mark.thorough
@pytest.mark.parametrize("told", [False, True])
def test_an_epoch_that_goes_on_is_stored(told, tmp_path):
    """A copy ends it when the original does."""
    learner = certified()
    people = WORLD.draw(1000, np.random.default_rng(0))
    decisions = learner.decide(people.features, people.group)
    if told:
        learner.observe(decisions.round, people.label)
    learner.save(tmp_path / "x")
    again = eh.load(tmp_path / "x", same_coins=True)
    for one in (learner, again):
        if not told:
            one.observe(decisions.round[:700], people.label[:700])
        one.decide(people.features[:5], people.group[:5])
    assert learner.report == again.report
    assert learner.report.epochs[0].rounds == 100


def test_a_step_that_fails_is_made_again(monkeypatch):
    learner = certified()
    a_block(learner, 100, 0)
    monkeypatch.setattr(Certified, "_choose", lambda *_: 1 / 0)
    state = learner.state
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            learner.open_epoch()
        assert learner.state is state
    monkeypatch.undo()
    assert learner.open_epoch().number == 2


# coins


def decided(learner, people=400):
    rows = np.random.default_rng(8).normal(size=(people, 1))
    decisions = learner.decide(rows, np.where(rows[:, 0] > 0, "a", "b"))
    return decisions.accept.tolist()


def test_without_a_seed_the_coins_are_others_in_every_run():
    """All 400 coins alike by chance: 2^-400."""
    one, two, three = (decided(eh.learners.Uniform(seed=seed)) for seed in (None, None, 3))
    assert one != two
    assert three == decided(eh.learners.Uniform(seed=3))


def test_coins_without_a_seed_do_not_follow_from_the_seed_of_the_rest():
    """Who reads `learner.seed`, or tries all of 32 bits, learns nothing of coming coins."""
    learner = eh.learners.Uniform()
    assert decided(learner) != decided(eh.learners.Uniform(seed=learner.seed))


def test_coins_after_loading_are_others_unless_asked_for(tmp_path):
    learner = eh.learners.Uniform()
    decided(learner)
    learner.save(tmp_path / "learner")
    copies = [eh.load(tmp_path / "learner", same_coins=same) for same in (False, False, True)]
    here, there, same = (decided(copy) for copy in copies)
    assert here != there
    assert same == decided(learner)


def made(seed=None):
    return eh.CertifiedLearner(eh.ScoreThresholds(), "fpr", 0.1, 0.05, seed=seed)


def about_coins(learner):
    return [text for text in learner.certificate.assumptions if "coins" in text]


def test_a_certificate_says_whether_coins_can_be_recomputed(tmp_path):
    (always,) = about_coins(made())
    assert "erased" in always
    assert about_coins(made(seed=1)) == [always, COINS_FROM_SEED]
    learner = made(seed=1)
    everybody = learner.policy
    assert COINS_FROM_SEED in learner.certify(everybody).assumptions
    # coins that have been tossed stay known, whatever comes later
    decided(learner, 50)
    learner.save(tmp_path / "learner")
    assert COINS_FROM_SEED in about_coins(eh.load(tmp_path / "learner"))
    fresh = made(seed=1)
    fresh.toss_fresh_coins()
    assert about_coins(fresh) == [always]
