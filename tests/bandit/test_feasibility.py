from math import inf, log

import numpy as np
import pytest

from evenhand.bandit import feasibility as program
from evenhand.errors import InvalidInput

SIDES = [1, 2]


def random_state(seed, sides, policies=6, rows=9):
    """(acceptance of each policy, share, weights with sum below one, b, mu)."""
    random = np.random.default_rng(seed)
    acceptance = np.where(
        random.random((policies, rows)) < 0.5, random.random((policies, rows)), 1.0
    )
    weights = random.dirichlet(np.ones(policies)) * random.random()
    return (
        acceptance,
        random.dirichlet(np.ones(rows)),
        weights,
        random.exponential(3, policies),
        random.uniform(0, 0.3),
    )


def propensities(acceptance, weights, mu, sides):
    return program.smoothed(weights @ acceptance, weights.sum(), mu, sides)


@pytest.mark.parametrize("sides", SIDES)
def test_v_and_s_are_the_sums_over_rows_and_decisions(sides):
    acceptance, share, weights, _, mu = random_state(0, sides)
    q = propensities(acceptance, weights, mu, sides)
    for k, pi in enumerate(acceptance):
        V = S = 0.0
        for i, chance in enumerate(pi):
            decisions = [
                (chance, weights @ acceptance[:, i]),
                (1 - chance, weights @ (1 - acceptance[:, i])),
            ]
            for drawn, mass in decisions[:sides]:
                V += share[i] * drawn / (mu + (1 - sides * mu) * mass)
                S += share[i] * (drawn / (mu + (1 - sides * mu) * mass)) ** 2
        assert program.mean_inverse_propensity(pi, q, share) == pytest.approx(V)
        assert program.mean_squared_inverse_propensity(pi, q, share) == pytest.approx(S)
        assert program.mean_inverse_propensity(acceptance, q, share)[k] == pytest.approx(V)
        assert V / mu >= S


@pytest.mark.parametrize("sides", SIDES)
def test_v_is_linear_in_the_policy_and_bounds_the_second_moment_of_its_importance_weight(sides):
    """Negative control: 1 / Q^mu(pi(x)), one over the average, does not bound it."""
    q, share, coin = (
        program.smoothed(np.array([0.0]), 1.0, 0.01, sides),
        np.ones(1),
        np.array([0.5]),
    )
    ends = program.mean_inverse_propensity(np.array([[0.0], [1.0]]), q, share)
    right = float(program.mean_inverse_propensity(coin, q, share))
    assert right == pytest.approx(ends.mean())
    second_moment = sum(0.5**2 / chance for chance in q[:, 0])
    wrong = 1 / sum(0.5 * chance for chance in q[:, 0]) if sides == 2 else 1 / (0.5 * q[0, 0] + 0.5)
    assert wrong < 2.001 < 4 < second_moment <= right


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("seed", range(5))
def test_the_potential_has_the_stated_gradient_and_curvature(seed, sides):
    acceptance, share, weights, b, mu = random_state(seed, sides)

    def phi(w):
        return program.potential(propensities(acceptance, w, mu, sides), share, w, b, mu)

    q = propensities(acceptance, weights, mu, sides)
    V = program.mean_inverse_propensity(acceptance, q, share)
    D = program.variance_excess(V, b, sides)
    S = program.mean_squared_inverse_propensity(acceptance, q, share)
    for k, direction in enumerate(np.eye(len(weights))):
        slope = (phi(weights + 1e-6 * direction) - phi(weights - 1e-6 * direction)) / 2e-6
        assert slope == pytest.approx(-(V[k] + D[k]) / (2 * sides), rel=1e-5, abs=1e-6)
        bend = (
            phi(weights + 1e-4 * direction) - 2 * phi(weights) + phi(weights - 1e-4 * direction)
        ) / 1e-8
        assert bend == pytest.approx((1 - sides * mu) * S[k] / sides, rel=1e-3, abs=1e-5)
        alpha = program.weight_step(V[k], D[k], S[k], mu, sides)
        assert alpha == pytest.approx(
            (V[k] + D[k]) / (2 * sides) / ((1 - sides * mu) * S[k] / sides)
        )


