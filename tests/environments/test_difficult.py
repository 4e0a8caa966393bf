"""The populations made to be difficult are what they say."""

import numpy as np
import pytest

from evenhand.environments import (
    at_the_limit,
    avoided_region,
    rare_labels,
    score_ladder,
    small_group,
)
from evenhand.errors import InvalidInput
from evenhand.hypotheses import ScoreThresholds


def test_the_small_group_is_small():
    world = small_group(0.05)
    assert world.probability[world.group == 1].sum() == pytest.approx(0.05)


@pytest.mark.parametrize("label", [-1, 1])
def test_rare_labels_are_rare_everywhere(label):
    world = rare_labels(label, 0.04)
    rare = world.positive_rate if label == 1 else 1 - world.positive_rate
    assert 0.01 < world.probability @ rare < 0.08
    assert rare.max() < 0.3


@pytest.mark.parametrize("limit", [0.02, 0.05, 0.15])
def test_the_best_fair_rule_is_exactly_at_the_limit_and_a_cheaper_one_beyond(limit):
    world = at_the_limit(limit)
    _, policy = world.optimum(limit)
    assert abs(world.gap(policy)) == pytest.approx(limit, abs=1e-12)
    assert len(policy.hypotheses) == 1
    beyond, tempting = world.optimum(1.0)
    assert abs(world.gap(tempting)) == pytest.approx(limit + 0.03, abs=1e-12)
    assert beyond < world.optimum(limit)[0]


def test_nobody_in_the_region_is_accepted_by_a_rule():
    world = avoided_region(0.2)
    region = ~world.accepts[2:].any(axis=0)
    assert world.probability[region].sum() == pytest.approx(0.2)
    assert world.positive_rate[region].max() < 0.3


def test_thresholds_on_the_ladder_are_scorecards():
    world = score_ladder(10)
    thresholds = ScoreThresholds().bind(world.features, None)
    table = np.array(
        [thresholds.hypothesis(i).accepts(world.features) for i in range(len(world) + 1)]
    )
    assert all((row == table).all(axis=1).any() for row in world.accepts)


@pytest.mark.parametrize(
    "make",
    [
        lambda: small_group(0),
        lambda: rare_labels(0),
        lambda: at_the_limit(0.4),
        lambda: avoided_region(1),
    ],
)
def test_impossible_populations_are_refused(make):
    with pytest.raises(InvalidInput):
        make()
