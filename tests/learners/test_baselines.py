import numpy as np
import pytest
from tests.learners.play import FPR, WORLD, everybody, play

from evenhand.bandit import coordinate_descent
from evenhand.environments import Discrete
from evenhand.errors import InvalidInput
from evenhand.estimation import one_sided
from evenhand.fairness import GapConstraints
from evenhand.hypotheses import ACCEPT_ALL, Stumps
from evenhand.learners import (
    AcceptAll,
    Exp4,
    ExploreThenCommit,
    FairOnGathered,
    Unconstrained,
    Uniform,
)
from evenhand.learners.baselines import AnyPolicy, _net
from evenhand.learners.exploration import sample_of


def test_the_fixed_ones_are_fixed():
    for learner, share in ((AcceptAll(seed=0), 1.0), (Uniform(seed=0), 0.5)):
        play(learner, 500, 0)
        assert np.array_equal(learner.acceptance(WORLD.features), np.full(6, share))
        assert len(learner.report.epochs) == 1


def test_the_two_lengths_of_explore_then_commit():
    common = dict(
        hypotheses=WORLD.hypotheses,
        rate=FPR,
        allowed_gap=0.4,
        failure_probability=0.1,
        horizon=3000,
    )
    assert ExploreThenCommit(**common).exploration_rounds == int(np.ceil(3000 ** (2 / 3)))
    assert ExploreThenCommit(**common, same_exploration=True).exploration_rounds is None
    assert ExploreThenCommit(**common, exploration_rounds=99).exploration_rounds == 99


def test_explore_then_commit_deploys_the_empirically_best_fair_policy():
    learner = everybody()["explore-then-commit"]
    play(learner, 1500, 0)
    sample, limit = learner.sample, learner.slack.limit
    costs, gaps = [], []
    constraints = GapConstraints.on(FPR, sample)
    table = np.vstack([WORLD.accepts, np.ones(6, bool), np.zeros(6, bool)])
    log = learner.state.history.of(
        {e.number for e in learner.report.epochs if e.phase == "explore"}, with_group=False
    )
    loss = one_sided(log, learner.loss)
    for row in table:
        costs.append(loss.acceptance_cost @ row[loss.features[:, 0].astype(int)])
        gaps.append(constraints.gaps(row[sample.features[:, 0].astype(int)].astype(float))[0])
    costs, gaps = np.array(costs), np.array(gaps)
    best = min(
        w * costs[i] + (1 - w) * costs[j]
        for i in range(len(table))
        for j in range(len(table))
        for w in np.linspace(0, 1, 401)
        if abs(w * gaps[i] + (1 - w) * gaps[j]) <= limit
    )
    mine = loss.acceptance_cost @ learner.policy.acceptance(loss.features)
    assert mine <= best + 1e-9


def test_unconstrained_finds_the_best_unfair_policy():
    learner = Unconstrained(WORLD.hypotheses, FPR, first_rounds=100, seed=0)
    play(learner, 20_000, 0, block=1000)
    learner.open_epoch()
    best = min(WORLD.loss(policy_of(row)) for row in WORLD.accepts)
    assert WORLD.loss(learner.policy) <= best + 0.02


def policy_of(row):
    from evenhand.hypotheses import TableRow
    from evenhand.policies import Mixture

    return Mixture((TableRow(tuple(row.tolist())),), (1.0,))


@pytest.mark.parametrize("group_use", ["certify_only", "decide"])
def test_the_oracle_without_a_constraint_is_an_argmin(group_use):
    learner = Unconstrained(WORLD.hypotheses, FPR, first_rounds=100, group_use=group_use, seed=0)
    play(learner, 400, 0)
    loss = one_sided(learner.state.history.of(with_group=group_use == "decide"), learner.loss)
    every = AnyPolicy(learner.hypotheses.bind(loss.features, loss.group), loss, group_use)
    draw = np.random.default_rng(0)
    contexts = loss.features[:, 0].astype(int)
    tables = [row[contexts] for row in WORLD.accepts]
    if group_use == "decide":
        tables += [WORLD.group[contexts] == g for g in ("a", "b")]
    for _ in range(50):
        cost = draw.normal(size=len(loss))
        answer = every.cheapest(cost)
        assert cost @ answer.acceptance == pytest.approx(
            min(cost @ row for row in tables), abs=1e-12
        )
        assert np.array_equal(
            answer.policy.acceptance(loss.features, loss.group), answer.acceptance
        )
    assert coordinate_descent(
        loss, every, exploration_floor=0.05, regret_scale=1.0, sides=1
    ).report.halted


