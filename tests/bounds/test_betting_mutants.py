"""Eleven ways to get the bound wrong, each caught by an exact check (no Monte Carlo): the check
must fail on the mutant.
"""

from dataclasses import replace
from unittest.mock import PropertyMock

import numpy as np
import pytest
from tests.bounds import betting_checks as checks
from tests.bounds import exact_wealth
from tests.bounds.betting_worlds import (
    FPR,
    covers,
    dropping_unresolved,
    lifetime,
    random_plan,
    random_world,
    single,
    small_bound,
)

from evenhand.bounds import BettingBound, betting, betting_wealth
from evenhand.bounds.betting_wealth import LEFT_NODE
from evenhand.errors import InvalidInput


def covering_holds():
    for seed in range(300):
        checks.check_covering(seed)


def test_mutant_clamp_left_out(monkeypatch):
    """THETA so large that nothing is clamped and no stake is cut."""
    world = random_world(0)
    plan = random_plan(small_bound(world), world.truth((FPR,)), np.random.default_rng(0))
    checks.check_factors_are_bounded(plan, world, 0, 0.01, 0.0)
    monkeypatch.setattr(betting_wealth, "THETA", 1e9)
    with pytest.raises(AssertionError):
        checks.check_factors_are_bounded(plan, world, 0, 0.01, 0.0)
    with pytest.raises(AssertionError):
        checks.check_wealth_at_the_nodes(0, (FPR,))


def test_mutant_regression_fitted_on_its_own_epoch():
    with pytest.raises(AssertionError):
        checks.check_mean_wealth(
            0, (FPR,), 2, regress=lambda m, y, accepted: float(y == -1) if accepted else m
        )


@pytest.mark.thorough
def test_mutant_a_cell_is_out_as_soon_as_one_of_its_ends_is(monkeypatch):
    covering_holds()

    def hasty(wealth, threshold, lower, upper):
        out = (wealth > threshold[..., np.newaxis, np.newaxis]).any(axis=(1, 2))
        gone = out[:, LEFT_NODE] | out[:, LEFT_NODE + 1]
        lower[gone], upper[gone] = np.inf, -np.inf

    monkeypatch.setattr(betting, "narrow_cells", hasty)
    with pytest.raises(AssertionError):
        covering_holds()


def test_mutant_only_the_nodes_of_a_cell_are_looked_at(monkeypatch):
    """The largest gap over pairs of nodes that are left, as if nothing lay between them."""
    checks.check_the_part_of_a_cell_that_is_left()

    def coarse(wealth_j, wealth_i, cells_j, cells_i, threshold):
        pairs = wealth_j[:, :, 0, :, np.newaxis] + wealth_i[:, :, 1, np.newaxis, :]
        left = (pairs <= threshold[..., np.newaxis, np.newaxis]).all(axis=1)
        gap = betting_wealth.NODES[:, np.newaxis] - betting_wealth.NODES
        return np.where(left, gap, -np.inf).max(axis=(1, 2))

    monkeypatch.setattr(betting, "largest_gaps", coarse)
    with pytest.raises(AssertionError):
        checks.check_the_part_of_a_cell_that_is_left()


def test_mutant_a_pair_mixes_its_bets(monkeypatch):
    """Each group brings the bet that says most: K^2 tests where the union pays for K."""
    checks.check_a_pair_uses_one_bet()

    def mixed(wealth_j, wealth_i, *cells, real=betting.largest_gaps):
        best = [
            np.broadcast_to(w.max(axis=1, keepdims=True), w.shape).copy()
            for w in (wealth_j, wealth_i)
        ]
        return real(*best, *cells)

    monkeypatch.setattr(betting, "largest_gaps", mixed)
    with pytest.raises(AssertionError):
        checks.check_a_pair_uses_one_bet()


