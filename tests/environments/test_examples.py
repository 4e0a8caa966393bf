"""The populations that ship with the package are what their descriptions say."""

import numpy as np
import pytest

from evenhand import FalsePositiveRate
from evenhand.environments import (
    LowerBound,
    at_the_limit,
    avoided_region,
    hard,
    lending,
    random_population,
    rare_labels,
    score_ladder,
    small_group,
    threshold_population,
)
from evenhand.errors import InvalidInput
from evenhand.hypotheses import ScoreThresholds
from evenhand.hypotheses.constants import ACCEPT_ALL
from evenhand.policies import Mixture


def losses_and_gaps(env: LowerBound) -> tuple[list[float], list[float]]:
    bound = env.hypotheses.bind(env.features, None)
    policies = [Mixture((bound.hypothesis(h),), (1.0,)) for h in range(4)]
    return [env.loss(p) for p in policies], [env.gap(p) for p in policies]


@pytest.mark.parametrize("gap", [1 / 16, 0.05, 0.003])
def test_the_lower_bound_instances_have_the_papers_losses_and_gaps(gap: float) -> None:
    """The two tables of section 4: reject, accept, h1, h2."""
    for which, losses, gaps in (
        (1, [0.5, 0.5, 0.25, 0.25 - 2 * gap], [0, 0, 4 * gap, 0]),
        (2, [0.5, 0.5, 0.25 - 2 * gap, 0.25], [0, 0, 0, 4 * gap]),
    ):
        env = LowerBound(which, gap)
        found = losses_and_gaps(env)
        assert found[0] == pytest.approx(losses, abs=1e-14)
        assert found[1] == pytest.approx(gaps, abs=1e-14)
        assert env.optimum(0.0)[0] == pytest.approx(0.25 - 2 * gap, abs=1e-12)
        assert env.params == {"environment": "lower bound", "which": which, "gap": gap}


def test_what_one_instance_calls_best_is_unfair_on_the_other() -> None:
    first, second = LowerBound(1, 0.05), LowerBound(2, 0.05)
    assert second.gap(first.optimum(0.0)[1]) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("which", "gap", "words"),
    [(3, 0.01, "which is 3"), (1, 0.07, "1/16"), (2, 0.0, "1/16"), (1, np.nan, "1/16")],
)
def test_other_instances_do_not_exist(which: int, gap: float, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        LowerBound(which, gap)


def test_the_hard_instance_shrinks_with_the_fourth_root_of_the_horizon() -> None:
    assert hard(1e4).rate_gap == pytest.approx(0.03)
    assert hard(1e8).rate_gap == pytest.approx(0.003)
    with pytest.raises(InvalidInput, match="1/16"):
        hard(100)
    with pytest.raises(InvalidInput, match="horizon"):
        hard(0)


@pytest.mark.parametrize(
    ("env", "shape", "optima"),
    [
        (
            random_population(0),
            (204, 100),
            [0.229003515001, 0.228685871909, 0.228209407273, 0.226947831071],
        ),
        (
            random_population(3),
            (204, 100),
            [0.267307581349, 0.266221730523, 0.264592954283, 0.263314142622],
        ),
        (
            threshold_population(),
            (441, 100),
            [0.238482206525, 0.235730521192, 0.232683573122, 0.224828044141],
        ),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_measured_populations_never_change(
    env: LowerBound, shape: tuple[int, int], optima: list[float]
) -> None:
    """Optimal losses at allowed gaps 0, .02, .05 and 1, of the definitions with which the
    documents' figures were measured.
    """
    assert env.accepts.shape == shape
    assert [env.optimum(limit)[0] for limit in (0, 0.02, 0.05, 1)] == pytest.approx(
        optima, abs=1e-10
    )


def test_lending_is_as_described() -> None:
    env = lending()
    table = env.population_sample()
    assert env.accepts.shape == (98, 60)
    assert np.array_equal(env.accepts[:, :30], env.accepts[:, 30:]), (
        "scorecards never look at the region"
    )
    repaid = {}
    for region in ("north", "south"):
        members = table.group == region
        repaid[region] = (
            table.weight[members & (table.label == 1)].sum() / table.weight[members].sum()
        )
    assert table.weight[table.group == "north"].sum() == pytest.approx(0.7)
    assert repaid == pytest.approx({"north": 0.668, "south": 0.411}, abs=5e-4)
    assert [env.optimum(limit)[0] for limit in (1, 0.05, 0.02, 0)] == pytest.approx(
        [0.260, 0.284, 0.291, 0.296], abs=5e-4
    )
    assert env.gap(env.optimum(1)[1], FalsePositiveRate()) == pytest.approx(-0.1785, abs=5e-4)
    assert env.loss(Mixture((ACCEPT_ALL,), (1.0,))) == pytest.approx(0.409, abs=5e-4)


# The populations made to be difficult are what they say


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
