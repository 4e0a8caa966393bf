"""The population that a plan is simulated on is the one it was told."""

import math

import numpy as np
import pytest
from scipy.special import ndtr
from tests.planning.launches import BAD, SHARES, gaps_of, planned, table

import evenhand as eh
from evenhand.planning import population
from evenhand.planning.launch import launched
from evenhand.planning.population import LaunchTerms, auc_of, from_table, separation_of
from evenhand.words import LabelledSample

TERMS = LaunchTerms(0.1, 0.05, 10_000, (eh.FalsePositiveRate(),))


def test_the_population_has_the_shares_rates_and_separation_it_was_told():
    world = planned().world
    for group, share in SHARES.items():
        mine = world.group == group
        assert world.probability[mine].sum() == pytest.approx(share, abs=1e-9)
        bad = world.probability[mine] @ (1 - world.positive_rate[mine])
        assert bad / share == pytest.approx(BAD[group], abs=1e-9)
        good_mass = world.probability[mine] * world.positive_rate[mine]
        bad_mass = world.probability[mine] - good_mass
        above = np.r_[np.cumsum(good_mass[::-1])[::-1][1:], 0.0]
        auc = (bad_mass @ (above + good_mass / 2)) / (bad_mass.sum() * good_mass.sum())
        assert auc == pytest.approx(ndtr(1.2 / math.sqrt(2)), abs=0.005)  # bins blur it a little
    assert auc_of(separation_of(0.81)) == pytest.approx(0.81)


def test_by_default_a_score_means_the_same_in_both_groups_and_so_has_a_gap():
    world = planned().world
    half = len(world) // 2
    inner = slice(3, half - 3)  # the outer bins are wide, so the groups lie differently in them
    assert np.abs(world.positive_rate[:half] - world.positive_rate[half:])[inner].max() < 0.01
    gaps = gaps_of(world)
    assert len(gaps) == 29
    assert gaps[:20].min() > 0.05


def test_with_equal_shifts_no_threshold_has_a_gap():
    world = planned({"a": 0.0, "b": 0.0}).world
    assert gaps_of(world).max() < 1e-9


def test_where_the_group_may_decide_every_group_has_its_threshold():
    world = planned(use="decide").world
    half = len(world) // 2
    both = {(int(row[:half].sum()), int(row[half:].sum())) for row in world.accepts}
    assert (half, 0) in both
    assert (0, half) in both
    assert len(both) == len(world.accepts) <= 225
    assert world.optimum(0.01)[0] < planned().world.optimum(0.01)[0]


def test_a_table_s_own_rates_are_the_population_s():
    sample = table()
    world = from_table(sample, eh.ScoreThresholds(), "certify_only", None, TERMS).world
    for group in ("f", "m"):
        mine = world.group == group
        assert world.probability[mine].sum() == pytest.approx((sample.group == group).mean())
        good = (sample.label[sample.group == group] == 1).mean()
        assert world.probability[mine] @ world.positive_rate[mine] == pytest.approx(
            good * world.probability[mine].sum()
        )


def test_rows_that_no_rule_tells_apart_are_one_kind_of_people():
    rules = [lambda x, a: x[:, 0] > 0, lambda x, a: x[:, 0] > 1]
    found = from_table(table(), eh.FiniteClass(rules), "certify_only", None, TERMS)
    assert len(found.world) == 6
    assert found.rules == 2


def test_stumps_are_planned_on_the_table_s_rows():
    found = from_table(table(2_000), eh.Stumps(), "certify_only", None, TERMS)
    assert len(found.world) <= 4_000
    assert found.rules == 254  # 63 cuts in each of two columns, both directions; two constants


def test_a_column_of_two_values_has_two_stumps():
    sample = table(2_000)
    flags = np.column_stack([sample.features[:, :1], np.sign(sample.features) > 0]).astype(float)
    found = from_table(
        LabelledSample(flags, sample.group, sample.label), eh.Stumps(), "certify_only", None, TERMS
    )
    assert found.table.rules == 2 + 2 * (63 + 1 + 1)


def test_kinds_of_people_keep_the_means_of_their_columns():
    sample = table(500)
    world = from_table(sample, eh.Stumps(), "certify_only", None, TERMS).world
    assert world.features[:, 0].tolist() == list(range(len(world)))
    np.testing.assert_allclose(world.probability @ world.features[:, 1:], sample.features.mean(0))


def test_a_learner_has_the_cuts_of_its_first_people_and_not_the_best_ones_of_the_table():
    found = from_table(table(2_000), eh.Stumps(), "certify_only", None, TERMS)
    reached = found.learnable.bind(found.world.features, None)
    assert len(found.learnable) < len(found.world.hypotheses)
    weighted = found.world.probability * (1 - 2 * found.world.positive_rate)
    every = found.world.hypotheses.bind(found.world.features, None)
    costs = [bound.totals(weighted[np.newaxis]).min() for bound in (every, reached)]
    assert costs[0] <= costs[1] < costs[0] + 0.05


@pytest.mark.parametrize("most", [np.inf, 0])
def test_lives_are_played_on_the_table_itself_where_that_is_affordable(monkeypatch, most):
    monkeypatch.setattr(population, "MOST_PLAYED", most)
    found = from_table(table(), eh.Stumps(), "certify_only", None, TERMS)
    learner, world = launched(found, TERMS)
    itself = most > 0
    assert isinstance(world, eh.environments.Replay) == itself
    assert isinstance(learner.hypotheses, eh.Stumps) == itself
    assert ("kinds" in found.source) != itself


