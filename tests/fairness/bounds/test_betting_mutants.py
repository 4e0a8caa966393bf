"""Eleven ways to get the bound wrong, each caught by an exact check (no Monte Carlo): the check must fail on the mutant."""

from dataclasses import replace
from unittest.mock import PropertyMock

import numpy as np
import pytest
from tests.fairness.bounds import betting_checks as checks
from tests.fairness.bounds.betting_worlds import (
    FPR,
    covers,
    dropping_unresolved,
    lifetime,
    random_plan,
    random_world,
    single,
    small_bound,
)

from evenhand.errors import InvalidInput
from evenhand.fairness.bounds import _betting_kernel, betting, betting_evidence, exact_wealth
from evenhand.fairness.bounds.betting import BettingBound
from evenhand.fairness.bounds.betting_records import EpochPlan


def covering_holds():
    for seed in range(300):
        checks.check_covering(seed)


def test_mutant_clamp_left_out(monkeypatch):
    world = random_world(0)
    plan = random_plan(small_bound(world), world.truth((FPR,)), np.random.default_rng(0))
    checks.check_stakes_are_bounded(plan, world, 0, 0.01, 0.0)
    monkeypatch.setattr(
        EpochPlan, "reach", property(lambda plan: np.full((*plan.deviation.shape, plan.bets.shape[2]), np.inf))
    )
    with pytest.raises(AssertionError):
        checks.check_stakes_are_bounded(plan, world, 0, 0.01, 0.0)
    with pytest.raises(AssertionError):
        checks.check_quadratic_form(0, (FPR,))


def test_mutant_regression_fitted_on_its_own_epoch():
    with pytest.raises(AssertionError):
        checks.check_mean_wealth(0, (FPR,), 2, regress=lambda m, y, accepted: float(y == -1) if accepted else m)


def test_mutant_box_updated_although_the_sum_is_not_positive(monkeypatch):
    covering_holds()
    monkeypatch.setattr(betting_evidence, "upper_end", lambda a, limit: limit / np.where(a == 0, 1e-300, a))
    with pytest.raises(AssertionError):
        covering_holds()


def test_mutant_low_side_updated_although_the_sum_is_not_positive(monkeypatch):
    covering_holds()
    monkeypatch.setattr(betting_evidence, "lower_end", lambda b, limit: limit / np.where(b == 0, 1e-300, b))
    with pytest.raises(AssertionError):
        covering_holds()


@pytest.mark.parametrize("threshold", ["joint_threshold", "box_threshold"])
def test_mutant_delta_not_split(monkeypatch, threshold):
    bound = BettingBound((0, 1, 2), (FPR,), 4, 0.05)
    monkeypatch.setattr(BettingBound, threshold, PropertyMock(return_value=np.full(4, np.log(1 / 0.05))))
    with pytest.raises(AssertionError):
        checks.check_union(bound, 0.05)


@pytest.mark.parametrize("threshold", ["joint_threshold", "box_threshold"])
def test_mutant_radius_off_by_sqrt_2_in_the_threshold(monkeypatch, threshold):
    """The radius grows with sqrt(L): half of L."""
    bound = BettingBound((0, 1), (FPR,), 4, 0.05)
    monkeypatch.setattr(BettingBound, threshold, PropertyMock(return_value=getattr(bound, threshold) / 2))
    with pytest.raises(AssertionError):
        checks.check_union(bound, 0.05)


def test_mutant_radius_off_by_sqrt_2_in_the_squares(monkeypatch):
    """The radius grows with sqrt(Q): half of the squares."""
    real = _betting_kernel.add_cohort

    def halved(*arguments):
        real(*arguments)
        arguments[-1][...] /= 2

    monkeypatch.setattr(_betting_kernel, "add_cohort", halved)
    with pytest.raises(AssertionError):
        [checks.check_quadratic_form(seed, (FPR,)) for seed in range(5)]


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
            bound, world, lambda epoch: everybody, lambda epoch: everybody / 2, 20000, np.random.default_rng(0)
        )
        return all(covers(intervals, gaps) for intervals in run)

    assert always_right()
    monkeypatch.setattr(
        betting,
        "narrowed_gaps",
        lambda s, L, pairs, n: betting_evidence.narrowed_gaps(s, L, [p[::-1] for p in pairs], n),
    )
    assert not always_right()


def test_mutant_propensity_logged_after_clipping():
    with pytest.raises(AssertionError):
        checks.check_mean_wealth(0, (FPR,), 2, logged=lambda p: max(p, 0.1))


def test_mutant_propensity_floor_dropped():
    """Without a floor somebody is never accepted: refused when logged honestly, caught by the mean wealth when not."""
    world = random_world(0)
    with pytest.raises(InvalidInput, match="acceptance is 0 in row 0"):
        single(world, 0, acceptance=0.0, regression=0.5, rejected=1)
    with pytest.raises(AssertionError):
        [checks.check_mean_wealth(seed, (FPR,), 2, least=0.0, logged=lambda p: max(p, 1e-3)) for seed in range(3)]


def test_mutant_only_arrived_labels_used(monkeypatch):
    real = exact_wealth.counted_rounds
    monkeypatch.setattr(exact_wealth, "counted_rounds", lambda rate, cohort: real(rate, dropping_unresolved(cohort)))
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
