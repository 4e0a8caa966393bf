"""EXP4.AT and inverse gap weighting on the fair set: against their formulas, against an adversary's
order, and against what would break them.
"""

import numpy as np
import pytest
from tests.algorithms import exp4_checks
from tests.algorithms.enumerated_net import (
    estimated_losses,
    false_positive_gap,
    mean_member,
    members,
    rules_of,
)
from tests.play import FPR, WORLD, play

from bench.rivals import Exp4AppleTasting, InverseGap, neighbours
from evenhand.errors import InvalidInput
from evenhand.estimation.outcomes import ConstantOutcome
from evenhand.fairness import GapConstraints
from evenhand.hypotheses import FiniteClass
from evenhand.learners import TwoPhaseLearner
from evenhand.simulation import regret_in_set, simulate

# EXP4.AT


def test_exp4_at_is_the_formula():
    """eta = sqrt(ln N / (3 T)) for weights and floor, losses 1[yhat != y] 1[accepted] / p."""
    learner = exp4_checks.played_exp4(Exp4AppleTasting)
    accepts = rules_of(learner, WORLD)
    gaps = np.array([[false_positive_gap(learner, row) for row in accepts]])
    net = members(gaps, learner.slack.limit, 12)
    rounds = learner.rounds
    losses = np.zeros(len(accepts))
    for row in range(learner.state.learned_to):
        if rounds["accept"][row]:
            yhat = np.where(accepts[:, int(rounds.features_of(slice(row, row + 1))[0, 0])], 1, -1)
            losses += (yhat != rounds["label"][row]) / rounds["acceptance"][row]
    eta = np.sqrt(np.log(len(net)) / (3 * 3000))
    expected = eta + (1 - eta) * (mean_member(net, losses, eta) @ accepts)
    np.testing.assert_allclose(learner.acceptance(WORLD.features), expected, rtol=0, atol=1e-9)
    # both losses of an accepted round, or their difference alone: the same weights
    difference, _ = estimated_losses(learner, accepts)
    np.testing.assert_allclose(losses - losses[1], 2 * difference, rtol=0, atol=1e-9)


def test_exp4_at_learns():
    assert exp4_checks.regret(Exp4AppleTasting) <= 450


EXPLORED, BAD, GOOD = 100, 25, 100
BOUND = 2 * np.sqrt(3 * (EXPLORED + BAD + GOOD) * np.log(3))


def adversarial_regret(seed=0):
    """After an ordinary exploration, 25 people who are all bad and 100 who are all good: the
    regret to accepting everybody, the best of the three members of the net, by the probabilities
    with which people were accepted.
    """
    rules = FiniteClass.from_table([[True, False, False, True, False, False]])
    learner = Exp4AppleTasting(
        rules, FPR, 0.9, 0.1, EXPLORED + BAD + GOOD, exploration_rounds=EXPLORED, grid=1, growth=0,
        seed=seed,
    )  # fmt: skip
    people = WORLD.draw(EXPLORED, np.random.default_rng(seed))
    decided = learner.decide(people.features, people.group)
    # as many good as bad people in the exploration, so that nothing is learned from it
    label = np.where(np.arange(EXPLORED) % 2, 1, -1)
    learner.observe(decided.round, label)
    labels = np.repeat([-1, 1], [BAD, GOOD])
    mistakes = 0.0
    for y in labels.tolist():
        decision = learner.decide([[1.0]], ["a"])
        assert learner.epoch.phase == "exp4-at"
        p = float(learner.acceptance([[1.0]])[0])
        mistakes += p if y == -1 else 1 - p
        if decision.accept[0]:
            learner.observe(decision.round, [y])
    return mistakes - BAD


def test_regret_in_an_order_that_an_adversary_chose_is_within_the_bound():
    """2 sqrt(3 T ln N) with T = 225 and N = 3 is 54; locking in on "reject" costs 75."""
    assert adversarial_regret() <= BOUND


def test_without_its_exploration_it_locks_in(monkeypatch):
    """The negative control: weights that jump to the best so far, and hardly a floor."""
    real = neighbours.WeightedNet.smoothed
    monkeypatch.setattr(
        neighbours.WeightedNet, "smoothed", lambda net, *_: real(net, 10.0, 1e-9, 1)
    )
    assert adversarial_regret() > BOUND


