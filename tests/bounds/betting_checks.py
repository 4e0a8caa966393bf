"""The exact checks of the betting bound, as functions: the tests run them on the real code, the
mutants must make them fail.
"""

from math import log

import numpy as np
from tests.bounds import exact_wealth
from tests.bounds.betting_worlds import (
    FPR,
    added,
    concluded,
    random_cohort,
    random_plan,
    random_world,
    single,
    small_bound,
)

from evenhand.bounds.betting_wealth import CLASS_OF_NODE, CLASSES, LOW, NODES, THETA, UP

TOLERANCE = 1e-9


def same(value):
    return value


def outcomes(world, acceptance):
    """(probability, context, label, accepted): everything that can happen in one round."""
    for row, label, accepted in np.ndindex(len(world.share), 2, 2):
        y = 2 * label - 1
        chance = world.share[row] * (
            world.positive_rate[row] if y == 1 else 1 - world.positive_rate[row]
        )
        chance *= acceptance[row] if accepted else 1 - acceptance[row]
        if chance > 0:
            yield chance, row, y, bool(accepted)


def what_is_seen(y, accepted):
    return {"rejected": 1} if not accepted else {"positive": 1} if y == 1 else {"negative": 1}


def pair_log_wealth(bound, log_wealth):
    """ln W of every ordered pair, (M, R, pairs, K)."""
    ways = [(j, i) for pair in bound.pairs for j, i in (pair, pair[::-1])]
    return np.stack([log_wealth[:, :, j, UP] + log_wealth[:, :, i, LOW] for j, i in ways], axis=2)


