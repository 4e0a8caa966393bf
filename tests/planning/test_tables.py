"""A table of past people as the population of a plan."""

import pytest
from tests.planning.launches import table

import evenhand as eh
from evenhand.planning.tables import from_table


def test_a_table_s_own_rates_are_the_population_s():
    sample = table()
    world = from_table(sample, eh.ScoreThresholds(), "certify_only", None).world
    for group in ("f", "m"):
        mine = world.group == group
        assert world.probability[mine].sum() == pytest.approx((sample.group == group).mean())
        good = (sample.label[sample.group == group] == 1).mean()
        assert world.probability[mine] @ world.positive_rate[mine] == pytest.approx(
            good * world.probability[mine].sum()
        )


def test_rows_that_no_rule_tells_apart_are_one_kind_of_people():
    rules = [lambda x, a: x[:, 0] > 0, lambda x, a: x[:, 0] > 1]
    found = from_table(table(), eh.FiniteClass(rules), "certify_only", None)
    assert len(found.world) == 6
    assert found.rules == 2


def test_stumps_are_planned_on_the_table_s_rows():
    found = from_table(table(2_000), eh.Stumps(), "certify_only", None)
    assert len(found.world) <= 600
    assert found.rules == 256


@pytest.mark.parametrize("hypotheses", [eh.ScoreThresholds(), eh.Linear()])
def test_plans_from_a_table(hypotheses):
    plan = eh.plan_from_sample(table(), hypotheses, limit=0.15, horizon=6_000, lives=2)
    assert plan.answer == "worth it"
    assert plan.certified.worst_gap <= 0.15
    assert "800 rows" in plan.population["source"]


def test_an_estimator_is_planned_with_its_own_kind_of_score():
    from sklearn.tree import DecisionTreeClassifier

    tree = eh.Estimator(DecisionTreeClassifier(max_depth=3, random_state=0))
    found = from_table(table(), tree, "certify_only", None)
    assert found.rules == 30  # what the fourth nominated rule costs
    assert found.fitted
    assert len(found.world.hypotheses) < 30  # a tree has few distinct scores