@pytest.mark.parametrize("seed", range(6))
def test_the_best_policy_of_a_plan_is_that_of_solve(seed):
    """On random tables: within the limit, without one, and the better constant."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["f", "m"], 900)
    x = rng.normal(size=(900, 3)) + 0.4 * (group == "m")[:, None]
    chance = 1 / (1 + np.exp(-(x @ rng.normal(size=3)) - 1.5))
    label = np.where(rng.random(900) < chance, 1, -1)
    sample = LabelledSample(x, group, label)
    world = from_table(sample, eh.Stumps(), "certify_only", None, TERMS).world
    problem = eh.Prices().problem(x, group, label)
    for limit in (TERMS.limit, 1.0):
        solved = eh.solve_fair(problem, eh.Stumps(), TERMS.rates, sample, limit)
        assert world.optimum(limit, TERMS.rates)[0] == pytest.approx(solved.cost / 900, abs=1e-6)
    good = world.probability @ world.positive_rate
    assert good == pytest.approx((label == 1).mean())


@pytest.mark.parametrize("hypotheses", [eh.ScoreThresholds(), eh.Linear()])
def test_plans_from_a_table(hypotheses):
    plan = eh.planning.plan_from_sample(table(), hypotheses, limit=0.15, horizon=6_000, runs=4)
    assert plan.answer == "worth it"
    assert plan.certified.worst_gap <= 0.15
    assert "800 rows" in plan.population["source"]


def test_an_estimator_is_planned_with_its_own_kind_of_score():
    from sklearn.tree import DecisionTreeClassifier

    tree = eh.Estimator(DecisionTreeClassifier(max_depth=3, random_state=0))
    found = from_table(table(), tree, "certify_only", None, TERMS)
    assert found.rules == 30  # what the fourth nominated rule costs
    assert found.fitted
    assert len(found.world.hypotheses) < 30  # a tree has few distinct scores


def test_where_accepting_everybody_is_optimal_there_is_nothing_to_gain():
    """`solve` proves it on the same table, so `plan` must not say that learning is worth it."""
    rng = np.random.default_rng(3)
    group = rng.choice(["f", "m"], 3_000)
    x = rng.normal(size=(3_000, 2))
    label = np.where(rng.random(3_000) < 0.83 + 0.02 * np.tanh(x[:, 0]), 1, -1)
    sample = LabelledSample(x, group, label)
    problem = eh.Prices().problem(x, group, label)
    solved = eh.solve_fair(problem, eh.Stumps(), TERMS.rates, sample, 0.1)
    everybody = (label == -1).mean()
    plan = eh.planning.plan_from_sample(sample, eh.Stumps(), limit=0.1, horizon=10_000, runs=2)
    gain = everybody - solved.cost / 3_000
    assert plan.constant_cost - plan.best_cost == pytest.approx(gain, abs=1e-9)
    assert (plan.answer == "nothing to gain") == (gain < 1e-9)


def test_the_incumbent_is_a_rule_of_every_plan_and_its_figures_are_those_of_the_table(monkeypatch):
    sample = table(1_000)
    rule = eh.hypotheses.Threshold(0, 0.5, 2)
    decides = sample.features[:, 0] >= 0.5
    for most in (np.inf, 0):
        monkeypatch.setattr(population, "MOST_PLAYED", most)
        found = from_table(sample, eh.Stumps(), "certify_only", None, TERMS, (rule,))
        (today,) = found.incumbent
        assert today.accepted == pytest.approx(decides.mean())
        assert today.cost == pytest.approx((decides != (sample.label == 1)).mean())
        rates = [
            decides[(sample.group == group) & (sample.label == -1)].mean() for group in ("f", "m")
        ]
        assert today.gap == pytest.approx(abs(rates[1] - rates[0]))
        learner, _ = launched(found, TERMS)
        if most:
            assert learner.algorithm.candidate_rules == (rule,)
            continue
        # by counts: one of the rules of the population, for its kinds of people
        shares = found.learnable.bind(found.world.features, None).totals(
            found.world.probability[np.newaxis]
        )[0]
        assert np.isclose(shares, decides.mean()).any()


def test_an_incumbent_that_reads_other_columns_raises_an_error():
    other = eh.hypotheses.Threshold(2, 0.5, 3)
    with pytest.raises(eh.InvalidInput, match="2 columns"):
        eh.planning.plan_from_sample(
            table(), eh.Stumps(), limit=0.1, horizon=2_000, candidates=[other]
        )


def test_a_capped_plan_from_a_table():
    plan = eh.planning.plan_from_sample(
        table(), eh.Stumps(), limit=0.15, horizon=2_000, runs=1, accept_at_most=0.3
    )
    assert plan.accepted.high.max() <= 0.3 + 1e-9


@pytest.mark.parametrize("hypotheses", [eh.Stumps(), eh.ScoreThresholds()])
def test_the_best_policy_of_a_capped_plan_is_that_of_the_whole_class(hypotheses):
    terms = LaunchTerms(0.05, 0.05, 10_000, TERMS.rates, accept_at_most=0.15)
    sample = table(900)
    world = from_table(sample, hypotheses, "certify_only", None, terms).world
    whole = eh.environments.Replay(sample, hypotheses=hypotheses)
    best = whole.optimum_within(0.05, terms.rates, terms.prices, 0.15)[0]
    assert world.optimum_within(0.05, terms.rates, terms.prices, 0.15)[0] == pytest.approx(best)
