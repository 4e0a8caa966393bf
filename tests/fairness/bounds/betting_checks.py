"""The exact checks of the betting bound, as functions: the tests run them on the real code, the mutants must make them fail."""

from math import log

import numpy as np
from tests.fairness.bounds.betting_worlds import (
    FPR,
    form,
    random_cohort,
    random_plan,
    random_world,
    single,
    small_bound,
)

from evenhand.fairness.bounds import betting_evidence, exact_wealth
from evenhand.fairness.bounds.betting_records import LOW, UP

TOLERANCE = 1e-9


def same(value):
    return value


def outcomes(world, acceptance):
    """(probability, context, label, accepted): everything that can happen in one round."""
    for row, label, accepted in np.ndindex(len(world.share), 2, 2):
        y = 2 * label - 1
        chance = world.share[row] * (world.positive_rate[row] if y == 1 else 1 - world.positive_rate[row])
        chance *= acceptance[row] if accepted else 1 - acceptance[row]
        if chance > 0:
            yield chance, row, y, bool(accepted)


def what_is_seen(y, accepted):
    return {"rejected": 1} if not accepted else {"positive": 1} if y == 1 else {"negative": 1}


def pair_log_wealth(bound, log_wealth):
    """ln W of every ordered pair, (M, R, pairs, K)."""
    ways = [(j, i) for pair in bound.pairs for j, i in (pair, pair[::-1])]
    return np.stack([log_wealth[:, :, j, UP] + log_wealth[:, :, i, LOW] for j, i in ways], axis=2)


def check_mean_wealth(seed, rates, groups, *, logged=same, regress=lambda m, y, accepted: m, coded=same, least=0.01):
    """E[W] = 1 after one round, by complete enumeration, for each group, side and bet and each ordered pair.

    logged, regress and coded say what a careless learner would hand over instead of the true p, the predictable m, the true group.
    """
    r = np.random.default_rng(seed)
    world = random_world(seed, groups)
    bound = small_bound(world, rates)
    truth = world.truth(bound.rates)
    plan = random_plan(bound, truth, r)
    acceptance, m = r.choice([least, 0.1, 0.6, 1.0], len(world.share)), r.random(len(world.share))
    singles, pairs = 0.0, 0.0
    for chance, row, y, accepted in outcomes(world, acceptance):
        cohort = single(
            world,
            row,
            acceptance=logged(acceptance[row]),
            regression=regress(m[row], y, accepted),
            group=coded(world.group[row]),
            **what_is_seen(y, accepted),
        )
        log_wealth = exact_wealth.exact_log_wealth(bound, cohort, plan, truth)
        singles, pairs = (
            singles + chance * np.exp(log_wealth),
            pairs + chance * np.exp(pair_log_wealth(bound, log_wealth)),
        )
    np.testing.assert_allclose(singles, 1.0, atol=1e-10)
    np.testing.assert_allclose(pairs, 1.0, atol=1e-10)


