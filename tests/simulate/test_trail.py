"""What is said about a run epoch by epoch: certified ends cover the truth, and the in-sample gap is
what ordinary tools see.
"""

import json

import numpy as np
import pytest

import evenhand as eh
from evenhand.environments import lending
from evenhand.learners import FairOnGathered
from evenhand.simulate import PromiseCost, RunRecord, Trail, promise_cost, simulate, trail
from evenhand.simulate.record import record

FPR, LIMIT, ROUNDS = eh.FalsePositiveRate(), 0.1, 10_000


@pytest.fixture(scope="module")
def world():
    return lending()


@pytest.fixture(scope="module")
def certified(world) -> eh.Run:
    return simulate(
        eh.CertifiedLearner(world.hypotheses, FPR, LIMIT, 0.05, horizon=ROUNDS),
        world,
        ROUNDS,
        7,
        LIMIT,
    )


@pytest.fixture(scope="module")
def greedy(world) -> eh.Run:
    return simulate(FairOnGathered(world.hypotheses, FPR, LIMIT), world, ROUNDS, 7, LIMIT)


def test_certified_ends_cover_the_truth_and_keep_the_limit(world, certified):
    found = trail(certified, world)
    assert len(found.certified) == len(certified.rounds)
    assert (found.gap <= found.certified + 1e-12).all()
    assert (found.certified <= LIMIT + 1e-9).all()
    assert found.certified[0] == 0.0  # accept-all needs no evidence


def test_weights_are_those_of_the_policies(world, certified):
    found = trail(certified, world)
    assert (found.weight[0], found.audit[0]) == (0.0, 1.0)
    assert found.weight[-1] == pytest.approx(certified.learner.learned_weight)
    assert (found.weight + found.audit <= 1 + 1e-9).all()


def test_a_learner_that_certifies_nothing_has_no_certified_ends(world, greedy):
    assert np.isnan(trail(greedy, world).certified).all()


def test_the_in_sample_gap_is_what_the_greedy_learner_limits_itself_to(world, greedy):
    """It solves for exactly this gap, so its own measurement never exceeds the limit, while the
    truth does.
    """
    runs = [greedy, *(simulate(greedy.learner, world, ROUNDS, seed, LIMIT) for seed in range(6))]
    found = [trail(run, world) for run in runs]
    assert all(np.isnan(one.in_sample[0]) for one in found)
    assert max(one.in_sample[1:].max() for one in found) <= LIMIT + 1e-9
    assert max(one.gap.max() for one in found) > 1.2 * LIMIT


def test_the_in_sample_gap_by_hand(world, greedy):
    """Count every label of the first epoch once."""
    first = greedy.learner._history.logs[0][1]
    context = first.features[:, 0].astype(int)
    yes = greedy.policies[1].acceptance(first.features, None)
    rates = [
        (first.negative * yes)[world.group[context] == g].sum()
        / first.negative[world.group[context] == g].sum()
        for g in ("north", "south")
    ]
    assert trail(greedy, world).in_sample[1] == pytest.approx(abs(rates[1] - rates[0]))


def test_a_column_at_given_rounds(world, certified):
    found = trail(certified, world)
    ends = certified.rounds.astype(float)
    assert (found.at("gap", ends) == found.gap).all()
    assert found.at("gap", np.array([1.0]))[0] == found.gap[0]


def test_records_carry_it_through_json_bit_for_bit(world, certified, greedy):
    for run in (certified, greedy):
        kept = record(run, world, LIMIT)
        back = RunRecord.from_json(json.loads(json.dumps(kept.to_json(), allow_nan=False)))
        for name in ("gap", "in_sample", "certified", "weight", "audit"):
            assert np.array_equal(
                getattr(back.trail, name), getattr(kept.trail, name), equal_nan=True
            )
        assert isinstance(back.trail, Trail)


def test_a_continuous_population_has_none():
    world = eh.environments.Scores()
    run = simulate(FairOnGathered(world.hypotheses, FPR, LIMIT), world, 600, 0, LIMIT)
    assert trail(run, world) is None
    assert record(run, world, LIMIT).trail is None


def test_the_cost_of_the_promise_splits_into_two_prices(world):
    made = []

    def make(limit: float) -> eh.CertifiedLearner:
        made.append(limit)
        return eh.CertifiedLearner(world.hypotheses, FPR, limit, 0.05, horizon=2_000)

    found = promise_cost(make, world, 2_000, range(5), (0.2, 0.05))
    assert made == [0.05, 0.2]
    assert len(found.seeds) == 3
    for i, limit in enumerate(found.limits):
        assert found.optimum[i] == pytest.approx(world.optimum(limit)[0])
        assert found.unlimited <= found.optimum[i] <= found.learner[i]
        assert found.low[i] <= found.learner[i] <= found.high[i] <= found.constant + 0.01
    assert found.constant == pytest.approx(
        min(world.loss(eh.Mixture((rule,), (1.0,))) for rule in constants())
    )
    assert PromiseCost.from_json(json.loads(json.dumps(found.to_json()))) == found


def constants():
    from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL

    return ACCEPT_ALL, REJECT_ALL