def test_two_sided_the_potential_is_the_papers_relative_entropy():
    acceptance, share, weights, b, mu = random_state(1, 2)
    q = propensities(acceptance, weights, mu, 2)
    entropy = (0.5 * np.log(0.5 / q) + q - 0.5).sum(axis=0)
    paper = share @ entropy / (1 - 2 * mu) + weights @ b / 4
    assert program.potential(q, share, weights, b, mu) == pytest.approx(paper)


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("seed", range(30))
def test_steps_lower_the_potential_enough_and_shrinking_never_raises_it(seed, sides):
    acceptance, share, weights, b, mu = random_state(seed, sides)
    b, mu = 0.3 * b, 0.1 * mu
    weights = weights * np.random.default_rng(seed).choice([0.01, 0.1, 1, 10])

    def phi(w):
        return program.potential(propensities(acceptance, w, mu, sides), share, w, b, mu)

    factor = program.shrinking(weights, b, sides)
    assert phi(factor * weights) <= phi(weights) + 1e-12
    weights = factor * weights
    assert weights @ (2 * sides + b) <= 2 * sides * (1 + 1e-12)
    q = propensities(acceptance, weights, mu, sides)
    V = program.mean_inverse_propensity(acceptance, q, share)
    D = program.variance_excess(V, b, sides)
    S = program.mean_squared_inverse_propensity(acceptance, q, share)
    for k in np.flatnonzero(D > 0):
        after = weights + program.weight_step(V[k], D[k], S[k], mu, sides) * np.eye(len(b))[k]
        drop = phi(weights) - phi(after)
        assert (
            drop
            >= (V[k] + D[k]) ** 2 / (8 * sides * (1 - sides * mu) * S[k])
            > program.least_drop(mu, sides)
        )
    assert phi(weights) >= 0


def test_the_shrinking_test_sees_real_shrinking_and_real_steps():
    seen = {"shrunk": 0, "violated": 0}
    for seed in range(30):
        acceptance, share, weights, b, mu = random_state(seed, 2)
        weights = weights * np.random.default_rng(seed).choice([0.01, 0.1, 1, 10])
        factor = program.shrinking(weights, 0.3 * b, 2)
        q = propensities(acceptance, factor * weights, 0.1 * mu, 2)
        excess = program.variance_excess(
            program.mean_inverse_propensity(acceptance, q, share), 0.3 * b, 2
        )
        seen["shrunk"] += factor < 1
        seen["violated"] += bool((excess > 0).any())
    assert min(seen.values()) >= 5


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("mu", [1e-4, 0.01, 0.3, 0.4999999, 0.5])
def test_the_cap_is_the_first_potential_over_the_least_drop(mu, sides):
    start = program.potential(np.full((sides, 1), mu), np.ones(1), np.zeros(0), np.zeros(0), mu)
    cap = program.iteration_cap(mu, sides)
    assert start == pytest.approx(
        log(1 / (sides * mu)) / (1 - sides * mu) - 1 if sides * mu < 1 else 0, abs=1e-8
    )
    assert cap == pytest.approx(start / program.least_drop(mu, sides), abs=1e-6)
    assert 0 <= cap <= 4 * log(1 / (sides * mu)) / mu


def test_at_k_mu_of_one_nothing_is_left_to_descend():
    assert program.least_drop(0.5, 2) == inf
    assert program.iteration_cap(0.5, 2) == 0
    weights, b = np.array([0.4]), np.array([3.0])
    nearly = program.smoothed(np.array([0.3]), 0.4, 0.5 - 1e-9, 2)
    exactly = program.smoothed(np.array([0.3]), 0.4, 0.5, 2)
    close = program.potential(nearly, np.ones(1), weights, b, 0.5 - 1e-9)
    assert program.potential(exactly, np.ones(1), weights, b, 0.5) == pytest.approx(0.4 * 3 / 4)
    assert close == pytest.approx(0.4 * 3 / 4, abs=1e-6)


@pytest.mark.parametrize("sides", SIDES)
def test_pricing_costs_rank_policies_as_the_excess_does(sides):
    acceptance, share, weights, _, mu = random_state(2, sides)
    cost, rounds, psi = np.random.default_rng(3).normal(size=len(share)), 50.0, 0.7
    q = propensities(acceptance, weights, mu, sides)
    losses = acceptance @ cost / rounds
    b = program.regret_budget_use(losses, losses.min(), mu, psi)
    excess = program.variance_excess(
        program.mean_inverse_propensity(acceptance, q, share), b, sides
    )
    priced = acceptance @ program.pricing_costs(q, share, cost, rounds, mu, psi)
    np.testing.assert_allclose(excess - excess[0], priced[0] - priced, atol=1e-10)


def test_regret_budget_use_is_clipped_at_zero():
    assert program.regret_budget_use(np.array([0.2, 0.5]), 0.3, 0.1, 2.0) == pytest.approx([0, 1])


@pytest.mark.parametrize(
    ("mu", "sides"), [(0.51, 2), (0.0, 1), (-0.1, 2), (1.0, 1), (float("nan"), 1), (0.1, 3)]
)
def test_a_floor_that_leaves_no_room_is_refused(mu, sides):
    with pytest.raises(InvalidInput, match=r"mu is|sides is"):
        program.require_floor(mu, sides)
