"""Explanations over source columns, beside all orders of the columns, one by one; and `shap`."""

import itertools
import json

import numpy as np
import pytest
from tests.policies.test_reasons import by_all_orders

import evenhand as eh
from evenhand.errors import InvalidInput
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, Called, GroupClassifier, LinearRule, Tree
from evenhand.hypotheses.thresholds import PerGroup, Threshold
from evenhand.policies import Mixture, ReasonWords, SourceColumn
from evenhand.policies.explanation import (
    hyperplanes,
    number_columns,
    schema_columns,
)
from evenhand.schema import Column, Schema
from evenhand.tables.column import Notation
from evenhand.tables.frame import RecipeColumn
from evenhand.tables.recipe import source_columns

LINEAR = {"kind": "linear", "weights": [2.0, 0.0, 1.0], "threshold": 5.0}
TREE = {"kind": "tree", "column": [0, 2, -1], "value": [1.0, 2.0, 3.0]}
CUT = {"kind": "threshold", "column": 2, "value": 7.0}

RECIPE = (
    RecipeColumn("score", Notation("number")),
    RecipeColumn("housing", None, ("own", "rent", "other")),
    RecipeColumn("debt", Notation("number")),
    RecipeColumn("sex", None, ("m",), "f"),
)
"""score, three 0/1 columns of housing, debt, one 0/1 column of sex."""
HOUSING = np.eye(3)