# inverse gap weighting


def inverse_gap(**settings):
    common = dict(comparator_gap=0.02, exploration_rounds=300, seed=5)
    return InverseGap(WORLD.hypotheses, FPR, 0.4, 0.1, 3000, **{**common, **settings})


def test_inverse_gap_deploys_what_its_inequality_allows():
    """From the table of rounds: the rate of bad outcomes in each context, with four pseudo-people
    of the overall rate, gives d_hat; then every rule of the class that is fair on the sample keeps
    gamma E[d_hat (P - pi)] + (1 - mu) E[pi / P] <= 2 + gamma mu / 2.
    """
    learner = inverse_gap()
    play(learner, 1200, 0, block=1)
    rounds = learner.rounds
    stop = learner.state.learned_to
    context = rounds.features_of(slice(stop))[:, 0].astype(int)
    accepted = rounds["accept"][:stop]
    bad = accepted & (rounds["label"][:stop] == -1)
    overall = bad.sum() / accepted.sum()
    m = (np.bincount(context[bad], minlength=6) + 4 * overall) / (
        np.bincount(context[accepted], minlength=6) + 4
    )
    d_hat = m - 0.5
    share = np.bincount(context, minlength=6) / stop
    mu = 0.1 / np.sqrt(stop)
    gamma = 1 / mu
    P = learner.acceptance(WORLD.features)
    assert P.min() >= mu - 1e-12
    sample = learner.sample
    gaps = GapConstraints.on(FPR, sample)
    compared = 0
    for row in WORLD.accepts.astype(float):
        if np.abs(gaps.gaps(row[sample.features[:, 0].astype(int)])).max() <= learner.slack.limit:
            left = gamma * share @ (d_hat * (P - row)) + (1 - mu) * share @ (row / P)
            assert left <= 2 + gamma * mu / 2 + 1e-9
            compared += 1
    assert compared >= 4


def test_everything_that_inverse_gap_deploys_is_in_the_fair_set():
    learner = inverse_gap()
    play(learner, 2500, 0, block=100)
    sample = learner.sample
    gaps = GapConstraints.on(FPR, sample)
    phases = [epoch.phase for epoch in learner.report.epochs]
    assert phases.count("inverse-gap") >= 5
    for epoch in learner.report.epochs:
        gap = gaps.gaps(epoch.policy.acceptance(sample.features))
        assert np.abs(gap).max() <= learner.slack.limit + 1e-12
        assert epoch.halted


def bandit_regret(kind):
    learner = kind(WORLD.hypotheses, FPR, 0.4, 0.1, 20_000, exploration_rounds=700)
    runs = [simulate(learner, WORLD, 20_000, seed) for seed in range(3)]
    return float(np.mean([regret_in_set(run, WORLD)[-1] for run in runs]))


def test_inverse_gap_learns_no_worse_than_algorithm_1():
    assert bandit_regret(InverseGap) <= 1.5 * bandit_regret(TwoPhaseLearner) + 20


def test_a_regression_that_knows_nothing_is_seen(monkeypatch):
    """The negative control: m = 1/2 everywhere, so that nothing is ever learned."""
    monkeypatch.setattr(neighbours, "fit_outcomes", lambda log: ConstantOutcome(0.5))
    assert bandit_regret(InverseGap) > 10 * bandit_regret(TwoPhaseLearner)


@pytest.mark.parametrize("kind", [InverseGap, Exp4AppleTasting])
def test_two_sided_is_named(kind):
    with pytest.raises(InvalidInput) as caught:
        kind(WORLD.hypotheses, FPR, 0.4, 0.1, 3000, estimator="two-sided")
    assert caught.value.argument == "estimator"


def test_exp4_at_has_a_floor_of_its_own():
    with pytest.raises(InvalidInput) as caught:
        Exp4AppleTasting(WORLD.hypotheses, FPR, 0.4, 0.1, 3000, schedule="theory")
    assert caught.value.argument == "schedule"


def test_inverse_gap_does_not_let_the_group_decide():
    with pytest.raises(InvalidInput) as caught:
        inverse_gap(group_use="decide")
    assert caught.value.argument == "group_use"
