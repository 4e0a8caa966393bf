import numpy as np
import pytest
from tests.play import FPR, WORLD, every_learner, play

from evenhand.algorithms.baselines import AnyPolicy
from evenhand.algorithms.exploration import sample_of
from evenhand.bandit import coordinate_descent
from evenhand.environments import Discrete
from evenhand.errors import InvalidInput
from evenhand.estimation import one_sided
from evenhand.fairness import GapConstraints
from evenhand.learners import (
    AcceptAll,
    ExploreThenCommit,
    FairOnGathered,
    PairedRounds,
    Unconstrained,
    Uniform,
)
from evenhand.rounds import learning


def test_the_fixed_ones_are_fixed():
    for learner, share in ((AcceptAll(seed=0), 1.0), (Uniform(seed=0), 0.5)):
        play(learner, 500, 0)
        assert np.array_equal(learner.acceptance(WORLD.features), np.full(6, share))
        assert len(learner.report.epochs) == 1


def test_the_two_lengths_of_explore_then_commit():
    common = dict(
        hypotheses=WORLD.hypotheses,
        rate=FPR,
        limit=0.4,
        delta=0.1,
        horizon=3000,
    )
    assert ExploreThenCommit(**common).exploration_rounds == int(np.ceil(3000 ** (2 / 3)))
    assert ExploreThenCommit(**common, same_exploration=True).exploration_rounds is None
    assert ExploreThenCommit(**common, exploration_rounds=99).exploration_rounds == 99


def test_explore_then_commit_deploys_the_empirically_best_fair_policy():
    learner = every_learner()["explore-then-commit"]
    play(learner, 1500, 0)
    sample, limit = learner.sample, learner.slack.limit
    costs, gaps = [], []
    constraints = GapConstraints.on(FPR, sample)
    table = np.vstack([WORLD.accepts, np.ones(6, bool), np.zeros(6, bool)])
    explored = {e.number for e in learner.report.epochs if e.phase == "explore"}
    log = learning.log(learner.rounds, epochs=explored, with_group=False)
    loss = one_sided(log, learner.algorithm.loss)
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
    log = learning.log(learner.rounds, with_group=group_use == "decide")
    loss = one_sided(log, learner.algorithm.loss)
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
    gathered = sample_of(learning.log(learner.rounds, stop=learner.epoch.first_round))
    gap = GapConstraints.on(FPR, gathered).gaps(learner.policy.acceptance(gathered.features))
    assert np.abs(gap).max() <= 0.1 + 1e-9
    assert {"explore", "greedy"} == {epoch.phase for epoch in learner.report.epochs}


def test_fair_on_gathered_needs_the_group_of_all_applicants():
    learner = FairOnGathered(WORLD.hypotheses, FPR, 0.1, first_rounds=100, seed=0)
    play(learner, 300, 0)
    assert learner.epoch.phase == "greedy"
    with pytest.raises(InvalidInput) as caught:
        learner.decide([[0.0]])
    assert caught.value.argument == "group"


def test_fair_on_gathered_accepts_on_while_a_group_has_no_negatives():
    good = Discrete([0.5, 0.5], [0.5, 1.0], ["a", "b"], np.eye(2, dtype=bool))
    learner = FairOnGathered(good.hypotheses, FPR, 0.1, first_rounds=50, seed=0)
    play(learner, 200, 0, environment=good)
    learner.open_epoch()
    assert learner.epoch.phase == "explore"


def test_a_commitment_is_the_same_one_sided_and_two_sided():
    """All of the sample was accepted: both estimates rank policies alike."""
    common = dict(hypotheses=WORLD.hypotheses, rate=FPR, limit=0.4, delta=0.1, horizon=3000, seed=5)
    policies = []
    for estimator in ("one-sided", "two-sided"):
        learner = ExploreThenCommit(**common, exploration_rounds=700, estimator=estimator)
        play(learner, 1500, 0)
        assert learner.epoch.phase == "commit"
        policies.append(learner.policy)
    assert policies[0] == policies[1]


# exploring and exploiting in turns


def paired(**settings):
    common = dict(comparator_gap=0.02, grid=12, seed=5)
    return PairedRounds(WORLD.hypotheses, FPR, 0.4, 0.1, 20_000, **{**common, **settings})


def test_exploration_and_exploitation_have_as_many_rounds_block_by_block():
    learner = paired()
    play(learner, 6000, 0, block=100)
    epochs = learner.report.epochs
    start = next(i for i, epoch in enumerate(epochs) if epoch.phase == "exp4")
    turns = epochs[start - 1 : -1]
    assert [epoch.phase for epoch in turns] == ["explore", "exp4"] * (len(turns) // 2)
    assert len(turns) >= 10
    for explore, exploit in zip(turns[::2], turns[1::2], strict=True):
        assert explore.rounds == exploit.rounds
        assert np.all(explore.policy.acceptance(WORLD.features) == 1)


def test_what_survives_is_judged_by_the_exploration_rounds_alone():
    learner = paired()
    play(learner, 1500, 0, block=1)
    rounds = learner.rounds
    turns = {epoch.number for epoch in rounds.epochs if epoch.phase == "explore"}
    last = max(i for i, epoch in enumerate(rounds.epochs) if epoch.phase == "exp4")
    epoch = rounds.epochs[last]
    before = {number for number in turns if number < epoch.number}
    seen = sample_of(learning.log(rounds, epochs=before))
    gap = GapConstraints.on(FPR, seen).gaps(epoch.policy.acceptance(seen.features))
    looks = sum(other.phase == "exp4" for other in rounds.epochs[: last + 1])
    negatives = [seen.weight[(seen.group == g) & (seen.label == -1)].sum() for g in seen.groups]
    delta = 0.1 * 6 / (np.pi**2 * looks**2)
    beta = np.sqrt(sum(1 / n for n in negatives) * np.log(2 * len(WORLD.accepts) / delta) / 2)
    assert learner.slack.beta == pytest.approx(beta, rel=1e-12)
    assert np.abs(gap).max() <= 0.4 - beta + 1e-12


def test_pairing_ends_with_the_exploration_that_was_asked_for():
    learner = paired(exploration_rounds=1000)
    play(learner, 6000, 0, block=100)
    phases = [epoch.phase for epoch in learner.report.epochs]
    explored = sum(e.rounds for e in learner.report.epochs if e.phase == "explore")
    assert 1000 <= explored <= 1250
    assert phases[-5:] == ["exp4"] * 5
    assert paired().exploration_rounds == 10_000


def test_while_no_member_is_known_to_keep_the_limit_all_are_accepted():
    learner = PairedRounds(WORLD.hypotheses, FPR, 0.05, 0.1, 20_000, seed=5)
    play(learner, 500, 0)
    assert {epoch.phase for epoch in learner.report.epochs} == {"explore"}
