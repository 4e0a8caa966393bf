"""The paper's algorithm to the letter: its constants, the saddle-point oracle, a new Q in every
round; and each of these settings alone.
"""

import numpy as np
import pytest
from tests.play import FPR, WORLD, play, two_phase

import evenhand as eh
from evenhand import theory
from evenhand.algorithms import two_phase as module
from evenhand.bandit import PracticalSchedule, TheorySchedule
from evenhand.bounds import JointHoeffding
from evenhand.errors import InvalidInput
from evenhand.faircsc import oracle
from evenhand.fairness import FalseNegativeRate, GapConstraints
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, GroupClassifier
from evenhand.hypotheses.finite import TableRow
from evenhand.rounds import learning
from evenhand.simulation import guarantees, simulate
from evenhand.simulation.named import Setting, make_learner


class Tiny(JointHoeffding):
    """A slack that lets the limit bind."""

    def slack(self, counts, **settings):
        return 0.03


T = 600
LOG_SIZE = np.log(8)
EVERY_ROUND = {"epochs": "every-round", "exploration_rounds": 150, "limit": None}


def printed(horizon=T, **changed):
    return eh.TwoPhaseLearner.as_printed(
        WORLD.hypotheses, FPR, 0.02, horizon**-0.5, horizon, seed=5, **changed
    )


def kinds(learner):
    return [note.kind for note in learner.report.notes]


# as printed


@pytest.mark.parametrize("alpha", [0.25, 0.3])
def test_t0_beta_and_the_set_are_the_printed_ones(alpha):
    learner = printed(tradeoff_exponent=alpha)
    delta = T**-0.5
    rounds = int(np.ceil(T ** (2 * alpha) * np.sqrt(np.log(8 / delta))))
    assert learner.exploration_rounds == rounds
    play(learner, rounds + 1, 0, block=1)
    assert learner.slack.beta == np.sqrt(np.log(8 / delta)) / T**alpha
    assert learner.slack.limit == 0.02 + learner.slack.beta
    assert learner.sample.weight.sum() == rounds


def test_everything_else_is_the_papers():
    paper = printed().paper
    assert isinstance(paper.floors, TheorySchedule)
    assert paper.sides == 2
    assert (paper.method, paper.epochs, paper.group_use) == (
        "saddle-point",
        "every-round",
        "decide",
    )
    assert paper.nu(1.0) == 1 / T
    assert paper.nu(1e-4) == 1e-4 / 4  # the constraint is tightened by 2 nu


def test_it_gives_no_certificate_and_says_so():
    learner = printed()
    assert learner.guarantee is None
    assert "gamma + O(beta), no constant claimed" in str(learner.report.notes[0])
    assert "no certificate" in str(learner.report.notes[0])
    play(learner, learner.exploration_rounds + 3, 0, block=1)
    assert f"beta = {learner.slack.beta:.3g}" in str(learner.report.notes[0])
    assert "not as printed" not in kinds(learner)
    assert not guarantees(learner, 0.99)


def test_what_is_not_as_printed_is_named():
    learner = printed(epochs="doubling", method="column-generation", schedule="practical")
    (text,) = (str(note) for note in learner.report.notes if note.kind == "not as printed")
    for part in ("a new Q in every round", "the saddle-point oracle", "the paper's constants"):
        assert part in text
    assert "two-sided" not in text


def test_a_delta_above_that_of_theorem_3_1_is_named():
    assert "delta" not in kinds(printed())
    bold = eh.TwoPhaseLearner.as_printed(WORLD.hypotheses, FPR, 0.02, 0.2, T)
    assert "1/sqrt(T) = 0.041" in str(bold.report.notes[-2])


