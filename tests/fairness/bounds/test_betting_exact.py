"""The proof, step by step and without chance: mean wealth one, stakes at most a half, quadratic form below ln W, covering, union.

Nothing here is a Monte Carlo test: expectations are complete enumerations of one or two rounds on populations of four to six contexts.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fairness.bounds import betting_checks as checks
from tests.fairness.bounds.betting_worlds import (
    FNR,
    FPR,
    SR,
    form,
    random_cohort,
    random_plan,
    random_world,
    single,
    small_bound,
)

from evenhand.fairness.bounds import _betting_kernel, betting_evidence, exact_wealth
from evenhand.fairness.bounds.betting import BettingBound
from evenhand.fairness.bounds.betting_records import LOW, UP, EpochPlan, Forecast

RATES = [(FPR,), (FNR,), (SR,), (FPR, FNR)]


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("rates", RATES, ids=lambda rates: "+".join(rate.symbol for rate in rates))
@pytest.mark.parametrize("seed", range(4))
def test_the_mean_wealth_is_one(seed, rates, groups):
    checks.check_mean_wealth(seed, rates, groups)


def test_the_mean_wealth_is_one_after_two_rounds_that_depend_on_each_other():
    """The second round's plan, acceptance and regression are functions of the first round's outcome."""
    world = random_world(3)
    bound = small_bound(world, (FPR, FNR))
    truth = world.truth(bound.rates)
    first_plan = bound.plan(bound.start())
    acceptance, m = np.array([0.05, 0.4, 1.0, 0.2]), np.array([0.9, 0.1, 0.5, 0.3])
    singles, pairs = 0.0, 0.0
    for chance, row, y, accepted in checks.outcomes(world, acceptance):
        seen = checks.what_is_seen(y, accepted)
        cohort = single(world, row, acceptance=acceptance[row], regression=m[row], **seen)
        state, _ = bound.update(bound.start(), cohort, first_plan)
        before = exact_wealth.exact_log_wealth(bound, cohort, first_plan, truth)
        p = np.full(4, 0.02) if accepted and y == -1 else np.roll(acceptance, row)
        second_m = np.full(4, float(y == -1)) if accepted else m
        plan = bound.plan(state, Forecast.of(world.accepts, world.group, weight=1.0, acceptance=p, regression=second_m))
        for chance2, row2, y2, accepted2 in checks.outcomes(world, p):
            seen2 = checks.what_is_seen(y2, accepted2)
            cohort2 = single(world, row2, acceptance=p[row2], regression=second_m[row2], **seen2)
            after = before + exact_wealth.exact_log_wealth(bound, cohort2, plan, truth)
            singles = singles + chance * chance2 * np.exp(after)
            pairs = pairs + chance * chance2 * np.exp(checks.pair_log_wealth(bound, after))
    np.testing.assert_allclose(singles, 1.0, atol=1e-10)
    np.testing.assert_allclose(pairs, 1.0, atol=1e-10)


@pytest.mark.parametrize("rates", RATES, ids=lambda rates: "+".join(rate.symbol for rate in rates))
@pytest.mark.parametrize("seed", range(6))
def test_a_label_that_never_arrives_cannot_raise_the_mean_wealth(seed, rates):
    checks.check_late_labels(seed, rates)


@pytest.mark.parametrize("seed", range(6))
def test_a_missing_label_is_no_better_than_either_label(seed):
    r = np.random.default_rng(seed)
    world = random_world(seed)
    bound = small_bound(world, (FPR, FNR))
    truth = world.truth(bound.rates)
    plan = random_plan(bound, truth, r)
    for row, p in np.ndindex(len(world.share), 3):
        known = {"acceptance": (0.01, 0.3, 1.0)[p], "regression": r.random()}
        missing, negative, positive = (
            exact_wealth.exact_log_wealth(bound, single(world, row, **known, **{seen: 1}), plan, truth)
            for seen in ("unresolved", "negative", "positive")
        )
        np.testing.assert_allclose(missing, np.minimum(negative, positive), atol=1e-12)


@given(
    seed=st.integers(0, 10**6),
    acceptance=st.one_of(st.floats(1e-6, 1.0), st.sampled_from([1e-12, 0.01, 0.5, 1 - 1e-12, 1 - 2e-16, 1.0])),
    regression=st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0])),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_the_clamp_keeps_every_dangerous_stake_at_a_half(seed, acceptance, regression):
    r = np.random.default_rng(seed)
    world = random_world(seed)
    plan = random_plan(small_bound(world), world.truth((FPR,)), r)
    checks.check_stakes_are_bounded(plan, world, int(r.integers(4)), acceptance, regression)


@given(m=st.floats(0, 1), p=st.floats(1e-6, 0.999), reach=st.floats(1, 1e6), dangerous=st.booleans())
@settings(max_examples=300, deadline=None, derandomize=True)
def test_the_clamped_regression_is_still_a_probability(m, p, reach, dangerous):
    clamped = exact_wealth.clamped_regression(*(np.array([v]) for v in (m, 1 / p, reach, dangerous)))[0]
    assert 0 <= clamped <= 1
    phi_hit, phi_miss = clamped + (1 - clamped) / p, clamped - clamped / p
    assert (phi_hit if dangerous else -phi_miss) <= reach * (1 + 1e-9)


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("rates", RATES, ids=lambda rates: "+".join(rate.symbol for rate in rates))
@pytest.mark.parametrize("seed", range(10))
def test_the_quadratic_form_is_below_the_log_wealth(seed, rates, groups):
    checks.check_quadratic_form(seed, rates, groups)


def test_the_quadratic_form_is_a_sharp_bound_for_small_bets():
    """Not vacuous: at a hundredth of the largest bet it loses less than a fiftieth of the squares themselves."""
    r = np.random.default_rng(0)
    world = random_world(0)
    bound = small_bound(world)
    truth = world.truth(bound.rates)
    wild = random_plan(bound, truth, r)
    plan = EpochPlan(wild.inverse_share, wild.bets / 100, wild.lower, wild.upper, 0.0)
    cohort = random_cohort(world, r)
    state = bound._added(bound.start(), cohort, plan)
    lost = exact_wealth.exact_log_wealth(bound, cohort, plan, truth) - form(state, truth)
    f = truth[..., None, None]
    squares = (1 - f) ** 2 * state.quadratic[..., 1, :] + f**2 * state.quadratic[..., 0, :]
    assert (lost <= 0.02 * squares + 1e-12).all()


def test_the_polynomial_is_above_the_curvature():
    u = np.linspace(1e-3, 0.5, 100_001)
    k = (-np.log1p(-u) - u) / u**2
    polynomial = _betting_kernel.curvature.py_func(u)
    assert (polynomial >= k * (1 - 1e-9)).all()
    assert (polynomial <= 1.004 * k).all()
    assert _betting_kernel.curvature(0.0) == 0.5


@pytest.mark.parametrize("seed", range(5))
def test_the_chord_lies_above_q_and_touches_it_at_the_ends_of_the_box(seed):
    r = np.random.default_rng(seed)
    world = random_world(seed)
    bound = small_bound(world)
    plan = random_plan(bound, world.truth(bound.rates), r)
    state = bound._added(bound.start(), random_cohort(world, r), plan)
    state = state.__class__(**{**state.to_arrays(), "lower": plan.lower, "upper": plan.upper})
    alpha, beta = betting_evidence.chord(state)
    for share in (0.0, 0.25, 0.7, 1.0):
        f = (plan.lower + share * (plan.upper - plan.lower))[..., None, None]
        q = (1 - f) ** 2 * state.quadratic[..., 1, :] + f**2 * state.quadratic[..., 0, :]
        assert (alpha + beta * f >= q - 1e-9).all()
        if share in (0.0, 1.0):
            np.testing.assert_allclose(alpha + beta * f, q, atol=1e-9)


def test_a_point_at_which_no_process_has_crossed_is_in_every_interval():
    tested = [checks.check_covering(seed, groups=2 + seed % 2) for seed in range(300)]
    assert sum(tested) > 200


@pytest.mark.parametrize(("groups", "rates", "hypotheses"), [(2, (FPR,), 5), (3, (FPR, FNR), 4), (5, (SR,), 1)])
def test_the_union_pays_delta_and_no_more(groups, rates, hypotheses):
    bound = BettingBound(tuple(range(groups)), rates, hypotheses, 0.05)
    checks.check_union(bound, 0.05)
    checks.check_union(BettingBound(tuple(range(groups)), rates, 2, 0.05, shares=(0.03, 0.02)), 0.05)


def test_the_thresholds_are_those_of_the_theorem():
    bound = BettingBound((-1, 1), (FPR, FNR), 7, 0.05)
    np.testing.assert_allclose(bound.joint_threshold, np.log(2 * 2 * 6 * 7 / (0.8 * 0.05)))
    np.testing.assert_allclose(bound.box_threshold, np.log(2 * 2 * 2 * 6 * 7 / (0.2 * 0.05)))


@pytest.mark.parametrize("seed", range(5))
def test_the_sums_are_those_of_the_definition(seed):
    """A loop that reads like certificates.md, against the kernel; the curvature may be up to .4% larger."""
    r = np.random.default_rng(seed)
    world = random_world(seed, 3)
    bound = small_bound(world, (FPR,))
    plan = random_plan(bound, world.truth(bound.rates), r)
    cohort = random_cohort(world, r)
    linear, quadratic = naive_sums(cohort, plan)
    state = bound._added(bound.start(), cohort, plan)
    np.testing.assert_allclose(state.linear, linear, rtol=1e-9, atol=1e-9)
    assert (state.quadratic >= quadratic * (1 - 1e-12)).all()
    assert (state.quadratic <= quadratic * 1.004 + 1e-12).all()


def naive_sums(cohort, plan):
    M, R, G, K = plan.stakes.shape
    linear, quadratic = np.zeros((2, M, R, G, 2, 2, K))
    for h, i, side, k in np.ndindex(M, len(cohort), 2, K):
        j, a, p = cohort.group[i], int(cohort.accepts[h, i]), cohort.acceptance[i]
        if j < 0:
            continue
        s = 1 - plan.lower[h, 0, j] if a else plan.upper[h, 0, j]
        stake = plan.bets[h, 0, k] * plan.inverse_share[0, j]
        R_ = 0.5 / (stake * s) if s > 0 else np.inf
        m, high_is_dangerous = cohort.regression[i], (side, a) in ((UP, 1), (LOW, 0))
        if p < 1 and high_is_dangerous and 1 / p > R_:
            m = max(m, (1 / p - R_) / (1 / p - 1))
        if p < 1 and not high_is_dangerous:
            m = min(m, R_ / (1 / p - 1))
        worst = "negative" if high_is_dangerous else "positive"
        for seen, phi in (("rejected", m), ("negative", m + (1 - m) / p), ("positive", m - m / p)):
            count = getattr(cohort, seen)[i] + (cohort.unresolved[i] if seen == worst else 0)
            u = stake * s * abs(phi)
            dangerous = (phi > 0) == high_is_dangerous and u > 1e-4
            kappa = (-np.log1p(-u) - u) / u**2 if dangerous else 0.5
            linear[h, 0, j, side, a, k] += count * stake * phi
            quadratic[h, 0, j, side, a, k] += count * kappa * (stake * phi) ** 2
    return linear, quadratic
