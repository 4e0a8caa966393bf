"""The proof for a whole class, beside an enumeration of all mixtures of two rules."""

import numpy as np
from tests.test_table_alternatives import Population, brute_least_gap, loans

import evenhand as eh
from evenhand.table_alternatives import alternatives
from evenhand.table_exclusion import least_gap


def exact_problem(seed):
    """A population as its own table: nothing is estimated, each interval is its truth."""
    world = Population(seed)
    costs, gaps = world.figures()
    cost = world.cost(world.incumbent())
    extra = float(world.rng.choice([0.0, 0.0, 0.02, -0.02, 0.1]))
    return costs - cost, gaps, extra


def test_the_proof_is_the_enumerated_minimum():
    """40 of the 200 problems of the full tier."""
    for seed in range(40):
        costs, gaps, extra = exact_problem(seed)
        bound, _ = least_gap(costs, gaps[:, None], gaps[:, None], extra)
        truth = brute_least_gap(costs, gaps, extra)
        assert bound <= truth + 1e-9
        assert bound >= truth - 1e-7


def test_a_proof_with_wrong_multipliers_is_refuted_by_the_enumeration(monkeypatch):
    """The negative control: multipliers whose gap weights sum to more than 1 prove too much."""
    wrong = 0
    for seed in range(40):
        costs, gaps, extra = exact_problem(seed)
        proof = least_gap(costs, gaps[:, None], gaps[:, None], extra)[1]
        p, q, r = 1.5 * proof
        value = gaps * p - gaps * q + r * (costs - extra)
        wrong += value.min() > brute_least_gap(costs, gaps, extra) + 1e-9
    assert wrong > 5


def test_several_gaps_are_bounded_at_once():
    """Random mixtures of random rules with two gaps never lie in the excluded region."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        costs = rng.normal(size=8)
        gaps = rng.normal(0.3, 0.5, size=(8, 2))
        width = rng.random((8, 2)) * 0.1
        bound, proof = least_gap(costs, gaps - width, gaps + width, 0.2)
        assert proof.min() >= 0
        weights = rng.dirichlet(np.full(8, 0.3), 4000)
        inside = weights @ costs <= 0.2
        largest = np.abs(weights @ gaps).max(axis=1)[inside]
        assert largest.min(initial=1.0) >= bound - 1e-9


def test_nobody_is_so_cheap():
    assert least_gap(np.array([0.1, 0.2]), np.zeros((2, 1)), np.zeros((2, 1)), 0.0)[0] == 1.0


def test_the_curve_falls_and_its_multipliers_are_no_less_than_nothing():
    people, decided = loans(8000)
    found = alternatives(eh.Stumps(), people, ~decided, extra_cost=0.0)
    proof = found.exclusion.multipliers
    assert set(proof) == {"FPR m minus f >=", "FPR m minus f <=", "cost"}
    assert min(proof.values()) >= 0
    assert np.all(np.diff(found.exclusion.least_gap) <= 1e-12)