@pytest.mark.parametrize("threshold", ["joint_threshold", "box_threshold"])
def test_mutant_delta_not_split(monkeypatch, threshold):
    bound = BettingBound((0, 1, 2), (FPR,), 4, 0.05)
    monkeypatch.setattr(
        BettingBound, threshold, PropertyMock(return_value=np.full(4, np.log(1 / 0.05)))
    )
    with pytest.raises(AssertionError):
        checks.check_union(bound, 0.05)


@pytest.mark.parametrize("threshold", ["joint_threshold", "box_threshold"])
def test_mutant_radius_off_by_sqrt_2_in_the_threshold(monkeypatch, threshold):
    """The radius grows with sqrt(L): half of L."""
    bound = BettingBound((0, 1), (FPR,), 4, 0.05)
    monkeypatch.setattr(
        BettingBound, threshold, PropertyMock(return_value=getattr(bound, threshold) / 2)
    )
    with pytest.raises(AssertionError):
        checks.check_union(bound, 0.05)


def test_mutant_logarithm_replaced_by_its_first_term(monkeypatch):
    """ln(1 + z) <= z: the squares, and with them the radius, are forgotten."""
    real = betting_wealth.Entries.log_factors
    monkeypatch.setattr(betting_wealth.Entries, "log_factors", lambda *told: np.expm1(real(*told)))
    with pytest.raises(AssertionError):
        checks.check_wealth_at_the_nodes(0, (FPR,))


def test_mutant_groups_swapped_in_the_log():
    with pytest.raises(AssertionError):
        checks.check_mean_wealth(0, (FPR,), 2, coded=lambda group: 1 - group)


def test_mutant_groups_swapped_in_the_pairs(monkeypatch):
    world = random_world(5, hypotheses=3)
    bound = small_bound(world, horizons=(20000.0,))
    gaps, everybody = world.gaps(bound), np.ones(len(world.share))
    assert np.abs(gaps).max() > 0.2

    def always_right():
        run = lifetime(
            bound,
            world,
            lambda epoch: everybody,
            lambda epoch: everybody / 2,
            20000,
            np.random.default_rng(0),
        )
        return all(covers(intervals, gaps) for intervals in run)

    assert always_right()
    real = betting.largest_gaps
    monkeypatch.setattr(
        betting, "largest_gaps", lambda w_j, w_i, c_j, c_i, L: real(w_i, w_j, c_i, c_j, L)
    )
    assert not always_right()


def test_mutant_propensity_logged_after_clipping():
    with pytest.raises(AssertionError):
        [
            checks.check_mean_wealth(seed, (FPR,), 2, logged=lambda p: max(p, 0.1))
            for seed in range(3)
        ]


def test_mutant_propensity_floor_dropped():
    """Without a floor somebody is never accepted: refused when logged honestly, caught by the mean
    wealth when not.
    """
    world = random_world(0)
    with pytest.raises(InvalidInput, match="acceptance is 0"):
        single(world, 0, acceptance=0.0, regression=0.5, rejected=1)
    with pytest.raises(AssertionError):
        [
            checks.check_mean_wealth(seed, (FPR,), 2, least=0.0, logged=lambda p: max(p, 1e-3))
            for seed in range(3)
        ]


def test_mutant_only_arrived_labels_used(monkeypatch):
    real = exact_wealth.counted_rounds
    monkeypatch.setattr(
        exact_wealth, "counted_rounds", lambda rate, cohort: real(rate, dropping_unresolved(cohort))
    )
    with pytest.raises(AssertionError):
        [checks.check_late_labels(seed, (FPR,)) for seed in range(6)]


def test_mutant_missing_labels_taken_for_one_side(monkeypatch):
    """ "Never arrived" read as a positive label, whatever the side."""
    real = exact_wealth.counted_rounds

    def optimistic(rate, cohort):
        view = real(rate, cohort)
        return replace(view, miss=view.miss + view.unresolved, unresolved=np.zeros(len(cohort)))

    monkeypatch.setattr(exact_wealth, "counted_rounds", optimistic)
    with pytest.raises(AssertionError):
        [checks.check_late_labels(seed, (FPR,)) for seed in range(6)]