def check_mean_wealth(
    seed, rates, groups, *, logged=same, regress=lambda m, y, accepted: m, coded=same, least=0.01
):
    """E[W] = 1 after one round, by complete enumeration, for each group, side and bet and each
    ordered pair.

    logged, regress and coded say what a careless learner would hand over instead of the true p, the
    predictable m, the true group.
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
    """E[W] <= 1 when a label arrives with a probability that depends on the context and on the
    label itself.
    """
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


def check_wealth_at_the_nodes(seed, rates, groups=2):
    """The sums are ln W itself at every node, with the clamp of the node's class, and no chord is
    above ln W between two nodes.
    """
    r = np.random.default_rng(seed)
    world = random_world(seed, groups)
    bound = small_bound(world, rates)
    truth = world.truth(bound.rates)
    plan = random_plan(bound, truth, r)
    cohort = random_cohort(world, r)
    with np.errstate(invalid="ignore", divide="ignore"):
        state = added(bound, bound.start(), cohort, plan)
    for node, f in enumerate(NODES):
        which = np.full(truth.shape, CLASS_OF_NODE[node])
        exact = exact_wealth.exact_log_wealth(bound, cohort, plan, np.full(truth.shape, f), which)
        np.testing.assert_allclose(
            np.swapaxes(state.wealth[..., node], -1, -2), exact, rtol=1e-9, atol=TOLERANCE
        )
    for node in np.flatnonzero(CLASS_OF_NODE[1:] == CLASS_OF_NODE[:-1]):
        share = r.random()
        f = NODES[node] + share * (NODES[node + 1] - NODES[node])
        which = np.full(truth.shape, CLASS_OF_NODE[node])
        exact = exact_wealth.exact_log_wealth(bound, cohort, plan, np.full(truth.shape, f), which)
        chord = (1 - share) * state.wealth[..., node] + share * state.wealth[..., node + 1]
        assert (np.swapaxes(chord, -1, -2) <= exact + TOLERANCE).all()


def check_factors_are_bounded(plan, world, row, acceptance, regression):
    """Every factor of one round is at least 1 - THETA at every node, whatever the outcome."""
    bound = small_bound(world)
    for seen in ("rejected", "positive", "negative", "unresolved"):
        if seen == "rejected" and acceptance == 1:
            continue
        cohort = single(world, row, acceptance=acceptance, regression=regression, **{seen: 1})
        with np.errstate(invalid="ignore", divide="ignore"):
            least = np.exp(added(bound, bound.start(), cohort, plan).wealth).min()
        assert least >= 1 - THETA - TOLERANCE, least


def check_covering(seed, rates=(FPR,), groups=2, delta=0.9):
    """Whatever the data: a point at which no process has crossed its threshold is in every
    interval.

    Returns how many (hypothesis, point) pairs were tested.
    """
    r = np.random.default_rng(seed)
    world = random_world(seed, groups)
    bound = small_bound(world, rates, delta=delta)
    truth = r.uniform(0.02, 0.98, (len(world.accepts), len(bound.rates), groups))
    truth = np.where(r.random(truth.shape) < 0.2, r.choice(CLASSES, truth.shape), truth)
    plan = random_plan(bound, truth, r)
    cohort = random_cohort(world, r, rows=int(r.integers(1, 30)), most=int(r.choice([2, 2, 5, 60])))
    state = bound.update(bound.start(), cohort, plan)
    log_wealth = exact_wealth.exact_log_wealth(bound, cohort, plan, truth)
    calm = (log_wealth < bound.box_threshold[:, None, None, None, None]).all(axis=(1, 2, 3, 4))
    calm &= (pair_log_wealth(bound, log_wealth) < bound.joint_threshold[:, None, None, None]).all(
        axis=(1, 2, 3)
    )
    assert not state.contradiction[calm].any()
    inside = (state.lower <= truth[..., None] + TOLERANCE) & (
        truth[..., None] <= state.upper + TOLERANCE
    )
    assert inside.any(axis=-1)[calm].all()
    gap = np.stack([truth[:, :, j] - truth[:, :, i] for j, i in small_bound(world).pairs], axis=-1)
    assert (state.gap_lower <= gap + TOLERANCE)[calm].all()
    assert (gap <= state.gap_upper + TOLERANCE)[calm].all()
    return int(calm.sum())


def _told(up, low):
    """A bound with two bets, and its state after the wealth up(f) in group 1 and low(f) in group 0,
    each (2 bets, nodes).
    """
    bound = small_bound(random_world(0, hypotheses=1))
    state = bound.start()
    state.wealth[0, 0, 1, :, UP], state.wealth[0, 0, 0, :, LOW] = up, low
    return bound, concluded(bound, state)


def check_a_pair_uses_one_bet():
    """One bet says much of the one group, another one of the other: together they say nothing,
    because nobody paid for that test.
    """
    much = np.tile(
        0.6 * float(small_bound(random_world(0, hypotheses=1)).joint_threshold[0]), len(NODES)
    )
    _, state = _told(np.stack([much, 0 * much]), np.stack([0 * much, much]))
    assert state.gap_upper[0, 0, 0] == 1.0
    _, state = _told(np.stack([much, 0 * much]), np.stack([much, 0 * much]))
    assert state.contradiction[0]


def check_the_part_of_a_cell_that_is_left():
    """The wealth crosses the threshold of the pair between two nodes: the gap ends there, neither
    at the node before nor behind.
    """
    L = float(small_bound(random_world(0, hypotheses=1)).joint_threshold[0])
    at = 12
    rises = np.where(np.arange(len(NODES)) > at, 1.5 * L, 0.0) * np.array([[1.0], [0.0]])
    _, state = _told(rises, 0 * rises)
    wanted = NODES[at] + (NODES[at + 1] - NODES[at]) / 1.5
    np.testing.assert_allclose(state.gap_upper[0, 0, 0], wanted, atol=1e-6)


def check_union(bound, delta):
    """The false-alarm probabilities e^-L of all processes, counted one by one, sum to delta at
    most.
    """
    M, R, G, K, sides, _ = bound.start().wealth.shape
    singles = sum(
        np.exp(-bound.group_thresholds[h, j])
        for h in range(M)
        for j in range(G)
        for _ in range(R * sides * K)
    )
    places = [(at, side) for at in range(len(bound.pairs)) for side in (0, 1)]
    pairs = sum(
        np.exp(-bound.pair_thresholds[h, at])
        for h in range(M)
        for _ in range(R * K)
        for at, _ in places
    )
    assert singles + pairs <= delta * (1 + 1e-12)
    assert log(delta / (singles + pairs)) < 0.01, "more is paid than is needed"
