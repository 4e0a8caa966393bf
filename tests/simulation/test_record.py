"""The record of a run: its epochs, and the truth about a two-phase learner's set."""

import json
from dataclasses import fields

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.simulation.test_run import learner_of

import evenhand as eh
from evenhand.environments import lending, random_population, threshold_population
from evenhand.errors import InvalidInput
from evenhand.fairness import FalseNegativeRate, GapConstraints
from evenhand.hypotheses.constants import GroupClassifier
from evenhand.learners import FairOnGathered, TwoPhaseLearner, Uniform
from evenhand.simulation import RunRecord, policy_set, record, regret_in_set, simulate
from evenhand.simulation.record import value_at

FPR, LIMIT, ROUNDS = eh.FalsePositiveRate(), 0.1, 10_000


@pytest.fixture(scope="module")
def world():
    return lending()


@pytest.fixture(scope="module")
def certified(world) -> eh.simulation.Run:
    return simulate(
        eh.CertifiedLearner(world.hypotheses, FPR, LIMIT, 0.05, horizon=ROUNDS),
        world,
        ROUNDS,
        7,
        LIMIT,
    )


@pytest.fixture(scope="module")
def greedy(world) -> eh.simulation.Run:
    return simulate(FairOnGathered(world.hypotheses, FPR, LIMIT), world, ROUNDS, 7, LIMIT)


def test_certified_ends_cover_the_truth_and_keep_the_limit(world, certified):
    found = record(certified, world, LIMIT)
    assert len(found.certified) == len(certified.rounds)
    assert (found.gaps <= found.certified + 1e-12).all()
    assert (found.certified <= LIMIT + 1e-9).all()
    assert found.certified[0] == 0.0  # accept-all needs no evidence


def test_weights_are_those_of_the_policies(world, certified):
    found = record(certified, world, LIMIT)
    assert (found.learned[0], found.audit[0]) == (0.0, 1.0)
    assert found.learned[-1] == pytest.approx(certified.learner.learned_weight)
    assert (found.learned + found.audit <= 1 + 1e-9).all()


def test_a_learner_that_certifies_nothing_has_no_certified_ends(world, greedy):
    assert record(greedy, world, LIMIT).certified is None


def test_the_in_sample_gap_is_what_the_greedy_learner_limits_itself_to(world, greedy):
    """It solves for exactly this gap, so its own measurement never exceeds the limit, while the
    truth does.
    """
    runs = [greedy, *(simulate(greedy.learner, world, ROUNDS, seed, LIMIT) for seed in range(6))]
    found = [record(run, world, LIMIT) for run in runs]
    assert all(np.isnan(one.in_sample[0]) for one in found)
    assert max(one.in_sample[1:].max() for one in found) <= LIMIT + 1e-9
    assert max(one.worst_gap for one in found) > 1.2 * LIMIT


def test_the_in_sample_gap_by_hand(world, greedy):
    """Count every label of the first epoch once."""
    first = greedy.learner.gathered[0][1]
    context = first.features[:, 0].astype(int)
    yes = greedy.policies[1].acceptance(first.features, None)
    rates = [
        (first.negative * yes)[world.group[context] == g].sum()
        / first.negative[world.group[context] == g].sum()
        for g in ("north", "south")
    ]
    assert record(greedy, world, LIMIT).in_sample[1] == pytest.approx(abs(rates[1] - rates[0]))


def test_a_column_at_given_rounds(certified):
    ends = certified.rounds.astype(float)
    assert (value_at(certified.rounds, certified.gaps, ends) == certified.gaps).all()
    assert value_at(certified.rounds, certified.gaps, np.array([1.0]))[0] == certified.gaps[0]


def test_records_carry_it_through_json_bit_for_bit(world, certified, greedy):
    for run in (certified, greedy):
        kept = record(run, world, LIMIT)
        back = RunRecord.from_json(json.loads(json.dumps(kept.to_json(), allow_nan=False)))
        for field in fields(RunRecord):
            np.testing.assert_array_equal(getattr(back, field.name), getattr(kept, field.name))


def test_regret_is_measured_against_a_known_optimum(world, greedy):
    kept = record(greedy, world, LIMIT, optimum=0.25)
    assert kept.optimum == 0.25
    assert kept.regret[-1] == pytest.approx(ROUNDS * (kept.cost - 0.25))


