"""The trade-off (longer exploration, smaller gap, higher cost), and what a promise costs."""

import json

import numpy as np
import pytest

import evenhand as eh
from evenhand.environments import Scores, lending
from evenhand.simulate import PromiseCost, Tradeoff, promise_cost, tradeoff

RATE = eh.FalsePositiveRate()


def test_longer_exploration_buys_a_smaller_gap():
    world = lending()
    found = tradeoff(
        world,
        world.hypotheses,
        RATE,
        10_000,
        [0, 1],
        comparator_gap=0.02,
        failure_probability=0.05,
        exponents=(1 / 3, 1 / 2),
    )
    assert (
        found.excess_gap[1, 1:] < found.excess_gap[0, 1:]
    ).all()  # at T = 1000 both sets hold the class's worst rule
    assert (found.cost[1] > found.cost[0]).all()
    assert found.horizons[0] == 1000
    assert found.horizons[-1] == 100_000
    assert found.explored[1].tolist() == pytest.approx([h / 2 for h in found.horizons], abs=1)
    json.dumps(found.to_json(), allow_nan=False)


def test_slopes_of_exact_powers():
    horizons = (100, 1000, 10_000)
    values = np.array([[t**-0.25 for t in horizons]])
    found = Tradeoff((0.25,), horizons, (0,), 0.02, values, 1 / values**2, values)
    assert found.slope(0, "excess_gap") == pytest.approx(-0.25)
    assert found.slope(0, "cost") == pytest.approx(0.5)


def test_no_slope_without_positive_values():
    found = Tradeoff(
        (0.25,), (100, 1000), (0,), 0.02, np.zeros((1, 2)), np.ones((1, 2)), np.ones((1, 2))
    )
    assert found.to_json()["slopes"] == {"excess_gap": [None], "cost": [pytest.approx(0.0)]}


def test_refusals():
    settings = {"comparator_gap": 0.02, "failure_probability": 0.05}
    world = lending()
    with pytest.raises(eh.InvalidInput, match="at least 1000"):
        tradeoff(world, world.hypotheses, RATE, 999, [0], **settings)
    scores = Scores()
    with pytest.raises(eh.InvalidInput, match="lending, random, thresholds"):
        tradeoff(scores, scores.hypotheses, RATE, 1000, [0], **settings, exponents=(1 / 2,))


def test_the_cost_of_the_promise_splits_into_two_prices():
    world = lending()
    made = []

    def make(limit: float) -> eh.CertifiedLearner:
        made.append(limit)
        return eh.CertifiedLearner(world.hypotheses, RATE, limit, 0.05, horizon=2_000)

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
