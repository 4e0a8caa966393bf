"""EXP4 over the fair net: the deployed policy against the formula, written down member by member;
and that it learns (`exp4_checks` has the figures). `tests/mutants/test_exp4_mutants.py` breaks it.
"""

import numpy as np
import pytest
from tests.algorithms import exp4_checks
from tests.algorithms.exp4_checks import played_exp4
from tests.play import FPR, WORLD, play

from evenhand.bandit import PracticalSchedule
from evenhand.errors import InvalidInput
from evenhand.fairness import GapConstraints, SelectionRate
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, Stumps
from evenhand.learners import Exp4
from evenhand.simulation import simulate
from evenhand.words import Prices


@pytest.mark.parametrize("group_use", ["certify_only", "decide"])
@pytest.mark.parametrize("estimator", ["one-sided", "two-sided"])
def test_the_policy_is_the_formula(estimator, group_use):
    exp4_checks.check_exp4_is_the_formula(estimator, group_use)


@pytest.mark.parametrize(
    "check",
    [exp4_checks.check_exp4_learns, exp4_checks.check_exp4_two_sided_learns],
    ids=lambda check: check.__name__,
)
def test_it_learns(check):
    check()


@pytest.mark.parametrize("estimator", ["one-sided", "two-sided"])
def test_every_policy_is_fair_on_the_sample_and_has_its_floor(estimator):
    learner = played_exp4(estimator=estimator)
    sample = learner.sample
    constraints = GapConstraints.on(FPR, sample)
    explored = (ACCEPT_ALL, REJECT_ALL)[: learner.paper.sides]
    for epoch in learner.report.epochs:
        gap = constraints.gaps(epoch.policy.acceptance(sample.features))
        assert np.abs(gap).max() <= learner.slack.limit + 1e-12
        for constant in explored if epoch.phase == "exp4" else ():
            assert epoch.policy.weight_of(constant) >= epoch.exploration_floor - 1e-12


def test_two_sided_begins_with_a_coin_because_no_reject_has_a_weight():
    learner = played_exp4(estimator="two-sided")
    first = next(epoch for epoch in learner.report.epochs if epoch.phase == "exp4")
    assert first.policy.weights == (0.5, 0.5)
    assert first.rounds == 64


def test_weights_are_renewed_after_every_round_where_growth_is_0():
    learner = played_exp4(growth=0, rounds=350)
    later = [epoch for epoch in learner.report.epochs if epoch.phase == "exp4"]
    assert {epoch.rounds for epoch in later} == {1}
    assert len({epoch.policy for epoch in later}) == len(later) >= 49


def test_epochs_grow_by_a_quarter():
    learner = Exp4(WORLD.hypotheses, FPR, 0.4, 0.1, 9000, exploration_rounds=300, grid=3)
    run = simulate(learner, WORLD, 6000, seed=0)
    lengths = run.lengths[np.array(run.phases) == "exp4"].tolist()
    assert lengths[:4] == [64, 64, 64, 64]
    assert lengths[-2] == sum(lengths[:-2]) // 4


def test_by_default_the_grid_has_the_square_root_of_the_horizon():
    with_default = Exp4(WORLD.hypotheses, FPR, 0.4, 0.1, 2500, exploration_rounds=300, seed=5)
    with_50 = Exp4(WORLD.hypotheses, FPR, 0.4, 0.1, 2500, exploration_rounds=300, grid=50, seed=5)
    assert play(with_default, 500, 1) == play(with_50, 500, 1)


def test_a_larger_floor_of_the_schedule_has_its_way():
    learner = played_exp4(schedule=PracticalSchedule(scale=9.0))
    assert learner.epoch.exploration_floor == pytest.approx(
        9 / np.sqrt(learner.state.learned), rel=1e-3
    )


def test_prices_scale_the_floor_so_that_no_step_exceeds_one():
    """One-sided |loss_hat p| <= max(fa, fr) / (fa + fr)."""
    plain = played_exp4()
    dear = played_exp4(prices=Prices(9.0, 1.0))
    ratio = dear.epoch.exploration_floor / plain.epoch.exploration_floor
    assert ratio == pytest.approx(0.9 / 0.5, rel=0.05)  # ln N is nearly the same


def test_a_class_that_cannot_be_enumerated_is_named():
    class Unlisted:
        """A finite class that only answers with the best rule."""

        params = WORLD.hypotheses.params
        log_size = WORLD.hypotheses.log_size
        log_growth = WORLD.hypotheses.log_growth
        exact = True
        uses_group = False

        def bind(self, features, group):
            bound = WORLD.hypotheses.bind(features, group)
            return type("Bound", (), {"best": lambda _, cost: bound.best(cost)})()

        def best(self, problem):
            return WORLD.hypotheses.best(problem)

    learner = Exp4(Unlisted(), FPR, 0.4, 0.1, 3000, exploration_rounds=300, seed=5)
    with pytest.raises(InvalidInput, match="enumerated") as caught:
        play(learner, 500, 0)
    assert caught.value.argument == "hypotheses"


@pytest.mark.parametrize("rate", [FPR, SelectionRate(), [FPR, SelectionRate()]])
def test_it_plays_stumps_and_other_rates(rate):
    learner = Exp4(Stumps(), rate, 0.7, 0.1, 3000, comparator_gap=0.1, seed=0)
    play(learner, 1500, 0)
    assert learner.epoch.phase == "exp4"