def check_late_labels(seed, rates):
    """E[W] <= 1 when a label arrives with a probability that depends on the context and on the label itself."""
    r = np.random.default_rng(seed)
    world = random_world(seed)
    bound = small_bound(world, rates)
    truth = world.truth(bound.rates)
    plan = random_plan(bound, truth, r)
    acceptance, m = r.choice([0.01, 0.3, 1.0], len(world.share)), r.random(len(world.share))
    arrives = r.random((len(world.share), 2))
    singles, pairs = 0.0, 0.0
    for chance, row, y, accepted in outcomes(world, acceptance):
        arrival = arrives[row, (y + 1) // 2] if accepted else 1.0
        for share, seen in ((arrival, what_is_seen(y, accepted)), (1 - arrival, {"unresolved": 1})):
            cohort = single(world, row, acceptance=acceptance[row], regression=m[row], **seen)
            log_wealth = exact_wealth.exact_log_wealth(bound, cohort, plan, truth)
            singles = singles + chance * share * np.exp(log_wealth)
            pairs = pairs + chance * share * np.exp(pair_log_wealth(bound, log_wealth))
    assert singles.max() <= 1 + 1e-10
    assert pairs.max() <= 1 + 1e-10


def check_quadratic_form(seed, rates, groups=2):
    """The sums of the kernel give a lower bound on ln W at the truth and at every other point of the box."""
    r = np.random.default_rng(seed)
    world = random_world(seed, groups)
    bound = small_bound(world, rates)
    truth = world.truth(bound.rates)
    plan = random_plan(bound, truth, r)
    cohort = random_cohort(world, r)
    state = bound._added(bound.start(), cohort, plan)
    for f in (truth, plan.lower, plan.upper):
        log_wealth = exact_wealth.exact_log_wealth(bound, cohort, plan, f)
        assert np.isfinite(log_wealth).all()
        assert (form(state, f) <= log_wealth + TOLERANCE).all()


def check_stakes_are_bounded(plan, world, row, acceptance, regression):
    """lambda c |phi| s <= 1/2 for phi of the dangerous sign, for every outcome of one round, as the kernel computes phi."""
    bound = small_bound(world)
    for seen in ("rejected", "positive", "negative", "unresolved"):
        if seen == "rejected" and acceptance == 1:
            continue
        cohort = single(world, row, acceptance=acceptance, regression=regression, **{seen: 1})
        state = bound._added(bound.start(), cohort, plan)
        # lambda c phi s: (M, R, G, side, a, K)
        stake = state.linear * plan.deviation[:, :, :, np.newaxis, :, np.newaxis]
        assert stake[..., UP, 1, :].max() <= 0.5 + TOLERANCE
        assert stake[..., LOW, 0, :].max() <= 0.5 + TOLERANCE
        assert stake[..., UP, 0, :].min() >= -0.5 - TOLERANCE
        assert stake[..., LOW, 1, :].min() >= -0.5 - TOLERANCE


def check_covering(seed, rates=(FPR,), groups=2, failure_probability=0.9):
    """Whatever the data: a point of the box at which no process has crossed its threshold is in every interval.

    Returns how many (hypothesis, point) pairs were tested.
    """
    r = np.random.default_rng(seed)
    world = random_world(seed, groups)
    bound = small_bound(world, rates, failure_probability=failure_probability)
    truth = r.uniform(0.02, 0.98, (len(world.accepts), len(bound.rates), groups))
    plan = random_plan(bound, truth, r)
    cohort = random_cohort(world, r, rows=int(r.integers(1, 30)), most=int(r.choice([2, 2, 5, 60])))
    state = bound._added(bound.start(), cohort, plan)
    state = state.__class__(**{**state.to_arrays(), "lower": plan.lower, "upper": plan.upper})
    boxes = betting_evidence.narrowed_boxes(state, bound.group_thresholds)
    gaps = betting_evidence.narrowed_gaps(boxes, bound.pair_thresholds, bound.pairs, bound.founders)
    log_wealth = exact_wealth.exact_log_wealth(bound, cohort, plan, truth)
    calm = (log_wealth < bound.box_threshold[:, None, None, None, None]).all(axis=(1, 2, 3, 4))
    calm &= (pair_log_wealth(bound, log_wealth) < bound.joint_threshold[:, None, None, None]).all(axis=(1, 2, 3))
    assert (boxes.lower <= truth + TOLERANCE)[calm].all()
    assert (truth <= boxes.upper + TOLERANCE)[calm].all()
    gap = np.stack([truth[:, :, j] - truth[:, :, i] for j, i in small_bound(world).pairs], axis=-1)
    assert (gaps.gap_lower <= gap + TOLERANCE)[calm].all()
    assert (gap <= gaps.gap_upper + TOLERANCE)[calm].all()
    return int(calm.sum())


def check_union(bound, failure_probability):
    """The false-alarm probabilities e^-L of all processes, counted one by one, sum to delta at most."""
    M, R, G, sides, _, K = bound.start().linear.shape
    singles = sum(
        np.exp(-bound.group_thresholds[h, j]) for h in range(M) for j in range(G) for _ in range(R * sides * K)
    )
    places = [(at, side) for at in range(len(bound.pairs)) for side in (0, 1)]
    pairs = sum(np.exp(-bound.pair_thresholds[h, at]) for h in range(M) for _ in range(R * K) for at, _ in places)
    assert singles + pairs <= failure_probability * (1 + 1e-12)
    assert log(failure_probability / (singles + pairs)) < 0.01, "more is paid than is needed"