def test_refusals():
    with pytest.raises(InvalidInput, match="finite") as caught:
        eh.TwoPhaseLearner.as_printed(eh.Stumps(), FPR, 0.02, 0.01, 1000)
    assert caught.value.argument == "hypotheses"
    with pytest.raises(InvalidInput, match="horizon of 4") as caught:
        eh.TwoPhaseLearner.as_printed(WORLD.hypotheses, FPR, 0.02, 0.01, 4)
    with pytest.raises(InvalidInput) as caught:
        eh.TwoPhaseLearner.as_printed(WORLD.hypotheses, FPR, 0.02, 0.01, 1000, 0.6)
    assert caught.value.argument == "tradeoff_exponent"
    with pytest.raises(InvalidInput) as caught:
        eh.TwoPhaseLearner.as_printed(WORLD.hypotheses, FPR, -0.02, 0.01, 1000)
    assert caught.value.argument == "comparator_gap"


def test_it_can_be_named():
    setting = Setting(WORLD.hypotheses, FPR, 0.3, 0.05, 0.04, horizon=T)
    named = make_learner("as-printed:tradeoff_exponent=0.3,epochs=doubling", setting)
    assert named.comparator_gap == 0.05
    assert named.params["method"] == "saddle-point"
    assert named.params["epochs"] == "doubling"
    assert named.slack is None


def test_below_a_hundred_thousand_rounds_it_tosses_a_coin():
    """mu_t = 1/2, so Q does not matter: what the constants mean."""
    learner = printed()
    play(learner, learner.exploration_rounds + 10, 0, block=1)
    assert learner.policy.weight_of(ACCEPT_ALL) == learner.policy.weight_of(REJECT_ALL) == 0.5
    assert theory.uniform_rounds(T, LOG_SIZE, T**-0.5) > T


# a new Q in every round


@pytest.mark.parametrize("estimator", ["one-sided", "two-sided"])
def test_q_is_solved_anew_in_every_round(estimator, monkeypatch):
    solved = []

    def recorded(loss, *arguments, **settings):
        solved.append(loss.rounds)
        return module_descent(loss, *arguments, **settings)

    module_descent = module.coordinate_descent
    monkeypatch.setattr(module, "coordinate_descent", recorded)
    learner = two_phase(**EVERY_ROUND, estimator=estimator)
    play(learner, 200, 0, block=1)
    bandit = [epoch for epoch in learner.report.epochs if epoch.phase == "bandit"]
    assert [epoch.rounds for epoch in bandit] == [1] * 50
    if estimator == "two-sided":  # the first round of the second phase has no history: a coin
        assert solved == list(range(1, 50))
    else:
        assert solved == list(range(150, 200))
    floors = PracticalSchedule()
    assert bandit[-1].exploration_floor == floors.exploration_floor(int(solved[-1]))


@pytest.mark.parametrize("estimator", ["one-sided", "two-sided"])
@pytest.mark.parametrize("told", [1.0, 0.8])
@pytest.mark.thorough
def test_the_continued_loss_is_the_loss_of_all_rounds(estimator, told):
    """Bit by bit the same when it is computed anew, and but for rounding the estimate itself."""
    learner = two_phase(**EVERY_ROUND, estimator=estimator, group_use="decide")
    play(learner, 240, 3, block=3, told=told)
    if told < 1:
        learner.close_exploration()
        play(learner, 300, 4, block=3, told=told)
    paper, state, rounds = learner.paper, learner.state, learner.rounds
    continued = paper.continued_loss(state, rounds)
    rounds.cache.forget()
    anew = paper.continued_loss(state, rounds)
    for name in ("features", "group", "count", "acceptance_cost"):
        assert np.array_equal(getattr(continued, name), getattr(anew, name))
    assert (continued.constant, continued.rounds) == (anew.constant, anew.rounds)
    whole = paper.estimated_loss(paper.bandit_log(state, rounds))
    order = [whole.features[:, 0].tolist().index(value) for value in anew.features[:, 0]]
    assert anew.acceptance_cost == pytest.approx(whole.acceptance_cost[order], rel=1e-12)
    assert anew.constant == pytest.approx(whole.constant, rel=1e-12)
    assert anew.rounds == whole.rounds


