"""The trade-off: longer exploration, smaller gap, higher cost."""

import json

import numpy as np
import pytest

import evenhand as eh
from evenhand.environments import Scores, lending
from evenhand.simulate import Tradeoff, tradeoff

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
