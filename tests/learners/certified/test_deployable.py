"""The cheapest deployable mixture equals HiGHS on the same program, stays inside the limit, and
mixes few hypotheses.
"""

import numpy as np
import pytest
from scipy.optimize import linprog

from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL, GroupClassifier
from evenhand.learners.certified.deployable import CertifiedSet, MixtureProgram, cheapest_mixtures


def random_program(seed: int, members: int, gaps: int) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    middle, width = r.normal(0, 0.2, (gaps, members)), r.uniform(0.0, 0.2, (gaps, members))
    lo, hi = middle - width, middle + width
    lo[:, :2], hi[:, :2] = 0.0, 0.0
    return r.normal(size=members) * 10.0 ** r.integers(-9, 6), np.concatenate([hi, -lo])


@pytest.mark.parametrize("gaps", [1, 2, 10])
def test_equals_the_linear_program(gaps):
    for seed in range(60):
        costs, constraints = random_program(seed, 40, gaps)
        weights = MixtureProgram(constraints, 0.05).cheapest(costs)
        scale = np.abs(costs).max()
        truth = linprog(
            costs / scale,
            A_ub=constraints,
            b_ub=np.full(len(constraints), 0.05),
            A_eq=np.ones((1, 40)),
            b_eq=[1.0],
        )
        assert abs(costs @ weights / scale - truth.fun) <= 1e-9
        assert (constraints @ weights).max() <= 0.05 + 1e-12
        assert abs(weights.sum() - 1) <= 1e-12
        assert weights.min() >= 0
        assert (weights > 0).sum() <= 1 + len(constraints)


def test_ties_and_degenerate_programs_end():
    costs = np.zeros(6)
    constraints = np.tile([0.0, 0.0, 0.3, 0.3, -0.3, 0.0], (4, 1))
    assert MixtureProgram(constraints, 0.05).cheapest(costs).sum() == pytest.approx(1)
    costs = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.5])
    assert costs @ MixtureProgram(constraints, 0.05).cheapest(costs) == pytest.approx(0.0)


@pytest.mark.parametrize("gaps", [1, 2, 10])
def test_many_programs_at_once_are_solved_as_one_by_one(gaps):
    costs, _ = random_program(0, 40, gaps)
    many = np.array([random_program(seed, 40, gaps)[1] for seed in range(24)])
    found = cheapest_mixtures(costs, many.reshape(4, 6, *many.shape[1:]), 0.05)
    assert found.shape == (4, 6, 40)
    for weights, constraints in zip(found.reshape(24, 40), many, strict=True):
        assert weights == pytest.approx(MixtureProgram(constraints, 0.05).cheapest(costs), abs=1e-9)
    tied = np.tile([0.0, 0.0, 0.3, 0.3, -0.3, 0.0], (3, 4, 1))
    assert cheapest_mixtures(np.zeros(6), tied, 0.05).sum(axis=1) == pytest.approx(np.ones(3))


def test_the_answer_is_a_mixture_of_members_with_its_acceptance():
    members = (ACCEPT_ALL, REJECT_ALL, GroupClassifier(1), GroupClassifier(2))
    accepts = np.array([[1.0] * 3, [0.0] * 3, [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    ends = np.array([[0.0, 0.0, 0.4, -0.4]])
    found = CertifiedSet(members, accepts, ends, ends, 0.1, "decide").cheapest(
        np.array([-1.0, 0.5, -1.0])
    )
    assert found.policy.hypotheses == (ACCEPT_ALL, GroupClassifier(1))
    np.testing.assert_allclose(found.policy.weights, (0.75, 0.25))
    np.testing.assert_allclose(found.acceptance, [1.0, 0.75, 1.0])
    assert REJECT_ALL not in found.policy.hypotheses
