"""Inverse gap weighting inside the fair set, against linear programs over all fair mixtures that
share no code with the oracle, and against its closed form where nothing is constrained.
"""

from itertools import product

import numpy as np
import pytest
from bench.rivals.inverse_gap import inverse_gap_weights
from scipy.optimize import linprog

from bench.rivals import inverse_gap
from evenhand.errors import InvalidInput
from evenhand.estimation import EstimatedLoss
from evenhand.faircsc import bind_fair
from evenhand.fairness import FalsePositiveRate, GapConstraints
from evenhand.hypotheses import FiniteClass
from evenhand.words import LabelledSample

CONTEXTS = 8
GROUP = np.array(["a", "b"] * (CONTEXTS // 2))


class Problem:
    """A random class of 12 rules on 8 contexts of two groups, a sample, shares, costs d_hat in
    [-1/2, 1/2], gamma and mu.
    """

    def __init__(self, seed, limit=0.1):
        draw = np.random.default_rng(seed)
        self.rules = np.vstack(
            [draw.random((12, CONTEXTS)) < 0.5, np.ones((1, CONTEXTS)), np.zeros((1, CONTEXTS))]
        ).astype(bool)
        context = np.repeat(np.arange(CONTEXTS), 2)
        self.sample = LabelledSample(
            context[:, np.newaxis].astype(float),
            GROUP[context],
            np.tile([1, -1], CONTEXTS),
            draw.integers(1, 30, 2 * CONTEXTS),
        )
        self.limit = limit
        self.share = draw.dirichlet(np.ones(CONTEXTS))
        self.cost = draw.uniform(-0.5, 0.5, CONTEXTS)
        self.gamma = float(10 ** draw.uniform(0, 4))
        self.mu = float(10 ** draw.uniform(-5, -1))
        self.gaps = GapConstraints.on(FalsePositiveRate(), self.sample)

    def solve(self, **settings):
        rows = np.arange(CONTEXTS, dtype=float)[:, np.newaxis]
        loss = EstimatedLoss(rows, None, 1000 * self.share, 1000 * self.share * self.cost, 0, 1000)
        hypotheses = FiniteClass.from_table(self.rules)
        oracle = bind_fair(hypotheses, rows, None, FalsePositiveRate(), self.sample, self.limit)
        return inverse_gap_weights(
            loss, oracle, gap_weight=self.gamma, exploration_floor=self.mu, **settings
        )

    def acceptance(self, weights):
        return weights.acceptance(np.arange(CONTEXTS, dtype=float)[:, np.newaxis])

    def gap(self, acceptance):
        return float(self.gaps.gaps(acceptance[self.sample.features[:, 0].astype(int)])[0])

    def largest(self, value):
        """max over fair mixtures pi of sum_x share value pi(+|x), by a linear program."""
        gains = self.rules @ (self.share * value)
        gap = np.array([self.gap(row.astype(float)) for row in self.rules])
        found = linprog(
            -gains,
            np.vstack([gap, -gap]),
            [self.limit, self.limit],
            np.ones((1, len(gap))),
            [1.0],
            bounds=(0, 1),
        )
        return -found.fun

    def left_side(self, Q):
        """The largest left side of (2): gamma E[d_hat (Q - pi)] + (1 - mu) E[pi / Q^mu]."""
        P = self.mu + (1 - self.mu) * Q
        of_q = self.gamma * float(self.share @ (self.cost * Q))
        return of_q + self.largest((1 - self.mu) / P - self.gamma * self.cost)


PROBLEMS = [Problem(seed) for seed in range(40)]


def test_no_fair_policy_exceeds_the_inequality_of_squarecb():
    calls = []
    for problem in PROBLEMS:
        found = problem.solve()
        Q = problem.acceptance(found.weights)
        assert found.halted
        assert problem.left_side(Q) <= 2 + 1e-9
        assert abs(problem.gap(Q)) <= problem.limit + 1e-12
        calls.append(found.fair_calls)
    assert np.mean(calls) < 8


def test_the_best_looking_policy_alone_exceeds_it():
    """The negative control: greedy, without the barrier."""
    exceeded = 0
    for problem in PROBLEMS:
        costs = problem.rules @ (problem.share * problem.cost)
        fair = [abs(problem.gap(row.astype(float))) <= problem.limit for row in problem.rules]
        greedy = problem.rules[np.where(fair, costs, np.inf).argmin()].astype(float)
        exceeded += problem.left_side(greedy) > 2 + 1e-9
    assert exceeded >= 0.7 * len(PROBLEMS)


def test_regret_is_bounded_by_the_squared_error_on_accepted_people():
    """(3), for true costs drawn at random around d_hat."""
    draw = np.random.default_rng(0)
    for problem in PROBLEMS:
        P = problem.mu + (1 - problem.mu) * problem.acceptance(problem.solve().weights)
        for spread in (0.01, 0.1, 0.5):
            d = problem.cost + draw.normal(0, spread, CONTEXTS)
            regret = float(problem.share @ (d * P)) + problem.largest(-d)
            error = float(problem.share @ (P * (d - problem.cost) ** 2))
            bound = 3 / problem.gamma + problem.mu * max(problem.cost.max(), 0)
            bound += problem.gamma / (2 * (1 - problem.mu)) * error
            assert regret <= bound + 1e-9


def test_without_a_constraint_it_is_inverse_gap_weighting():
    """All 2^5 rules on five contexts, a limit of 1: Q^mu = (1 - mu) / (gamma d_hat) in [mu, 1]."""
    cost = np.array([0.4, 0.1, 0.01, -0.2, 0.0])
    rows = np.arange(5.0)[:, np.newaxis]
    share = np.full(5, 0.2)
    rules = FiniteClass.from_table(np.array(list(product([False, True], repeat=5))))
    sample = LabelledSample(np.repeat(rows, 2, axis=0), list("ab") * 5, np.full(10, -1))
    oracle = bind_fair(rules, rows, None, FalsePositiveRate(), sample, 1.0)
    loss = EstimatedLoss(rows, None, 100 * share, 100 * share * cost, 0.0, 100.0)
    gamma, mu = 50.0, 1e-3
    found = inverse_gap_weights(
        loss, oracle, gap_weight=gamma, exploration_floor=mu, tolerance=1e-7
    )
    P = mu + (1 - mu) * found.weights.acceptance(rows)
    with np.errstate(divide="ignore"):
        gaps = np.where(cost > 0, (1 - mu) / (gamma * cost), 1.0)
    np.testing.assert_allclose(P, np.clip(gaps, mu, 1.0), atol=1e-4)


def test_person_by_person_the_rule_of_squarecb_meets_the_inequality_and_is_unfair():
    """Why it is taken inside the set: 1 / (1 + gamma d_hat) is no fair mixture."""
    unfair = 0
    for problem in PROBLEMS:
        P = 1 / (1 + problem.gamma * np.maximum(problem.cost, 0))
        inside = problem.gamma * problem.cost * P + np.maximum(
            1 / P - problem.gamma * problem.cost, 0
        )
        assert float(problem.share @ inside) <= 2 + 1e-9
        unfair += abs(problem.gap(P)) > problem.limit
    assert unfair >= 0.5 * len(PROBLEMS)


def test_a_search_that_is_cut_off_says_so(monkeypatch):
    monkeypatch.setattr(inverse_gap, "MOST_CALLS", 2)
    halted = [problem.solve(tolerance=1e-9).halted for problem in PROBLEMS]
    assert not all(halted)


@pytest.mark.parametrize("setting", ["gap_weight", "tolerance", "exploration_floor"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_settings_out_of_range_are_errors(setting, value):
    problem = PROBLEMS[0]
    given = {"gap_weight": 10.0, "exploration_floor": 0.01, "tolerance": 1.0, setting: value}
    rows = np.arange(CONTEXTS, dtype=float)[:, np.newaxis]
    loss = EstimatedLoss(rows, None, problem.share, problem.cost, 0.0, 1.0)
    with pytest.raises(InvalidInput):
        inverse_gap_weights(loss, None, **given)
