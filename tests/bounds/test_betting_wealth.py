"""The proof, step by step and without chance: mean wealth one, factors of at least 1/5, ln W at the
nodes, covering, union.

Nothing here is a Monte Carlo test: expectations are complete enumerations of one or two rounds on
populations of four to six contexts.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bounds import betting_checks as checks
from tests.bounds import exact_wealth
from tests.bounds.betting_worlds import (
    FNR,
    FPR,
    SR,
    added,
    random_cohort,
    random_plan,
    random_world,
    single,
    small_bound,
)

from evenhand.bounds import BettingBound, Cohort, Forecast, betting_wealth
from evenhand.bounds.betting_wealth import (
    EDGES,
    LEFT_NODE,
    NODES,
    Entries,
)

RATES = [(FPR,), (FNR,), (SR,), (FPR, FNR)]


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("rates", RATES, ids=lambda rates: "+".join(rate.symbol for rate in rates))
@pytest.mark.parametrize("seed", range(4))
def test_the_mean_wealth_is_one(seed, rates, groups):
    checks.check_mean_wealth(seed, rates, groups)


def test_the_mean_wealth_is_one_after_two_rounds_that_depend_on_each_other():
    """The second round's plan, acceptance and regression are functions of the first round's
    outcome.
    """
    world = random_world(3)
    bound = small_bound(world, (FPR, FNR))
    truth = world.truth(bound.rates)
    first_plan = bound.plan(bound.start())
    acceptance, m = np.array([0.05, 0.4, 1.0, 0.2]), np.array([0.9, 0.1, 0.5, 0.3])
    singles, pairs = 0.0, 0.0
    for chance, row, y, accepted in checks.outcomes(world, acceptance):
        seen = checks.what_is_seen(y, accepted)
        cohort = single(world, row, acceptance=acceptance[row], regression=m[row], **seen)
        state = bound.update(bound.start(), cohort, first_plan)
        before = exact_wealth.exact_log_wealth(bound, cohort, first_plan, truth)
        p = np.full(4, 0.02) if accepted and y == -1 else np.roll(acceptance, row)
        second_m = np.full(4, float(y == -1)) if accepted else m
        plan = bound.plan(
            state,
            Forecast(world.accepts, world.group, weight=1.0, acceptance=p, regression=second_m),
        )
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
            exact_wealth.exact_log_wealth(
                bound, single(world, row, **known, **{seen: 1}), plan, truth
            )
            for seen in ("unresolved", "negative", "positive")
        )
        np.testing.assert_allclose(missing, np.minimum(negative, positive), atol=1e-12)


@given(
    seed=st.integers(0, 10**6),
    acceptance=st.one_of(
        st.floats(1e-6, 1.0), st.sampled_from([1e-12, 0.01, 0.5, 1 - 1e-12, 1 - 2e-16, 1.0])
    ),
    regression=st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0])),
)
@settings(max_examples=200, deadline=None, derandomize=True)
@pytest.mark.thorough
def test_the_clamp_keeps_every_factor_above_a_fifth(seed, acceptance, regression):
    r = np.random.default_rng(seed)
    world = random_world(seed)
    plan = random_plan(small_bound(world), world.truth((FPR,)), r)
    checks.check_factors_are_bounded(plan, world, int(r.integers(4)), acceptance, regression)


@given(
    m=st.floats(0, 1), p=st.floats(1e-6, 0.999), reach=st.floats(1, 1e6), dangerous=st.booleans()
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_the_clamped_regression_is_still_a_probability(m, p, reach, dangerous):
    clamped = exact_wealth.clamped_regression(
        *(np.array([v]) for v in (m, 1 / p, reach, dangerous))
    )[0]
    assert 0 <= clamped <= 1
    phi_hit, phi_miss = clamped + (1 - clamped) / p, clamped - clamped / p
    assert (phi_hit if dangerous else -phi_miss) <= reach * (1 + 1e-9)


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("rates", RATES, ids=lambda rates: "+".join(rate.symbol for rate in rates))
@pytest.mark.parametrize("seed", range(4))
def test_the_sums_are_the_log_wealth_at_the_nodes(seed, rates, groups):
    checks.check_wealth_at_the_nodes(seed, rates, groups)


def test_the_cells_cut_the_unit_interval_and_lie_inside_their_class():
    assert (len(EDGES), len(NODES)) == (21, 28)
    np.testing.assert_allclose(EDGES, 1 - EDGES[::-1])
    assert (np.diff(EDGES) > 0).all()
    assert (NODES[LEFT_NODE] == EDGES[:-1]).all()
    assert (NODES[LEFT_NODE + 1] == EDGES[1:]).all()
    for which, span in enumerate(betting_wealth.SPANS):
        assert (NODES[span][0], NODES[span][-1]) == tuple(betting_wealth.CLASSES[which : which + 2])


def test_a_point_at_which_no_process_has_crossed_is_in_every_interval():
    tested = [checks.check_covering(seed, groups=2 + seed % 2) for seed in range(300)]
    assert sum(tested) > 200


@pytest.mark.parametrize(
    ("groups", "rates", "hypotheses"), [(2, (FPR,), 5), (3, (FPR, FNR), 4), (5, (SR,), 1)]
)
def test_the_union_pays_delta_and_no_more(groups, rates, hypotheses):
    bound = BettingBound(tuple(range(groups)), rates, hypotheses, 0.05)
    checks.check_union(bound, 0.05)
    checks.check_union(
        BettingBound(tuple(range(groups)), rates, 2, 0.05, delta_parts=(0.03, 0.02)), 0.05
    )


def test_the_thresholds_are_those_of_the_theorem():
    bound = BettingBound((-1, 1), (FPR, FNR), 7, 0.05)
    np.testing.assert_allclose(bound.joint_threshold, np.log(2 * 2 * 6 * 7 / (0.8 * 0.05)))
    np.testing.assert_allclose(bound.box_threshold, np.log(2 * 2 * 2 * 6 * 7 / (0.2 * 0.05)))


def crowd(seed, rows=600, probabilities=(0.02, 0.3, 0.7, 1.0), steps=8):
    """Many people, few values of p and m, all four outcomes, some people outside."""
    r = np.random.default_rng(seed)
    kind = r.integers(0, 4, rows)
    acceptance = r.choice(probabilities, rows)
    kind = np.where((acceptance == 1) & (kind == 0), 1, kind)
    counts = {
        name: (kind == i) * r.integers(1, 3, rows)
        for i, name in enumerate(("rejected", "positive", "negative", "unresolved"))
    }
    m = np.round(r.random(rows) * steps) / steps
    return Cohort(
        r.random((3, rows)) < 0.5,
        r.integers(-1, 3, rows),
        acceptance=acceptance,
        regression=m,
        **counts,
    )


@pytest.mark.parametrize(
    "rates", [(FPR,), (FNR, FPR), (SR,)], ids=lambda rates: "+".join(rate.symbol for rate in rates)
)
@pytest.mark.parametrize("most", [5, 20_000])
def test_rounds_that_look_alike_are_counted_together_and_nothing_changes(rates, most, monkeypatch):
    """The same rounds, in one cohort that is counted together, in parts or at once, and in cohorts
    of four rows, which are not.
    """
    monkeypatch.setattr(betting_wealth, "MOST_ENTRIES", most)
    world = random_world(0, 3, hypotheses=3)
    bound = BettingBound(world.groups, rates, 3, 0.05, horizons=(30.0, 3000.0))
    plan = random_plan(bound, world.truth(bound.rates), np.random.default_rng(0))
    everybody = crowd(0)
    together, apart = added(bound, bound.start(), everybody, plan), bound.start()
    columns = (
        "group",
        "acceptance",
        "regression",
        "rejected",
        "positive",
        "negative",
        "unresolved",
    )
    for start in range(0, len(everybody), 4):
        part = {name: getattr(everybody, name)[start : start + 4] for name in columns}
        few = Cohort(everybody.accepts[:, start : start + 4], labelled=[True] * 3, **part)
        apart = added(bound, apart, few, plan)
    for name, value in together.to_arrays().items():
        np.testing.assert_allclose(
            value, apart.to_arrays()[name], rtol=1e-9, atol=1e-8, err_msg=name
        )


def test_a_bet_is_computed_for_all_who_place_it_at_once(monkeypatch):
    """Work, counted: hypotheses with equal bets share their logarithms."""
    calls, real = [], Entries.log_factors
    monkeypatch.setattr(Entries, "log_factors", lambda *told: calls.append(told) or real(*told))
    world = random_world(0, hypotheses=50)
    bound = small_bound(world)
    plan = bound.plan(bound.start())
    bound.update(bound.start(), random_cohort(world, np.random.default_rng(0)), plan)
    computed = sum(len(stakes) for _, stakes, *_ in calls)
    assert computed == 2 * 2 * len(np.unique(plan.bets))  # groups, and h = 0, 1
    assert len(np.unique(plan.bets)) <= 4


def test_bets_are_powers_of_the_root_of_two():
    world = random_world(0, hypotheses=20)
    bound = small_bound(world)
    state = bound.update(
        bound.start(), random_cohort(world, np.random.default_rng(0)), bound.plan(bound.start())
    )
    exponent = 2 * np.log2(bound.plan(state).bets)
    np.testing.assert_allclose(exponent, np.round(exponent), atol=1e-9)