def test_people_who_are_erased_leave_the_continued_loss():
    learner = two_phase(**EVERY_ROUND, slack_rule="as printed")
    play(learner, 210, 3, block=1)
    learner.erase(np.arange(160, 200))
    play(learner, 1, 3, block=1)
    paper, state, rounds = learner.paper, learner.state, learner.rounds
    loss = paper.continued_loss(state, rounds)
    assert loss.rounds == learning.resolved_before(rounds, state.learned_to) == 170


def test_a_call_with_many_people_is_cut_into_few_parts():
    """Nobody can have seen an outcome within a call, so there is nothing to solve anew for."""
    learner = two_phase(**EVERY_ROUND)
    play(learner, 150, 0, block=150)
    play(learner, 1000, 1, block=1000)
    assert len(learner.report.epochs) == 2


def test_simulations_play_it_person_by_person_and_others_in_counts():
    every = simulate(two_phase(**EVERY_ROUND), WORLD, 200, 1)
    assert len(every.rounds) == 51
    assert len(every.learner.rounds) == 50
    doubling = simulate(two_phase(limit=None, exploration_rounds=150), WORLD, 200, 1)
    assert len(doubling.learner.rounds) == 0


# the saddle-point oracle


@pytest.mark.parametrize(
    "settings",
    [
        {"estimator": "two-sided"},
        {"group_use": "decide"},
        {"rate": [FPR, FalseNegativeRate()], "oracle_tolerance": 0.02},
    ],
)
def test_policies_of_the_saddle_point_are_in_the_set(settings):
    """Tight enough to bind: exploration as given, beta small."""
    learner = two_phase(
        method="saddle-point",
        limit=None,
        exploration_rounds=300,
        slack_rule="as printed",
        bound=Tiny(),
        **{"oracle_tolerance": 0.01, **settings},
    )
    play(learner, 700, 1, block=100)
    constraints = GapConstraints.on(learner.rates, learner.sample)
    people = learner.sample
    for epoch in learner.report.epochs:
        gaps = constraints.gaps(epoch.policy.acceptance(people.features, people.group))
        assert np.abs(gaps).max() <= 0.02 + 0.03 + 1e-9
    assert sum(epoch.oracle_calls for epoch in learner.report.epochs) > 500
    assert "not converged" not in kinds(learner)


def test_group_classifiers_are_in_the_class():
    learner = printed(method="column-generation", schedule="practical", epochs="doubling")
    play(learner, T, 0, block=1)
    rules = {type(rule) for epoch in learner.report.epochs for rule in epoch.policy.hypotheses}
    assert rules <= {type(ACCEPT_ALL), TableRow, GroupClassifier}
    fair = learner.fair_oracle(learner.paper.feedback(learner.state, learner.rounds))
    pricer, _ = fair.pricer(np.ones(fair.objective))
    members = [column.hypothesis() for column in pricer.permanent]
    assert [rule for rule in members if isinstance(rule, GroupClassifier)] == [
        GroupClassifier("a"),
        GroupClassifier("b"),
    ]


def test_calls_that_ran_out_are_in_the_report(monkeypatch):
    monkeypatch.setattr(oracle, "SADDLE_CALLS", 10)
    learner = two_phase(
        method="saddle-point",
        limit=None,
        exploration_rounds=300,
        slack_rule="as printed",
        bound=Tiny(),
    )
    play(learner, 900, 1, block=100)
    assert "not converged" in kinds(learner)
    assert not all(epoch.halted for epoch in learner.report.epochs)


def test_an_empirical_limit_of_zero_leaves_no_room_to_tighten():
    """Where beta has eaten up all of the limit, the exact oracle answers instead."""
    learner = two_phase(method="saddle-point", exploration_rounds=300, limit=0.03, bound=Tiny())
    play(learner, 500, 1, block=100)
    assert learner.slack.limit == 0.0
    assert learner.fair_oracle(learner.paper.feedback(learner.state, learner.rounds)).method == (
        "column-generation"
    )