def test_fair_on_gathered_keeps_the_limit_on_what_was_gathered_only():
    learner = FairOnGathered(WORLD.hypotheses, FPR, 0.1, first_rounds=100, seed=0)
    play(learner, 3000, 0, block=100)
    learner.open_epoch()
    gathered = sample_of(learner.state.history.of())
    gap = GapConstraints.on(FPR, gathered).gaps(learner.policy.acceptance(gathered.features))
    assert np.abs(gap).max() <= 0.1 + 1e-9
    assert {"explore", "greedy"} == {epoch.phase for epoch in learner.report.epochs}


def test_fair_on_gathered_needs_the_group_of_everybody():
    learner = FairOnGathered(WORLD.hypotheses, FPR, 0.1, first_rounds=100, seed=0)
    play(learner, 300, 0)
    assert learner.epoch.phase == "greedy"
    with pytest.raises(InvalidInput, match="group is None"):
        learner.decide([[0.0]])


def test_fair_on_gathered_accepts_on_while_a_group_has_no_negatives():
    good = Discrete([0.5, 0.5], [0.5, 1.0], ["a", "b"], np.eye(2, dtype=bool))
    learner = FairOnGathered(good.hypotheses, FPR, 0.1, first_rounds=50, seed=0)
    play(learner, 200, 0, environment=good)
    learner.open_epoch()
    assert learner.epoch.phase == "explore"


def test_the_net_holds_exactly_the_fair_pairs():
    gaps = np.array([[0.0, 0.3, -0.2, 0.05]])
    first, second, weight = _net(gaps, 0.1, 4)
    expected = {
        (i, j, w)
        for i in range(4)
        for j in range(i, 4)
        for w in (0.25, 0.5, 0.75, 1.0)
        if (i != j or w == 1.0) and abs(w * gaps[0, i] + (1 - w) * gaps[0, j]) <= 0.1
    }
    assert set(zip(first.tolist(), second.tolist(), weight.tolist(), strict=True)) == expected


def test_exp4_deploys_a_fair_mixture_with_its_floor_and_learns():
    learner = everybody()["EXP4"]
    play(learner, 2900, 0, block=100)
    sample = learner.sample
    gap = GapConstraints.on(FPR, sample).gaps(learner.policy.acceptance(sample.features))
    assert np.abs(gap).max() <= learner.slack.limit + 1e-9
    floor = learner.epoch.exploration_floor
    assert learner.acceptance(WORLD.features).min() > floor - 1e-12 > 0
    assert (
        dict(zip(learner.policy.hypotheses, learner.policy.weights, strict=True))[ACCEPT_ALL]
        >= floor - 1e-12
    )
    assert WORLD.loss(learner.policy) < WORLD.loss(AcceptAll().policy)


def test_exp4_refuses_what_it_cannot_enumerate():
    with pytest.raises(InvalidInput, match="too large"):
        _net(np.zeros((1, 3000)), limit=0.1, grid=8)
    learner = Exp4(
        WORLD.hypotheses, FPR, 0.4, 0.1, 3000, comparator_gap=0.02, group_use="decide", seed=0
    )
    with pytest.raises(InvalidInput, match="enumerable"):
        play(learner, 2000, 0)


def test_exp4_works_on_stumps():
    learner = Exp4(Stumps(), FPR, 0.6, 0.1, 3000, comparator_gap=0.1, grid=2, seed=0)
    play(learner, 1500, 0)
    assert learner.epoch.phase == "exp4"
