"""The program in the plane against scipy's solver."""

import numpy as np
from scipy.optimize import linprog

from evenhand.fairness.bounds.half_plane import largest_difference


def solved(lx, ux, ly, uy, a, b, limit):
    answer = linprog([-1, 1], A_ub=[[a, -b]], b_ub=[limit], bounds=[(lx, ux), (ly, uy)], method="highs")
    return -answer.fun if answer.status == 0 else -np.inf


def test_agrees_with_linprog_for_any_signs():
    r = np.random.default_rng(0)
    n = 400
    box = np.sort(r.random((n, 2, 2)), axis=2)
    a, b = (np.where(r.random(n) < 0.1, 0.0, r.normal(0, 3, n)) for _ in range(2))
    limit = r.normal(0, 2, n)
    found = largest_difference(box[:, 0, 0], box[:, 0, 1], box[:, 1, 0], box[:, 1, 1], a, b, limit)
    wanted = np.array([solved(*box[i].ravel(), a[i], b[i], limit[i]) for i in range(n)])
    assert np.isneginf(wanted).sum() > 30
    assert np.isfinite(wanted).sum() > 200
    np.testing.assert_allclose(found, wanted, atol=1e-9)


def one(*values):
    return float(largest_difference(*(np.array([float(v)]) for v in values))[0])


def test_a_half_plane_without_effect_leaves_the_box():
    assert one(0.1, 0.6, 0.2, 0.5, 1, 1, 10) == 0.6 - 0.2


def test_a_half_plane_along_the_diagonal_is_the_answer_itself():
    assert abs(one(0, 1, 0, 1, 5, 5, 0.5) - 0.1) < 1e-11


def test_a_box_of_one_point():
    assert one(0.3, 0.3, 0.3, 0.3, 1, 1, 0) == 0.0
    assert one(0.3, 0.3, 0.2, 0.2, 1, 1, 0.05) == -np.inf


def test_an_empty_box_and_a_half_plane_that_misses_leave_nothing():
    assert one(0.6, 0.1, 0.2, 0.5, 1, 1, 10) == -np.inf
    assert one(0, 1, 0, 1, 1, 1, -1.5) == -np.inf
    assert one(0, 1, 0, 1, 0, 0, -0.1) == -np.inf


def test_a_point_that_touches_the_line_is_not_lost_to_rounding():
    r = np.random.default_rng(1)
    x, y, a, b = r.random(1000), r.random(1000), r.normal(0, 100, 1000), r.normal(0, 100, 1000)
    assert np.isfinite(largest_difference(x, x, y, y, a, b, a * x - b * y)).all()
