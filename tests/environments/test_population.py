"""Every environment keeps the contract; the best fair mixture is that of all pairs of hypotheses,
and that of the fair oracle.
"""

import json
import pickle
from itertools import combinations

import numpy as np
import pytest

from evenhand import (
    CostSensitiveProblem,
    FalseNegativeRate,
    FalsePositiveRate,
    Prices,
    SelectionRate,
    solve_fair,
)
from evenhand.contracts import Environment
from evenhand.environments import (
    Discrete,
    LowerBound,
    Replay,
    Scores,
    hard,
    lending,
    random_population,
    threshold_population,
)
from evenhand.environments.population import cheapest_mixture
from evenhand.errors import InvalidInput
from evenhand.hypotheses import ScoreThresholds
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand.words import LabelledSample


def environments() -> list[Environment]:
    table = Scores().draw(300, np.random.default_rng(0))
    return [
        LowerBound(1, 0.05),
        LowerBound(2, 0.01),
        hard(1e5),
        lending(),
        random_population(0),
        threshold_population(),
        Scores(),
        Replay(table, hypotheses=ScoreThresholds()),
        Replay(table, hypotheses=ScoreThresholds(), streamed=True, seed=1),
    ]


@pytest.mark.parametrize("env", environments(), ids=repr)
def test_contract(env: Environment) -> None:
    fresh = env.fresh()
    sample = fresh.draw(50, np.random.default_rng(1))
    assert isinstance(sample, LabelledSample)
    assert len(sample) == 50
    assert np.array_equal(env.fresh().draw(50, np.random.default_rng(1)).features, sample.features)
    assert env.hypotheses is not None
    env.hypotheses.bind(sample.features, None)
    loss, policy = env.optimum(0.03)
    assert np.abs(env.gaps(policy, FalsePositiveRate())).max() <= 0.03 + 1e-9
    assert env.loss(policy) == pytest.approx(loss, abs=1e-9)
    assert loss <= env.optimum(0.0)[0] + 1e-12
    json.dumps(dict(env.params))
    assert pickle.loads(pickle.dumps(env)).loss(policy) == env.loss(policy)


# The best fair mixture against the enumeration of all pairs of hypotheses, and against the fair
# oracle


def population(seed: int, contexts: int = 14, members: int = 12, groups: int = 2) -> Discrete:
    r = np.random.default_rng(seed)
    return Discrete(
        r.dirichlet(np.ones(contexts)),
        r.random(contexts),
        np.arange(contexts) % groups,
        r.random((members, contexts)) < 0.5,
    )


def best_pair(costs: np.ndarray, gaps: np.ndarray, limit: float) -> float:
    """With one constraint some optimum has two hypotheses: look at every pair, at the ends of its
    feasible interval.
    """
    best = min(cost for cost, gap in zip(costs, gaps, strict=True) if abs(gap) <= limit)
    for i, j in combinations(range(len(costs)), 2):
        if gaps[i] == gaps[j]:
            continue
        for bound in (-limit, limit):
            weight = (bound - gaps[j]) / (gaps[i] - gaps[j])
            if 0 <= weight <= 1:
                best = min(best, weight * costs[i] + (1 - weight) * costs[j])
    return float(best)


def points(
    env: Discrete, kind: type[FalsePositiveRate] | type[FalseNegativeRate] = FalsePositiveRate
) -> tuple[np.ndarray, np.ndarray]:
    bound = env.hypotheses.bind(env.features, None)
    members = [bound.hypothesis(h) for h in range(len(env.hypotheses))] + [ACCEPT_ALL, REJECT_ALL]
    policies = [Mixture((member,), (1.0,)) for member in members]
    return np.array([env.loss(p) for p in policies]), np.array(
        [env.gap(p, kind()) for p in policies]
    )


@pytest.mark.parametrize("limit", [0.0, 0.01, 0.05, 0.2, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_the_optimum_is_the_best_pair(seed: int, limit: float) -> None:
    env = population(seed)
    costs, gaps = points(env)
    loss, policy = env.optimum(limit)
    gaps[-2:] = 0.0
    assert loss == pytest.approx(best_pair(costs, gaps, limit), abs=1e-10)
    assert env.loss(policy) == pytest.approx(loss, abs=1e-12)
    assert abs(env.gap(policy)) <= limit + 1e-12
    assert len(policy.weights) <= 2


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_on_the_random_population_keeps_the_limit_to_rounding(seed: int) -> None:
    env = random_population(seed)
    for limit in (0.0, 0.001, 0.02, 0.1):
        assert abs(env.gap(env.optimum(limit)[1])) <= limit + 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_several_rates_and_groups_agree_with_the_fair_oracle(seed: int) -> None:
    env = population(seed, groups=3)
    rates = (FalsePositiveRate(), SelectionRate())
    loss, policy = env.optimum(0.03, rates)
    table = env.population_sample()
    problem = CostSensitiveProblem(
        table.features,
        table.group,
        table.weight * (table.label == 1),
        table.weight * (table.label == -1),
    )
    assert loss == pytest.approx(
        solve_fair(problem, env.hypotheses, rates, table, 0.03).cost, abs=1e-9
    )
    assert np.abs(env.gaps(policy, rates)).max() <= 0.03 + 1e-12


def test_a_larger_limit_never_costs_more_and_one_switches_the_constraint_off() -> None:
    env = population(9)
    losses = [env.optimum(limit)[0] for limit in np.linspace(0, 1, 21)]
    assert (np.diff(losses) <= 1e-12).all()
    assert losses[-1] == pytest.approx(points(env)[0].min())


def test_prices_move_the_optimum() -> None:
    env = population(2)
    loss, policy = env.optimum(0.05, prices=Prices(false_accept=100.0, false_reject=0.01))
    assert loss == pytest.approx(env.loss(policy, Prices(100.0, 0.01)), abs=1e-12)
    assert env.loss(Mixture((REJECT_ALL,), (1.0,)), Prices(100.0, 0.01)) == pytest.approx(loss)


def test_the_same_question_is_answered_once() -> None:
    env = population(1)
    assert env.optimum(0.05) is env.optimum(0.05, FalsePositiveRate())
    assert env.optimum(0.05) is not env.optimum(0.05, FalseNegativeRate())
    assert env.optimum(0.05) is not env.optimum(0.05, prices=Prices(2.0, 1.0))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_the_scale_of_costs_does_not_matter(scale: float) -> None:
    r = np.random.default_rng(3)
    costs, gaps = np.append(r.random(30), 1.0), np.append(r.uniform(-1, 1, 30), 0.0)
    weights = cheapest_mixture(costs * scale, gaps[np.newaxis], 0.02)
    assert costs @ weights == pytest.approx(best_pair(costs, gaps, 0.02), abs=1e-10)


def test_one_hypothesis_is_preferred_to_a_mixture_of_the_same_cost() -> None:
    costs, gaps = np.array([0.2, 0.2, 0.2, 1.0]), np.array([[0.3, -0.3, 0.01, 0.0]])
    assert cheapest_mixture(costs, gaps, 0.02).tolist() == [0.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize("limit", [-0.1, np.nan, np.inf])
def test_a_limit_is_a_finite_number_of_at_least_zero(limit: float) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        population(0).optimum(limit)