def test_a_rule_changes_its_answer_at_its_hyperplanes():
    """Linear rules where w.x crosses the threshold, cuts and trees at their values."""
    policy = {"parts": [{"hypothesis": rule} for rule in (LINEAR, TREE, CUT)]}
    weights, right = hyperplanes(policy, 3)
    assert weights.tolist() == [[2, 0, 1], [1, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert right.tolist() == [5.0, 1.0, 2.0, 7.0]
    assert hyperplanes({"kind": "constant", "accept": True}, 2)[0].shape == (0, 2)


def encoded(raw):
    """Rows (score, housing 0..2, debt, sex 0/1) as the numbers of RECIPE."""
    raw = np.atleast_2d(raw)
    return np.column_stack([raw[:, 0], HOUSING[raw[:, 1].astype(int)], raw[:, 2], raw[:, 3]])


def random_people(rng, people):
    return np.column_stack(
        [
            rng.normal(600, 50, people).round(),
            rng.integers(0, 3, people),
            rng.random(people).round(2),
            rng.integers(0, 2, people),
        ]
    )


def policies(rng):
    """Thresholds, a linear rule over one-hot columns, trees, constants, a function of one's own."""
    weights = rng.normal(size=6) * [0.02, 1, 1, 1, -2, 0.3]
    linear = LinearRule(tuple(weights), float(weights @ encoded([600, 1, 0.5, 0])[0]))
    tree = Tree(
        column=(0, 4, 2, -1, -1, -1, -1),
        value=(600.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0),
        left=(1, 3, 5, -1, -1, -1, -1),
        right=(2, 4, 6, -1, -1, -1, -1),
        accept=(False, False, False, True, False, False, True),
        columns=6,
    )
    own = Called(lambda rows, group: (rows[:, 0] > 580) & (rows[:, 1] + rows[:, 5] < 2))
    score, debt = Threshold(0, 590.0, 6), Threshold(4, 0.6, 6, at_least=False)
    return [
        Mixture((score, debt, ACCEPT_ALL), (0.5, 0.3, 0.2)),
        Mixture((linear,), (1.0,)),
        Mixture((tree, REJECT_ALL), (0.7, 0.3)),
        Mixture((linear, tree, score), (0.4, 0.4, 0.2)),
        Mixture((own, debt), (0.6, 0.4)),
    ]


def test_source_columns_of_a_recipe():
    sources = source_columns(RECIPE)
    assert [one.name for one in sources] == ["score", "housing", "debt", "sex"]
    row = encoded([610, 2, 0.3, 0])[0]
    assert [one.value(row) for one in sources] == [610.0, "other", 0.3, "f"]
    when = source_columns((RecipeColumn("since", Notation("date")),))[0]
    assert when.value(np.array([18690.0])) == "2021-03-04"
    flag = source_columns((RecipeColumn("insured", Notation("flag")),))[0]
    assert flag.value(np.array([1.0])) == "yes"


def standard_scores(policy, people, rules):
    """The mean score of some of the linear rules, each in its standard deviation among the people
    and with its weight.
    """
    slopes = np.array([policy.hypotheses[k].weights for k in rules])
    weights = np.array([policy.weights[k] for k in rules])
    spread = (people @ slopes.T).std(axis=0)
    return lambda rows: (rows @ slopes.T / spread) @ weights / weights.sum()


@pytest.mark.parametrize("seed", range(5))
def test_shares_are_those_of_all_orders_of_the_source_columns(seed):
    """The definition over raw columns, where a category is one of them: of the probability, and of
    a linear rule (seed 1) of its score.
    """
    rng = np.random.default_rng(seed)
    policy = policies(rng)[seed]
    people = random_people(rng, 6)
    person = random_people(rng, 1)[0]
    found = policy.explain(encoded(person)[0], encoded(people), columns=source_columns(RECIPE))
    value = policy.acceptance
    assert found.unit == ("score" if seed == 1 else "probability")
    if seed == 1:
        value = standard_scores(policy, encoded(people), [0])
    truth = by_all_orders(lambda raw: value(encoded(raw)), person, people)
    shares = {one.column: one.share for one in found.reasons}
    for name, share in zip(("score", "housing", "debt", "sex"), truth, strict=True):
        assert shares.get(name, 0.0) == pytest.approx(share, abs=1e-12)
    total = sum(shares.values())
    if seed != 1:
        assert total == pytest.approx(found.probability - found.reference_probability)
    assert found.standard_error == 0.0


def test_single_zero_one_columns_instead_of_categories_are_refuted():
    """The negative control: six numbers as six columns share otherwise."""
    rng = np.random.default_rng(1)
    policy = policies(rng)[3]
    people = random_people(rng, 12)
    person = random_people(rng, 1)[0]
    whole = policy.explain(encoded(person)[0], encoded(people), columns=source_columns(RECIPE))
    parts = policy.explain(encoded(person)[0], encoded(people))
    together = {one.column: one.share for one in whole.reasons}
    apart = {one.column: one.share for one in parts.reasons}
    assert abs(together["score"] - apart["x0"]) > 1e-3


@pytest.mark.slow
def test_shares_equal_those_of_shap():
    """1,000 people, 5 policies, against shap's exact explainer over the source columns."""
    shap = pytest.importorskip("shap")
    rng = np.random.default_rng(0)
    background = random_people(rng, 40)
    people = random_people(rng, 1000)
    sources = source_columns(RECIPE)
    largest = 0.0
    for policy in policies(rng):
        masker = shap.maskers.Independent(background, max_samples=len(background))

        def acceptance(raw, policy=policy):
            return policy.acceptance(encoded(raw))

        theirs = shap.explainers.Exact(acceptance, masker)(people, silent=True).values
        for person, values in zip(people, theirs, strict=True):
            found = policy.explain(
                encoded(person)[0], encoded(background), columns=sources, above=1.0
            )
            shares = {one.column: one.share for one in found.reasons}
            for name, value in zip(("score", "housing", "debt", "sex"), values, strict=True):
                largest = max(largest, abs(shares.get(name, 0.0) - value))
    assert largest < 1e-9


PEOPLE = np.array([[650.0, 0.1], [700.0, 0.2], [520.0, 0.9], [610.0, 0.4], [560.0, 0.7]])
SCORE = Threshold(0, 600.0, 2)
DEBT = Threshold(1, 0.5, 2, at_least=False)
COIN = Mixture((SCORE, DEBT, ACCEPT_ALL), (0.5, 0.3, 0.2))


def test_the_words_are_honest_about_the_coin():
    found = COIN.explain([580.0, 0.8], PEOPLE, columns=["score", "debt"], reference_name="loans")
    text = found.describe()
    assert found.probability == pytest.approx(0.2)
    assert "Probability of being accepted: 0.2. The decision is drawn with it." in text
    assert "Compared with 5 people (loans)" in text
    assert "score is low (580)" in text
    assert "debt is high (0.8)" in text
    assert "instead of 0.2. The decision would still be drawn." in text
    assert "would be accepted" not in text
    assert found.change.before == pytest.approx(0.2)
    assert found.change.after in (pytest.approx(0.5), pytest.approx(0.7))
    certain = COIN.explain([650.0, 0.1], PEOPLE, columns=["score", "debt"])
    assert certain.change is None
    assert "certain to be accepted" in certain.describe()
    refused = Mixture((REJECT_ALL,), (1.0,)).explain([1.0, 1.0], PEOPLE)
    assert refused.reasons == ()
    assert "No change of one or two columns" in refused.describe()


def test_above_asks_for_more_than_the_least_rise():
    found = COIN.explain([580.0, 0.8], PEOPLE, columns=["score", "debt"], above=0.9)
    assert found.change.columns == ("score", "debt")
    assert found.change.after == pytest.approx(1.0)
    assert "would still be drawn" not in found.describe()


def test_the_least_change_of_a_category_is_another_one_that_was_observed():
    policy = Mixture((Threshold(2, 0.5, 6, at_least=False),), (1.0,))  # not rent
    people = encoded([[600, 0, 0.1, 0], [610, 1, 0.3, 1], [620, 0, 0.2, 1]])
    person = encoded([600, 1, 0.2, 0])[0]
    found = policy.explain(person, people, columns=source_columns(RECIPE))
    assert found.change.words == "housing 'own' (it is 'rent')"
    assert (found.change.before, found.change.after) == (0.0, 1.0)
    assert found.reasons[0].text == "housing is rent"


def test_columns_that_may_not_change_are_not_proposed():
    person = [580.0, 0.8]

    def change(**limits):
        words = ReasonWords(**limits)
        return COIN.explain(person, PEOPLE, columns=["score", "debt"], words=words).change

    free = change()
    other = {"score": "debt", "debt": "score"}[free.columns[0]]
    assert change(fixed=free.columns).columns == (other,)
    assert change(protected=free.columns).columns == (other,)
    assert change(only_down=("score",), fixed=("debt",)) is None
    assert change(only_up=("score",), fixed=("debt",)).columns == ("score",)


def test_protected_columns_are_no_reasons_but_are_reported():
    words = ReasonWords(protected=("score",))
    found = COIN.explain([580.0, 0.8], PEOPLE, columns=["score", "debt"], words=words)
    assert [one.column for one in found.reasons] == ["debt"]
    assert [one.column for one in found.protected] == ["score"]
    assert "protected column score has a share" in found.describe()
    every = found.reasons + found.protected
    assert sum(one.share for one in every) == pytest.approx(
        found.probability - found.reference_probability
    )


def test_words_of_the_institution():
    words = ReasonWords.from_toml(
        """
        [[reason]]
        column = "debt"
        direction = "high"
        code = "R07"
        text = "Debt is high in relation to income."
        """
    )
    found = COIN.explain([580.0, 0.8], PEOPLE, columns=["score", "debt"], words=words)
    debt = next(one for one in found.reasons if one.column == "debt")
    score = next(one for one in found.reasons if one.column == "score")
    assert (debt.text, debt.code, debt.worded) == (
        "Debt is high in relation to income.",
        "R07",
        True,
    )
    assert not score.worded
    assert "[R07]" in found.describe()


def test_the_record_can_be_looked_at():
    found = COIN.explain([580.0, 0.8], PEOPLE, columns=["score", "debt"])
    frame = found.to_frame()
    assert set(frame["column"]) == {"score", "debt"}
    document = json.loads(json.dumps(found.to_json()))
    assert document["probability"] == found.probability
    assert document["change"]["words"] == found.change.words
    assert len(found.principal_reasons(1)) == 1
    assert eh.explain(COIN, [580.0, 0.8], PEOPLE).reasons[0].column == "x0"


def test_the_record_can_be_drawn():
    pytest.importorskip("matplotlib", reason="make check does not install it")
    axes = COIN.explain([580.0, 0.8], PEOPLE, columns=["score", "debt"]).plot()
    assert "share of the probability" in axes.get_xlabel()


def test_people_in_frames_are_explained_by_the_names_of_their_columns():
    schema = Schema(
        (
            Column("score", "number"),
            Column("housing", "category", ("own", "rent")),
            Column("insured", "boolean"),
            Column("note", "text"),
        )
    )
    own = Called(lambda rows, group: (rows[:, 0] >= 600) & (rows[:, 1] == 0))
    policy = Mixture((own,), (1.0,), schema=schema)
    people = [
        {"score": 650.0, "housing": "own", "insured": True, "note": "a"},
        {"score": 590.0, "housing": "rent", "insured": False, "note": "b"},
    ]
    person = {"score": 640.0, "housing": "rent", "insured": False, "note": "mine"}
    found = policy.explain(person, people)
    assert found.reasons[0].column == "housing"
    assert found.reasons[0].value == "rent"
    assert found.change.then == ("own",)
    assert [one.kind for one in schema_columns(schema)] == ["number", "name", "name", "text"]
    row = schema.encode([person])[0]
    assert [one.value(row) for one in schema_columns(schema)] == [640.0, "rent", False, "mine"]


def test_a_group_that_decides_is_held_as_it_is():
    rule = PerGroup((("a", Threshold(0, 600.0, 2)), ("b", Threshold(0, 500.0, 2))))
    policy = Mixture((rule, GroupClassifier("b")), (0.8, 0.2), "decide")
    found = policy.explain([550.0, 0.1], PEOPLE, group="a")
    assert found.probability == 0.0
    assert "held as it is" in found.describe()
    other = policy.explain([550.0, 0.1], PEOPLE, group="b")
    assert other.probability == pytest.approx(1.0)
    with pytest.raises(InvalidInput, match="group is not given"):
        policy.explain([550.0, 0.1], PEOPLE)


def test_impossible_input_raises_an_error():
    with pytest.raises(InvalidInput, match="nobody in the reference"):
        COIN.explain([1.0, 2.0], np.zeros((0, 2)))
    with pytest.raises(InvalidInput, match="one person is explained"):
        COIN.explain(PEOPLE, PEOPLE)
    with pytest.raises(InvalidInput, match="3 columns and the reference 2"):
        COIN.explain([1.0, 2.0, 3.0], PEOPLE)
    with pytest.raises(InvalidInput, match="stand for 1 numbers"):
        COIN.explain([1.0, 2.0], PEOPLE, columns=["score"])
    with pytest.raises(InvalidInput, match="no such column"):
        COIN.explain([1.0, 2.0], PEOPLE, words=ReasonWords(fixed=("age",)))
    with pytest.raises(InvalidInput):
        COIN.explain([np.nan, 2.0], PEOPLE)


def test_numbers_have_names_or_none():
    assert [one.name for one in number_columns(["a", "b"])] == ["a", "b"]
    lone = SourceColumn("x", slice(0, 1), missing=-1.0)
    assert lone.value(np.array([-1.0])) is None


def test_every_pair_of_values_agrees_with_the_policy_itself():
    """The probability after the change is the policy's own at the changed person."""
    rng = np.random.default_rng(3)
    for policy, _ in itertools.product(policies(rng), range(3)):
        people = encoded(random_people(rng, 20))
        person = encoded(random_people(rng, 1)[0])[0]
        found = policy.explain(person, people, columns=source_columns(RECIPE))
        if found.change is not None:
            assert found.change.after > found.probability
            changed = person.copy()
            for name, value in zip(found.change.columns, found.change.then, strict=True):
                source = next(one for one in source_columns(RECIPE) if one.name == name)
                codes = dict(source.options).get(value, (value,))
                changed[source.place] = codes
            assert policy.acceptance(changed[None, :])[0] == pytest.approx(found.change.after)