def test_a_continuous_population_has_no_gathered_labels_by_context():
    world = eh.environments.Scores()
    run = simulate(FairOnGathered(world.hypotheses, FPR, LIMIT), world, 600, 0, LIMIT)
    kept = record(run, world, LIMIT)
    assert kept.in_sample is None
    assert kept.certified is None


# The truth about a learner's set: by the fair oracle, and by a linear program over the whole
# class


FNR = FalseNegativeRate()


def whole_class(world, learner):
    """(acceptance table over population rows, true gaps, empirical gaps, limit): everything by
    direct evaluation.
    """
    truth, sample = world.population_sample(), learner.sample
    tables = []
    for people in (truth, sample):
        contexts = people.features[:, 0].astype(int)
        rows = [accepts[contexts] for accepts in world.accepts] + [
            np.zeros(len(people)),
            np.ones(len(people)),
        ]
        if learner.group_use == "decide":
            rows += [
                GroupClassifier(g).accepts(people.features, people.group) for g in truth.groups
            ]
        tables.append(np.array(rows, dtype=float))
    gaps = [
        np.array([GapConstraints.on(learner.rates, p).gaps(row) for row in t])
        for p, t in zip((truth, sample), tables, strict=True)
    ]
    return tables[0], gaps[0], gaps[1], learner.slack.limit


def extreme(value, empirical, limit):
    """min value . w over mixtures whose empirical gaps are within the limit."""
    found = linprog(
        value,
        A_ub=np.vstack([empirical.T, -empirical.T]),
        b_ub=np.full(2 * empirical.shape[1], limit),
        A_eq=np.ones((1, len(value))),
        b_eq=[1],
    )
    return float(found.fun)


CASES = {
    "lending": (lending, FPR, "certify_only"),
    "random": (random_population, FPR, "certify_only"),
    "thresholds": (threshold_population, FPR, "certify_only"),
    "two rates": (lending, (FPR, FNR), "certify_only"),
    "decide": (lending, FPR, "decide"),
}


@pytest.fixture(params=CASES)
def played(request):
    make, rates, use = CASES[request.param]
    world = make()
    learner = TwoPhaseLearner(
        world.hypotheses,
        rates,
        None,
        0.05,
        1500,
        comparator_gap=0.02,
        exploration_rounds=600,
        group_use=use,
    )
    return world, simulate(learner, world, 1500, 3, 0.05)


def test_best_loss_and_worst_gap_are_those_of_the_linear_program(played):
    world, run = played
    table, true, empirical, limit = whole_class(world, run.learner)
    found = policy_set(run.learner, world)
    truth = world.population_sample()
    losses = [float(truth.weight @ np.where(truth.label == 1, 1 - row, row)) for row in table]
    assert found.best_loss == pytest.approx(extreme(np.array(losses), empirical, limit), abs=1e-9)
    worst = max(
        -extreme(sign * true[:, k], empirical, limit)
        for k in range(true.shape[1])
        for sign in (1, -1)
    )
    assert found.worst_gap == pytest.approx(worst, abs=1e-9)
    assert found.limit == limit
    assert found.guarantee == pytest.approx(0.02 + 2 * found.beta)


def test_the_extremes_belong_to_the_set(played):
    world, run = played
    found, sample = policy_set(run.learner, world), run.learner.sample
    for policy in (found.best, found.worst):
        gaps = GapConstraints.on(run.learner.rates, sample).gaps(
            policy.acceptance(sample.features, sample.group)
        )
        assert np.abs(gaps).max() <= found.limit + 1e-9
    assert world.loss(found.best) == pytest.approx(found.best_loss)


def test_regret_in_the_set_counts_the_bandits_rounds_only(played):
    world, run = played
    best, total, expected = policy_set(run.learner, world).best_loss, 0.0, []
    for length, phase, policy in zip(run.lengths, run.phases, run.policies, strict=True):
        total += length * (world.loss(policy) - best) if phase != "explore" else 0.0
        expected.append(total)
    found = regret_in_set(run, world)
    assert found == pytest.approx(expected)
    assert found[0] == 0
    assert np.diff(found).min() >= -1e-9


def test_refusals():
    world = lending()
    exploring = simulate(learner_of("one-sided", world), world, 100, 1)
    with pytest.raises(InvalidInput, match="100 rounds"):
        policy_set(exploring.learner, world)
    with pytest.raises(InvalidInput, match="Uniform"):
        policy_set(Uniform(), world)
    run = simulate(learner_of("one-sided", world), world, 1000, 1)
    with pytest.raises(InvalidInput, match="object"):
        policy_set(run.learner, object())
